//! CustomResourceDefinition.

use machinery::Value;
use schema::definition::{self, CLEANUP_FINALIZER, Condition};

use resource::rules::is_deleting;
use schema::at::{At, warnings_of};

/// The first DELETE adds the finalizer that keeps a CRD until its instances are deleted.
pub fn begin_deletion(definition: &mut Value, now: &str) {
    if is_deleting(definition) {
        if definition.at(&["metadata", "deletionGracePeriodSeconds"]).is_none() {
            definition.set_at(&["metadata", "deletionGracePeriodSeconds"], Value::Int(0));
        }
        return;
    }
    definition.set_at(&["metadata", "deletionTimestamp"], Value::from(now));
    add_cleanup_finalizer(definition);
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_terminating(definition, "True", "InstanceDeletionPending", message, now);
}

/// Adds the finalizer that keeps a CRD until its instances are deleted.
pub fn add_cleanup_finalizer(object: &mut Value) {
    let list = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    let mut finalizers = list.unwrap_or_default().to_vec();
    if !finalizers.iter().any(|finalizer| finalizer.as_str() == Some(CLEANUP_FINALIZER)) {
        finalizers.push(Value::from(CLEANUP_FINALIZER));
        object.set_at(&["metadata", "finalizers"], Value::Array(finalizers));
    }
}

/// Sets the condition `Terminating`, which reports the progress of the deletion of a CRD.
pub fn set_terminating(definition: &mut Value, status: &'static str, reason: &str, message: &str, now: &str) {
    let condition = Condition { kind: "Terminating", status, reason: reason.to_owned(), message: message.to_owned() };
    definition::set_condition(definition, &condition, now);
}

/// Prepares a CRD: keeps the status from the server, and tracks the generation of the spec.
pub fn prepare(object: &mut Value, old: Option<&Value>) {
    match old {
        None => definition::prepare_for_create(object),
        Some(old) => definition::prepare_for_update(object, old),
    }
}

/// As [`prepare`], for `v1beta1`, which Kubernetes 1.7 to 1.21 served.
pub fn prepare_beta(beta: &mut Value, old: Option<&Value>) {
    match old {
        None => definition::prepare_beta_for_create(beta),
        Some(old) => definition::prepare_beta_for_update(beta, old),
    }
}

pub fn validate_beta(at: At) {
    at.extend(match at.old {
        None => definition::validate_beta_create(at.value, at.release()),
        Some(old) => definition::validate_beta_update(at.value, old, at.release()),
    });
}

pub fn beta_warnings(at: At) {
    let (new, old) = (definition::from_beta(at.value), at.old.map(definition::from_beta));
    warnings_of(&new, old.as_ref(), at.release(), warnings).into_iter().for_each(|warning| at.warn_text(warning));
}

pub fn beta_to_stored(beta: Value) -> Value {
    definition::beta_to_stored(&beta)
}

pub fn to_beta(stored: Value) -> Value {
    definition::to_beta(&stored)
}

pub fn validate(at: At) {
    at.extend(match at.old {
        None => definition::validate_create(at.value, at.release()),
        Some(old) => definition::validate_update(at.value, old, at.release()),
    });
}

pub fn validate_status(at: At) {
    let old = at.old.unwrap_or(&Value::Null);
    at.extend(definition::validate_status_update(at.value, old, at.release()));
}

/// Warns of formats that are not enforced, in the write that introduces them.
pub fn warnings(at: At) {
    let warnings = match at.old {
        None => definition::warnings_on_create(at.value, at.release()),
        Some(old) => definition::warnings_on_update(at.value, old, at.release()),
    };
    warnings.into_iter().for_each(|warning| at.warn_text(warning));
}
