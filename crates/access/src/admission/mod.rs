//! Admission: plugins, policies and webhooks that change or reject an authorized write.
//!
//! Invariant: admission sees objects in a version of the resource, never in the stored form, and does not depend on the
//! verbs: a write is its [`Attributes`].

mod attributes;
mod authorizer;
mod expressions;
mod lifecycle;
mod manifests;
mod matching;
mod measure;
mod mutation;
mod patched;
pub mod plugins;
mod policies;
mod quota;
mod reinvocation;
mod sources;
mod webhooks;

use std::sync::Arc;

use base::webhook::Client;
use machinery::{Status, Text, Value};
use objects::{Event, Key, Objects, Stored};
use resource::Registry;

pub use attributes::{Attributes, Operation};
pub use manifests::{ManifestDirectory, ManifestFile, ManifestPlugin, Manifests};
pub use policies::PolicyExpression;
pub use quota::{Charge, Counting, Devices, counted_kinds, counting, in_scopes, scopes};

use crate::authorization::Authorizer;
use measure::Step;
use plugins::Plugins;
use policies::Policies;
use webhooks::Webhooks;

/// The group of webhook configurations and policies.
const GROUP: &str = "admissionregistration.k8s.io";

/// The context that admission reads besides the write.
#[derive(Clone, Copy)]
pub struct ClusterState<'a> {
    pub objects: &'a Objects,
    pub registry: &'a Registry,
    pub authorizer: &'a Authorizer,
}

impl ClusterState<'_> {
    fn namespace(&self, name: &Text) -> Option<Arc<Stored>> {
        self.objects.namespaces().get(name)
    }
}

/// The plugins, policies and webhooks of a server.
#[derive(Default)]
pub struct Admission {
    plugins: Arc<Plugins>,
    policies: Policies,
    webhooks: Webhooks,
}

impl Admission {
    pub fn new(plugins: Arc<Plugins>, client: Arc<Client>) -> Admission {
        Admission { plugins, policies: Policies::default(), webhooks: Webhooks::new(client) }
    }

    /// The client of webhooks.
    pub fn client(&self) -> &Arc<Client> {
        self.webhooks.client()
    }

    fn runs(&self, plugin: &str) -> bool {
        self.plugins.selection.runs(plugin)
    }

    /// Replaces the policies or webhooks of a plugin that come from manifests.
    pub fn apply(&self, manifests: &Manifests) {
        if manifests.plugin.has_policies() { self.policies.apply(manifests) } else { self.webhooks.apply(manifests) }
    }

    /// Observes events, which are passed in order.
    pub fn observe(&self, key: &Key, event: &Event) {
        if key.group == GROUP {
            self.policies.observe(key, event);
            self.webhooks.observe(key, event);
        }
    }

    /// The expressions of all policies that are objects.
    pub fn policy_expressions(&self) -> Vec<PolicyExpression> {
        self.policies.expressions()
    }

    /// Whether no policy or webhook can change writes.
    pub fn none_mutate(&self) -> bool {
        self.webhooks.none_mutate() && self.policies.none_mutate()
    }

    /// Whether no policy or webhook reads the content of writes.
    pub fn none_validate(&self) -> bool {
        self.policies.none_validate() && self.webhooks.none_validate()
    }

    /// Runs the mutating built-in plugins on a new object, before policies and webhooks.
    pub async fn admit(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        self.plugins.admit(attributes, object).await
    }

    /// Runs the validating built-in plugins, before policies and webhooks.
    pub async fn check(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        self.plugins.validate(attributes).await
    }

    /// Mutating admission: returns the object, `None` for a deletion. Runs before validation.
    pub async fn mutate(&self, attributes: &Attributes<'_>, object: Option<Value>) -> Result<Option<Value>, Status> {
        let scope = matching::scope_of_policies(attributes).filter(|_| self.runs("MutatingAdmissionPolicy"));
        let policies = scope.map(|scope| self.policies.mutating(scope));
        let scope = matching::scope_of_webhooks(attributes).filter(|_| self.runs("MutatingAdmissionWebhook"));
        let webhooks = scope.map(|scope| self.webhooks.mutating(scope));
        if policies.is_none() && webhooks.is_none() {
            return Ok(object);
        }
        let all = Step::begin(None, "admit", attributes.operation);
        all.end(mutation::mutate(&self.plugins, policies, webhooks, attributes, object).await)
    }

    /// Validating admission. Runs after validation.
    pub async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        Step::begin(None, "validate", attributes.operation).end(self.validate_all(attributes).await)
    }

    async fn validate_all(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        if let Some(scope) = matching::scope_of_policies(attributes)
            && self.runs("ValidatingAdmissionPolicy")
        {
            let step = Step::begin("ValidatingAdmissionPolicy", "validate", attributes.operation);
            step.end(self.policies.validate(attributes, scope).await)?;
        }
        if let Some(scope) = matching::scope_of_webhooks(attributes)
            && self.runs("ValidatingAdmissionWebhook")
        {
            let step = Step::begin("ValidatingAdmissionWebhook", "validate", attributes.operation);
            step.end(self.webhooks.validate(attributes, scope).await)?;
        }
        Ok(())
    }
}
