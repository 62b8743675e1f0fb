//! Declarations, derived from schemas: the type of each node, how its JSON becomes a value, and the sizes that bound costs.
//!
//! Each node of an OpenAPI v3 schema becomes a [`Decl`] when its CRD is compiled. Types, sizes and escaped names are those
//! that kube-apiserver derives from the schema.

pub mod types;

use crate::limits::NAME_LENGTH_MAX;
pub(crate) use crate::limits::REQUEST_BYTES_MAX;
use crate::parser::RESERVED;
use machinery::{Text, Value};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use types::Type;

/// A node of a schema, as expressions use it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Decl {
    /// The content of the node.
    pub kind: DeclKind,
    /// Whether the schema says `nullable: true`.
    pub nullable: bool,
    /// The `type` of the schema, as messages print it.
    pub schema_type: Text,
    /// The type in the checker; `None` if expressions cannot use the node.
    pub exposed: Option<Type>,
    /// The largest size in code points, bytes or items; 0 for a type that has no size.
    pub elements_max: u64,
    /// The smallest size of a value in JSON, in bytes.
    pub bytes_min: i64,
}

/// The type of a value of [`DeclKind::Entries`] that an expression selects as a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// Its size, as of any other value of the map.
    Sized,
    /// Nothing.
    Unsized,
}

/// The content of a node.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeclKind {
    /// An integer or a string (`x-kubernetes-int-or-string`).
    IntOrString,
    /// `boolean`.
    Bool,
    /// `integer`.
    Int,
    /// `number`.
    Double,
    /// `string` without a format that CEL knows.
    String,
    /// `string` with the format `byte`: base64.
    Bytes,
    /// `string` with the format `date`.
    Date,
    /// `string` with the format `date-time`.
    DateTime,
    /// `string` with the format `duration`.
    Duration,
    /// `array`.
    List {
        /// The items; none if their type is not exposed.
        item: Option<Arc<Decl>>,
        /// How lists are compared and concatenated.
        kind: ListKind,
    },
    /// `object` with `additionalProperties`.
    Map(Arc<Decl>),
    /// A map of a variable that no schema describes, whose keys have a known size.
    Entries {
        /// The keys.
        key: Arc<Decl>,
        /// The values.
        value: Arc<Decl>,
        /// The type of a value that is selected as a field.
        selected: Selected,
    },
    /// `object` with `properties`.
    Object(Arc<ObjectType>),
    /// Data of unknown shape.
    Preserved,
    /// A schema without a type: using a value is an error.
    Untyped,
    /// JSON without a schema: the type of a value follows from the JSON.
    Json,
}

/// How lists are compared and concatenated (`x-kubernetes-list-type`).
#[derive(Debug, PartialEq)]
pub enum ListKind {
    /// Item by item.
    Atomic,
    /// As sets.
    Set(Members),
    /// By the values of these keys.
    Map(Vec<Text>),
}

/// The elements of a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Members {
    /// Decoded JSON, in which an integer differs from the same number as a float. Until Kubernetes 1.36.
    Decoded,
    /// Values of the type that the schema declares.
    Typed,
}

/// The fields of an object node.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObjectType {
    /// The path of the node from the root of the schema: `.spec.list.@idx`.
    pub path: Text,
    /// Sorted by name.
    pub fields: Vec<DeclField>,
    /// Whether the schema has properties; otherwise expressions cannot select fields.
    pub has_properties: bool,
}

/// A field of an object.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeclField {
    /// The name in objects.
    pub name: Text,
    /// The name in expressions; `None` if the name cannot be escaped.
    pub escaped: Option<Text>,
    /// The declaration of the value.
    pub decl: Arc<Decl>,
}

impl ObjectType {
    /// The field with this escaped name.
    pub fn escaped(&self, name: &str) -> Option<&DeclField> {
        if let Some(field) = self.named(name)
            && field.escaped.as_deref() == Some(name)
        {
            return Some(field);
        }
        self.fields.iter().find(|field| field.escaped.as_deref() == Some(name))
    }

    /// The field that a rule selects by `name`; reserved words may be used without escaping.
    pub fn selected(&self, name: &str) -> Option<&DeclField> {
        self.escaped(name).or_else(|| if RESERVED.contains(&name) { self.named(name) } else { None })
    }

    /// The field for a key at run time, which may be escaped.
    pub fn keyed(&self, key: &str) -> Option<&DeclField> {
        self.named(&unescape(key)?)
    }

