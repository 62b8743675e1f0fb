//! Repairs the reservations of cluster IPs and node ports to match the Services, as kube-apiserver does: at the start and
//! every [`limits::ALLOCATION_REPAIR`].

use std::sync::Arc;

use tokio::sync::watch;

use crate::allocation::{Unowned, UnownedReservations};
use crate::limits;
use crate::verbs::Context;

/// Repairs until `stop` becomes true. Reservations in an embedded store have been repaired before requests are served.
pub async fn run(context: Arc<Context>, mut stop: watch::Receiver<bool>) {
    let mut suspects = UnownedReservations::default();
    let mut tick = tokio::time::interval(limits::ALLOCATION_REPAIR);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = super::stopped(&mut stop) => return,
        }
        if let Err(status) = context.allocation.repair(context.as_ref(), &mut suspects, Unowned::ReleasedLater).await {
            tracing::warn!(error = %status, "the reservations of Services cannot be repaired; will retry");
        }
    }
}
