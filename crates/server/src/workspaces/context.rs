//! Makes the context of a workspace when a request first needs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::authentication::Realm;
use base::{clock, task};
use futures_util::future::join_all;
use machinery::{Release, Text};
use objects::{Key, Objects, Storage};
use parking_lot::Mutex;
use resource::builtin::{DEFINITION_GROUP, DEFINITIONS};
use store::{Expected, Refused, StoreError, Write};
use tokio::sync::watch;
use tracing::Instrument as _;

use super::capacity::WorkspaceCapacity;
use super::content::{Begun, Contents};
use super::definition::{GROUP, PLURAL, RunningControllers, Spec, is_of_workspaces};
use super::manager::{EmptyApi, Workspaces};
use super::unusable::Unusable;
use super::workspace::{Entered, Opened, Workspace};
use crate::assembly::{ApiConfig, Beginning};
use crate::http::{BRANCHES, Edge, EdgeParts, InFlightMax, OpenCount, RequestConfig};
use crate::testing::{self, Testing};
use crate::verbs;

impl Workspaces {
    /// Makes the context of a workspace that has none, and enters it.
    pub(super) async fn open(self: &Arc<Self>, workspace: &Arc<Workspace>) -> Result<Entered, Unusable> {
        let (workspaces, workspace) = (self.clone(), workspace.clone());
        // runs to its end even if the client disconnects, because half a context would remain otherwise
        task::finish("workspace", async move {
            let _turn = workspace.turn.lock().await;
            if let Some(entered) = workspace.enter() {
                return Ok(entered);
            }
            let mut content = workspace.content();
            if let Contents::Empty(_) = content {
                let release = workspace.release().unwrap_or(workspaces.parts.api.runtime.release);
                workspace.begin(&*workspaces.empty_api(release).await?);
                content = workspace.content();
            }
            let begun = workspace.backing.open(content.clone()).await?.ok_or("it has been deleted")?;
            let opened = Arc::new(workspaces.assemble(&workspace, &begun).await?);
            // entered first, since a context that nothing uses may be dropped at once
            let entered = Entered::of(opened.clone());
            workspace.set_opened(opened, &content);
            Ok(entered)
        })
        .await
    }

    /// The configuration of an API whose controllers do not run; `None` if they do.
    fn without_controllers(&self, spec: &Spec, empty_api: &EmptyApi) -> Result<Option<ApiConfig>, Unusable> {
        if spec.controllers == RunningControllers::All {
            return Ok(None);
        }
        let own = self.api_config(empty_api.config.runtime.release)?;
        Ok(Some(ApiConfig { controllers: own.controllers.clone().at_rest(), ..own }))
    }

    /// How the requests of a workspace are served.
    fn request_config(&self, spec: &Spec, release: Release) -> RequestConfig {
        let mut requests = self.parts.requests.clone();
        let limit = spec.limits.requests_in_flight;
        if limit > 0 {
            requests.inflight_max = InFlightMax { read_only: limit, mutating: limit };
        }
        requests.compatible_minor = requests.compatible_minor.min(release.minor() - 1);
        requests
    }

    /// Makes the context of a workspace, with its controllers and the entry of its requests.
    async fn assemble(&self, workspace: &Arc<Workspace>, begun: &Begun) -> Result<Opened, Unusable> {
        let spec = workspace.spec();
        let empty_api = self.empty_api(spec.release.unwrap_or(begun.release)).await?;
        let at_rest = self.without_controllers(&spec, &empty_api)?;
        let api = at_rest.as_ref().unwrap_or(&empty_api.config);
        let prefix = Text::from(format!("{BRANCHES}{}", workspace.name));
        let realm = Realm { name: workspace.name.clone(), path: prefix.clone(), id: workspace.uid.clone() };
        let storage = Storage { store: begun.store.clone(), layout: self.layout().clone() };
        let frozen = begun.frozen().await;
        let base = Some(empty_api.base().await?);
        // another release creates other objects when it starts
        let is_complete = begun.is_complete && api.runtime.release == begun.release;
        let requests = self.request_config(&spec, api.runtime.release);
        let testing = api.testing.then(|| Testing::new(requests.timeout, workspace.observations.clone()));
        let observers = testing.iter().map(Testing::observer).collect();
        let beginning = Beginning { storage, frozen, base, is_complete, realm: Some(realm), observers };
        let clock = testing.as_ref().map(|testing| testing.clock().clone());
        // every line of the log names the workspace, including lines of background tasks
        let span = tracing::error_span!("workspace", name = %workspace.name);
        let assembling = clock::within(clock.clone(), api.assemble(beginning)).instrument(span.clone());
        let assembled = assembling.await?;
        if begun.has_workspaces {
            hide_workspaces(&assembled.context.objects).await?;
        }
        let stop = watch::Sender::new(false);
        if !is_complete {
            testing::keep_kinds(testing.is_some(), &assembled.context).await?;
            api.progress.keep(&assembled.context).await?;
        }
        // the cluster id is the workspace's uid, so that it stays the same after a reset and on every server
        if let Err(status) = verbs::identify(&assembled.context, &workspace.uid).await {
            tracing::warn!(error = %status, name = %workspace.name, "a workspace has the cluster id of its source");
        }
        testing.iter().for_each(|testing| testing::start(testing, &assembled, stop.subscribe()));
        if !spec.template {
            span.in_scope(|| clock::scoped(clock.as_ref(), || assembled.start(api, &stop.subscribe())));
        }
        let open = Arc::new(OpenCount::new());
        let capacity = WorkspaceCapacity::new(Arc::downgrade(workspace), Arc::downgrade(&assembled.context.objects));
        let edge = Edge::new(EdgeParts {
            context: assembled.context,
            health: self.parts.health.clone(),
            open: open.clone(),
            stop: stop.subscribe(),
            config: requests,
            flags: BTreeMap::new(),
            interceptor: testing.map(Testing::interceptor),
            clock,
            capacity: Some(Arc::new(capacity)),
            logs: None,
            prefix,
        });
        let (requests, watches) = Default::default();
        let opened =
            Opened { edge: Arc::new(edge), stop, open, used: Mutex::new(clock::instant()), requests, watches, span };
        opened.limit_to(&spec.limits);
        Ok(opened)
    }
}

/// Removes Workspace objects and their CRD from a fork of `default`: no other workspace has them.
async fn hide_workspaces(objects: &Objects) -> Result<(), StoreError> {
    let mut removals = vec![];
    for (group, plural) in [(GROUP, PLURAL), (DEFINITION_GROUP, DEFINITIONS)] {
        let (group, plural) = (Text::from(group), Text::from(plural));
        for (path, stored) in &objects.collection(&group, &plural).latest().0 {
            let key = Key { group: group.clone(), plural: plural.clone(), path: path.clone() };
            if is_of_workspaces(&key) {
                let (key, expected) = (objects.layout().place(&key).bytes, Expected::At(stored.revision));
                removals.push(objects.store().commit(Write { key, expected, value: None }));
            }
        }
    }
    // awaited together, so that they share syncs
    for removed in join_all(removals).await {
        match removed {
            Ok(revision) => objects.wait_for(revision).await,
            Err(Refused::Conflict(_)) => {}
            Err(Refused::Failed(error)) => return Err(error),
        }
    }
    Ok(())
}
