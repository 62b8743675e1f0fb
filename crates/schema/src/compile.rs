//! Compiles schemas into programs.

use std::sync::Arc;

use cel::SchemaOf;
use cel::regex::Regex;
use cel::rules::Rules;
use machinery::{Release, Text, Value};

use crate::default::json_bytes;
use crate::format::Format;
use crate::metadata::Malformed;
use crate::program::{
    Additional, Checks, CompileOptions, ListKind, Node, Program, Range, Schema, SubtreeFeatures, Types,
};
use crate::structural::is_structural;
use crate::{coerce, prune};

impl Schema {
    /// Compiles the `openAPIV3Schema` of a version. A version without one has the schema `null`.
    ///
    /// The schema should be valid; invalid keywords are ignored.
    pub fn compile(openapi: &Value, options: &CompileOptions) -> Schema {
        let structural = openapi.as_object().is_some() && is_structural(openapi);
        let mut root = node(openapi, Dialect { formats: Formats::Enforced, release: options.release });
        if structural {
            prune_defaults(&mut root, SchemaOf::Resource);
        }
        let rules = structural.then(|| Rules::of(openapi, SchemaOf::Resource, options.release)).flatten();
        let defaults_metadata = structural && defaults_metadata(&root);
        Schema { program: Arc::new(Program { root, options: options.clone(), structural, defaults_metadata, rules }) }
    }
}

fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<Text> {
    value.as_array().unwrap_or_default().iter().filter_map(Value::as_str).map(Text::from).collect()
}

fn nodes(value: &Value, dialect: Dialect) -> Vec<Node> {
    value.as_array().unwrap_or_default().iter().map(|n| node(n, dialect)).collect()
}

fn boxed(value: &Value, dialect: Dialect) -> Option<Box<Node>> {
    value.as_object().map(|_| Box::new(node(value, dialect)))
}

/// Which formats a program knows. Formats that are not enforced still affect the types that defaults may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Formats {
    Enforced,
    All,
}

/// How keywords are interpreted.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    pub(crate) formats: Formats,
    pub(crate) release: Release,
}

/// Compiles a node and everything below it.
pub(crate) fn node(schema: &Value, dialect: Dialect) -> Node {
    let mut node = Node::default();
    let mut int_or_string = false;
    for (key, value) in schema.fields() {
        match key.as_str() {
            "x-kubernetes-int-or-string" => int_or_string = flag(value),
            key => node.keyword(key, value, dialect),
        }
    }
    node.resolve_format(dialect);
    // upstream ignores x-kubernetes-int-or-string when it validates defaults, in which all formats are enforced
    if int_or_string && dialect.formats == Formats::Enforced {
        node.types = Types { bits: Types::INTEGER | Types::STRING, text: "integer,string".into() };
    }
    node.below = below(&node);
    node
}

impl Node {
    fn keyword(&mut self, key: &str, value: &Value, dialect: Dialect) {
        match key {
            "type" => self.types = types(value),
            "nullable" => self.nullable = flag(value),
            "x-kubernetes-preserve-unknown-fields" => self.preserve = flag(value),
            "x-kubernetes-embedded-resource" => self.embedded = flag(value),
            "x-kubernetes-list-type" => {
                self.list = match value.as_str() {
                    Some("set") => ListKind::Set,
                    Some("map") => ListKind::Map,
                    _ => ListKind::Atomic,
                }
            }
            "x-kubernetes-list-map-keys" => self.list_keys = texts(value),
            "properties" => {
                let properties = value.fields();
                self.fields = properties.map(|(name, inner)| (name.clone(), node(inner, dialect))).collect();
            }
            // upstream drops `additionalProperties: false` when it validates defaults
            "additionalProperties" if *value == Value::Bool(false) && dialect.formats == Formats::All => {}
            "additionalProperties" => self.additional = additional(value, dialect),
            "items" => self.items = boxed(value, dialect),
            "default" => self.default = Some(value).filter(|default| !default.is_null()).cloned(),
            "allOf" | "anyOf" | "enum" | "exclusiveMaximum" | "exclusiveMinimum" | "format" | "maxItems"
            | "maxLength" | "maxProperties" | "maximum" | "minItems" | "minLength" | "minProperties" | "minimum"
            | "multipleOf" | "not" | "oneOf" | "pattern" | "required" | "uniqueItems" => {
                self.checks.get_or_insert_default().keyword(key, value, dialect);
            }
            _ => {}
        }
    }

    /// Decides what the format means for the type. A format that is not enforced counts as absent.
    fn resolve_format(&mut self, dialect: Dialect) {
        let Some((name, _)) = self.checks.as_ref().and_then(|checks| checks.format.clone()) else {
            self.range = range(&self.types, "", dialect.release);
            return;
        };
        self.range = range(&self.types, &name, dialect.release);
        let known = Format::named(&name);
        let is_enforced = dialect.formats == Formats::All || is_enforced(&self.types, &name, known, dialect.release);
        if let Some(checks) = &mut self.checks {
            checks.format = is_enforced.then_some((name, known));
        }
    }
}

