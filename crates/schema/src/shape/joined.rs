//! Duplicate fields: like Go's encoding/json, decodes a later value into the result of the earlier one.

use std::collections::BTreeMap;

use machinery::value::Map;
use machinery::{Text, Value};

use super::{Field, Print, Shape, Struct};

/// A typed document with duplicate fields ([`machinery::value::decode_every`]) as Go reads it, in time linear in the
/// size of the document.
pub fn joined(every: &Value, shape: &'static Struct) -> Value {
    match every {
        Value::Object(fields) => structure(&[fields], shape),
        other => other.clone(),
    }
}

/// The result of decoding these values into the same field one after the other. A value of the wrong type is kept, so
/// that it is reported.
fn read(values: &[&Value], shape: &'static Shape, pointer: bool) -> Value {
    if let Some(wrong) = values.iter().find(|value| !fits(value, shape)) {
        return plain(wrong);
    }
    // null resets a pointer and has no effect on other types
    let since = values.iter().rposition(|value| pointer && value.is_null()).map_or(0, |at| at + 1);
    let given: Vec<&Value> = values[since..].iter().copied().filter(|value| !value.is_null()).collect();
    match (shape, given.last()) {
        (_, None) => Value::Null,
        (Shape::Struct(shape), _) => structure(&objects(&given), shape),
        (Shape::Map(_, item), _) => map(&objects(&given), item),
        (Shape::List(_, item), _) => list(&given.iter().filter_map(|value| value.as_array()).collect::<Vec<_>>(), item),
        (_, Some(last)) => plain(last),
    }
}

fn objects<'a>(values: &[&'a Value]) -> Vec<&'a Map> {
    values.iter().filter_map(|value| value.as_object()).collect()
}

/// The values of each field, in the order of the document.
fn grouped<'a>(all: &[&'a Map]) -> BTreeMap<&'a Text, Vec<&'a Value>> {
    let mut groups: BTreeMap<&Text, Vec<&Value>> = BTreeMap::new();
    for (key, value) in all.iter().flat_map(|fields| fields.iter()) {
        groups.entry(key).or_default().push(value);
    }
    groups
}

fn structure(all: &[&Map], shape: &'static Struct) -> Value {
    let entry = |(key, values): (&Text, Vec<&Value>)| {
        let field = shape.field(key);
        let value = match field {
            Some(field) => read(&values, &field.shape, is_pointer(field)),
            None => values.last().map(|last| plain(last)).unwrap_or_default(),
        };
        (key.clone(), value)
    };
    Value::Object(grouped(all).into_iter().map(entry).collect())
}

/// Decodes each item into the earlier item with the same index.
fn list(all: &[&[Value]], item: &'static Shape) -> Value {
    let length = all.last().map_or(0, |last| last.len());
    let read_at = |at: usize| {
        let mut values: Vec<&Value> = all.iter().rev().map_while(|items| items.get(at)).collect();
        values.reverse();
        read(&values, item, is_nilable(item))
    };
    (0..length).map(read_at).collect()
}

/// Go decodes each map value into a new value, so that duplicates are not merged.
fn map(all: &[&Map], item: &'static Shape) -> Value {
    let entry = |(key, values): (&Text, Vec<&Value>)| {
        let counting = values.iter().find(|value| !fits(value, item)).or(values.last());
        (key.clone(), counting.map(|value| read(&[value], item, is_nilable(item))).unwrap_or_default())
    };
    Value::Object(grouped(all).into_iter().map(entry).collect())
}

/// Whether the Go type can be nil.
fn is_nilable(shape: &Shape) -> bool {
    matches!(shape, Shape::List(..) | Shape::Map(..) | Shape::Bytes | Shape::Any | Shape::IntOrString)
}

/// Whether null resets a field, as it does for pointers. Metadata is printed like a pointer, but is none.
fn is_pointer(field: &Field) -> bool {
    is_nilable(&field.shape) || (matches!(field.print, Print::Given | Print::OrNull) && field.name != "metadata")
}

