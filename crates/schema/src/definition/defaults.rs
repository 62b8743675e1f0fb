//! Validates defaults: each must have no unknown fields, be well-formed if it is metadata, and be valid for its node.

use cel::SchemaOf;
use cel::rules::{Rules, RulesAt};
use machinery::{FieldError, FieldPath, Map, Release, Value};

use super::hoist::schema_has;
use super::options::Options;
use super::rules;
use crate::compile::{Dialect, Formats, node};
use crate::path::Path;
use crate::program::Node;
use crate::{coerce, embedded, prune, rules as running, validate as values};

pub(super) fn validate(schema: &Value, path: &FieldPath, options: &Options) -> Vec<FieldError> {
    if !schema_has(schema, &|n| n.get("default").is_some()) {
        return vec![];
    }
    let root = resource(schema, options.release);
    // one set of rules for all defaults, since nested ones share them
    let rules = Rules::of(schema, SchemaOf::Value, options.release);
    let mut walk = DefaultsWalk { options, errors: vec![], budget: rules::DEFAULTS_BUDGET };
    walk.node(&root, rules.as_ref().map(Rules::root), &root, &mut vec![], false, path);
    walk.errors
}

/// How schemas are interpreted when their defaults are validated.
fn dialect(release: Release) -> Dialect {
    Dialect { formats: Formats::All, release }
}

/// Compiles a schema whose root counts as an embedded resource.
fn resource(schema: &Value, release: Release) -> Node {
    let mut root = node(schema, dialect(release));
    root.embedded = true;
    root.below.embedded = true;
    root
}

/// Coerces the embedded resources in those defaults that [`validate`] checks.
pub(super) fn coerce_embedded(schema: &mut Value) {
    let has = |key: &str| schema_has(schema, &|n| n.get(key).is_some());
    if has("x-kubernetes-embedded-resource") && has("default") {
        let root = node(schema, dialect(Release::NEWEST));
        coerce_defaults(schema, &root, SchemaOf::Resource);
    }
}

fn coerce_defaults(schema: &mut Value, node: &Node, schema_of: SchemaOf) {
    if let Some(default) = schema.get_mut("default") {
        coerce::coerce_node(default, node, crate::Malformed::Refuse);
    }
    if let (Some(items), Some(inner)) = (schema.get_mut("items"), &node.items) {
        coerce_defaults(items, inner, inner.schema_of());
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flat_map(Map::iter_mut) {
        let meta = schema_of == SchemaOf::Resource && prune::is_meta(name);
        if let Some(inner) = node.field(name).filter(|_| !meta) {
            coerce_defaults(property, inner, inner.schema_of());
        }
    }
}

/// Whether a default in a structural schema has unknown fields.
pub(super) fn has_unpruned(schema: &Value) -> bool {
    if !schema_has(schema, &|n| n.get("default").is_some()) || !super::is_structural(schema) {
        return false;
    }
    unpruned(&resource(schema, Release::NEWEST))
}

fn unpruned(node: &Node) -> bool {
    if let Some(default) = &node.default {
        let mut pruned = default.clone();
        prune::prune_node(&mut pruned, node, node.schema_of());
        coerce::coerce_node(&mut pruned, node, crate::Malformed::Drop);
        if pruned != *default {
            return true;
        }
    }
    let fields = node.fields.iter().filter(|(name, _)| !(node.embedded && prune::is_meta(name))).map(|(_, n)| n);
    fields.chain(node.additional.node()).chain(node.items.as_deref()).any(unpruned)
}

struct DefaultsWalk<'o> {
    options: &'o Options,
    errors: Vec<FieldError>,
    /// The remaining cost budget for rules.
    budget: u64,
}

/// A step on the way from a resource to a default inside its metadata.
#[derive(Clone)]
enum Step {
    Field(String),
    Item,
}

