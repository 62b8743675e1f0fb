//! Replaces secret values in requests and responses.

use std::collections::HashMap;

use base::request::RequestInfo;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::Value;

use super::Secrets;

/// The annotation in which kubectl keeps a copy of the applied object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Secrets to replace in the bodies of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    Nothing,
    /// The data of Secrets.
    Data,
    /// Tokens, in the requests that create them and in reviews.
    Token,
}

/// The secret texts of a recording, each with the number of its replacement: the same secret has the same one, and two have
/// two, so that replays compare them.
pub struct Redacted {
    secrets: Secrets,
    numbers: HashMap<Vec<u8>, usize>,
}

impl Redacted {
    pub fn new(secrets: Secrets) -> Redacted {
        Redacted { secrets, numbers: HashMap::new() }
    }

    pub fn redaction(&self, info: &RequestInfo) -> Redaction {
        match (info.group.as_str(), info.resource.as_str(), info.subresource.as_str()) {
            _ if self.secrets == Secrets::Kept => Redaction::Nothing,
            ("", "secrets", _) => Redaction::Data,
            ("", "serviceaccounts", "token") | ("authentication.k8s.io", "tokenreviews", _) => Redaction::Token,
            _ => Redaction::Nothing,
        }
    }

    /// The text in place of a secret text.
    fn replacement(&mut self, secret: &str, encoding: Encoding) -> String {
        // the same secret may be sent as a text and returned as base64
        let decoded = match encoding {
            Encoding::Base64 => STANDARD.decode(secret).ok(),
            Encoding::Text => None,
        };
        let next = self.numbers.len() + 1;
        let number = *self.numbers.entry(decoded.unwrap_or_else(|| secret.as_bytes().to_vec())).or_insert(next);
        let text = format!("redacted-{number}");
        if encoding == Encoding::Base64 { STANDARD.encode(text) } else { text }
    }

    /// Replaces the values of fields with these names, at any depth.
    fn clear(&mut self, value: &mut Value, names: &[&str]) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    let encoding = if name == "data" { Encoding::Base64 } else { Encoding::Text };
                    if names.contains(&name.as_str()) {
                        self.replace(field, encoding);
                    } else {
                        self.clear(field, names);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clear(item, names)),
            _ => {}
        }
    }

    /// Replaces texts.
    fn replace(&mut self, value: &mut Value, encoding: Encoding) {
        match value {
            Value::String(text) => *value = Value::from(self.replacement(text, encoding)),
            Value::Object(fields) => fields.iter_mut().for_each(|(_, field)| self.replace(field, encoding)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item, encoding)),
            _ => {}
        }
    }
}

/// How a secret text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Text,
    /// As the `data` of Secrets.
    Base64,
}

impl Redaction {
    pub fn of_request(self, body: Value, redacted: &mut Redacted) -> Value {
        match (self, body) {
            // a JSON patch
            (Redaction::Data, Value::Array(mut operations)) => {
                for operation in &mut operations {
                    let is_text = operation.str_at(&["path"]).starts_with("/stringData");
                    let encoding = if is_text { Encoding::Text } else { Encoding::Base64 };
                    operation.get_mut("value").into_iter().for_each(|value| redacted.replace(value, encoding));
                }
                Value::Array(operations)
            }
            (_, body) => self.of_response(body, redacted),
        }
    }

    pub fn of_response(self, mut body: Value, redacted: &mut Redacted) -> Value {
        match self {
            Redaction::Nothing => {}
            Redaction::Data => redacted.clear(&mut body, &["data", "stringData", LAST_APPLIED]),
            Redaction::Token => redacted.clear(&mut body, &["token"]),
        }
        body
    }
}