    /// The field with this name in objects.
    pub fn named(&self, name: &str) -> Option<&DeclField> {
        if self.fields.len() <= 8 {
            return self.fields.iter().find(|field| field.name == name);
        }
        let at = self.fields.binary_search_by(|field| field.name.as_str().cmp(name)).ok()?;
        self.fields.get(at)
    }

    /// A type that is not a node of a schema, from names and types of fields. Of fields with equal names, the last one counts.
    pub fn of_types(name: &'static str, fields: Vec<(Text, Type)>) -> ObjectType {
        let field = |(name, exposed): (Text, Type)| DeclField {
            escaped: Some(name.clone()),
            name,
            decl: Arc::new(Decl::simple(DeclKind::Preserved, exposed, 0, 0)),
        };
        let mut fields: Vec<DeclField> = fields.into_iter().rev().map(field).collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields.dedup_by(|a, b| a.name == b.name);
        ObjectType { path: Text::new_static(name), fields, has_properties: true }
    }

    pub(crate) fn name(&self, scope: &str) -> String {
        if self.path.starts_with("kubernetes.") {
            // a type of its own, not a node of a schema
            return self.path.to_string();
        }
        let below = self.path.strip_prefix(scope).unwrap_or(&self.path);
        format!("selfType1{below}")
    }
}

impl Decl {
    /// The declaration of JSON whose type is not known.
    pub fn json() -> &'static Arc<Decl> {
        static JSON: OnceLock<Arc<Decl>> = OnceLock::new();
        JSON.get_or_init(|| Arc::new(Decl::simple(DeclKind::Json, Type::Dyn, 0, 0)))
    }

    /// The declaration of a node of a structural schema (OpenAPI v3 in the form of Kubernetes).
    ///
    /// ```
    /// let schema = machinery::json!({"type": "string", "maxLength": 5});
    /// let decl = cel::Decl::from_schema(&schema);
    /// assert_eq!(decl.exposed, Some(cel::Type::String));
    /// ```
    pub fn from_schema(schema: &Value) -> Arc<Decl> {
        Decl::of_minor(schema, SchemaOf::Value, u32::MAX)
    }

    /// As [`Decl::from_schema`], of a custom resource or an embedded resource: `apiVersion`, `kind` and `metadata` are
    /// declared even where the schema leaves them out.
    pub fn from_resource_schema(schema: &Value) -> Arc<Decl> {
        Decl::of_minor(schema, SchemaOf::Resource, u32::MAX)
    }

    /// The declaration of a schema, as Kubernetes 1.`minor` derives it.
    pub(crate) fn of_minor(schema: &Value, of: SchemaOf, minor: u32) -> Arc<Decl> {
        let members = if minor < 37 { Members::Decoded } else { Members::Typed };
        Arc::new(Builder { members, bounds_names: minor >= 37 }.build(schema, of, &Text::default()))
    }

    fn simple(kind: DeclKind, exposed: Type, elements_max: i64, bytes_min: i64) -> Decl {
        Decl {
            kind,
            nullable: true,
            schema_type: Text::default(),
            exposed: Some(exposed),
            elements_max: elements_max.max(0) as u64,
            bytes_min,
        }
    }

    /// A value of a type that no schema describes, of at most `elements_max` code points or bytes.
    pub fn of_type(exposed: Type, elements_max: u64) -> Arc<Decl> {
        let elements = i64::try_from(elements_max).unwrap_or(i64::MAX);
        Arc::new(Decl::simple(DeclKind::Preserved, exposed, elements, 0))
    }

    /// A map of at most `entries_max` entries.
    pub fn entries(key: &Arc<Decl>, value: &Arc<Decl>, entries_max: u64, selected: Selected) -> Arc<Decl> {
        let of = |decl: &Arc<Decl>| decl.exposed.clone().unwrap_or(Type::Dyn);
        let exposed = Some(Type::map(of(key), of(value)));
        let kind = DeclKind::Entries { key: key.clone(), value: value.clone(), selected };
        Arc::new(Decl { exposed, elements_max: entries_max, ..Decl::simple(kind, Type::Dyn, 0, 0) })
    }

    /// An object with a type of this name, which begins with `kubernetes.`.
    pub fn object(name: &'static str, fields: &[(&'static str, Arc<Decl>)]) -> Arc<Decl> {
        let field = |(name, decl): &(&'static str, Arc<Decl>)| DeclField {
            name: Text::new_static(name),
            escaped: Some(Text::new_static(name)),
            decl: decl.clone(),
        };
        let mut fields: Vec<DeclField> = fields.iter().map(field).collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let object = Arc::new(ObjectType { path: Text::new_static(name), fields, has_properties: true });
        Arc::new(Decl::simple(DeclKind::Object(object.clone()), Type::Object(object), 0, 0))
    }

    /// The declaration of a field or of the elements: `None` if there is none.
    pub(crate) fn step(&self, name: DeclStep<'_>) -> Option<&Decl> {
        match (&self.kind, name) {
            (DeclKind::List { item: Some(item), .. }, DeclStep::Items) => Some(item),
            (DeclKind::Map(value), DeclStep::Items) => Some(value),
            (DeclKind::Map(_), DeclStep::Keys) => Some(&KEY),
            (DeclKind::Entries { value, .. }, DeclStep::Items) => Some(value),
            (DeclKind::Entries { key, .. }, DeclStep::Keys) => Some(key),
            (DeclKind::Entries { value, selected: Selected::Sized, .. }, DeclStep::Field(_)) => Some(value),
            (DeclKind::Object(object), DeclStep::Field(name)) => {
                let field = object.escaped(name)?;
                field.decl.exposed.as_ref().map(|_| &*field.decl)
            }
            _ => None,
        }
    }
}

