//! The schema of a shape, with what merging and OpenAPI need to know about a typed kind.

use machinery::{Value, json};

use super::table::SCHEMA;
use super::{Field, Shape, Struct};
use crate::limits::LEVELS_MAX;

/// The schema of an object without `apiVersion`, `kind` and metadata.
pub fn type_schema(shape: &Struct) -> Value {
    structure(shape, |name| !matches!(name, "apiVersion" | "kind" | "metadata"), Wanted::Merging, 1)
}

/// The schema of a kind with all fields and with formats, as expressions are checked against it.
pub fn declared_schema(shape: &Struct) -> Value {
    structure(shape, |_| true, Wanted::Formats, 1)
}

/// The aspects of scalars that are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Their JSON types, which are enough to merge objects.
    Merging,
    /// Their formats too.
    Formats,
}

/// The schema of a struct. `level` counts how often the struct is nested in itself.
fn structure(outer: &Struct, has: fn(&str) -> bool, wanted: Wanted, level: usize) -> Value {
    let fields = outer.fields().iter().filter(|field| has(field.name));
    let property = |field: &Field| (field.name.into(), merged(of(&field.shape, wanted, (outer, level)), field));
    let properties: Vec<_> = fields.map(property).collect();
    let mut schema = json!({"type": "object"});
    if !properties.is_empty() {
        schema.set_at(&["properties"], Value::Object(properties.into_iter().collect()));
    }
    schema
}

fn of(shape: &Shape, wanted: Wanted, (outer, level): (&Struct, usize)) -> Value {
    let formats = wanted == Wanted::Formats;
    match shape {
        Shape::Bytes if formats => json!({"type": "string", "format": "byte"}),
        Shape::Time | Shape::MicroTime if formats => json!({"type": "string", "format": "date-time"}),
        Shape::Any | Shape::IntOrString if formats => json!({"x-kubernetes-int-or-string": true}),
        // a quantity may be of several types, so the schema has none
        Shape::Quantity | Shape::Amount if formats => Value::object(),
        Shape::Text(_) | Shape::Bytes | Shape::Time | Shape::MicroTime => json!({"type": "string"}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int32 | Shape::Int64 => json!({"type": "integer"}),
        Shape::Float => json!({"type": "number"}),
        Shape::Quantity | Shape::Amount => json!({"x-kubernetes-int-or-string": true}),
        Shape::List(_, item) => {
            let items = of(item, wanted, (outer, level));
            json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": (items)})
        }
        Shape::Map(_, item) => json!({"type": "object", "additionalProperties": (of(item, wanted, (outer, level)))}),
        // a schema may contain itself, so the inner one is described as any object
        Shape::Struct(inner) if inner.go == SCHEMA => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        Shape::Struct(inner) if inner.go == outer.go && level == LEVELS_MAX => of(&Shape::Any, wanted, (outer, level)),
        Shape::Struct(inner) if inner.go == outer.go => structure(inner, |_| true, wanted, level + 1),
        Shape::Struct(inner) => structure(inner, |_| true, wanted, 1),
        Shape::Any | Shape::IntOrString | Shape::OrBool(_) | Shape::OrList(_) | Shape::OrTexts(_) => {
            json!({"x-kubernetes-preserve-unknown-fields": true})
        }
    }
}

/// The schema of a field, with what the table of Go types says about merging it.
fn merged(mut schema: Value, field: &Field) -> Value {
    let merging = &field.go.merging;
    let mut given = |path: &[&str], value: &'static str| {
        schema.put_text(path, value);
    };
    given(&["x-kubernetes-list-type"], merging.list_type);
    given(&["x-kubernetes-map-type"], merging.map_type);
    if !merging.keys.is_empty() {
        schema.set_at(&["x-kubernetes-list-map-keys"], merging.keys.split(',').map(Value::from).collect());
    }
    match (field.is_whole(), schema.get("items").is_some()) {
        (true, true) => schema.set_at(&["items", "x-kubernetes-map-type"], Value::from("atomic")),
        (true, false) => schema.set_at(&["x-kubernetes-map-type"], Value::from("atomic")),
        (false, _) => {}
    }
    schema
}
