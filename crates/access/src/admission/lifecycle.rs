//! NamespaceLifecycle: rejects creations in missing or terminating namespaces, and the deletion of some namespaces.

use machinery::status::Cause;
use machinery::{Status, names};

use super::measure::Step;
use super::{Admission, Attributes};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Admission {
    /// Rejects a creation in a namespace that is missing or being deleted. `name` is the object's, for the message.
    pub fn namespace_lifecycle(&self, attributes: &Attributes<'_>, name: &str) -> Result<(), Status> {
        // a missing namespace of the request is reported by validation
        if !self.runs("NamespaceLifecycle") || !attributes.resource.namespaced || attributes.namespace.is_empty() {
            return Ok(());
        }
        let step = Step::begin("NamespaceLifecycle", "admit", attributes.operation);
        step.end(check_lifecycle(attributes, name))
    }

    /// Rejects the deletion of the namespaces that every server has.
    pub fn check_deletion(&self, attributes: &Attributes<'_>, name: &str) -> Result<(), Status> {
        if self.runs("NamespaceLifecycle") && attributes.is_namespace() && IMMORTAL.contains(&name) {
            return Err(Status::forbidden("", "namespaces", name, "this namespace may not be deleted"));
        }
        Ok(())
    }
}

fn check_lifecycle(attributes: &Attributes<'_>, name: &str) -> Result<(), Status> {
    let namespace = attributes.namespace;
    let Some(found) = attributes.cluster.namespace(namespace) else {
        if let Some(why) = names::path_segment(namespace).first() {
            // the error of the client with which kube-apiserver looks for the namespace
            let quoted = machinery::value::quote(namespace);
            return Err(Status::internal(format!("invalid resource name {quoted}: [{why}]")));
        }
        return Err(Status::not_found("", "namespaces", namespace));
    };
    if !found.meta.deleting {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = Status::forbidden(attributes.group(), attributes.plural(), name, &why);
    if let Some(details) = &mut status.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
    }
    Err(status)
}
