//! The garbage collector: deletes objects whose owners have been deleted.
//!
//! The graph only finds candidates. Every decision is made from the live object and its live owners, and every write has
//! the uid and the resource version of that object as preconditions.

mod dependents;
mod graph;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use machinery::status::Reason;
use machinery::{Result, Value, json};
use tokio::sync::watch;

use dependents::Dependent;
pub use graph::Graph;
use graph::{QUEUE, Task, WorkItem};

use super::reconciler::Controller;
use super::switch::AbsentOwners;
use crate::limits;
use crate::verbs::{Context, OwnObject, PatchKind};
use base::clock::{self, Follower};
use objects::{Event, Key, Owner, Stored};
use resource::Resource;

const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const COMPONENT: &str = "garbage-collector-controller";
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

impl Controller for Graph {
    fn name(&self) -> &'static str {
        "garbage collector"
    }

    fn observe(&self, key: &Key, event: &Event) -> bool {
        self.follow(key, event)
    }

    fn is_busy(&self) -> bool {
        self.has_tasks()
    }

    fn work<'a>(&'a self, context: &'a Arc<Context>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            while let Some(tasks) = self.take(limits::GARBAGE_PARALLEL).now_or_never() {
                examine_all(context, self, tasks).await;
            }
        })
    }

    fn run(self: Arc<Self>, context: Arc<Context>, stop: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        Box::pin(collect(context, self, stop))
    }
}

/// Collects until `stop` becomes true.
async fn collect(context: Arc<Context>, graph: Arc<Graph>, mut stop: watch::Receiver<bool>) {
    let mut follower = Follower::new();
    loop {
        tokio::select! {
            biased;
            tasks = graph.take(limits::GARBAGE_PARALLEL) => {
                examine_all(&context, &graph, tasks).await;
                // most objects are examined without awaiting anything, so other tasks would starve without this
                tokio::task::yield_now().await;
            }
            () = super::stopped(&mut stop) => return,
            // the loop then takes what has become due
            () = follower.changed() => {}
        }
    }
}

async fn examine_all(context: &Context, graph: &Graph, tasks: Vec<Task>) {
    let count = tasks.len();
    join_all(tasks.into_iter().map(|task| examine(context, graph, task))).await;
    graph.examined(count);
}

/// The outcome of the examination of an object.
enum Verdict {
    Done,
    /// To be repeated when a CRD has changed, since the kind of an owner is not served.
    Unknown,
    /// To be repeated after a grace period. An object gets only one.
    Grace(Duration),
}

async fn examine(context: &Context, graph: &Graph, task: Task) {
    let began = clock::instant();
    let verdict = match task.item {
        WorkItem::Dependent => examine_dependent(context, graph, &task).await,
        WorkItem::Owner => examine_owner(context, graph, &task).await,
    };
    QUEUE.worked(began.elapsed());
    match verdict {
        Ok(Verdict::Done) => {}
        Ok(Verdict::Unknown) => graph.park(Task { failures: 0, ..task }),
        Ok(Verdict::Grace(after)) => graph.postpone(Task { due: true, failures: 0, ..task }, after),
        Err(status) if status.reason == Reason::NotFound => {}
        // the object has changed since it was read
        Err(status) if status.reason == Reason::Conflict && task.failures < limits::GARBAGE_CONFLICTS_MAX => {
            graph.postpone(Task { failures: task.failures + 1, ..task }, Duration::ZERO);
        }
        Err(status) => {
            tracing::warn!(object = %task.key.path, error = %status, "an object cannot be examined by the garbage collector; will retry");
            let seconds = 1u64.checked_shl(task.failures).unwrap_or(u64::MAX);
            let after = Duration::from_secs(seconds.min(limits::CONTROLLER_RETRY_SECONDS_MAX));
            graph.postpone(Task { failures: task.failures + 1, ..task }, after);
        }
    }
}

fn has_finalizer(stored: &Stored, name: &str) -> bool {
    stored.meta.finalizers && finalizers(stored).iter().any(|finalizer| finalizer.as_str() == Some(name))
}

