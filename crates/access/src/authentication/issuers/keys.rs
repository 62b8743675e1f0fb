//! The keys of an issuer: configured, or read by OpenID Connect discovery.

use std::sync::Arc;

use base::clock;
use base::webhook::{Remote, RemoteEndpoint};
use machinery::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::authentication::jose::PublicKey;
use crate::limits;

/// The source of keys.
#[derive(Debug)]
pub enum KeySource {
    Given(Arc<[PublicKey]>),
    Discovered(Box<Discovered>),
}

/// Keys by the discovery document of an issuer. They are read when a token first needs them, and again when a token names an
/// unknown key, but not more often than every [`limits::ISSUER_KEYS_PAUSE`].
#[derive(Debug)]
pub struct Discovered {
    issuer: String,
    document: Remote,
    roots: Vec<u8>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    keys: Arc<[PublicKey]>,
    looked: Option<Instant>,
    failure: String,
}

/// The keys for signatures of a JSON Web Key Set (RFC 7517, section 5).
pub fn of_set(set: &Value) -> Arc<[PublicKey]> {
    let keys = set.get("keys").and_then(Value::as_array).unwrap_or_default();
    keys.iter().filter_map(PublicKey::of_jwk).collect()
}

impl KeySource {
    /// The keys for the verification of a token that names the key `id`; an empty `id` stands for any.
    pub async fn for_token(&self, id: &str) -> Result<Arc<[PublicKey]>, String> {
        match self {
            KeySource::Given(keys) => Ok(keys.clone()),
            KeySource::Discovered(discovered) => discovered.for_token(id).await,
        }
    }
}

impl Discovered {
    /// `document` is the URL of the discovery document; `roots` is the CA bundle for its server and that of the keys.
    pub fn new(issuer: &str, document: &str, roots: &[u8]) -> Result<Discovered, String> {
        let remote = Remote::new(&RemoteEndpoint {
            url: document.to_owned(),
            roots: roots.to_vec(),
            ..RemoteEndpoint::default()
        })?;
        let known = Mutex::default();
        Ok(Discovered { issuer: issuer.to_owned(), document: remote, roots: roots.to_vec(), known })
    }

    async fn for_token(&self, id: &str) -> Result<Arc<[PublicKey]>, String> {
        // concurrent callers wait for the result of the first one
        let mut known = self.known.lock().await;
        let has = |keys: &[PublicKey]| !keys.is_empty() && (id.is_empty() || keys.iter().any(|key| key.id == id));
        let recent = known.looked.is_some_and(|looked| looked.elapsed() < limits::ISSUER_KEYS_PAUSE);
        if !has(&known.keys) && !recent {
            match self.read().await {
                Ok(keys) => (known.keys, known.failure) = (keys, String::new()),
                Err(why) => {
                    tracing::warn!(issuer = self.issuer, why, "the keys of an issuer of tokens cannot be read");
                    known.failure = why;
                }
            }
            known.looked = Some(clock::instant());
        }
        match known.keys.is_empty() && !known.failure.is_empty() {
            true => Err(format!("fetching keys {}", known.failure)),
            false => Ok(known.keys.clone()),
        }
    }

    async fn read(&self) -> Result<Arc<[PublicKey]>, String> {
        let document = self.document.get().await?;
        let issuer = document.str_at(&["issuer"]);
        if issuer != self.issuer {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {} got {}",
                machinery::value::quote(&self.issuer),
                machinery::value::quote(issuer)
            ));
        }
        let url = document.str_at(&["jwks_uri"]).to_owned();
        let set = Remote::new(&RemoteEndpoint { url, roots: self.roots.clone(), ..RemoteEndpoint::default() })?;
        Ok(of_set(&set.get().await?))
    }
}
