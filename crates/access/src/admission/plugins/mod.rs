//! kube-apiserver's admission plugins: a table with a row for each, in kube-apiserver's order, including those that have no effect
//! here and those that another module implements.
//!
//! A plugin handles writes of built-in kinds. In the first phase it may change the object (`admit`), in the second it may
//! only reject it (`validate`).

mod certificates;
pub mod classes;
mod external_ips;
mod limit_ranger;
mod nodes;
pub mod pod_resources;
mod pod_security;
mod priority;
mod protection;
mod runtime_class;
mod selection;
mod service_account;
mod tolerations;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use base::clock;
use machinery::{Release, Status, Value};
use objects::Stored;

use super::measure::Step;
use super::{Attributes, Operation};
use crate::authorization::may_use_signer;
use crate::limits;

pub use pod_security::PodSecurity;
pub use selection::{EnabledPlugins, PluginFlags};

/// The configuration of the plugins.
#[derive(Clone, Debug)]
pub struct Settings {
    pub release: Release,
    /// How long Pods tolerate a node that is not ready.
    pub not_ready_seconds: i64,
    /// How long Pods tolerate a node that is unreachable.
    pub unreachable_seconds: i64,
    pub pod_security: PodSecurity,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            release: Release::default(),
            not_ready_seconds: tolerations::DEFAULT_SECONDS,
            unreachable_seconds: tolerations::DEFAULT_SECONDS,
            pod_security: PodSecurity::default(),
        }
    }
}

/// Why a plugin rejects a write.
pub enum PluginRefusal {
    /// With 403.
    Forbidden(String),
    Status(Status),
}

impl From<String> for PluginRefusal {
    fn from(why: String) -> PluginRefusal {
        PluginRefusal::Forbidden(why)
    }
}

impl From<Status> for PluginRefusal {
    fn from(status: Status) -> PluginRefusal {
        PluginRefusal::Status(status)
    }
}

pub type Decision = Result<(), PluginRefusal>;

/// A write, as it is passed to plugins.
#[derive(Clone, Copy)]
pub struct PluginRequest<'a> {
    pub attributes: &'a Attributes<'a>,
    pub settings: &'a Settings,
}

impl PluginRequest<'_> {
    /// The objects of a built-in kind, in order of their keys.
    fn all(&self, group: &'static str, plural: &'static str) -> Vec<Arc<Stored>> {
        let (root, _) = self.attributes.cluster.objects.collection(&group.into(), &plural.into()).latest();
        root.values().cloned().collect()
    }

    /// The objects of a built-in kind in the namespace of the write.
    fn all_here(&self, group: &'static str, plural: &'static str) -> Vec<Value> {
        let collection = self.attributes.cluster.objects.collection(&group.into(), &plural.into());
        let objects = collection.in_namespace(self.attributes.namespace);
        objects.iter().map(|stored| stored.body.to_value(stored.revision)).collect()
    }

    fn get(&self, group: &'static str, plural: &'static str, path: &str) -> Option<Value> {
        let stored = self.attributes.cluster.objects.collection(&group.into(), &plural.into()).get(path)?;
        Some(stored.body.to_value(stored.revision))
    }

    fn is_create(&self) -> bool {
        self.attributes.operation == Operation::Create
    }

    /// The new object; null in a deletion. `admit` has it as an argument, with what other plugins have changed.
    fn object(&self) -> &Value {
        self.attributes.object.unwrap_or(&Value::Null)
    }

    /// The object that is replaced.
    fn old(&self) -> &Value {
        self.attributes.old.unwrap_or(&Value::Null)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Implementation {
    /// By the functions in its row of [`PLUGINS`].
    Row,
    /// In another part of admission.
    Elsewhere,
    /// It has no effect.
    None,
}

/// A resource whose writes a plugin handles: group, plural, subresource.
type Handled = (&'static str, &'static str, &'static str);

/// A permission that a write requires: `verb` on `signer`. `refusal` is the error message for a user who lacks it.
pub struct Needed {
    pub verb: &'static str,
    pub signer: String,
    pub refusal: String,
}

/// An object for which a write waits, since a controller may be about to create it.
pub struct Awaited {
    group: &'static str,
    plural: &'static str,
    path: String,
}

impl Awaited {
    /// Returns when the object exists, or after [`limits::AWAITED_CHECKS`] checks with 100 to 200 ms after each.
    async fn wait(&self, call: &PluginRequest<'_>) {
        let objects = call.attributes.cluster.objects.collection(&self.group.into(), &self.plural.into());
        for _ in 0..limits::AWAITED_CHECKS {
            if objects.get(&self.path).is_some() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100 + clock::random_below(100))).await;
        }
    }
}

