//! Makes the context of a workspace when it is first used, and the empty APIs that new workspaces begin from.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::authentication::Realm;
use access::flow::SeatSupply;
use base::{clock, task};
use futures_util::future::join_all;
use machinery::{Release, Text};
use objects::{Key, Layout, Storage};
use parking_lot::Mutex;
use store::{BranchSource, Branching, Expected, Memory, Refused, Store, Write};
use tokio::sync::watch;
use tracing::Instrument as _;

use super::definition::{GROUP, PLURAL, Spec};
use super::label::{Label, pristine_id};
use super::room::WorkspaceRoom;
use super::workspace::{Fork, Opened, Origin, Workspace, revision_of};
use super::{Pristine, Workspaces};
use crate::assembly::{Base, Beginning, Blueprint};
use crate::http::{BRANCHES, Edge, EdgeParts, InFlightMax, OpenCount};
use crate::testing::{self, Testing};
use crate::verbs::control_plane::ControlPlane;
use crate::verbs::{self, Context};

impl Workspaces {
    /// Makes the context of a workspace that has none, and enters it. Fails with a one-line message.
    pub(super) async fn open(self: &Arc<Self>, workspace: &Arc<Workspace>) -> Result<(Arc<Opened>, Arc<()>), String> {
        let (workspaces, workspace) = (self.clone(), workspace.clone());
        // runs to its end even if the client disconnects, because half a context would remain otherwise
        task::finish("workspace", async move {
            let _turn = workspace.turn.lock().await;
            if let Some(entered) = workspace.enter() {
                return Ok(entered);
            }
            let origin = workspaces.origin(&workspace).await?;
            let opened = Arc::new(workspaces.assemble(&workspace, &origin).await?);
            let guard = opened.requests.clone();
            workspace.set_opened(opened.clone(), &origin.store);
            Ok((opened, guard))
        })
        .await
    }

    /// The store of a workspace. If the workspace has not begun, it begins now.
    async fn origin(&self, workspace: &Workspace) -> Result<Origin, String> {
        if let Some((id, release)) = workspace.copy() {
            return self.open_copy(workspace, &id, release).await;
        }
        if let Some(origin) = workspace.content()? {
            return Ok(origin);
        }
        let release = workspace.release().unwrap_or(self.parts.blueprint.runtime.release);
        let pristine = self.pristine(release).await?;
        let home = self.home().ok_or("the server is stopping")?;
        workspace.begin(|spec| self.begin_empty(&pristine, home.context.objects.store().branching(), workspace, spec));
        workspace.content()?.ok_or_else(|| "it has been deleted".to_owned())
    }

    /// A fork of an empty API.
    fn begin_empty(
        &self,
        pristine: &Pristine,
        log: Option<&dyn Branching>,
        workspace: &Workspace,
        spec: &Spec,
    ) -> Result<Fork, String> {
        let (release, objects) = (pristine.blueprint.runtime.release, &pristine.context.objects);
        let (store, layout) = (objects.store().clone(), objects.layout().clone());
        let (at, objects) = (Some(revision_of(&*store)), Arc::downgrade(objects));
        let origin = Origin { store, layout, release, has_workspaces: false, is_complete: true, objects, at };
        let Some(log) = log.filter(|_| !spec.ephemeral) else { return Ok(Fork::Of(origin)) };
        let label = Label { release: Some(release), has_workspaces: false, has_begun: true, reset: spec.reset.clone() };
        let id = pristine_id(release);
        let store = log.begin(workspace.uid.as_bytes(), BranchSource::Branch(id.as_bytes(), None), &label.encode());
        let store = store.ok_or("its store cannot be forked")?;
        Ok(Fork::Kept(Origin { store, ..origin }))
    }

