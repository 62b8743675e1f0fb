//! Conversion between JSON and values, by declarations.

use super::{Error, Key, List, Map, Result, Timestamp, Val, time};
use crate::decl::{Decl, DeclKind};
use crate::limits::JSON_VALUES_MAX;
use base64::Engine;
use machinery::Value;
use machinery::patch::gotext::type_of;
use machinery::time::{check_local_time, parse_date};

fn wrong<'a>(expected: &str, value: &Value) -> Result<Val<'a>> {
    Err(Error::new(format!("invalid data, expected {expected}, got {}", type_of(value))))
}

/// Converts a JSON value by its declaration. Nested values are converted when they are accessed. The error is upstream's
/// `invalid data, expected …`, or the specific error of a date, a duration or base64.
pub fn from_json<'a>(value: &'a Value, decl: &'a Decl) -> Result<Val<'a>> {
    if let DeclKind::Json = decl.kind {
        return Ok(untyped(value));
    }
    if value.is_null() {
        if decl.nullable {
            return Ok(Val::Null);
        }
        return Err(Error::new("invalid data, got null for schema with nullable=false"));
    }
    match (&decl.kind, value) {
        (DeclKind::String, Value::String(s)) => Ok(Val::borrowed(s)),
        (DeclKind::Int, Value::Int(i)) => Ok(Val::Int(*i)),
        (DeclKind::Bool, Value::Bool(b)) => Ok(Val::Bool(*b)),
        (DeclKind::Object(object), Value::Object(map)) => Ok(Val::Map(Map::Object(map, object))),
        (DeclKind::Map(element), Value::Object(map)) => Ok(Val::Map(Map::Json(map, element))),
        (DeclKind::List { item, kind }, Value::Array(items)) => match item {
            Some(item) => Ok(Val::List(List::Json { items, item, kind })),
            None => Err(Error::new("invalid array type, expected Items with a non-empty Schema")),
        },
        (DeclKind::Double, Value::Int(i)) => Ok(Val::Double(*i as f64)),
        (DeclKind::Double, Value::Float(f)) => Ok(Val::Double(*f)),
        (DeclKind::IntOrString, Value::Int(i)) => Ok(Val::Int(*i)),
        (DeclKind::IntOrString, Value::String(s)) => Ok(Val::borrowed(s)),
        (DeclKind::Bytes | DeclKind::Date | DeclKind::DateTime | DeclKind::Duration, Value::String(s)) => {
            formatted(s, &decl.kind)
        }
        (DeclKind::Preserved, value) => Ok(Val::Preserved(value)),
        (kind, value) => mistyped(kind, value),
    }
}

fn mistyped<'a>(kind: &DeclKind, value: &Value) -> Result<Val<'a>> {
    match kind {
        DeclKind::String | DeclKind::Bytes | DeclKind::Date | DeclKind::DateTime | DeclKind::Duration => {
            wrong("string", value)
        }
        DeclKind::Int => wrong("int", value),
        DeclKind::Double => wrong("float", value),
        DeclKind::Bool => wrong("bool", value),
        DeclKind::IntOrString => {
            Err(Error::new("invalid data, expected XIntOrString value to be either a string or integer"))
        }
        DeclKind::Object(_) | DeclKind::Map(_) => {
            Err(Error::new("invalid data, expected a map for the provided schema with type=object"))
        }
        DeclKind::List { .. } => {
            Err(Error::new("invalid data, expected an array for the provided schema with type=array"))
        }
        _ => Err(Error::new(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ",
        )),
    }
}

