//! The Go types of built-in kinds: facts of the Kubernetes API that `cargo xtask kinds` writes to `types.txt`.
//!
//! A line without indentation names a struct, as protobuf does: package, version and type. `atomic` behind it says that
//! the struct has one owner, `granular` that its fields have several, `kind:GROUP` that it is a kind of the group
//! (`kind:*`: of each group version), `union:DISCRIMINATOR:FIELD=VALUE,...` that it is a union. Below it is a line for
//! each field, in the order of the Go struct:
//!
//! ```text
//!  NUMBER NAME TYPE [PRINTED] [required] [LIST-TYPE | map-type:TYPE] [patch:STRATEGY[:KEY]] [default[=JSON]]
//!      [parameter:NAME] [bare] [enum:VALUE,...]
//! ```
//!
//! *Type* is `string`, `bool`, `int32`, `int64`, `double`, `bytes` or a struct, with `[]` in front for a list, `{}` for a map
//! from strings and `^` for an embedded struct; `=` and a name follow if Go has its own name for the type. *Printed* is `!` for
//! a field that JSON always shows, `?` for a pointer, `?!` for a pointer that is shown as null, `*` for a struct that is left
//! out when it is zero; other fields are left out when they are empty. *List-type* is `atomic`, `set` or `map:` and the keys.
//! `parameter:` has the name of a query parameter in the OpenAPI v2 document; a `bare` field is a reference without a
//! description in OpenAPI; `enum:` lists the values of a string, with `%20` for blanks. The lines before the structs have the
//! OpenAPI names of packages (`package`), and the schemas of types that have an encoding of their own (`schema`).
//!
//! `unpublished.txt` has further types in the same format.

mod internal;
mod order;
mod published;

use std::sync::{LazyLock, OnceLock};

pub use internal::{internal_json, internal_lines, published_json};
pub use order::{merged_text, typed_text};
pub use published::{openapi_name, own_schema, struct_of_openapi_name};

static TEXT: &str = include_str!("types.txt");
static UNPUBLISHED: &str = include_str!("unpublished.txt");

/// A Go struct.
#[derive(Debug)]
pub struct GoStruct {
    /// The name in the table, such as `core.v1.PodSpec`.
    pub name: &'static str,
    /// Whether server-side apply treats it as one value.
    pub is_atomic: bool,
    /// `x-kubernetes-map-type`; empty if there is none.
    pub map_type: &'static str,
    /// The group if the struct is a kind; `*` if it is one of each group version.
    pub group: Option<&'static str>,
    /// `x-kubernetes-unions`.
    pub unions: Vec<GoUnion>,
    /// The fields in the order of the struct.
    pub fields: Vec<GoField>,
}

/// Fields of a struct of which one is set.
#[derive(Debug)]
pub struct GoUnion {
    /// The field that says which one is set; empty if there is none.
    pub discriminator: &'static str,
    /// The fields, and the values of the discriminator that stand for them.
    pub fields: Vec<(&'static str, &'static str)>,
}

/// A field of a Go struct.
#[derive(Debug)]
pub struct GoField {
    /// Number of the protobuf field; 0 if there is none.
    pub number: u32,
    /// Name in JSON; for an embedded struct, its Go name.
    pub name: &'static str,
    /// The Go type of the field.
    pub go_type: GoType,
    /// When the field is printed as JSON.
    pub printed: Printed,
    /// Whether OpenAPI lists the field as required.
    pub is_required: bool,
    /// How patches and applies merge the field.
    pub merging: Merging,
    /// The default in the schema, as JSON.
    pub default: Option<&'static str>,
    /// The name of the query parameter in the OpenAPI v2 document, if the field is one.
    pub parameter: Option<&'static str>,
    /// The comma-separated values of the enumeration, with `%20` for blanks; empty if there is none.
    pub values: &'static str,
    /// Whether OpenAPI has no description of the field, so that its schema is a plain reference.
    pub is_bare: bool,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoType {
    /// Whether the type is a list or a map.
    pub container: Container,
    /// The type of a single value.
    pub base: GoBase,
    /// Go's own name for a string or a container, such as `v1.Protocol`.
    pub alias: Option<&'static str>,
    /// Go's own name for the string in a container.
    pub item_alias: Option<&'static str>,
}

/// The container of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// A single value.
    None,
    /// A slice.
    List,
    /// A map with string keys.
    Map,
    /// A map of lists.
    MapOfLists,
    /// The fields of the struct are those of the struct around it.
    Embedded,
}

