//! Fills in defaults (crd.md 10.2, step B).
//!
//! Pipeline: after pruning of a request body with the schema of the request's version; after reading from storage with
//! the schema of the stored version; again after admission changed an object. Not after conversion.

use machinery::Value;

use crate::program::{Node, Schema};

impl Schema {
    /// Sets every missing property that has a default, and replaces nulls where null is not allowed.
    pub fn default(&self, object: &mut Value) {
        if self.program.structural {
            default_node(object, &self.program.root);
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
