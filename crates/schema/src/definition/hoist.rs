//! The internal view of a spec, in which fields that all versions have in common are at the top. Errors are reported
//! under the paths of this view.

use machinery::Value;

use super::openapi::is_leaf;
use crate::shape;

/// The internal view of a v1 spec, which borrows the spec.
pub(super) struct Hoisted<'a> {
    pub(super) spec: &'a Value,
    pub(super) versions: &'a [Value],
    shared: [bool; 4],
}

const KEYS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

/// Upstream's semantic equality, in which empty lists and maps equal absent ones.
fn same(key: &str, a: Option<&Value>, b: Option<&Value>) -> bool {
    let blank = |v: Option<&Value>| v.and_then(Value::as_array).is_none_or(<[Value]>::is_empty);
    match (a, b) {
        _ if a == b => true,
        (Some(a), Some(b)) if key == "schema" => {
            let validation = shape::named("apiextensions.v1.CustomResourceValidation");
            shape::read(a, validation).value == shape::read(b, validation).value
        }
        _ => matches!(key, "additionalPrinterColumns" | "selectableFields") && blank(a) && blank(b),
    }
}

impl<'a> Hoisted<'a> {
    pub(super) fn of(spec: &'a Value) -> Hoisted<'a> {
        let versions = spec.items_at(&["versions"]);
        let first = versions.first();
        let shared = KEYS.map(|key| {
            let want = first.and_then(|v| v.get(key));
            !versions.is_empty() && versions[1..].iter().all(|v| same(key, v.get(key), want))
        });
        Hoisted { spec, versions, shared }
    }

    /// Whether `key` of the versions was moved to the top.
    pub(super) fn is_shared(&self, key: &str) -> bool {
        KEYS.iter().position(|k| *k == key).is_some_and(|i| self.shared[i])
    }

    /// The common value of `key`.
    pub(super) fn top(&self, key: &str) -> Option<&'a Value> {
        if self.is_shared(key) { self.versions.first()?.get(key) } else { None }
    }

    /// The value of `key` that remains in a version.
    pub(super) fn own(&self, version: &'a Value, key: &str) -> Option<&'a Value> {
        if self.is_shared(key) { None } else { version.get(key) }
    }

    /// A version without what was moved to the top.
    pub(super) fn rest_of(&self, version: &Value) -> Value {
        let mut rest = version.clone();
        KEYS.iter().filter(|key| self.is_shared(key)).for_each(|key| drop(rest.remove_at(&[key])));
        rest
    }

    /// The common `openAPIV3Schema`, or else that of each version.
    pub(super) fn schemas(&self) -> impl Iterator<Item = &'a Value> {
        let top = self.top("schema");
        let own = self.versions.iter().filter_map(|v| self.own(v, "schema"));
        top.into_iter().chain(own).filter_map(|v| v.get("openAPIV3Schema"))
    }

    /// Whether some schema has a default.
    pub(super) fn has_defaults(&self) -> bool {
        self.schemas().any(|schema| schema_has(schema, &|node| node.get("default").is_some()))
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.spec.is_true_at(&[key])
    }
}

/// Whether `holds` is true for any node of a schema. All keywords that contain schemas are searched.
pub(super) fn schema_has(schema: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    if schema.as_object().is_none() {
        return false;
    }
    holds(schema) || children(schema).any(|child| schema_has(child, holds))
}

pub(super) fn children(schema: &Value) -> impl Iterator<Item = &Value> {
    let schema = if is_leaf(schema) { &Value::Null } else { schema };
    let single = ["not", "additionalProperties", "additionalItems"];
    let lists = ["allOf", "anyOf", "oneOf"];
    let maps = ["properties", "patternProperties", "definitions", "dependencies"];
    let items = schema.get("items").into_iter().flat_map(|items| match items {
        Value::Array(list) => list.iter().collect(),
        other => vec![other],
    });
    let single = single.into_iter().filter_map(|key| schema.get(key));
    let lists = lists.into_iter().filter_map(|key| schema.get(key).and_then(Value::as_array)).flatten();
    let maps = maps.into_iter().filter_map(|key| schema.get(key).and_then(Value::as_object)).flat_map(|m| m.values());
    items.chain(lists).chain(single).chain(maps).filter(|v| v.as_object().is_some())
}
