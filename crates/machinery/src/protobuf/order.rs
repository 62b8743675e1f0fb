//! The order in which Go writes the fields of a typed object as JSON: that of its struct, which is that of its message.

use super::codec::message_name;
use super::table::{Count, FieldKind, MessageField, in_struct_order};
use crate::value::{Map, Text, Value};

/// The text of a built-in object into which a JSON merge patch has been merged, as kube-apiserver shows it in errors.
///
/// The objects that the patch has been merged into have sorted fields. What it has not touched keeps the order of its
/// type, and what it has brought is written as a value of its own.
pub fn merged_text(object: &Value, patch: &Value) -> String {
    let name = message_name(object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let mut out = String::new();
    write(object, in_struct_order(&name).map_or(Type::Free, Type::Struct), Some(patch), &mut out);
    out
}

/// What is known of the fields of a value.
#[derive(Clone, Copy)]
enum Type {
    /// Nothing: they are sorted.
    Free,
    Struct(&'static [MessageField]),
    /// A map from text to values of this kind.
    Map(FieldKind),
}

impl Type {
    fn of(kind: FieldKind) -> Type {
        let FieldKind::Message(name) = kind else { return Type::Free };
        match name {
            "meta.v1.FieldsV1" | "runtime.RawExtension" | "apiextensions.v1.JSON" => Type::Free,
            "apiextensions.v1.JSONSchemaPropsOrBool"
            | "apiextensions.v1.JSONSchemaPropsOrArray"
            | "apiextensions.v1.JSONSchemaPropsOrStringArray" => {
                in_struct_order("apiextensions.v1.JSONSchemaProps").map_or(Type::Free, Type::Struct)
            }
            name => in_struct_order(name).map_or(Type::Free, Type::Struct),
        }
    }

    /// The type of a field. Its items, if it is a list, have the same.
    fn field(self, name: &str) -> Type {
        match self {
            Type::Free => Type::Free,
            Type::Map(kind) => Type::of(kind),
            Type::Struct(members) => match members.iter().find(|member| member.name == name) {
                Some(MessageField { count: Count::Map, kind, .. }) => Type::Map(*kind),
                Some(member) => Type::of(member.kind),
                None => Type::Free,
            },
        }
    }

    /// Where a field stands in its struct; the type of an object comes first.
    fn place(self, name: &str) -> usize {
        let Type::Struct(members) = self else { return 0 };
        match (name, members.iter().position(|member| member.name == name)) {
            (_, Some(place)) => place + 2,
            ("apiVersion", None) => 1,
            ("kind", None) => 0,
            _ => usize::MAX,
        }
    }
}

fn write(value: &Value, fields: Type, patch: Option<&Value>, out: &mut String) {
    match value {
        Value::Object(map) => write_object(map, fields, patch.and_then(Value::as_object), out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, fields, None, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_json()),
    }
}

fn write_object(map: &Map, fields: Type, patch: Option<&Map>, out: &mut String) {
    let mut members: Vec<(&Text, &Value)> = map.iter().collect();
    if patch.is_none() {
        members.sort_by_key(|(name, _)| fields.place(name));
    }
    out.push('{');
    for (i, (name, value)) in members.into_iter().enumerate() {
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
    fn what_a_patch_has_not_touched_keeps_its_order() {
        let entry = json!({"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:b": {}, "f:a": {}}, "manager": "m", "operation": "Update"});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": 1,
            "metadata": {"labels": {"b": "c", "a": "b"}, "managedFields": [entry], "name": "n", "creationTimestamp": "t"}});
        let entry = r#"{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{},"f:b":{}}}"#;
        let text = merged_text(&object, &json!({"data": 1}));
        let labels = r#""labels":{"a":"b","b":"c"}"#;
        assert_eq!(
            text,
            format!(
                r#"{{"apiVersion":"v1","data":1,"kind":"ConfigMap","metadata":{{"name":"n","creationTimestamp":"t",{labels},"managedFields":[{entry}]}}}}"#
            )
        );
        let text = merged_text(&object, &json!({"metadata": {"labels": {"c": null}}}));
        assert_eq!(
            text,
            format!(
                r#"{{"apiVersion":"v1","data":1,"kind":"ConfigMap","metadata":{{"creationTimestamp":"t",{labels},"managedFields":[{entry}],"name":"n"}}}}"#
            )
        );
    }
}
