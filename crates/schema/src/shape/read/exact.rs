//! Whether reading would return what is given.

use super::print::is_empty;
use crate::shape::{Field, Print, Shape, Struct, normal_time};
use machinery::Value;

/// Whether [`read`](super::read()) finds neither an error nor an unknown field and returns an equal value. False if that would
/// take as long as reading: metadata has simple shapes only.
pub fn is_exact(value: &Value, shape: &'static Struct) -> bool {
    let Value::Object(map) = value else { return false };
    let mut left = shape.fields();
    let is_exact = map.iter().all(|(key, inner)| {
        let before = left.partition_point(|field| field.name < key.as_str());
        let (absent, rest) = left.split_at(before);
        let Some((field, rest)) = rest.split_first().filter(|(field, _)| field.name == key.as_str()) else {
            return false;
        };
        left = rest;
        let is_omitted = inner.is_null() || field.print == Print::NonEmpty && is_empty(inner);
        let adds = absent.iter().any(is_always_printed);
        !is_omitted && !adds && is_exact_value(inner, &field.shape)
    });
    is_exact && !left.iter().any(is_always_printed)
}

fn is_always_printed(field: &Field) -> bool {
    matches!(field.print, Print::Always | Print::OrNull)
}

fn is_exact_value(value: &Value, shape: &'static Shape) -> bool {
    match (shape, value) {
        (_, Value::Null) => false,
        (Shape::Any, _)
        | (Shape::Text(_), Value::String(_))
        | (Shape::Bool, Value::Bool(_))
        | (Shape::Int64, Value::Int(_)) => true,
        (Shape::Time, Value::String(text)) => matches!(normal_time(text), Ok(Some(normal)) if normal == text.as_str()),
        (Shape::List(_, item), Value::Array(items)) => items.iter().all(|inner| is_exact_value(inner, item)),
        (Shape::Map(_, item), Value::Object(map)) => map.values().all(|inner| is_exact_value(inner, item)),
        (Shape::Struct(inner), value) => is_exact(value, inner),
        _ => false,
    }
}
