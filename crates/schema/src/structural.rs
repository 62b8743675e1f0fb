//! Structural schemas: keywords that are not supported at all, and all violations of the structural rules.

use cel::regex::Regex;
use machinery::field::FieldErrors;
use machinery::{FieldError, FieldPath, Map, Value};

use crate::openapi::{additional, entries, flag, has_properties, is_leaf, items, list, text};

/// Whether a schema has a structural form and violates no structural rule.
pub fn is_structural(schema: &Value) -> bool {
    unsupported(schema).is_none() && violations(schema, &FieldPath::root()).is_empty()
}

/// Why a schema has no structural form.
pub(crate) fn unsupported(schema: &Value) -> Option<String> {
    schema.as_object()?;
    let keywords = [
        ("id", !text(schema, "id").is_empty()),
        ("schema", !text(schema, "$schema").is_empty()),
        ("$ref", !text(schema, "$ref").is_empty()),
        ("patternProperties", entries(schema, "patternProperties").next().is_some()),
        ("dependencies", entries(schema, "dependencies").next().is_some()),
        ("additionalItems", schema.get("additionalItems").is_some()),
        ("definitions", entries(schema, "definitions").next().is_some()),
    ];
    if let Some((name, _)) = keywords.iter().find(|(_, set)| *set) {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    let not = schema.get("not").into_iter();
    let branches = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key));
    if let Some(problem) = not.chain(branches).find_map(unsupported) {
        return Some(problem);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let problem = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
        return Some(problem.to_owned());
    }
    if !list(schema, "items").is_empty() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    if is_leaf(schema) {
        return None;
    }
    let properties = entries(schema, "properties").map(|(_, p)| p);
    items(schema).into_iter().chain(properties).chain(additional(schema)).find_map(unsupported)
}