fn finalizers(stored: &Stored) -> Vec<Value> {
    let object = stored.body.to_value(0);
    object.items_at(&["metadata", "finalizers"]).to_vec()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    Solid,
    /// It does not exist, or its name belongs to an object with another uid.
    Absent,
    /// It is being deleted in the foreground and waits for its dependents.
    Waiting,
    /// Its kind is not served.
    Unknown,
    /// It is namespaced but its dependent is not, so it can never be found.
    Impossible,
}

/// The resource that an owner reference names, if it is served.
fn kind_of(context: &Context, owner: &Owner) -> Option<Arc<Resource>> {
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    context.registry.of_kind(group, version, &owner.kind).filter(|resource| !resource.is_review())
}

/// Whether an owner exists in another namespace.
fn is_in_other_namespace(context: &Context, owner: &Owner, namespace: &str) -> bool {
    let Some(resource) = kind_of(context, owner).filter(|resource| resource.namespaced) else { return false };
    let Some(namespaces) = context.registry.get("", "namespaces") else { return false };
    let (root, _) = namespaces.collection.latest();
    let in_namespace = |other: &str| resource.collection.get(&resource.key(other, &owner.name).path);
    root.keys().filter(|other| *other != namespace).any(|n| in_namespace(n).is_some_and(|it| it.meta.uid == owner.uid))
}

fn owner_state(context: &Context, graph: &Graph, owner: &Owner, namespace: &str) -> OwnerState {
    let Some(resource) = kind_of(context, owner) else {
        return if graph.has_gone(&owner.uid) { OwnerState::Absent } else { OwnerState::Unknown };
    };
    if resource.namespaced && namespace.is_empty() {
        return OwnerState::Impossible;
    }
    match resource.collection.get(&resource.key(namespace, &owner.name).path) {
        Some(found) if found.meta.uid != owner.uid => OwnerState::Absent,
        Some(found) if found.meta.deleting && has_finalizer(&found, FOREGROUND) => OwnerState::Waiting,
        Some(_) => OwnerState::Solid,
        None => OwnerState::Absent,
    }
}

async fn examine_dependent(context: &Context, graph: &Graph, task: &Task) -> Result<Verdict> {
    let Some(live) = LiveObject::of(context, &task.key, &task.uid) else { return Ok(Verdict::Done) };
    let stored = &live.stored;
    if stored.meta.deleting || stored.meta.owners.is_empty() {
        return Ok(Verdict::Done);
    }
    let states: Vec<OwnerState> =
        stored.meta.owners.iter().map(|owner| owner_state(context, graph, owner, &stored.meta.namespace)).collect();
    if let Some(owner) = states.iter().position(|state| *state == OwnerState::Impossible) {
        return live.report(owner).await;
    }
    if states.contains(&OwnerState::Unknown) {
        return Ok(Verdict::Unknown);
    }
    if states.contains(&OwnerState::Absent) && !task.due {
        if graph.absent_owners == AbsentOwners::Ignore {
            return Ok(Verdict::Done);
        }
        let mut owners = stored.meta.owners.iter();
        if let Some(owner) = owners.position(|owner| is_in_other_namespace(context, owner, &stored.meta.namespace)) {
            live.report(owner).await?;
        }
        return Ok(Verdict::Grace(limits::ABSENT_OWNER_GRACE));
    }
    if states.contains(&OwnerState::Solid) {
        let mut states = states.iter();
        return live.drop_owners(|_| states.next() == Some(&OwnerState::Solid)).await;
    }
    let dependents = graph.dependents(&stored.meta.uid);
    if states.contains(&OwnerState::Waiting) && !dependents.is_empty() {
        if dependents.iter().any(|dependent| is_waiting(context, dependent)) {
            // this is a cycle: objects that wait for this one must not wait any longer
            live.unblock().await?;
        }
        return live.delete("Foreground").await;
    }
    let policy = if has_finalizer(stored, ORPHAN) {
        "Orphan"
    } else if has_finalizer(stored, FOREGROUND) {
        "Foreground"
    } else {
        "Background"
    };
    live.delete(policy).await
}

