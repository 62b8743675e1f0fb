//! The stored kind of allocated node ports, laid out as in kube-apiserver. It is not served.

use schema::shape::{OBJECT_META, Shape, Struct, TEXT, always, given, non_empty};

/// The allocated numbers of a range, as a bitmap.
pub static RANGE: Struct = Struct {
    name: "RangeAllocation",
    fields: &[
        non_empty("apiVersion", TEXT),
        always("data", Shape::Bytes),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        always("range", TEXT),
    ],
};