/// All violations, sorted by text.
pub(crate) fn violations(schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut walk = StructuralWalk { errors: FieldErrors::default() };
    walk.node(schema, Level::Root, path);
    walk.completeness_of_branches(schema, Some(schema), path, path);
    let mut errors = walk.errors.into_list();
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

struct StructuralWalk {
    errors: FieldErrors,
}

/// Where `anyOf` may list the types integer and string, although branches must not have types otherwise.
#[derive(Clone, Copy, Default)]
struct IntOrString {
    /// In the node itself.
    any_of: bool,
    /// In the first branch of its `allOf`.
    first_all_of: bool,
}

impl StructuralWalk {
    fn node(&mut self, schema: &Value, level: Level, path: &FieldPath) {
        let kind = text(schema, "type");
        if kind == "array" && items(schema).is_none() {
            self.errors.require(&path.child("items"), "must be specified");
        }
        if let Some(items) = items(schema) {
            self.node(items, Level::Item, &path.child("items"));
        }
        if has_properties(schema) {
            let place = path.child("properties");
            entries(schema, "properties").for_each(|(name, inner)| self.node(inner, Level::Field, &place.key(name)));
        }
        if schema.get("additionalProperties").is_some() && level == Level::Root {
            self.errors.forbid(&path.child("additionalProperties"), "must not be used at the root");
        }
        if let Some(inner) = additional(schema) {
            self.node(inner, Level::Field, &path.child("additionalProperties"));
        }
        self.extensions(schema, path);
        let int_or_string =
            IntOrString { any_of: is_int_or_string(schema), first_all_of: first_is_int_or_string(schema) };
        self.validations(schema, int_or_string, path);
        self.types(schema, level, path);
        self.metadata(schema, level, path);
        let embedded = flag(schema, "x-kubernetes-embedded-resource");
        let preserving = flag(schema, "x-kubernetes-preserve-unknown-fields");
        if embedded && !preserving && !has_properties(schema) {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            self.errors.require(&path.child("properties"), detail);
        }
    }

    fn extensions(&mut self, schema: &Value, path: &FieldPath) {
        if !flag(schema, "x-kubernetes-int-or-string") {
            return;
        }
        for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, key) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                self.errors.invalid(&path.child(key), &Value::Bool(true), detail);
            }
        }
    }

    fn types(&mut self, schema: &Value, level: Level, path: &FieldPath) {
        let kind = text(schema, "type");
        let place = || path.child("type");
        let embedded = flag(schema, "x-kubernetes-embedded-resource");
        let free = flag(schema, "x-kubernetes-int-or-string") || flag(schema, "x-kubernetes-preserve-unknown-fields");
        if embedded && kind != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            if kind.is_empty() {
                self.errors.require(&place(), detail);
            } else {
                self.errors.invalid(&place(), &Value::from(kind), detail);
            }
        } else if kind.is_empty() && !free {
            self.errors.require(
                &place(),
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            );
        }
        if embedded && schema.get("additionalProperties").is_some() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            self.errors.forbid(&path.child("additionalProperties"), detail);
        }
        if level == Level::Root && !kind.is_empty() && kind != "object" {
            self.errors.invalid(&place(), &Value::from(kind), "must be object at the root");
        }
    }

    fn metadata(&mut self, schema: &Value, level: Level, path: &FieldPath) {
        let resource = level == Level::Root || flag(schema, "x-kubernetes-embedded-resource");
        for (name, inner) in entries(schema, "properties") {
            let place = || path.child("properties").key(name);
            let kind = text(inner, "type");
            match name {
                "kind" | "apiVersion" if resource && kind != "string" => {
                    self.errors.invalid(&place().child("type"), &Value::from(kind), "must be string");
                }
                "metadata" => {
                    if resource && kind != "object" {
                        self.errors.invalid(&place().child("type"), &Value::from(kind), "must be object");
                    }
                    if level == Level::Root && says_more_than_names(inner) {
                        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
                        self.errors.forbid(&place(), detail);
                    }
                }
                _ => {}
            }
        }
    }

    fn validations(&mut self, schema: &Value, int_or_string: IntOrString, path: &FieldPath) {
        if !is_leaf(schema) {
            self.branches(schema, int_or_string, path);
        }
        let pattern = text(schema, "pattern");
        if !pattern.is_empty()
            && let Err(error) = Regex::new(pattern)
        {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.errors.invalid(&path.child("pattern"), &Value::from(pattern), &detail);
        }
    }

    fn branches(&mut self, schema: &Value, int_or_string: IntOrString, path: &FieldPath) {
        if !int_or_string.any_of {
            for (i, branch) in list(schema, "anyOf").iter().enumerate() {
                self.nested(branch, IntOrString::default(), &path.child("anyOf").index(i));
            }
        }
        for (i, branch) in list(schema, "allOf").iter().enumerate() {
            let branch_is_int_or_string =
                IntOrString { any_of: int_or_string.first_all_of && i == 0, first_all_of: false };
            self.nested(branch, branch_is_int_or_string, &path.child("allOf").index(i));
        }
        for (i, branch) in list(schema, "oneOf").iter().enumerate() {
            self.nested(branch, IntOrString::default(), &path.child("oneOf").index(i));
        }
        if let Some(not) = schema.get("not") {
            self.nested(not, IntOrString::default(), &path.child("not"));
        }
    }

    /// Checks a schema within a junctor, where only value validations are allowed.
    fn nested(&mut self, schema: &Value, int_or_string: IntOrString, path: &FieldPath) {
        self.validations(schema, int_or_string, path);
        if let Some(items) = items(schema) {
            self.nested(items, IntOrString::default(), &path.child("items"));
        }
        for (name, inner) in entries(schema, "properties") {
            self.nested(inner, IntOrString::default(), &path.child("properties").key(name));
        }
        let some_text = |key: &str| !text(schema, key).is_empty();
        let some_list = |key: &str| !list(schema, key).is_empty();
        let given = |key: &str| schema.get(key).is_some();
        let additional = schema.get("additionalProperties").is_some_and(|a| a != &Value::Bool(false));
        let empty = "must be empty to be structural";
        let undefined = "must be undefined to be structural";
        let off = "must be false to be structural";
        let rules = [
            ("type", some_text("type"), empty),
            ("additionalProperties", additional, undefined),
            ("default", given("default"), undefined),
            ("title", some_text("title"), empty),
            ("description", some_text("description"), empty),
            ("nullable", flag(schema, "nullable"), off),
            ("x-kubernetes-preserve-unknown-fields", flag(schema, "x-kubernetes-preserve-unknown-fields"), off),
            ("x-kubernetes-embedded-resource", flag(schema, "x-kubernetes-embedded-resource"), off),
            ("x-kubernetes-int-or-string", flag(schema, "x-kubernetes-int-or-string"), off),
            ("x-kubernetes-list-map-keys", some_list("x-kubernetes-list-map-keys"), empty),
            ("x-kubernetes-list-type", given("x-kubernetes-list-type"), undefined),
            ("x-kubernetes-map-type", given("x-kubernetes-map-type"), undefined),
            ("x-kubernetes-validations", some_list("x-kubernetes-validations"), empty),
        ];
        for (key, broken, detail) in rules {
            if broken {
                self.errors.forbid(&path.child(key), detail);
            }
        }
        if schema.get("properties").is_some_and(|p| p.get("metadata").is_some()) {
            let place = path.child("properties").key("metadata");
            self.errors.forbid(&place, "must not be specified in a nested context");
        }
    }

    /// Everything that branches name must also be declared outside of the junctors. Upstream only checks the junctors
    /// of the root.
    fn completeness_of_branches(
        &mut self,
        from: &Value,
        skeleton: Option<&Value>,
        at: &FieldPath,
        from_at: &FieldPath,
    ) {
        if let Some(not) = from.get("not") {
            self.completeness(not, skeleton, at, &from_at.child("not"));
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for (i, branch) in list(from, key).iter().enumerate() {
                self.completeness(branch, skeleton, at, &from_at.child(key).index(i));
            }
        }
    }

    /// Everything that a branch names at `from_at` must be declared in `skeleton`, the schema at `at` outside of junctors.
    fn completeness(&mut self, from: &Value, skeleton: Option<&Value>, at: &FieldPath, from_at: &FieldPath) {
        let Some(skeleton) = skeleton else {
            return self.errors.require(at, format!("because it is defined in {from_at}"));
        };
        self.completeness_of_branches(from, Some(skeleton), at, from_at);
        if let Some(inner) = items(from) {
            self.completeness(inner, items(skeleton), &at.child("items"), &from_at.child("items"));
        }
        for (name, inner) in entries(from, "properties") {
            let (at, from_at) = (at.child("properties").key(name), from_at.child("properties").key(name));
            self.completeness(inner, crate::openapi::property(skeleton, name), &at, &from_at);
        }
    }
}