/// The type of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoBase {
    /// A string or a named string type.
    Text,
    /// `bool`
    Bool,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `float64`
    Double,
    /// `[]byte`
    Bytes,
    /// A struct, by its qualified name.
    Struct(&'static str),
}

/// When JSON shows a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// Unless it is empty.
    NonEmpty,
    /// Always, also when it is empty.
    Always,
    /// A pointer: if it is set.
    Set,
    /// A pointer, shown as null if it is not set.
    SetOrNull,
    /// Unless the struct has its zero value.
    NonZero,
}

/// How applies and patches merge a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merging {
    /// `x-kubernetes-list-type`; empty if there is none.
    pub list_type: &'static str,
    /// `x-kubernetes-list-map-keys`, separated by commas.
    pub keys: &'static str,
    /// `x-kubernetes-map-type`; empty if there is none.
    pub map_type: &'static str,
    /// `x-kubernetes-patch-strategy`; empty if there is none.
    pub strategy: &'static str,
    /// `x-kubernetes-patch-merge-key`; empty if there is none.
    pub merge_key: &'static str,
}

/// The Go package of the types of a group.
pub fn go_package(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("") => "core",
        Some("internal") => "apiserverinternal",
        Some(package) => package,
    }
}

/// The kinds whose types all groups share.
const COMMON: [&str; 8] = [
    "PartialObjectMetadata", "PartialObjectMetadataList", "DeleteOptions", "APIVersions", "APIGroup", "APIGroupList",
    "APIResourceList", "Status",
];

/// The message name of a type: `core.v1.ConfigMap` for `v1` and `ConfigMap`.
#[must_use]
pub fn message_name(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    if COMMON.contains(&kind) { format!("meta.v1.{kind}") } else { format!("{}.{version}.{kind}", go_package(group)) }
}

/// The struct with the name `name`, such as `core.v1.PodSpec`. It is parsed when it is first needed.
#[must_use]
pub fn go_struct(name: &str) -> Option<&'static GoStruct> {
    Some(entry(name)?.parsed())
}

/// Whether there is a struct with this name.
#[must_use]
pub fn has_struct(name: &str) -> bool {
    entry(name).is_some()
}

/// The names of all structs, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    INDEX.iter().map(|entry| entry.name)
}

/// A struct in the tables.
struct Entry {
    name: &'static str,
    section: &'static str,
    /// Boxed, since most structs are never parsed.
    parsed: OnceLock<Box<GoStruct>>,
}

static INDEX: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut all: Vec<Entry> =
        sections().map(|(name, section)| Entry { name, section, parsed: OnceLock::new() }).collect();
    all.sort_by_key(|entry| entry.name);
    all
});

impl Entry {
    fn parsed(&'static self) -> &'static GoStruct {
        self.parsed.get_or_init(|| Box::new(parse(self.section)))
    }
}

fn entry(name: &str) -> Option<&'static Entry> {
    let at = INDEX.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
    INDEX.get(at)
}

/// The name and the lines of each struct.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    [TEXT, UNPUBLISHED].into_iter().flat_map(sections_of)
}

fn sections_of(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
    let ends = ends.filter(|end| text.as_bytes().get(*end) != Some(&b' '));
    let sections = ends.map(move |end| &text[std::mem::replace(&mut start, end)..end]);
    let is_struct = |section: &&str| !["#", "package ", "schema "].iter().any(|mark| section.starts_with(mark));
    sections.filter(is_struct).filter_map(|section| Some((section.split([' ', '\n']).next()?, section)))
}

