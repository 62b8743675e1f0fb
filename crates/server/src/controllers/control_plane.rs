//! Recreates missing objects of the control plane and renews the Lease of this server. It runs on every server.

use std::sync::Arc;

use machinery::Result;
use tokio::sync::watch;

use crate::limits;
use crate::verbs::control_plane::{self, ControlPlane};
use crate::verbs::{self, Context};

/// Checks the objects every [`limits::CONTROL_PLANE_LOOK`] until `stop` becomes true.
pub async fn keep_control_plane(context: Arc<Context>, plane: ControlPlane, mut stop: watch::Receiver<bool>) {
    let mut checks = 0;
    loop {
        if let Err(status) = check(&context, &plane, checks).await {
            tracing::warn!(error = %status, "the objects of the control plane cannot be written; will retry");
        }
        tokio::select! {
            () = tokio::time::sleep(limits::CONTROL_PLANE_LOOK) => checks += 1,
            () = super::stopped(&mut stop) => return,
        }
    }
}

async fn check(context: &Context, plane: &ControlPlane, checks: u32) -> Result<()> {
    if checks == 0 {
        // after a restart, the server may have another address
        return control_plane::take_over(context, plane).await;
    }
    verbs::create_namespaces(context).await?;
    if checks.is_multiple_of(limits::IDENTITY_LEASE_LOOKS) {
        control_plane::renew(context, plane).await?;
    }
    control_plane::create(context, plane).await?;
    control_plane::restore_endpoints(context, plane).await
}
