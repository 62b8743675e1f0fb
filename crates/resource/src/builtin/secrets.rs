//! Secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

use super::checks::entries;
use super::config::{data_key, decoded_len, immutable_errors};
use super::key_pair;
use crate::limits;

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

/// The decoded value of a key.
fn bytes(secret: &Value, key: &str) -> Option<Vec<u8>> {
    let value = secret.at(&["data", key])?;
    Some(STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default())
}

pub fn validate(new: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    if let Some(old) = old
        && old.get("type") != new.get("type")
    {
        let value = new.get("type").cloned().unwrap_or_default();
        errors.push(super::checks::named(
            FieldError::invalid(&FieldPath::new("type"), &value, "field is immutable"),
            &value,
        ));
    }
    errors.extend(immutable_errors(new, old, &["data"]));
    let mut size = 0;
    for (key, value) in entries(new, &["data"]) {
        let path = FieldPath::new("data").key(key);
        errors.extend(data_key(key).into_iter().map(|m| FieldError::invalid(&path, &Value::from(key), m)));
        size += decoded_len(value.as_str().unwrap_or_default());
    }
    if size > limits::DATA_BYTES_MAX {
        errors.push(FieldError::too_long(&FieldPath::new("data"), limits::DATA_BYTES_MAX));
    }
    if let Some((_, needs)) = TYPES.iter().find(|(name, _)| *name == new.str_at(&["type"])) {
        errors.extend(missing(new, needs));
    }
    errors
}

/// Reports what a Secret lacks that its type requires.
fn missing(secret: &Value, needs: &Needs) -> Vec<FieldError> {
    let path = |key: &str| FieldPath::new("data").key(key);
    let required = |key: &str| FieldError::required(&path(key), "");
    let has = |key: &str| secret.at(&["data", key]).is_some();
    match needs {
        Needs::Present(keys) => keys.iter().filter(|key| !has(key)).map(|key| required(key)).collect(),
        Needs::Any(keys) if keys.iter().any(|key| has(key)) => vec![],
        Needs::Any(keys) => keys.iter().map(|key| required(key)).collect(),
        Needs::Filled(key) if bytes(secret, key).is_none_or(|b| b.is_empty()) => vec![required(key)],
        Needs::Filled(_) => vec![],
        Needs::Json(key) => match bytes(secret, key) {
            None => vec![required(key)],
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
                let hidden = Value::from("<secret contents redacted>");
                read.err().map(|why| FieldError::invalid(&path(key), &hidden, why)).into_iter().collect()
            }
        },
        Needs::Annotation(name) if secret.str_at(&["metadata", "annotations", name]).is_empty() => {
            vec![FieldError::required(&FieldPath::new("metadata.annotations").key(name), "")]
        }
        Needs::Annotation(_) => vec![],
    }
}

/// Warns about a certificate that does not match its key.
pub fn warnings(new: &Value, _old: Option<&Value>, _release: Release) -> Vec<String> {
    if new.str_at(&["type"]) != "kubernetes.io/tls" {
        return vec![];
    }
    let part = |key: &str| bytes(new, key).unwrap_or_default();
    key_pair::check(&part("tls.crt"), &part("tls.key")).err().into_iter().collect()
}
