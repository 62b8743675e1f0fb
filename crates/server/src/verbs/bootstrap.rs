//! The objects that a server creates and repairs when it starts.

use std::sync::{Arc, LazyLock};

use access::authorization::{GROUP, defaults};
use access::flow;
use base::clock;
use kinds::{API_SERVICES, CATALOGUE, FLOW_GROUP, MANAGED, MANAGED_ALWAYS, MANAGED_AT_START, REGISTRATION_GROUP};
use machinery::status::Reason;
use machinery::{Result, Value};
use resource::Resource;

use super::context::Context;
use super::control_plane::{self, ControlPlane};
use super::delete;
use super::image::Image;
use super::own::tolerating;
use super::patch::PatchKind;
use super::upkeep::{FLOW, PLAIN, ROLES, Upkeep, create_missing, create_of, in_turn};

/// The namespace and the name of the ConfigMap for token tracking.
pub const TOKEN_TRACKING: (&str, &str) = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking");
/// The namespaces that always exist.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates missing default objects, and adds missing rules and subjects to default roles and bindings. The writes are
/// concurrent, so that commits can batch them. `identity` identifies the server in the objects that it publishes, if
/// it does. `image` has the recorded default objects of the server's configuration: a store without objects begins
/// with them, and kinds whose objects are stored as recorded are skipped.
pub async fn bootstrap(context: &Arc<Context>, identity: Option<&ControlPlane>, image: Option<&Image>) -> Result<()> {
    // not if policies or webhooks may change or refuse an object
    let is_as_recorded = context.admission.none_mutate() && context.admission.none_validate();
    if let Some(image) = image.filter(|_| is_as_recorded && context.objects.count() == 0) {
        image.create(context).await?;
    }
    let defaults = Defaults { context, image };
    let gates = context.registry.gates();
    let inside_namespaces = async {
        if !defaults.is_recorded("", "namespaces") {
            create_namespaces(context).await?;
        }
        let control_plane = async {
            match identity {
                Some(identity) => control_plane::create(context, identity).await,
                None => Ok(()),
            }
        };
        tokio::try_join!(
            control_plane,
            defaults.keep(ROLES, GROUP, "roles", || defaults::roles(gates)),
            defaults.keep(ROLES, GROUP, "rolebindings", || defaults::role_bindings(gates)),
            create_of(context, PLAIN, "", "configmaps", [token_tracking()]),
        )
    };
    let of_flow = |objects: fn() -> Vec<Value>| if context.flow.is_some() { objects() } else { vec![] };
    tokio::try_join!(
        defaults.keep(FLOW, FLOW_GROUP, "prioritylevelconfigurations", || of_flow(flow::defaults::levels)),
        defaults.keep(FLOW, FLOW_GROUP, "flowschemas", || of_flow(flow::defaults::schemas)),
        register(&defaults),
        defaults.keep(PLAIN, "scheduling.k8s.io", "priorityclasses", control_plane::classes),
        defaults.keep(ROLES, GROUP, "clusterroles", || defaults::cluster_roles(gates)),
        defaults.keep(ROLES, GROUP, "clusterrolebindings", || defaults::cluster_role_bindings(gates)),
        inside_namespaces,
    )?;
    Ok(())
}

/// Creates the default objects at a start. An image may already have stored some of them.
struct Defaults<'a> {
    context: &'a Context,
    image: Option<&'a Image>,
}

impl Defaults<'_> {
    /// Whether all default objects of a kind are stored as the image has them.
    fn is_recorded(&self, group: &str, plural: &str) -> bool {
        self.image.is_some_and(|image| image.is_stored(self.context, group, plural))
    }

    /// Creates or repairs the default objects of a kind, which `objects` makes.
    async fn keep<I: IntoIterator<Item = Value>>(
        &self,
        kept: Upkeep,
        group: &str,
        plural: &str,
        objects: impl FnOnce() -> I,
    ) -> Result<()> {
        if self.is_recorded(group, plural) {
            return Ok(());
        }
        create_of(self.context, kept, group, plural, objects()).await
    }

    /// Whether the stored APIServices that are managed only at the start equal the image's.
    fn are_services_recorded(&self, services: &Resource) -> bool {
        let managed = services.collection.latest().0;
        let managed = managed.values().filter(|stored| stored.meta.label(MANAGED) == Some(MANAGED_AT_START)).count();
        let recorded = self.image.map(|image| image.count(REGISTRATION_GROUP, API_SERVICES));
        recorded == Some(managed) && self.is_recorded(REGISTRATION_GROUP, API_SERVICES)
    }
}

pub async fn create_namespaces(context: &Context) -> Result<()> {
    let namespaces = NAMESPACES.map(|name| machinery::json!({"metadata": {"name": name}}));
    create_of(context, PLAIN, "", "namespaces", namespaces).await
}