/// Map keys: strings of unknown size.
static KEY: Decl = Decl {
    kind: DeclKind::String,
    nullable: false,
    schema_type: Text::new_static("string"),
    exposed: Some(Type::String),
    elements_max: 0,
    bytes_min: 2,
};

/// A step on the way from the root declaration to another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeclStep<'a> {
    Field(&'a str),
    Items,
    Keys,
    /// Indices of list items, which have no declaration.
    Indices,
}

/// Whether a schema has a type that a declaration can have. The types of its items do not matter.
pub fn has_type(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-int-or-string")
        || matches!(schema.str_at(&["type"]), "array" | "object" | "string" | "boolean" | "number" | "integer")
}

/// Whether a schema and its items have types that declarations can have.
pub(crate) fn has_declaration(schema: &Value) -> bool {
    let inner = match schema.str_at(&["type"]) {
        _ if flag(schema, "x-kubernetes-int-or-string") => None,
        "array" => items(schema),
        "object" => additional(schema),
        _ => None,
    };
    has_type(schema) && inner.is_none_or(has_declaration)
}

/// Whether the declaration of a schema includes its elements: the items of a list, or the additionalProperties of a
/// map.
pub(crate) fn has_elements(schema: &Value) -> bool {
    let inner = match schema.str_at(&["type"]) {
        _ if flag(schema, "x-kubernetes-int-or-string") => None,
        "array" => items(schema),
        "object" => additional(schema),
        _ => None,
    };
    inner.is_some_and(has_declaration)
}

/// Whether values of a schema can have several types.
pub(crate) fn is_untyped(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-int-or-string") || schema.str_at(&["type"]).is_empty()
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.is_true_at(&[name])
}

fn limit(schema: &Value, name: &str) -> Option<i64> {
    schema.get(name).and_then(Value::as_float).map(|n| (n as i64).max(0))
}

/// The schema of `items`, if there is one.
pub(crate) fn items(schema: &Value) -> Option<&Value> {
    schema.get("items").filter(|items| matches!(items, Value::Object(_)))
}

/// The schema of `additionalProperties`, if it is one.
pub(crate) fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|schema| matches!(schema, Value::Object(_)))
}

/// The kind of value that a schema, or a node of one, describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaOf {
    /// A resource, which has `apiVersion`, `kind` and `metadata` whether the schema declares them or not.
    #[default]
    Resource,
    /// Any other value.
    Value,
}

impl SchemaOf {
    /// The kind of value that a node below the root describes.
    pub(crate) fn node(schema: &Value) -> SchemaOf {
        if flag(schema, "x-kubernetes-embedded-resource") { SchemaOf::Resource } else { SchemaOf::Value }
    }
}

/// Builds declarations of schemas.
struct Builder {
    members: Members,
    /// Whether the lengths of `metadata.name` and `metadata.generateName` are bounded where the schema does not bound them.
    bounds_names: bool,
}

impl Builder {
    fn build(&self, schema: &Value, of: SchemaOf, path: &str) -> Decl {
        let mut decl = self.build_kind(schema, of, path);
        decl.nullable = flag(schema, "nullable");
        decl.schema_type = Text::new(schema.str_at(&["type"]));
        decl
    }

