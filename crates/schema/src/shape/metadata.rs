//! The shape of `ObjectMeta`.

use super::{Merge, Shape, Struct, TEXT, always, given, non_empty, texts};

pub static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        non_empty("annotations", Shape::Map("map[string]string", &TEXT)),
        non_empty("creationTimestamp", Shape::Time),
        given("deletionGracePeriodSeconds", Shape::Int64),
        given("deletionTimestamp", Shape::Time),
        non_empty("finalizers", texts()).merged(Merge::Set),
        non_empty("generateName", TEXT),
        non_empty("generation", Shape::Int64),
        non_empty("labels", Shape::Map("map[string]string", &TEXT)),
        non_empty("managedFields", Shape::List("[]v1.ManagedFieldsEntry", &Shape::Struct(&MANAGED_FIELDS_ENTRY))),
        non_empty("name", TEXT),
        non_empty("namespace", TEXT),
        non_empty("ownerReferences", Shape::List("[]v1.OwnerReference", &Shape::Struct(&OWNER_REFERENCE)))
            .merged(Merge::PatchedWhole("uid")),
        non_empty("resourceVersion", TEXT),
        non_empty("selfLink", TEXT),
        non_empty("uid", Shape::Text("types.UID")),
    ],
};

static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        always("apiVersion", TEXT),
        given("blockOwnerDeletion", Shape::Bool),
        given("controller", Shape::Bool),
        always("kind", TEXT),
        always("name", TEXT),
        always("uid", Shape::Text("types.UID")),
    ],
};

/// `ManagedFieldsEntry`.
pub static MANAGED_FIELDS_ENTRY: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("fieldsType", TEXT),
        given("fieldsV1", Shape::Any),
        non_empty("manager", TEXT),
        non_empty("operation", Shape::Text("v1.ManagedFieldsOperationType")),
        non_empty("subresource", TEXT),
        given("time", Shape::Time),
    ],
};
