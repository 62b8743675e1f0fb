//! Encryption at rest, as kube-apiserver does it with an EncryptionConfiguration: the same prefixes, the same bytes.
//!
//! A value is `k8s:enc:<cipher>:v1:<name of the key>:` and the ciphertext. The first provider of a resource encrypts;
//! all of its providers decrypt. A value that was not written with the first key of the first provider is stale: the
//! next write of the object is made even if it changes nothing. The configuration can be replaced while it is used.

mod cipher;
mod configuration;
mod error;
mod kms;

use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use machinery::Value;

use self::cipher::Cipher;
pub use self::error::ConfigurationError;
use self::error::EncryptionError;
use self::kms::Kms;
use super::key::Key;
use super::layout::{Opened, Place, Transform};

/// Prefix of all encrypted values.
const ENCRYPTED: &[u8] = b"k8s:enc:";

/// A provider: a list of keys of one cipher, or no encryption.
enum Provider {
    Identity,
    /// Prefix of values, and the keys by their own prefixes (name and colon).
    Keys {
        prefix: &'static str,
        noun: &'static str,
        keys: Vec<(String, Cipher)>,
        mark: u64,
    },
    Kms(Kms),
}

/// Resources and their providers; "*" stands for any.
struct Rule {
    group: String,
    resource: String,
    providers: Arc<Vec<Provider>>,
}

/// The last step before the store, which encrypts the values of some resources. The default encrypts nothing. Clones
/// share their configuration.
#[derive(Clone, Default)]
pub struct Encryption {
    rules: Arc<ArcSwap<Vec<Rule>>>,
}

impl Encryption {
    /// Replaces the configuration of all clones by a decoded apiserver.config.k8s.io/v1 EncryptionConfiguration, and
    /// connects to its key management services. After an error, the former one stays in force.
    pub fn replace(&self, configuration: &Value) -> Result<(), ConfigurationError> {
        self.rules.store(Arc::new(configuration::parse(configuration)?));
        Ok(())
    }
}

/// The providers of a resource: rules for it take precedence over rules for its group, which take precedence over rules
/// for everything.
fn providers<'a>(rules: &'a [Rule], key: &Key) -> Vec<&'a Provider> {
    let (group, plural) = (key.group.as_str(), key.plural.as_str());
    for (group, resource) in [(group, plural), (group, "*"), ("*", "*")] {
        let of = rules.iter().filter(|rule| rule.group == group && rule.resource == resource);
        let providers: Vec<_> = of.flat_map(|rule| rule.providers.iter()).collect();
        if !providers.is_empty() {
            return providers;
        }
    }
    vec![&Provider::Identity]
}

impl Provider {
    fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, EncryptionError> {
        let (prefix, keys) = match self {
            Provider::Identity => return Ok(value),
            Provider::Kms(kms) => return Ok(kms.seal(place, &value)?),
            Provider::Keys { prefix, keys, .. } => (prefix, keys),
        };
        let (name, cipher) = keys.first().ok_or(EncryptionError::NoKey)?;
        Ok([prefix.as_bytes(), name.as_bytes(), &cipher.seal(&value, &place.bytes)?].concat().into())
    }

    /// `None` if the value was not written by this provider.
    fn open(&self, place: &Place, value: &Bytes) -> Option<Result<Opened, EncryptionError>> {
        let (prefix, noun, keys) = match self {
            Provider::Identity => {
                let plain = !value.starts_with(ENCRYPTED);
                return plain.then(|| Ok(Opened { value: value.clone(), stale: false }));
            }
            Provider::Kms(kms) => return kms.open(place, value),
            Provider::Keys { prefix, noun, keys, .. } => (prefix, *noun, keys),
        };
        let rest = value.strip_prefix(prefix.as_bytes())?;
        let mut failed = None;
        for (at, (name, cipher)) in keys.iter().enumerate() {
            // several keys may have the same name: each is tried
            let Some(sealed) = rest.strip_prefix(name.as_bytes()) else { continue };
            match cipher.open(sealed, &place.bytes) {
                Ok(value) => return Some(Ok(Opened { value: value.into(), stale: at > 0 })),
                Err(source) => failed = Some(EncryptionError::Key { prefix: shown(value), source }),
            }
        }
        let unknown = || EncryptionError::NoMatchingKey { noun, prefix: shown(value) };
        Some(Err(failed.unwrap_or_else(unknown)))
    }

    /// A number that identifies the key with which the provider encrypts. Two keys have the same number only if hashes
    /// collide.
    fn mark(&self) -> u64 {
        match self {
            Provider::Identity => 0,
            Provider::Keys { mark, .. } => *mark,
            Provider::Kms(kms) => {
                let mut hasher = std::hash::DefaultHasher::new();
                kms.key_id().hash(&mut hasher);
                hasher.finish()
            }
        }
    }
}

/// The prefix of an encrypted value, which names the cipher and the key.
fn shown(value: &[u8]) -> String {
    let prefix = value.splitn(6, |byte| *byte == b':').take(5).collect::<Vec<_>>().join(&b':');
    String::from_utf8_lossy(&prefix).into_owned()
}

impl Transform for Encryption {
    fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, String> {
        let rules = self.rules.load();
        providers(&rules, &place.key).first().map_or(Ok(value.clone()), |first| Ok(first.seal(place, value)?))
    }

    fn open(&self, place: &Place, value: Bytes) -> Result<Opened, String> {
        let rules = self.rules.load();
        let mut failed = vec![];
        for (at, provider) in providers(&rules, &place.key).into_iter().enumerate() {
            match provider.open(place, &value) {
                Some(Ok(opened)) => return Ok(Opened { stale: opened.stale || at > 0, ..opened }),
                Some(Err(why)) => failed.push(why),
                None => {}
            }
        }
        let error = match (failed.is_empty(), value.starts_with(ENCRYPTED)) {
            (false, _) => EncryptionError::Providers(failed),
            (true, true) => EncryptionError::NoProvider(shown(&value)),
            (true, false) => EncryptionError::NotEncrypted,
        };
        Err(error.into())
    }

    fn mark(&self, key: &Key) -> u64 {
        providers(&self.rules.load(), key).first().map_or(0, |first| first.mark())
    }

    fn health(&self) -> Option<Result<(), String>> {
        let rules = self.rules.load();
        let mut services = rules.iter().flat_map(|rule| rule.providers.iter()).filter_map(|provider| match provider {
            Provider::Kms(kms) => Some(kms.fault()),
            _ => None,
        });
        let first = services.next()?;
        Some(first.or_else(|| services.flatten().next()).map_or(Ok(()), Err))
    }
}

#[cfg(test)]
mod tests;
