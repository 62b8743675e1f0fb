//! Tokens of ServiceAccounts: issuing, authentication, and the discovery documents for their verification by others
//! (KEP-1205, KEP-1393).
//!
//! Invariant: a token is valid while its signature, times and audiences are, and while its account and the object that it is
//! bound to exist with the uids in the token.

mod bound;
mod claims;
mod secrets;
#[cfg(test)]
pub mod tests;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use machinery::{Text, Value, json};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::jose::{self, Algorithm, PublicKey, SigningKey};
use super::{CredentialWarnings, Identity};
use crate::limits;
use base::clock;
use base::metrics::METRICS;
use base::request::User;
pub use bound::{Bound, Reference};
use claims::AccountClaims;
use objects::{Objects, Stored};
pub use secrets::{LAST_USED, Uses};

/// The default issuer, by the convention of clusters.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const SECRET_ISSUER: &str = "kubernetes/serviceaccount";
/// Prefix of the claims of tokens in Secrets.
const SECRET_CLAIM: &str = "kubernetes.io/serviceaccount/";
const REALM_CLAIM: &str = "pintle.dev/realm";
/// The accepted algorithms of signatures.
const ALGORITHMS: [Algorithm; 4] = [Algorithm::Rs256, Algorithm::Es256, Algorithm::Es384, Algorithm::Es512];

/// How tokens of ServiceAccounts are issued and accepted.
#[derive(Default)]
pub struct AccountOptions {
    /// The first issuer signs, tokens of all are accepted; empty for `DEFAULT_ISSUER`.
    pub issuers: Vec<String>,
    /// The audiences of this server; empty for the issuers.
    pub audiences: Vec<String>,
    /// The longest lifetime of a token, in seconds; 0 for no limit.
    pub max_expiration: i64,
    /// Whether the tokens that kubelets request for Pods last for a year, see [`limits::EXTENDED_SECONDS`].
    pub extend_expiration: bool,
    /// The URL of the keys, if it is not at this server's own address.
    pub jwks_uri: Option<String>,
    /// PEM files of keys that verify, each with its name for errors.
    pub keys: Vec<(String, Vec<u8>)>,
}

/// The keys. The signing key is made when it is first needed, so there may be none yet.
#[derive(Clone, Default)]
struct Keys {
    signing: Option<Result<Arc<SigningKey>, String>>,
    verifying: Arc<[PublicKey]>,
}

/// Issues and authenticates tokens; clones share their keys.
#[derive(Clone)]
pub struct Accounts {
    inner: Arc<Inner>,
    /// Set for accounts that are not the server's own.
    realm: Option<Realm>,
    /// The first issuer signs, tokens of all are accepted.
    issuers: Vec<Text>,
    audiences: Vec<Text>,
    uses: Arc<Uses>,
}

/// ServiceAccounts apart from the server's own. They share its keys, but neither accepts the tokens of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Realm {
    /// The name for reviews of authorization webhooks.
    pub name: Text,
    /// The path of its API, which is appended to the issuers, so that others who verify tokens can distinguish them.
    pub path: Text,
    /// Identifies the realm in a claim: another realm with the same path does not accept the tokens either.
    pub id: Text,
}

#[derive(Default)]
struct Inner {
    /// The issuers of the server's own accounts; those of realms begin with one of them.
    issuers: Vec<Text>,
    max_expiration: i64,
    extend_expiration: bool,
    jwks_uri: OnceLock<String>,
    keys: watch::Sender<Keys>,
    /// Is notified when a caller waits for the signing key.
    key_wanted: Notify,
    /// The claims of tokens whose signature has been verified, by the digest of the token. Keys are never removed, so the
    /// result of the verification can be cached; everything else is checked every time.
    verified: Mutex<HashMap<[u8; 32], Arc<AccountClaims>>>,
}

impl Default for Accounts {
    fn default() -> Accounts {
        let issuer = vec![Text::new_static(DEFAULT_ISSUER)];
        Accounts::of(Inner { issuers: issuer.clone(), ..Inner::default() }, issuer)
    }
}

impl Accounts {
    fn of(inner: Inner, audiences: Vec<Text>) -> Accounts {
        let issuers = inner.issuers.clone();
        Accounts { inner: Arc::new(inner), realm: None, issuers, audiences, uses: Arc::default() }
    }

    /// The accounts of a realm, with the same keys.
    pub fn in_realm(&self, realm: Realm) -> Accounts {
        let own = |issuer: &Text| Text::from(format!("{}{}", issuer.trim_end_matches('/'), realm.path));
        let issuers: Vec<Text> = self.issuers.iter().map(own).collect();
        let is_default = self.audiences == self.issuers;
        let audiences = if is_default { issuers.clone() } else { self.audiences.clone() };
        Accounts { inner: self.inner.clone(), realm: Some(realm), issuers, audiences, uses: Arc::default() }
    }

