//! What ephemeral containers, which are added to running Pods for debugging, may not have.

use machinery::Value;
use machinery::field::{FieldError, FieldPath};

use super::containers::image_errors;
use super::{Errors, Pod};
use crate::builtin::checks::{is_set, items, text};

/// The fields that ephemeral containers may not have, in the order of the Go type.
const FORBIDDEN: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];
const WHY: &str = "cannot be set for an Ephemeral Container";

impl Pod<'_> {
    pub(super) fn ephemeral_container(&self, container: &Value, path: &FieldPath, errors: &mut Errors) {
        image_errors(container, path, errors);
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !self.targets.contains(target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), &Value::from(target)));
        }
        for name in FORBIDDEN.into_iter().filter(|name| !is_zero(container, name)) {
            errors.push(FieldError::forbidden(&path.child(name), WHY));
        }
        for (path, mount) in items(container, "volumeMounts", path) {
            for name in ["subPath", "subPathExpr"].into_iter().filter(|name| !text(mount, name).is_empty()) {
                errors.push(FieldError::forbidden(&path.child(name), WHY));
            }
        }
    }
}

/// Whether a field has the zero value of its Go type: the resources are a struct, the others pointers and lists.
fn is_zero(container: &Value, name: &str) -> bool {
    match container.get(name) {
        Some(Value::Object(fields)) if name == "resources" => fields.is_empty(),
        _ => !is_set(container, name),
    }
}