struct Plugin {
    name: &'static str,
    /// Whether kube-apiserver enables it by default.
    by_default: bool,
    implementation: Implementation,
    resources: &'static [Handled],
    operations: &'static [Operation],
    /// The object for which a write waits before `admit`, if it waits for one.
    awaits: Option<fn(&PluginRequest<'_>, &Value) -> Option<Awaited>>,
    /// Changes the object of a write, or rejects the write.
    admit: Option<fn(&PluginRequest<'_>, &mut Value) -> Decision>,
    /// May reject the object, which has passed validation.
    validate: Option<fn(&PluginRequest<'_>) -> Decision>,
    /// The permission that the write requires. Ignored if the row has `validate`.
    needs: Option<fn(&PluginRequest<'_>) -> Option<Needed>>,
}

/// The defaults of a row; without functions, it does nothing.
const ROW: Plugin = Plugin {
    name: "",
    by_default: true,
    implementation: Implementation::Row,
    resources: &[],
    operations: CREATES,
    awaits: None,
    admit: None,
    validate: None,
    needs: None,
};

/// A plugin that is off by default and not implemented: enabling it changes nothing.
const fn without_effect(name: &'static str) -> Plugin {
    Plugin { name, by_default: false, implementation: Implementation::None, ..ROW }
}

/// A plugin that another part of admission implements.
const fn elsewhere(name: &'static str) -> Plugin {
    Plugin { name, implementation: Implementation::Elsewhere, ..ROW }
}

/// A plugin for these resources that is on by default.
const fn on(name: &'static str, operations: &'static [Operation], resources: &'static [Handled]) -> Plugin {
    Plugin { name, operations, resources, ..ROW }
}

/// A plugin for these resources that is off by default.
const fn off(name: &'static str, operations: &'static [Operation], resources: &'static [Handled]) -> Plugin {
    Plugin { by_default: false, ..on(name, operations, resources) }
}

const CREATES: &[Operation] = &[Operation::Create];
const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const UPDATES: &[Operation] = &[Operation::Update];
const PODS: Handled = ("", "pods", "");
const CLAIMS: Handled = ("", "persistentvolumeclaims", "");

static PLUGINS: [Plugin; 39] = [
    without_effect("AlwaysAdmit"),
    without_effect("NamespaceAutoProvision"),
    elsewhere("NamespaceLifecycle"),
    without_effect("NamespaceExists"),
    without_effect("LimitPodHardAntiAffinityTopology"),
    on("LimitRanger", WRITES, &[PODS, CLAIMS, ("", "pods", "resize")])
        .admits(limit_ranger::admit)
        .validates(limit_ranger::validate),
    on("ServiceAccount", WRITES, &[PODS, ("", "pods", "ephemeralcontainers")])
        .after(service_account::awaited)
        .admits(service_account::admit)
        .validates(service_account::validate),
    without_effect("NodeRestriction"),
    on("TaintNodesByCondition", CREATES, &[("", "nodes", "")]).admits(nodes::taint),
    off("AlwaysPullImages", WRITES, &[PODS, ("", "pods", "ephemeralcontainers")]).admits(pod_resources::always_pull),
    without_effect("ImagePolicyWebhook"),
    on("PodSecurity", WRITES, pod_security::RESOURCES).validates(pod_security::validate),
    without_effect("PodNodeSelector"),
    on(
        "Priority",
        WRITES,
        &[
            PODS,
            ("scheduling.k8s.io", "priorityclasses", ""),
            ("scheduling.k8s.io", "podgroups", ""),
            ("scheduling.k8s.io", "compositepodgroups", ""),
        ],
    )
    .admits(priority::admit)
    .validates(priority::validate),
    on("DefaultTolerationSeconds", WRITES, &[PODS]).admits(tolerations::admit),
    without_effect("PodTolerationRestriction"),
    without_effect("EventRateLimit"),
    without_effect("ExtendedResourceToleration"),
    on("DefaultStorageClass", CREATES, &[CLAIMS]).admits(classes::default_storage_class),
    on(
        "StorageObjectInUseProtection",
        CREATES,
        &[CLAIMS, ("", "persistentvolumes", ""), ("storage.k8s.io", "volumeattributesclasses", "")],
    )
    .admits(protection::protect),
    on("PodGroupProtection", CREATES, &[("scheduling.k8s.io", "podgroups", "")]).admits(protection::protect),
    without_effect("OwnerReferencesPermissionEnforcement"),
    on("PersistentVolumeClaimResize", UPDATES, &[CLAIMS]).validates(volumes::resize),
    on("RuntimeClass", CREATES, &[PODS]).admits(runtime_class::admit).validates(runtime_class::validate),
    on("CertificateApproval", UPDATES, &[("certificates.k8s.io", "certificatesigningrequests", "approval")])
        .requires(certificates::approval),
    on("CertificateSigning", UPDATES, &[("certificates.k8s.io", "certificatesigningrequests", "status")])
        .requires(certificates::signing),
    on("ClusterTrustBundleAttest", WRITES, &[("certificates.k8s.io", "clustertrustbundles", "")])
        .requires(certificates::attesting),
    on("CertificateSubjectRestriction", CREATES, &[("certificates.k8s.io", "certificatesigningrequests", "")])
        .validates(certificates::subject),
    on("DefaultIngressClass", CREATES, &[("networking.k8s.io", "ingresses", "")])
        .admits(classes::default_ingress_class),
    off("DenyServiceExternalIPs", WRITES, &[("", "services", "")]).validates(external_ips::validate),
    on("PodTopologyLabels", CREATES, &[PODS, ("", "pods", "binding")]).admits(nodes::copy_topology),
    // on by default in kube-apiserver; it compares Pods with features that kubelets declare
    Plugin { by_default: true, ..without_effect("NodeDeclaredFeatureValidator") },
    on("PodResizeValidator", UPDATES, &[("", "pods", "resize")]).validates(nodes::resize),
    elsewhere("MutatingAdmissionPolicy"),
    elsewhere("MutatingAdmissionWebhook"),
    elsewhere("ValidatingAdmissionPolicy"),
    elsewhere("ValidatingAdmissionWebhook"),
    elsewhere("ResourceQuota"),
    without_effect("AlwaysDeny"),
];

impl Plugin {
    const fn after(self, awaits: fn(&PluginRequest<'_>, &Value) -> Option<Awaited>) -> Plugin {
        Plugin { awaits: Some(awaits), ..self }
    }

    const fn admits(self, admit: fn(&PluginRequest<'_>, &mut Value) -> Decision) -> Plugin {
        Plugin { admit: Some(admit), ..self }
    }

    const fn validates(self, validate: fn(&PluginRequest<'_>) -> Decision) -> Plugin {
        Plugin { validate: Some(validate), ..self }
    }

    const fn requires(self, needs: fn(&PluginRequest<'_>) -> Option<Needed>) -> Plugin {
        Plugin { needs: Some(needs), ..self }
    }

    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let resource = (attributes.group().as_str(), attributes.plural().as_str(), attributes.subresource);
        self.operations.contains(&attributes.operation) && self.resources.contains(&resource)
    }
}

/// The enabled plugins and their settings.
#[derive(Default)]
pub struct Plugins {
    pub selection: EnabledPlugins,
    pub settings: Settings,
}

impl Plugins {
    /// The enabled plugins that handle a write. Rows name only built-in resources.
    fn of<'a>(&'a self, attributes: &'a Attributes<'_>) -> impl Iterator<Item = &'static Plugin> + 'a {
        let all: &'static [Plugin] = if attributes.resource.is_custom() { &[] } else { &PLUGINS };
        all.iter().filter(|plugin| plugin.handles(attributes) && self.selection.runs(plugin.name))
    }

    /// The first phase: changes the object, or rejects the write.
    pub async fn admit(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        for plugin in self.of(attributes) {
            let Some(admit) = plugin.admit else { continue };
            let step = Step::begin(plugin.name, "admit", attributes.operation);
            let call = PluginRequest { attributes, settings: &self.settings };
            if let Some(awaited) = plugin.awaits.and_then(|awaits| awaits(&call, object)) {
                awaited.wait(&call).await;
            }
            let decision = admit(&call, object);
            let changed = Attributes { object: Some(&*object), ..*attributes };
            step.end(decision.map_err(|refusal| refusal.into_status(&changed)))?;
        }
        Ok(())
    }

    /// The second phase: may reject the object, which has passed validation.
    pub async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        for plugin in self.of(attributes) {
            let step = Step::begin(plugin.name, "validate", attributes.operation);
            let call = PluginRequest { attributes, settings: &self.settings };
            if let Some(validate) = plugin.validate {
                step.end(validate(&call).map_err(|refusal| refusal.into_status(attributes)))?;
            } else if let Some(needed) = plugin.needs.and_then(|needs| needs(&call)) {
                let allowed = may_use_signer(
                    call.attributes.cluster.authorizer,
                    call.attributes.user,
                    needed.verb,
                    &needed.signer,
                )
                .await;
                step.end(if allowed { Ok(()) } else { Err(attributes.forbidden(&needed.refusal)) })?;
            }
        }
        Ok(())
    }
}

impl PluginRefusal {
    fn into_status(self, attributes: &Attributes<'_>) -> Status {
        match self {
            PluginRefusal::Forbidden(why) => attributes.forbidden(&why),
            PluginRefusal::Status(status) => status,
        }
    }
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.at(&["metadata", "annotations", key]).and_then(Value::as_str)
}

/// Adds an item to a list in an object.
fn push(object: &mut Value, path: &[&str], item: Value) {
    let mut list = object.items_at(path).to_vec();
    list.push(item);
    object.set_at(path, Value::Array(list));
}
