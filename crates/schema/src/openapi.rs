//! Fields of one schema node, read with Go's zero values.

use machinery::Value;

pub(crate) fn flag(schema: &Value, key: &str) -> bool {
    schema.is_true_at(&[key])
}

/// Whether a node has no nodes below it. Most nodes are like this, and need no search for keywords with schemas.
pub(crate) fn is_leaf(schema: &Value) -> bool {
    let inner = |value: &Value| matches!(value, Value::Array(_) | Value::Object(_));
    !schema.as_object().is_some_and(|fields| fields.values().any(inner))
}

pub(crate) fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.items_at(&[key])
}

pub(crate) fn entries<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    schema.fields_at(&[key]).map(|(k, v)| (k.as_str(), v))
}

/// The schema of items, unless it is a list of schemas.
pub(crate) fn items(schema: &Value) -> Option<&Value> {
    schema.get("items").filter(|i| i.as_object().is_some())
}

/// The schema of additional properties, unless it is a boolean.
pub(crate) fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|a| a.as_object().is_some())
}

pub(crate) fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

pub(crate) fn has_properties(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty())
}
