//! The usage of ResourceQuotas (`resourcequota-controller`), recounted from the objects: admission only increases it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use access::admission::{Counting, Devices, counted_kinds, counting, in_scopes};
use base::{clock, task};
use machinery::quantity::Quantity;
use machinery::status::Reason;
use machinery::{Map, Result, Text, Value, json};
use objects::{Event, EventKind, Key, Stored};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::pending::Pending;
use super::reconciler::Reconciler;
use crate::limits;
use crate::verbs::{self, Context, PatchKind, Subresource};

const USER: &str = "system:serviceaccount:kube-system:resourcequota-controller";

/// The controller.
pub struct Quotas {
    /// The namespaces to be recounted.
    pending: Pending,
    /// The namespaces that have quotas, with the names of the quotas.
    limited: Mutex<BTreeMap<Text, BTreeSet<Text>>>,
}

impl Reconciler for Quotas {
    const NAME: &'static str = "quota usage";
    /// Passes are delayed, so that many deletions, and writes that admission has counted already, cause only one
    /// recount.
    const SETTLED: [Duration; 2] = [limits::QUOTA_GRACE; 2];
    const RESUMES: bool = false;
    /// When all quotas are to be recounted.
    type Memory = Option<Instant>;

    fn observe(&self, key: &Key, event: &Event) -> bool {
        let Some((namespace, name)) = key.path.split_once('/') else { return false };
        let gone = event.kind == EventKind::Deleted;
        let mut limited = self.limited.lock();
        if key.group.is_empty() && key.plural == "resourcequotas" {
            let names = limited.entry(namespace.into()).or_default();
            if gone {
                names.remove(name)
            } else {
                names.insert(name.into())
            };
            if names.is_empty() {
                limited.remove(namespace);
            }
        } else if !limited.contains_key(namespace) || !(gone || changes_usage(key)) {
            return false;
        }
        drop(limited);
        self.pending.add(namespace.into());
        true
    }

    async fn reconcile(
        &self,
        context: &Arc<Context>,
        _: &watch::Receiver<bool>,
        resync: &mut Option<Instant>,
    ) -> Option<Duration> {
        let now = clock::instant();
        let next = match *resync {
            Some(at) if at > now => at,
            _ => {
                self.limited.lock().keys().for_each(|namespace| self.pending.add(namespace.clone()));
                now + limits::QUOTA_RESYNC
            }
        };
        *resync = Some(next);
        let recount = async |namespace: Text| {
            if let Err(status) = recount(context, &namespace).await {
                tracing::warn!(%namespace, error = %status, "the usage of a ResourceQuota cannot be written");
            }
            // the next change or resync recounts it
            true
        };
        self.pending.each(recount).await;
        Some(next.saturating_duration_since(clock::instant()))
    }
}

impl Default for Quotas {
    fn default() -> Quotas {
        Quotas { pending: Pending::measured("resourcequota_primary"), limited: Mutex::default() }
    }
}

/// Whether updates of an object may change its usage, as for Pods, Services and PersistentVolumeClaims.
fn changes_usage(key: &Key) -> bool {
    counting(&key.group, &key.plural).is_some_and(|counting| counting.updates)
}

/// Recounts all quotas of a namespace and writes the status of those that have changed.
async fn recount(context: &Context, namespace: &Text) -> Result<()> {
    let Some(quotas) = context.registry.get("", "resourcequotas") else { return Ok(()) };
    let counts = Counts { context, namespace };
    for stored in quotas.collection.in_namespace(namespace) {
        let quota = stored.body.to_value(0);
        let status = task::blocking(|| counts.status(&quota));
        if quota.get("status") == Some(&status) {
            continue;
        }
        let own = context.as_user(USER, &quotas, namespace, &stored.meta.name).through(Subresource::Status);
        // fails if the quota has changed since it was read, which starts another recount
        let version = stored.revision.to_string();
        let patch = json!({"metadata": {"resourceVersion": version}, "status": (replacing(&quota, status))});
        verbs::tolerating(&[Reason::NotFound, Reason::Conflict], own.patch(PatchKind::Merge, &patch).await)?;
    }
    Ok(())
}

/// The merge patch that replaces the status of a quota: entries that `status` does not have are set to null.
fn replacing(quota: &Value, mut status: Value) -> Value {
    for part in ["hard", "used"] {
        let old = quota.at(&["status", part]).and_then(Value::as_object);
        for key in old.into_iter().flat_map(Map::keys) {
            if status.at(&[part, key]).is_none() {
                status.set_at(&[part, key], Value::Null);
            }
        }
    }
    status
}

/// The objects of a namespace.
struct Counts<'a> {
    context: &'a Context,
    namespace: &'a Text,
}

