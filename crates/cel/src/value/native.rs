//! Conversion of results of expressions to JSON, for mutations (KEP-3962) and claims.

pub(crate) use crate::limits::NATIVE_VALUES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::{Map as JsonMap, Value};

use super::{Key, List, Map, Val, time};

/// Greater integers are not exact as doubles, so `google.protobuf.Value` has them as text.
const EXACT_MAX: u64 = (1 << 53) - 1;

/// A value as a `google.protobuf.Value` has it in JSON. Fails with a one-line message.
pub fn to_json(value: &Val<'_>) -> Result<Value, String> {
    protobuf(value, &mut NATIVE_VALUES_MAX.clone())
}

/// The error of nested messages whose type name does not match their path: the type of `spec` of an `Object` is
/// `Object.spec`.
pub fn misnamed(value: &Val<'_>) -> Option<String> {
    let Val::Map(Map::Made(root, _)) = value else { return None };
    let mut wrong = vec![];
    names_of(value, root, &mut wrong);
    (!wrong.is_empty()).then(|| wrong.join("\n"))
}

fn names_of(value: &Val<'_>, path: &str, wrong: &mut Vec<String>) {
    match value {
        Val::Map(Map::Made(name, fields)) => {
            if name != path {
                wrong.push(format!(
                    "unexpected type name {}, expected {}, which matches field name path from root Object type",
                    machinery::value::quote(name),
                    machinery::value::quote(path)
                ));
            }
            for (key, value) in fields.iter() {
                if let Key::String(field) = key {
                    names_of(value, &format!("{path}.{}", &**field), wrong);
                }
            }
        }
        Val::Map(Map::Owned(entries)) => entries.values().for_each(|value| names_of(value, path, wrong)),
        Val::List(list) => list.iter().flatten().for_each(|item| names_of(&item, path, wrong)),
        _ => {}
    }
}

impl Val<'_> {
    /// The Go type of a value.
    pub(crate) fn native_type(&self) -> &'static str {
        match self {
            Val::Null => "structpb.NullValue",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int64",
            Val::Uint(_) => "uint64",
            Val::Double(_) => "float64",
            Val::String(_) | Val::Type(_) => "string",
            Val::Bytes(_) => "[]uint8",
            Val::Duration(_) => "time.Duration",
            Val::Timestamp(_) => "time.Time",
            Val::List(List::Json { .. }) => "[]interface {}",
            Val::List(_) => "[]ref.Val",
            Val::Map(Map::Owned(_)) => "map[ref.Val]ref.Val",
            Val::Map(_) => "map[string]interface {}",
            Val::Preserved(value) => machinery::patch::gotext::type_of(value),
            Val::Optional(Some(value)) => value.native_type(),
            Val::Optional(None) => "<nil>",
            Val::Opaque(_) | Val::Authorization(_) => "interface {}",
        }
    }
}

/// Counts a value with `bytes` bytes of text against the limit `left`.
pub(super) fn take(left: &mut u32, bytes: usize) -> Result<(), String> {
    let values = u32::try_from(bytes / 16).unwrap_or(u32::MAX).saturating_add(1);
    *left = left.checked_sub(values).ok_or("the value is too large")?;
    Ok(())
}

/// Counts a JSON value with all its parts.
pub(super) fn take_json(left: &mut u32, value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => take(left, text.len()),
        Value::Array(items) => {
            take(left, 0)?;
            items.iter().try_for_each(|item| take_json(left, item))
        }
        Value::Object(map) => take_map(left, map),
        _ => take(left, 0),
    }
}

/// Counts a JSON object with all its parts.
pub(super) fn take_map(left: &mut u32, map: &JsonMap) -> Result<(), String> {
    take(left, 0)?;
    map.iter().try_for_each(|(key, value)| take(left, key.len()).and_then(|()| take_json(left, value)))
}

