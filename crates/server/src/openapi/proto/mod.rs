//! Documents in protobuf: the messages of gnostic, encoded from the same values as JSON.
//!
//! Invariant: a message is described by a table of fields, and the encoder does not depend on OpenAPI. Fields of a
//! value that are not in the table, or not of the type in the table, are omitted.

mod v2;
mod v3;

use machinery::{Value, yaml};

use super::Dialect;
use super::pieces::Pieces;

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
    named(tables.paths.1, name, item, tables.path, out);
}

/// Appends one schema to the encoded schemas.
pub fn schema(dialect: Dialect, name: &str, schema: &Value, out: &mut Vec<u8>) {
    let tables = tables(dialect);
    named(1, name, schema, tables.schema, out);
}

/// Encodes a document from its encoded paths, its encoded schemas and its other fields.
pub fn document(dialect: Dialect, rest: &Value, paths: Pieces, schemas: Pieces) -> Vec<u8> {
    let tables = tables(dialect);
    let mut out = Vec::with_capacity(paths.len() + schemas.len() + 32 * 1024);
    message(rest, tables.document, &mut out);
    header(tables.paths.0, paths.len(), &mut out);
    paths.append_to(&mut out);
    // the message of schemas is nested: the headers are built from the innermost to the outermost
    let mut headers: Vec<u8> = vec![];
    for field in tables.schemas.iter().rev() {
        let mut outer = vec![];
        header(*field, headers.len() + schemas.len(), &mut outer);
        outer.append(&mut headers);
        headers = outer;
    }
    out.append(&mut headers);
    schemas.append_to(&mut out);
    out
}

fn header(number: u32, length: usize, out: &mut Vec<u8>) {
    key(number, 2, out);
    varint(length as u64, out);
}

fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn key(number: u32, wire: u32, out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | wire), out);
}

fn bytes(number: u32, content: &[u8], out: &mut Vec<u8>) {
    header(number, content.len(), out);
    out.extend_from_slice(content);
}

fn message(value: &Value, table: &Message, out: &mut Vec<u8>) {
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

fn named(number: u32, name: &str, value: &Value, kind: ValueKind, out: &mut Vec<u8>) {
    let mut inner = vec![];
    bytes(1, name.as_bytes(), &mut inner);
    field(2, value, kind, &mut inner);
    bytes(number, &inner, out);
}

fn field(number: u32, value: &Value, kind: ValueKind, out: &mut Vec<u8>) {
    match kind {
        ValueKind::Text => {
            if let Some(text) = value.as_str() {
                bytes(number, text.as_bytes(), out);
            }
        }
        ValueKind::Bool => {
            if let Some(flag) = value.as_bool() {
                key(number, 0, out);
                varint(u64::from(flag), out);
            }
        }
        ValueKind::Int => {
            if let Some(n) = value.as_float() {
                key(number, 0, out);
                varint(value.as_int().unwrap_or(n as i64) as u64, out);
            }
        }
        ValueKind::Double => {
            if let Some(n) = value.as_float() {
                key(number, 1, out);
                out.extend_from_slice(&n.to_le_bytes());
            }
        }
        ValueKind::Any => {
            let mut inner = vec![];
            bytes(2, yaml::encode(value).as_bytes(), &mut inner);
            bytes(number, &inner, out);
        }
        ValueKind::Message(table) => {
            let mut inner = vec![];
            message(value, table, &mut inner);
            bytes(number, &inner, out);
        }
        ValueKind::Each(kind) => match value {
            Value::Array(items) => items.iter().for_each(|item| field(number, item, *kind, out)),
            single => field(number, single, *kind, out),
        },
        ValueKind::Wrapped(inside, kind) => {
            let mut inner = vec![];
            field(inside, value, *kind, &mut inner);
            bytes(number, &inner, out);
        }
        ValueKind::Choice(choose) => {
            if let Some(kind) = choose(value) {
                field(number, value, kind, out);
            }
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
        let encode = |value: Value| {
            let mut out = vec![];
            message(&value, &TABLE, &mut out);
            out
        };
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
