//! The schema of a shape: what merging and OpenAPI need to know of a typed kind.

use machinery::types::Merging;
use machinery::{Value, json};

use super::definition::SCHEMA_PROPS;
use super::{Field, LABEL_SELECTOR, LOCAL_REFERENCE, Merge, OBJECT_REFERENCE, Shape, Struct};

/// The schema of an object; metadata and type are left out.
pub fn type_schema(shape: &Struct) -> Value {
    structure(shape, |name| !matches!(name, "apiVersion" | "kind" | "metadata"), false)
}

/// The schema of a kind with all of its fields and with formats, as expressions are checked against it.
pub fn declared_schema(shape: &Struct) -> Value {
    structure(shape, |_| true, true)
}

/// Whether a struct has one owner wherever it stands.
pub(crate) fn has_one_owner(shape: &Struct) -> bool {
    [&LABEL_SELECTOR, &LOCAL_REFERENCE, &OBJECT_REFERENCE].into_iter().any(|whole| std::ptr::eq(whole, shape))
}

fn structure(shape: &Struct, wanted: fn(&str) -> bool, formats: bool) -> Value {
    let fields = shape.fields.iter().filter(|field| wanted(field.name));
    let property = |field: &Field| (field.name.into(), merged(of(&field.shape, formats), field.merge));
    let properties: Vec<_> = fields.map(property).collect();
    let mut schema = json!({"type": "object"});
    if has_one_owner(shape) {
        schema.set_at(&["x-kubernetes-map-type"], Value::from("atomic"));
    }
    if !properties.is_empty() {
        schema.set_at(&["properties"], Value::Object(properties.into_iter().collect()));
    }
    schema
}

fn of(shape: &Shape, formats: bool) -> Value {
    match shape {
        Shape::Bytes if formats => json!({"type": "string", "format": "byte"}),
        Shape::Time | Shape::MicroTime if formats => json!({"type": "string", "format": "date-time"}),
        Shape::Any | Shape::IntOrString if formats => json!({"x-kubernetes-int-or-string": true}),
        // of several types, which is none
        Shape::Quantity | Shape::Amount if formats => Value::object(),
        Shape::Text(_) | Shape::Bytes | Shape::Time | Shape::MicroTime => json!({"type": "string"}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int32 | Shape::Int64 => json!({"type": "integer"}),
        Shape::Float => json!({"type": "number"}),
        Shape::Quantity | Shape::Amount => json!({"x-kubernetes-int-or-string": true}),
        Shape::List(_, item) => {
            json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": (of(item, formats))})
        }
        Shape::Map(_, item) => json!({"type": "object", "additionalProperties": (of(item, formats))}),
        // a schema may hold itself: it is shown as far as what holds it
        Shape::Struct(inner) if std::ptr::eq(*inner, &SCHEMA_PROPS) => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        Shape::Struct(inner) => structure(inner, |_| true, formats),
        Shape::Any | Shape::IntOrString | Shape::OrBool(_) | Shape::OrList(_) | Shape::OrTexts(_) => {
            json!({"x-kubernetes-preserve-unknown-fields": true})
        }
    }
}

fn keyed(schema: &mut Value, keys: &[&'static str]) {
    schema.set_at(&["x-kubernetes-list-type"], Value::from("map"));
    schema.set_at(&["x-kubernetes-list-map-keys"], keys.iter().copied().map(Value::from).collect());
}

fn by_table(schema: &mut Value, merging: &Merging, is_atomic: bool) {
    let mut given = |path: &[&str], value: &'static str| {
        if !value.is_empty() {
            schema.set_at(path, Value::from(value));
        }
    };
    given(&["x-kubernetes-list-type"], merging.list_type);
    given(&["x-kubernetes-map-type"], merging.map_type);
    given(&["x-kubernetes-patch-strategy"], merging.strategy);
    given(&["x-kubernetes-patch-merge-key"], merging.merge_key);
    if !merging.keys.is_empty() {
        keyed(schema, &merging.keys.split(',').collect::<Vec<_>>());
    }
    match (is_atomic, schema.get("items").is_some()) {
        (true, true) => schema.set_at(&["items", "x-kubernetes-map-type"], Value::from("atomic")),
        (true, false) => schema.set_at(&["x-kubernetes-map-type"], Value::from("atomic")),
        (false, _) => {}
    }
}

fn merged(mut schema: Value, merge: Merge) -> Value {
    match merge {
        Merge::Plain => {}
        Merge::Set => schema.set_at(&["x-kubernetes-list-type"], Value::from("set")),
        Merge::Atomic => schema.set_at(&["x-kubernetes-map-type"], Value::from("atomic")),
        Merge::Keyed(key) | Merge::Patched(key) | Merge::PatchedWhole(key) => keyed(&mut schema, &[key]),
        Merge::PatchedByAll(keys) => keyed(&mut schema, keys),
        Merge::Table(merging, is_atomic) => by_table(&mut schema, merging, is_atomic),
    }
    if let Merge::PatchedWhole(_) = merge {
        schema.set_at(&["items", "x-kubernetes-map-type"], Value::from("atomic"));
    }
    if let Merge::Patched(key) | Merge::PatchedWhole(key) | Merge::PatchedByAll(&[key, ..]) = merge {
        schema.set_at(&["x-kubernetes-patch-strategy"], Value::from("merge"));
        schema.set_at(&["x-kubernetes-patch-merge-key"], Value::from(key));
    }
    schema
}
