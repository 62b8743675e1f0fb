//! Conversion of the test data to types and values of this crate, and comparison of results.

use crate::textproto::{Message, Value};
use cel::{Timestamp, Type, Val};
use std::sync::Arc;

/// The type of a `cel.expr.Type`; `None` for types that this crate does not have.
pub fn type_of(message: &Message) -> Option<Type> {
    let (kind, value) = message.0.first()?;
    let part = |name: &str| value.message().message(name).and_then(type_of);
    Some(match kind.as_str() {
        "primitive" => primitive(&value.text())?,
        "wrapper" => Type::Wrapper(Arc::new(primitive(&value.text())?)),
        "well_known" => match value.text().as_str() {
            "TIMESTAMP" => Type::Timestamp,
            "DURATION" => Type::Duration,
            _ => Type::Any,
        },
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "list_type" => Type::list(part("elem_type")?),
        "map_type" => Type::map(part("key_type")?, part("value_type")?),
        "type" => Type::type_of(type_of(value.message())?),
        "abstract_type" if value.message().text("name") == "optional_type" => Type::optional(part("parameter_types")?),
        "message_type" if value.text() == "google.protobuf.Timestamp" => Type::Timestamp,
        "message_type" if value.text() == "google.protobuf.Duration" => Type::Duration,
        _ => return None,
    })
}

fn primitive(name: &str) -> Option<Type> {
    Some(match name {
        "BOOL" => Type::Bool,
        "INT64" => Type::Int,
        "UINT64" => Type::Uint,
        "DOUBLE" => Type::Double,
        "STRING" => Type::String,
        "BYTES" => Type::Bytes,
        _ => return None,
    })
}

fn double(text: &str) -> Option<f64> {
    match text {
        "inf" | "infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        "nan" => Some(f64::NAN),
        other => other.parse().ok(),
    }
}

/// The value of a `cel.expr.Value`; `None` for messages and enums.
pub fn value(message: &Message) -> Option<Val<'static>> {
    let (kind, value) = message.0.first()?;
    let text = value.text();
    Some(match kind.as_str() {
        "null_value" => Val::Null,
        "bool_value" => Val::Bool(text == "true"),
        "int64_value" => Val::Int(text.parse().ok()?),
        "uint64_value" => Val::Uint(text.parse().ok()?),
        "double_value" => Val::Double(double(&text)?),
        "string_value" => Val::string(text),
        "bytes_value" => match value {
            Value::Text(bytes) => Val::Bytes(bytes.as_slice().into()),
            _ => return None,
        },
        "type_value" => Val::Type(Arc::new(Type::named(&text, cel::Elements::Dyn)?)),
        "list_value" => Val::list(value.message().all("values").map(self::value).collect::<Option<_>>()?),
        "map_value" => {
            let entry = |entry: &Message| {
                Some((entry.message("key").and_then(self::value)?, entry.message("value").and_then(self::value)?))
            };
            Val::map(value.message().all("entries").map(entry).collect::<Option<Vec<_>>>()?)?
        }
        "object_value" => any(value.message())?,
        _ => return None,
    })
}

/// `google.protobuf.Any` with a message that is a value of the language.
fn any(message: &Message) -> Option<Val<'static>> {
    let (name, value) = message.0.first()?;
    let number = |name: &str| value.message().text(name).parse::<i64>().unwrap_or(0);
    match name.strip_prefix("type.googleapis.com/")? {
        "google.protobuf.Timestamp" => Some(Val::Timestamp(Timestamp {
            seconds: number("seconds"),
            nanoseconds: number("nanos") as u32,
            offset: 0,
        })),
        "google.protobuf.Duration" => {
            let whole = number("seconds").checked_mul(1_000_000_000)?;
            Some(Val::Duration(whole.checked_add(number("nanos"))?))
        }
        _ => None,
    }
}

/// Whether a result has the type and the value of the expected one; NaN equals NaN.
pub fn same(want: &Val<'_>, got: &Val<'_>) -> bool {
    match (want, got) {
        (Val::Double(want), Val::Double(got)) => want == got || want.is_nan() && got.is_nan(),
        (Val::List(want), Val::List(got)) => {
            let same = |i| match (want.get(i), got.get(i)) {
                (Some(Ok(want)), Some(Ok(got))) => self::same(&want, &got),
                _ => false,
            };
            want.len() == got.len() && (0..want.len()).all(same)
        }
        (Val::Map(want), Val::Map(got)) => {
            let (want, got) = (want.entries(), got.entries());
            let same = |(key, value): &(Val<'_>, cel::Result<Val<'_>>)| {
                let found = got.iter().find(|(other, _)| self::same(key, other));
                matches!((value, found), (Ok(want), Some((_, Ok(got)))) if self::same(want, got))
            };
            want.len() == got.len() && want.iter().all(same)
        }
        (Val::Type(want), Val::Type(got)) => want.runtime_name() == got.runtime_name(),
        _ => want.type_of() == got.type_of() && want.equals(got),
    }
}
