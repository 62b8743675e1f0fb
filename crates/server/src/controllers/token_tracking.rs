//! The last use of tokens in Secrets (KEP-2799): the day is written to a label of the Secret, and a ConfigMap contains
//! the day on which this tracking began. As in kube-apiserver, every server records the uses that it has authenticated
//! itself.

use std::sync::Arc;

use access::authentication::LAST_USED;
use base::clock;
use machinery::status::Reason;
use machinery::{Result, Text, Value, json, time};
use objects::Key;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::limits;
use crate::verbs::{self, Context, PatchKind};

/// The controller; it runs after every use of a token and every change of the ConfigMap.
#[derive(Default)]
pub struct TokenTracking {
    changed: Notify,
}

impl TokenTracking {
    /// Observes the key of every changed object.
    pub fn observe(&self, key: &Key) {
        let named = || key.path.split_once('/') == Some(verbs::TOKEN_TRACKING);
        if key.plural == "configmaps" && key.group.is_empty() && named() {
            self.changed.notify_one();
        }
    }

    /// Runs until `stop` becomes true.
    pub async fn run(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) {
        let mut created: Option<Instant> = None;
        let uses = context.authentication.accounts.uses();
        loop {
            for path in uses.take() {
                if let Err(error) = record_use(&context, &path).await {
                    tracing::warn!(%path, %error, "the use of a token cannot be written to its Secret");
                }
            }
            let may_create = created.map(|created| created + limits::TOKEN_TRACKING_PAUSE);
            let next = match keep(&context, may_create.is_none_or(|at| at <= clock::instant())).await {
                Ok(TrackingState::Missing) => may_create,
                Ok(TrackingState::Exists) => None,
                Ok(TrackingState::Created) => {
                    created = Some(clock::instant());
                    None
                }
                Err(error) => {
                    tracing::warn!(%error, "the ConfigMap of token tracking cannot be written; will retry");
                    Some(clock::instant() + limits::CONTROLLER_RETRY)
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = uses.changed() => {}
                () = super::until(next) => {}
                () = super::stopped(&mut stop) => return,
            }
        }
    }
}

/// Writes the day to the label of a Secret, unless it already has it.
async fn record_use(context: &Context, path: &Text) -> Result<()> {
    let Some(secrets) = context.registry.get("", "secrets") else { return Ok(()) };
    let Some(secret) = secrets.collection.get(path) else { return Ok(()) };
    let today = time::date(clock::now_seconds());
    if secret.meta.label(LAST_USED) == Some(&today) {
        return Ok(());
    }
    let mut patch = json!({"metadata": {"uid": (secret.meta.uid.clone())}});
    patch.set_at(&["metadata", "labels", LAST_USED], Value::from(today));
    let own = context.as_server(&secrets, &secret.meta.namespace, &secret.meta.name);
    // the Secret may have been deleted, or replaced by another one
    verbs::tolerating(&[Reason::NotFound, Reason::Conflict], own.patch(PatchKind::Merge, &patch).await)
}

/// The state of the ConfigMap.
enum TrackingState {
    Exists,
    Missing,
    Created,
}

/// Creates the ConfigMap if it is missing and `may_create`, and restores its day if that is invalid.
async fn keep(context: &Context, may_create: bool) -> Result<TrackingState> {
    let Some(maps) = context.registry.get("", "configmaps") else { return Ok(TrackingState::Exists) };
    let wanted = verbs::token_tracking();
    let (namespace, name) = verbs::TOKEN_TRACKING;
    match maps.collection.get(&maps.key(namespace, name).path) {
        None if !may_create => Ok(TrackingState::Missing),
        None => verbs::create_missing(context, &maps, [wanted]).await.map(|()| TrackingState::Created),
        Some(found) => {
            let value = found.body.to_value(0);
            let since = value.str_at(&["data", "since"]);
            if since.len() == 10 && time::parse_rfc3339(&format!("{since}T00:00:00Z")).is_some() {
                return Ok(TrackingState::Exists);
            }
            let patch = json!({"data": (wanted.get("data").cloned().unwrap_or_default())});
            let restored = context.as_server(&maps, namespace, name).patch(PatchKind::Merge, &patch).await;
            verbs::tolerating(&[Reason::NotFound], restored).map(|()| TrackingState::Exists)
        }
    }
}
