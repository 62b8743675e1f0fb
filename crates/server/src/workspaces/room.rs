//! The limits of the objects and bytes of a workspace.

use std::sync::Weak;
use std::time::Duration;

use base::clock;
use machinery::Status;
use machinery::status::Reason;
use objects::Objects;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::workspace::{Workspace, WorkspaceUsage};
use crate::limits;
use crate::verbs::{Growth, Room};

/// The limits of a workspace, which may change while it is in use.
///
/// Writes in flight count only once they are written, so that a burst may exceed a limit by them.
pub struct WorkspaceRoom {
    pub workspace: Weak<Workspace>,
    pub objects: Weak<Objects>,
    written: Mutex<Bucket>,
}

impl WorkspaceRoom {
    pub fn new(workspace: Weak<Workspace>, objects: Weak<Objects>) -> WorkspaceRoom {
        let written = Mutex::new(Bucket { used: Duration::ZERO, at: clock::instant() });
        WorkspaceRoom { workspace, objects, written }
    }
}

/// A token bucket, filled with the time that what was written takes at the limit.
struct Bucket {
    used: Duration,
    /// When that was so.
    at: Instant,
}

impl Bucket {
    /// Takes a write of a duration. Fails with the time after which it would be taken. A write is taken whatever its size if there
    /// is something left, so that large objects are.
    fn take(&mut self, duration: Duration, now: Instant) -> Result<(), Duration> {
        self.used = self.used.saturating_sub(now.saturating_duration_since(self.at));
        self.at = now;
        if self.used >= limits::WORKSPACE_WRITE_BURST {
            return Err(self.used - limits::WORKSPACE_WRITE_BURST);
        }
        self.used += duration;
        Ok(())
    }
}

impl Room for WorkspaceRoom {
    fn check(&self, growth: Growth) -> Result<(), Status> {
        let (Some(workspace), Some(objects)) = (self.workspace.upgrade(), self.objects.upgrade()) else {
            return Ok(());
        };
        let limits = workspace.limits();
        if limits.objects == 0 && limits.bytes == 0 {
            return Ok(());
        }
        let WorkspaceUsage { objects, bytes } = WorkspaceUsage::of(&objects);
        let full = |limit: usize, what: &str| {
            let why = format!("the workspace has reached its limit of {limit} {what}");
            Err(Status::new(Reason::Forbidden, why))
        };
        if matches!(growth, Growth::Object(_)) && limits.objects > 0 && objects >= limits.objects {
            return full(limits.objects, "objects");
        }
        let (Growth::Object(more) | Growth::Bytes(more)) = growth;
        if limits.bytes > 0 && bytes.saturating_add(more as u64) > limits.bytes as u64 {
            return full(limits.bytes, "bytes");
        }
        Ok(())
    }
    fn spend(&self, bytes: usize) -> Result<(), Status> {
        let rate = self.workspace.upgrade().map_or(0, |workspace| workspace.limits().write_rate);
        if rate == 0 {
            return Ok(());
        }
        let duration = Duration::from_secs_f64(bytes as f64 / rate as f64);
        self.written.lock().take(duration, clock::instant()).map_err(|wait| {
            let why = format!("the workspace has written more than {rate} bytes in a second for some time");
            Status::too_many_requests(why, u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_taken_and_then_what_the_limit_allows() {
        let start = clock::instant();
        let mut bucket = Bucket { used: Duration::ZERO, at: start };
        let seconds = Duration::from_secs;
        // seconds since the start, and how long the write takes; how long it has to wait
        let cases = [
            (0, 6, None),
            (0, 6, None),
            (0, 1, Some(2)),
            (1, 1, Some(1)),
            (3, 1, None),
            (3, 1, Some(0)),
            (60, 100, None),
            (60, 1, Some(90)),
            (151, 1, None),
        ];
        for (at, takes, waits) in cases {
            let taken = bucket.take(seconds(takes), start + seconds(at));
            assert_eq!(taken.err(), waits.map(seconds), "{at} {takes}");
        }
    }
}
