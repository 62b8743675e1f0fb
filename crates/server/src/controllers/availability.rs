//! The `Available` condition of APIServices whose API another server serves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::clock;
use base::metrics::{KindSeries, METRICS};
use futures_util::{StreamExt as _, stream};
use kinds::{API_SERVICES, REGISTRATION_GROUP};
use machinery::{Result, Text};
use schema::definition::{has_condition, replace_condition};
use tokio::sync::watch;

use crate::aggregation::{Condition, Remote};
use crate::limits;
use crate::verbs::{Context, Subresource};

/// Checks all aggregated API servers until `stop` becomes true: when one is added or its address changes, and every
/// [`limits::REMOTE_AVAILABILITY`], more often while one is unavailable.
pub async fn run(context: Arc<Context>, mut stop: watch::Receiver<bool>) {
    let mut moves = context.aggregation.moves();
    let mut pause = limits::AVAILABILITY_PAUSE_MIN;
    let mut known: BTreeSet<Text> = BTreeSet::new();
    loop {
        moves.mark_unchanged();
        let remotes = context.aggregation.all();
        let now: BTreeSet<Text> = remotes.iter().map(|remote| remote.name()).collect();
        if context.objects.series == KindSeries::Each {
            known.difference(&now).for_each(|name| METRICS.aggregation.forget(name));
        }
        known = now;
        let has_remotes = !remotes.is_empty();
        let checks =
            stream::iter(remotes).map(|remote| check(&context, remote)).buffer_unordered(limits::AVAILABILITY_PARALLEL);
        // `fold` instead of `all`, so that every server is checked even if the first one is unavailable
        let all_available = checks.fold(true, |all, available| async move { all && available }).await;
        pause = if !has_remotes {
            Duration::MAX
        } else if all_available {
            limits::REMOTE_AVAILABILITY
        } else {
            (pause.min(limits::REMOTE_AVAILABILITY) * 2).min(limits::REMOTE_AVAILABILITY)
        };
        let change = async {
            tokio::select! {
                changed = moves.changed() => changed.is_ok(),
                () = tokio::time::sleep(pause) => false,
            }
        };
        tokio::select! {
            moved = change => if moved { pause = limits::AVAILABILITY_PAUSE_MIN },
            () = super::stopped(&mut stop) => return,
        }
    }
}

/// Checks one aggregated API server and writes its condition. Returns whether it is available and the condition is written.
async fn check(context: &Context, remote: Arc<Remote>) -> bool {
    let found = context.aggregation.check(&remote).await;
    if let Err(status) = report(context, &remote.name(), &found).await {
        tracing::warn!(error = %status, "the status of an APIService cannot be written; will retry");
        return false;
    }
    // owners of workspaces choose the names of theirs
    if context.objects.series == KindSeries::Each {
        METRICS.aggregation.checked(&remote.name(), found.is_good());
        if remote.available && !found.is_good() {
            METRICS.aggregation.became_unavailable(&remote.name(), found.reason);
        }
    }
    found.is_good()
}

/// Writes the condition of an APIService if it has changed.
pub(super) async fn report(context: &Context, name: &Text, found: &Condition) -> Result<()> {
    let Some(resource) = context.registry.get(REGISTRATION_GROUP, API_SERVICES) else { return Ok(()) };
    let Some(stored) = resource.collection.get(name) else { return Ok(()) };
    let wanted = found.to_value();
    if has_condition(&stored.body.to_managed_value(0), &wanted) {
        return Ok(());
    }
    context
        .as_server(&resource, "", name)
        .through(Subresource::Status)
        .change(|object| {
            replace_condition(object, wanted.clone(), &clock::now_rfc3339());
        })
        .await
}
