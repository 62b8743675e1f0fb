//! Workspaces: whole APIs of their own below `/clusters/NAME`, each with its objects, CRDs, RBAC, controllers and revisions.
//!
//! The API at `/` is the workspace `default`. The others are objects of `workspaces.pintle.dev` in it. A workspace
//! begins as a fork of another workspace or of an empty API, and shares objects with its source until either side
//! changes them. Lower layers know nothing of workspaces: each has a store and, while it is used, a context of its
//! own.

mod backing;
mod capacity;
mod content;
mod context;
mod controller;
mod copier;
mod copies;
mod definition;
mod empty_api;
mod gate;
mod kubeconfig;
mod label;
mod log;
mod manager;
mod memory;
mod recovery;
mod rewriting;
#[cfg(test)]
mod tests;
mod unusable;
mod workspace;

use std::sync::Arc;

use base::task;
use tokio::sync::watch;

use crate::assembly::StartError;
use crate::controllers::Membership;
use crate::http::{Branches, Edge};
use log::InLog;

pub use kubeconfig::kubeconfig;
pub use label::is_pristine;
pub use manager::{Parts, WorkspaceConfig, Workspaces};
use recovery::FoundWorkspaces;
pub use recovery::{workspace_of, workspaces_in};

/// Serves the workspaces besides `default` until `stop` becomes true. `leads` says whether this server runs the
/// controllers of `default`.
pub async fn start(
    workspaces: Option<Arc<Workspaces>>,
    home: &Arc<Edge>,
    leads: watch::Receiver<bool>,
    stop: watch::Receiver<bool>,
) -> Result<Option<Arc<dyn Branches>>, StartError> {
    let Some(workspaces) = workspaces else { return Ok(None) };
    let _ = workspaces.home.set(Arc::downgrade(home));
    let _ = home.context.write_rules.set(definition::WRITE_RULES);
    controller::create_definition(&home.context).await?;
    if workspaces.log.is_none() {
        // a server in memory is there for tests: made ahead of time, because the first test would wait for the empty
        // API longer than for the start of the server
        task::spawn("empty API", workspaces.clone().prepare());
    }
    if let Some(copies) = workspaces.copies.clone() {
        if !workspaces.parts.api.controllers.alone {
            let _ = workspaces.membership.set(Membership::begin(&home.context, &stop));
        }
        task::spawn("copies of workspaces", copier::run(workspaces.clone(), copies, leads.clone(), stop.clone()));
        task::spawn("workspaces", controller::run_copied(workspaces.clone(), leads, stop));
    } else {
        let FoundWorkspaces { kept, lost } = workspaces.found(&home.context.objects);
        if let Some(InLog { log }) = workspaces.log.as_deref() {
            workspaces.check_keys(&**log, &kept).await?;
            workspaces.restore(&**log, kept);
        }
        task::spawn("workspaces", controller::run(workspaces.clone(), lost, stop));
    }
    Ok(Some(workspaces))
}
