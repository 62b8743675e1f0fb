//! Makes and removes the copies that workspaces of a shared store consist of. Only the leader, which runs the
//! controllers, does so.
//!
//! The leader first writes the ID of the copy that it is about to make into the workspace's status (the claim). It
//! then makes the copy, and publishes it in the status only if the claim still stands. So a leader that has lost its
//! Lease without noticing publishes nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::clock;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use machinery::{Release, Result, Text, Value};
use objects::{Key, Layout};
use resource::Resource;
use store::{CopySource, Copying, Entry, Revision, StoreError};
use tokio::sync::watch;

use super::copies::{Copies, CopyStatus, id_of, origin_of};
use super::definition::{DEFAULT, ForkPoint, Spec, is_of_workspaces};
use super::manager::Workspaces;
use super::unusable::Unusable;
use super::workspace::Workspace;
use crate::verbs::{self, Context};
use crate::{controllers, limits};

/// Why a copy has not been made.
enum NotCopied {
    /// It can never be made.
    Failed(Unusable),
    /// It can perhaps be made later.
    Later(Unusable),
    /// The copy of this workspace, its source, has to be complete first.
    After(Text),
}

/// The claim on a workspace whose copy is to be made.
struct Claim {
    name: Text,
    uid: Text,
    spec: Spec,
    status: CopyStatus,
    /// The id of the copy.
    copy: String,
}

/// Where the content of a new workspace comes from.
enum CopyFrom {
    /// A new API, which has only the objects that every server creates.
    Empty,
    Home(Revision),
    /// A copy, at a revision or as it is.
    Copy(String, Option<Revision>),
}