/// The ConfigMap from which aggregated API servers read the CA bundles to trust.
const TRUST: (&str, &str) = ("kube-system", "extension-apiserver-authentication");

/// Publishes the CA bundles that aggregated API servers trust. The certificates of other servers are kept, and this
/// server's are added.
pub async fn publish_trust(context: &Context, data: &[(&'static str, String)]) -> Result<()> {
    let resource = context.registry.get("", "configmaps").filter(|_| !data.is_empty());
    let Some(resource) = resource else { return Ok(()) };
    in_turn(context, || write_trust(context, &resource, data)).await
}

async fn write_trust(context: &Context, resource: &Arc<Resource>, data: &[(&'static str, String)]) -> Result<()> {
    let (namespace, name) = TRUST;
    let Some(existing) = resource.collection.get(&resource.key(namespace, name).path) else {
        let object = machinery::json!({
            "metadata": {"name": name, "namespace": namespace}, "data": (merged_trust(&Value::Null, data))
        });
        return context.as_server(resource, namespace, name).create(&object).await;
    };
    let before = existing.body.to_value(existing.revision);
    let wanted = merged_trust(&before, data);
    if before.get("data") == Some(&wanted) {
        return Ok(());
    }
    let version = Value::from(before.str_at(&["metadata", "resourceVersion"]));
    let change = machinery::json!({"metadata": {"resourceVersion": version}, "data": wanted});
    context.as_server(resource, namespace, name).patch(PatchKind::Merge, &change).await
}

/// The data to publish: certificate authorities are added to those in the ConfigMap, and anything else is replaced.
fn merged_trust(before: &Value, data: &[(&'static str, String)]) -> Value {
    let mut wanted = Value::object();
    for (key, text) in data {
        let known = before.str_at(&["data", key]);
        let text = if !key.ends_with("-ca-file") {
            text.clone()
        } else if known.contains(text.as_str()) {
            known.to_owned()
        } else {
            format!("{known}{text}")
        };
        wanted.set_at(&[key], Value::from(text));
    }
    wanted
}

/// The ConfigMap with the day since which uses of tokens in Secrets are tracked (KEP-2799).
pub fn token_tracking() -> Value {
    let (namespace, name) = TOKEN_TRACKING;
    machinery::json!({
        "metadata": {"name": name, "namespace": namespace},
        "data": {"since": (machinery::time::date(clock::now_seconds()))}
    })
}

/// Creates the missing APIServices of built-in kinds, and restores those that are managed only at the start. Deletes
/// those whose group version is not served, unless another server of the store may serve it.
async fn register(defaults: &Defaults<'_>) -> Result<()> {
    let context = defaults.context;
    let Some(resource) = context.registry.get(REGISTRATION_GROUP, API_SERVICES) else { return Ok(()) };
    if defaults.are_services_recorded(&resource) {
        return Ok(());
    }
    let mut missing = kinds::built_in_api_services(&context.registry);
    let defined = LazyLock::new(|| kinds::custom_api_services(&context.registry));
    let (mut unserved, is_alone) = (vec![], !context.objects.store().is_shared());
    for stored in resource.collection.latest().0.values() {
        let (name, built_in) = (&stored.meta.name, missing.remove(&stored.meta.name));
        let is_managed_at_start = match stored.meta.label(MANAGED) {
            Some(MANAGED_AT_START) => true,
            Some(MANAGED_ALWAYS) if built_in.is_some() => false,
            // a client has created the APIService, or the controller maintains it
            _ => continue,
        };
        let object = stored.body.to_value(stored.revision);
        match built_in.as_ref().or_else(|| defined.get(name)) {
            Some(wanted) => restore_registration(context, &resource, &object, wanted).await?,
            None if is_managed_at_start
                && (is_alone || CATALOGUE.is_built_in_group(object.str_at(&["spec", "group"]))) =>
            {
                unserved.push(stored.clone());
            }
            None => {}
        }
    }
    delete::delete_as_server(context, &resource, unserved).await?;
    create_missing(context, &resource, missing.into_values()).await
}

/// Restores the labels and the spec of an APIService.
pub async fn restore_registration(
    context: &Context,
    resource: &Arc<Resource>,
    object: &Value,
    wanted: &Value,
) -> Result<()> {
    if object.get("spec") == wanted.get("spec") {
        return Ok(());
    }
    let spec = wanted.get("spec").cloned().unwrap_or_default();
    let replace = machinery::json!([{"op": "replace", "path": "/spec", "value": spec}]);
    let restored =
        context.as_server(resource, "", object.str_at(&["metadata", "name"])).patch(PatchKind::Json, &replace).await;
    // not found if the APIService has been deleted
    tolerating(&[Reason::NotFound], restored)
}