fn fits(value: &Value, shape: &Shape) -> bool {
    match (shape, value) {
        (_, Value::Null) => true,
        (Shape::Text(_) | Shape::Time | Shape::MicroTime, value) => matches!(value, Value::String(_)),
        (Shape::Bool, value) => matches!(value, Value::Bool(_)),
        (Shape::Int32 | Shape::Int64 | Shape::Float, value) => matches!(value, Value::Int(_) | Value::Float(_)),
        (Shape::List(..), value) => matches!(value, Value::Array(_)),
        (Shape::Map(..) | Shape::Struct(_), value) => matches!(value, Value::Object(_)),
        _ => true,
    }
}

/// The value without duplicate fields. The last of several values counts.
fn plain(every: &Value) -> Value {
    match every {
        Value::Object(map) => map.iter().map(|(key, value)| (Text::clone(key), plain(value))).collect::<Map>().into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use machinery::value::decode_every;

    use super::*;
    use crate::shape::named;

    const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

    #[test]
    fn duplicate_structs_decode_into_existing_value() {
        let (pod, meta) = ("core.v1.Pod", "meta.v1.ObjectMeta");
        let cases = [
            (pod, r#"{"metadata":{"name":"x"},"metadata":{"uid":"u"}}"#, r#"{"metadata":{"name":"x","uid":"u"}}"#),
            (pod, r#"{"metadata":{"name":"x"},"metadata":null}"#, r#"{"metadata":{"name":"x"}}"#),
            (SCHEMA, r#"{"not":{"maxLength":1},"not":{"type":"x"}}"#, r#"{"not":{"maxLength":1,"type":"x"}}"#),
            (SCHEMA, r#"{"not":{"maxLength":1},"not":null}"#, r#"{"not":null}"#),
            (SCHEMA, r#"{"not":{"maxLength":1,"maxLength":null}}"#, r#"{"not":{"maxLength":null}}"#),
            (SCHEMA, r#"{"type":"a","type":null}"#, r#"{"type":"a"}"#),
            (SCHEMA, r#"{"type":1,"type":"a"}"#, r#"{"type":1}"#),
            (SCHEMA, r#"{"type":"a","type":1}"#, r#"{"type":1}"#),
            (meta, r#"{"labels":{"a":"1"},"labels":{"b":"2"}}"#, r#"{"labels":{"a":"1","b":"2"}}"#),
            (meta, r#"{"labels":{"a":"1","a":null}}"#, r#"{"labels":{"a":null}}"#),
            (meta, r#"{"labels":{"a":"1"},"labels":null,"labels":{"b":"2"}}"#, r#"{"labels":{"b":"2"}}"#),
            (
                SCHEMA,
                r#"{"properties":{"a":{"maxLength":1},"a":{"type":"x"}}}"#,
                r#"{"properties":{"a":{"type":"x"}}}"#,
            ),
            (
                SCHEMA,
                r#"{"allOf":[{"maxLength":1},{"type":"b"}],"allOf":[{"type":"c"}]}"#,
                r#"{"allOf":[{"maxLength":1,"type":"c"}]}"#,
            ),
            (SCHEMA, r#"{"default":{"a":1},"default":{"b":1,"b":2}}"#, r#"{"default":{"b":2}}"#),
            (SCHEMA, r#"{"unknown":1,"unknown":{"b":1,"b":2}}"#, r#"{"unknown":{"b":2}}"#),
        ];
        for (of, text, want) in cases {
            assert_eq!(joined(&decode_every(text.as_bytes()), named(of)).to_json(), want, "{text}");
        }
    }

    /// Each field is visited once, however many there are and however often they are repeated.
    #[test]
    fn large_documents_are_read_at_once() {
        let many: String = (0..100_000).rev().map(|i| format!("\"k{i:06}\":\"\",")).collect();
        let again = r#""labels":{},"#.repeat(100_000);
        let text = format!(r#"{{"labels":{{{}}},{again}"name":""}}"#, many.trim_end_matches(','));
        let read = joined(&decode_every(text.as_bytes()), named("meta.v1.ObjectMeta"));
        assert_eq!(read.get("labels").and_then(Value::as_object).map(Map::len), Some(100_000));
    }
}
