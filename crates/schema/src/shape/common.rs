//! Shapes that many kinds share.

use super::{Shape, Struct, TEXT, always, non_empty, texts};

static REQUIREMENT: Struct = Struct {
    name: "LabelSelectorRequirement",
    fields: &[
        always("key", TEXT),
        always("operator", Shape::Text("v1.LabelSelectorOperator")),
        non_empty("values", texts()),
    ],
};

pub static LABEL_SELECTOR: Struct = Struct {
    name: "LabelSelector",
    fields: &[
        non_empty("matchExpressions", Shape::List("[]v1.LabelSelectorRequirement", &Shape::Struct(&REQUIREMENT))),
        non_empty("matchLabels", Shape::Map("map[string]string", &TEXT)),
    ],
};

pub const LABEL_SELECTORS: Shape = Shape::List("[]v1.LabelSelector", &Shape::Struct(&LABEL_SELECTOR));

pub static OBJECT_REFERENCE: Struct = Struct {
    name: "ObjectReference",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("fieldPath", TEXT),
        non_empty("kind", TEXT),
        non_empty("name", TEXT),
        non_empty("namespace", TEXT),
        non_empty("resourceVersion", TEXT),
        non_empty("uid", Shape::Text("types.UID")),
    ],
};

pub static LOCAL_REFERENCE: Struct = Struct { name: "LocalObjectReference", fields: &[non_empty("name", TEXT)] };

/// `metav1.Condition`.
pub static CONDITION: Struct = Struct {
    name: "Condition",
    fields: &[
        always("lastTransitionTime", Shape::Time),
        always("message", TEXT),
        non_empty("observedGeneration", Shape::Int64),
        always("reason", TEXT),
        always("status", Shape::Text("v1.ConditionStatus")),
        always("type", TEXT),
    ],
};