fn protobuf(value: &Val<'_>, left: &mut u32) -> Result<Value, String> {
    match value {
        Val::String(text) => take(left, text.len())?,
        Val::Bytes(bytes) => take(left, bytes.len())?,
        Val::Preserved(value) => take_json(left, value)?,
        Val::List(List::Json { items, .. }) => items.iter().try_for_each(|item| take_json(left, item))?,
        Val::Map(Map::Object(map, _) | Map::Json(map, _)) => take_map(left, map)?,
        _ => take(left, 0)?,
    }
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(b) => Value::Bool(*b),
        Val::Int(i) => integer(*i),
        Val::Uint(u) if *u <= EXACT_MAX => Value::Int(*u as i64),
        Val::Uint(u) => Value::from(u.to_string()),
        Val::Double(d) if !d.is_finite() => return Err(format!("proto: google.protobuf.Value: invalid {d} value")),
        Val::Double(d) => double(*d),
        Val::String(s) => Value::from(&**s),
        Val::Bytes(bytes) => Value::from(STANDARD.encode(bytes)),
        Val::Duration(d) => Value::from(time::duration_text(*d)),
        Val::Timestamp(t) => Value::from(time::timestamp_text(*t)),
        Val::Preserved(value) => json(value),
        Val::List(List::Json { items, .. }) => Value::Array(items.iter().map(json).collect()),
        Val::List(list) => {
            let item = |item: super::Result<Val<'_>>| protobuf(&item.map_err(|error| error.to_string())?, left);
            Value::Array(list.iter().map(item).collect::<Result<_, _>>()?)
        }
        Val::Map(Map::Object(map, _) | Map::Json(map, _)) => json_map(map),
        Val::Map(Map::Owned(map) | Map::Made(_, map)) => {
            let mut out = JsonMap::new();
            for (key, value) in map.iter() {
                let Key::String(name) = key else {
                    let of = key.value().type_of().runtime_name();
                    return Err(format!("unsupported type conversion from '{of}' to string"));
                };
                out.insert(&**name, protobuf(value, left)?);
            }
            Value::Object(out)
        }
        Val::Optional(Some(value)) => protobuf(value, left)?,
        Val::Optional(None) => return Err("optional.none() dereference".to_owned()),
        Val::Type(_) => return Err("type conversion not supported for 'type'".to_owned()),
        Val::Opaque(_) | Val::Authorization(_) => {
            let of = value.type_of().runtime_name();
            let of = of.rsplit('.').next().unwrap_or_default();
            return Err(format!("type conversion error from '{of}' to '*structpb.Value'"));
        }
    })
}

fn integer(integer: i64) -> Value {
    if integer.unsigned_abs() > EXACT_MAX { Value::from(integer.to_string()) } else { Value::Int(integer) }
}

/// A double as JSON; without a fraction, it is an integer.
fn double(double: f64) -> Value {
    if double.fract() == 0.0 && double.abs() < 9e18 { Value::Int(double as i64) } else { Value::Float(double) }
}

/// A value that was decoded from JSON.
fn json(value: &Value) -> Value {
    match value {
        Value::Int(i) => integer(*i),
        Value::Float(d) => double(*d),
        Value::Array(items) => Value::Array(items.iter().map(json).collect()),
        Value::Object(map) => json_map(map),
        other => other.clone(),
    }
}

fn json_map(map: &JsonMap) -> Value {
    let mut out = JsonMap::new();
    for (key, value) in map.iter() {
        out.insert(key.clone(), json(value));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Program};

    /// The JSON of the result of an expression, or the error.
    fn reported(expression: &str) -> String {
        let env = Environment::kubernetes(35);
        let program = Program::new(&env, &env.check(expression).unwrap()).unwrap();
        let outcome = program.eval(&[], 1_000_000);
        to_json(&outcome.result.unwrap()).map_or_else(|why| why, |json| json.to_json())
    }

    #[test]
    fn values_print_as_protobuf_json() {
        let cases = [
            ("9007199254740991", "9007199254740991"),
            ("9007199254740992", "\"9007199254740992\""),
            ("-9223372036854775807", "\"-9223372036854775807\""),
            ("18446744073709551615u", "\"18446744073709551615\""),
            ("3.0", "3"),
            ("-2.5", "-2.5"),
            ("b'\\xff'", "\"/w==\""),
            ("duration('90s')", "\"90s\""),
            ("timestamp(0)", "\"1970-01-01T00:00:00Z\""),
            ("{'a': [1, 2]}", "{\"a\":[1,2]}"),
            ("null", "null"),
            ("{1: 2}", "unsupported type conversion from 'int' to string"),
            ("optional.of(1)", "1"),
            ("optional.none()", "optional.none() dereference"),
            ("type(1)", "type conversion not supported for 'type'"),
        ];
        for (expression, want) in cases {
            assert_eq!(reported(expression), want, "{expression}");
        }
    }
}
