//! The types of built-in kinds, compiled from their shapes. A shape may contain itself, as that of schemas does.

use super::types::{
    Atom, Compiler, DEDUCED, ListRelation, ListType, MapRelation, Object, Scalar, TypeField, TypeId, TypeSchema,
    UNTYPED, plain_map,
};
use crate::shape::{Field, Print, Shape, Struct};
use machinery::Value;

impl TypeSchema {
    /// The types of the object that a shape describes.
    pub fn of_shape(shape: &'static Struct) -> TypeSchema {
        let mut shapes = Shapes { compiler: Compiler::new(), known: vec![] };
        let root = shapes.structure(shape, MapRelation::Granular, Some(Object::Root));
        shapes.compiler.finish(root)
    }
}

struct Shapes {
    compiler: Compiler,
    known: Vec<KnownStruct>,
}

/// A struct whose node exists or is being made.
struct KnownStruct {
    shape: &'static Struct,
    kind: MapRelation,
    id: TypeId,
}

impl Shapes {
    fn field(&mut self, field: &'static Field) -> TypeId {
        let merging = &field.go.merging;
        let kind = if field.is_whole() { MapRelation::Atomic } else { MapRelation::Granular };
        match &field.shape {
            Shape::List(_, item) => {
                let element = self.node(item, kind);
                let kind = match merging.list_type {
                    "map" => ListRelation::Map(merging.keys.split(',').map(Into::into).collect()),
                    "set" => ListRelation::Set,
                    _ => ListRelation::Atomic,
                };
                self.compiler.add(Atom { list: Some(ListType { element, kind }), ..Atom::default() })
            }
            shape if merging.map_type == "atomic" => self.node(shape, MapRelation::Atomic),
            shape => self.node(shape, kind),
        }
    }

    /// The node of a value, which is of this kind if it is a map.
    fn node(&mut self, shape: &'static Shape, kind: MapRelation) -> TypeId {
        match shape {
            Shape::Text(_) | Shape::Bytes => self.compiler.scalar(Scalar::String),
            Shape::Bool => self.compiler.scalar(Scalar::Boolean),
            Shape::Int32 | Shape::Int64 | Shape::Float => self.compiler.scalar(Scalar::Numeric),
            Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::Amount => self.compiler.scalar(Scalar::Untyped),
            Shape::List(_, item) => {
                let list = ListType { element: self.node(item, MapRelation::Granular), kind: ListRelation::Atomic };
                self.compiler.add(Atom { list: Some(list), ..Atom::default() })
            }
            Shape::Map(_, value) => {
                let element = self.node(value, MapRelation::Granular);
                self.compiler.add(Atom { map: Some(plain_map(vec![], Some(element), kind)), ..Atom::default() })
            }
            Shape::Struct(inner) => self.structure(inner, kind, None),
            Shape::Any if kind == MapRelation::Atomic => UNTYPED,
            Shape::Any | Shape::IntOrString | Shape::OrBool(_) | Shape::OrList(_) | Shape::OrTexts(_) => DEDUCED,
        }
    }

    fn structure(&mut self, shape: &'static Struct, kind: MapRelation, object: Option<Object>) -> TypeId {
        let known = self.known.iter().find(|known| std::ptr::eq(known.shape, shape) && known.kind == kind);
        if let Some(known) = known {
            return known.id;
        }
        let id = self.compiler.add(Atom::default());
        self.known.push(KnownStruct { shape, kind, id });
        let mut fields = match object {
            Some(object) => self.compiler.type_and_metadata(object),
            None => vec![],
        };
        for field in shape.fields() {
            if fields.iter().all(|known: &TypeField| known.name != field.name) {
                fields.push(TypeField { name: field.name.into(), node: self.field(field), default: zero(field) });
            }
        }
        fields.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        // a struct without fields stands for any map
        let element = fields.is_empty().then_some(DEDUCED);
        self.compiler.set(id, Atom { map: Some(plain_map(fields, element, kind)), ..Atom::default() });
        id
    }
}

/// The value that an absent key field has: fields that are always printed have a default.
fn zero(field: &Field) -> Option<Value> {
    match field.shape {
        Shape::Text(_) if field.key_default().is_some() => field.key_default().map(Value::from),
        Shape::Text(_) if field.print == Print::Always => Some(Value::from("")),
        Shape::Int32 | Shape::Int64 if field.print == Print::Always => Some(Value::Int(0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::typed::{Duplicates, errors_text, validate};
    use super::*;
    use crate::shape::named;
    use machinery::json;

    #[test]
    fn schemas_are_typed_at_every_depth() {
        let types = TypeSchema::of_shape(named("apiextensions.v1.CustomResourceDefinition"));
        let cases = [
            (json!({"type": "object", "properties": {"a": {"not": {"maxLength": 1}}}, "default": {"x": []}}), Ok(())),
            (json!({"items": {"zog": 1}, "additionalProperties": true, "dependencies": {"a": ["b"]}}), Ok(())),
            (
                json!({"properties": {"a": {"allOf": [{"zog": 1}]}}}),
                Err(".properties.a.allOf[0].zog: field not declared in schema"),
            ),
            (
                json!({"x-kubernetes-validations": [{"rule": "true", "zog": 1}]}),
                Err(".x-kubernetes-validations[rule=\"true\"].zog: field not declared in schema"),
            ),
            (
                json!({"x-kubernetes-validations": [{"rule": "true"}, {"rule": "true"}]}),
                Err(".x-kubernetes-validations: duplicate entries for key [rule=\"true\"]"),
            ),
            (json!({"x-kubernetes-validations": [{"message": "no rule"}]}), Ok(())),
            (json!({"required": "a"}), Err(".required: expected list, got &{a}")),
            (json!({"maximum": "a"}), Err(".maximum: expected numeric (int or float), got string")),
        ];
        for (schema, want) in cases {
            let shown = schema.to_json();
            let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
            let object = json!({"metadata": {"name": "a", "creationTimestamp": "2020-01-01T00:00:00Z"}, "spec": {"versions": [version], "names": {"plural": "a", "shortNames": ["x"]}}, "status": {"conditions": [{"type": "a", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}], "storedVersions": ["v1"], "acceptedNames": {"plural": "a"}}});
            let found = validate(&types, &object, Duplicates::Refused).map_err(|errors| errors_text(&errors));
            let want = want.map_err(|why| format!(".spec.versions[0].schema.openAPIV3Schema{why}"));
            assert_eq!(found, want, "{shown}");
        }
    }
}
