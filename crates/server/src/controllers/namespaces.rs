//! Deletes the content of namespaces that are being deleted, then removes their finalizer.

use std::collections::BTreeMap;

use base::clock;
use machinery::{Status, Text, Value};
use resource::builtin::NAMESPACE_FINALIZER;
use tokio::time::Instant;

use crate::limits;
use crate::verbs::{self, CONTROLLERS, Context, Pass, Subresource};

/// Namespaces that are being deleted, by uid, with the earliest time of the deletion of their content.
#[derive(Default)]
pub struct TerminatingNamespaces {
    from: BTreeMap<Text, Instant>,
    /// When the last pass began.
    passed: Option<Instant>,
}

impl TerminatingNamespaces {
    /// The time at which the next grace period ends.
    pub fn next(&self) -> Option<Instant> {
        self.from.values().copied().filter(|from| Some(*from) > self.passed).min()
    }

    /// One pass: finds the namespaces that are being deleted, and deletes the content of those whose grace period has ended.
    pub async fn finalize(&mut self, context: &Context) -> Pass {
        let mut pass = Pass::default();
        let Some(namespaces) = context.registry.get("", "namespaces") else { return pass };
        let (root, _) = namespaces.collection.latest();
        let deleting: Vec<_> = root.iter().filter(|(_, stored)| stored.meta.deleting).collect();
        let now = clock::instant();
        self.passed = Some(now);
        let before = std::mem::take(&mut self.from);
        for (_, stored) in &deleting {
            let from = before.get(&stored.meta.uid).copied().unwrap_or(now + limits::NAMESPACE_GRACE);
            self.from.insert(stored.meta.uid.clone(), from);
        }
        for (name, stored) in deleting {
            pass.pending = true;
            if self.from.get(&stored.meta.uid).is_some_and(|from| *from <= now)
                && let Err(status) = finalize_one(context, name).await
            {
                tracing::warn!(namespace = %name, error = %status, "the content of a namespace cannot be deleted; will retry");
                pass.failed = true;
            }
        }
        pass
    }
}

/// The objects that could not be deleted yet.
#[derive(Default)]
struct Remaining {
    /// Objects by resource.
    objects: BTreeMap<String, usize>,
    /// Objects by finalizer.
    finalizers: BTreeMap<String, usize>,
}

async fn finalize_one(context: &Context, name: &str) -> Result<(), Status> {
    let mut remaining = Remaining::default();
    for (_, resource) in context.registry.snapshot().iter().filter(|(_, resource)| resource.namespaced) {
        let left = verbs::empty_namespace(context, resource, name).await?;
        if !left.is_empty() {
            let key = [&*resource.plural, &*resource.group].join(".");
            remaining.objects.insert(key, left.len());
        }
        for finalizer in left.iter().flat_map(finalizers_of) {
            *remaining.finalizers.entry(finalizer).or_default() += 1;
        }
    }
    let Some(namespaces) = context.registry.get("", "namespaces") else { return Ok(()) };
    let now = clock::now_rfc3339();
    let report = |object: &mut Value| remaining.report(object, &now);
    verbs::change_as(CONTROLLERS, context, &namespaces, name, Subresource::Status, report).await?;
    if !remaining.objects.is_empty() {
        return Ok(());
    }
    verbs::change_as(CONTROLLERS, context, &namespaces, name, Subresource::Own("finalize"), |object| {
        let finalizers = object.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
        let kept: Vec<Value> = finalizers.iter().filter(|f| f.as_str() != Some(NAMESPACE_FINALIZER)).cloned().collect();
        if kept.is_empty() {
            object.remove_at(&["spec", "finalizers"]);
        } else {
            object.set_at(&["spec", "finalizers"], Value::Array(kept));
        }
    })
    .await
}

fn finalizers_of(object: &Value) -> Vec<String> {
    let list = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Remaining {
    /// Sets the conditions of a namespace, which kubectl prints while it waits for the deletion.
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
        let old = namespace.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default().to_vec();
        let list = conditions.iter().map(|(kind, status, reason, message)| {
            let same = old.iter().find(|c| c.str_at(&["type"]) == *kind && c.str_at(&["status"]) == *status);
            let since = same.map_or(now, |c| c.str_at(&["lastTransitionTime"]));
            Value::from([
                ("type", Value::from(*kind)),
                ("status", Value::from(*status)),
                ("lastTransitionTime", Value::from(since)),
                ("reason", Value::from(*reason)),
                ("message", Value::from(message)),
            ])
        });
        let list: Value = list.collect();
        namespace.set_at(&["status", "conditions"], list);
    }
}

const NOTHING_LEFT: &str = "All content successfully removed";
const NO_FINALIZERS: &str = "All content-preserving finalizers finished";
