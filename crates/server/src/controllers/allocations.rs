//! Keeps what is reserved for Services in step with the Services, as kube-apiserver does: at the start, then from time to
//! time.

use std::sync::Arc;

use tokio::sync::watch;

use crate::allocation::UnownedReservations;
use crate::limits;
use crate::verbs::Context;

/// Repairs until the server stops. A store that no other server writes to has been repaired before requests were served.
pub async fn run(context: Arc<Context>, mut stop: watch::Receiver<bool>) {
    let mut suspects = UnownedReservations::default();
    let mut tick = tokio::time::interval(limits::ALLOCATION_REPAIR);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = super::stopped(&mut stop) => return,
        }
        if let Err(status) = context.allocation.repair(&context.objects, &mut suspects, false).await {
            tracing::warn!(error = %status, "the allocations of Services could not be repaired");
        }
    }
}
