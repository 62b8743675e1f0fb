//! Known test vectors, rules of configurations, and key rotation.

use machinery::json;

use super::*;
use crate::{Key, Layout};

fn parsed(configuration: &Value) -> Result<Encryption, String> {
    let encryption = Encryption::default();
    encryption.replace(configuration)?;
    Ok(encryption)
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

#[test]
fn known_vectors() {
    // NIST SP 800-38A F.2.5, whose first block precedes the padding; the GCM specification, test case 14; NaCl's
    // tests/box.c
    let cbc = Cipher::cbc(&hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")).unwrap();
    let start = hex("000102030405060708090a0b0c0d0e0f");
    let plain = hex("6bc1bee22e409f96e93d7e117393172a");
    let sealed = cbc.seal_from(&start, &plain, b"").unwrap();
    assert_eq!(sealed[..32], [start, hex("f58c4c04d6e5f1ba779eabfb5f7bfbd6")].concat());
    assert_eq!((sealed.len(), cbc.open(&sealed, b"other").unwrap()), (48, plain));

    let gcm = Cipher::gcm(&[0; 32]).unwrap();
    let sealed = gcm.seal_from(&[0; 12], &[0; 16], b"").unwrap();
    assert_eq!(sealed[12..], hex("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"));

    let key = hex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
    let nonce = hex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
    let plain = hex(
        "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f937763848645e0705",
    );
    let tag = "f3ffc7703f9400e52a7dfb4b3d3305d9";
    let secretbox = Cipher::secretbox(&key).unwrap();
    let sealed = secretbox.seal_from(&nonce, &plain, b"").unwrap();
    // the library puts the tag first, as NaCl does
    assert_eq!(sealed[24..56], hex(&format!("{tag}8e993b9f48681273c29650ba32fc76ce")));
    assert_eq!(secretbox.open(&sealed, b"").unwrap(), plain);
}

fn every_cipher() -> Vec<Cipher> {
    let mut all = vec![Cipher::secretbox(&[7; 32]).unwrap()];
    for length in [16, 24, 32] {
        all.extend([Cipher::cbc(&vec![7; length]).unwrap(), Cipher::gcm(&vec![7; length]).unwrap()]);
    }
    all
}

#[test]
fn sealed_values_open_only_with_their_key() {
    for cipher in every_cipher() {
        let plain = b"some 17 bytes ...".to_vec();
        for length in 0..plain.len() {
            let sealed = cipher.seal(&plain[..length], b"place").unwrap();
            assert_eq!(cipher.open(&sealed, b"place").unwrap(), plain[..length]);
            assert_ne!(cipher.seal(&plain[..length], b"place").unwrap(), sealed, "the start is random");
        }
        let sealed = cipher.seal(&plain, b"place").unwrap();
        assert!(!sealed.windows(4).any(|part| part == b"some"));
        for end in 0..sealed.len() {
            assert!(
                cipher.open(&sealed[..end], b"place").is_err_and(|why| !why.to_string().is_empty())
                    || matches!(cipher, Cipher::Cbc(_))
            );
        }
        // the value of one object cannot be moved to the key of another
        assert_eq!(cipher.open(&sealed, b"elsewhere").is_err(), matches!(cipher, Cipher::Gcm(_)));
        let authenticated = !matches!(cipher, Cipher::Cbc(_));
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            assert!(!authenticated || cipher.open(&flipped, b"place").is_err(), "{at}");
        }
    }
    for key in [0, 15, 33] {
        assert!(Cipher::cbc(&vec![0; key]).is_none() && Cipher::gcm(&vec![0; key]).is_none());
    }
    assert!(Cipher::secretbox(&[0; 31]).is_none());
}

const FIRST: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const SECOND: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

fn keys(provider: &'static str, keys: &[(&'static str, &'static str)]) -> Value {
    let keys = keys.iter().map(|(name, secret)| json!({"name": (*name), "secret": (*secret)}));
    [(provider, json!({"keys": (Value::Array(keys.collect()))}))].into()
}

fn configuration(entries: Vec<(&[&'static str], Vec<Value>)>) -> Value {
    let entries = entries.into_iter().map(|(resources, providers)| {
        let resources = resources.iter().map(|name| Value::from(*name)).collect();
        json!({"resources": (Value::Array(resources)), "providers": (Value::Array(providers))})
    });
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": (Value::Array(entries.collect()))})
}

fn of(entries: Vec<(&[&'static str], Vec<Value>)>) -> Encryption {
    parsed(&configuration(entries)).unwrap()
}

fn place(group: &str, plural: &str) -> Place {
    Layout::own().place(&Key::new(&group.into(), &plural.into(), "n", "a"))
}

#[test]
fn resources_are_chosen_by_name_group_or_all() {
    let identity = || vec![json!({"identity": {}})];
    let encryption = of(vec![
        (&["secrets", "boats.example.com"], vec![keys("aesgcm", &[("a", FIRST)])]),
        (&["*.other.io"], vec![keys("aescbc", &[("b", FIRST)])]),
        (&["*."], identity()),
        (&["*.*"], vec![keys("secretbox", &[("c", FIRST)])]),
    ]);
    let cases = [
        ("", "secrets", "k8s:enc:aesgcm:v1:a:"),
        ("example.com", "boats", "k8s:enc:aesgcm:v1:a:"),
        ("other.io", "ports", "k8s:enc:aescbc:v1:b:"),
        ("", "configmaps", "{}"),
        ("example.com", "ports", "k8s:enc:secretbox:v1:c:"),
    ];
    for (group, plural, prefix) in cases {
        let place = place(group, plural);
        let sealed = encryption.seal(&place, "{}".into()).unwrap();
        assert!(sealed.starts_with(prefix.as_bytes()), "{plural}.{group}");
        assert_eq!(encryption.open(&place, sealed), Ok(Opened { value: "{}".into(), stale: false }));
    }
}

#[test]
fn keys_can_be_rotated() {
    let place = place("", "secrets");
    let sealed = |provider: Value| of(vec![(&["secrets"], vec![provider])]).seal(&place, "{}".into()).unwrap();
    let all = of(vec![(
        &["secrets"],
        vec![
            keys("aesgcm", &[("new", SECOND), ("old", FIRST)]),
            keys("aescbc", &[("k", FIRST)]),
            json!({"identity": {}}),
        ],
    )]);
    let cases = [
        (sealed(keys("aesgcm", &[("new", SECOND)])), false),
        (sealed(keys("aesgcm", &[("old", FIRST)])), true),
        (sealed(keys("aescbc", &[("k", FIRST)])), true),
        (Bytes::from("{}"), true),
    ];
    for (value, stale) in cases {
        assert_eq!(all.open(&place, value), Ok(Opened { value: "{}".into(), stale }));
    }
    // one name for two keys, in two providers
    let twice = of(vec![(&["secrets"], vec![keys("aesgcm", &[("k", SECOND)]), keys("aesgcm", &[("k", FIRST)])])]);
    let old = sealed(keys("aesgcm", &[("k", FIRST)]));
    assert_eq!(twice.open(&place, old), Ok(Opened { value: "{}".into(), stale: true }));
}

#[test]
fn values_that_cannot_be_decrypted_are_reported() {
    let place = place("", "secrets");
    let one = |provider: Value| of(vec![(&["secrets"], vec![provider])]);
    let gcm = one(keys("aesgcm", &[("k", FIRST)]));
    let sealed = gcm.seal(&place, "{}".into()).unwrap();
    let cases = [
        (
            one(keys("aesgcm", &[("k", SECOND)])),
            sealed.clone(),
            "k8s:enc:aesgcm:v1:k: cipher: message authentication failed",
        ),
        (
            one(keys("aesgcm", &[("l", FIRST)])),
            sealed.clone(),
            "no matching key was found for the provided AES transformer (k8s:enc:aesgcm:v1:k)",
        ),
        (
            one(json!({"identity": {}})),
            sealed.clone(),
            "it is encrypted, and no provider reads it (k8s:enc:aesgcm:v1:k)",
        ),
        (Encryption::default(), sealed.clone(), "it is encrypted, and no provider reads it (k8s:enc:aesgcm:v1:k)"),
        (
            one(keys("secretbox", &[("k", FIRST)])),
            "{}".into(),
            "no matching prefix found: it is not encrypted, and identity is not among the providers",
        ),
        (gcm, sealed.slice(..25), "k8s:enc:aesgcm:v1:k: the stored data was shorter than the required size"),
    ];
    for (encryption, value, want) in cases {
        assert_eq!(encryption.open(&place, value), Err(want.to_owned()));
    }
}

fn kms(name: &str, endpoint: &str) -> Value {
    json!({"kms": {"apiVersion": "v2", "name": (name), "endpoint": (endpoint)}})
}

#[test]
fn configurations_are_checked() {
    let provider = || vec![keys("aescbc", &[("k", FIRST)])];
    let cases = [
        (
            json!({"apiVersion": "v1", "kind": "EncryptionConfig"}),
            "no kind \"EncryptionConfig\" is registered for version \"v1\"",
        ),
        (configuration(vec![]), "resources: Required value: at least one resources is required"),
        (
            configuration(vec![(&[], vec![])]),
            "[resources[0].resources: Required value: at least one resources[0].resources is required, resources[0].providers: Required value: at least one resources[0].providers is required]",
        ),
        (
            configuration(vec![(&["secrets", "secrets"], provider())]),
            "resources[0].resources: Invalid value: [\"secrets\",\"secrets\"]: the same resource cannot be specified multiple times",
        ),
        (
            configuration(vec![(&["secrets", "*."], provider())]),
            "resources[0].resources: Invalid value: [\"secrets\",\"*.\"]: using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked",
        ),
        (
            configuration(vec![(&["Secrets"], provider())]),
            "resources[0].resources[0]: Invalid value: \"Secrets\": resource name should not contain capital letters",
        ),
        (
            configuration(vec![(&["*"], provider())]),
            "resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources",
        ),
        (
            configuration(vec![(&["boats.*"], provider())]),
            "resources[0].resources[0]: Invalid value: \"boats.*\": encrypting the same resource across groups is not supported",
        ),
        (
            configuration(vec![(&["secrets"], vec![json!({})])]),
            "resources[0].providers[0]: Invalid value: \"\": provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
        ),
        (
            configuration(vec![(&["secrets"], vec![json!({"identity": {}, "aescbc": {}})])]),
            "resources[0].providers[0]: Invalid value: \"aescbc,identity\": more than one provider specified in a single element, should split into different list elements",
        ),
        (
            configuration(vec![(&["secrets"], vec![keys("aescbc", &[])])]),
            "resources[0].providers[0].aescbc.keys: Required value: at least one keys is required",
        ),
        (
            configuration(vec![(&["secrets"], vec![keys("aesgcm", &[("", "")])])]),
            "[resources[0].providers[0].aesgcm.keys[0].name: Required value: name is a mandatory field for a key, resources[0].providers[0].aesgcm.keys[0].secret: Required value: secret is a mandatory field for a key]",
        ),
        (
            configuration(vec![(&["secrets"], vec![keys("aesgcm", &[("k", "?")])])]),
            "resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: \"REDACTED\": secrets must be base64 encoded",
        ),
        (
            configuration(vec![(&["secrets"], vec![keys("aesgcm", &[("k", "c2VjcmV0")])])]),
            "resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 6, expected one of [16 24 32]",
        ),
        (
            configuration(vec![(&["secrets"], vec![json!({"kms": {"name": "k", "endpoint": "unix:///x"}})])]),
            "resources[0].providers[0].kms.apiVersion: Invalid value: \"\": KMS v1 is not supported here; use a v2 plugin",
        ),
        (
            configuration(vec![(&["secrets"], vec![kms("a:b", "http://x"), kms("a:b", "")])]),
            "[resources[0].providers[0].kms.name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':', resources[0].providers[0].kms.endpoint: Invalid value: \"http://x\": unsupported scheme \"http\" for KMS provider, only unix is supported, resources[0].providers[1].kms.name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':', resources[0].providers[1].kms.name: Invalid value: \"a:b\": duplicate KMS provider name a:b, names must be unique, resources[0].providers[1].kms.endpoint: Invalid value: \"\": endpoint is a mandatory field for a kms]",
        ),
    ];
    for (value, want) in cases {
        assert_eq!(parsed(&value).err().as_deref(), Some(want));
    }
}

#[test]
fn rules_are_not_masked() {
    for mask in ["*.*", "*."] {
        let provider = || vec![keys("aescbc", &[("k", FIRST)])];
        let value = configuration(vec![(&[mask], provider()), (&["secrets"], provider())]);
        let want = format!("resource \"secrets\" is masked by earlier rule \"{mask}\"");
        assert_eq!(parsed(&value).err(), Some(want));
    }
}

/// The mark changes with the first provider of a resource, with its first key and with the content of that key.
#[test]
fn mark_changes_with_the_key_that_writes() {
    let key = |plural: &str| Key::new(&"".into(), &plural.into(), "n", "a");
    let marks: Vec<u64> = [
        vec![json!({"identity": {}})],
        vec![keys("aesgcm", &[("k", FIRST)]), json!({"identity": {}})],
        vec![keys("aesgcm", &[("k", SECOND)])],
        vec![keys("aesgcm", &[("l", FIRST), ("k", FIRST)])],
        vec![keys("aescbc", &[("k", FIRST)])],
    ]
    .into_iter()
    .map(|providers| {
        let encryption = parsed(&configuration(vec![(&["secrets"], providers)])).unwrap();
        assert_eq!(encryption.mark(&key("configmaps")), 0, "it is not encrypted");
        encryption.mark(&key("secrets"))
    })
    .collect();
    let distinct: std::collections::HashSet<&u64> = marks.iter().collect();
    assert_eq!(distinct.len(), marks.len(), "{marks:?}");
    let encryption = Encryption::default();
    assert_eq!(encryption.mark(&key("secrets")), 0);
    encryption.replace(&configuration(vec![(&["secrets"], vec![keys("aesgcm", &[("k", FIRST)])])])).unwrap();
    assert_eq!(encryption.clone().mark(&key("secrets")), marks[1]);
}
