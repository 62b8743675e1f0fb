//! The program of one schema: the OpenAPI document turned into a tree of nodes with sorted field tables, compiled
//! patterns and prepared checks.
//!
//! Invariants: the tree is immutable and shared; every list of fields is sorted by name; a node says whether anything
//! below it has defaults, embedded resources or keyed lists, so that walks skip what they need not see. Compiling never
//! fails: what a valid definition cannot contain is ignored.

use std::sync::Arc;

use cel::regex::Regex;
use machinery::{Map, Release, Text, Value};

use crate::format::Format;

/// How a schema is to be run.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// `spec.preserveUnknownFields` of old definitions: nothing is pruned, nulls stay.
    pub preserve_unknown_fields: bool,
    /// The paths of the scale subresource, whose values are validated with every write.
    pub scale: Option<ScalePaths>,
    /// The release that decides which formats and ranges of numbers are enforced, and how errors are worded.
    pub release: Release,
}

/// `subresources.scale` of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: Text,
    pub status_replicas: Text,
    pub label_selector: Option<Text>,
}

/// The compiled schema of one version of a definition. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    pub(crate) program: Arc<Program>,
}

pub(crate) struct Program {
    pub(crate) root: Node,
    pub(crate) options: CompileOptions,
    /// There is a schema, and it is structural: only then is anything but plain validation done with it.
    pub(crate) structural: bool,
    /// Some default lies in the metadata of an embedded resource.
    pub(crate) defaults_metadata: bool,
    pub(crate) rules: Option<crate::validate::rules::Rules>,
}

/// What a list guarantees about its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map,
}

/// `additionalProperties`.
#[derive(Default)]
pub(crate) enum Additional {
    #[default]
    Absent,
    Any,
    Forbidden,
    Schema(Box<Node>),
}

impl Additional {
    pub(crate) fn node(&self) -> Option<&Node> {
        if let Additional::Schema(node) = self { Some(node) } else { None }
    }
}

/// One node of the schema.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) types: Types,
    pub(crate) range: Option<Range>,
    pub(crate) nullable: bool,
    pub(crate) preserve: bool,
    pub(crate) embedded: bool,
    pub(crate) list: ListKind,
    pub(crate) list_keys: Vec<Text>,
    pub(crate) fields: Vec<(Text, Node)>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) default: Option<Value>,
    /// Bytes of the default as JSON.
    pub(crate) default_bytes: usize,
    pub(crate) checks: Option<Box<Checks>>,
    pub(crate) below: Below,
}

/// What stands in a node or below it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Below {
    pub(crate) defaults: bool,
    pub(crate) embedded: bool,
    pub(crate) lists: bool,
}

/// The JSON types that a node allows, as bits; `text` lists them as errors print them.
#[derive(Clone, Default)]
pub(crate) struct Types {
    pub(crate) bits: u8,
    pub(crate) text: Text,
}

impl Types {
    pub(crate) const STRING: u8 = 1;
    pub(crate) const INTEGER: u8 = 2;
    pub(crate) const NUMBER: u8 = 4;
    pub(crate) const BOOLEAN: u8 = 8;
    pub(crate) const ARRAY: u8 = 16;
    pub(crate) const OBJECT: u8 = 32;
    pub(crate) const NULL: u8 = 64;
    /// A type that JSON doesn't have; nothing matches it.
    pub(crate) const UNKNOWN: u8 = 128;

    pub(crate) fn bit(name: &str) -> u8 {
        match name {
            "string" => Self::STRING,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "boolean" => Self::BOOLEAN,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            "null" => Self::NULL,
            _ => Self::UNKNOWN,
        }
    }

    pub(crate) fn has(&self, bits: u8) -> bool {
        self.bits & bits != 0
    }
}

/// The value checks of a node that has any.
#[derive(Default)]
pub(crate) struct Checks {
    /// The name, and the format of strings, if it is one.
    pub(crate) format: Option<(Text, Option<Format>)>,
    pub(crate) enumeration: Vec<Value>,
    pub(crate) maximum: Option<f64>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) pattern: Option<(Text, Result<Regex, String>)>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) required: Vec<Text>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

impl Node {
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        let i = self.fields.binary_search_by(|(n, _)| n.as_str().cmp(name)).ok()?;
        self.fields.get(i).map(|(_, node)| node)
    }

    /// As [`Node::field`], for names that come in order: `next` is where the last one was found.
    pub(crate) fn field_after(&self, name: &str, next: &mut usize) -> Option<&Node> {
        if let Some((found, node)) = self.fields.get(*next)
            && found == name
        {
            *next += 1;
            return Some(node);
        }
        let i = self.fields.binary_search_by(|(n, _)| n.as_str().cmp(name)).ok()?;
        *next = i + 1;
        self.fields.get(i).map(|(_, node)| node)
    }

    /// The schema of the member `name`: its property, or else that of additional properties.
    pub(crate) fn member(&self, name: &str) -> Option<&Node> {
        self.field(name).or_else(|| self.additional.node())
    }
}

