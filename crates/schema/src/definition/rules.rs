//! `x-kubernetes-validations` when a definition is written: the rules of every node whose subtree has no schema errors
//! are compiled, and their cost is estimated.

use cel::rules::{OBJECT_COST_MAX, Options as CelOptions, Rules};
use machinery::{FieldError, FieldPath, Text, Value};

use super::hoist::schema_has;
use super::openapi::list;
use super::options::Options;

const KEY: &str = "x-kubernetes-validations";

/// The errors of the rules of a schema. `broken` lists the fields with schema errors.
pub(super) fn validate(
    schema: &Value,
    version: &str,
    broken: &[String],
    options: &Options,
    path: &FieldPath,
) -> Vec<FieldError> {
    if !schema_has(schema, &|node| !list(node, KEY).is_empty()) {
        return vec![];
    }
    let mut compiled = CelOptions::of(options.release);
    compiled.stored = options.known_rules.iter().chain(&options.known_messages).map(Text::from).collect();
    compiled.expensive_expressions = options.unchanged_versions.contains(version);
    let mut schema = std::borrow::Cow::Borrowed(schema);
    if !broken.is_empty() {
        BrokenFields::new(broken).drop_rules(schema.to_mut(), path);
    }
    Rules::check(&schema, path, &compiled).expressions
}

/// The paths of fields with schema errors, sorted.
struct BrokenFields<'a>(Vec<&'a str>);

impl<'a> BrokenFields<'a> {
    fn new(paths: &'a [String]) -> BrokenFields<'a> {
        let mut paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        paths.sort_unstable();
        BrokenFields(paths)
    }

    /// Whether a field at or below `path` is broken.
    fn has_below(&self, path: &FieldPath) -> bool {
        let begins = |prefix: String| {
            let first = self.0.partition_point(|broken| *broken < prefix.as_str());
            self.0.get(first).is_some_and(|broken| broken.starts_with(&prefix))
        };
        self.0.binary_search(&path.as_str()).is_ok() || begins(format!("{path}.")) || begins(format!("{path}["))
    }

    /// Removes the rules of nodes that have schema errors at or below them. An empty list remains, since it matters for
    /// the nodes below that there is a rule above.
    fn drop_rules(&self, schema: &mut Value, path: &FieldPath) {
        if !self.has_below(path) {
            return;
        }
        let Some(map) = schema.as_object_mut() else { return };
        if let Some(rules) = map.get_mut(KEY) {
            *rules = Value::Array(vec![]);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = map.get_mut(key) {
                self.drop_rules(inner, &path.child(key));
            }
        }
        if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
            let path = path.child("properties");
            properties.iter_mut().for_each(|(name, inner)| self.drop_rules(inner, &path.key(name)));
        }
    }
}

/// The maximum total cost of the rules of all defaults in a schema.
pub(super) const DEFAULTS_BUDGET: u64 = OBJECT_COST_MAX;
