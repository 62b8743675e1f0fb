//! Deletes the content of namespaces that are being deleted, then removes their finalizer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use base::{clock, task};
use kinds::NAMESPACE_FINALIZER;
use machinery::{Result, Text, Value, json};
use objects::Stored;
use resource::Resource;
use tokio::time::Instant;

use crate::limits;
use crate::verbs::{self, CONTROLLERS, Context, Subresource};

/// Namespaces that are being deleted.
#[derive(Default)]
pub struct TerminatingNamespaces {
    /// The uid of each, and the earliest time at which its content is deleted. The uid shows whether a namespace has
    /// been replaced by a new one of the same name, which gets its own grace period.
    from: HashMap<Text, (Text, Instant)>,
    /// When to process each namespace next.
    due: HashMap<Text, Instant>,
}

impl TerminatingNamespaces {
    /// The next time at which a namespace is due.
    pub fn next(&self) -> Option<Instant> {
        self.due.values().copied().min()
    }

    /// Makes one pass over the namespaces that are due, and over `changed`: the namespaces that have changed, or
    /// whose content has. The first pass covers all namespaces.
    pub async fn finalize(&mut self, context: &Context, changed: HashSet<Text>) {
        let Some(namespaces) = context.registry.get("", "namespaces") else { return };
        let deleting = |name: &Text| namespaces.collection.get(name).filter(|stored| stored.meta.deleting);
        let now = clock::moment();
        self.from.retain(|name, (uid, _)| deleting(name).is_some_and(|stored| stored.meta.uid == *uid));
        self.due.retain(|name, _| self.from.contains_key(name));
        // other servers learn of a deletion later, and accept new objects until then
        let is_shared = context.objects.store().is_shared();
        let grace = if is_shared { limits::NAMESPACE_GRACE } else { limits::FINALIZE_GRACE };
        let mut has_new = false;
        for name in changed {
            let Some(stored) = deleting(&name) else { continue };
            let (_, from) = self.from.entry(name.clone()).or_insert_with(|| {
                has_new = true;
                (stored.meta.uid.clone(), now + grace)
            });
            self.due.insert(name, *from);
        }
        if has_new && !is_shared {
            // wait for writes that began before the deletion, but not for one that is stuck, for example at a slow
            // webhook
            let _ = tokio::time::timeout(limits::NAMESPACE_GRACE, context.writes.ended()).await;
        }
        let due: Vec<Text> = self.due.extract_if(|_, from| *from <= now).map(|(name, _)| name).collect();
        for name in due {
            match finalize_one(context, &name).await {
                Ok(NamespacePass::Finalized | NamespacePass::Waits) => {}
                Ok(NamespacePass::Again) => drop(self.due.insert(name, now)),
                Err(status) => {
                    tracing::warn!(namespace = %name, error = %status, "the content of a namespace cannot be deleted; will retry");
                    self.due.insert(name, clock::moment() + limits::CONTROLLER_RETRY);
                }
            }
        }
    }
}

/// The outcome of a pass over one namespace.
enum NamespacePass {
    Finalized,
    /// Objects are held by finalizers.
    Waits,
    /// Objects have been created meanwhile.
    Again,
}

/// The objects that could not be deleted yet.
#[derive(Default)]
struct Remaining {
    /// Objects by resource.
    objects: BTreeMap<String, usize>,
    /// Objects by finalizer.
    finalizers: BTreeMap<String, usize>,
}

async fn finalize_one(context: &Context, name: &str) -> Result<NamespacePass> {
    let resources: Vec<Arc<Resource>> = {
        let snapshot = context.registry.snapshot();
        snapshot.iter().filter(|(_, resource)| resource.namespaced).map(|(_, resource)| resource.clone()).collect()
    };
    let mut remaining = Remaining::default();
    for resource in &resources {
        let left = verbs::empty_namespace(context, resource, name).await?;
        task::blocking(|| remaining.count(resource, &left));
    }
    let Some(namespaces) = context.registry.get("", "namespaces") else { return Ok(NamespacePass::Finalized) };
    let now = clock::now_rfc3339();
    let report = |object: &mut Value| remaining.report(object, &now);
    context
        .as_server(&namespaces, "", name)
        .through(Subresource::Status)
        .managed_by(CONTROLLERS)
        .change(report)
        .await?;
    if !remaining.objects.is_empty() {
        return Ok(NamespacePass::Waits);
    }
    // look again: a request that was dropped may have committed an object before the status was written
    if resources.iter().any(|resource| !resource.collection.in_namespace(name).is_empty()) {
        return Ok(NamespacePass::Again);
    }
    context
        .as_server(&namespaces, "", name)
        .through(Subresource::Own("finalize"))
        .managed_by(CONTROLLERS)
        .change(|object| {
            let finalizers = object.items_at(&["spec", "finalizers"]);
            let kept: Vec<Value> =
                finalizers.iter().filter(|f| f.as_str() != Some(NAMESPACE_FINALIZER)).cloned().collect();
            if kept.is_empty() {
                object.remove_at(&["spec", "finalizers"]);
            } else {
                object.set_at(&["spec", "finalizers"], Value::Array(kept));
            }
        })
        .await?;
    Ok(NamespacePass::Finalized)
}

impl Remaining {
    fn count(&mut self, resource: &Resource, left: &[Arc<Stored>]) {
        if left.is_empty() {
            return;
        }
        let key = [&*resource.plural, &*resource.group].join(".");
        self.objects.insert(key, left.len());
        for finalizer in left.iter().flat_map(|stored| stored.finalizers()) {
            *self.finalizers.entry(finalizer).or_default() += 1;
        }
    }

    /// Sets the conditions of a namespace. While kubectl waits for the deletion, it prints them.
    fn report(&self, namespace: &mut Value, now: &str) {
        let counted = |counts: &BTreeMap<String, usize>, what: &str| -> String {
            counts.iter().map(|(key, n)| format!("{key} {what} {n} resource instances")).collect::<Vec<_>>().join(", ")
        };
        let content = format!("Some resources are remaining: {}", counted(&self.objects, "has"));
        let held =
            format!("Some content in the namespace has finalizers remaining: {}", counted(&self.finalizers, "in"));
        let discovered = "All resources successfully discovered";
        let parsed = "All legacy kube types successfully parsed";
        let deleted = "All content successfully deleted, may be waiting on finalization";
        let conditions = [
            ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", discovered.to_owned()),
            ("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", parsed.to_owned()),
            ("NamespaceDeletionContentFailure", "False", "ContentDeleted", deleted.to_owned()),
            if self.objects.is_empty() {
                ("NamespaceContentRemaining", "False", "ContentRemoved", NOTHING_LEFT.to_owned())
            } else {
                ("NamespaceContentRemaining", "True", "SomeResourcesRemain", content)
            },
            if self.finalizers.is_empty() {
                ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", NO_FINALIZERS.to_owned())
            } else {
                ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", held)
            },
        ];
        let old = namespace.items_at(&["status", "conditions"]).to_vec();
        let list = conditions.iter().map(|(kind, status, reason, message)| {
            let same = old.iter().find(|c| c.str_at(&["type"]) == *kind && c.str_at(&["status"]) == *status);
            let since = same.map_or(now, |c| c.str_at(&["lastTransitionTime"]));
            json!({
                "type": (*kind), "status": (*status), "lastTransitionTime": since, "reason": (*reason), "message": message
            })
        });
        let list: Value = list.collect();
        namespace.set_at(&["status", "conditions"], list);
    }
}

const NOTHING_LEFT: &str = "All content successfully removed";
const NO_FINALIZERS: &str = "All content-preserving finalizers finished";
