//! Checks of ephemeral containers, which are added to running Pods for debugging.

use machinery::Value;

use crate::core::podspec::Pod;
use crate::core::podspec::containers::image;
use schema::at::At;

/// The fields that ephemeral containers may not have, in the order of the Go type.
const FORBIDDEN: [&str; 9] = [
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
];
const WHY: &str = "cannot be set for an Ephemeral Container";

impl Pod<'_, '_> {
    pub(super) fn ephemeral_container(&self, container: At) {
        image(container);
        let target = container.field("targetContainerName");
        if !target.as_text().is_empty() && !self.targets.contains(target.as_text()) {
            target.not_found();
        }
        for name in FORBIDDEN.into_iter().filter(|name| !is_zero(container, name)) {
            container.field(name).forbidden(WHY);
        }
        for mount in container.items_of("volumeMounts") {
            for name in ["subPath", "subPathExpr"].into_iter().filter(|name| !mount.text(name).is_empty()) {
                mount.field(name).forbidden(WHY);
            }
        }
    }
}

/// Whether a field has the zero value of its Go type: the resources are a struct, the others pointers and lists.
fn is_zero(container: At, name: &str) -> bool {
    match container.field(name).value {
        Value::Object(fields) if name == "resources" => fields.is_empty(),
        value => value.is_null(),
    }
}
