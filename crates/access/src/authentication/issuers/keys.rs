//! The keys of an issuer: configured, or read by OpenID Connect discovery.

use std::sync::Arc;

use base::clock;
use base::notice::Notices;
use base::webhook::{Remote, RemoteEndpoint, SettingsError};
use machinery::Value;
use parking_lot::RwLock;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::{KeysError, VerificationError};
use crate::authentication::jose::PublicKey;
use crate::limits;

#[derive(Debug)]
pub enum KeySource {
    Given(Arc<[PublicKey]>),
    Discovered(Box<Discovered>),
}

/// Keys that the discovery document of an issuer names. They are read when a token first needs them, and again when a
/// token names an unknown key, but not more often than every [`limits::ISSUER_KEYS_PAUSE`].
#[derive(Debug)]
pub struct Discovered {
    issuer: String,
    document: Remote,
    roots: Vec<u8>,
    keys: RwLock<Arc<[PublicKey]>>,
    last_read: Mutex<LastRead>,
}

#[derive(Debug, Default)]
struct LastRead {
    at: Option<Instant>,
    /// The error of the read.
    failure: Option<Arc<KeysError>>,
}

/// The signature keys of a JSON Web Key Set (RFC 7517, section 5).
pub fn of_set(set: &Value) -> Arc<[PublicKey]> {
    set.items_at(&["keys"]).iter().filter_map(PublicKey::of_jwk).collect()
}

impl KeySource {
    /// The keys for the verification of a token that names the key `id`; an empty `id` stands for any.
    pub async fn for_token(&self, id: &str) -> Result<Arc<[PublicKey]>, VerificationError> {
        match self {
            KeySource::Given(keys) => Ok(keys.clone()),
            KeySource::Discovered(discovered) => discovered.for_token(id).await,
        }
    }
}

impl Discovered {
    /// `document` is the URL of the discovery document; `roots` is the CA bundle for its server and for the server of
    /// the keys.
    pub fn new(issuer: &str, document: &str, roots: &[u8]) -> Result<Discovered, SettingsError> {
        let remote = Remote::new(&RemoteEndpoint {
            url: document.to_owned(),
            roots: roots.to_vec(),
            ..RemoteEndpoint::default()
        })?;
        Ok(Discovered {
            issuer: issuer.to_owned(),
            document: remote,
            roots: roots.to_vec(),
            keys: RwLock::default(),
            last_read: Mutex::default(),
        })
    }

    fn known_keys(&self) -> Arc<[PublicKey]> {
        self.keys.read().clone()
    }

    async fn for_token(&self, id: &str) -> Result<Arc<[PublicKey]>, VerificationError> {
        let is_among = |keys: &[PublicKey]| !keys.is_empty() && (id.is_empty() || keys.iter().any(|key| key.id == id));
        // tokens with known keys must not wait for a read that tokens with unknown keys cause
        let keys = self.known_keys();
        if is_among(&keys) {
            return Ok(keys);
        }
        // concurrent callers wait for the result of the first one
        let mut last_read = self.last_read.lock().await;
        let is_recent = last_read.at.is_some_and(|at| at.elapsed() < limits::ISSUER_KEYS_PAUSE);
        if !is_among(&self.known_keys()) && !is_recent {
            last_read.failure = match self.read().await {
                Ok(keys) => {
                    *self.keys.write() = keys;
                    None
                }
                Err(error) => {
                    static FAILURES: Notices = Notices::new();
                    if let Some(more) = FAILURES.due(&self.issuer) {
                        tracing::warn!(
                            issuer = self.issuer,
                            why = error.to_string(),
                            more,
                            "the keys of an issuer of tokens cannot be read"
                        );
                    }
                    Some(Arc::new(error))
                }
            };
            last_read.at = Some(clock::instant());
        }
        let keys = self.known_keys();
        match &last_read.failure {
            Some(failure) if keys.is_empty() => Err(VerificationError::Keys(failure.clone())),
            _ => Ok(keys),
        }
    }

    async fn read(&self) -> Result<Arc<[PublicKey]>, KeysError> {
        let document = self.document.get().await?;
        let issuer = document.str_at(&["issuer"]);
        if issuer != self.issuer {
            return Err(KeysError::Issuer { expected: self.issuer.clone(), got: issuer.to_owned() });
        }
        let url = document.str_at(&["jwks_uri"]).to_owned();
        let set = Remote::new(&RemoteEndpoint { url, roots: self.roots.clone(), ..RemoteEndpoint::default() })?;
        Ok(of_set(&set.get().await?))
    }
}