/// While this server is the leader, makes and removes copies. Returns when `stop` becomes true.
pub async fn run(
    workspaces: Arc<Workspaces>,
    copies: Arc<Copies>,
    mut leads: watch::Receiver<bool>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            Ok(_) = leads.wait_for(|leads| *leads) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        tokio::select! {
            () = workspaces.lead(&copies) => {}
            _ = leads.wait_for(|leads| !*leads) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

impl Workspaces {
    async fn lead(self: &Arc<Self>, copies: &Copies) {
        copies.deleted.lock().clear();
        let all: Vec<Text> = self.state.lock().all.keys().cloned().collect();
        self.delete_ephemeral(copies).await;
        // claims from before this server became the leader are void: the former leader makes no more copies
        let mut abandoned: HashSet<Text> = all.iter().cloned().collect();
        self.mark(all);
        let mut running: FuturesUnordered<BoxFuture<'_, Option<Text>>> = FuturesUnordered::new();
        running.push(Box::pin(async {
            self.retried("copies of workspaces", || self.sweep_all(copies)).await;
            None
        }));
        let mut busy: HashSet<Text> = HashSet::new();
        let mut claims: HashMap<Text, String> = HashMap::new();
        let mut look = tokio::time::interval(limits::WORKSPACE_SWEEP);
        loop {
            let expiry = self.expire().await;
            for uid in std::mem::take(&mut *copies.deleted.lock()) {
                running.push(Box::pin(async move {
                    self.retried("copies of a workspace", || remove_all(copies, &uid)).await;
                    None
                }));
            }
            while busy.len() < limits::WORKSPACE_COPIES {
                let Some(name) = self.next_changed(&busy) else { break };
                busy.insert(name.clone());
                let takes_over = abandoned.remove(&name);
                running.push(Box::pin(async move {
                    self.copy_if_needed(copies, &name, takes_over).await;
                    Some(name)
                }));
            }
            tokio::select! {
                () = self.has_changed.notified() => {}
                Some(done) = running.next() => {
                    if let Some(name) = done {
                        busy.remove(&name);
                        self.wake_forks(&name);
                    }
                }
                () = tokio::time::sleep(expiry) => {}
                _ = look.tick() => {
                    let now = self.foreign_claims(copies);
                    abandoned.extend(now.iter().filter(|(name, id)| claims.get(*name) == Some(*id)).map(|(name, _)| name.clone()));
                    let waiting = std::mem::take(&mut self.state.lock().waiting).into_values().flatten();
                    self.mark(abandoned.iter().cloned().chain(waiting));
                    claims = now;
                }
            }
        }
    }

    /// Takes a changed workspace that no task is working on.
    fn next_changed(&self, busy: &HashSet<Text>) -> Option<Text> {
        let changed = &mut self.state.lock().changed;
        let name = changed.iter().find(|name| !busy.contains(*name))?.clone();
        changed.remove(&name);
        Some(name)
    }

    /// The claims of other servers. If a claim is still the same at the next look, its server is taken to have ended.
    fn foreign_claims(&self, copies: &Copies) -> HashMap<Text, String> {
        let Some((_, resource)) = self.kind() else { return HashMap::new() };
        let claim = |one: &Arc<Workspace>| {
            let status = CopyStatus::of(&*resource.collection.get(&one.name)?);
            (!status.copying.is_empty() && status.copier != copies.run).then(|| (one.name.clone(), status.copying))
        };
        self.all().iter().filter(|one| one.is_awaited()).filter_map(claim).collect()
    }

    /// Repeats `work` until it succeeds.
    async fn retried<F: Future<Output = Result<(), StoreError>>>(&self, what: &str, work: impl Fn() -> F) {
        while let Err(error) = work().await {
            tracing::warn!(%error, what, "cannot be removed; will retry");
            tokio::time::sleep(limits::WORKSPACE_COPY_RETRY).await;
        }
    }

    /// Deletes ephemeral workspaces that another run of a server has made.
    async fn delete_ephemeral(&self, copies: &Copies) {
        let Some((context, resource)) = self.kind() else { return };
        let (root, _) = resource.collection.latest();
        let is_lost = |object: &Value| {
            let copier = CopyStatus::read(object).copier;
            Spec::read(object).ephemeral && !copier.is_empty() && copier != copies.run
        };
        let lost =
            root.values().filter(|stored| is_lost(&stored.body.to_managed_value(stored.revision))).cloned().collect();
        if let Err(status) = verbs::delete_as_server(&context, &resource, lost).await {
            tracing::warn!(error = %status, "ephemeral workspaces of another server cannot be deleted");
        }
    }

    /// Makes the copy of a workspace if it needs one, and retries. With `takes_over`, the claim of another server is
    /// ignored.
    async fn copy_if_needed(&self, copies: &Copies, name: &Text, mut takes_over: bool) {
        let mut failures = 0;
        loop {
            let why = match self.copy_once(copies, name, takes_over).await {
                Ok(()) => return,
                Err((_, NotCopied::After(source))) => {
                    self.state.lock().waiting.entry(source).or_default().push(name.clone());
                    return;
                }
                Err((_, NotCopied::Later(why))) if failures < limits::WORKSPACE_COPY_ATTEMPTS => why,
                Err((None, NotCopied::Later(why) | NotCopied::Failed(why))) => why,
                Err((Some(claim), NotCopied::Later(why) | NotCopied::Failed(why))) => {
                    match self.report_failure(copies, &claim, &why).await {
                        Ok(()) => return,
                        Err(why) => why,
                    }
                }
            };
            // while etcd does not respond, failures do not count: the workspace is not their cause
            let is_healthy = self.parts.storage.store.health().is_ok();
            failures += usize::from(is_healthy);
            takes_over = true;
            tracing::debug!(
                error = why.with_causes(),
                name = name.as_str(),
                "a workspace cannot be copied yet; will retry"
            );
            tokio::time::sleep(limits::WORKSPACE_COPY_RETRY).await;
        }
    }

    async fn copy_once(
        &self,
        copies: &Copies,
        name: &Text,
        takes_over: bool,
    ) -> Result<(), (Option<Claim>, NotCopied)> {
        let later = |fault: Unusable| (None, NotCopied::Later(fault));
        let Some((context, resource)) = self.kind() else { return Ok(()) };
        context.objects.catch_up().await.map_err(|error| later(error.into()))?;
        let Some(stored) = resource.collection.get(name) else { return Ok(()) };
        let object = stored.body.to_managed_value(stored.revision);
        let (spec, status) = (Spec::read(&object), CopyStatus::read(&object));
        let is_claimed = !status.copying.is_empty() && status.copier != copies.run;
        if stored.meta.deleting || status.has_failed() || status.is_current(&spec) || is_claimed && !takes_over {
            return Ok(());
        }
        if let Some(name) = spec.from.as_deref().filter(|name| *name != DEFAULT && status.origin.is_empty())
            && let Some(source) = resource.collection.get(name)
            && is_being_made(&source.body.to_managed_value(source.revision))
        {
            return Err((None, NotCopied::After(name.into())));
        }
        let copy: String = clock::uuid().chars().filter(|digit| *digit != '-').take(16).collect();
        let claim = Claim { name: name.clone(), uid: stored.meta.uid.as_str().into(), spec, status, copy };
        let claimed = self.claim(copies, &claim).await.map_err(|status| later(status.into()))?;
        if !claimed {
            return Ok(());
        }
        let release = match self.make(&resource, &*copies.copying, &claim).await {
            Ok(release) => release,
            Err(why) => return Err((Some(claim), why)),
        };
        self.name_copy(&claim, release).await.map_err(|status| later(status.into()))?;
        sweep(copies, &context, &resource, &claim).await.map_err(|error| later(error.into()))
    }

    /// Writes the claim into the status, unless the workspace has changed since it was read. Returns whether the
    /// claim stands.
    async fn claim(&self, copies: &Copies, claim: &Claim) -> Result<bool> {
        let claimed = AtomicBool::new(false);
        let update = |object: &mut Value| {
            let is_same = object.str_at(&["metadata", "uid"]) == claim.uid.as_str()
                && object.str_at(&["status", "copying"]) == claim.status.copying
                && Spec::read(object).reset == claim.spec.reset;
            claimed.store(is_same, Ordering::Relaxed);
            if is_same {
                object.set_at(&["status", "copying"], Value::from(claim.copy.as_str()));
                object.set_at(&["status", "copier"], Value::from(copies.run.as_str()));
            }
        };
        self.change_status(&claim.name, update).await?;
        Ok(claimed.load(Ordering::Relaxed))
    }

    /// Makes the copy that is claimed, and the origin for resets if there is none. Returns the release that the copy
    /// emulates.
    async fn make(&self, resource: &Resource, copying: &dyn Copying, claim: &Claim) -> Result<Release, NotCopied> {
        let id = |copy: &str| id_of(&claim.uid, copy);
        let (from, release) = self.resolve(resource, claim).await?;
        let copy = id(&claim.copy);
        let keeps = |key: &Bytes| is_copied(self.layout(), key);
        let not_copied = |error: StoreError| match (error, &claim.spec.from, claim.spec.fork_point) {
            (StoreError::Compacted(_), Some(name), ForkPoint::At(revision)) => {
                NotCopied::Failed(Unusable::NotKept { name: name.clone(), revision })
            }
            (error, ..) => NotCopied::Later(Unusable::NotCopied(error)),
        };
        if !claim.status.content.is_empty() {
            copying.end(&id(&claim.status.content)).await.map_err(not_copied)?;
        }
        let source = match &from {
            CopyFrom::Empty => {
                let entries = self.empty_entries(release).await.map_err(NotCopied::Later)?;
                copying.copy(&copy, CopySource::Entries(entries), &keeps).await.map_err(not_copied)?;
                return Ok(release);
            }
            CopyFrom::Home(at) => CopySource::Store(*at),
            CopyFrom::Copy(from, at) => CopySource::Copy(from, *at),
        };
        let known = claim.status.origin.as_str();
        let origin = id(&if known.is_empty() { origin_of(&claim.copy) } else { known.to_owned() });
        if known.is_empty() {
            copying.copy(&origin, source, &keeps).await.map_err(not_copied)?;
        }
        copying.copy(&copy, CopySource::Copy(&origin, None), &keeps).await.map_err(not_copied)?;
        Ok(release)
    }

    /// Determines what a workspace is copied from, and the release that it emulates.
    async fn resolve(&self, resource: &Resource, claim: &Claim) -> Result<(CopyFrom, Release), NotCopied> {
        let (spec, of_server) = (&claim.spec, self.parts.api.runtime.release);
        let release = |of_source: Option<Release>| spec.release.or(of_source).unwrap_or(of_server);
        let failed = |why: Unusable| Err(NotCopied::Failed(why));
        let Some(name) = &spec.from else { return Ok((CopyFrom::Empty, release(claim.status.release))) };
        if !claim.status.origin.is_empty() {
            let origin = CopyFrom::Copy(id_of(&claim.uid, &claim.status.origin), None);
            return Ok((origin, release(claim.status.release)));
        }
        if let ForkPoint::Origin(Some(_)) = spec.fork_point {
            return failed("the origin of a workspace has no resourceVersion in etcd".into());
        }
        let source = if name == DEFAULT { None } else { Some(source_of(resource, claim, name)?) };
        let is_of_origin = matches!(spec.fork_point, ForkPoint::Origin(_));
        if source.is_none() && is_of_origin {
            return failed(Unusable::BeganEmpty);
        }
        if let Some((uid, status)) = source.as_ref().filter(|_| is_of_origin) {
            let from = match status.origin.as_str() {
                "" => CopyFrom::Empty,
                origin => CopyFrom::Copy(id_of(uid, origin), None),
            };
            return Ok((from, release(status.release)));
        }
        let head = self.parts.storage.store.head().await.map_err(|error| NotCopied::Later(error.into()))?;
        let at = if let ForkPoint::At(at) = spec.fork_point { at } else { head };
        if at > head {
            return failed(Unusable::NotAt { name: name.clone(), head, wanted: at });
        }
        Ok(match source {
            None => (CopyFrom::Home(at), release(None)),
            Some((uid, status)) => (CopyFrom::Copy(id_of(&uid, &status.content), Some(at)), release(status.release)),
        })
    }

    /// The stored objects of a new API.
    async fn empty_entries(&self, release: Release) -> Result<Vec<Entry>, Unusable> {
        let empty_api = self.empty_api(release).await?;
        Ok(empty_api.context.objects.store().snapshot().await?.entries)
    }

    /// Publishes a complete copy in the status, if the claim still stands.
    async fn name_copy(&self, claim: &Claim, release: Release) -> Result<()> {
        let (url, host) = (self.url_of(&claim.name), self.host_of(&claim.name));
        let update = |object: &mut Value| {
            if object.str_at(&["status", "copying"]) != claim.copy {
                return;
            }
            let mut set = |field: &str, value: &str| match value {
                "" => drop(object.remove_at(&["status", field])),
                value => object.set_at(&["status", field], Value::from(value)),
            };
            set("phase", "Ready");
            set("url", &url);
            set("host", &host);
            set("content", &claim.copy);
            set("copying", "");
            set("reset", &claim.spec.reset);
            set("kubernetesVersion", &release.to_string());
            if claim.spec.from.is_some() && claim.status.origin.is_empty() {
                set("origin", &origin_of(&claim.copy));
            }
        };
        self.change_status(&claim.name, update).await
    }

    /// Writes the reason why a workspace cannot be used into its status.
    async fn report_failure(&self, copies: &Copies, claim: &Claim, why: &Unusable) -> Result<(), Unusable> {
        let update = |object: &mut Value| {
            if object.str_at(&["status", "copying"]) == claim.copy {
                object.remove_at(&["status", "copying"]);
                object.set_at(&["status", "phase"], Value::from("Failed"));
                object.set_at(&["status", "message"], Value::from(why.to_string()));
            }
        };
        self.change_status(&claim.name, update).await?;
        tracing::warn!(error = why.with_causes(), name = claim.name.as_str(), "a workspace cannot be copied");
        let Some((context, resource)) = self.kind() else { return Ok(()) };
        Ok(sweep(copies, &context, &resource, claim).await?)
    }

    /// Removes all copies that no workspace names.
    async fn sweep_all(&self, copies: &Copies) -> Result<(), StoreError> {
        let Some((context, resource)) = self.kind() else { return Ok(()) };
        let mut ids = copies.copying.copies("").await?;
        context.objects.catch_up().await?;
        let (root, _) = resource.collection.latest();
        let named: HashMap<&str, CopyStatus> =
            root.values().map(|stored| (stored.meta.uid.as_str(), CopyStatus::of(stored))).collect();
        let is_named = |(uid, copy): (&str, &str)| named.get(uid).is_some_and(|status| status.names(copy));
        ids.retain(|id| !id.split_once('/').is_some_and(is_named));
        remove(copies, &ids).await
    }
}

/// Removes the copies of a workspace that its status no longer names.
async fn sweep(copies: &Copies, context: &Context, resource: &Resource, claim: &Claim) -> Result<(), StoreError> {
    let mut ids = copies.copying.copies(&id_of(&claim.uid, "")).await?;
    // a copy is claimed before it is made, so the status now names every listed copy that can still be published
    context.objects.catch_up().await?;
    let stored = resource.collection.get(&claim.name).filter(|stored| stored.meta.uid == claim.uid.as_str());
    let status = stored.as_deref().map(CopyStatus::of).unwrap_or_default();
    ids.retain(|id| !id.split_once('/').is_some_and(|(_, copy)| status.names(copy)));
    remove(copies, &ids).await
}

/// Removes the copies of a deleted workspace.
async fn remove_all(copies: &Copies, uid: &str) -> Result<(), StoreError> {
    let ids = copies.copying.copies(&id_of(uid, "")).await?;
    remove(copies, &ids).await
}

async fn remove(copies: &Copies, ids: &[String]) -> Result<(), StoreError> {
    for id in ids {
        copies.copying.remove(id).await?;
    }
    Ok(())
}

/// Whether a workspace waits for its copy, and has not failed.
fn is_being_made(object: &Value) -> bool {
    let status = CopyStatus::read(object);
    !status.has_failed() && !status.is_current(&Spec::read(object))
}

/// The uid and the status of a source. Fails unless the source can be copied now.
fn source_of(resource: &Resource, claim: &Claim, name: &str) -> Result<(String, CopyStatus), NotCopied> {
    let failed = |why: Unusable| Err(NotCopied::Failed(why));
    let Some(stored) = resource.collection.get(name) else {
        return failed(Unusable::NoSource(name.to_owned()));
    };
    let object = stored.body.to_managed_value(stored.revision);
    let (spec, status) = (Spec::read(&object), CopyStatus::read(&object));
    if spec.ephemeral && !claim.spec.ephemeral {
        return failed(Unusable::Ephemeral(name.to_owned()));
    }
    if status.has_failed() {
        return failed(Unusable::NotReady(name.to_owned()));
    }
    if !status.is_current(&spec) {
        return Err(NotCopied::After(name.into()));
    }
    Ok((stored.meta.uid.as_str().to_owned(), status))
}

/// Whether a key is copied. Workspace objects and their CRD are not, because only `default` has them, nor are Leases
/// of controllers, because a server holds them.
fn is_copied(layout: &Layout, key: &Bytes) -> bool {
    let is_kept = |key: &Key| !is_of_workspaces(key) && !controllers::is_lease(&key.group, &key.plural, &key.path);
    layout.find(key).is_some_and(|place| is_kept(&place.key))
}
