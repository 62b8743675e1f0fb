//! Pruning: removes undeclared fields, and nulls of fields that are neither nullable nor defaulted.
//!
//! Pipeline: right after a request body or a stored object has been decoded and its own metadata coerced, before
//! [`Schema::coerce_embedded`] and [`Schema::default`].

use cel::SchemaOf;
use machinery::value::Paths;
use machinery::{Map, Value};

use crate::path::Path;
use crate::program::{Additional, Node, Schema};

/// Whether a field is one that every resource has although schemas do not declare it.
pub(crate) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

impl Schema {
    /// Removes undeclared fields, and nulls of fields that are neither nullable nor have a default. Adds the sorted
    /// paths of the removed fields to `unknown`, as field validation prints them (`spec.list[0].x`).
    pub fn prune(&self, object: &mut Value, unknown: &mut Vec<String>) {
        if self.program.options.preserve_unknown_fields {
            return;
        }
        let mut found = Paths::default();
        let mut pruner = Pruner { unknown: Some(&mut found), nulls: false };
        let empty = Node::default();
        let root = if self.program.structural { &self.program.root } else { &empty };
        pruner.node(object, root, SchemaOf::Resource, &Path::Root);
        let nulls = pruner.nulls;
        let mut found = found.into_list();
        found.sort();
        unknown.append(&mut found);
        if self.program.structural && nulls {
            drop_nulls(object, root);
        }
    }
}

/// Prunes a value at `node`. The removed fields are not reported.
pub(crate) fn prune_node(value: &mut Value, node: &Node, schema_of: SchemaOf) {
    let mut pruner = Pruner { unknown: None, nulls: false };
    pruner.node(value, node, schema_of, &Path::Root);
}

struct Pruner<'a> {
    unknown: Option<&'a mut Paths>,
    /// Whether some declared field is null.
    nulls: bool,
}

impl Pruner<'_> {
    fn report(&mut self, path: &Path<'_>) {
        if let Some(unknown) = &mut self.unknown {
            unknown.add(|| path.text());
        }
    }

    fn prune(&mut self, value: &mut Value, node: Option<&Node>, path: &Path<'_>) {
        if !matches!(value, Value::Array(_) | Value::Object(_)) {
            self.nulls |= value.is_null();
            return;
        }
        match node {
            None => self.clear(value, path),
            Some(node) => self.node(value, node, node.schema_of(), path),
        }
    }

    /// Prunes a value whose schema is `node`. A resource keeps its type and metadata.
    fn node(&mut self, value: &mut Value, node: &Node, schema_of: SchemaOf, path: &Path<'_>) {
        self.declared(value, node, schema_of, node.preserve, path);
    }

    /// Removes all fields of objects, also in lists, since nothing is declared here.
    fn clear(&mut self, value: &mut Value, path: &Path<'_>) {
        match value {
            Value::Object(map) => {
                for key in map.keys() {
                    self.report(&Path::Field(path, key));
                }
                *map = Map::new();
            }
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    self.clear(item, &Path::Index(path, i));
                }
            }
            _ => {}
        }
    }

    /// Prunes the declared fields, and removes other ones unless this node, or a list with it as its item, `preserves` them.
    fn declared(&mut self, value: &mut Value, node: &Node, schema_of: SchemaOf, preserves: bool, path: &Path<'_>) {
        let mut next = 0;
        match value {
            Value::Object(map) => map.retain(|key, inner| {
                if schema_of == SchemaOf::Resource && is_meta(key) {
                    self.nulls |= inner.is_null();
                    return true;
                }
                let here = Path::Field(path, key);
                if let Some(field) = node.field_after(key, &mut next) {
                    self.prune(inner, Some(field), &here);
                    return true;
                }
                if !matches!(node.additional, Additional::Absent) {
                    self.prune(inner, node.additional.node(), &here);
                    return true;
                }
                if !preserves {
                    self.report(&here);
                }
                preserves
            }),
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    let here = Path::Index(path, i);
                    match node.items.as_deref() {
                        Some(inner) if preserves => self.declared(item, inner, inner.schema_of(), true, &here),
                        None if preserves => {}
                        inner => self.prune(item, inner, &here),
                    }
                }
            }
            _ => {}
        }
    }
}

/// Drops null fields whose schema is neither nullable nor has a default.
pub(crate) fn drop_nulls(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => map.retain(|key, inner| {
            let Some(field) = node.field_or_additional(key) else { return true };
            if inner.is_null() {
                return field.nullable || field.default.is_some();
            }
            drop_nulls(inner, field);
            true
        }),
        Value::Array(items) => {
            let Some(inner) = &node.items else { return };
            items.iter_mut().for_each(|item| drop_nulls(item, inner));
        }
        _ => {}
    }
}
