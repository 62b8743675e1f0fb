//! Stored kinds of allocated addresses and node ports, laid out as in kube-apiserver. They are not served.

use schema::shape::{OBJECT_META, Shape, Struct, TEXT, always, given, non_empty};

use super::{BASE, BuiltIn, Form};

static PARENT: Struct = Struct {
    name: "ParentReference",
    fields: &[
        non_empty("group", TEXT),
        non_empty("name", TEXT),
        non_empty("namespace", TEXT),
        non_empty("resource", TEXT),
    ],
};

static ADDRESS_SPEC: Struct = Struct { name: "IPAddressSpec", fields: &[given("parentRef", Shape::Struct(&PARENT))] };

static ADDRESS: Struct = Struct {
    name: "IPAddress",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        non_empty("spec", Shape::Struct(&ADDRESS_SPEC)),
    ],
};

/// An allocated address.
pub const IP_ADDRESS: BuiltIn = BuiltIn {
    group: "networking.k8s.io",
    kind: "IPAddress",
    plural: "ipaddresses",
    singular: "ipaddress",
    namespaced: false,
    form: Form::Typed(&ADDRESS),
    ..BASE
};

static RANGE: Struct = Struct {
    name: "RangeAllocation",
    fields: &[
        non_empty("apiVersion", TEXT),
        always("data", Shape::Bytes),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        always("range", TEXT),
    ],
};

/// The allocated numbers of a range, as a bitmap.
pub const RANGE_ALLOCATION: BuiltIn = BuiltIn {
    kind: "RangeAllocation",
    plural: "ranges",
    singular: "range",
    namespaced: false,
    form: Form::Typed(&RANGE),
    ..BASE
};
