//! Nodes of the schema of a recording.

use cel::rules::SchemaNode;
use machinery::Value;
use std::collections::BTreeMap;

pub struct Node {
    fields: BTreeMap<String, Node>,
    additional: Option<Box<Node>>,
    items: Option<Box<Node>>,
    /// The keys of a list, if it has any.
    keys: Option<Vec<String>>,
}

impl Node {
    pub fn of(schema: &Value) -> Node {
        let below = |name: &str| schema.get(name).filter(|s| s.as_object().is_some()).map(|s| Box::new(Node::of(s)));
        let properties = schema.fields_at(&["properties"]);
        let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let names = |keys: &[Value]| keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Node {
            fields: properties.map(|(name, schema)| (name.to_string(), Node::of(schema))).collect(),
            additional: below("additionalProperties"),
            items: below("items"),
            keys: keys.map(names),
        }
    }

    fn below(&self, name: &str) -> Option<&Node> {
        self.fields.get(name).or(self.additional.as_deref())
    }
}

impl SchemaNode for Node {
    fn field(&self, name: &str) -> Option<&dyn SchemaNode> {
        self.below(name).map(|node| node as &dyn SchemaNode)
    }

    fn items(&self) -> Option<&dyn SchemaNode> {
        self.items.as_deref().map(|node| node as &dyn SchemaNode)
    }

    fn unchanged(&self, new: &Value, old: &Value) -> bool {
        match (new, old, &self.keys, &self.items) {
            (Value::Array(new), Value::Array(old), Some(keys), Some(items)) => {
                let same = |a: &Value, b: &Value| keys.iter().all(|key| a.get(key) == b.get(key));
                let before = |item: &Value| old.iter().find(|old| same(item, old));
                new.len() == old.len()
                    && new.iter().all(|item| before(item).is_some_and(|old| items.unchanged(item, old)))
            }
            (Value::Object(new), Value::Object(old), ..) => {
                let same = |(name, new): (&machinery::Text, &Value)| match (self.below(name), old.get(name)) {
                    (Some(node), Some(old)) => node.unchanged(new, old),
                    _ => false,
                };
                new.len() == old.len() && new.iter().all(same)
            }
            _ => new == old,
        }
    }
}