impl Schema {
    /// Compiles the `openAPIV3Schema` of a version. A version without one has the schema `null`.
    ///
    /// Meant for schemas that passed validation; in others what cannot be understood is ignored.
    pub fn compile(openapi: &Value, options: &CompileOptions) -> Schema {
        let structural = openapi.as_object().is_some() && crate::definition::is_structural(openapi);
        let mut root = node(openapi, Dialect { formats: Formats::Enforced, release: options.release });
        if structural {
            prune_defaults(&mut root, true);
        }
        let rules = structural.then(|| crate::validate::rules::Rules::compile(openapi, options.release)).flatten();
        let defaults_metadata = structural && defaults_metadata(&root);
        Schema { program: Arc::new(Program { root, options: options.clone(), structural, defaults_metadata, rules }) }
    }

    /// Whether the member at a path of properties has a default.
    pub fn has_default(&self, path: &[&str]) -> bool {
        let node = path.iter().try_fold(&self.program.root, |node, name| node.field(name));
        self.program.structural && node.is_some_and(|node| node.default.is_some())
    }

    /// Whether the schema is structural: pruning, defaulting and rules need that.
    pub fn is_structural(&self) -> bool {
        self.program.structural
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

/// Which formats a program knows. Those that are not enforced still count for the types of defaults.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Formats {
    Enforced,
    All,
}

/// How keywords are understood.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    pub(crate) formats: Formats,
    pub(crate) release: Release,
}

/// The numbers that a node with a single numeric type allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// Of an integer without a format.
    Integer,
    Int32,
    Int64,
    Float,
}

/// Compiles one node and all below it.
pub(crate) fn node(schema: &Value, dialect: Dialect) -> Node {
    let mut node = Node::default();
    let mut int_or_string = false;
    for (key, value) in schema.as_object().into_iter().flat_map(Map::iter) {
        match key.as_str() {
            "x-kubernetes-int-or-string" => int_or_string = flag(value),
            key => node.keyword(key, value, dialect),
        }
    }
    node.resolve_format(dialect);
    // upstream forgets about integers and strings when it validates defaults, for which all formats count
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
                let properties = value.as_object().into_iter().flat_map(Map::iter);
                self.fields = properties.map(|(name, inner)| (name.clone(), node(inner, dialect))).collect();
            }
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
}

impl Node {
    /// Decides what the format means for the type; formats that are not enforced are as if absent.
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

/// Whether a format counts for a type: since 1.36 each type has its own formats.
fn is_enforced(types: &Types, name: &str, known: Option<Format>, release: Release) -> bool {
    match types.bits {
        _ if release < Release::V1_36 => known.is_some(),
        0 | Types::STRING => known.is_some(),
        Types::INTEGER => matches!(name, "int32" | "int64"),
        Types::NUMBER => matches!(name, "float" | "double"),
        _ => false,
    }
}

/// The range of a single numeric type, enforced since 1.36.
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

fn below(node: &Node) -> Below {
    let mut below =
        Below { defaults: node.default.is_some(), embedded: node.embedded, lists: node.list != ListKind::Atomic };
    let children = node.fields.iter().map(|(_, n)| n).chain(node.additional.node()).chain(node.items.as_deref());
    for child in children {
        below.defaults |= child.below.defaults;
        below.embedded |= child.below.embedded;
        below.lists |= child.below.lists;
    }
    below
}

/// Whether a default lies in the metadata of a resource that is embedded at `node` or below it.
fn defaults_metadata(node: &Node) -> bool {
    let of_metadata = || node.field("metadata").is_some_and(|metadata| metadata.below.defaults);
    let children = || node.fields.iter().map(|(_, n)| n).chain(node.additional.node()).chain(node.items.as_deref());
    node.below.embedded && node.below.defaults && (node.embedded && of_metadata() || children().any(defaults_metadata))
}

/// Defaults are served pruned, even if old definitions store them with unknown fields.
fn prune_defaults(node: &mut Node, root: bool) {
    if !node.below.defaults {
        return;
    }
    if let Some(mut default) = node.default.take() {
        crate::prune::prune_node(&mut default, node, root);
        crate::coerce::coerce_node(&mut default, node, crate::Malformed::Drop);
        node.default_bytes = crate::default::json_bytes(&default);
        node.default = Some(default);
    }
    let meta = root || node.embedded;
    for (name, child) in &mut node.fields {
        if !(meta && crate::prune::is_meta(name)) {
            prune_defaults(child, false);
        }
    }
    if let Additional::Schema(child) = &mut node.additional {
        prune_defaults(child, false);
    }
    if let Some(child) = &mut node.items {
        prune_defaults(child, false);
    }
}
