//! The OpenAPI documents of aggregated API servers, which are added to those of this server.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use machinery::{Map, Value};

use crate::aggregation::{Aggregation, Remote};

/// The documents of all aggregated API servers at one generation.
#[derive(Default)]
pub struct RemoteDocuments {
    pub generation: u64,
    /// In the order of their priorities, the highest first.
    pub all: Vec<RemoteDocument>,
}

/// The documents of a group version of an aggregated API server.
pub struct RemoteDocument {
    /// `apis/GROUP/VERSION`.
    pub name: String,
    /// URL of the v3 document; empty if there is none.
    pub v3: String,
    /// Paths and definitions of the v2 document; null if there is none.
    pub v2: Arc<Value>,
}

impl RemoteDocuments {
    pub fn new(aggregation: &Aggregation) -> RemoteDocuments {
        let generation = aggregation.openapi_generation();
        let mut remotes = aggregation.all();
        remotes.sort_by_key(|remote| std::cmp::Reverse((remote.group_priority, remote.version_priority)));
        let document = |remote: &Arc<Remote>| {
            let found = remote.openapi();
            let name = format!("apis/{}/{}", remote.group, remote.version);
            RemoteDocument { name, v3: found.v3.clone(), v2: found.v2.clone() }
        };
        RemoteDocuments { generation, all: remotes.iter().map(document).collect() }
    }
}

/// Renames the definitions of a v2 document whose names are taken: `NAME_v2`, `NAME_v3`, and so on, as kube-apiserver
/// does. A definition keeps its name if it equals the one in `known`, apart from the group versions and kinds that both
/// list.
pub fn without_conflicts<'a>(
    part: &Value,
    taken: &HashSet<String>,
    known: impl Fn(&str) -> Option<Cow<'a, Value>>,
) -> Value {
    let definitions = part.get("definitions").and_then(Value::as_object);
    let mut renamed = Map::new();
    for (name, schema) in definitions.into_iter().flat_map(Map::iter) {
        if !taken.contains(name.as_str()) || known(name.as_str()).is_some_and(|known| is_same(&known, schema)) {
            continue;
        }
        let is_free = |name: &String| !taken.contains(name) && definitions.is_none_or(|all| all.get(name).is_none());
        if let Some(free) = (2_u32..).map(|number| format!("{name}_v{number}")).find(is_free) {
            renamed.insert(name.as_str(), Value::from(free));
        }
    }
    if renamed.is_empty() {
        return part.clone();
    }
    let mut part = with_references(part, &renamed);
    let entries = part.fields_at(&["definitions"]);
    let entries = entries.map(|(name, schema)| {
        let name = renamed.get(name).and_then(Value::as_str).unwrap_or(name.as_str());
        (name.into(), schema.clone())
    });
    let definitions = Value::Object(entries.collect());
    part.set_at(&["definitions"], definitions);
    part
}

/// Whether two schemas are equal apart from the group versions and kinds that they list.
fn is_same(a: &Value, b: &Value) -> bool {
    let without = |schema: &Value| {
        let mut schema = schema.clone();
        schema.remove_at(&["x-kubernetes-group-version-kind"]);
        schema
    };
    without(a) == without(b)
}

/// A copy of a value whose references use the new names of definitions.
fn with_references(value: &Value, renamed: &Map) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| with_references(item, renamed)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| {
                let target = field.as_str().filter(|_| key == "$ref").and_then(|to| to.strip_prefix("#/definitions/"));
                let field = match target.and_then(|name| renamed.get(name)).and_then(Value::as_str) {
                    Some(name) => Value::from(format!("#/definitions/{name}")),
                    None => with_references(field, renamed),
                };
                (key.clone(), field)
            });
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn names_that_are_taken_are_changed() {
        let to = |name: &str| json!({"$ref": (format!("#/definitions/{name}"))});
        let part = json!({
            "paths": {"/x": (to("A"))},
            "definitions": {"A": {"b": (to("B")), "c": [(to("C"))]}, "B": {"own": 1}, "B_v2": {}, "C": {"same": 1, "x-kubernetes-group-version-kind": []}}
        });
        let taken = ["A", "B", "C"].map(str::to_owned).into();
        let same = json!({"same": 1});
        let found = without_conflicts(&part, &taken, |name| (name == "C").then_some(Cow::Borrowed(&same)));
        let want = json!({
            "paths": {"/x": (to("A_v2"))},
            "definitions": {"A_v2": {"b": (to("B_v3")), "c": [(to("C"))]}, "B_v3": {"own": 1}, "B_v2": {}, "C": {"same": 1, "x-kubernetes-group-version-kind": []}}
        });
        assert_eq!(found, want);
        assert_eq!(without_conflicts(&part, &HashSet::new(), |_| None), part);
    }
}
