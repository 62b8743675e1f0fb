//! A value that kube-apiserver's code wrote, changes of the key, and a plugin that is not healthy.

use super::messages::{DecryptResponse, EncryptResponse};
use super::*;
use crate::{Key, Layout};

/// A fake plugin, which encrypts by putting the id of its key before the bytes.
#[derive(Default)]
struct Vault {
    key: String,
    fault: Option<String>,
    decrypted: usize,
}

#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Vault>>);

impl Fake {
    fn of(key: &str) -> Fake {
        let fake = Fake::default();
        fake.0.lock().key = key.to_owned();
        fake
    }

    fn kms(&self) -> Kms {
        Kms::with("vault".to_owned(), Box::new(self.clone())).unwrap()
    }

    /// A worker of its own for the state of a provider, whose thread polls once a minute.
    fn worker(&self, kms: &Kms) -> Worker {
        Worker { name: "vault".to_owned(), service: Box::new(self.clone()), shared: kms.shared.clone() }
    }
}

impl Service for Fake {
    fn status(&self) -> Result<StatusResponse, KmsError> {
        let vault = self.0.lock();
        let healthz = vault.fault.clone().unwrap_or_else(|| "ok".to_owned());
        Ok(StatusResponse { version: "v2".to_owned(), healthz, key_id: vault.key.clone() })
    }

    fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, KmsError> {
        let key = self.0.lock().key.clone();
        let ciphertext = [key.as_bytes(), &request.plaintext].concat();
        Ok(EncryptResponse { ciphertext, key_id: key, annotations: Default::default() })
    }

    fn decrypt(&self, request: DecryptRequest) -> Result<DecryptResponse, KmsError> {
        self.0.lock().decrypted += 1;
        let plaintext = request.ciphertext.strip_prefix(request.key_id.as_bytes());
        let plaintext = plaintext.ok_or(KmsError::NoKeyId)?.to_vec();
        Ok(DecryptResponse { plaintext })
    }
}

fn place() -> Place {
    Layout::own().place(&Key::new(&"".into(), &"secrets".into(), "n", "a"))
}

fn opened(kms: &Kms, value: &Bytes) -> Opened {
    kms.open(&place(), value).unwrap().unwrap()
}

/// Written by `k8s.io/apiserver` 0.37.2 with the seed 0, 1, ..., 31.
const WRITTEN: &str = "0a4ed73c720a998626dcf97939ae0e1a48d4b266752c79468d4df5c16418e8583a1cdc60a62ee12c1d8d081cb63dbe11953b5d18961cdb02e5a1e40e845122f6bf56e4da448a08b7796b223a72b5f8ca12036b65791a06736f7572636522080a03612e621201632801";

