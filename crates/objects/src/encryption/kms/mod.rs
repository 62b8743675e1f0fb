//! Key management services, version 2: a plugin encrypts a seed, from which the keys of values are derived, as in
//! kube-apiserver.
//!
//! Each provider has a thread that talks to its plugin. The thread polls the status and makes a new seed when the
//! plugin has a new key. Values are encrypted with the current seed, without a call. Decrypting a value whose source is
//! unknown takes one call, after which the source is kept.

mod envelope;
mod messages;
mod plugin;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use base::{clock, digest, task};
use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::time::Instant;

use self::envelope::Source;
use self::messages::{DecryptRequest, EncryptRequest, EncryptedObject, SOURCE_SEED, StatusResponse};
use self::plugin::{Plugin, Service};
use super::error::{EncryptionError, KmsError};
use crate::layout::{Opened, Place};
use crate::limits;

/// Prefix of values; the name of the provider and a colon follow.
const PREFIX: &str = "k8s:enc:kms:v2:";

/// A provider as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub name: String,
    /// URL of the Unix socket.
    pub endpoint: String,
    /// Time limit of a call.
    pub timeout: Duration,
}

/// A provider, and the thread that calls its plugin. Dropping the provider ends the thread.
pub struct Kms {
    prefix: String,
    shared: Arc<Shared>,
    calls: SyncSender<Call>,
}

/// A source to decrypt, and where to send it.
struct Call {
    object: EncryptedObject,
    reply: SyncSender<Result<Arc<Source>, KmsError>>,
}

/// The seed that encrypts values.
#[derive(Clone)]
struct Current {
    source: Arc<Source>,
    /// The fields of a stored value except its data.
    envelope: EncryptedObject,
    /// From this time on no value may be encrypted, since the plugin has not been healthy for too long.
    expires: Instant,
}

#[derive(Default)]
struct Shared {
    current: Mutex<Option<Current>>,
    /// Decrypted sources, by the digest of their encrypted form.
    sources: Mutex<HashMap<String, Arc<Source>>>,
    /// Why the plugin is not healthy.
    fault: Mutex<Option<String>>,
}

/// A value without its data: all that the plugin needs to decrypt the source of the key.
fn envelope_of(object: &EncryptedObject) -> EncryptedObject {
    let EncryptedObject { data: _, key_id, source, annotations, source_type } = object;
    let (key_id, source, annotations) = (key_id.clone(), source.clone(), annotations.clone());
    EncryptedObject { data: vec![], key_id, source, annotations, source_type: *source_type }
}

/// The digest of the envelope of a value.
fn digest_of(object: &EncryptedObject) -> String {
    let mut sum = digest::Sha256::default();
    sum.update(&envelope_of(object).encode_to_vec());
    sum.hex()
}

impl Shared {
    fn keep(&self, object: &EncryptedObject, source: Arc<Source>) {
        let mut sources = self.sources.lock();
        if sources.len() >= limits::KMS_SOURCES_MAX {
            sources.clear();
        }
        sources.insert(digest_of(object), source);
    }
}

impl Kms {
    /// Starts a provider and waits for its first seed, since a plugin may start at the same time.
    ///
    /// # Errors
    ///
    /// The plugin does not respond or is not healthy within [`limits::KMS_START`].
    pub fn start(settings: &Settings) -> Result<Kms, KmsError> {
        let plugin = Plugin::new(settings.endpoint.clone(), settings.timeout)?;
        Kms::with(settings.name.clone(), Box::new(plugin))
    }

    fn with(name: String, service: Box<dyn Service>) -> Result<Kms, KmsError> {
        let shared = Arc::new(Shared::default());
        let (calls, received) = sync_channel(limits::KMS_CALLS_MAX);
        let worker = Worker { name: name.clone(), service, shared: shared.clone() };
        let (started, start) = sync_channel(1);
        let thread = std::thread::Builder::new().name(format!("kms {name}"));
        thread.spawn(move || worker.run(&started, &received))?;
        task::blocking(|| start.recv()).unwrap_or(Err(KmsError::Ended))?;
        Ok(Kms { prefix: format!("{PREFIX}{name}:"), shared, calls })
    }

    /// The id of the key that the seed for new values is encrypted with.
    pub fn key_id(&self) -> String {
        self.shared.current.lock().as_ref().map(|current| current.envelope.key_id.clone()).unwrap_or_default()
    }

    /// Why the plugin is not healthy.
    pub fn fault(&self) -> Option<String> {
        self.shared.fault.lock().clone()
    }

    pub fn seal(&self, place: &Place, value: &[u8]) -> Result<Bytes, KmsError> {
        let Some(current) = self.shared.current.lock().clone() else { return Err(KmsError::NoSeed) };
        if clock::instant() > current.expires {
            let fault = self.fault().unwrap_or_default();
            return Err(KmsError::Expired { prefix: self.prefix.clone(), fault });
        }
        let object = EncryptedObject { data: current.source.seal(value, &place.bytes)?, ..current.envelope };
        Ok([self.prefix.as_bytes(), &object.encode_to_vec()].concat().into())
    }

