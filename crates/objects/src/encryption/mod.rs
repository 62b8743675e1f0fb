//! Encryption at rest, as kube-apiserver does it with an EncryptionConfiguration: the same prefixes, the same bytes.
//!
//! A value is `k8s:enc:<cipher>:v1:<name of the key>:` and the ciphertext. The first provider of a resource encrypts, all of
//! them decrypt. A value that was not written with the first key of the first provider is stale: the next write of the object
//! is made even if it changes nothing. Key management services (KMS) are not supported.

mod cipher;
mod configuration;

use bytes::Bytes;
use machinery::Value;

use self::cipher::Cipher;
use super::layout::{Opened, Place, Transform};

/// Prefix of all encrypted values.
const ENCRYPTED: &[u8] = b"k8s:enc:";

/// A provider: a list of keys of one cipher, or no encryption.
enum Provider {
    /// No encryption.
    Identity,
    /// Prefix of values, and the keys by their own prefixes (name and colon).
    Keys { prefix: &'static str, noun: &'static str, keys: Vec<(String, Cipher)> },
}

/// Resources and their providers; "*" stands for any.
struct Rule {
    group: String,
    resource: String,
    providers: std::sync::Arc<Vec<Provider>>,
}

/// The last step to a store: which resources are encrypted there, and how. The default encrypts nothing.
#[derive(Default)]
pub struct Encryption {
    rules: Vec<Rule>,
}

impl Encryption {
    /// Reads a decoded apiserver.config.k8s.io/v1 EncryptionConfiguration. The error is one line, without secrets.
    pub fn parse(configuration: &Value) -> Result<Encryption, String> {
        configuration::parse(configuration).map(|rules| Encryption { rules })
    }

    /// The providers of a resource: rules for it take precedence over rules for its group, and those over rules for all.
    fn providers(&self, place: &Place) -> Vec<&Provider> {
        let (group, plural) = (place.key.group.as_str(), place.key.plural.as_str());
        for (group, resource) in [(group, plural), (group, "*"), ("*", "*")] {
            let rules = self.rules.iter().filter(|rule| rule.group == group && rule.resource == resource);
            let providers: Vec<_> = rules.flat_map(|rule| rule.providers.iter()).collect();
            if !providers.is_empty() {
                return providers;
            }
        }
        vec![&Provider::Identity]
    }
}

impl Provider {
    fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, String> {
        let Provider::Keys { prefix, keys, .. } = self else { return Ok(value) };
        let (name, cipher) = keys.first().ok_or("there is no key")?;
        Ok([prefix.as_bytes(), name.as_bytes(), &cipher.seal(&value, &place.bytes)?].concat().into())
    }

    /// `None` if the value was not written by this provider.
    fn open(&self, place: &Place, value: &Bytes) -> Option<Result<Opened, String>> {
        let Provider::Keys { prefix, noun, keys } = self else {
            let plain = !value.starts_with(ENCRYPTED);
            return plain.then(|| Ok(Opened { value: value.clone(), stale: false }));
        };
        let rest = value.strip_prefix(prefix.as_bytes())?;
        let mut failed = None;
        for (at, (name, cipher)) in keys.iter().enumerate() {
            // several keys may have the same name: each is tried
            let Some(sealed) = rest.strip_prefix(name.as_bytes()) else { continue };
            match cipher.open(sealed, &place.bytes) {
                Ok(value) => return Some(Ok(Opened { value: value.into(), stale: at > 0 })),
                Err(why) => failed = Some(format!("{}: {why}", shown(value))),
            }
        }
        let unknown = || format!("no matching key was found for the provided {noun} transformer ({})", shown(value));
        Some(Err(failed.unwrap_or_else(unknown)))
    }
}

/// The prefix of an encrypted value, which names the cipher and the key.
fn shown(value: &[u8]) -> String {
    let prefix = value.splitn(6, |byte| *byte == b':').take(5).collect::<Vec<_>>().join(&b':');
    String::from_utf8_lossy(&prefix).into_owned()
}

impl Transform for Encryption {
    fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, String> {
        self.providers(place).first().map_or(Ok(value.clone()), |first| first.seal(place, value))
    }

    fn open(&self, place: &Place, value: Bytes) -> Result<Opened, String> {
        let mut failed = vec![];
        for (at, provider) in self.providers(place).into_iter().enumerate() {
            match provider.open(place, &value) {
                Some(Ok(opened)) => return Ok(Opened { stale: opened.stale || at > 0, ..opened }),
                Some(Err(why)) => failed.push(why),
                None => {}
            }
        }
        match (failed.is_empty(), value.starts_with(ENCRYPTED)) {
            (false, _) => Err(failed.join(", ")),
            (true, true) => Err(format!("it is encrypted, and no provider reads it ({})", shown(&value))),
            // upstream's words
            (true, false) => {
                Err("no matching prefix found: it is not encrypted, and identity is not among the providers".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests;
