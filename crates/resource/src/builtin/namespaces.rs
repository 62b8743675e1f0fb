//! Namespace.

use std::sync::LazyLock;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};
use schema::apply::FieldSet;

use super::Part;
use super::defaults::restore;
use crate::rules::metadata;
use crate::rules::set_deletion_time;

/// The finalizer that keeps a namespace until it is empty.
pub const NAMESPACE_FINALIZER: &str = "kubernetes";

pub const FINALIZE: Part =
    Part { prepare: finalize, validate: |at| at.run(validate), reset: Some(|| &FINALIZE_RESETS), ..Part::PLAIN };

static FINALIZE_RESETS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["status"]]));

/// `namespaces/finalize` writes `spec.finalizers`.
fn finalize(namespace: &mut Value, old: &Value) {
    restore(namespace, old, &["status"]);
    metadata::restore_system_fields(namespace, old);
}

/// A Namespace that is being deleted is Terminating, without a grace period.
pub fn begin_deletion(namespace: &mut Value, now: &str) {
    if set_deletion_time(namespace, now) {
        namespace.set_at(&["status", "phase"], Value::from("Terminating"));
    }
}

/// Defaults: the label with the name, and the phase Active.
pub fn default(object: &mut Value) {
    if object.str_at(&["status", "phase"]).is_empty() {
        object.set_at(&["status", "phase"], Value::from("Active"));
    }
    let name = object.str_at(&["metadata", "name"]).to_owned();
    if !name.is_empty() {
        object.set_at(&["metadata", "labels", "kubernetes.io/metadata.name"], Value::from(name));
    }
}

/// The finalizers of a namespace's spec.
pub fn validate(new: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let path = FieldPath::new("spec.finalizers");
    let list = new.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    let mut errors = vec![];
    for (i, finalizer) in list.iter().enumerate() {
        let path = if old.is_some() { path.index(i) } else { path.clone() };
        let name = finalizer.as_str().unwrap_or_default();
        let messages = machinery::names::qualified_name(name);
        errors.extend(messages.into_iter().map(|m| FieldError::invalid(&path, finalizer, m)));
        if !name.contains('/') && name != NAMESPACE_FINALIZER {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path, finalizer, why));
        }
    }
    errors
}

/// A namespace is Active and has its finalizer from the start; updates leave spec and status alone.
pub fn prepare(object: &mut Value, old: Option<&Value>) {
    match old {
        None => {
            object.set_at(&["status"], [("phase", Value::from("Active"))].into());
            let mut finalizers: Vec<Value> =
                object.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default().to_vec();
            if !finalizers.iter().any(|f| f.as_str() == Some(NAMESPACE_FINALIZER)) {
                finalizers.push(Value::from(NAMESPACE_FINALIZER));
            }
            object.set_at(&["spec", "finalizers"], Value::Array(finalizers));
        }
        Some(old) => {
            if let Some(spec) = old.get("spec") {
                object.set_at(&["spec"], spec.clone());
            }
        }
    }
}

/// The phase is `Terminating` exactly if the namespace is being deleted.
pub fn validate_status(new: &Value, _old: &Value, _release: Release) -> Vec<FieldError> {
    let path = FieldPath::new("status.Phase");
    let phase = Value::from(new.str_at(&["status", "phase"]));
    let deleting = new.at(&["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null());
    let why = match (deleting, phase.as_str()) {
        (false, Some(other)) if other != "Active" => "may only be 'Active' if `deletionTimestamp` is empty",
        (true, Some(other)) if other != "Terminating" => {
            "may only be 'Terminating' if `deletionTimestamp` is not empty"
        }
        _ => return vec![],
    };
    vec![FieldError::invalid(&path, &phase, why)]
}
