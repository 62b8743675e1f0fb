//! Writes the status of workspaces, deletes expired ones, and drops contexts that no request uses.

use std::sync::Arc;
use std::time::Duration;

use base::clock::{self, Follower};
use base::task;
use futures_util::FutureExt as _;
use machinery::{Result, Text, Value, json};
use objects::Stored;
use tokio::sync::watch;

use super::definition;
use super::manager::Workspaces;
use super::workspace::Workspace;
use crate::limits;
use crate::verbs::{self, Context};

/// The status message of a template without content. A template cannot be unsealed, so it stays true.
const EMPTY_TEMPLATE: &str =
    "the template is empty: it was imported without its content, or sealed before anything was written to it";

/// Creates the CRD of workspaces in `default`, or brings it up to date.
pub async fn create_definition(context: &Context) -> Result<()> {
    verbs::keep_definitions(context, vec![definition::definition()?]).await
}

/// Runs until `stop` becomes true.
pub async fn run(workspaces: Arc<Workspaces>, lost: Vec<Arc<Stored>>, mut stop: watch::Receiver<bool>) {
    workspaces.delete_lost(lost).await;
    let mut sweep = tokio::time::interval(limits::WORKSPACE_SWEEP);
    let mut follower = Follower::new();
    loop {
        let expiry = workspaces.expire().await;
        tokio::select! {
            () = workspaces.has_changed.notified() => workspaces.report_changed().await,
            () = tokio::time::sleep(expiry) => {}
            () = follower.changed() => {}
            _ = sweep.tick() => {
                workspaces.mark(workspaces.drop_idle());
                workspaces.report_changed().await;
            }
            _ = stop.changed() => return workspaces.close(),
        }
    }
}

/// In a shared store: drops idle contexts and writes the usage of workspaces, until `stop` becomes true.
pub async fn run_copied(workspaces: Arc<Workspaces>, leads: watch::Receiver<bool>, mut stop: watch::Receiver<bool>) {
    let mut sweep = tokio::time::interval(limits::WORKSPACE_SWEEP);
    loop {
        tokio::select! {
            _ = sweep.tick() => {
                for name in workspaces.drop_idle() {
                    workspaces.report_usage(&name).await;
                }
                if !*leads.borrow() {
                    // a server that begins to lead processes all workspaces anyway
                    workspaces.state.lock().changed.clear();
                    workspaces.copies.iter().for_each(|copies| copies.deleted.lock().clear());
                }
            }
            _ = stop.changed() => return workspaces.close(),
        }
    }
}

impl Workspaces {
    /// Deletes the ephemeral workspaces of an earlier run of the server: their content was in its memory.
    async fn delete_lost(&self, lost: Vec<Arc<Stored>>) {
        let Some((context, resource)) = self.kind() else { return };
        if let Err(status) = verbs::delete_as_server(&context, &resource, lost).await {
            tracing::warn!(error = %status, "workspaces of the previous run of the server cannot be deleted");
        }
    }

    /// Deletes expired workspaces, and returns the time until the next one expires.
    pub(super) async fn expire(&self) -> Duration {
        let Some((context, resource)) = self.kind() else { return limits::WORKSPACE_SWEEP };
        let now = clock::now_micros() / 1000;
        let over = {
            let ends = &mut self.state.lock().ends;
            let later = ends.split_off(&(now + 1, Text::default()));
            std::mem::replace(ends, later)
        };
        let is_over = |name: &Text| self.workspace(name)?.spec().end.filter(|end| *end <= now);
        let over = over.iter().filter(|(_, name)| is_over(name).is_some());
        let over: Vec<_> = over.filter_map(|(_, name)| resource.collection.get(name)).collect();
        if let Err(status) = verbs::delete_as_server(&context, &resource, over.clone()).await {
            tracing::warn!(error = %status, "workspaces whose time is over cannot be deleted; will retry");
            let again = now + i64::try_from(limits::WORKSPACE_SWEEP.as_millis()).unwrap_or(i64::MAX);
            self.state.lock().ends.extend(over.iter().map(|stored| (again, stored.meta.name.as_str().into())));
        }
        let next = self.state.lock().ends.first().map(|(end, _)| end.saturating_sub(now));
        let next = next.and_then(|left| u64::try_from(left).ok()).map(Duration::from_millis);
        next.map_or(limits::WORKSPACE_SWEEP, |left| left.min(limits::WORKSPACE_SWEEP))
    }

