//! What changes or refuses a write after it is authorized (layer 5).
//!
//! Invariant: admission sees objects in the version of the request, never the store's form. So far it holds
//! NamespaceLifecycle; further steps join in upstream's order.

use machinery::status::Cause;
use machinery::{Status, Text};

use crate::objects::Objects;

/// Namespaces that can't be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The steps that are switched on.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    pub namespace_lifecycle: bool,
}

/// What admission needs to know of a request.
pub trait Subject {
    fn group(&self) -> &Text;
    fn plural(&self) -> &Text;
    fn namespace(&self) -> &Text;
    fn namespaced(&self) -> bool;
}

impl Admission {
    /// Refuses to create in a namespace that is missing or being deleted (api-machinery 24.2).
    pub fn namespace_lifecycle(&self, objects: &Objects, subject: &dyn Subject, name: &str) -> Result<(), Status> {
        if !self.namespace_lifecycle || !subject.namespaced() {
            return Ok(());
        }
        let namespace = subject.namespace();
        let found = objects.collection(&Text::new_static(""), &Text::new_static("namespaces")).get(namespace);
        let Some(found) = found else { return Err(Status::not_found("", "namespaces", namespace)) };
        if !found.meta.deleting {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut status = Status::forbidden(subject.group(), subject.plural(), name, &why);
        if let Some(details) = &mut status.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".into(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        Err(status)
    }

    /// Refuses to delete the namespaces that every server has.
    pub fn protects(&self, subject: &dyn Subject, name: &str) -> Result<(), Status> {
        let namespaces = subject.group().is_empty() && subject.plural() == "namespaces";
        if self.namespace_lifecycle && namespaces && IMMORTAL.contains(&name) {
            return Err(Status::forbidden("", "namespaces", name, "this namespace may not be deleted"));
        }
        Ok(())
    }
}
