//! The parts of the server that every verb uses.

use std::sync::{Arc, OnceLock};

use access::admission::{Admission, ClusterState};
use access::authentication::Authentication;
use access::authorization::{Authorizer, Loopback};
use access::flow::Flow;
use machinery::Value;
use objects::Objects;
use resource::{Registry, Resource, builtin};

use super::inflight::WritesInFlight;
use crate::aggregation::Aggregation;
use crate::allocation::Allocation;

/// The parts of the server that every verb uses.
pub struct Context {
    pub objects: Arc<Objects>,
    pub registry: Arc<Registry>,
    pub admission: Arc<Admission>,
    pub authentication: Authentication,
    pub authorizer: Authorizer,
    pub(super) loopback: Loopback,
    /// API priority and fairness, if it is enabled.
    pub flow: Option<Arc<Flow>>,
    /// The aggregated API servers.
    pub aggregation: Arc<Aggregation>,
    /// The addresses and node ports of Services.
    pub allocation: Allocation,
    pub writes: WritesInFlight,
    /// Rules that a higher layer, such as workspaces, adds to writes.
    pub write_rules: OnceLock<WriteRules>,
    /// Held while quotas are charged, so that concurrent charges do not conflict.
    pub(super) quota_turn: tokio::sync::Mutex<()>,
    /// Held while the names of a CRD are accepted, so that no other CRD accepts the same names.
    pub(super) naming_turn: tokio::sync::Mutex<()>,
}

impl Context {
    pub fn new(
        objects: Arc<Objects>,
        registry: Arc<Registry>,
        admission: Arc<Admission>,
        authentication: Authentication,
        (authorizer, loopback): (Authorizer, Loopback),
        flow: Option<Arc<Flow>>,
        aggregation: Arc<Aggregation>,
        allocation: Allocation,
    ) -> Context {
        Context {
            objects,
            registry,
            admission,
            authentication,
            authorizer,
            loopback,
            flow,
            aggregation,
            allocation,
            writes: WritesInFlight::new(),
            write_rules: OnceLock::new(),
            quota_turn: Default::default(),
            naming_turn: Default::default(),
        }
    }

    /// A resource of a built-in kind that is not registered, such as one whose objects are posted to a subresource.
    pub fn unregistered(&self, row: &'static builtin::BuiltIn) -> Arc<Resource> {
        Arc::new(resource::from_row(row, &[], &self.objects, self.registry.gates()))
    }

    /// The state of the cluster that admission reads.
    pub(super) fn cluster(&self) -> ClusterState<'_> {
        ClusterState { objects: &self.objects, registry: &self.registry, authorizer: &self.authorizer }
    }
}

/// A right that a write needs besides the right to make it: `verb` on the object `name` of a resource.
pub struct NeededRight {
    pub verb: &'static str,
    pub resource: &'static str,
    pub name: String,
}

/// Rules that a higher layer adds to writes of objects.
pub struct WriteRules {
    /// The additional right that a write needs, given the new object and the old one that it replaces, if any.
    pub needed_right: fn(&Resource, &Value, Option<&Value>) -> Option<NeededRight>,
    /// Changes an object that is to be created.
    pub prepare: fn(&Resource, &mut Value),
    /// Why the object with this name cannot be deleted, if it cannot.
    pub protection: fn(&Resource, &str) -> Option<&'static str>,
}