#[test]
fn value_of_kube_apiserver_is_read() {
    let digit = |at: usize| u8::from_str_radix(&WRITTEN[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..WRITTEN.len()).step_by(2).map(digit).collect();
    let object = EncryptedObject::decode(&bytes[..]).unwrap();
    assert_eq!((object.key_id.as_str(), &object.source[..], object.source_type), ("key", &b"source"[..], SOURCE_SEED));
    assert_eq!(object.annotations.get("a.b").map(Vec::as_slice), Some(&b"c"[..]));
    assert_eq!(object.encode_to_vec(), bytes, "the encoding is the same");
    let seed: Vec<u8> = (0..32).collect();
    let source = Source::of(SOURCE_SEED, &seed).unwrap();
    assert_eq!(source.open(&object.data, b"/registry/secrets/n/a").unwrap(), b"a very secret text");
    assert!(source.open(&object.data, b"/registry/secrets/n/b").is_err(), "a value cannot be moved");
    let again = source.seal(b"plain", b"place").unwrap();
    assert_ne!(source.seal(b"plain", b"place").unwrap(), again);
    assert_eq!(source.open(&again, b"place").unwrap(), b"plain");
}

#[test]
fn damaged_values_are_errors() {
    let kms = Fake::of("first").kms();
    let sealed = kms.seal(&place(), b"{}").unwrap();
    assert_eq!(opened(&kms, &sealed), Opened { value: "{}".into(), stale: false });
    assert!(kms.open(&place(), &"k8s:enc:kms:v2:other:x".into()).is_none());
    for end in kms.prefix.len()..sealed.len() {
        let result = kms.open(&place(), &sealed.slice(..end)).unwrap();
        assert!(result.is_err_and(|why| why.to_string().starts_with("k8s:enc:kms:v2:vault: ")), "{end}");
    }
    for (source_type, size, want) in [
        (2, 32, "unknown encryptedDEKSourceType: 2"),
        (1, 31, "invalid seed length 31"),
        (0, 31, "invalid key size 31"),
    ] {
        assert!(Source::of(source_type, &vec![0; size]).err().unwrap().to_string().starts_with(want));
    }
}

#[test]
fn new_key_of_the_plugin_makes_values_stale() {
    let fake = Fake::of("first");
    let kms = fake.kms();
    let old = kms.seal(&place(), b"{}").unwrap();
    fake.worker(&kms).poll().unwrap();
    assert_eq!(kms.key_id(), "first", "the key is still the newest");
    fake.0.lock().key = "second".to_owned();
    fake.worker(&kms).poll().unwrap();
    assert_eq!(kms.key_id(), "second");
    let new = kms.seal(&place(), b"{}").unwrap();
    assert_eq!((opened(&kms, &old).stale, opened(&kms, &new).stale), (true, false));
    assert_eq!(fake.0.lock().decrypted, 0, "own sources are known");
    // another server decrypts each source once
    let other = fake.kms();
    for _ in 0..3 {
        assert_eq!((opened(&other, &old).stale, opened(&other, &new).stale), (true, false));
    }
    assert_eq!(fake.0.lock().decrypted, 2);
}

#[test]
fn seed_is_used_for_a_limited_time_after_a_fault() {
    let fake = Fake::of("first");
    let kms = fake.kms();
    fake.0.lock().fault = Some("sealed".to_owned());
    let error = fake.worker(&kms).poll().unwrap_err();
    assert_eq!(error.to_string(), "got unexpected healthz status: sealed");
    let sealed = kms.seal(&place(), b"{}").unwrap();
    let current = kms.shared.current.lock().as_ref().unwrap().expires;
    kms.shared.current.lock().as_mut().unwrap().expires = current - limits::KMS_SEED_LIFETIME - Duration::from_secs(1);
    let error = kms.seal(&place(), b"{}").unwrap_err().to_string();
    assert!(error.contains("the plugin has not been healthy for too long"), "{error}");
    assert_eq!(opened(&kms, &sealed).value, "{}", "it is still read");
    fake.0.lock().fault = None;
    fake.worker(&kms).poll().unwrap();
    kms.seal(&place(), b"{}").unwrap();
}

/// An endless sequence of numbers that depends only on the seed (xorshift).
fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 16) as usize % below
    }
}

/// Opening modified bytes never panics, and never yields a value other than the sealed one.
#[test]
fn any_bytes_are_errors_without_panics() {
    let kms = Fake::of("first").kms();
    let sealed = kms.seal(&place(), b"{\"a\":1}").unwrap();
    let mut number = numbers(1);
    for _ in 0..20_000 {
        let mut bytes = sealed[kms.prefix.len()..].to_vec();
        for _ in 0..=number(3) {
            let at = number(bytes.len().max(1)).min(bytes.len());
            match number(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, number(256) as u8),
                2 => bytes = (0..number(200)).map(|_| number(256) as u8).collect(),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << number(8)),
            }
        }
        let value = Bytes::from([kms.prefix.as_bytes(), &bytes[..]].concat());
        if let Ok(found) = kms.open(&place(), &value).unwrap() {
            assert_eq!(found.value, "{\"a\":1}", "{bytes:?}");
        }
        for source_type in 0..3 {
            if let Ok(source) = Source::of(source_type, &bytes) {
                assert!(source.open(&bytes, b"place").is_err());
            }
        }
    }
}

/// The cipher of a source fails for short and random text instead of panicking.
#[test]
fn random_text_opens_with_no_source() {
    let mut number = numbers(2);
    for source_type in 0..2 {
        let source = Source::of(source_type, &[7; 32]).unwrap();
        for size in 0..300 {
            let text: Vec<u8> = (0..size).map(|_| number(256) as u8).collect();
            assert!(source.open(&text, b"place").is_err(), "{size}");
        }
    }
}