    async fn assemble(&self, workspace: &Arc<Workspace>, origin: &Origin) -> Result<Opened, String> {
        let spec = workspace.spec();
        let pristine = self.pristine(spec.release.unwrap_or(origin.release)).await?;
        let blueprint = &pristine.blueprint;
        if origin.has_workspaces {
            hide_workspaces(&*origin.store, &origin.layout).await?;
        }
        let prefix = Text::from(format!("{BRANCHES}{}", workspace.name));
        let realm = Realm { name: workspace.name.clone(), path: prefix.clone(), id: workspace.uid.clone() };
        let storage = Storage { store: origin.store.clone(), layout: origin.layout.clone() };
        let frozen = origin.frozen().await;
        let base = Some(pristine.base().await?);
        // another release creates other objects when it starts
        let is_complete = origin.is_complete && pristine.blueprint.runtime.release == origin.release;
        let testing = self.parts.testing.then(|| Testing::new(self.parts.request_timeout, workspace.kept.clone()));
        let observers = testing.iter().map(Testing::observer).collect();
        let beginning = Beginning { storage, frozen, base, is_complete, realm: Some(realm), observers };
        let clock = testing.as_ref().map(|testing| testing.clock().clone());
        // every line of the log names the workspace, including lines of background tasks
        let span = tracing::error_span!("workspace", name = %workspace.name);
        let assembling = clock::within(clock.clone(), blueprint.assemble(beginning)).instrument(span.clone());
        let assembled = assembling.await?;
        let stop = watch::Sender::new(false);
        if !is_complete {
            testing::keep_kinds(testing.is_some(), &assembled.context).await?;
        }
        // the cluster id is the workspace's uid, so that it stays the same after a reset and on every server
        if let Err(status) = verbs::identify(&assembled.context, &workspace.uid).await {
            tracing::warn!(error = %status, name = %workspace.name, "a workspace has the cluster id of its source");
        }
        testing.iter().for_each(|testing| testing::start(testing, &assembled, stop.subscribe()));
        if !spec.template {
            span.in_scope(|| clock::scoped(clock.as_ref(), || assembled.start(blueprint, &stop.subscribe())));
        }
        let limit = spec.limits.requests_in_flight;
        let of_workspace = InFlightMax { read_only: limit, mutating: limit };
        let open = Arc::new(OpenCount::new());
        let room = WorkspaceRoom::new(Arc::downgrade(workspace), Arc::downgrade(&assembled.context.objects));
        let edge = Edge::new(EdgeParts {
            context: assembled.context,
            health: self.parts.health.clone(),
            open: open.clone(),
            stop: stop.subscribe(),
            request_timeout: self.parts.request_timeout,
            inflight_max: if limit > 0 { of_workspace } else { self.parts.inflight_max },
            flags: BTreeMap::new(),
            compatible_minor: self.parts.compatible_minor.min(blueprint.runtime.release.minor() - 1),
            audit: self.parts.audit.clone(),
            interceptor: testing.map(Testing::interceptor),
            clock,
            capacity: Some(Arc::new(room)),
            prefix,
        });
        let (requests, watches) = Default::default();
        let opened =
            Opened { edge: Arc::new(edge), stop, open, used: Mutex::new(clock::instant()), requests, watches, span };
        opened.limit_to(&spec.limits);
        Ok(opened)
    }

    /// Makes the empty API of the server's own release ahead of time.
    pub(super) async fn prepare(self: Arc<Self>) {
        // ignored: it fails again for the first workspace, whose user gets the error
        let _ = self.pristine(self.parts.blueprint.runtime.release).await;
    }

    /// The empty API of a release. It is made when it is first needed.
    pub(super) async fn pristine(&self, release: Release) -> Result<Arc<Pristine>, String> {
        let mut all = self.pristine.lock().await;
        if let Some(pristine) = all.get(&release) {
            return Ok(pristine.clone());
        }
        let blueprint = self.blueprint(release)?;
        let home = self.home().ok_or("the server is stopping")?;
        let context = match home.context.objects.store().branching() {
            None => {
                let storage = Storage { store: Arc::new(Memory::default()), layout: self.layout() };
                self.make_empty(&blueprint, storage).await?
            }
            Some(log) => {
                let (id, layout) = (pristine_id(release), self.layout());
                let store = match log.branch(id.as_bytes()) {
                    Some(store) => store,
                    None => {
                        // made in memory and then copied, because in the log each write would wait for a sync of its
                        // own
                        let storage = Storage { store: Arc::new(Memory::default()), layout: layout.clone() };
                        let made = self.make_empty(&blueprint, storage).await?;
                        let branch = log.begin(id.as_bytes(), BranchSource::Nothing, b"");
                        let branch = branch.ok_or("the store has no branches")?;
                        copy(&**made.objects.store(), &*branch).await?;
                        branch
                    }
                };
                self.make_empty(&blueprint, Storage { store, layout }).await?
            }
        };
        let pristine = Arc::new(Pristine { blueprint, context });
        all.insert(release, pristine.clone());
        Ok(pristine)
    }

