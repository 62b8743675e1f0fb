//! Defaulting.
//!
//! Defaults are set in a request body after it is pruned, by the schema of the request's version; in an object that is
//! read from storage, by the schema of the stored version; and again after admission has changed an object. As in
//! kube-apiserver, they are not set after a conversion.

pub use crate::limits::DEFAULTED_BYTES_MAX;
use machinery::Value;

use crate::program::{Node, Schema};

/// Defaults would add more than [`DEFAULTED_BYTES_MAX`] to an object. Those that fit have been set. The text is that of
/// kube-apiserver, which sets all defaults, and whose etcd refuses to store the result.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("etcdserver: request is too large")]
pub struct DefaultsTooLarge;

impl Schema {
    /// Sets each missing property that has a default, and replaces null by the default where null is not allowed. In the
    /// metadata of embedded resources, only fields of `ObjectMeta` are set.
    pub fn default(&self, object: &mut Value) -> Result<(), DefaultsTooLarge> {
        if !self.program.structural {
            return Ok(());
        }
        let mut defaulter = Defaulter { left: Some(DEFAULTED_BYTES_MAX) };
        defaulter.node(object, &self.program.root);
        if self.program.defaults_metadata {
            crate::coerce::coerce_node(object, &self.program.root, crate::metadata::Malformed::Drop);
        }
        defaulter.left.map(drop).ok_or(DefaultsTooLarge)
    }
}

/// About the size of a value as JSON, in bytes. Escapes and the digits of numbers are not counted.
pub(crate) fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 2 + items.iter().map(|item| json_bytes(item) + 1).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(name, inner)| name.len() + json_bytes(inner) + 4).sum::<usize>(),
        Value::String(text) => text.len() + 2,
        Value::Encoded(text) => text.len(),
        // not zero, so that many small defaults also reach the limit
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => 1,
    }
}

struct Defaulter {
    /// How many bytes may still be added; `None` once the limit is exceeded.
    left: Option<usize>,
}

impl Defaulter {
    fn node(&mut self, value: &mut Value, node: &Node) {
        if !node.below.defaults || self.left.is_none() {
            return;
        }
        match value {
            Value::Object(map) => {
                for (name, field) in &node.fields {
                    let Some(default) = field.default.as_ref().filter(|_| field.below.defaults) else { continue };
                    let is_missing = map.get(name).is_none_or(|given| given.is_null() && !field.nullable);
                    if is_missing && self.may_add(name.len() + field.default_bytes) {
                        map.insert(name.clone(), default.clone());
                    }
                }
                for (name, inner) in map.iter_mut() {
                    if let Some(field) = node.field_or_additional(name) {
                        self.value(inner, field);
                    }
                }
            }
            Value::Array(items) => {
                let Some(inner) = &node.items else { return };
                items.iter_mut().for_each(|item| self.value(item, inner));
            }
            _ => {}
        }
    }

    /// Replaces null by the default where null is not allowed, and sets the defaults below the value.
    fn value(&mut self, value: &mut Value, node: &Node) {
        if value.is_null()
            && !node.nullable
            && let Some(default) = &node.default
            && self.may_add(node.default_bytes)
        {
            *value = default.clone();
        }
        self.node(value, node);
    }

    fn may_add(&mut self, bytes: usize) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(bytes));
        self.left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CompileOptions;
    use machinery::json;

    /// Without the limit, a default of 100 KB in each of 5,000 items takes 1.9 GB.
    #[test]
    fn defaults_are_bounded_by_bytes() {
        let large: Value = (0..1_000).map(|i| Value::from(format!("{i:0100}"))).collect();
        let item = json!({"type": "object", "properties": {"a": {
            "type": "array", "items": {"type": "string"}, "default": (large)
        }}});
        let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": (item)}}});
        let schema = Schema::compile(&schema, &CompileOptions::default());
        let with_items = |count: usize| json!({"l": (Value::Array(vec![Value::object(); count]))});
        let defaulted = |object: &Value| {
            let items = object.items_at(&["l"]);
            items.iter().filter(|item| item.get("a").is_some()).count()
        };
        let mut object = with_items(20);
        assert_eq!((schema.default(&mut object), defaulted(&object)), (Ok(()), 20));
        let mut object = with_items(5_000);
        assert_eq!(schema.default(&mut object), Err(DefaultsTooLarge));
        assert_eq!(defaulted(&object), DEFAULTED_BYTES_MAX / 103_003);
        let mut null = json!({"l": (Value::Array(vec![Value::Null; 5_000]))});
        assert_eq!(schema.default(&mut null), Ok(()));
    }

    /// The case of upstream's TestCustomResourceDefaultingOfMetaFields.
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
            schema.default(&mut object).expect("few defaults");
            let want = json!({"apiVersion": "foos/v1", "kind": "Foo", "metadata": {"name": "Bar"}});
            for path in [&["fields"][..], &["full"], &["object"], &["spanning", "embedded"]] {
                assert_eq!(object.at(path), Some(&want), "{path:?}");
            }
        }
    }
}
