//! The compile-time side of `x-kubernetes-validations`: every node whose subtree is free of schema errors has its rules
//! compiled and costed.

use cel::rules::{OBJECT_COST_MAX, Options as CelOptions, Rules};
use machinery::{FieldError, FieldPath, Text, Value};

use super::hoist::schema_has;
use super::openapi::list;
use super::options::Options;
use crate::rules as running;

const KEY: &str = "x-kubernetes-validations";

/// The errors of the rules of a schema; `broken` are the fields that have schema errors.
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
        drop_broken(schema.to_mut(), path, broken);
    }
    let (_, mut errors) = Rules::compile(&schema, path, &compiled);
    // Malformed fields come first; they are reported among the schema errors.
    let fields = Rules::check_fields(&schema, path).len();
    errors.split_off(fields.min(errors.len()))
}

/// Removes the rules of nodes that have schema errors at or below them.
fn drop_broken(schema: &mut Value, path: &FieldPath, broken: &[String]) {
    let below = |field: &String| {
        field.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    if !broken.iter().any(below) {
        return;
    }
    let Some(map) = schema.as_object_mut() else { return };
    map.remove(KEY);
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            drop_broken(inner, &path.child(key), broken);
        }
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        let place = path.child("properties");
        properties.iter_mut().for_each(|(name, inner)| drop_broken(inner, &place.key(name), broken));
    }
}

/// The maximum cost of the rules of all defaults of a schema.
pub(super) const DEFAULTS_BUDGET: u64 = OBJECT_COST_MAX;

/// The errors of rules at or below a node that its default breaks.
pub(super) fn validate_default(
    schema: &Value,
    default: &Value,
    path: &FieldPath,
    options: &Options,
    budget: &mut u64,
) -> Vec<FieldError> {
    let Some(rules) = running::compile(schema, options.release) else { return vec![] };
    let (mut errors, left) = running::validate_default(&rules, default, *budget);
    *budget = left;
    for error in &mut errors {
        error.field = match error.field.as_str() {
            "" | "<nil>" => path.as_str().to_owned(),
            field if field.starts_with('[') => format!("{path}{field}"),
            field => format!("{path}.{field}"),
        };
    }
    errors
}
