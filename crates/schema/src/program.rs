//! The program of a schema: the OpenAPI document as a tree of nodes with sorted tables of fields, compiled patterns and
//! prepared checks.
//!
//! Invariants: the tree is immutable and shared; every list of fields is sorted by name; a node records whether it or a
//! node below has defaults, embedded resources or keyed lists, so that walks can skip the others. Compiling never
//! fails: what a valid definition cannot contain is ignored.

use std::sync::Arc;

use cel::SchemaOf;
use cel::regex::Regex;
use machinery::value::find_sorted;
use machinery::{Release, Text, Value};

use crate::format::Format;

#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// `spec.preserveUnknownFields` of old definitions: nothing is pruned, and nulls are kept.
    pub preserve_unknown_fields: bool,
    /// The paths of the scale subresource. Every write validates the values at these paths.
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
    /// Whether there is a schema and it is structural. Otherwise it is only used for plain validation.
    pub(crate) structural: bool,
    /// Whether a default lies in the metadata of an embedded resource.
    pub(crate) defaults_metadata: bool,
    pub(crate) rules: Option<cel::rules::Rules>,
}

/// The guarantees of a list about its items.
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
    /// The size of the default as JSON, in bytes.
    pub(crate) default_bytes: usize,
    pub(crate) checks: Option<Box<Checks>>,
    pub(crate) below: SubtreeFeatures,
}

/// Features that occur in a node or its descendants.
#[derive(Clone, Copy, Default)]
pub(crate) struct SubtreeFeatures {
    pub(crate) defaults: bool,
    pub(crate) embedded: bool,
    pub(crate) lists: bool,
}

/// The JSON types that a node allows, as bits. `text` lists them as errors print them.
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
    /// Stands for a type that JSON does not have, so that nothing matches it.
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

/// The numbers that a node with a single numeric type allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// The bounds of an integer without a format.
    Integer,
    Int32,
    Int64,
    Float,
}

/// The checks of values; nodes without checks have none of these.
#[derive(Default)]
pub(crate) struct Checks {
    /// The name of the format and, if it is a format of strings, the format itself.
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
        let i = find_sorted(&self.fields, name, |(name, _)| name)?;
        self.fields.get(i).map(|(_, node)| node)
    }

    /// The kind of value below the root that the node describes.
    pub(crate) fn schema_of(&self) -> SchemaOf {
        if self.embedded { SchemaOf::Resource } else { SchemaOf::Value }
    }

    /// As [`Node::field`], for names that are looked up in order. `next` is where the last name was found.
    pub(crate) fn field_after(&self, name: &str, next: &mut usize) -> Option<&Node> {
        if let Some((found, node)) = self.fields.get(*next)
            && found == name
        {
            *next += 1;
            return Some(node);
        }
        let i = find_sorted(&self.fields, name, |(name, _)| name)?;
        *next = i + 1;
        self.fields.get(i).map(|(_, node)| node)
    }

    /// The schemas of fields and items.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Node> {
        let fields = self.fields.iter().map(|(_, node)| node);
        fields.chain(self.additional.node()).chain(self.items.as_deref())
    }

    /// The schema of the field `name`: that of the property, or else that of additional properties.
    pub(crate) fn field_or_additional(&self, name: &str) -> Option<&Node> {
        self.field(name).or_else(|| self.additional.node())
    }
}

impl Schema {
    /// Whether the field at a path of properties has a default.
    pub fn has_default(&self, path: &[&str]) -> bool {
        let node = path.iter().try_fold(&self.program.root, |node, name| node.field(name));
        self.program.structural && node.is_some_and(|node| node.default.is_some())
    }

    /// Whether the schema is structural: pruning, defaulting and rules need that.
    pub fn is_structural(&self) -> bool {
        self.program.structural
    }
}
