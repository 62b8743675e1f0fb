//! The few rules of shipped kinds that go beyond their shape (api-machinery 27).

use machinery::field::{FieldError, FieldPath};
use machinery::{Map, Value};

/// Bytes of all values of a ConfigMap or Secret.
const DATA_BYTES_MAX: usize = 1024 * 1024;
/// The finalizer that holds a namespace until it is empty.
pub const NAMESPACE_FINALIZER: &str = "kubernetes";

fn entries<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a machinery::Text, &'a Value)> {
    object.get(field).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn data_key(key: &str) -> Vec<String> {
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

fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.len() / 4 * 3 - text.bytes().rev().take_while(|b| *b == b'=').count()
}

fn immutable_errors(new: &Value, old: Option<&Value>, fields: &[&str]) -> Vec<FieldError> {
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

pub fn validate_config_map(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = immutable_errors(new, old, &["data", "binaryData"]);
    let mut size = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in entries(new, field) {
            let path = FieldPath::new(field).key(key);
            let shown = Value::from(key);
            errors.extend(data_key(key).into_iter().map(|m| FieldError::invalid(&path, &shown, m)));
            if field == "data" && new.get("binaryData").is_some_and(|b| b.get(key).is_some()) {
                errors.push(FieldError::invalid(&path, &shown, "duplicate of key present in binaryData"));
            }
            size += if field == "data" { value.as_str().unwrap_or_default().len() } else { decoded_len(value) };
        }
    }
    if size > DATA_BYTES_MAX {
        errors.push(FieldError::too_long(&FieldPath::root(), DATA_BYTES_MAX));
    }
    errors
}

/// `stringData` is written into `data` and not kept; the type defaults to Opaque.
pub fn default_secret(object: &mut Value) {
    use base64::Engine as _;
    if object.str_at(&["type"]).is_empty() {
        object.set_at(&["type"], Value::from("Opaque"));
    }
    let Some(Value::Object(texts)) = object.remove_at(&["stringData"]) else { return };
    for (key, value) in texts {
        let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
        object.set_at(&["data", &key], Value::from(encoded));
    }
}

pub fn validate_secret(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = vec![];
    if let Some(old) = old
        && old.get("type") != new.get("type")
    {
        let value = new.get("type").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&FieldPath::new("type"), &value, "field is immutable"));
    }
    errors.extend(immutable_errors(new, old, &["data"]));
    let mut size = 0;
    for (key, value) in entries(new, "data") {
        let path = FieldPath::new("data").key(key);
        errors.extend(data_key(key).into_iter().map(|m| FieldError::invalid(&path, &Value::from(key), m)));
        size += decoded_len(value);
    }
    if size > DATA_BYTES_MAX {
        errors.push(FieldError::too_long(&FieldPath::new("data"), DATA_BYTES_MAX));
    }
    errors
}

/// A namespace carries its name as a label.
pub fn default_namespace(object: &mut Value) {
    let name = object.str_at(&["metadata", "name"]).to_owned();
    if !name.is_empty() {
        object.set_at(&["metadata", "labels", "kubernetes.io/metadata.name"], Value::from(name));
    }
}

/// The finalizers of a namespace's spec.
pub fn validate_namespace(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let path = FieldPath::new("spec.finalizers");
    let list = new.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    let mut errors = vec![];
    for finalizer in list {
        let name = finalizer.as_str().unwrap_or_default();
        let messages = machinery::names::qualified_name(name);
        errors.extend(messages.into_iter().map(|m| FieldError::invalid(&path, finalizer, m)));
        if !name.contains('/') && name != NAMESPACE_FINALIZER {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path, finalizer, why));
        }
    }
    errors
}

/// A namespace is Active and has its finalizer from the start; updates leave spec and status alone.
pub fn prepare_namespace(object: &mut Value, old: Option<&Value>) {
    match old {
        None => {
            object.set_at(&["status"], [("phase", Value::from("Active"))].into());
            let mut finalizers: Vec<Value> =
                object.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default().to_vec();
            if !finalizers.iter().any(|f| f.as_str() == Some(NAMESPACE_FINALIZER)) {
                finalizers.push(Value::from(NAMESPACE_FINALIZER));
            }
            object.set_at(&["spec", "finalizers"], Value::Array(finalizers));
        }
        Some(old) => {
            if let Some(spec) = old.get("spec") {
                object.set_at(&["spec"], spec.clone());
            }
        }
    }
}

/// What a definition is before it is validated: status of its own, generation by its spec.
pub fn prepare_definition(object: &mut Value, old: Option<&Value>) {
    match old {
        None => schema::definition::prepare_for_create(object),
        Some(old) => schema::definition::prepare_for_update(object, old),
    }
}

pub fn validate_definition(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match old {
        None => schema::definition::validate_create(new),
        Some(old) => schema::definition::validate_update(new, old),
    }
}

/// Formats that are not enforced, told once when they appear.
pub fn definition_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    match old {
        None => schema::definition::warnings_on_create(new),
        Some(old) => schema::definition::warnings_on_update(new, old),
    }
}