    /// The id of the realm that a token names, if one of the keys has signed it; empty for the server's own accounts.
    pub fn realm_of(&self, token: &str) -> Option<Text> {
        self.verified_claims(token)?.ok().map(|claims| claims.realm().into())
    }

    fn realm(&self) -> &str {
        self.realm.as_ref().map_or("", |realm| &realm.id)
    }

    /// Creates the authenticator without a signing key, see [`Accounts::set_signing_key`]. Fails with a one-line message.
    pub fn new(options: AccountOptions) -> Result<Accounts, String> {
        let texts = |list: Vec<String>| -> Vec<Text> { list.into_iter().map(Text::from).collect() };
        let mut issuers = texts(options.issuers);
        if issuers.is_empty() {
            issuers.push(Text::new_static(DEFAULT_ISSUER));
        }
        let audiences = if options.audiences.is_empty() { issuers.clone() } else { texts(options.audiences) };
        let mut verifying: Vec<PublicKey> = vec![];
        for (name, pem) in &options.keys {
            let found = jose::public_keys(pem).map_err(|why| format!("{name} cannot be used: {why}"))?;
            verifying.extend(found);
        }
        let keys = watch::Sender::new(Keys { signing: None, verifying: verifying.into() });
        let AccountOptions { max_expiration, extend_expiration, .. } = options;
        let jwks_uri = options.jwks_uri.map_or_else(OnceLock::new, OnceLock::from);
        let inner = Inner { issuers, max_expiration, extend_expiration, jwks_uri, keys, ..Inner::default() };
        Ok(Accounts::of(inner, audiences))
    }

    /// Sets the signing key, a private key in PEM, whose public key verifies from now on. An error is stored as well, so that
    /// requests do not wait for a key that will never be set.
    pub fn set_signing_key(&self, pem: Result<&[u8], String>) -> Result<(), String> {
        let key = pem.and_then(|pem| Ok(SigningKey::from_pem(pem)?));
        let error = key.as_ref().err().cloned();
        self.inner.keys.send_modify(|keys| match key {
            Ok(key) => {
                let others = keys.verifying.iter().filter(|other| other.id != key.public.id).cloned();
                keys.verifying = std::iter::once(key.public.clone()).chain(others).collect();
                keys.signing = Some(Ok(Arc::new(key)));
            }
            Err(why) => keys.signing = Some(Err(why)),
        });
        error.map_or(Ok(()), Err)
    }

    /// Sets the address of the server, for the discovery documents.
    pub fn set_address(&self, address: std::net::SocketAddr) {
        // a configured address takes precedence
        let _ = self.inner.jwks_uri.set(format!("https://{address}/openid/v1/jwks"));
    }

    /// The audiences of this server.
    pub fn audiences(&self) -> &[Text] {
        &self.audiences
    }

    /// The longest lifetime of a token, in seconds; 0 for no limit.
    pub fn max_expiration(&self) -> i64 {
        self.inner.max_expiration
    }

    /// The Secrets whose tokens were used.
    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Waits until a signing key is needed and not set, see [`Accounts::set_signing_key`].
    pub async fn signing_key_wanted(&self) {
        self.inner.key_wanted.notified().await;
    }

    /// The keys, once the signing key is set.
    async fn keys(&self) -> Keys {
        let mut keys = self.inner.keys.subscribe();
        if keys.borrow().signing.is_none() {
            self.inner.key_wanted.notify_one();
        }
        // no error occurs: the sender lives as long as self
        keys.wait_for(|keys| keys.signing.is_some()).await.map(|keys| keys.clone()).unwrap_or_default()
    }

    async fn signing_key(&self) -> Result<Arc<SigningKey>, String> {
        self.keys().await.signing.ok_or("there is no signing key")?
    }

    /// A token of an account for `audiences`, valid for `seconds` from `now` on, and its credential id for audit events.
    pub async fn issue(
        &self,
        account: &Stored,
        bound: Option<&Bound>,
        audiences: &[Text],
        now: i64,
        seconds: i64,
    ) -> Result<(String, Text), String> {
        let key = self.signing_key().await?;
        let mut claims = self.claims(account, bound, audiences, now, seconds);
        self.name_realm(&mut claims);
        let token = jose::sign(&claims, &key).ok_or("the token cannot be signed")?;
        Ok((token, credential(claims.str_at(&["jti"]))))
    }

