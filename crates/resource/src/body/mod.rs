//! Bodies of requests: their bytes, their encoding, and their `apiVersion` and `kind`.

mod strict;

use std::sync::{Arc, OnceLock};

use base::wording;
use bytes::Bytes;
use machinery::value::{Decoded, JsonError, JsonProblem, decode_strict};
use machinery::yaml::{self, YamlProblem};
use machinery::{DecodeError, Value};

pub use strict::Strict;

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
    Protobuf,
    Cbor,
}

/// A body that has been read.
#[derive(Clone, Debug)]
pub struct Document {
    text: OnceLock<Bytes>,
    pub format: Format,
    /// The value, if this process has decoded it already.
    value: Option<Arc<Value>>,
}

/// The first bytes of a body, as errors quote them.
pub fn excerpt(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "<empty>".to_owned();
    }
    let head = &bytes[..bytes.len().min(30)];
    let more = if bytes.len() > 30 { " ..." } else { "" };
    let text = if bytes.first() == Some(&b'{') {
        String::from_utf8_lossy(head).into_owned()
    } else {
        head.iter().map(|b| format!("{b:02x}")).collect()
    };
    format!("{text}{more}")
}

impl Document {
    pub fn new(bytes: impl Into<Bytes>, format: Format) -> Document {
        Document { text: OnceLock::from(bytes.into()), format, value: None }
    }

    /// A JSON document that the server itself encodes.
    pub fn json(value: &Value) -> Document {
        Document::new(value.to_json(), Format::Json)
    }

    /// A short JSON document without duplicate fields that has been decoded. `text` is what errors quote; without
    /// it, the value is encoded when an error needs its text.
    pub fn decoded(value: Arc<Value>, text: Option<Bytes>) -> Document {
        Document { text: text.map(OnceLock::from).unwrap_or_default(), format: Format::Json, value: Some(value) }
    }

    /// The text as it was sent.
    pub fn bytes(&self) -> &Bytes {
        self.text.get_or_init(|| self.value.as_ref().map(|value| value.to_json().into()).unwrap_or_default())
    }

    /// Whether the text has more bytes than that. A document that was passed decoded is short.
    pub fn is_longer_than(&self, bytes: usize) -> bool {
        self.text.get().is_some_and(|text| text.len() > bytes)
    }

    /// The JSON text, in whose order errors are reported. Empty for other formats, whose decoders sort fields.
    pub fn json_text(&self) -> bytes::Bytes {
        if self.format == Format::Json { self.bytes().clone() } else { Bytes::new() }
    }

    pub fn decode(&self) -> Result<Decoded, DecodeError> {
        self.decode_as("", "")
    }

    /// As [`Document::decode`]. Protobuf without a version or a kind has these.
    pub fn decode_as(&self, api_version: &str, kind: &str) -> Result<Decoded, DecodeError> {
        let without_duplicates = |value| Decoded { value, duplicates: vec![] };
        if let Some(value) = &self.value {
            return Ok(without_duplicates((**value).clone()));
        }
        let bytes = self.bytes();
        Ok(match self.format {
            Format::Json => decode_strict(bytes)?,
            Format::Yaml => yaml::decode(bytes)?,
            Format::Protobuf => without_duplicates(machinery::protobuf::decode_as(bytes, api_version, kind)?),
            Format::Cbor => without_duplicates(machinery::cbor::decode(bytes)?),
        })
    }

    /// Whether a JSON document is an object, by its first byte.
    pub fn is_object(&self) -> bool {
        self.bytes().trim_ascii_start().first() == Some(&b'{')
    }

    /// The error in `apiVersion` or `kind` of the document, if any.
    pub fn type_error(&self, decoded: &Result<Decoded, DecodeError>) -> Option<String> {
        let error = match decoded {
            Ok(decoded) => return type_error(&decoded.value),
            Err(error) => error,
        };
        let text = wording::decode_error(error);
        Some(match error {
            // Go checks the syntax first, and never reads the number
            DecodeError::Json(JsonError { problem: JsonProblem::NumberOutOfRange { .. }, .. }) if !self.is_object() => {
                let is_array = self.bytes().trim_ascii_start().first() == Some(&b'[');
                wording::not_an_object(if is_array { "array" } else { "number" })
            }
            DecodeError::Json(_) => format!("couldn't get version/kind; json parse error: {text}"),
            DecodeError::Yaml(error) if matches!(error.problem, YamlProblem::TooDeep(_)) => {
                format!("couldn't get version/kind; json parse error: {text}")
            }
            _ => text,
        })
    }
}

/// The error in `apiVersion` or `kind` of a body, if any.
pub fn type_error(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) => type_meta_error(fields),
        Value::Null => None,
        other => Some(wording::not_an_object(other.json_type())),
    }
}

/// `apiVersion` or `kind`, whose name is matched case-insensitively, as in Go.
pub fn type_text<'a>(object: &'a Value, name: &str) -> &'a str {
    let exact = object.str_at(&[name]);
    let fields = object.fields().filter(|_| exact.is_empty());
    let mut other = fields.filter(|(key, _)| key.eq_ignore_ascii_case(name)).filter_map(|(_, value)| value.as_str());
    other.next().unwrap_or(exact)
}

/// The `apiVersion` of a typed body. A single `/` counts as empty, and a leading slash means the core group.
pub fn typed_version(object: &Value) -> String {
    type_text(object, "apiVersion").trim_start_matches('/').to_owned()
}

/// Go's error if `apiVersion` or `kind` is not a string.
pub fn not_a_string(fields: &machinery::Map) -> Option<String> {
    let is_text = |value: &Value| matches!(value, Value::Null | Value::String(_));
    let found = |key: &&str| {
        let mut named = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value);
        named.find(|value| !is_text(value))
    };
    let key = ["apiVersion", "kind"].into_iter().find(|key| found(key).is_some())?;
    let found = found(&key)?.json_type();
    Some(format!("json: cannot unmarshal {found} into Go struct field .{key} of type string"))
}

/// The error in `apiVersion` or `kind`, if any.
pub fn type_meta_error(fields: &machinery::Map) -> Option<String> {
    if let Some(why) = not_a_string(fields) {
        return Some(format!("couldn't get version/kind; json parse error: {why}"));
    }
    let api_version = fields.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    (api_version.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {api_version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_are_no_objects_have_their_type_in_the_error() {
        for (body, found) in
            [("1", "number"), (" 1e999", "number"), ("-1e999", "number"), ("[1e999]", "array"), ("\"x\"", "string")]
        {
            let document = Document::new(body, Format::Json);
            let error = document.type_error(&document.decode()).unwrap_or_default();
            assert!(
                error.contains(&format!("cannot unmarshal {found} into Go value of type struct")),
                "{body}: {error}"
            );
        }
    }
}
