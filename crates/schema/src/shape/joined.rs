//! Members that come again: Go reads them into what is there already (encoding/json, decoding into values that are set).

use machinery::value::Map;
use machinery::{Text, Value};

use super::{Field, Print, Shape, Struct};

/// A typed document as Go reads it, of members as they stand ([`machinery::value::decode_every`]).
pub fn joined(every: &Value, shape: &'static Struct) -> Value {
    match every {
        Value::Object(members) => structure(None, members, shape),
        other => other.clone(),
    }
}

/// What was known after another value was read into it. One of a wrong type stays, so that it is told.
fn join(known: Option<Value>, again: &Value, shape: &'static Shape) -> Value {
    let known = match known {
        Some(known) if !fits(&known, shape) => return known,
        known => known.filter(|known| !known.is_null()),
    };
    match (shape, again) {
        (Shape::Struct(shape), Value::Object(again)) => structure(known, again, shape),
        (Shape::List(_, item), Value::Array(again)) => list(known, again, item),
        (Shape::Map(_, item), Value::Object(again)) => map(known, again, item),
        (_, again) => plain(again),
    }
}

fn structure(known: Option<Value>, again: &Map, shape: &'static Struct) -> Value {
    let mut members = members(known);
    for (key, value) in again.iter() {
        let field = shape.fields.binary_search_by(|field| field.name.cmp(key)).ok().map(|at| &shape.fields[at]);
        let known = members.remove(key);
        let value = match field {
            None => plain(value),
            // nothing is read into a value; a pointer points to nothing then
            Some(field) if value.is_null() && !is_pointer(field) => known.unwrap_or_default(),
            Some(field) => join(known, value, &field.shape),
        };
        members.insert(key.clone(), value);
    }
    Value::Object(members)
}

/// Items are read into those that were at their places.
fn list(known: Option<Value>, again: &[Value], item: &'static Shape) -> Value {
    let mut known = match known {
        Some(Value::Array(items)) => items,
        _ => vec![],
    }
    .into_iter();
    let read = again.iter().map(|value| match (known.next(), value) {
        (Some(known), Value::Null) => known,
        (known, value) => join(known, value, item),
    });
    Value::Array(read.collect())
}

/// Values of maps are new ones each time.
fn map(known: Option<Value>, again: &Map, item: &'static Shape) -> Value {
    let mut members = members(known);
    for (key, value) in again.iter() {
        let wrong = members.remove(key).filter(|known| !fits(known, item));
        members.insert(key.clone(), wrong.unwrap_or_else(|| join(None, value, item)));
    }
    Value::Object(members)
}

fn members(known: Option<Value>) -> Map {
    match known {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// Whether null takes away what was there: metadata is printed as if it were a pointer, and is none.
fn is_pointer(field: &Field) -> bool {
    let may_be_nothing = matches!(field.shape, Shape::List(..) | Shape::Map(..) | Shape::Bytes | Shape::Any);
    may_be_nothing || (field.print == Print::Given && field.name != "metadata")
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

/// The value whose members come once: the last of several counts.
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
    use crate::shape::{CONDITION, OBJECT_META, TEXT, given, non_empty};

    static ITEM: Struct = Struct { name: "Item", fields: &[given("on", Shape::Bool), non_empty("text", TEXT)] };
    static THING: Struct = Struct {
        name: "Thing",
        fields: &[
            given("any", Shape::Any),
            non_empty("condition", Shape::Struct(&CONDITION)),
            non_empty("items", Shape::List("[]v1.Item", &Shape::Struct(&ITEM))),
            given("metadata", Shape::Struct(&OBJECT_META)),
            non_empty("named", Shape::Map("map[string]v1.Item", &Shape::Struct(&ITEM))),
            given("pointer", Shape::Struct(&ITEM)),
            non_empty("text", TEXT),
            non_empty("texts", Shape::Map("map[string]string", &TEXT)),
        ],
    };

    #[test]
    fn what_comes_again_is_read_into_what_is_there() {
        let cases = [
            (r#"{"metadata":{"name":"x"},"metadata":{"uid":"u"}}"#, r#"{"metadata":{"name":"x","uid":"u"}}"#),
            (r#"{"metadata":{"name":"x"},"metadata":null}"#, r#"{"metadata":{"name":"x"}}"#),
            (r#"{"pointer":{"on":true},"pointer":{"text":"x"}}"#, r#"{"pointer":{"on":true,"text":"x"}}"#),
            (r#"{"pointer":{"on":true},"pointer":null}"#, r#"{"pointer":null}"#),
            (r#"{"pointer":{"on":true,"on":null}}"#, r#"{"pointer":{"on":null}}"#),
            (r#"{"text":"a","text":null}"#, r#"{"text":"a"}"#),
            (r#"{"text":1,"text":"a"}"#, r#"{"text":1}"#),
            (r#"{"text":"a","text":1}"#, r#"{"text":1}"#),
            (r#"{"texts":{"a":"1"},"texts":{"b":"2"}}"#, r#"{"texts":{"a":"1","b":"2"}}"#),
            (r#"{"texts":{"a":"1","a":null}}"#, r#"{"texts":{"a":null}}"#),
            (r#"{"texts":{"a":"1"},"texts":null,"texts":{"b":"2"}}"#, r#"{"texts":{"b":"2"}}"#),
            (r#"{"named":{"a":{"on":true},"a":{"text":"x"}}}"#, r#"{"named":{"a":{"text":"x"}}}"#),
            (r#"{"items":[{"on":true},{"text":"b"}],"items":[{"text":"c"}]}"#, r#"{"items":[{"on":true,"text":"c"}]}"#),
            (r#"{"any":{"a":1},"any":{"b":1,"b":2}}"#, r#"{"any":{"b":2}}"#),
            (r#"{"unknown":1,"unknown":{"b":1,"b":2}}"#, r#"{"unknown":{"b":2}}"#),
        ];
        for (text, want) in cases {
            assert_eq!(joined(&decode_every(text.as_bytes()), &THING).to_json(), want, "{text}");
        }
    }
}
