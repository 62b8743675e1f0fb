//! The order in which Go writes the fields of a typed object as JSON: that of its struct.

use super::{Container, GoBase, GoStruct, GoType, go_struct, message_name};
use crate::value::{Map, Text, Value};

/// The text of a built-in object into which a JSON merge patch has been merged, as kube-apiserver shows it in errors.
/// `before` is the object without the patch, which may have changed its kind.
///
/// Objects that the patch changed have sorted fields. Untouched fields keep the order of their Go type, and values of
/// the patch keep their own.
pub fn merged_text(object: &Value, before: &Value, patch: &Value) -> String {
    let name = message_name(before.str_at(&["apiVersion"]), before.str_at(&["kind"]));
    let mut out = String::new();
    write(object, FieldsOf::named(&name), Some(patch), &mut out);
    out
}

/// The text of a value of the type `go_type`, such as `core.v1.PodSpec`, with its fields in the order of the Go struct.
/// Unknown fields come last, and values of unknown types have sorted fields.
#[must_use]
pub fn typed_text(value: &Value, go_type: &str) -> String {
    let mut out = String::new();
    write(value, FieldsOf::named(go_type), None, &mut out);
    out
}

/// The types of the fields of a value, as far as they are known.
#[derive(Clone, Copy)]
enum FieldsOf {
    /// Nothing, so that the fields are sorted.
    Free,
    Struct(&'static GoStruct),
    /// A map from text to values of this type.
    Map(GoBase),
}

impl FieldsOf {
    /// The fields of a struct. A type with alternatives has the fields of the alternative that is an object.
    fn named(name: &str) -> FieldsOf {
        let name = match name {
            "apiextensions.v1.JSONSchemaPropsOrBool"
            | "apiextensions.v1.JSONSchemaPropsOrArray"
            | "apiextensions.v1.JSONSchemaPropsOrStringArray" => "apiextensions.v1.JSONSchemaProps",
            name => name,
        };
        go_struct(name).map_or(FieldsOf::Free, FieldsOf::Struct)
    }

    fn of(base: GoBase) -> FieldsOf {
        if let GoBase::Struct(name) = base { FieldsOf::named(name) } else { FieldsOf::Free }
    }

    /// The type of a field. If it is a list, this is also the type of its items.
    fn field(self, name: &str) -> FieldsOf {
        match self {
            FieldsOf::Free => FieldsOf::Free,
            FieldsOf::Map(base) => FieldsOf::of(base),
            FieldsOf::Struct(of) => match of.flat().find(|field| field.name == name).map(|field| field.go_type) {
                Some(GoType { container: Container::Map, base, .. }) => FieldsOf::Map(base),
                Some(GoType { base, .. }) => FieldsOf::of(base),
                None => FieldsOf::Free,
            },
        }
    }

    /// The position of a field in its struct; `kind` and `apiVersion` come first.
    fn place(self, name: &str) -> usize {
        let FieldsOf::Struct(of) = self else { return 0 };
        match (name, of.flat().position(|field| field.name == name)) {
            (_, Some(place)) => place + 2,
            ("apiVersion", None) => 1,
            ("kind", None) => 0,
            _ => usize::MAX,
        }
    }
}

fn write(value: &Value, fields: FieldsOf, patch: Option<&Value>, out: &mut String) {
    match value {
        Value::Object(map) => write_object(map, fields, patch.and_then(Value::as_object), out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                let inner = patch.and_then(|patch| patch.get(&i.to_string()));
                write(item, fields, inner, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_json()),
    }
}

fn write_object(map: &Map, fields: FieldsOf, patch: Option<&Map>, out: &mut String) {
    let mut entries: Vec<(&Text, &Value)> = map.iter().collect();
    if patch.is_none() {
        entries.sort_by_key(|(name, _)| fields.place(name));
    }
    out.push('{');
    for (i, (name, value)) in entries.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(name).to_json());
        out.push(':');
        match patch.and_then(|patch| patch.get(name)) {
            Some(brought) if brought.as_object().is_none() => out.push_str(&value.to_json()),
            inner => write(value, fields.field(name), inner, out),
        }
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn untouched_fields_keep_their_order() {
        let entry = json!({"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:b": {}, "f:a": {}}, "manager": "m", "operation": "Update"});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": 1,
            "metadata": {"labels": {"b": "c", "a": "b"}, "managedFields": [entry], "name": "n", "creationTimestamp": "t"}});
        let entry = r#"{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{},"f:b":{}}}"#;
        let text = merged_text(&object, &object, &json!({"data": 1}));
        let labels = r#""labels":{"a":"b","b":"c"}"#;
        assert_eq!(
            text,
            format!(
                r#"{{"apiVersion":"v1","data":1,"kind":"ConfigMap","metadata":{{"name":"n","creationTimestamp":"t",{labels},"managedFields":[{entry}]}}}}"#
            )
        );
        let text = merged_text(&object, &object, &json!({"metadata": {"labels": {"c": null}}}));
        assert_eq!(
            text,
            format!(
                r#"{{"apiVersion":"v1","data":1,"kind":"ConfigMap","metadata":{{"creationTimestamp":"t",{labels},"managedFields":[{entry}],"name":"n"}}}}"#
            )
        );
    }

    #[test]
    fn fields_have_the_order_of_the_struct_and_not_of_its_numbers() {
        let before = json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "ClusterIP", "clusterIPs": [], "clusterIP": "a"}});
        let mut object = before.clone();
        object.set_at(&["kind"], Value::from("X"));
        assert_eq!(
            merged_text(&object, &before, &json!({"kind": "X"})),
            r#"{"apiVersion":"v1","kind":"X","spec":{"clusterIP":"a","clusterIPs":[],"type":"ClusterIP"}}"#
        );
    }
}
