//! APIServices of other servers say whether these are available.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::clock;
use base::metrics::METRICS;
use futures_util::{StreamExt as _, stream};
use machinery::{Status, Text, Value};
use resource::builtin::{API_SERVICES, REGISTRATION_GROUP};
use tokio::sync::watch;

use crate::aggregation::{Condition, Remote};
use crate::limits;
use crate::verbs::{self, Context, Subresource};

/// Looks whether they are until `stop` becomes true: when one comes or moves, and now and then.
pub async fn run(context: Arc<Context>, mut stop: watch::Receiver<bool>) {
    let mut moves = context.aggregation.moves();
    let mut pause = limits::AVAILABILITY_PAUSE_MIN;
    let mut known: BTreeSet<Text> = BTreeSet::new();
    loop {
        moves.mark_unchanged();
        let remotes = context.aggregation.all();
        let now: BTreeSet<Text> = remotes.iter().map(|remote| remote.name()).collect();
        known.difference(&now).for_each(|name| METRICS.aggregation.forget(name));
        known = now;
        let none = remotes.is_empty();
        let looks =
            stream::iter(remotes).map(|remote| look(&context, remote)).buffer_unordered(limits::AVAILABILITY_PARALLEL);
        // to the end, whatever the first one says
        let all_good = looks.fold(true, |all, good| async move { all && good }).await;
        pause = match all_good {
            _ if none => Duration::MAX,
            true => limits::REMOTE_AVAILABILITY,
            false => (pause.min(limits::REMOTE_AVAILABILITY) * 2).min(limits::REMOTE_AVAILABILITY),
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

/// Looks at one and writes down what is found. Whether all is well.
async fn look(context: &Context, remote: Arc<Remote>) -> bool {
    let found = context.aggregation.check(&remote).await;
    if let Err(status) = report(context, &remote.name(), &found).await {
        tracing::warn!(error = %status, "the status of an APIService cannot be written yet");
        return false;
    }
    METRICS.aggregation.checked(&remote.name(), found.is_good());
    if remote.available && !found.is_good() {
        METRICS.aggregation.became_unavailable(&remote.name(), found.reason);
    }
    found.is_good()
}

/// Writes the condition of an APIService, if it says something else.
pub(super) async fn report(context: &Context, name: &Text, found: &Condition) -> Result<(), Status> {
    let Some(resource) = context.registry.get(REGISTRATION_GROUP, API_SERVICES) else { return Ok(()) };
    let Some(stored) = resource.collection.get(name) else { return Ok(()) };
    let now = clock::now_rfc3339();
    let conditions =
        |object: &Value| object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    let before = conditions(&stored.body.to_value(0));
    if before.contains(&found.to_value(&before, &now)) {
        return Ok(());
    }
    verbs::change_as(verbs::SERVER, context, &resource, name, Subresource::Status, |object| {
        let mut conditions = conditions(object);
        let wanted = found.to_value(&conditions, &now);
        match conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == "Available") {
            Some(condition) => *condition = wanted,
            None => conditions.push(wanted),
        }
        object.set_at(&["status", "conditions"], Value::Array(conditions));
    })
    .await
}