fn parse(section: &'static str) -> GoStruct {
    let mut lines = section.lines();
    let mut head = lines.next().unwrap_or_default().split(' ');
    let mut found = GoStruct {
        name: head.next().unwrap_or_default(),
        is_atomic: false,
        map_type: "",
        group: None,
        unions: vec![],
        fields: lines.filter_map(field).collect(),
    };
    for mark in head {
        match mark.split_once(':') {
            Some(("kind", group)) => found.group = Some(group),
            Some(("union", union)) => found.unions.extend(union_of(union)),
            Some(_) => {}
            None => (found.map_type, found.is_atomic) = (mark, mark == "atomic"),
        }
    }
    found
}

fn union_of(text: &'static str) -> Option<GoUnion> {
    let (discriminator, fields) = text.split_once(':')?;
    Some(GoUnion { discriminator, fields: fields.split(',').filter_map(|field| field.split_once('=')).collect() })
}

fn field(line: &'static str) -> Option<GoField> {
    let mut parts = line.trim_start().split(' ');
    let (number, name) = (parts.next()?.parse().ok()?, parts.next()?);
    let mut field = GoField {
        number,
        name,
        go_type: go_type(parts.next()?)?,
        printed: Printed::NonEmpty,
        is_required: false,
        merging: Merging::default(),
        default: None,
        parameter: None,
        values: "",
        is_bare: false,
    };
    for part in parts {
        match part.split_once([':', '=']) {
            Some(("map", keys)) => (field.merging.list_type, field.merging.keys) = ("map", keys),
            Some(("map-type", kind)) => field.merging.map_type = kind,
            Some(("patch", how)) => {
                (field.merging.strategy, field.merging.merge_key) = how.split_once(':').unwrap_or((how, ""))
            }
            Some(("default", json)) => field.default = Some(json),
            Some(("parameter", name)) => field.parameter = Some(name),
            Some(("enum", values)) => field.values = values,
            Some(_) => {}
            None => mark(&mut field, part),
        }
    }
    Some(field)
}

fn mark(field: &mut GoField, mark: &'static str) {
    match mark {
        "!" => field.printed = Printed::Always,
        "?" => field.printed = Printed::Set,
        "?!" => field.printed = Printed::SetOrNull,
        "*" => field.printed = Printed::NonZero,
        "bare" => field.is_bare = true,
        "required" => field.is_required = true,
        "atomic" | "set" => field.merging.list_type = mark,
        "default" => field.default = Some(field.go_type.zero()),
        _ => {}
    }
}

fn go_type(text: &'static str) -> Option<GoType> {
    let containers =
        [("{}[]", Container::MapOfLists), ("[]", Container::List), ("{}", Container::Map), ("^", Container::Embedded)];
    let found = containers.into_iter().find_map(|(mark, container)| Some((container, text.strip_prefix(mark)?)));
    let (container, rest) = found.unwrap_or((Container::None, text));
    let (base, aliases) = rest.split_once('=').unwrap_or((rest, ""));
    let base = match base {
        "string" => GoBase::Text,
        "bool" => GoBase::Bool,
        "int32" => GoBase::Int32,
        "int64" => GoBase::Int64,
        "double" => GoBase::Double,
        "bytes" => GoBase::Bytes,
        name => GoBase::Struct(name),
    };
    // the alias of the strings in a container precedes the alias of the container
    let (item_alias, alias) = match (container, base, aliases.split_once('=')) {
        (Container::None, ..) => ("", aliases),
        (_, _, Some((item, container))) => (item, container),
        (_, GoBase::Text, None) if container == Container::List => (aliases, ""),
        (_, _, None) => ("", aliases),
    };
    let given = |name: &'static str| Some(name).filter(|name| !name.is_empty());
    Some(GoType { container, base, alias: given(alias), item_alias: given(item_alias) })
}

