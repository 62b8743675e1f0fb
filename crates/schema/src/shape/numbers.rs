//! Conversion of whole floats to integers.

use super::{Shape, Struct};
use machinery::Value;

/// Converts the numbers of a tree as Go's conversion from trees to structs does: whole floats to integers, and integers
/// to their lowest 32 bits if the field has only those. Values that decode themselves are unchanged.
pub fn convert_numbers(value: &mut Value, shape: &'static Struct) {
    convert_in(value, shape, OutOfRangeFloat::Least);
}

/// Converts the whole floats of a tree as a round trip through JSON does. Floats that do not fit a 64-bit integer are
/// unchanged.
pub fn convert_whole_numbers(value: &mut Value, shape: &'static Struct) {
    convert_in(value, shape, OutOfRangeFloat::Kept);
}

/// The result for a whole float beyond the range of 64-bit integers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutOfRangeFloat {
    /// The smallest integer, as the machine instruction that Go uses returns it.
    Least,
    Kept,
}

fn convert_in(value: &mut Value, shape: &'static Struct, beyond: OutOfRangeFloat) {
    let Some(map) = value.as_object_mut() else { return };
    let may_hold_numbers = |value: &Value| !matches!(value, Value::Null | Value::Bool(_) | Value::String(_));
    for (name, value) in map.iter_mut().filter(|(_, value)| may_hold_numbers(value)) {
        if let Some(field) = shape.field(name) {
            convert_number(value, &field.shape, beyond);
        }
    }
}

fn convert_number(value: &mut Value, shape: &'static Shape, beyond: OutOfRangeFloat) {
    match (shape, value) {
        (Shape::Int32 | Shape::Int64, value) => {
            if let Value::Float(float) = *value
                && float.fract() == 0.0
            {
                let fits = (i64::MIN as f64..i64::MAX as f64).contains(&float);
                match (fits, beyond) {
                    (true, _) => *value = Value::Int(float as i64),
                    (false, OutOfRangeFloat::Least) => *value = Value::Int(i64::MIN),
                    (false, OutOfRangeFloat::Kept) => {}
                }
            }
            if let (Shape::Int32, Value::Int(number), OutOfRangeFloat::Least) = (shape, &mut *value, beyond) {
                *number = i64::from(*number as i32);
            }
        }
        (Shape::Struct(inner), value) => convert_in(value, inner, beyond),
        (Shape::List(_, item), Value::Array(items)) => {
            items.iter_mut().for_each(|value| convert_number(value, item, beyond))
        }
        (Shape::Map(_, item), Value::Object(map)) => {
            map.iter_mut().for_each(|(_, value)| convert_number(value, item, beyond))
        }
        _ => {}
    }
}
