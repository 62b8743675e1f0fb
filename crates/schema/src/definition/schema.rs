//! The rules for every node of a schema. They call the structural rules and those for defaults and CEL rules, in
//! upstream's order.

use std::collections::HashSet;

use cel::rules::{Notation, resolve_field_path};
use machinery::field::{FieldErrorKind, FieldErrors};
use machinery::types::internal_json;
use machinery::{FieldError, FieldPath, Value};

use super::openapi::{entries, flag, has_properties, is_leaf, items, list, property, text};
use super::options::Options;
use super::{defaults, structural};
use crate::at::At;

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const REASONS: &[&str] = &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The input of one validation of a CRD.
pub(super) struct ValidationContext<'a> {
    pub(super) options: &'a Options,
    /// Whether schemas must be structural.
    pub(super) structural: bool,
}

pub(super) fn has_unknown_type(schema: &Value) -> bool {
    !matches!(text(schema, "type"), "" | "array" | "boolean" | "integer" | "number" | "object" | "string")
}

/// The version whose schema is validated, or the first of those that share one.
#[derive(Clone, Copy)]
pub(super) struct SchemaVersion<'a> {
    pub(super) name: &'a str,
    /// Whether the version has the status subresource.
    pub(super) has_status: bool,
}

/// Validates the `{openAPIV3Schema}` of a version.
pub(super) fn validate_version(validation: At, version: SchemaVersion<'_>, context: &ValidationContext<'_>) {
    let Some(at) = validation.field_if_given("openAPIV3Schema") else { return };
    let (schema, place, mut errors) = (at.value, at.path(), vec![]);
    if version.has_status {
        root_with_status(schema, &place, &mut errors);
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(&place.child("nullable"), "nullable cannot be true at the root"));
    }
    let mut unstructured = None;
    let mut with_rules = false;
    if context.structural {
        unstructured = structural::unsupported(schema);
        if unstructured.is_none() {
            let mut violations = structural::violations(schema, &place);
            if violations.is_empty() {
                violations = defaults::validate(schema, &place, context.options);
            }
            with_rules = violations.is_empty();
            errors.append(&mut violations);
        }
    }
    let mut walk = SchemaWalk { options: context.options, errors: FieldErrors::default() };
    let defaults = match context.options.allow_defaults {
        true => Ok(()),
        false => Err("(cannot set default values in apiextensions.k8s.io/v1beta1 CRDs, must use \
                      apiextensions.k8s.io/v1)"
            .to_owned()),
    };
    walk.node(schema, NodeScope { root: true, defaults, inside_meta: false }, &place);
    let mut found = walk.errors.into_list();
    let broken: Vec<String> = found.iter().map(|error| broken_node(error).to_owned()).collect();
    errors.append(&mut found);
    if errors.is_empty()
        && let Some(problem) = unstructured
    {
        errors.push(FieldError::invalid(&place, &Value::from(""), problem));
    }
    at.extend(errors);
    if with_rules {
        at.extend(super::rules::validate(schema, version.name, &broken, context.options, &place));
    }
}

/// The detail of the error of a node that has both `properties` and `additionalProperties`.
const MUTUAL: &str = "additionalProperties and properties are mutual exclusive";

/// The field whose schema an error makes invalid.
fn broken_node(error: &FieldError) -> &str {
    // with this error, the schema of additional properties may itself be valid
    let node = error.field.strip_suffix(".additionalProperties").filter(|_| error.detail == MUTUAL);
    node.unwrap_or(&error.field)
}

/// If there is a status, the root of a schema may have these keywords only. Only `id`, `$schema` and `$ref` come before `type` in
/// upstream's struct, which reports the first violation in its order.
const ALLOWED_WITH_STATUS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

fn root_with_status(schema: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let is_allowed = |name: &str| ALLOWED_WITH_STATUS.contains(&name);
    let kind = schema.get("type").filter(|kind| kind.as_str() != Some("object"));
    let is_first_forbidden = ["id", "$schema", "$ref"].iter().any(|name| schema.get(name).is_some());
    if let Some(kind) = kind.filter(|_| !is_first_forbidden) {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    } else if !schema.fields().all(|(name, _)| is_allowed(name)) {
        let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum \
                      MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items \
                      Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at \
                      the root of the schema if the status subresource is enabled";
        errors.push(shown(path, internal_json(schema, "apiextensions.JSONSchemaProps"), detail));
    }
}