    /// `None` if the value was not written by this provider.
    pub fn open(&self, place: &Place, value: &Bytes) -> Option<Result<Opened, EncryptionError>> {
        let rest = value.strip_prefix(self.prefix.as_bytes())?;
        let failed = |source| EncryptionError::Service { prefix: self.prefix.clone(), source };
        Some(self.opened(place, rest).map_err(failed))
    }

    fn opened(&self, place: &Place, rest: &[u8]) -> Result<Opened, KmsError> {
        let object = EncryptedObject::decode(rest)?;
        envelope::validate(&object)?;
        let known = self.shared.sources.lock().get(&digest_of(&object)).cloned();
        let source = match known {
            Some(source) => source,
            None => self.decrypted(&object)?,
        };
        let value = source.open(&object.data, &place.bytes)?;
        let stale = object.key_id != self.key_id() || object.source_type != SOURCE_SEED;
        Ok(Opened { value: value.into(), stale })
    }

    /// Asks the plugin to decrypt the seed that a value was encrypted with, and blocks until it responds. The async
    /// runtime meanwhile moves its other tasks to another thread.
    fn decrypted(&self, object: &EncryptedObject) -> Result<Arc<Source>, KmsError> {
        let (reply, response) = sync_channel(1);
        let call = Call { object: envelope_of(object), reply };
        task::blocking(|| {
            self.calls.send(call).map_err(|_| KmsError::Ended)?;
            response.recv().unwrap_or(Err(KmsError::Ended))
        })
    }
}

/// The thread of a provider.
struct Worker {
    name: String,
    service: Box<dyn Service>,
    shared: Arc<Shared>,
}

impl Worker {
    /// Makes the first seed, reports it, and then serves calls and polls the status until the provider is dropped.
    fn run(self, started: &SyncSender<Result<(), KmsError>>, calls: &Receiver<Call>) {
        let first = self.first();
        let failed = first.is_err();
        if started.send(first).is_err() || failed {
            return;
        }
        let mut next = clock::instant() + limits::KMS_STATUS;
        loop {
            match calls.recv_timeout(next.saturating_duration_since(clock::instant())) {
                // the caller may have given up
                Ok(Call { object, reply }) => drop(reply.send(self.decrypt(&object))),
                Err(RecvTimeoutError::Timeout) => {
                    let polled = self.poll();
                    next = clock::instant() + if polled.is_ok() { limits::KMS_STATUS } else { limits::KMS_RETRY };
                    if let Err(why) = &polled {
                        tracing::warn!("kms provider {}: {why}", self.name);
                    }
                    *self.shared.fault.lock() = polled.err().map(|error| error.to_string());
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn first(&self) -> Result<(), KmsError> {
        let end = clock::instant() + limits::KMS_START;
        loop {
            match self.poll() {
                Err(_) if clock::instant() < end => std::thread::sleep(limits::KMS_START_RETRY),
                result => return result,
            }
        }
    }

    /// Reads the status. Extends the life of the seed if its key is still the newest; otherwise makes a new one.
    fn poll(&self) -> Result<(), KmsError> {
        let expires = clock::instant() + limits::KMS_SEED_LIFETIME;
        let StatusResponse { version, healthz, key_id } = self.service.status()?;
        if !["v2", "v2beta1"].contains(&version.as_str()) {
            return Err(KmsError::Version(version));
        }
        if healthz != "ok" {
            return Err(KmsError::Unhealthy(healthz));
        }
        if key_id.is_empty() {
            return Err(KmsError::NoKeyId);
        }
        if let Some(current) = self.shared.current.lock().as_mut()
            && current.envelope.key_id == key_id
        {
            current.expires = expires;
            return Ok(());
        }
        let (source, seed) = Source::random();
        let request = EncryptRequest { plaintext: seed.to_vec(), uid: clock::uuid() };
        let made = self.service.encrypt(request)?;
        let envelope = EncryptedObject {
            data: vec![0],
            key_id: made.key_id,
            source: made.ciphertext,
            annotations: made.annotations,
            source_type: SOURCE_SEED,
        };
        envelope::validate(&envelope)?;
        let source = Arc::new(source);
        self.shared.keep(&envelope, source.clone());
        tracing::info!("kms provider {}: new values are encrypted with key {}", self.name, envelope.key_id);
        *self.shared.current.lock() = Some(Current { source, envelope, expires });
        Ok(())
    }

    fn decrypt(&self, object: &EncryptedObject) -> Result<Arc<Source>, KmsError> {
        // an earlier call may have been for the same source
        if let Some(source) = self.shared.sources.lock().get(&digest_of(object)) {
            return Ok(source.clone());
        }
        let request = DecryptRequest {
            ciphertext: object.source.clone(),
            uid: clock::uuid(),
            key_id: object.key_id.clone(),
            annotations: object.annotations.clone(),
        };
        let decrypted = self.service.decrypt(request).map_err(|error| KmsError::Decrypt(Box::new(error)))?;
        let source = Arc::new(Source::of(object.source_type, &decrypted.plaintext)?);
        self.shared.keep(object, source.clone());
        Ok(source)
    }
}

#[cfg(test)]
mod tests;