    /// Makes an empty API in a store, or completes one. The work of its controllers is done once, and it serves no
    /// requests.
    async fn make_empty(&self, blueprint: &Blueprint, storage: Storage) -> Result<Arc<Context>, String> {
        let assembled = blueprint.assemble(Beginning::of(storage)).await?;
        testing::keep_kinds(self.parts.testing, &assembled.context).await?;
        // the work of the controllers is done here once instead of in every workspace
        assembled.controllers.finish_work(&assembled.context).await;
        Ok(assembled.context)
    }

    /// The blueprint of workspaces' contexts. They do not get the client certificate for aggregated API servers:
    /// those trust the users that its holder names, and the owner of a workspace decides who its users are. For the
    /// same reason, their controllers do not get the key of the server's certificate authority.
    pub(super) fn blueprint(&self, release: Release) -> Result<Blueprint, String> {
        let (runtime, gates) = (self.parts.features)(release)?;
        let own = &self.parts.blueprint;
        Ok(Blueprint {
            plugins: own.plugins.clone(),
            outgoing: own.outgoing,
            service_addresses: own.service_addresses.clone(),
            egress: self.parts.egress.clone(),
            authentication: own.authentication.clone(),
            modes: own.modes.clone(),
            proxy_identity: None,
            service_ranges: own.service_ranges.clone(),
            controllers: own.controllers.of_workspace(self.membership.get().cloned()),
            seats: self.seats.clone().map(SeatSupply::of),
            runtime,
            gates,
            // only servers have a Lease in the control plane, and a workspace is not one
            control_plane: own.control_plane.clone().map(|plane| ControlPlane { run: None, ..plane }),
            compaction_interval: own.compaction_interval,
            has_manifests: own.has_manifests,
        })
    }
}

impl Pristine {
    async fn base(&self) -> Result<Base, String> {
        let objects = &self.context.objects;
        let frozen = objects.frozen_at(revision_of(&**objects.store())).await;
        let objects = frozen.ok_or("the objects of an empty API are not in memory")?;
        Ok(Base { context: self.context.clone(), objects })
    }
}

/// Copies the keys of a store to an empty store. The writes are awaited together, so that they share syncs.
async fn copy(from: &dyn Store, to: &dyn Store) -> Result<(), String> {
    let snapshot = from.snapshot().await.map_err(|error| error.to_string())?;
    let writes = snapshot
        .entries
        .into_iter()
        .map(|entry| to.commit(Write { key: entry.key, expected: Expected::Absent, value: Some(entry.value) }));
    let refused = join_all(writes).await.into_iter().find_map(Result::err);
    refused.map_or(Ok(()), |refused| Err(format!("the empty API cannot be written: {refused:?}")))
}

/// Removes Workspace objects and their CRD from a fork of `default`: no other workspace has them.
async fn hide_workspaces(store: &dyn Store, layout: &Layout) -> Result<(), String> {
    let snapshot = store.snapshot().await.map_err(|error| error.to_string())?;
    let mut removals = vec![];
    for entry in snapshot.entries {
        let Some(Key { group, plural, path }) = layout.find(&entry.key).map(|place| place.key) else { continue };
        let is_definition = plural == "customresourcedefinitions" && path == format!("{PLURAL}.{GROUP}");
        if group != GROUP && !is_definition {
            continue;
        }
        let removal = Write { key: entry.key, expected: Expected::At(entry.revision), value: None };
        removals.push(store.commit(removal));
    }
    // awaited together, so that they share syncs
    let failed = join_all(removals).await.into_iter().find_map(|done| match done {
        Err(Refused::Failed(error)) => Some(error.to_string()),
        _ => None,
    });
    failed.map_or(Ok(()), Err)
}
