//! Enforces the limits on the objects and bytes of a workspace, and on its rate of writes.

use std::sync::Weak;
use std::time::Duration;

use base::clock;
use machinery::status::Reason;
use machinery::{Result, Status};
use objects::Objects;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::workspace::{Workspace, WorkspaceUsage};
use crate::limits;
use crate::verbs::{Capacity, Growth};

/// The limits of a workspace, which may change while it is in use.
///
/// A write counts only once it is complete, so concurrent writes may exceed a limit.
pub struct WorkspaceCapacity {
    pub workspace: Weak<Workspace>,
    pub objects: Weak<Objects>,
    written: Mutex<Bucket>,
}

impl WorkspaceCapacity {
    pub fn new(workspace: Weak<Workspace>, objects: Weak<Objects>) -> WorkspaceCapacity {
        let written = Mutex::new(Bucket { used: Duration::ZERO, at: clock::instant() });
        WorkspaceCapacity { workspace, objects, written }
    }
}

/// A leaky bucket. A write fills it with the time that the write takes at the permitted rate.
struct Bucket {
    used: Duration,
    /// When `used` was computed.
    at: Instant,
}

impl Bucket {
    /// Takes a write that fills the bucket by `duration`. If the bucket is full, fails with the time to wait.
    /// Otherwise the write is taken whatever its size, so that objects larger than the bucket can be written.
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

impl Capacity for WorkspaceCapacity {
    fn check(&self, growth: Growth) -> Result<()> {
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
    fn spend(&self, bytes: usize) -> Result<()> {
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
        // seconds since the start; seconds by which the write fills the bucket; seconds to wait
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
