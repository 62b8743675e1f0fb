//! Secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::Value;

use crate::core::config::{decoded_len, unchanged};
use crate::core::key_pair;
use crate::limits;
use crate::names::data_key;
use schema::at::At;

/// The data that a type of Secret requires.
enum Needs {
    /// All of these keys.
    Present(&'static [&'static str]),
    /// At least one of these keys.
    Any(&'static [&'static str]),
    /// A key with a non-empty value.
    Filled(&'static str),
    /// A key with a JSON value.
    Json(&'static str),
    /// A non-empty annotation.
    Annotation(&'static str),
}

const TYPES: [(&str, Needs); 6] = [
    ("kubernetes.io/service-account-token", Needs::Annotation("kubernetes.io/service-account.name")),
    ("kubernetes.io/dockercfg", Needs::Json(".dockercfg")),
    ("kubernetes.io/dockerconfigjson", Needs::Json(".dockerconfigjson")),
    ("kubernetes.io/basic-auth", Needs::Any(&["username", "password"])),
    ("kubernetes.io/ssh-auth", Needs::Filled("ssh-privatekey")),
    ("kubernetes.io/tls", Needs::Present(&["tls.crt", "tls.key"])),
];

/// `stringData` is moved to `data`. The type defaults to Opaque.
pub fn default(object: &mut Value) {
    let Some(Value::Object(texts)) = object.remove_at(&["stringData"]) else { return };
    for (key, value) in texts {
        let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
        object.set_at(&["data", &key], Value::from(encoded));
    }
}

fn bytes(secret: &Value, key: &str) -> Option<Vec<u8>> {
    let value = secret.at(&["data", key])?;
    Some(STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default())
}

pub fn validate(at: At) {
    at.field("type").shown_as_json().immutable();
    unchanged(at, &["data"]);
    let mut size = 0;
    for (key, value) in at.entries_of("data") {
        value.shown_as_text(key).invalid_each(data_key(key));
        size += decoded_len(value.as_text());
    }
    if size > limits::DATA_BYTES_MAX {
        at.field("data").too_long(limits::DATA_BYTES_MAX);
    }
    if let Some((_, needs)) = TYPES.iter().find(|(name, _)| *name == at.text("type")) {
        missing(at, needs);
    }
}

/// Reports what a Secret lacks that its type requires.
fn missing(secret: At, needs: &Needs) {
    let data = secret.field("data");
    let has = |key: &str| data.value.get(key).is_some();
    let required = |key: &str| data.entry(key).required("");
    match needs {
        Needs::Present(keys) => keys.iter().filter(|key| !has(key)).for_each(|key| required(key)),
        Needs::Any(keys) if keys.iter().any(|key| has(key)) => {}
        Needs::Any(keys) => keys.iter().for_each(|key| required(key)),
        Needs::Filled(key) if bytes(secret.value, key).is_none_or(|b| b.is_empty()) => required(key),
        Needs::Filled(_) => {}
        Needs::Json(key) => match bytes(secret.value, key) {
            None => required(key),
            Some(bytes) => {
                let kind = |kind: &str| {
                    Err(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
                };
                let read = match machinery::value::decode(&bytes) {
                    Ok(Value::Object(_) | Value::Null) => Ok(()),
                    Ok(Value::Array(_)) => kind("array"),
                    Ok(Value::String(_)) => kind("string"),
                    Ok(Value::Bool(_)) => kind("bool"),
                    Ok(_) => kind("number"),
                    Err(error) => Err(base::wording::json_error(&error)),
                };
                if let Err(why) = read {
                    data.entry(key).shown_as_text("<secret contents redacted>").invalid(why);
                }
            }
        },
        Needs::Annotation(name) => secret.field("metadata.annotations").entry(name).require_text(""),
    }
}

/// Warns about a certificate that does not match its key.
pub fn warnings(at: At) {
    if at.text("type") == "kubernetes.io/tls" {
        let part = |key: &str| bytes(at.value, key).unwrap_or_default();
        key_pair::check(&part("tls.crt"), &part("tls.key")).err().into_iter().for_each(|why| at.warn_text(why));
    }
}