/// An `Invalid value` error whose value is already rendered.
fn shown(path: &FieldPath, value: String, detail: &str) -> FieldError {
    let (kind, field) = (FieldErrorKind::Invalid, path.as_str().to_owned());
    FieldError { kind, field, value, detail: detail.to_owned() }
}

/// Settings that a node inherits from its ancestors.
#[derive(Clone)]
struct NodeScope {
    root: bool,
    /// Whether defaults are allowed here; the error says why not.
    defaults: Result<(), String>,
    inside_meta: bool,
}

impl NodeScope {
    fn inner(&self) -> NodeScope {
        NodeScope { root: false, ..self.clone() }
    }
}

struct SchemaWalk<'a> {
    options: &'a Options,
    errors: FieldErrors,
}

impl SchemaWalk<'_> {
    fn node(&mut self, schema: &Value, scope: NodeScope, path: &FieldPath) {
        if schema.as_object().is_none() {
            return;
        }
        self.keywords(schema, &scope, path);
        if !is_leaf(schema) {
            self.children(schema, &scope, path);
        }
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let place = path.child("x-kubernetes-preserve-unknown-fields");
            self.errors.invalid(&place, &Value::Bool(false), "must be true or undefined");
        }
        self.map_type(schema, path);
        self.list_type(schema, path);
        if text(schema, "x-kubernetes-list-type") == "map" {
            self.list_map(schema, path);
        }
        if self.options.require_map_list_keys {
            map_list_rules(schema, path, &mut self.errors);
        }
        for (i, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
            self.rule(schema, rule, &path.child("x-kubernetes-validations").index(i));
        }
    }

    fn keywords(&mut self, schema: &Value, scope: &NodeScope, path: &FieldPath) {
        let kind = text(schema, "type");
        if self.options.require_valid_types && !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(&path.child("type"), &Value::from(kind), TYPES));
        }
        if let (Some(_), Err(reason)) = (schema.get("default"), &scope.defaults) {
            self.errors.forbid(&path.child("default"), format!("must not be set {reason}"));
        }
        let unsupported = [
            ("id", !text(schema, "id").is_empty()),
            ("additionalItems", schema.get("additionalItems").is_some()),
            ("patternProperties", entries(schema, "patternProperties").next().is_some()),
            ("definitions", entries(schema, "definitions").next().is_some()),
            ("dependencies", schema.get("dependencies").is_some()),
            ("$ref", schema.get("$ref").is_some()),
        ];
        for (key, set) in unsupported {
            if set {
                self.errors.forbid(&path.child(key), format!("{key} is not supported"));
            }
        }
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.errors.forbid(&path.child("type"), detail);
        }
        if !list(schema, "items").is_empty() {
            self.errors.forbid(&path.child("items"), "items must be a schema object and not an array");
        }
        if scope.inside_meta && flag(schema, "x-kubernetes-embedded-resource") {
            let detail = "must not be used inside of resource meta";
            self.errors.forbid(&path.child("x-kubernetes-embedded-resource"), detail);
        }
        if flag(schema, "uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.forbid(&path.child("uniqueItems"), detail);
        }
    }

    fn children(&mut self, schema: &Value, scope: &NodeScope, path: &FieldPath) {
        if let Some(any) = schema.get("additionalProperties") {
            if has_properties(schema) && any != &Value::Bool(true) {
                self.errors.forbid(&path.child("additionalProperties"), MUTUAL);
            }
            let mut inner = scope.inner();
            if scope.inside_meta {
                inner.defaults = Err("inside additionalProperties applying to object metadata".to_owned());
            }
            self.node(any, inner, &path.child("additionalProperties"));
        }
        let place = if has_properties(schema) { path.child("properties") } else { FieldPath::root() };
        for (name, property) in entries(schema, "properties") {
            let mut inner = scope.inner();
            let resource = scope.root || flag(schema, "x-kubernetes-embedded-resource");
            if resource && crate::prune::is_meta(name) {
                inner.inside_meta = true;
                if scope.root {
                    inner.defaults = Err(format!("in top-level {name}"));
                }
            }
            self.node(property, inner, &place.key(name));
        }
        if let Some(not) = schema.get("not") {
            self.node(not, scope.inner(), &path.child("not"));
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for (i, branch) in list(schema, key).iter().enumerate() {
                self.node(branch, scope.inner(), &path.child(key).index(i));
            }
        }
        for (name, inner) in entries(schema, "definitions") {
            self.node(inner, scope.inner(), &path.child("definitions").key(name));
        }
        if let Some(items) = items(schema) {
            self.node(items, scope.inner(), &path.child("items"));
        }
        for (i, item) in list(schema, "items").iter().enumerate() {
            self.node(item, scope.inner(), &path.child("items").index(i));
        }
        for (name, inner) in entries(schema, "dependencies") {
            self.node(inner, scope.inner(), &path.child("dependencies").key(name));
        }
    }

    /// Reports an extension of a node that does not have the type `want`. Returns whether the node has it.
    fn needs_type(&mut self, schema: &Value, want: &str, extension: &str, path: &FieldPath) -> bool {
        let kind = text(schema, "type");
        if kind == want {
            return true;
        }
        let detail = format!("must be {want} if {extension} is specified");
        if kind.is_empty() {
            self.errors.require(&path.child("type"), &detail);
        } else {
            self.errors.invalid(&path.child("type"), &Value::from(kind), &detail);
        }
        false
    }

    fn map_type(&mut self, schema: &Value, path: &FieldPath) {
        const KEY: &str = "x-kubernetes-map-type";
        let Some(map_type) = schema.get(KEY) else { return };
        self.needs_type(schema, "object", KEY, path);
        if !matches!(text(schema, KEY), "atomic" | "granular") {
            self.errors.push(FieldError::not_supported(&path.child(KEY), map_type, &["atomic", "granular"]));
        }
    }

    fn list_type(&mut self, schema: &Value, path: &FieldPath) {
        const KEY: &str = "x-kubernetes-list-type";
        let list_type = text(schema, KEY);
        if let Some(value) = schema.get(KEY) {
            if self.needs_type(schema, "array", KEY, path)
                && self.options.require_atomic_sets
                && has_non_atomic_set(schema)
            {
                self.non_atomic_set(schema, path);
            }
            if !matches!(list_type, "atomic" | "set" | "map") {
                self.errors.push(FieldError::not_supported(&path.child(KEY), value, &["atomic", "set", "map"]));
            }
        }
        if !list(schema, "x-kubernetes-list-map-keys").is_empty() && list_type != "map" {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match schema.get(KEY) {
                None => self.errors.require(&path.child(KEY), detail),
                Some(value) => self.errors.invalid(&path.child(KEY), value, detail),
            }
        }
    }

    /// Reports sets whose items are lists or objects that are not atomic. For both, upstream shows the list type of the
    /// items.
    fn non_atomic_set(&mut self, schema: &Value, path: &FieldPath) {
        let Some(items) = items(schema) else { return };
        let key = if text(items, "type") == "array" { "x-kubernetes-list-type" } else { "x-kubernetes-map-type" };
        let shown = items.get("x-kubernetes-list-type").cloned().unwrap_or_default();
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        self.errors.invalid(&path.child("items").child(key), &shown, detail);
    }

    fn list_map(&mut self, schema: &Value, path: &FieldPath) {
        const KEYS: &str = "x-kubernetes-list-map-keys";
        let keys = list(schema, KEYS);
        if keys.is_empty() {
            self.errors.require(&path.child(KEYS), "must not be empty if x-kubernetes-list-type is map");
        }
        let item = match (schema.get("items"), items(schema)) {
            (None, _) => {
                return self
                    .errors
                    .require(&path.child("items"), "must have a schema if x-kubernetes-list-type is map");
            }
            (Some(other), None) => {
                let detail = "must only have a single schema if x-kubernetes-list-type is map";
                return self.errors.push(shown(
                    &path.child("items"),
                    internal_json(other, "apiextensions.JSONSchemaPropsOrArray"),
                    detail,
                ));
            }
            (_, Some(item)) => item,
        };
        let kind = text(item, "type");
        if kind != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            return self.errors.invalid(&path.child("items").child("type"), &Value::from(kind), detail);
        }
        let all = schema.get(KEYS).cloned().unwrap_or_default();
        let mut known = HashSet::new();
        for name in keys.iter().map(|key| key.as_str().unwrap_or_default()) {
            // most of these errors show all keys, so that many would take too much memory
            if self.errors.is_full() {
                return;
            }
            match property(item, name).map(|p| text(p, "type")) {
                None => self.errors.invalid(&path.child(KEYS), &all, "entries must all be names of item properties"),
                Some("array" | "object") => {
                    let place = path.child("items").child("properties").key(name).child("type");
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.errors.invalid(&place, &Value::from(kind), detail);
                }
                Some(_) => {}
            }
            if !known.insert(name) {
                self.errors.invalid(&path.child(KEYS), &all, "must not contain duplicate entries");
            }
        }
    }

    fn rule(&mut self, schema: &Value, rule: &Value, path: &FieldPath) {
        let field = |key: &str| rule.get(key).cloned().unwrap_or_else(|| Value::from(""));
        let breaks = |text: &str| text.contains(['\n', '\r']);
        let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
        if source.is_empty() {
            self.errors.require(&path.child("rule"), "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            self.errors.invalid(&path.child("message"), &field("message"), "must be non-empty if specified");
        } else if breaks(message.trim()) {
            self.errors.invalid(&path.child("message"), &field("message"), "must not contain line breaks");
        } else if breaks(source) && message.trim().is_empty() {
            self.errors.require(&path.child("message"), "message must be specified if rule contains line breaks");
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            self.errors.require(&path.child("messageExpression"), "messageExpression must be non-empty if specified");
        }
        if let Some(reason) = rule.get("reason").filter(|r| !REASONS.contains(&r.as_str().unwrap_or_default())) {
            self.errors.push(FieldError::not_supported(&path.child("reason"), reason, REASONS));
        }
        let field_path = text(rule, "fieldPath");
        let place = || path.child("fieldPath");
        if !field_path.is_empty() && field_path.trim().is_empty() {
            self.errors.invalid(&place(), &field("fieldPath"), "must be non-empty if specified");
        }
        if breaks(field_path) {
            self.errors.invalid(&place(), &field("fieldPath"), "must not contain line breaks");
        }
        let resolvable = || {
            structural::unsupported(schema).is_some()
                || resolve_field_path(field_path, schema, Notation::Brackets).is_ok()
        };
        if !field_path.is_empty() && !resolvable() {
            self.errors.invalid(&place(), &field("fieldPath"), "must be a valid path");
        }
    }
}

