//! The comparison of objects with what is expected of them.

use machinery::difflines::unified;
use machinery::{Value, yaml};

/// The metadata that the server makes, which no suite expects.
const GENERATED: [&str; 9] = [
    "uid", "generation", "creationTimestamp", "resourceVersion", "managedFields", "deletionGracePeriodSeconds",
    "deletionTimestamp", "selfLink", "generateName",
];

/// The differences of a stored object from the expected one, as a unified diff. The name and the namespace of the expected
/// object do not matter.
pub fn differences(expected: &Value, stored: &Value) -> Option<String> {
    let mut expected = bare(expected);
    for field in ["name", "namespace"] {
        expected.put_at(&["metadata", field], stored.at(&["metadata", field]).cloned());
    }
    let stored = bare(stored);
    if expected == stored { None } else { Some(unified(&yaml::encode(&expected), &yaml::encode(&stored))) }
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    for field in GENERATED {
        object.remove_at(&["metadata", field]);
    }
    object
}

/// What a suite would expect of a stored object: without what the server makes, and without names.
pub fn expectation(stored: &Value) -> Value {
    let mut object = bare(stored);
    for field in ["name", "namespace"] {
        object.remove_at(&["metadata", field]);
    }
    if object.at(&["metadata"]).and_then(Value::as_object).is_some_and(machinery::Map::is_empty) {
        object.remove_at(&["metadata"]);
    }
    object
}
