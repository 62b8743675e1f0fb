//! Token Secrets of ServiceAccounts: the controller adds a token to each Secret of type
//! `kubernetes.io/service-account-token`. The token is valid as long as the Secret and the account exist; the Secret is
//! deleted with its account.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::status::Reason;
use machinery::{Result, Status, Text, Value, json};
use objects::{Event, EventKind, Key, Stored};
use parking_lot::Mutex;
use resource::Resource;
use tokio::sync::watch;

use super::pending::Pending;
use super::reconciler::Reconciler;
use crate::verbs::{self, Context, PatchKind};

const USER: &str = "system:kube-controller-manager";
/// Stands for the Secrets of all namespaces.
const ALL: Text = Text::new_static("");
const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: [&str; 3] = ["metadata", "annotations", "kubernetes.io/service-account.name"];
const ACCOUNT_UID: [&str; 3] = ["metadata", "annotations", "kubernetes.io/service-account.uid"];

pub struct TokenSecrets {
    /// The CA bundle of the server, PEM; empty if it is not published.
    authority: Mutex<String>,
    /// The paths of Secrets to be checked. A namespace with a slash appended stands for all of its Secrets.
    pending: Pending,
}

impl Reconciler for TokenSecrets {
    const NAME: &'static str = "token secrets";
    type Memory = ();

    fn observe(&self, key: &Key, event: &Event) -> bool {
        let gone = event.kind == EventKind::Deleted;
        let path = match key.plural.as_str() {
            _ if !key.group.is_empty() => return false,
            "secrets" if !gone => key.path.clone(),
            "serviceaccounts" if gone => Text::from(format!("{}/", event.object.meta.namespace)),
            _ => return false,
        };
        self.pending.add(path);
        true
    }

    async fn reconcile(&self, context: &Arc<Context>, _: &watch::Receiver<bool>, _: &mut ()) -> Option<Duration> {
        let check = async |path: Text| {
            let Err(status) = self.check(context, &path).await else { return true };
            tracing::warn!(%path, error = %status, "a token Secret cannot be completed or deleted; will retry");
            false
        };
        self.pending.each(check).await
    }

    fn set_root_authority(&self, authority: &str) -> bool {
        authority.clone_into(&mut self.authority.lock());
        self.pending.add(ALL);
        true
    }
}

impl TokenSecrets {
    pub fn new(authority: &str) -> TokenSecrets {
        TokenSecrets { authority: Mutex::new(authority.to_owned()), pending: Pending::default() }
    }

    async fn check(&self, context: &Context, path: &Text) -> Result<()> {
        let Some(secrets) = context.registry.get("", "secrets") else { return Ok(()) };
        let (root, _) = secrets.collection.latest();
        let all = root.range(path.clone()..).take_while(|(key, _)| {
            if path.ends_with('/') || *path == ALL { key.starts_with(path.as_str()) } else { *key == path }
        });
        for (_, stored) in all.filter(|(_, stored)| !stored.meta.deleting) {
            let checked = self.check_one(context, &secrets, stored).await;
            // it may have changed, which starts another check, or have been deleted
            verbs::tolerating(&[Reason::Conflict, Reason::NotFound], checked)?;
        }
        Ok(())
    }

    async fn check_one(&self, context: &Context, secrets: &Arc<Resource>, stored: &Stored) -> Result<()> {
        let secret = stored.body.to_value(stored.revision);
        if secret.str_at(&["type"]) != TYPE {
            return Ok(());
        }
        let namespace = stored.meta.namespace.as_str();
        let own = context.as_user(USER, secrets, namespace, &stored.meta.name);
        let Some(account) = account_of(context, namespace, &secret) else {
            let same = json!({"preconditions": {"uid": (stored.meta.uid.clone())}});
            return own.delete(&same).await;
        };
        let Some(mut patch) = self.missing(context, &account, &secret).await? else { return Ok(()) };
        patch.set_at(&["metadata", "resourceVersion"], Value::from(stored.revision.to_string()));
        own.patch(PatchKind::Merge, &patch).await
    }

    /// The merge patch that adds the missing fields of a Secret; `None` if it is complete.
    async fn missing(&self, context: &Context, account: &Stored, secret: &Value) -> Result<Option<Value>> {
        let mut patch = Value::object();
        let lacks = |key: &str| secret.str_at(&["data", key]).is_empty();
        let mut give = |key: &str, text: &str| patch.set_at(&["data", key], Value::from(STANDARD.encode(text)));
        let authority = self.authority.lock().clone();
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

/// The account of a Secret, if it exists and has the uid that the Secret names.
fn account_of(context: &Context, namespace: &str, secret: &Value) -> Option<Arc<Stored>> {
    let accounts = context.registry.get("", "serviceaccounts")?;
    let account = accounts.collection.get(&format!("{namespace}/{}", secret.str_at(&ACCOUNT_NAME)))?;
    let uid = secret.str_at(&ACCOUNT_UID);
    (uid.is_empty() || uid == account.meta.uid).then_some(account)
}