fn is_int_or_string(schema: &Value) -> bool {
    let is_only = |branch: &Value, kind: &str| {
        let mut keywords = branch.fields();
        text(branch, "type") == kind
            && keywords.all(|(keyword, value)| match keyword.as_str() {
                "type" => true,
                "additionalProperties" => *value == Value::Bool(false),
                "enum" | "allOf" | "anyOf" | "oneOf" => value.as_array().is_some_and(<[Value]>::is_empty),
                // any other value is decoded as no schema
                "items" => !matches!(value, Value::Object(_) | Value::Array(_)),
                "definitions" | "dependencies" | "patternProperties" => value.as_object().is_some_and(Map::is_empty),
                _ => false,
            })
    };
    matches!(list(schema, "anyOf"), [first, second] if is_only(first, "integer") && is_only(second, "string"))
}

fn first_is_int_or_string(schema: &Value) -> bool {
    list(schema, "allOf").first().is_some_and(is_int_or_string)
}

/// Whether the schema of the root's metadata restricts anything other than names.
fn says_more_than_names(metadata: &Value) -> bool {
    let Some(map) = metadata.as_object() else { return false };
    map.iter().any(|(key, value)| match key.as_str() {
        "type" | "default" => false,
        "definitions" | "dependencies" | "patternProperties" => value.as_object().is_none_or(|map| !map.is_empty()),
        "properties" => {
            value.as_object().is_some_and(|p| p.keys().any(|k| !matches!(k.as_str(), "name" | "generateName")))
        }
        "items" => value.as_object().is_some(),
        "enum" | "allOf" | "anyOf" | "oneOf" => value.as_array().is_none_or(|items| !items.is_empty()),
        _ => true,
    })
}