    /// A token of an account for a Secret, valid as long as the Secret has it.
    pub async fn issue_for_secret(&self, account: &Stored, secret: &Value) -> Result<String, String> {
        let key = self.signing_key().await?;
        let (namespace, name) = (&account.meta.namespace, &account.meta.name);
        let subject = format!("system:serviceaccount:{namespace}:{name}");
        let mut claims = json!({"iss": SECRET_ISSUER, "sub": subject});
        let private_claims = [
            ("namespace", namespace.as_str()),
            ("secret.name", secret.str_at(&["metadata", "name"])),
            ("service-account.name", name),
            ("service-account.uid", &account.meta.uid),
        ];
        for (claim, value) in private_claims {
            claims.set_at(&[&format!("{SECRET_CLAIM}{claim}")], Value::from(value));
        }
        self.name_realm(&mut claims);
        jose::sign(&claims, &key).ok_or_else(|| "the token cannot be signed".to_owned())
    }

    fn name_realm(&self, claims: &mut Value) {
        if let Some(realm) = &self.realm {
            claims.set_at(&[REALM_CLAIM], Value::from(&realm.id));
        }
    }

    fn claims(&self, account: &Stored, bound: Option<&Bound>, audiences: &[Text], now: i64, seconds: i64) -> Value {
        let (namespace, name, uid) = (&account.meta.namespace, &account.meta.name, &account.meta.uid);
        let issuer = self.issuers.first().cloned().unwrap_or_default();
        let subject = format!("system:serviceaccount:{namespace}:{name}");
        let mut private_claims =
            json!({"namespace": (namespace.clone()), "serviceaccount": {"name": (name.clone()), "uid": (uid.clone())}});
        if let Some(bound) = bound {
            bound.add_to(&mut private_claims);
        }
        let mut lifetime = seconds;
        if self.extends(bound, audiences, seconds) {
            private_claims.set_at(&["warnafter"], Value::Int(now.saturating_add(seconds)));
            lifetime = limits::EXTENDED_SECONDS;
        }
        let audiences: Value = audiences.iter().map(Value::from).collect();
        json!({
            "iss": issuer, "sub": subject, "aud": audiences, "jti": (clock::uuid()),
            "iat": now, "nbf": now, "exp": (now.saturating_add(lifetime)), "kubernetes.io": private_claims
        })
    }

    /// Whether a token lasts longer than requested. This concerns a Pod's token for this server with the lifetime that
    /// admission writes into Pods (KEP-1205). Its client may never read the renewed file, so the use of an old token is
    /// reported for some time before it is refused.
    fn extends(&self, bound: Option<&Bound>, audiences: &[Text], seconds: i64) -> bool {
        self.inner.extend_expiration
            && matches!(bound, Some(Bound::Pod { .. }))
            && seconds == limits::INJECTED_SECONDS
            && audiences.iter().all(|audience| self.audiences.contains(audience))
    }

    /// Authenticates a token for one of `audiences`. `None` if it has another issuer; the error says why it is invalid.
    pub fn authenticate(&self, objects: &Objects, token: &str, audiences: &[Text]) -> Option<Result<Identity, String>> {
        let identify = |claims: Arc<AccountClaims>| {
            if claims.realm() != self.realm() {
                return Err("the token is not of this realm".to_owned());
            }
            let audiences = claims.accepted_audiences(audiences, &self.audiences)?;
            let mut remarks = CredentialWarnings::default();
            if claims.audiences.is_empty() {
                METRICS.tokens.legacy.inc();
                remarks.annotations.push(("authentication.k8s.io/legacy-token", claims.subject.clone()));
            }
            let now = clock::now_seconds();
            if claims.issuer == SECRET_ISSUER {
                let user = secrets::account(objects, &claims, token, &self.uses, now, &mut remarks)?;
                return Ok(Identity { user, audiences, remarks });
            }
            claims.check_times(now)?;
            let user = living_account(objects, &claims, now)?;
            claims.warn_of_age(now, &mut remarks);
            Ok(Identity { user, audiences, remarks })
        };
        let claims = self.verified_claims(token)?;
        let is_ours = |claims: &Arc<AccountClaims>| {
            claims.issuer == SECRET_ISSUER || self.issuers.iter().any(|known| *known == claims.issuer)
        };
        if claims.as_ref().is_ok_and(|claims| !is_ours(claims)) { None } else { Some(claims.and_then(identify)) }
    }

    /// Authenticates a token like [`Accounts::authenticate`]. If a new token is refused, another server may have issued it for an
    /// object that has not arrived here: then the newest objects decide.
    pub async fn authenticate_new(
        &self,
        objects: &Objects,
        token: &str,
        audiences: &[Text],
    ) -> Option<Result<Identity, String>> {
        let found = self.authenticate(objects, token, audiences);
        if !matches!(found, Some(Err(_))) || !objects.store().is_shared() {
            return found;
        }
        let now = clock::now_seconds();
        // older ones do not ask the store, so that a revoked token costs no more than another one
        let is_new = matches!(self.verified_claims(token), Some(Ok(claims)) if claims.is_new(now));
        if is_new && objects.catch_up().await.is_ok() { self.authenticate(objects, token, audiences) } else { found }
    }

