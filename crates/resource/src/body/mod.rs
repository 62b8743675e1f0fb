//! Bodies of requests: their bytes, their encoding, and their `apiVersion` and `kind`.

mod strict;

use base::wording;
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
#[derive(Debug)]
pub struct Document {
    pub bytes: bytes::Bytes,
    pub format: Format,
}

const TYPE_STRUCT: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

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
    /// A JSON document that the server itself encodes.
    pub fn json(value: &Value) -> Document {
        Document { bytes: value.to_json().into(), format: Format::Json }
    }

    /// The JSON text whose order errors follow. It is empty in other formats, whose decoders sort fields.
    pub fn json_text(&self) -> bytes::Bytes {
        if self.format == Format::Json { self.bytes.clone() } else { bytes::Bytes::new() }
    }

    pub fn decode(&self) -> Result<Decoded, DecodeError> {
        let without_duplicates = |value| Decoded { value, duplicates: vec![] };
        Ok(match self.format {
            Format::Json => decode_strict(&self.bytes)?,
            Format::Yaml => yaml::decode(&self.bytes)?,
            Format::Protobuf => without_duplicates(machinery::protobuf::decode(&self.bytes)?),
            Format::Cbor => without_duplicates(machinery::cbor::decode(&self.bytes)?),
        })
    }

    /// Whether a JSON document is an object, by its first byte.
    pub fn is_object(&self) -> bool {
        self.bytes.trim_ascii_start().first() == Some(&b'{')
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
                let is_array = self.bytes.trim_ascii_start().first() == Some(&b'[');
                no_object(if is_array { "array" } else { "number" })
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
        other => Some(no_object(other.json_type())),
    }
}

/// Go's error for a body of another JSON type.
fn no_object(found: &str) -> String {
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type {TYPE_STRUCT}"
    )
}

/// `apiVersion` or `kind`, whose name is matched case-insensitively, as in Go.
pub fn type_text<'a>(object: &'a Value, name: &str) -> &'a str {
    let exact = object.str_at(&[name]);
    let fields = object.as_object().into_iter().flat_map(machinery::Map::iter).filter(|_| exact.is_empty());
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
fn type_meta_error(fields: &machinery::Map) -> Option<String> {
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
            let document = Document { bytes: body.into(), format: Format::Json };
            let error = document.type_error(&document.decode()).unwrap_or_default();
            assert!(
                error.contains(&format!("cannot unmarshal {found} into Go value of type struct")),
                "{body}: {error}"
            );
        }
    }
}