impl DefaultsWalk<'_> {
    fn node<'n>(
        &mut self,
        node: &'n Node,
        rules: Option<RulesAt<'_>>,
        mut resource: &'n Node,
        steps: &mut Vec<Step>,
        mut inside_meta: bool,
        path: &FieldPath,
    ) {
        let mut steps_from_here = vec![];
        let mut steps = steps;
        // a default inside nested resources is validated as part of the innermost one
        if node.embedded {
            (resource, inside_meta) = (node, false);
            steps = &mut steps_from_here;
        }
        if let Some(default) = &node.default {
            if !inside_meta {
                self.refuse_unknown(default, node, path);
            }
            let before = self.errors.len();
            if inside_meta {
                self.inside_meta(default, node, resource, steps, path);
            } else {
                self.plain(default, node, path);
            }
            // rules are evaluated even if the default has unknown fields
            if let Some(rules) = rules.filter(|_| self.errors.len() == before) {
                let (errors, left) = running::validate_default(rules, default, &path.child("default"), self.budget);
                self.errors.extend(errors);
                self.budget = left;
            }
        }
        if let Some(inner) = node.items.as_ref().filter(|inner| inner.below.defaults) {
            steps.push(Step::Item);
            let rules = rules.and_then(RulesAt::items);
            self.node(inner, rules, resource, steps, inside_meta, &path.child("items"));
            steps.pop();
        }
        let place = path.child("properties");
        for (name, inner) in node.fields.iter().filter(|(_, inner)| inner.below.defaults) {
            let meta = inside_meta || node.embedded && prune::is_meta(name);
            steps.push(Step::Field(name.to_string()));
            let rules = rules.and_then(|rules| rules.field(name));
            self.node(inner, rules, resource, steps, meta, &place.key(name));
            steps.pop();
        }
    }

    fn refuse_unknown(&mut self, default: &Value, node: &Node, path: &FieldPath) {
        if !self.options.require_pruned_defaults {
            return;
        }
        let mut pruned = default.clone();
        prune::prune_node(&mut pruned, node, node.schema_of());
        if pruned != *default {
            self.errors.push(FieldError::invalid(&path.child("default"), default, "must not have unknown fields"));
        }
    }

    fn plain(&mut self, default: &Value, node: &Node, path: &FieldPath) {
        let place = path.child("default");
        let at = Path::Field(&Path::Root, place.as_str());
        if let Some(error) = coerce::coerce_at(&mut default.clone(), node, crate::Malformed::Refuse, &at) {
            self.errors.push(error);
            return;
        }
        let before = self.errors.len();
        embedded::validate(default, node, node.schema_of(), &at, self.options.release, &mut self.errors);
        if self.errors.len() == before {
            self.errors.extend(values::schema_errors(node, default, None, place.as_str(), self.options.release));
        }
    }

    /// Validates a default inside metadata as part of a whole resource.
    fn inside_meta(&mut self, default: &Value, node: &Node, resource: &Node, steps: &[Step], path: &FieldPath) {
        let place = path.child("default");
        let mut object = surround(default, steps);
        let refused = |problem: String| {
            let detail = format!("must result in valid metadata: {problem}");
            FieldError::invalid(&place, default, detail)
        };
        if let Some(error) = coerce::coerce_at(&mut object, resource, crate::Malformed::Refuse, &Path::Root) {
            self.errors.push(refused(error.to_string()));
            return;
        }
        let mut problems = vec![];
        embedded::validate(&object, resource, SchemaOf::Resource, &Path::Root, self.options.release, &mut problems);
        if !problems.is_empty() {
            self.errors.push(refused(machinery::status::aggregate(&problems)));
            return;
        }
        self.errors.extend(values::schema_errors(node, default, None, place.as_str(), self.options.release));
    }
}

fn surround(default: &Value, steps: &[Step]) -> Value {
    let mut value = default.clone();
    for step in steps.iter().rev() {
        value = match step {
            Step::Field(name) => Value::from([(name.as_str(), value)]),
            Step::Item => Value::Array(vec![value]),
        };
    }
    let mut map = if let Value::Object(map) = value { map } else { Map::new() };
    for (key, value) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
        if !map.contains_key(key) {
            map.insert(key, Value::from(value));
        }
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn defaults_are_tested_by_the_rules_at_and_below_them() {
        let rule = json!([{"rule": "self != 'bad'"}]);
        let text = json!({"type": "string", "x-kubernetes-validations": (rule)});
        let with_default = |schema: &Value, default: Value| {
            let mut schema = schema.clone();
            schema.set_at(&["default"], default);
            schema
        };
        let object = json!({"type": "object", "properties": {"t": (text.clone()), "b": {"type": "boolean"}}});
        let untyped = json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {
            "t": (with_default(&text, json!("bad")))
        }});
        let list = json!({"type": "array", "items": (with_default(&text, json!("bad")))});
        let bad = "failed rule: self != 'bad'";
        for (what, field, want) in [
            ("a good text", with_default(&text, json!("good")), vec![]),
            ("the node itself", with_default(&text, json!("bad")), vec!["properties[a].default"]),
            ("a node below", with_default(&object, json!({"t": "bad"})), vec!["properties[a].default.t"]),
            ("a node that the default does not have", with_default(&object, json!({"b": true})), vec![]),
            ("a field of a value without a type", untyped, vec!["properties[a].properties[t].default"]),
            ("an item", list, vec!["properties[a].items.default"]),
        ] {
            let schema = json!({"type": "object", "properties": {"a": (field)}});
            let errors = validate(&schema, &FieldPath::root(), &Options::for_create(Release::NEWEST));
            let found: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(found, want, "{what}: {errors:?}");
            assert!(errors.iter().all(|error| error.detail == bad || error.value.contains(bad)), "{what}: {errors:?}");
        }
    }
}
