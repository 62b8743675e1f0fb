//! The preparation of a definition before validation: its status and generation.

use machinery::{Map, Value};

use super::body::{default_stored_versions, storage_version};

fn empty_status() -> Value {
    let names = Value::from([("kind", Value::from("")), ("plural", Value::from(""))]);
    Value::from([("acceptedNames", names), ("conditions", Value::Null), ("storedVersions", Value::Null)])
}

/// Prepares a create: resets the status except for the storage version, and sets the generation to 1.
pub fn prepare_for_create(definition: &mut Value) {
    definition.set_at(&["status"], empty_status());
    definition.set_at(&["metadata", "generation"], Value::Int(1));
    remember_storage_version(definition);
}

/// Prepares an update: keeps the status, to which a new storage version is added, and increments the generation if the
/// spec has changed.
pub fn prepare_for_update(new: &mut Value, old: &Value) {
    new.set_at(&["status"], old.get("status").cloned().unwrap_or_else(empty_status));
    keep_generation(new, old);
    if super::to_stored(new).get("spec") != super::to_stored(old).get("spec") {
        let generation = old.int_at(&["metadata", "generation"]);
        new.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
    remember_storage_version(new);
}

/// Prepares a status update: keeps the spec. As in upstream, the metadata is that of the request.
pub fn prepare_for_status_update(new: &mut Value, old: &Value) {
    let spec = old.get("spec").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    new.set_at(&["spec"], spec);
    // a request without a spec has not been defaulted; kube-apiserver defaults what it reads from the store
    default_stored_versions(new);
    keep_generation(new, old);
}

/// Requests cannot set the generation.
fn keep_generation(new: &mut Value, old: &Value) {
    new.put_at(&["metadata", "generation"], old.at(&["metadata", "generation"]).cloned());
}

fn remember_storage_version(definition: &mut Value) {
    let Some(name) = storage_version(definition).map(Value::from) else { return };
    let mut stored = definition.items_at(&["status", "storedVersions"]).to_vec();
    if !stored.contains(&name) {
        stored.push(name);
        definition.set_at(&["status", "storedVersions"], Value::Array(stored));
    }
}