fn formatted<'a>(text: &'a str, kind: &DeclKind) -> Result<Val<'a>> {
    match kind {
        DeclKind::Duration => match time::parse_format_duration(text) {
            Ok(nanoseconds) => Ok(Val::Duration(nanoseconds)),
            Err(error) => Err(Error::new(format!("Invalid duration {text}: {error}"))),
        },
        DeclKind::Date => match parse_date(text) {
            Ok(seconds) => Ok(Val::Timestamp(Timestamp::utc(seconds, 0))),
            Err(why) => Err(Error::new(format!("Invalid date formatted string {text}: {why}"))),
        },
        DeclKind::DateTime => match time::parse_format_date_time(text) {
            Some(moment) => Ok(Val::Timestamp(moment)),
            None => {
                let why = check_local_time(text).err().unwrap_or_default();
                Err(Error::new(format!("Invalid date-time formatted string {text}: {why}")))
            }
        },
        _ => {
            let engine = &base64::engine::general_purpose::URL_SAFE;
            match engine.decode(text.replace(['\n', '\r'], "")) {
                Ok(bytes) => Ok(Val::Bytes(bytes.into())),
                Err(_) => {
                    let alphabet = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'\n' | b'\r');
                    let at = text.bytes().position(|b| !alphabet(b)).unwrap_or(text.len());
                    Err(Error::new(format!(
                        "Invalid byte formatted string {text}: illegal base64 data at input byte {at}"
                    )))
                }
            }
        }
    }
}

pub(crate) fn untyped(value: &Value) -> Val<'_> {
    match value {
        Value::Null => Val::Null,
        Value::Bool(b) => Val::Bool(*b),
        Value::Int(i) => Val::Int(*i),
        Value::Float(f) => Val::Double(*f),
        Value::String(s) => Val::borrowed(s),
        Value::Array(items) => {
            let kind = &crate::decl::ListKind::Atomic;
            Val::List(List::Json { items, item: Decl::json(), kind })
        }
        Value::Object(map) => Val::Map(Map::Json(map, Decl::json())),
        Value::Encoded(_) => {
            debug_assert!(false, "expressions are given decoded objects");
            Val::Null
        }
    }
}

impl<'a> Val<'a> {
    /// The value without its declaration, as plain JSON.
    pub(crate) fn bare(self) -> Val<'a> {
        match self {
            Val::List(List::Json { items, .. }) => {
                Val::List(List::Json { items, item: Decl::json(), kind: &crate::decl::ListKind::Atomic })
            }
            Val::Map(Map::Object(map, _) | Map::Json(map, _)) => Val::Map(Map::Json(map, Decl::json())),
            Val::Preserved(value) => untyped(value),
            value => value,
        }
    }
}

/// The JSON of lists, maps with string keys, and scalars; `None` for other values, or if they are too many.
pub(super) fn json_value(value: &Val<'_>) -> Option<Value> {
    let mut left = JSON_VALUES_MAX;
    json_of(value, &mut left)
}

fn json_of(value: &Val<'_>, left: &mut u32) -> Option<Value> {
    *left = left.checked_sub(1)?;
    Some(match value {
        Val::Null => Value::Null,
        Val::Bool(b) => Value::Bool(*b),
        Val::Int(i) => Value::Int(*i),
        Val::Uint(u) => i64::try_from(*u).map_or(Value::Float(*u as f64), Value::Int),
        Val::Double(d) => Value::Float(*d),
        Val::String(s) => Value::from(&**s),
        Val::Duration(d) => Value::from(time::duration_text(*d)),
        Val::Timestamp(t) => Value::from(time::timestamp_text(*t)),
        Val::Preserved(value) => (*value).clone(),
        Val::List(List::Json { items, .. }) => Value::Array(items.to_vec()),
        Val::List(list) => {
            let items: Option<Vec<Value>> = list.iter().map(|item| json_of(&item.ok()?, left)).collect();
            Value::Array(items?)
        }
        Val::Map(Map::Object(map, _) | Map::Json(map, _)) => Value::Object((*map).clone()),
        Val::Map(Map::Owned(map) | Map::Made(_, map)) => {
            let mut out = machinery::Map::new();
            for (key, value) in map.iter() {
                let Key::String(key) = key else { return None };
                out.insert(&**key, json_of(value, left)?);
            }
            Value::Object(out)
        }
        Val::Bytes(_) | Val::Type(_) | Val::Optional(_) | Val::Opaque(_) | Val::Authorization(_) => return None,
    })
}
