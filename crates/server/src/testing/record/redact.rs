//! Replaces secret values in requests and responses.

use base::request::RequestInfo;
use machinery::Value;

/// Replaces secret texts.
const REDACTED: &str = "redacted";
/// Replaces the `data` of Secrets, which is base64.
const REDACTED_DATA: &str = "cmVkYWN0ZWQ=";
/// The annotation in which kubectl keeps a copy of the applied object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What is replaced in the bodies of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    Nothing,
    /// The data of Secrets.
    Data,
    /// Tokens, in the requests that create them and in reviews.
    Token,
}

pub fn redaction(info: &RequestInfo) -> Redaction {
    match (info.group.as_str(), info.resource.as_str(), info.subresource.as_str()) {
        ("", "secrets", _) => Redaction::Data,
        ("", "serviceaccounts", "token") | ("authentication.k8s.io", "tokenreviews", _) => Redaction::Token,
        _ => Redaction::Nothing,
    }
}

impl Redaction {
    pub fn of_request(self, body: Value) -> Value {
        match (self, body) {
            // a JSON patch
            (Redaction::Data, Value::Array(mut operations)) => {
                let values = operations.iter_mut().filter_map(|operation| operation.get_mut("value"));
                values.for_each(|value| replace(value, REDACTED_DATA));
                Value::Array(operations)
            }
            (_, body) => self.of_response(body),
        }
    }

    pub fn of_response(self, mut body: Value) -> Value {
        match self {
            Redaction::Nothing => {}
            Redaction::Data => clear(&mut body, &["data", "stringData", LAST_APPLIED]),
            Redaction::Token => clear(&mut body, &["token"]),
        }
        body
    }
}

/// Replaces the values of fields with these names, at any depth.
fn clear(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let replacement = if name == "data" { REDACTED_DATA } else { REDACTED };
                if names.contains(&name.as_str()) { replace(field, replacement) } else { clear(field, names) }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clear(item, names)),
        _ => {}
    }
}

/// Replaces texts.
fn replace(value: &mut Value, replacement: &str) {
    match value {
        Value::String(_) => *value = Value::from(replacement),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, field)| replace(field, replacement)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, replacement)),
        _ => {}
    }
}
