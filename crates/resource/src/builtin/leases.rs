//! Lease.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};
use schema::shape::{OBJECT_META, Shape, Struct, TEXT, always, given, non_empty};

static SPEC: Struct = Struct {
    name: "LeaseSpec",
    fields: &[
        given("acquireTime", Shape::MicroTime),
        given("holderIdentity", TEXT),
        given("leaseDurationSeconds", Shape::Int32),
        given("leaseTransitions", Shape::Int32),
        given("preferredHolder", TEXT),
        given("renewTime", Shape::MicroTime),
        given("strategy", Shape::Text("v1.CoordinatedLeaseStrategy")),
    ],
};

pub static SHAPE: Struct = Struct {
    name: "Lease",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        always("spec", Shape::Struct(&SPEC)),
    ],
};

/// Coordinated leader election is disabled: its fields are dropped.
pub fn prepare(object: &mut Value, _old: Option<&Value>) {
    for field in ["strategy", "preferredHolder"] {
        object.remove_at(&["spec", field]);
    }
}

pub fn validate(new: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let minimums = [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ];
    let error = |(field, min, why): (&str, i64, &str)| {
        let value = new.at(&["spec", field]).filter(|v| v.as_int().is_some_and(|i| i < min))?;
        Some(FieldError::invalid(&FieldPath::new("spec").child(field), value, why))
    };
    minimums.into_iter().filter_map(error).collect()
}
