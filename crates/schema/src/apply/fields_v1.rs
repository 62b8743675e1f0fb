//! The `fieldsV1` form of a [`FieldSet`]: a JSON object of path elements, `.` for the node itself.

use super::error::ManagedFieldsError;
use super::fieldpath::{FieldSet, PathElement, SetNode};
use machinery::value::{decode, write_json, write_json_string};
use machinery::{Map, Text, Value};

/// The largest integer that is exact as a float. Path elements are decoded as floats.
const EXACT_INTEGER_MAX: u64 = 1 << 53;

fn key_text(element: &PathElement) -> Text {
    let mut out = Vec::with_capacity(48);
    match element {
        PathElement::TypeField(name) => {
            return ["f:", name.as_str()].into_iter().collect();
        }
        PathElement::Key(fields) => {
            out.extend_from_slice(b"k:{");
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_json_string(name, &mut out);
                out.push(b':');
                write_json(value, &mut out);
            }
            out.push(b'}');
        }
        PathElement::Value(value) => {
            out.extend_from_slice(b"v:");
            write_json(value, &mut out);
        }
        PathElement::Index(i) => out.extend_from_slice(format!("i:{i}").as_bytes()),
    }
    Text::from(String::from_utf8_lossy(&out))
}

/// The JSON object of a set.
pub fn encode(set: &FieldSet) -> Value {
    with_children(Vec::with_capacity(set.iter().len()), set)
}

fn encode_node(SetNode { member, children }: &SetNode) -> Value {
    let has_self = *member && !children.is_empty();
    let mut entries = Vec::with_capacity(children.iter().len() + usize::from(has_self));
    if has_self {
        entries.push((Text::new_static("."), Value::object()));
    }
    with_children(entries, children)
}

fn with_children(mut entries: Vec<(Text, Value)>, children: &FieldSet) -> Value {
    entries.extend(children.iter().map(|(element, node)| (key_text(element), encode_node(node))));
    Value::Object(Map::from_entries(entries, |_| {}))
}

/// Converts a number in a path element to a float, as upstream's decoder does. Large integers lose precision.
fn rounded(value: Value) -> Value {
    match value {
        Value::Int(i) if i.unsigned_abs() > EXACT_INTEGER_MAX => Value::Float(i as f64),
        other => other,
    }
}

/// Parses a key of `fieldsV1`; `None` if the kind of element is not known.
fn parse_key(key: &str) -> Result<Option<PathElement>, ManagedFieldsError> {
    let bytes = key.as_bytes();
    if bytes.len() < 2 {
        return Err(ManagedFieldsError::KeyTooShort);
    }
    if bytes.get(1) != Some(&b':') {
        return Err(ManagedFieldsError::MissingColon { key: key.to_owned() });
    }
    let rest = key.get(2..).unwrap_or_default();
    match bytes.first() {
        Some(b'f') => Ok(Some(PathElement::TypeField(rest.into()))),
        Some(b'v') => Ok(Some(PathElement::Value(Box::new(rounded(decode(rest.as_bytes())?))))),
        Some(b'k') => match decode(rest.as_bytes())? {
            Value::Object(map) => Ok(Some(PathElement::Key(map.into_iter().map(|(k, v)| (k, rounded(v))).collect()))),
            _ => Err(ManagedFieldsError::KeyNotAnObject { text: rest.to_owned() }),
        },
        Some(b'i') => match rest.parse() {
            Ok(i) => Ok(Some(PathElement::Index(i))),
            Err(_) => Err(ManagedFieldsError::InvalidIndex { text: rest.to_owned() }),
        },
        _ => Ok(None),
    }
}

/// Decodes the JSON object of a set.
///
/// # Errors
///
/// The value is not an object of objects, or one of its keys is malformed.
pub fn parse(value: &Value) -> Result<FieldSet, ManagedFieldsError> {
    parse_node(value).map(|node| node.children)
}

fn parse_node(value: &Value) -> Result<SetNode, ManagedFieldsError> {
    let Value::Object(map) = value else {
        return match value {
            Value::Null => Ok(SetNode { member: true, children: FieldSet::new() }),
            _ => Err(ManagedFieldsError::FieldsNotAnObject),
        };
    };
    let mut children = Vec::with_capacity(map.len());
    for (key, below) in map.iter().filter(|(key, _)| *key != ".") {
        if let Some(element) = parse_key(key)? {
            children.push((element, parse_node(below)?));
        }
    }
    let children: FieldSet = children.into_iter().collect();
    Ok(SetNode { member: map.contains_key(".") || children.is_empty(), children })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roundtrip(text: &str) -> String {
        parse(&decode(text.as_bytes()).expect("JSON")).map_or_else(|e| e.to_string(), |set| encode(&set).to_json())
    }

    #[test]
    fn sets_read_and_write() {
        let same = [
            r#"{"f:a":{}}"#,
            r#"{"f:a":{".":{},"f:b":{}},"f:c":{"f:d":{}}}"#,
            r#"{"f:l":{"k:{\"a\":1,\"b\":\"x\"}":{".":{},"f:a":{}},"v:\"s\"":{},"v:1":{}}}"#,
            r#"{"f:l":{"i:0":{}}}"#,
            "{}",
        ];
        for text in same {
            assert_eq!(roundtrip(text), text);
        }
        let other = [
            (r#"{"f:a":{".":{}}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{"x:b":{}}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{"k:{\"b\":1,\"a\":2}":{}}}"#, r#"{"f:a":{"k:{\"a\":2,\"b\":1}":{}}}"#),
            (r#"{"fa":{}}"#, r#"the key "fa" has no colon"#),
            (r#"{"f":{}}"#, "a key of fieldsV1 is too short"),
        ];
        for (text, want) in other {
            assert_eq!(roundtrip(text), want);
        }
    }
}