fn is_waiting(context: &Context, dependent: &Dependent) -> bool {
    LiveObject::of(context, &dependent.key, &dependent.uid)
        .is_some_and(|live| live.stored.meta.deleting && has_finalizer(&live.stored, FOREGROUND))
}

async fn examine_owner(context: &Context, graph: &Graph, task: &Task) -> Result<Verdict> {
    let Some(live) = LiveObject::of(context, &task.key, &task.uid) else { return Ok(Verdict::Done) };
    let stored = &live.stored;
    if !stored.meta.deleting {
        return Ok(Verdict::Done);
    }
    let (orphan, foreground) = (has_finalizer(stored, ORPHAN), has_finalizer(stored, FOREGROUND));
    if !(orphan || foreground) {
        return Ok(Verdict::Done);
    }
    let dependents = graph.dependents(&task.uid);
    if dependents.is_empty() && !task.due {
        return Ok(Verdict::Grace(limits::NO_DEPENDENTS_GRACE));
    }
    if orphan {
        for part in dependents.chunks(limits::GARBAGE_PARALLEL) {
            let orphaned = part.iter().map(|dependent| drop_owner(context, dependent, &task.uid));
            join_all(orphaned).await.into_iter().collect::<Result<()>>()?;
        }
        return live.release(ORPHAN).await;
    }
    // in a cycle, a dependent waits for this object itself; such a dependent does not block the deletion
    let is_in_cycle =
        |dependent: &Dependent| is_waiting(context, dependent) && graph.waits_for(&dependent.uid, &task.uid);
    let blocking: Vec<Dependent> =
        dependents.into_iter().filter(|dependent| dependent.blocks && !is_in_cycle(dependent)).collect();
    if blocking.is_empty() {
        return live.release(FOREGROUND).await;
    }
    for Dependent { key, uid, .. } in blocking.iter().filter(|blocking| !is_deleting(context, blocking)) {
        graph.enqueue_object(WorkItem::Dependent, key, uid);
    }
    Ok(Verdict::Done)
}

fn is_deleting(context: &Context, dependent: &Dependent) -> bool {
    LiveObject::of(context, &dependent.key, &dependent.uid).is_none_or(|live| live.stored.meta.deleting)
}

/// Removes the reference to an owner from a dependent. The error is the last conflict if others always write before: an owner whose
/// finalizer went while a reference to it is left would take the dependent with it.
async fn drop_owner(context: &Context, dependent: &Dependent, owner: &str) -> Result<()> {
    for last in (0..limits::WRITE_RETRIES).rev() {
        let Some(live) = LiveObject::of(context, &dependent.key, &dependent.uid) else { return Ok(()) };
        match live.drop_owners(|reference| reference.str_at(&["uid"]) != owner).await {
            Err(status) if status.reason == Reason::Conflict && last > 0 => {}
            Err(status) if status.reason == Reason::NotFound => return Ok(()),
            result => return result.map(drop),
        }
    }
    Ok(())
}

/// A live object.
struct LiveObject<'a> {
    context: &'a Context,
    resource: Arc<Resource>,
    stored: Arc<Stored>,
}