    fn build_kind(&self, schema: &Value, of: SchemaOf, path: &str) -> Decl {
        let length = limit(schema, "maxLength");
        if flag(schema, "x-kubernetes-int-or-string") {
            let elements = length.map_or(REQUEST_BYTES_MAX - 2, |n| n.saturating_mul(4));
            return Decl::simple(DeclKind::IntOrString, Type::Dyn, elements, 1);
        }
        match schema.str_at(&["type"]) {
            "array" => self.list(schema, path),
            "object" => self.object(schema, of, path),
            "string" => string(schema, length),
            "boolean" => Decl::simple(DeclKind::Bool, Type::Bool, 0, 4),
            "number" => Decl::simple(DeclKind::Double, Type::Double, 0, 1),
            "integer" => Decl::simple(DeclKind::Int, Type::Int, 0, 1),
            _ if flag(schema, "x-kubernetes-preserve-unknown-fields") => hidden(DeclKind::Preserved),
            _ => hidden(DeclKind::Untyped),
        }
    }
}

fn hidden(kind: DeclKind) -> Decl {
    Decl { exposed: None, ..Decl::simple(kind, Type::Dyn, 0, 0) }
}

fn string(schema: &Value, length: Option<i64>) -> Decl {
    let unbounded = REQUEST_BYTES_MAX - 2;
    match schema.str_at(&["format"]) {
        "byte" => Decl::simple(DeclKind::Bytes, Type::Bytes, length.unwrap_or(unbounded), 2),
        "duration" => Decl::simple(DeclKind::Duration, Type::Duration, 32, 3),
        "date" => Decl::simple(DeclKind::Date, Type::Timestamp, 12, 12),
        "date-time" => Decl::simple(DeclKind::DateTime, Type::Timestamp, 32, 21),
        _ => {
            let longest = schema
                .get("enum")
                .and_then(Value::as_array)
                .filter(|values| !values.is_empty())
                .map(|values| values.iter().filter_map(Value::as_str).map(|s| s.len() as i64).max().unwrap_or(0));
            let elements = length.map(|n| n.saturating_mul(4)).or(longest).unwrap_or(unbounded);
            Decl::simple(DeclKind::String, Type::String, elements, 2)
        }
    }
}

impl Builder {
    fn list(&self, schema: &Value, path: &str) -> Decl {
        let kind = match schema.str_at(&["x-kubernetes-list-type"]) {
            "set" => ListKind::Set(self.members),
            "map" => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).unwrap_or_default();
                // as upstream, which looks for escaped names in items: a key such as `a-b` is missing in all of them
                let escaped = |key: &str| escape(key).unwrap_or_else(|| Text::new(key));
                ListKind::Map(keys.iter().filter_map(Value::as_str).map(escaped).collect())
            }
            _ => ListKind::Atomic,
        };
        let Some(item) = items(schema) else { return hidden(DeclKind::List { item: None, kind }) };
        let item = Arc::new(self.build(item, SchemaOf::node(item), &format!("{path}.@idx")));
        let elements = limit(schema, "maxItems").unwrap_or((REQUEST_BYTES_MAX - 2) / (item.bytes_min + 1));
        let exposed = item.exposed.clone().map(Type::list);
        let decl = Decl::simple(DeclKind::List { item: Some(item), kind }, Type::Dyn, elements, 2);
        Decl { exposed, ..decl }
    }
}

impl Builder {
    fn object(&self, schema: &Value, of: SchemaOf, path: &str) -> Decl {
        let properties = schema.get("properties").and_then(Value::as_object);
        if let Some(value) = additional(schema) {
            let value = Arc::new(self.build(value, SchemaOf::node(value), &format!("{path}.@elem")));
            let elements = limit(schema, "maxProperties").unwrap_or((REQUEST_BYTES_MAX - 2) / (value.bytes_min + 6));
            let exposed = value.exposed.clone().map(|value| Type::map(Type::String, value));
            return Decl { exposed, ..Decl::simple(DeclKind::Map(value), Type::Dyn, elements, 2) };
        }
        let required = schema.items_at(&["required"]);
        let is_resource = of == SchemaOf::Resource;
        let completed = if is_resource { self.with_type_and_object_meta(properties) } else { None };
        let has_properties = properties.is_some() || is_resource;
        let mut fields = vec![];
        let mut bytes_min = 2;
        for (name, property) in completed.as_ref().or(properties).into_iter().flat_map(machinery::Map::iter) {
            let escaped = escape(name);
            let below = format!("{path}.{}", escaped.as_ref().unwrap_or(name));
            let decl = Arc::new(self.build(property, SchemaOf::node(property), &below));
            let is_required = required.iter().any(|r| r.as_str() == Some(name.as_str()));
            if decl.exposed.is_some() && is_required && property.get("default").is_none() {
                bytes_min += name.len() as i64 + decl.bytes_min + 4;
            }
            fields.push(DeclField { name: name.clone(), escaped, decl });
        }
        let object = Arc::new(ObjectType { path: Text::new(path), fields, has_properties });
        Decl::simple(DeclKind::Object(object.clone()), Type::Object(object), 0, bytes_min)
    }
}

