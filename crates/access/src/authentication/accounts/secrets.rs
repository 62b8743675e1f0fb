//! Legacy tokens in Secrets, which do not expire, and the tracking of their last use (KEP-2799).

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use base::metrics::METRICS;
use base::request::User;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::{Text, Value, time};
use objects::{Objects, Stored};
use tokio::sync::Notify;

use super::{AccountClaims, CredentialWarnings, SECRET_CLAIM, user};

/// The label of a Secret with the day on which its token was last used.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The label of a Secret whose token has been marked invalid.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const AUTOMATIC: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of \
                         auto-generated secret-based tokens.";

/// The Secrets whose token was used and whose label has not been updated yet, by `namespace/name`. A controller updates the
/// labels; requests do not wait for that.
#[derive(Default)]
pub struct Uses {
    unlabeled: Mutex<BTreeSet<Text>>,
    changed: Notify,
}

impl Uses {
    /// Records the use of a token. The label may have tomorrow's date, from a server whose clock is ahead.
    fn record(&self, secret: &Stored, now: i64) {
        let last_used = secret.meta.label(LAST_USED);
        if last_used != Some(&time::date(now)) && last_used != Some(&time::date(now + 86_400)) {
            let path = Text::from(format!("{}/{}", secret.meta.namespace, secret.meta.name));
            self.unlabeled.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
            self.changed.notify_one();
        }
    }

    /// The tokens that were used since the last call.
    pub fn take(&self) -> BTreeSet<Text> {
        std::mem::take(&mut self.unlabeled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there are some.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The user of a token, if its account and its Secret exist and the Secret still contains the token.
pub fn account(
    objects: &Objects,
    claims: &AccountClaims,
    token: &str,
    uses: &Uses,
    now: i64,
    remarks: &mut CredentialWarnings,
) -> Result<User, String> {
    let claim = |claim: &str| claims.private(&format!("{SECRET_CLAIM}{claim}")).as_str().unwrap_or_default();
    let (namespace, name, secret_name) = (claim("namespace"), claim("service-account.name"), claim("secret.name"));
    if claims.subject != format!("system:serviceaccount:{namespace}:{name}") {
        return Err("sub claim is invalid".to_owned());
    }
    let object_of = |plural: &'static str, name: &str| {
        objects.collection(&Text::default(), &Text::new_static(plural)).get(&format!("{namespace}/{name}"))
    };
    let secret_object = object_of("secrets", secret_name).filter(|secret_object| !secret_object.meta.deleting);
    let secret_object = secret_object.ok_or_else(|| "Token has been invalidated".to_owned())?;
    let stored_token = STANDARD.decode(secret_object.body.to_value(0).str_at(&["data", "token"])).unwrap_or_default();
    if stored_token != token.as_bytes() {
        return Err("Token does not match server's copy".to_owned());
    }
    let account = object_of("serviceaccounts", name);
    let account = account.ok_or_else(|| format!("serviceaccounts {} not found", machinery::value::quote(name)))?;
    if account.meta.deleting {
        return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
    }
    let (actual_uid, claimed_uid) = (&account.meta.uid, claim("service-account.uid"));
    if actual_uid != claimed_uid {
        return Err(format!("ServiceAccount UID ({actual_uid}) does not match claim ({claimed_uid})"));
    }
    uses.record(&secret_object, now);
    if secret_object.meta.label(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
        METRICS.tokens.invalidated.inc();
        return Err(format!(
            "the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked invalid. Use \
             tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label \
             from the secret to temporarily allow use of this token"
        ));
    }
    remark(&account, secret_name, remarks);
    Ok(user(&account, vec![]))
}

/// Adds the warning about a legacy token. A Secret that its account lists was created automatically by an older release.
fn remark(account: &Stored, secret: &str, remarks: &mut CredentialWarnings) {
    let value = account.body.to_value(0);
    let mut listed = value.get("secrets").and_then(Value::as_array).unwrap_or_default().iter();
    let key = if listed.any(|listed| listed.str_at(&["name"]) == secret) {
        METRICS.tokens.automatic.inc();
        remarks.warnings.push(AUTOMATIC);
        "authentication.k8s.io/legacy-token-autogenerated-secret"
    } else {
        METRICS.tokens.manual.inc();
        "authentication.k8s.io/legacy-token-manual-secret"
    };
    remarks.annotations.push((key, secret.into()));
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use objects::{Body, Meta};

    #[test]
    fn last_use_of_a_secret_token_is_recorded_once_a_day() {
        let noon = 1_800_000_000 - 1_800_000_000 % 86_400 + 43_200;
        let cases = [
            ("", true),
            ("2027-01-14", true),
            ("2027-01-15", false),
            ("2027-01-16", false),
            ("2027-01-17", true),
            ("yesterday", true),
        ];
        for (known, noted) in cases {
            let uses = Uses::default();
            let mut secret = json!({"metadata": {"name": "s", "namespace": "n"}});
            secret.set_at(&["metadata", "labels", LAST_USED], Value::from(known));
            uses.record(&Stored::new(1, Body::encode(&secret), Meta::of(&secret)), noon);
            assert_eq!(uses.take().contains("n/s"), noted, "{known}");
        }
    }
}
