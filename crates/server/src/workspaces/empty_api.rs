//! Makes the empty APIs that new workspaces begin from, one for each release.

use std::sync::Arc;

use access::flow::SeatSupply;
use futures_util::future::join_all;
use machinery::Release;
use objects::Storage;
use store::{BranchSource, Entry, Expected, Memory, Store, Write};

use super::label::pristine_id;
use super::manager::{EmptyApi, Workspaces};
use super::unusable::Unusable;
use crate::assembly::{ApiConfig, Base, Beginning};
use crate::testing;
use crate::verbs::Context;
use crate::verbs::control_plane::ControlPlane;

impl Workspaces {
    /// Makes the empty API of the server's own release ahead of time.
    pub(super) async fn prepare(self: Arc<Self>) {
        // ignored: it fails again for the first workspace, whose user gets the error
        let _ = self.empty_api(self.parts.api.runtime.release).await;
    }

    /// The empty API of a release. It is made when it is first needed.
    pub(super) async fn empty_api(&self, release: Release) -> Result<Arc<EmptyApi>, Unusable> {
        let mut all = self.empty_apis.lock().await;
        if let Some(known) = all.get(&release) {
            return Ok(known.clone());
        }
        let api = self.api_config(release)?;
        let in_memory = || Storage { store: Arc::new(Memory::default()), layout: self.layout().clone() };
        let storage = match &self.log {
            None => in_memory(),
            Some(log) => {
                let id = pristine_id(release);
                let store = match log.log.branch(id.as_bytes()) {
                    Some(store) => store,
                    None => {
                        // made in memory and then copied, because in the log each write would wait for a sync of its
                        // own
                        let made = self.make_empty(&api, in_memory()).await?;
                        let branch = log.log.begin(id.as_bytes(), BranchSource::Nothing, b"");
                        let branch = branch.ok_or("the store has no branches")?;
                        copy(&**made.objects.store(), &*branch).await?;
                        branch
                    }
                };
                Storage { store, ..in_memory() }
            }
        };
        let context = self.make_empty(&api, storage).await?;
        let made = Arc::new(EmptyApi { config: api, context });
        all.insert(release, made.clone());
        Ok(made)
    }

    /// Makes an empty API in a store, or completes one. The work of its controllers is done once, and it serves no
    /// requests.
    async fn make_empty(&self, api: &ApiConfig, storage: Storage) -> Result<Arc<Context>, Unusable> {
        let assembled = api.assemble(Beginning::of(storage)).await?;
        testing::keep_kinds(api.testing, &assembled.context).await?;
        api.progress.keep(&assembled.context).await?;
        // the work of the controllers is done here once instead of in every workspace
        assembled.controllers.finish_work(&assembled.context).await;
        Ok(assembled.context)
    }

    /// The configuration of workspaces. They do not get the client certificate for aggregated API servers:
    /// those trust the users that its holder names, and the owner of a workspace decides who its users are. For the
    /// same reason, their controllers do not get the key of the server's certificate authority.
    pub(super) fn api_config(&self, release: Release) -> Result<ApiConfig, Unusable> {
        let (runtime, gates) = (self.parts.config.features)(release)?;
        let own = &self.parts.api;
        Ok(ApiConfig {
            egress: self.parts.config.egress.clone(),
            proxy_identity: None,
            controllers: own.controllers.of_workspace(self.membership.get().cloned()),
            seats: self.seats.clone().map(SeatSupply::of),
            runtime,
            gates,
            // only servers have a Lease in the control plane, and a workspace is not one
            control_plane: own.control_plane.clone().map(|plane| ControlPlane { run: None, ..plane }),
            ..ApiConfig::clone(own)
        })
    }
}

impl EmptyApi {
    /// The state that contexts of workspaces share with this API.
    pub(super) async fn base(&self) -> Result<Base, Unusable> {
        let objects = &self.context.objects;
        let frozen = objects.frozen_at(objects.store().head().await?).await;
        let objects = frozen.ok_or("the objects of an empty API are not in memory")?;
        Ok(Base { context: self.context.clone(), objects })
    }
}

/// Copies the keys of a store to an empty store.
async fn copy(from: &dyn Store, to: &dyn Store) -> Result<(), Unusable> {
    let snapshot = from.snapshot().await?;
    let write = |Entry { key, value, .. }| to.commit(Write { key, expected: Expected::Absent, value: Some(value) });
    // awaited together, so that they share syncs
    let refused = join_all(snapshot.entries.into_iter().map(write)).await.into_iter().find_map(Result::err);
    refused.map_or(Ok(()), |refused| Err(format!("the empty API cannot be written: {refused:?}").into()))
}
