//! Ends faults, and writes the status of faults and gates.

use std::sync::Arc;
use std::time::Duration;

use base::clock::{self, Follower};
use machinery::Value;
use tokio::sync::watch;

use super::Testing;
use super::definition::{FAULTS, GATES, GROUP};
use super::state::{ReportedKind, TestState};
use crate::limits;
use crate::verbs::Subresource;

/// Runs until `stop` becomes true.
pub async fn run(testing: Arc<Testing>, mut stop: watch::Receiver<bool>) {
    let mut follower = Follower::new();
    loop {
        let end = testing.next_end();
        tokio::select! {
            () = testing.has_changed.notified() => {}
            () = tokio::time::sleep(end) => testing.change(TestState::end_faults),
            () = follower.changed() => testing.change(TestState::end_faults),
            _ = stop.wait_for(|stop| *stop) => return,
        }
        testing.report().await;
        // an expired fault may have been the last object that concerns requests
        testing.change(|_| ());
        tokio::select! {
            () = tokio::time::sleep(limits::FAULT_STATUS) => {}
            () = follower.changed() => testing.change(TestState::end_faults),
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

impl TestState {
    /// Expires the faults whose time is over.
    fn end_faults(&mut self) {
        let now = self.now_millis();
        let ended = self.faults.iter().filter(|(_, fault)| fault.end.is_some_and(|end| end <= now));
        let ended: Vec<_> = ended.map(|(name, _)| (ReportedKind::Fault, name.clone())).collect();
        self.changed.extend(ended);
        for fault in self.faults.values_mut().filter(|fault| fault.end.is_some_and(|end| end <= now)) {
            // an expired fault is reported once
            fault.expire();
        }
    }
}

impl Testing {
    /// The time until the next fault ends.
    fn next_end(&self) -> Duration {
        let state = self.state.lock();
        let (now, next) = (state.now_millis(), state.faults.values().filter_map(|fault| fault.end).min());
        let repeat = state.repeats.next();
        drop(state);
        let left = next.and_then(|end| u64::try_from(end.saturating_sub(now).max(0)).ok());
        let left = left.map_or(limits::WORKSPACE_SWEEP, Duration::from_millis).min(limits::WORKSPACE_SWEEP);
        repeat.map_or(left, |at| left.min(at.saturating_duration_since(clock::instant())))
    }

    /// Writes the status of the objects that have changed.
    pub async fn report(&self) {
        let _turn = self.reporting.lock().await;
        self.change(TestState::end_faults);
        let Some(context) = self.context() else { return };
        let changed: Vec<_> = {
            let mut state = self.state.lock();
            let now = state.now_millis();
            let changed = std::mem::take(&mut state.changed);
            changed.into_iter().filter_map(|(kind, name)| Some((kind, state.status(kind, &name, now)?, name))).collect()
        };
        for (kind, status, name) in changed {
            let plural = if kind == ReportedKind::Fault { FAULTS } else { GATES };
            let Some(resource) = context.registry.get(GROUP, plural) else { continue };
            let update = |object: &mut Value| object.set_at(&["status"], status.clone());
            let done = context.as_server(&resource, "", &name).through(Subresource::Status).change(update).await;
            if let Err(error) = done.or_else(|error| if error.code == 404 { Ok(()) } else { Err(error) }) {
                tracing::warn!(%error, %name, plural, "the status cannot be written");
            }
        }
    }
}

impl TestState {
    fn status(&self, kind: ReportedKind, name: &str, now_millis: i64) -> Option<Value> {
        match kind {
            ReportedKind::Fault => Some(self.faults.get(name)?.status(now_millis)),
            ReportedKind::Gate => {
                let held = self.held_by(name);
                let mut watches: Vec<u64> = held.iter().map(|(_, watch)| *watch).collect();
                watches.sort_unstable();
                watches.dedup();
                Some(self.gates.get(name)?.status(held.len(), watches.len()))
            }
        }
    }
}