impl LiveObject<'_> {
    /// The live object of a key, if it is still the one with this uid.
    fn of<'a>(context: &'a Context, key: &Key, uid: &str) -> Option<LiveObject<'a>> {
        let resource = context.registry.get(&key.group, &key.plural)?;
        let stored = resource.collection.get(&key.path).filter(|stored| stored.meta.uid == uid)?;
        Some(LiveObject { context, resource, stored })
    }

    /// Creates an Event about the owner reference with index `reference`, whose owner is in another namespace.
    async fn report(&self, reference: usize) -> Result<Verdict> {
        let LiveObject { context, resource, stored } = self;
        let Some(events) = context.registry.get("", "events") else { return Ok(Verdict::Done) };
        let Some(owner) = stored.meta.owners.get(reference) else { return Ok(Verdict::Done) };
        let (now, name, namespace) = (clock::now_rfc3339(), &stored.meta.name, &stored.meta.namespace);
        let message = format!(
            "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace \"{namespace}\"",
            owner.api_version, owner.kind, owner.name, owner.uid
        );
        let mut event = json!({
            "metadata": {"generateName": (format!("{name}."))},
            "type": "Warning", "reason": "OwnerRefInvalidNamespace", "message": message,
            "source": {"component": COMPONENT}, "reportingComponent": COMPONENT,
            "count": 1, "firstTimestamp": (now.clone()), "lastTimestamp": now,
            "involvedObject": {
                "apiVersion": (resource.api_version(resource.storage_version())), "kind": (resource.kind.clone()),
                "name": (name.clone()), "uid": (stored.meta.uid.clone())
            }
        });
        event.put_text(&["involvedObject", "namespace"], namespace);
        let place = if namespace.is_empty() { "default" } else { namespace };
        if let Err(status) = context.as_user(USER, &events, place, "").create(&event).await {
            tracing::warn!(object = %name, error = %status, "an Event about an invalid owner reference cannot be created");
        }
        Ok(Verdict::Done)
    }

    /// Removes all owner references for which `keep` returns false.
    async fn drop_owners(&self, mut keep: impl FnMut(&Value) -> bool) -> Result<Verdict> {
        let object = self.stored.body.to_value(0);
        let all = object.items_at(&["metadata", "ownerReferences"]);
        let kept: Vec<Value> = all.iter().filter(|reference| keep(reference)).cloned().collect();
        if kept.len() == all.len() {
            return Ok(Verdict::Done);
        }
        let kept = if kept.is_empty() { Value::Null } else { Value::Array(kept) };
        self.patch([("ownerReferences", kept)].into()).await
    }

    /// Sets `blockOwnerDeletion` to false in all owner references.
    async fn unblock(&self) -> Result<Verdict> {
        let object = self.stored.body.to_value(0);
        let mut owners = object.at(&["metadata", "ownerReferences"]).cloned().unwrap_or_default();
        for owner in owners.as_array_mut().into_iter().flatten() {
            owner.set_at(&["blockOwnerDeletion"], Value::Bool(false));
        }
        self.patch([("ownerReferences", owners)].into()).await
    }

    /// Removes a finalizer.
    async fn release(&self, finalizer: &str) -> Result<Verdict> {
        let all = finalizers(&self.stored).into_iter();
        let kept: Vec<Value> = all.filter(|name| name.as_str() != Some(finalizer)).collect();
        let kept = if kept.is_empty() { Value::Null } else { Value::Array(kept) };
        self.patch([("finalizers", kept)].into()).await
    }

    /// Merges `metadata` into the object, if it has not changed since it was read.
    async fn patch(&self, mut metadata: Value) -> Result<Verdict> {
        metadata.set_at(&["uid"], Value::from(&self.stored.meta.uid));
        metadata.set_at(&["resourceVersion"], Value::from(self.stored.revision.to_string()));
        self.own().patch(PatchKind::Merge, &json!({"metadata": metadata})).await.map(|()| Verdict::Done)
    }

    /// Deletes the object, if it does not change meanwhile.
    async fn delete(&self, policy: &'static str) -> Result<Verdict> {
        let meta = &self.stored.meta;
        let key = self.resource.key(&meta.namespace, &meta.name);
        // an object that was unblocked has another revision since
        let Some(LiveObject { stored, .. }) = LiveObject::of(self.context, &key, &meta.uid) else {
            return Ok(Verdict::Done);
        };
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy,
            "preconditions": {"uid": (meta.uid.clone()), "resourceVersion": (stored.revision.to_string())}
        });
        self.own().delete(&options).await.map(|()| Verdict::Done)
    }

    fn own(&self) -> OwnObject<'_> {
        let meta = &self.stored.meta;
        self.context.as_user(USER, &self.resource, &meta.namespace, &meta.name)
    }
}
