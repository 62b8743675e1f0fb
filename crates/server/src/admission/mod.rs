//! What changes or refuses a write after it is authorized (layer 5; api-machinery 24).
//!
//! Invariant: admission sees objects in a version of the resource, never the store's form, and knows nothing of verbs:
//! a write is its [`Attributes`].

mod attributes;
mod authorizer;
mod lifecycle;
mod matching;
mod policies;
mod quota;

use std::sync::Arc;

use machinery::{Status, Text};

pub use attributes::{Attributes, Operation};
pub use quota::{Charge, counted_as, is_scoped};

use crate::authorization::Rbac;
use crate::objects::{Event, Key, Objects, Stored};
use crate::resource::Registry;
use policies::Policies;

/// The group of webhook configurations and policies.
const GROUP: &str = "admissionregistration.k8s.io";

/// The steps that can be switched off, in the order in which they run.
pub const PLUGINS: [&str; 3] = ["NamespaceLifecycle", "ValidatingAdmissionPolicy", "ResourceQuota"];

/// What admission may look at besides a write.
#[derive(Clone, Copy)]
pub struct World<'a> {
    pub objects: &'a Objects,
    pub registry: &'a Registry,
    pub rbac: &'a Rbac,
}

impl World<'_> {
    fn namespace(&self, name: &Text) -> Option<Arc<Stored>> {
        self.objects.collection(&Text::new_static(""), &Text::new_static("namespaces")).get(name)
    }
}

/// The steps that are switched on, and what they have compiled.
#[derive(Default)]
pub struct Admission {
    disabled: Vec<String>,
    policies: Policies,
}

impl Admission {
    /// All steps but some. The error is one line.
    pub fn without(disabled: &[String]) -> Result<Admission, String> {
        if let Some(unknown) = disabled.iter().find(|name| !PLUGINS.contains(&name.as_str())) {
            return Err(format!("{unknown} is not known; there is: {}", PLUGINS.join(", ")));
        }
        Ok(Admission { disabled: disabled.to_vec(), policies: Policies::default() })
    }

    fn runs(&self, plugin: &str) -> bool {
        !self.disabled.iter().any(|name| name == plugin)
    }

    /// Hears of every event, one after the other.
    pub fn observe(&self, key: &Key, event: &Event) {
        if key.group == GROUP {
            self.policies.observe(key, event);
        }
    }

    /// Whether nothing looks at the contents of writes.
    pub fn is_idle(&self) -> bool {
        self.policies.is_empty()
    }

    /// Refuses what may not be written. Runs after an object is known to be valid.
    pub fn validate(&self, world: &World<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        if matching::is_exempt(attributes) || !self.runs("ValidatingAdmissionPolicy") {
            return Ok(());
        }
        self.policies.validate(world, attributes)
    }
}
