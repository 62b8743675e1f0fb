//! Members of one schema node, read with Go's zero values.

use machinery::{Map, Value};

pub(super) fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// Whether nothing stands below a node: most are such, and need no look for what does.
pub(super) fn is_leaf(schema: &Value) -> bool {
    let inner = |value: &Value| matches!(value, Value::Array(_) | Value::Object(_));
    !schema.as_object().is_some_and(|members| members.values().any(inner))
}

pub(super) fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).unwrap_or_default()
}

pub(super) fn entries<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    schema.get(key).and_then(Value::as_object).into_iter().flat_map(Map::iter).map(|(k, v)| (k.as_str(), v))
}

/// The schema of items, unless there is a list of them.
pub(super) fn items(schema: &Value) -> Option<&Value> {
    schema.get("items").filter(|i| i.as_object().is_some())
}

/// The schema of additional properties, unless it is a boolean.
pub(super) fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|a| a.as_object().is_some())
}

pub(super) fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

pub(super) fn has_properties(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty())
}
