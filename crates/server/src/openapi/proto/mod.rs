//! Documents in protobuf: the messages of gnostic, encoded from the same values as JSON.
//!
//! Invariant: a message is described by a table of fields, and the encoder does not depend on OpenAPI. Fields of a
//! value that are not in the table, or not of the type in the table, are omitted.

use machinery::protobuf::Writer;
use machinery::{Value, yaml};

use super::Dialect;

/// Declares messages: `NAME EXTENSIONS [FIELD NUMBER KIND, ...]`, and `others NUMBER KIND` if there are other values.
macro_rules! messages {
    (@others) => { None };
    (@others $number:literal $kind:expr) => { Some(($number, $kind)) };
    ($($name:ident $extensions:literal [$($field:literal $at:literal $kind:expr),* $(,)?]
        $(others $number:literal $other:expr)?;)*) => {
        $(static $name: super::Message = super::Message {
            fields: &[$(($field, $at, $kind)),*],
            extensions: $extensions,
            others: messages!(@others $($number $other)?),
        };)*
    };
}

// after the macro, which they use
mod v2;
mod v3;

/// A message: the names, numbers and kinds of its fields.
struct Message {
    fields: &'static [(&'static str, u32, ValueKind)],
    /// The number of the repeated field of extensions, whose names begin with `x-`; 0 if the message has none.
    extensions: u32,
    /// The number and kind of the repeated field of all other, named values.
    others: Option<(u32, ValueKind)>,
}

/// How a value is encoded.
#[derive(Clone, Copy)]
enum ValueKind {
    Text,
    Bool,
    Int,
    Double,
    /// Any value, encoded as YAML.
    Any,
    Message(&'static Message),
    /// A repeated field; a single value is encoded as a list of one.
    Each(&'static ValueKind),
    /// A message with the value in the field of this number.
    Wrapped(u32, &'static ValueKind),
    /// A kind that depends on the value; `None` omits the value.
    Choice(fn(&Value) -> Option<ValueKind>),
}

/// The tables of a version of OpenAPI.
struct Tables {
    document: &'static Message,
    path: ValueKind,
    schema: ValueKind,
    /// The field numbers of `paths` in the document, and of a path in it.
    paths: (u32, u32),
    /// The field numbers that lead from the document to the message of schemas.
    schemas: &'static [u32],
}

fn tables(dialect: Dialect) -> &'static Tables {
    match dialect {
        Dialect::V2 => &v2::TABLES,
        Dialect::V3 => &v3::TABLES,
    }
}

/// Appends one path to the encoded paths.
pub fn path(dialect: Dialect, name: &str, item: &Value, out: &mut Vec<u8>) {
    let tables = tables(dialect);
    out.extend(written(|out| named(tables.paths.1, name, item, tables.path, out)));
}

/// Appends one schema to the encoded schemas.
pub fn schema(dialect: Dialect, name: &str, schema: &Value, out: &mut Vec<u8>) {
    out.extend(written(|out| named(1, name, schema, tables(dialect).schema, out)));
}

/// The bytes before the encoded paths of a document, which include its other fields, and those between the paths and the
/// encoded schemas.
pub fn around(dialect: Dialect, rest: &Value, paths_bytes: usize, schemas_bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let tables = tables(dialect);
    let head = written(|out| {
        message(rest, tables.document, out);
        out.header(tables.paths.0, paths_bytes);
    });
    // the message of schemas is nested: the headers are built from the innermost to the outermost
    let mut headers: Vec<u8> = vec![];
    for field in tables.schemas.iter().rev() {
        let outer = written(|out| out.header(*field, headers.len() + schemas_bytes));
        headers.splice(..0, outer);
    }
    (head, headers)
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::default();
    write(&mut out);
    out.into_bytes()
}

fn message(value: &Value, table: &Message, out: &mut Writer) {
    let Some(fields) = value.as_object() else { return };
    for (name, value) in fields.iter() {
        if let Some((_, number, kind)) = table.fields.iter().find(|(field, _, _)| field == name) {
            field(*number, value, *kind, out);
        } else if table.extensions != 0 && name.starts_with("x-") {
            named(table.extensions, name, value, ValueKind::Any, out);
        } else if let Some((number, kind)) = table.others {
            named(number, name, value, kind, out);
        }
    }
}

fn named(number: u32, name: &str, value: &Value, kind: ValueKind, out: &mut Writer) {
    out.message(number, |inner| field(2, value, kind, inner.text(1, name)));
}

fn field(number: u32, value: &Value, kind: ValueKind, out: &mut Writer) {
    match (kind, value) {
        (ValueKind::Text, Value::String(text)) => drop(out.text(number, text)),
        (ValueKind::Bool, Value::Bool(flag)) => drop(out.int(number, i64::from(*flag))),
        (ValueKind::Int, Value::Int(n)) => drop(out.int(number, *n)),
        (ValueKind::Int, Value::Float(n)) => drop(out.int(number, *n as i64)),
        (ValueKind::Double, Value::Int(n)) => drop(out.double(number, *n as f64)),
        (ValueKind::Double, Value::Float(n)) => drop(out.double(number, *n)),
        (ValueKind::Text | ValueKind::Bool | ValueKind::Int | ValueKind::Double, _) => {}
        (ValueKind::Any, value) => {
            out.message(number, |inner| {
                inner.text(2, &yaml::encode(value));
            });
        }
        (ValueKind::Message(table), value) => drop(out.message(number, |inner| message(value, table, inner))),
        (ValueKind::Each(kind), Value::Array(items)) => items.iter().for_each(|item| field(number, item, *kind, out)),
        (ValueKind::Each(kind), single) => field(number, single, *kind, out),
        (ValueKind::Wrapped(inside, kind), value) => {
            out.message(number, |inner| field(inside, value, *kind, inner));
        }
        (ValueKind::Choice(choose), value) => {
            choose(value).into_iter().for_each(|kind| field(number, value, kind, out));
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn fields_are_encoded_by_their_kind() {
        static TEXTS: ValueKind = ValueKind::Each(&ValueKind::Text);
        static TABLE: Message = Message {
            fields: &[
                ("a", 1, ValueKind::Text),
                ("b", 2, ValueKind::Bool),
                ("c", 16, ValueKind::Int),
                ("d", 4, ValueKind::Double),
                ("e", 5, ValueKind::Wrapped(1, &TEXTS)),
            ],
            extensions: 6,
            others: Some((7, ValueKind::Text)),
        };
        let encode = |value: Value| written(|out| message(&value, &TABLE, out));
        assert_eq!(encode(json!({"a": "hi"})), [10, 2, b'h', b'i']);
        assert_eq!(encode(json!({"b": true, "c": 300})), [16, 1, 128, 1, 172, 2]);
        assert_eq!(encode(json!({"d": 1})), [33, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_eq!(encode(json!({"e": "x"})), encode(json!({"e": ["x"]})));
        assert_eq!(encode(json!({"e": ["x", "y"]})), [42, 6, 10, 1, b'x', 10, 1, b'y']);
        assert_eq!(encode(json!({"x-y": 1})), [50, 11, 10, 3, b'x', b'-', b'y', 18, 4, 18, 2, b'1', b'\n']);
        assert_eq!(encode(json!({"z": "w"})), [58, 6, 10, 1, b'z', 18, 1, b'w']);
        assert_eq!(encode(json!({"a": 1})), [0; 0]);
    }
}