/// Items of sets and maps must not be nullable. Keys of maps must not be nullable either, and must be required or have
/// a default.
fn map_list_rules(schema: &Value, path: &FieldPath, errors: &mut FieldErrors) {
    let list_type = text(schema, "x-kubernetes-list-type");
    let Some(item) = items(schema).filter(|_| matches!(list_type, "set" | "map")) else { return };
    let place = path.child("items");
    if flag(item, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.forbid(&place.child("nullable"), detail);
    }
    if list_type != "map" {
        return;
    }
    let required: HashSet<&str> = list(item, "required").iter().filter_map(Value::as_str).collect();
    for name in list(schema, "x-kubernetes-list-map-keys").iter().map(|key| key.as_str().unwrap_or_default()) {
        let Some(property) = property(item, name) else { continue };
        let place = place.child("properties").key(name);
        if !required.contains(name) && property.get("default").is_none() {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.require(&place.child("default"), detail);
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.forbid(&place.child("nullable"), detail);
        }
    }
}

pub(super) fn breaks_map_list_rules(schema: &Value) -> bool {
    let mut errors = FieldErrors::default();
    map_list_rules(schema, &FieldPath::root(), &mut errors);
    !errors.is_empty()
}

/// Whether the schema is a set whose items are lists or objects that are not compared as a whole.
pub(super) fn has_non_atomic_set(schema: &Value) -> bool {
    if text(schema, "x-kubernetes-list-type") != "set" {
        return false;
    }
    let Some(items) = items(schema) else { return false };
    match text(items, "type") {
        "array" => items.get("x-kubernetes-list-type").is_some_and(|t| t.as_str() != Some("atomic")),
        "object" => text(items, "x-kubernetes-map-type") != "atomic",
        _ => false,
    }
}