impl GoStruct {
    /// The fields, with those of embedded structs in place of these structs.
    pub fn flat(&'static self) -> Box<dyn Iterator<Item = &'static GoField>> {
        Box::new(self.fields.iter().flat_map(|field| -> Box<dyn Iterator<Item = &'static GoField>> {
            match field.go_type {
                GoType { container: Container::Embedded, base: GoBase::Struct(name), .. } => {
                    Box::new(go_struct(name).into_iter().flat_map(GoStruct::flat))
                }
                _ => Box::new(std::iter::once(field)),
            }
        }))
    }
}

impl GoType {
    /// The zero value of a scalar, as JSON.
    fn zero(&self) -> &'static str {
        match self.base {
            GoBase::Bool => "false",
            GoBase::Int32 | GoBase::Int64 | GoBase::Double => "0",
            GoBase::Text | GoBase::Bytes | GoBase::Struct(_) => "\"\"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types that are lists of strings and have a name of their own.
    const OWN: [&str; 4] = [
        "authentication.v1.AttestationValue",
        "authentication.v1.ExtraValue",
        "authorization.v1.ExtraValue",
        "certificates.v1.ExtraValue",
    ];

    #[test]
    fn referenced_structs_exist() {
        assert!(sections().count() > 700);
        for (name, _) in sections() {
            let found = go_struct(name).unwrap();
            assert_eq!(found.name, name);
            for field in &found.fields {
                if let GoBase::Struct(inner) = field.go_type.base {
                    let is_own = OWN.contains(&inner) || own_schema(inner).is_some();
                    assert!(is_own || go_struct(inner).is_some(), "{name}.{} is a {inner}", field.name);
                }
            }
        }
    }

    #[test]
    fn field_lines_parse_completely() {
        let field = |of: &str, name: &str| {
            let fields = &go_struct(of).unwrap().fields;
            fields.iter().find(|field| field.name == name).unwrap()
        };
        let volumes = field("core.v1.PodSpec", "volumes");
        assert_eq!((volumes.number, volumes.go_type.container), (1, Container::List));
        assert_eq!((volumes.merging.list_type, volumes.merging.keys), ("map", "name"));
        assert_eq!((volumes.merging.strategy, volumes.merging.merge_key), ("merge,retainKeys", "name"));
        let containers = field("core.v1.PodSpec", "containers");
        assert!(containers.is_required && containers.printed == Printed::Always);
        let overhead = field("core.v1.PodSpec", "overhead").go_type;
        assert_eq!((overhead.container, overhead.alias), (Container::Map, Some("v1.ResourceList")));
        assert_eq!(field("core.v1.ContainerPort", "protocol").default, Some("\"TCP\""));
        assert_eq!(field("core.v1.PodSpec", "restartPolicy").go_type.alias, Some("v1.RestartPolicy"));
        let modes = field("core.v1.PersistentVolumeSpec", "accessModes").go_type;
        assert_eq!((modes.container, modes.item_alias), (Container::List, Some("v1.PersistentVolumeAccessMode")));
        assert!(go_struct("core.v1.LocalObjectReference").unwrap().is_atomic);
        assert!(go_struct("core.v1.Nothing").is_none());
        let stdin = field("core.v1.PodExecOptions", "stdin");
        assert_eq!(stdin.parameter, Some("stdin-PSzNhyUC"));
        assert!(field("apiextensions.v1.JSONSchemaProps", "not").is_bare);
        let union = &go_struct("flowcontrol.v1.LimitResponse").unwrap().unions[0];
        assert_eq!((union.discriminator, union.fields.as_slice()), ("type", &[("queuing", "Queuing")][..]));
        assert_eq!(go_struct("rbac.v1.Role").unwrap().group, Some("rbac.authorization.k8s.io"));
    }
}