impl Counts<'_> {
    /// The status of a quota. The usage of resources that no object has is zero.
    fn status(&self, quota: &Value) -> Value {
        let hard = quota.at(&["spec", "hard"]).cloned().unwrap_or(Value::object());
        let are_extended = self.context.registry.gates().has(base::request::Feature::ExtendedResource);
        let devices = Devices::new(&self.context.objects, are_extended);
        let mut names_by_kind: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for name in hard.as_object().into_iter().flat_map(Map::keys) {
            for kind in counted_kinds(name, &devices) {
                names_by_kind.entry(kind).or_default().push(name);
            }
        }
        let mut sums = BTreeMap::<&str, Quantity>::new();
        for ((group, plural), names) in names_by_kind {
            for (name, amount) in self.used(quota, (group, plural), names, &devices) {
                let sum = sums.get(name).map_or_else(|| amount.clone(), |sum| sum.plus(&amount));
                sums.insert(name, sum);
            }
        }
        let used: Map = sums.into_iter().map(|(name, sum)| (name.into(), Value::from(sum.to_string()))).collect();
        [("hard", hard), ("used", Value::Object(used))].into()
    }

    /// The usage of those resource names of a quota that belong to one kind, except `count/` of kinds that are not
    /// counted in namespaces. Each object is read once.
    fn used<'n>(
        &self,
        quota: &Value,
        (group, plural): (&str, &str),
        names: Vec<&'n str>,
        devices: &Devices<'_>,
    ) -> BTreeMap<&'n str, Quantity> {
        let resource = self.context.registry.get(group, plural);
        let counting = counting(group, plural).filter(|_| resource.as_ref().is_none_or(|it| it.namespaced));
        let is_counted = |name: &str| counting.is_some() || !name.starts_with("count/");
        let names = names.into_iter().filter(|name| is_counted(name));
        let mut sums: BTreeMap<&str, Quantity> = names.map(|name| (name, Quantity::from_int(0))).collect();
        let (Some(counting), Some(resource)) = (counting, resource) else { return sums };
        let counts_objects_alone = sums.keys().all(|name| *name == counting.count);
        if !sums.keys().any(|name| counting.has(name, devices)) {
            return sums;
        }
        let all = resource.collection.in_namespace(self.namespace);
        if counts_objects_alone && access::admission::scopes(quota).is_empty() {
            let count = Quantity::from_int(i64::try_from(all.len()).unwrap_or(i64::MAX));
            return sums.into_keys().map(|name| (name, count.clone())).collect();
        }
        for stored in all {
            add(&mut sums, &counting, quota, &stored, devices);
        }
        sums
    }
}

/// Adds the usage of an object, if the quota's scopes contain the object.
fn add(
    sums: &mut BTreeMap<&str, Quantity>,
    counting: &Counting,
    quota: &Value,
    stored: &Stored,
    devices: &Devices<'_>,
) {
    let object = stored.body.to_value(stored.revision);
    if in_scopes(quota, counting, &object) {
        for (name, amount) in counting.of(&object, clock::now_seconds(), devices) {
            if counting.has(&name, devices)
                && let Some(sum) = sums.get_mut(name.as_str())
            {
                *sum = sum.plus(&amount);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use crate::test_server::TestServer;

    #[tokio::test]
    async fn objects_of_a_kind_are_counted_for_all_of_its_names() {
        let server = TestServer::start().await;
        let create = async |plural: &str, object: Value| {
            server.ok(http::Method::POST, &format!("/api/v1/namespaces/default/{plural}"), object).await;
        };
        create("serviceaccounts", json!({"metadata": {"name": "default"}})).await;
        for (name, cpu) in [("a", "1"), ("b", "250m")] {
            let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
            create("pods", json!({"metadata": {"name": name}, "spec": {"containers": [container]}})).await;
            create("configmaps", json!({"metadata": {"name": name}})).await;
        }
        let status = |scopes: Value| {
            let names =
                ["pods", "cpu", "requests.cpu", "count/pods", "count/configmaps", "services", "count/nodes", "x"];
            let hard: Value = names.map(|name| (name, Value::from("9"))).into();
            let quota = json!({"spec": {"hard": hard, "scopes": scopes}});
            let counts = Counts { context: &server.context, namespace: &"default".into() };
            counts.status(&quota).get("used").cloned().unwrap()
        };
        assert_eq!(
            status(json!([])),
            json!({"pods": "2", "cpu": "1250m", "requests.cpu": "1250m", "count/pods": "2", "count/configmaps": "2",
                "services": "0", "x": "0"})
        );
        assert_eq!(status(json!(["BestEffort"])).str_at(&["pods"]), "0");
    }
}
