//! ConfigMap, and the rules for data that Secrets share.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

use super::checks::entries;
use crate::limits;

/// Validates a key of `data`; returns error messages.
pub fn data_key(key: &str) -> Vec<String> {
    let mut messages = vec![];
    if key.len() > 253 {
        messages.push("must be no more than 253 characters".to_owned());
    }
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if key.is_empty() || !key.bytes().all(legal) {
        messages.push("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')".to_owned());
    }
    if key == "." {
        messages.push("must not be '.'".to_owned());
    } else if key == ".." {
        messages.push("must not be '..'".to_owned());
    } else if key.starts_with("..") {
        messages.push("must not start with '..'".to_owned());
    }
    messages
}

/// The decoded length of a base64 text, in bytes.
pub fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// The errors of changes to `fields` of an object that is `immutable`.
pub fn immutable_errors(new: &Value, old: Option<&Value>, fields: &[&str]) -> Vec<FieldError> {
    let mut errors = vec![];
    let Some(old) = old.filter(|old| old.get("immutable") == Some(&Value::Bool(true))) else { return errors };
    let why = "field is immutable when `immutable` is set";
    if new.get("immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(&FieldPath::new("immutable"), why));
    }
    for field in fields {
        if new.get(field) != old.get(field) {
            errors.push(FieldError::forbidden(&FieldPath::new(*field), why));
        }
    }
    errors
}

pub fn validate(new: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = immutable_errors(new, old, &["data", "binaryData"]);
    let mut size = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in entries(new, &[field]) {
            let path = FieldPath::new(field).key(key);
            let shown = Value::from(key);
            errors.extend(data_key(key).into_iter().map(|m| FieldError::invalid(&path, &shown, m)));
            if field == "data" && new.get("binaryData").is_some_and(|b| b.get(key).is_some()) {
                errors.push(FieldError::invalid(&path, &shown, "duplicate of key present in binaryData"));
            }
            let text = value.as_str().unwrap_or_default();
            size += if field == "data" { text.len() } else { decoded_len(text) };
        }
    }
    if size > limits::DATA_BYTES_MAX {
        errors.push(FieldError::too_long(&FieldPath::new("[]"), limits::DATA_BYTES_MAX));
    }
    errors
}
