//! The limits of the objects and bytes of a workspace.

use std::sync::Weak;

use machinery::Status;
use machinery::status::Reason;
use objects::Objects;

use super::workspace::{Workspace, WorkspaceUsage};
use crate::verbs::{Growth, Room};

/// The limits of a workspace, which may change while it is in use.
///
/// Writes in flight count only once they are written, so that a burst may exceed a limit by them.
pub struct WorkspaceRoom {
    pub workspace: Weak<Workspace>,
    pub objects: Weak<Objects>,
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
}