    /// Whether an issuer is one of the server, or of a realm.
    fn is_issuer(&self, issuer: &str) -> bool {
        self.inner.issuers.iter().any(|known| {
            let path = issuer.strip_prefix(known.trim_end_matches('/'));
            issuer == known || path.is_some_and(|path| path.starts_with('/') && path.len() > 1)
        })
    }

    /// The claims of a token that one of the keys has signed; `None` if its issuer is not this server.
    fn verified_claims(&self, token: &str) -> Option<Result<Arc<AccountClaims>, String>> {
        let digest = base::digest::sha256(token.as_bytes());
        let verified = || self.inner.verified.lock();
        if let Some(claims) = verified().get(&digest) {
            return Some(Ok(claims.clone()));
        }
        let token = jose::Unverified::parse(token)?;
        let issuer = token.claims.str_at(&["iss"]);
        if issuer != SECRET_ISSUER && !self.is_issuer(issuer) {
            return None;
        }
        let keys = self.inner.keys.borrow().verifying.clone();
        let claims = token
            .verify(&keys, &ALGORITHMS)
            .map_err(|why| why.to_string())
            .and_then(AccountClaims::parse)
            .map(Arc::new);
        if let Ok(claims) = &claims {
            let mut verified = verified();
            if verified.len() >= limits::VERIFIED_TOKENS_MAX {
                verified.clear();
            }
            verified.insert(digest, claims.clone());
        }
        Some(claims)
    }

    /// The document at `/openid/v1/jwks`.
    pub async fn key_set(&self) -> Value {
        let keys: Value = self.keys().await.verifying.iter().map(PublicKey::to_jwk).collect();
        json!({"keys": keys})
    }

    /// The document at `/.well-known/openid-configuration`; `None` if the issuer is no HTTPS URL, as OpenID Connect requires.
    pub async fn configuration(&self) -> Option<Value> {
        let issuer = self.issuers.first().filter(|issuer| issuer.starts_with("https://"))?.clone();
        let keys = self.keys().await.verifying;
        let mut algorithms: Vec<&str> = keys.iter().map(|key| key.family.algorithm().as_str()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let algorithms: Value = algorithms.into_iter().map(Value::from).collect();
        let jwks_uri = self.inner.jwks_uri.get().cloned().unwrap_or_default();
        Some(json!({
            "issuer": issuer, "jwks_uri": jwks_uri, "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": algorithms
        }))
    }
}

/// The user of a token, if its account and the object that it is bound to still exist.
fn living_account(objects: &Objects, claims: &AccountClaims, now: i64) -> Result<User, String> {
    let private_claims = claims.private("kubernetes.io");
    let (namespace, name) = (private_claims.str_at(&["namespace"]), private_claims.str_at(&["serviceaccount", "name"]));
    let account = objects.collection(&Text::default(), &"serviceaccounts".into()).get(&format!("{namespace}/{name}"));
    let account = account.ok_or_else(|| format!("serviceaccounts {} not found", machinery::value::quote(name)))?;
    let (actual_uid, claimed_uid) = (&account.meta.uid, private_claims.str_at(&["serviceaccount", "uid"]));
    if actual_uid != claimed_uid {
        return Err(format!("service account UID ({actual_uid}) does not match claim ({claimed_uid})"));
    }
    if bound::long_deleted(&account, now) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    let bound = Bound::of_claims(private_claims);
    if let Some(bound) = &bound {
        bound.check(objects, namespace, now)?;
    }
    let id = (!claims.id.is_empty())
        .then(|| ("authentication.kubernetes.io/credential-id".into(), vec![credential(&claims.id)]));
    let bound_to = bound.iter().flat_map(Bound::extra);
    Ok(user(&account, id.into_iter().chain(bound_to).collect()))
}

/// The credential id of a token with this `jti`.
fn credential(id: &str) -> Text {
    Text::from(format!("JTI={id}"))
}

fn user(account: &Stored, extra: Vec<(Text, Vec<Text>)>) -> User {
    let namespace = &account.meta.namespace;
    User {
        name: Text::from(format!("system:serviceaccount:{namespace}:{}", account.meta.name)),
        uid: account.meta.uid.clone(),
        groups: vec!["system:serviceaccounts".into(), Text::from(format!("system:serviceaccounts:{namespace}"))],
        extra,
    }
    .authenticated()
}
