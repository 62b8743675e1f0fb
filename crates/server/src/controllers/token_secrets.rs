//! Token Secrets of ServiceAccounts: the controller adds a token to each Secret of type
//! `kubernetes.io/service-account-token`. The token is valid as long as the Secret and the account exist; the Secret is
//! deleted with its account.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::status::Reason;
use machinery::{Status, Text, Value, json};
use objects::{Event, EventKind, Key, Stored};
use resource::Resource;
use tokio::sync::{Notify, watch};

use crate::limits;
use crate::verbs::{self, Context, Document, PatchKind};

const USER: &str = "system:kube-controller-manager";
/// Stands for the Secrets of all namespaces.
const ALL: Text = Text::new_static("");
const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: [&str; 3] = ["metadata", "annotations", "kubernetes.io/service-account.name"];
const ACCOUNT_UID: [&str; 3] = ["metadata", "annotations", "kubernetes.io/service-account.uid"];

/// Looks after Secrets of tokens.
pub struct TokenSecrets {
    /// The CA bundle of the server, PEM; empty if it is not published.
    authority: Mutex<String>,
    /// Secrets to be looked at, and namespaces (with a slash behind) of which all are.
    pending: Mutex<BTreeSet<Text>>,
    changed: Notify,
}

impl TokenSecrets {
    pub fn new(authority: &str) -> TokenSecrets {
        TokenSecrets { authority: Mutex::new(authority.to_owned()), pending: Mutex::default(), changed: Notify::new() }
    }

    fn authority(&self) -> MutexGuard<'_, String> {
        self.authority.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives every Secret another CA bundle.
    pub fn set_authority(&self, authority: &str) {
        authority.clone_into(&mut self.authority());
        self.lock().insert(ALL);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Text>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears of every change of an object, one after the other.
    pub fn observe(&self, key: &Key, event: &Event) {
        let gone = event.kind == EventKind::Deleted;
        let place = match key.plural.as_str() {
            _ if !key.group.is_empty() => return,
            "secrets" if !gone => key.path.clone(),
            "serviceaccounts" if gone => Text::from(format!("{}/", event.object.meta.namespace)),
            _ => return,
        };
        self.lock().insert(place);
        self.changed.notify_one();
    }

    /// Keeps them until `stop` becomes true.
    pub async fn run(self: Arc<Self>, context: Arc<Context>, mut stop: watch::Receiver<bool>) {
        loop {
            let pending = std::mem::take(&mut *self.lock());
            let mut failed = BTreeSet::new();
            for place in pending {
                if let Err(status) = self.keep(&context, &place).await {
                    tracing::warn!(%place, error = %status, "a Secret with a token cannot be kept yet");
                    failed.insert(place);
                }
            }
            let again = async {
                match failed.is_empty() {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(limits::CONTROLLER_RETRY).await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = again => {}
                () = super::stopped(&mut stop) => return,
            }
            self.lock().append(&mut failed);
        }
    }

    async fn keep(&self, context: &Context, place: &Text) -> Result<(), Status> {
        let Some(secrets) = context.registry.get("", "secrets") else { return Ok(()) };
        let (root, _) = secrets.collection.latest();
        let all = root.range(place.clone()..).take_while(|(path, _)| match place.ends_with('/') || *place == ALL {
            true => path.starts_with(place.as_str()),
            false => *path == place,
        });
        for (_, stored) in all.filter(|(_, stored)| !stored.meta.deleting) {
            match self.keep_one(context, &secrets, stored).await {
                // it changed, which wakes us again, or has gone
                Err(status) if matches!(status.reason, Reason::Conflict | Reason::NotFound) => {}
                result => result?,
            }
        }
        Ok(())
    }

    async fn keep_one(&self, context: &Context, secrets: &Arc<Resource>, stored: &Stored) -> Result<(), Status> {
        let secret = stored.body.to_value(stored.revision);
        if secret.str_at(&["type"]) != TYPE {
            return Ok(());
        }
        let namespace = stored.meta.namespace.as_str();
        let path = verbs::path_of(secrets, namespace, &stored.meta.name);
        let request = |method: http::Method| verbs::controller_request(USER, secrets, &method, &path);
        let Some(account) = account_of(context, namespace, &secret) else {
            let same = json!({"preconditions": {"uid": (stored.meta.uid.clone())}});
            return verbs::delete(context, &request(http::Method::DELETE), Some(&Document::json(&same)))
                .await
                .map(drop);
        };
        let Some(mut patch) = self.missing(context, &account, &secret).await? else { return Ok(()) };
        patch.set_at(&["metadata", "resourceVersion"], Value::from(stored.revision.to_string()));
        verbs::patch(context, &request(http::Method::PATCH), PatchKind::Merge, &Document::json(&patch)).await.map(drop)
    }

    /// The merge patch that gives a Secret what it lacks; none if it lacks nothing.
    async fn missing(&self, context: &Context, account: &Stored, secret: &Value) -> Result<Option<Value>, Status> {
        let mut patch = Value::object();
        let lacks = |key: &str| secret.str_at(&["data", key]).is_empty();
        let mut give = |key: &str, text: &str| patch.set_at(&["data", key], Value::from(STANDARD.encode(text)));
        let authority = self.authority().clone();
        if !authority.is_empty() && secret.str_at(&["data", "ca.crt"]) != STANDARD.encode(&authority) {
            give("ca.crt", &authority);
        }
        if lacks("namespace") {
            give("namespace", &account.meta.namespace);
        }
        if lacks("token") {
            let issued = context.authentication.accounts.issue_for_secret(account, secret).await;
            give("token", &issued.map_err(Status::internal)?);
        }
        if secret.str_at(&ACCOUNT_UID).is_empty() {
            patch.set_at(&ACCOUNT_UID, Value::from(&account.meta.uid));
        }
        Ok((patch != Value::object()).then_some(patch))
    }
}

/// The account of a Secret, if it is there and the one that is meant.
fn account_of(context: &Context, namespace: &str, secret: &Value) -> Option<Arc<Stored>> {
    let accounts = context.registry.get("", "serviceaccounts")?;
    let account = accounts.collection.get(&format!("{namespace}/{}", secret.str_at(&ACCOUNT_NAME)))?;
    let uid = secret.str_at(&ACCOUNT_UID);
    (uid.is_empty() || uid == account.meta.uid).then_some(account)
}
