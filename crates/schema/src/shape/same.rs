//! Equality as kube-apiserver compares objects: empty lists and maps equal absent ones.

use machinery::quantity::Quantity;
use machinery::{Map, Value};

use super::{Field, Print, Shape, Struct};

/// Whether two values of a field are equal.
pub fn same(one: Option<&Value>, other: Option<&Value>, field: &Field) -> bool {
    one == other || is_same(given(one, &field.shape), given(other, &field.shape), &field.shape, absent(field))
}

/// Whether two objects have equal fields, apart from those in `except`.
pub fn same_fields(one: &Value, other: &Value, of: &Struct, except: &[&str]) -> bool {
    let fields = of.fields().iter().filter(|field| !except.contains(&field.name));
    fields.into_iter().all(|field| same(one.get(field.name), other.get(field.name), field))
}

/// The value that an absent struct equals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// An empty one: the field is no pointer.
    Empty,
    Absent,
}

fn absent(field: &Field) -> Absent {
    match field.print {
        Print::Always | Print::NonEmpty => Absent::Empty,
        _ => Absent::Absent,
    }
}

fn given<'a>(value: Option<&'a Value>, shape: &Shape) -> Option<&'a Value> {
    value.filter(|value| match (shape, value) {
        (_, Value::Null) => false,
        (Shape::List(..), Value::Array(items)) => !items.is_empty(),
        (Shape::Map(..), Value::Object(map)) => !map.is_empty(),
        _ => true,
    })
}

fn is_same(one: Option<&Value>, other: Option<&Value>, shape: &Shape, absent: Absent) -> bool {
    static NOTHING: Value = Value::Null;
    match (shape, one, other) {
        (_, None, None) => true,
        (Shape::Struct(of), Some(one), Some(other)) => same_fields(one, other, of, &[]),
        (Shape::Struct(of), one, other) if absent == Absent::Empty => {
            same_fields(one.unwrap_or(&NOTHING), other.unwrap_or(&NOTHING), of, &[])
        }
        (Shape::List(_, item), Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(Some(one), Some(other), item, Absent::Empty))
        }
        (Shape::Map(_, item), Some(Value::Object(one)), Some(Value::Object(other))) => {
            one.len() == other.len()
                && Map::iter(one).all(|(key, one)| {
                    other.get(key).is_some_and(|it| is_same(Some(one), Some(it), item, Absent::Empty))
                })
        }
        (Shape::Quantity | Shape::Amount, Some(one), Some(other)) => one == other || is_same_amount(one, other),
        (_, one, other) => one == other,
    }
}

/// Whether two texts are the same amount, in any units.
fn is_same_amount(one: &Value, other: &Value) -> bool {
    matches!((Quantity::of(one), Quantity::of(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use crate::shape::named;

    #[test]
    fn empty_lists_and_maps_are_like_absent_ones() {
        let policy = named("networking.v1.NetworkPolicy");
        for (one, other, want) in [
            (json!({"spec": {"ingress": []}}), json!({"spec": {}}), true),
            (json!({"spec": {"podSelector": {"matchLabels": {}}}}), json!({}), true),
            (json!({"spec": {"ingress": [{"from": []}]}}), json!({"spec": {"ingress": [{}]}}), true),
            (json!({"spec": {"ingress": [{}]}}), json!({"spec": {}}), false),
            // a pointer
            (
                json!({"spec": {"ingress": [{"from": [{"podSelector": {}}]}]}}),
                json!({"spec": {"ingress": [{"from": [{}]}]}}),
                false,
            ),
        ] {
            assert_eq!(same_fields(&one, &other, policy, &["metadata"]), want, "{}", one.to_json());
        }
    }
}
