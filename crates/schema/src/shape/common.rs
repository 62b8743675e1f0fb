//! Shapes that many kinds share.

use super::{OBJECT_META, Shape, Struct, TEXT, always, given, non_empty, texts};

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

/// `metav1.DeleteOptions`, without its type.
pub static DELETE_OPTIONS: Struct = Struct {
    name: "DeleteOptions",
    fields: &[
        non_empty("dryRun", texts()),
        given("gracePeriodSeconds", Shape::Int64),
        given("ignoreStoreReadErrorWithClusterBreakingPotential", Shape::Bool),
        given("orphanDependents", Shape::Bool),
        given("preconditions", Shape::Struct(&PRECONDITIONS)),
        given("propagationPolicy", Shape::Text("v1.DeletionPropagation")),
    ],
};

static PRECONDITIONS: Struct =
    Struct { name: "Preconditions", fields: &[given("resourceVersion", TEXT), given("uid", Shape::Text("types.UID"))] };

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

static SCALE_SPEC: Struct = Struct { name: "ScaleSpec", fields: &[non_empty("replicas", Shape::Int32)] };

static SCALE_STATUS: Struct =
    Struct { name: "ScaleStatus", fields: &[always("replicas", Shape::Int32), non_empty("selector", TEXT)] };

/// `autoscaling/v1` Scale.
pub static SCALE: Struct = Struct {
    name: "Scale",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        always("metadata", Shape::Struct(&OBJECT_META)),
        always("spec", Shape::Struct(&SCALE_SPEC)),
        always("status", Shape::Struct(&SCALE_STATUS)),
    ],
};
