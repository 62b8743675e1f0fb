//! Namespace.

use std::sync::LazyLock;

use machinery::Value;
use schema::apply::FieldSet;

use resource::Resource;
use resource::builtin::Part;
use resource::builtin::defaults::restore;
use resource::rules::{metadata, set_deletion_time};
use schema::at::At;

/// The finalizer that keeps a namespace until it is empty.
pub const NAMESPACE_FINALIZER: &str = "kubernetes";

pub const FINALIZE: Part = Part::PLAIN.prepare(finalize).validate(validate).reset(|| &FINALIZE_RESETS);

static FINALIZE_RESETS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["status"]]));

pub fn is_namespaces(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

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
    object.put_text(&["metadata", "labels", "kubernetes.io/metadata.name"], &name);
}

/// Validates the finalizers of a namespace's spec. Errors of a new namespace leave out the index.
pub fn validate(at: At) {
    let all = at.field("spec.finalizers");
    for finalizer in all.items().map(|item| if at.is_update() { item } else { all.with_value(item.value) }) {
        finalizer.check_text(machinery::names::qualified_name);
        if !finalizer.as_text().contains('/') && finalizer.as_text() != NAMESPACE_FINALIZER {
            finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified");
        }
    }
}

/// A namespace is Active and has its finalizer from the start; updates leave spec and status alone.
pub fn prepare(object: &mut Value, old: Option<&Value>) {
    match old {
        None => {
            object.set_at(&["status"], [("phase", Value::from("Active"))].into());
            let mut finalizers: Vec<Value> = object.items_at(&["spec", "finalizers"]).to_vec();
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
pub fn validate_status(at: At) {
    let status = at.field("status");
    let phase = status.field_or_empty("phase").with_name("Phase");
    match at.has("metadata.deletionTimestamp") {
        false if phase.as_text() != "Active" => {
            phase.invalid("may only be 'Active' if `deletionTimestamp` is empty");
        }
        true if phase.as_text() != "Terminating" => {
            phase.invalid("may only be 'Terminating' if `deletionTimestamp` is not empty");
        }
        _ => {}
    }
}