impl Builder {
    /// The properties with kind, apiVersion and metadata, unless all of them are typed already.
    fn with_type_and_object_meta(&self, properties: Option<&machinery::Map>) -> Option<machinery::Map> {
        let node = |path: &[&str]| {
            let (first, rest) = path.split_first()?;
            rest.iter().try_fold(properties?.get(first)?, |node, name| node.at(&["properties", name]))
        };
        let typed = |path: &[&str], want: &str| node(path).is_some_and(|n| n.str_at(&["type"]) == want);
        if typed(&["kind"], "string")
            && typed(&["apiVersion"], "string")
            && typed(&["metadata"], "object")
            && typed(&["metadata", "name"], "string")
            && typed(&["metadata", "generateName"], "string")
        {
            return None;
        }
        let string = || Value::from([("type", Value::from("string"))]);
        let bounded = |field: &str, longest: i64| {
            let mut name = string();
            if self.bounds_names {
                let own = node(&["metadata", field]).and_then(|schema| limit(schema, "maxLength"));
                name.set_at(&["maxLength"], Value::Int(own.unwrap_or(longest).min(longest)));
            }
            name
        };
        let names = Value::from([
            ("name", bounded("name", NAME_LENGTH_MAX)),
            // at least one character is appended
            ("generateName", bounded("generateName", NAME_LENGTH_MAX - 1)),
        ]);
        let metadata = Value::from([("type", Value::from("object")), ("properties", names)]);
        let mut completed = properties.cloned().unwrap_or_default();
        completed.insert("kind", string());
        completed.insert("apiVersion", string());
        completed.insert("metadata", metadata);
        Some(completed)
    }
}

/// The name of a field in expressions, if it can have one.
pub fn escape(name: &str) -> Option<Text> {
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(Text::from(format!("__{name}__")));
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.bytes().all(plain) && !name.contains("__") {
        return Some(Text::new(name));
    }
    let mut out = String::new();
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(tail) = rest.strip_prefix("__") {
            out.push_str("__underscores__");
            rest = tail;
            continue;
        }
        match c {
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            c if c.is_ascii() && plain(c as u8) => out.push(c),
            _ => return None,
        }
        rest = &rest[c.len_utf8()..];
    }
    Some(Text::from(out))
}

/// The field name for an escaped name; `None` if it contains an unknown sequence.
fn unescape(key: &str) -> Option<Cow<'_, str>> {
    // a search for a text takes longer to begin than a short key to compare
    if !key.as_bytes().windows(2).any(|pair| pair == b"__") {
        return Some(Cow::Borrowed(key));
    }
    let mut out = String::new();
    let mut rest = key;
    while let Some(c) = rest.chars().next() {
        let (part, len) = match sequence(rest) {
            // a reserved word is one only if it is the whole name
            Some(word) if word.len() + 4 == key.len() && RESERVED.contains(&word) => (word, key.len()),
            Some(word) => (meaning(word)?, word.len() + 4),
            None => (&rest[..c.len_utf8()], c.len_utf8()),
        };
        out.push_str(part);
        rest = &rest[len..];
    }
    Some(Cow::Owned(out))
}

/// The word of a leading `__word__`.
fn sequence(text: &str) -> Option<&str> {
    let word = text.strip_prefix("__")?;
    let word = &word[..word.find('_')?];
    let is_closed = text[word.len() + 2..].starts_with("__");
    (!word.is_empty() && is_closed).then_some(word)
}

/// The text for an escape word.
fn meaning(word: &str) -> Option<&'static str> {
    match word {
        "underscores" => Some("__"),
        "dot" => Some("."),
        "dash" => Some("-"),
        "slash" => Some("/"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_escapes() {
        for name in ["a", "a.b", "dash-name", "a/b", "__x", "x__y", "namespace", "a_b", "_a_"] {
            let escaped = escape(name).expect(name);
            assert_eq!(unescape(&escaped).as_deref(), Some(name));
        }
        let cases = [
            ("namespace", Some("namespace")),
            ("a.b", Some("a.b")),
            ("__x", Some("__x")),
            ("___dash__", Some("_-")),
            ("__dot____dot__", Some("..")),
            ("__dot__in", Some(".in")),
            ("__in__", Some("in")),
            ("__in__x", None),
            ("__x__", None),
            ("____", Some("____")),
            ("__é__", None),
        ];
        for (key, want) in cases {
            assert_eq!(unescape(key).as_deref(), want, "{key}");
        }
    }
}
