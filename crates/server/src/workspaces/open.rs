//! Makes the context of a workspace when it is first used, and the empty API that new workspaces begin from.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::authentication::Realm;
use base::{clock, task};
use machinery::{Release, Text};
use objects::{Key, Layout, Storage};
use parking_lot::Mutex;
use store::{Expected, Memory, Refused, Store, Write};
use tokio::sync::watch;

use super::definition::{GROUP, PLURAL};
use super::workspace::{Opened, Origin, Workspace, revision_of};
use super::{Pristine, Workspaces};
use crate::assembly::{Base, Beginning, Blueprint};
use crate::http::{BRANCHES, Edge, EdgeParts, InFlightMax, OpenCount};
use crate::verbs::control_plane::ControlPlane;

impl Workspaces {
    /// Enters a workspace that no request uses: makes its context. The error is one line.
    pub(super) async fn open(self: &Arc<Self>, workspace: &Arc<Workspace>) -> Result<(Arc<Opened>, Arc<()>), String> {
        let (workspaces, workspace) = (self.clone(), workspace.clone());
        // a client that leaves must not leave half a context behind
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

    /// The store of a workspace, which begins now if it has not yet.
    async fn origin(&self, workspace: &Workspace) -> Result<Origin, String> {
        if let Some(origin) = workspace.content()? {
            return Ok(origin);
        }
        let release = workspace.release().unwrap_or(self.parts.blueprint.runtime.release);
        let pristine = self.pristine(release).await?;
        let (store, objects) = (pristine.store.clone(), Arc::downgrade(&pristine.context.objects));
        let at = revision_of(&*store);
        workspace.begin(Origin { store, layout: Layout::own(), release, has_workspaces: false, objects, at });
        workspace.content()?.ok_or_else(|| "it has been deleted".to_owned())
    }

    async fn assemble(&self, workspace: &Workspace, origin: &Origin) -> Result<Opened, String> {
        let spec = workspace.spec();
        let pristine = self.pristine(spec.release.unwrap_or(origin.release)).await?;
        let blueprint = &pristine.blueprint;
        if origin.has_workspaces {
            hide_workspaces(&*origin.store, &origin.layout).await?;
        }
        let prefix = Text::from(format!("{BRANCHES}{}", workspace.name));
        let realm = Realm { path: prefix.clone(), id: workspace.uid.clone() };
        let storage = Storage { store: origin.store.clone(), layout: origin.layout.clone() };
        let frozen = origin.frozen().await;
        // another release has other objects at its start
        let base = match pristine.blueprint.runtime.release == origin.release {
            true => Some(pristine.base().await?),
            false => None,
        };
        let beginning = Beginning { storage, frozen, base, realm: Some(realm), observer: None };
        let assembled = blueprint.assemble(beginning).await?;
        let stop = watch::Sender::new(false);
        if !spec.template {
            assembled.start(blueprint, &stop.subscribe());
        }
        let limit = spec.limits.requests_in_flight;
        let of_workspace = InFlightMax { read_only: limit, mutating: limit };
        let open = Arc::new(OpenCount::new());
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
            prefix,
        });
        let (requests, watches) = Default::default();
        Ok(Opened { edge: Arc::new(edge), stop, open, used: Mutex::new(clock::instant()), requests, watches })
    }

    /// The empty API of a release, which is made when it is first needed.
    async fn pristine(&self, release: Release) -> Result<Arc<Pristine>, String> {
        let mut all = self.pristine.lock().await;
        if let Some(pristine) = all.get(&release) {
            return Ok(pristine.clone());
        }
        let blueprint = self.blueprint(release)?;
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let assembled = blueprint.assemble(Beginning::of(Storage::own(store.clone()))).await?;
        // once here instead of in every workspace
        assembled.controllers.finish_work(&assembled.context).await;
        // its controllers do not run, and no request is served
        let pristine = Arc::new(Pristine { blueprint, store, context: assembled.context });
        all.insert(release, pristine.clone());
        Ok(pristine)
    }

    /// What contexts of workspaces are made with. They have no client certificate for aggregated API servers: such a server trusts
    /// the users that its holder names, and the users of a workspace are what its owner makes them.
    fn blueprint(&self, release: Release) -> Result<Blueprint, String> {
        let (runtime, gates) = (self.parts.features)(release)?;
        let own = &self.parts.blueprint;
        Ok(Blueprint {
            plugins: own.plugins.clone(),
            service_addresses: own.service_addresses.clone(),
            authentication: own.authentication.clone(),
            modes: own.modes.clone(),
            proxy_identity: None,
            service_ranges: own.service_ranges.clone(),
            controllers: own.controllers.clone(),
            // the limits of requests in flight of each workspace keep one from another
            seats: None,
            runtime,
            gates,
            // a workspace is no server, so it has no Lease of one
            control_plane: own.control_plane.clone().map(|plane| ControlPlane { run: None, ..plane }),
            compaction_interval: own.compaction_interval,
        })
    }
}

impl Pristine {
    async fn base(&self) -> Result<Base, String> {
        let objects = self.context.objects.frozen_at(revision_of(&*self.store)).await;
        let objects = objects.ok_or("the objects of an empty API are not in memory")?;
        Ok(Base { context: self.context.clone(), objects })
    }
}

/// Removes workspaces and their kind from a fork of `default`, the only workspace that has them.
async fn hide_workspaces(store: &dyn Store, layout: &Layout) -> Result<(), String> {
    let snapshot = store.snapshot().await.map_err(|error| error.to_string())?;
    for entry in snapshot.entries {
        let Some(Key { group, plural, path }) = layout.find(&entry.key).map(|place| place.key) else { continue };
        let is_definition = plural == "customresourcedefinitions" && path == format!("{PLURAL}.{GROUP}");
        if group != GROUP && !is_definition {
            continue;
        }
        let removal = Write { key: entry.key, expected: Expected::At(entry.revision), value: None };
        if let Err(Refused::Failed(error)) = store.commit(removal).await {
            return Err(error.to_string());
        }
    }
    Ok(())
}
