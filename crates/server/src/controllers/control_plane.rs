//! Makes the objects of the control plane again when they are gone, and renews the Lease of this server. It runs on every
//! server.

use std::sync::Arc;

use machinery::Status;
use tokio::sync::watch;

use crate::limits;
use crate::verbs::control_plane::{self, ControlPlane};
use crate::verbs::{self, Context};

/// Looks until the server stops.
pub async fn keep_control_plane(context: Arc<Context>, own: ControlPlane, mut stop: watch::Receiver<bool>) {
    let mut looks = 0;
    loop {
        if let Err(status) = look(&context, &own, looks).await {
            tracing::warn!(error = %status, "the objects of the control plane could not be settled");
        }
        tokio::select! {
            () = tokio::time::sleep(limits::CONTROL_PLANE_LOOK) => looks += 1,
            () = super::stopped(&mut stop) => return,
        }
    }
}

async fn look(context: &Context, own: &ControlPlane, looks: u32) -> Result<(), Status> {
    if looks == 0 {
        // a restart may have moved the server to another address
        return control_plane::settle(context, own).await;
    }
    verbs::create_namespaces(context).await?;
    if looks.is_multiple_of(limits::IDENTITY_LEASE_LOOKS) {
        control_plane::renew(context, own).await?;
    }
    control_plane::create(context, own).await
}
