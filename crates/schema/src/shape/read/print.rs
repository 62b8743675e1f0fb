//! When fields are printed, and what is printed for absent ones.

use super::Empty;
use crate::shape::{Field, Print, Shape, Struct};
use machinery::{Text, Value};

/// The object with no field set.
pub(super) fn zero(shape: &Struct) -> Value {
    let field = |field: &Field| Some((Text::from(field.name), printed(field, None, Empty::AsPrinted)?));
    Value::Object(shape.fields().iter().filter_map(field).collect())
}

pub(super) fn absent(fields: &[Field], out: &mut Vec<(Text, Value)>) {
    let always = fields.iter().filter(|field| field.print == Print::Always);
    out.extend(always.map(|field| (Text::new_static(field.name), zero_value(&field.shape))));
    let nulls = fields.iter().filter(|field| field.print == Print::OrNull);
    out.extend(nulls.map(|field| (Text::new_static(field.name), Value::Null)));
}

pub(super) fn zero_value(shape: &Shape) -> Value {
    match shape {
        Shape::Text(_) => Value::from(""),
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Float => Value::Int(0),
        Shape::Struct(inner) => zero(inner),
        Shape::Quantity | Shape::Amount => Value::from("0"),
        _ => Value::Null,
    }
}

/// A field as it is printed; `None` if it is omitted.
pub(super) fn printed(field: &Field, value: Option<Value>, empty: Empty) -> Option<Value> {
    let container = |v: &Value| matches!(v, Value::Array(_) | Value::Object(_));
    match (field.print, value) {
        (Print::Always, None) => Some(zero_value(&field.shape)),
        (Print::OrNull, None) => Some(Value::Null),
        (Print::NonEmpty, Some(value)) if is_empty(&value) && !(empty == Empty::Kept && container(&value)) => None,
        (Print::Always, Some(Value::Array(items))) if items.is_empty() && empty == Empty::Forgotten => {
            Some(Value::Null)
        }
        (_, value) => value,
    }
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(i) => *i == 0,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Encoded(text) => text == "{}",
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}
