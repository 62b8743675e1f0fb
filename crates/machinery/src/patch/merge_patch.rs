//! JSON Merge Patch (RFC 7386) as the library of kube-apiserver has it: nulls are dropped from everything that a
//! patch adds, within arrays as well, but not from an array that takes the place of an object.

use super::{ObjectPatch, PatchError, PatchPart, Unknown, decode_object};
use crate::value::{Map, Value, decode};

/// Decodes the body of a request.
///
/// # Errors
///
/// The bytes are not JSON, or not an object; an array is a patch as well where unknown fields are ignored, and null
/// never is.
pub fn decode_patch(bytes: &[u8], unknown: Unknown) -> Result<ObjectPatch, PatchError> {
    let patch = match unknown {
        Unknown::Reported => decode_object(bytes)?,
        Unknown::Ignored => ObjectPatch { value: decode(bytes)?, strict_errors: vec![] },
    };
    match &patch.value {
        Value::Object(_) | Value::Array(_) => Ok(patch),
        other => Err(PatchError::WrongType { found: other.json_type(), part: PatchPart::Document }),
    }
}

/// The document with the patch merged in.
pub fn apply(document: Value, patch: Value) -> Value {
    match (document, patch) {
        (Value::Object(mut map), Value::Object(patch)) => {
            merge_fields(&mut map, patch);
            Value::Object(map)
        }
        (_, mut patch) => {
            drop_nulls(&mut patch);
            patch
        }
    }
}

fn merge_fields(map: &mut Map, patch: Map) {
    for (name, mut value) in patch {
        if value.is_null() {
            map.remove(&name);
            continue;
        }
        match (map.get_mut(&name), value) {
            (Some(Value::Object(current)), Value::Object(fields)) => merge_fields(current, fields),
            (Some(current @ Value::Object(_)), value) => *current = value,
            (_, new) => {
                value = new;
                drop_nulls(&mut value);
                map.insert(name, value);
            }
        }
    }
}

/// Whether [`apply`] would change the document.
pub fn changes(document: &Value, patch: &Value) -> bool {
    let (Value::Object(map), Value::Object(fields)) = (document, patch) else {
        let mut new = patch.clone();
        drop_nulls(&mut new);
        return new != *document;
    };
    fields.iter().any(|(name, value)| match map.get(name) {
        None => !value.is_null(),
        Some(current) => value.is_null() || changes(current, value),
    })
}

/// Drops null fields of objects at any depth. Null items of arrays are kept.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|_, value| {
            drop_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_dropped_like_upstream() {
        let cases = [
            (r#"{"a":{"b":1}}"#, r#"{"a":{"c":null,"d":{"e":null}}}"#, r#"{"a":{"b":1,"d":{}}}"#),
            (r#"{"a":1}"#, r#"{"a":{"b":null}}"#, r#"{"a":{}}"#),
            (r#"{"a":[1]}"#, r#"{"a":[null,{"b":null}]}"#, r#"{"a":[null,{}]}"#),
            (r#"{"a":{}}"#, r#"{"a":[{"b":null}]}"#, r#"{"a":[{"b":null}]}"#),
            (r#"{"a":null}"#, r#"{"a":{"b":{"c":null}}}"#, r#"{"a":{"b":{}}}"#),
            (r#"{"a":{"b":1,"c":[1]}}"#, r#"{"a":{"c":[1]},"d":null}"#, r#"{"a":{"b":1,"c":[1]}}"#),
        ];
        for (document, patch, want) in cases {
            let value = |text: &str| decode(text.as_bytes()).expect("JSON");
            assert_eq!(apply(value(document), value(patch)).to_json(), want, "{document} {patch}");
            assert_eq!(changes(&value(document), &value(patch)), document != want, "{document} {patch}");
            assert!(!changes(&value(want), &value(patch)) || want.contains("null"), "{document} {patch}");
        }
    }

    #[test]
    fn documents_are_checked() {
        let error = |text: &str, unknown| decode_patch(text.as_bytes(), unknown).err();
        let wrong = |found| Some(PatchError::WrongType { found, part: PatchPart::Document });
        assert_eq!(error("[]", Unknown::Reported), wrong("array"));
        assert_eq!(error("[]", Unknown::Ignored), None);
        assert_eq!(error("null", Unknown::Reported), wrong("null"));
        assert!(matches!(error("{", Unknown::Ignored), Some(PatchError::Json(_))));
    }
}
