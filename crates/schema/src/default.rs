//! Fills in defaults (crd.md 10.2, step B).
//!
//! Pipeline: after pruning of a request body with the schema of the request's version; after reading from storage with
//! the schema of the stored version; again after admission changed an object. Not after conversion.

use machinery::Value;

use crate::program::{Node, Schema};

impl Schema {
    /// Sets every missing property that has a default, and replaces nulls where null is not allowed. Fields that
    /// `ObjectMeta` doesn't have are not set in the metadata of embedded resources.
    pub fn default(&self, object: &mut Value) {
        if !self.program.structural {
            return;
        }
        default_node(object, &self.program.root);
        if self.program.defaults_metadata {
            crate::coerce::coerce_node(object, &self.program.root, crate::Malformed::Drop);
        }
    }
}

pub(crate) fn default_node(value: &mut Value, node: &Node) {
    if !node.below.defaults {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, field) in &node.fields {
                if !field.below.defaults {
                    continue;
                }
                if let Some(default) = &field.default {
                    match map.get(name) {
                        Some(Value::Null) if !field.nullable => {}
                        Some(_) => continue,
                        None => {}
                    }
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, inner) in map.iter_mut() {
                let Some(member) = node.member(name) else { continue };
                default_item(inner, member);
            }
        }
        Value::Array(items) => {
            let Some(inner) = &node.items else { return };
            items.iter_mut().for_each(|item| default_item(item, inner));
        }
        _ => {}
    }
}

fn default_item(value: &mut Value, node: &Node) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
    default_node(value, node);
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    /// Upstream's TestCustomResourceDefaultingOfMetaFields.
    #[test]
    fn embedded_metadata_gets_no_unknown_fields() {
        let text = |default: &str| json!({"type": "string", "default": default});
        let types = || json!({"apiVersion": (text("foos/v1")), "kind": (text("Foo"))});
        let whole =
            || json!({"apiVersion": "foos/v1", "kind": "Foo", "metadata": {"name": "Bar", "unknown": "unknown"}});
        let fields = json!({"type": "object", "properties": {"name": (text("Bar")), "unknown": (text("unknown"))}});
        let metadata = json!({"type": "object", "default": {"name": "Bar", "unknown": "unknown"}});
        let other = || json!({"foo": {"type": "string"}});
        let resource = |preserve: bool, properties: Value, default: Option<Value>| {
            let mut schema =
                json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": properties});
            if preserve {
                schema.set_at(&["x-kubernetes-preserve-unknown-fields"], Value::Bool(true));
            }
            if let Some(default) = default {
                schema.set_at(&["default"], default);
            }
            schema
        };
        let with = |metadata: &Value| {
            let mut properties = types();
            properties.set_at(&["metadata"], metadata.clone());
            properties
        };
        for preserve in [false, true] {
            let spanning = json!({"type": "object", "default": {"embedded": (whole())},
                "properties": {"embedded": (resource(preserve, other(), None))}});
            let schema = json!({"type": "object", "properties": {
                "fields": (resource(preserve, with(&fields), None)),
                "full": (resource(preserve, with(&metadata), None)),
                "object": (resource(preserve, other(), Some(whole()))),
                "spanning": spanning
            }});
            let schema = Schema::compile(&schema, &Default::default());
            let mut object = json!({"fields": {"metadata": {}}, "full": {}});
            schema.default(&mut object);
            let want = json!({"apiVersion": "foos/v1", "kind": "Foo", "metadata": {"name": "Bar"}});
            for path in [&["fields"][..], &["full"], &["object"], &["spanning", "embedded"]] {
                assert_eq!(object.at(path), Some(&want), "{path:?}");
            }
        }
    }
}
