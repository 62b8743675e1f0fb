//! Objects that exist in every namespace: the ServiceAccount `default` (`serviceaccount-controller`), and the ConfigMap
//! `kube-root-ca.crt` with the CA bundle of the server's certificate (`root-ca-certificate-publisher-controller`).

use std::sync::Arc;
use std::time::Duration;

use machinery::status::Reason;
use machinery::{Result, Text, Value, json};
use objects::{Event, EventKind, Key};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::pending::Pending;
use super::reconciler::Reconciler;
use crate::verbs::{self, Context, PatchKind};

const DESCRIPTION: &str = "kubernetes.io/description";
const ABOUT_AUTHORITY: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                           endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                           guaranteed across distributions of Kubernetes clusters.";

/// The ConfigMap with the CA bundle of the server's certificate.
const ROOT_AUTHORITY: &str = "kube-root-ca.crt";
/// The data of that ConfigMap.
const BUNDLE: [&str; 2] = ["data", "ca.crt"];
/// A queue entry for all namespaces.
const ALL: Text = Text::new_static("");

/// The controller that keeps one object in every namespace.
pub struct NamespaceObjects {
    user: &'static str,
    plural: &'static str,
    name: &'static str,
    /// The object. Its `data` is restored if it is changed.
    object: Mutex<Arc<Value>>,
    /// The namespaces to be checked.
    pending: Pending,
}

impl Reconciler for NamespaceObjects {
    const NAME: &'static str = "namespace objects";
    type Memory = ();

    fn observe(&self, key: &Key, event: &Event) -> bool {
        if !key.group.is_empty() {
            return false;
        }
        let namespace = match key.path.split_once('/') {
            None if key.plural == "namespaces" && event.kind != EventKind::Deleted => key.path.clone(),
            Some((namespace, name)) if key.plural == self.plural && name == self.name => namespace.into(),
            _ => return false,
        };
        self.pending.add(namespace);
        true
    }

    async fn reconcile(&self, context: &Arc<Context>, _: &watch::Receiver<bool>, _: &mut ()) -> Option<Duration> {
        self.pending.expand(&ALL, || {
            let namespaces = context.registry.get("", "namespaces");
            namespaces.iter().flat_map(|it| it.collection.latest().0.into_iter().map(|(path, _)| path)).collect()
        });
        let keep = async |namespace: Text| {
            let Err(status) = self.keep(context, &namespace).await else { return true };
            tracing::warn!(%namespace, name = self.name, error = %status, "an object cannot be created or restored; will retry");
            false
        };
        self.pending.each(keep).await
    }

    /// Publishes the bundle in every namespace, if this controller publishes one.
    fn set_root_authority(&self, authority: &str) -> bool {
        let mut object = self.object.lock();
        let differs = !["", authority].contains(&object.str_at(&BUNDLE));
        if differs {
            Arc::make_mut(&mut object).set_at(&BUNDLE, Value::from(authority));
            self.pending.add(ALL);
        }
        differs
    }
}

/// The CA bundle that the servers of a shared store have published.
pub fn published_authority(context: &Context) -> Option<String> {
    let maps = context.registry.get("", "configmaps").filter(|_| context.objects.store().is_shared())?;
    let published = maps.collection.get(&format!("kube-system/{ROOT_AUTHORITY}"))?;
    Some(published.body.to_value(0).str_at(&BUNDLE).to_owned())
}

impl NamespaceObjects {
    fn new(user: &'static str, queue: &'static str, (plural, name): (&'static str, &'static str)) -> NamespaceObjects {
        let object = Mutex::new(Arc::new(json!({"metadata": {"name": name}})));
        NamespaceObjects { user, plural, name, object, pending: Pending::measured(queue) }
    }

    pub fn of_accounts() -> NamespaceObjects {
        let user = "system:serviceaccount:kube-system:service-account-controller";
        NamespaceObjects::new(user, "serviceaccount", ("serviceaccounts", "default"))
    }

    /// `authority` is the CA bundle in PEM format.
    pub fn of_root_authority(authority: &str) -> NamespaceObjects {
        let user = "system:serviceaccount:kube-system:root-ca-cert-publisher";
        let publisher = NamespaceObjects::new(user, "root_ca_cert_publisher", ("configmaps", ROOT_AUTHORITY));
        let annotations = Value::from([(DESCRIPTION, Value::from(ABOUT_AUTHORITY))]);
        let mut object = json!({"metadata": {"name": (publisher.name), "annotations": annotations}});
        object.set_at(&BUNDLE, Value::from(authority));
        *publisher.object.lock() = Arc::new(object);
        publisher
    }

    /// The JSON patch that restores the data and the description of an object; `None` if they are unchanged.
    fn repair(&self, found: &Value) -> Option<Value> {
        let object = self.object.lock().clone();
        let data = object.get("data")?;
        let given = |object: &Value| object.at(&["metadata", "annotations"]).cloned().unwrap_or_else(Value::object);
        let (mut annotations, wanted) = (given(found), given(&object));
        let description = wanted.get(DESCRIPTION).cloned().unwrap_or_default();
        if found.get("data") == Some(data) && !annotations.str_at(&[DESCRIPTION]).is_empty() {
            return None;
        }
        annotations.set_at(&[DESCRIPTION], description);
        Some(json!([
            {"op": "add", "path": "/data", "value": (data.clone())},
            {"op": "add", "path": "/metadata/annotations", "value": annotations}
        ]))
    }

    async fn keep(&self, context: &Context, namespace: &str) -> Result<()> {
        let lives = context.registry.get("", "namespaces").and_then(|resource| resource.collection.get(namespace));
        let Some(resource) = context.registry.get("", self.plural) else { return Ok(()) };
        if lives.is_none_or(|namespace| namespace.meta.deleting) {
            return Ok(());
        }
        let own = context.as_user(self.user, &resource, namespace, self.name);
        let result = match resource.collection.get(&format!("{namespace}/{}", self.name)) {
            None => {
                let object = self.object.lock().clone();
                own.create(&object).await
            }
            Some(found) => {
                let Some(replace) = self.repair(&found.body.to_value(0)).filter(|_| !found.meta.deleting) else {
                    return Ok(());
                };
                own.patch(PatchKind::Json, &replace).await
            }
        };
        // another server may have created the object, or the namespace is being deleted
        verbs::tolerating(&[Reason::AlreadyExists, Reason::NotFound, Reason::Forbidden], result)
    }
}