/// Whether a format is enforced for a type. Since 1.36, each type has its own formats.
fn is_enforced(types: &Types, name: &str, known: Option<Format>, release: Release) -> bool {
    match types.bits {
        _ if release < Release::V1_36 => known.is_some(),
        0 | Types::STRING => known.is_some(),
        Types::INTEGER => matches!(name, "int32" | "int64"),
        Types::NUMBER => matches!(name, "float" | "double"),
        _ => false,
    }
}

/// The range of a node with a single numeric type, which is enforced since 1.36.
fn range(types: &Types, format: &str, release: Release) -> Option<Range> {
    let range = match (types.bits, format) {
        (Types::INTEGER, "int32") => Range::Int32,
        (Types::INTEGER, "int64") => Range::Int64,
        (Types::INTEGER, _) => Range::Integer,
        (Types::NUMBER, "float") => Range::Float,
        _ => return None,
    };
    (release >= Release::V1_36).then_some(range)
}

impl Checks {
    fn keyword(&mut self, key: &str, value: &Value, dialect: Dialect) {
        match key {
            "allOf" => self.all_of = nodes(value, dialect),
            "anyOf" => self.any_of = nodes(value, dialect),
            "enum" => self.enumeration = value.as_array().unwrap_or_default().to_vec(),
            "exclusiveMaximum" => self.exclusive_maximum = flag(value),
            "exclusiveMinimum" => self.exclusive_minimum = flag(value),
            "format" => self.format = value.as_str().filter(|name| !name.is_empty()).map(|name| (name.into(), None)),
            "maxItems" => self.max_items = value.as_int(),
            "maxLength" => self.max_length = value.as_int(),
            "maxProperties" => self.max_properties = value.as_int(),
            "maximum" => self.maximum = value.as_float(),
            "minItems" => self.min_items = value.as_int(),
            "minLength" => self.min_length = value.as_int(),
            "minProperties" => self.min_properties = value.as_int(),
            "minimum" => self.minimum = value.as_float(),
            "multipleOf" => self.multiple_of = value.as_float(),
            "not" => self.not = boxed(value, dialect),
            "oneOf" => self.one_of = nodes(value, dialect),
            "pattern" => self.pattern = value.as_str().filter(|pattern| !pattern.is_empty()).map(pattern),
            "required" => self.required = texts(value),
            "uniqueItems" => self.unique_items = flag(value),
            _ => {}
        }
    }
}

fn types(value: &Value) -> Types {
    match value.as_str().unwrap_or_default() {
        "" => Types::default(),
        name => Types { bits: Types::bit(name), text: name.into() },
    }
}

fn additional(value: &Value, dialect: Dialect) -> Additional {
    match value {
        Value::Bool(true) => Additional::Any,
        Value::Bool(false) => Additional::Forbidden,
        Value::Object(_) => Additional::Schema(Box::new(node(value, dialect))),
        _ => Additional::Absent,
    }
}

fn pattern(pattern: &str) -> (Text, Result<Regex, String>) {
    (Text::from(pattern), Regex::new(pattern).map_err(|error| error.to_string()))
}

fn below(node: &Node) -> SubtreeFeatures {
    let mut below = SubtreeFeatures {
        defaults: node.default.is_some(),
        embedded: node.embedded,
        lists: node.list != ListKind::Atomic,
    };
    for child in node.children() {
        below.defaults |= child.below.defaults;
        below.embedded |= child.below.embedded;
        below.lists |= child.below.lists;
    }
    below
}

/// Whether a node, or one below it, is an embedded resource with a default inside its metadata.
fn defaults_metadata(node: &Node) -> bool {
    let of_metadata = || node.field("metadata").is_some_and(|metadata| metadata.below.defaults);
    let is_in_own_metadata = || node.embedded && of_metadata();
    node.below.embedded && node.below.defaults && (is_in_own_metadata() || node.children().any(defaults_metadata))
}

/// Prunes defaults. Old definitions may have stored them with unknown fields, which are not served.
fn prune_defaults(node: &mut Node, schema_of: SchemaOf) {
    if !node.below.defaults {
        return;
    }
    if let Some(mut default) = node.default.take() {
        prune::prune_node(&mut default, node, schema_of);
        coerce::coerce_node(&mut default, node, Malformed::Drop);
        node.default_bytes = json_bytes(&default);
        node.default = Some(default);
    }
    for (name, child) in &mut node.fields {
        if !(schema_of == SchemaOf::Resource && prune::is_meta(name)) {
            prune_defaults(child, child.schema_of());
        }
    }
    if let Additional::Schema(child) = &mut node.additional {
        prune_defaults(child, child.schema_of());
    }
    if let Some(child) = &mut node.items {
        prune_defaults(child, child.schema_of());
    }
}