    pub(super) async fn report_changed(self: &Arc<Self>) {
        let changed = std::mem::take(&mut self.state.lock().changed);
        for name in changed {
            let workspace = self.workspace(&name);
            if workspace.as_ref().is_none_or(|workspace| workspace.begun().now_or_never().is_some()) {
                self.report(&name).await;
            } else {
                // a fork of an earlier revision takes a while; the other workspaces must not wait for it
                task::spawn("status of a workspace", self.clone().report_when_begun(name));
            }
        }
    }

    async fn report_when_begun(self: Arc<Self>, name: Text) {
        if let Some(workspace) = self.workspace(&name) {
            workspace.begun().await;
        }
        self.mark([name]);
    }

    /// Writes the status of a workspace.
    async fn report(&self, name: &str) {
        let Some(workspace) = self.workspace(name) else { return };
        let url = self.url_of(name);
        let mut status = match workspace.failure() {
            None if workspace.is_empty_template() => json!({"phase": "Ready", "message": EMPTY_TEMPLATE, "url": url}),
            None => json!({"phase": "Ready", "url": url}),
            Some(why) => json!({"phase": "Failed", "message": why}),
        };
        let host = self.host_of(name);
        status.put_text(&["host"], &host);
        let reset = workspace.spec().reset;
        status.put_text(&["reset"], &reset);
        let counts = counts_of(&workspace);
        let update = |object: &mut Value| {
            let mut status = status.clone();
            if object.str_at(&["status", "message"]) == EMPTY_TEMPLATE && status.get("message").is_none() {
                // a template cannot be written to, so this stays true
                status.set_at(&["message"], Value::from(EMPTY_TEMPLATE));
            }
            for (name, count) in &counts {
                // a workspace that is not in use still holds what was last reported
                if let Some(count) = count.clone().or_else(|| object.at(&["status", name]).cloned()) {
                    status.set_at(&[name], count);
                }
            }
            object.set_at(&["status"], status);
        };
        self.write_status(name, update).await;
    }

    /// In a shared store: writes the usage of a workspace into its status.
    async fn report_usage(&self, name: &str) {
        let Some(workspace) = self.workspace(name) else { return };
        let counts = counts_of(&workspace);
        let update = |object: &mut Value| {
            if object.str_at(&["status", "phase"]) == "Ready" {
                for (name, count) in &counts {
                    count.iter().for_each(|count| object.set_at(&["status", name], count.clone()));
                }
            }
        };
        self.write_status(name, update).await;
    }

    async fn write_status(&self, name: &str, update: impl Fn(&mut Value) + Send + Sync) {
        if let Err(error) = self.change_status(name, update).await {
            tracing::warn!(%error, name, "the status of a workspace cannot be written");
        }
    }

    /// Drops the contexts of workspaces that have been idle for some time. Returns the names of workspaces whose
    /// usage has changed.
    pub(super) fn drop_idle(&self) -> Vec<Text> {
        let all = self.all();
        let changed = all.iter().filter(|workspace| workspace.note_usage()).map(|workspace| workspace.name.clone());
        let changed = changed.collect();
        all.iter().for_each(|workspace| workspace.drop_idle(limits::WORKSPACE_IDLE));
        changed
    }

    /// Ends all workspaces, because the server stops.
    fn close(&self) {
        let all = std::mem::take(&mut self.state.lock().all);
        all.values().for_each(|workspace| workspace.close());
    }
}

/// The status fields for the usage of a workspace; `None` if it has not been used.
fn counts_of(workspace: &Workspace) -> [(&'static str, Option<Value>); 2] {
    let usage = workspace.usage();
    [("objects", usage.map(|of| Value::from(of.objects))), ("bytes", usage.map(|of| Value::from(of.bytes)))]
}
