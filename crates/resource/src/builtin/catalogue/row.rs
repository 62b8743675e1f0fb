//! The row of a built-in kind, and what follows from it for its objects.

use std::sync::OnceLock;

use base::request::FeatureGates;
use machinery::{Release, Text, Value};
use schema::shape::{Struct, TypeError};

use super::super::DEFINITION_GROUP;
use super::super::behaviour::{Behaviour, Objects, Part, Review};
use super::super::rules::Ruled;
use super::Catalogue;
use crate::rules::{Deletion, MetadataRules};

/// Group, version and plural of a resource.
pub type Key = (&'static str, &'static str, &'static str);

/// A field that selectors may use.
#[derive(Clone, Debug)]
pub struct Selectable {
    pub label: &'static str,
    /// Where its text is; the first source that has one counts.
    pub sources: Vec<FieldSource>,
}

/// A source of the text of a selectable field.
#[derive(Clone, Debug)]
pub enum FieldSource {
    Path(Vec<&'static str>),
    /// This text, in every object.
    Text(&'static str),
}

impl Selectable {
    /// Parses `LABEL`, which is also a path, or `LABEL:SOURCE|SOURCE`.
    pub fn parse(field: &'static str) -> Selectable {
        let (label, sources) = field.split_once(':').unwrap_or((field, field));
        let source = |source: &'static str| match source.strip_prefix('=') {
            Some(text) => FieldSource::Text(text),
            None => FieldSource::Path(source.split('.').collect()),
        };
        Selectable { label, sources: sources.split('|').map(source).collect() }
    }
}

/// An object in its typed shape.
pub struct Shaped {
    pub value: Value,
    pub unknown: Vec<String>,
    pub error: Option<String>,
    /// All type errors, if decoding continued after the first.
    pub errors: Vec<TypeError>,
}

impl Shaped {
    /// The type error to report for a JSON document with this text.
    pub fn error_in(self, text: &[u8]) -> Option<String> {
        schema::shape::first_error_in(&self.errors, text).or(self.error)
    }
}

/// How errors of field selectors name a kind with selectable fields of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    Default,
    /// By its name.
    OfKind,
    /// By group, version and name.
    OfVersion,
}

/// How the status endpoint of a kind treats metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    /// The endpoint writes metadata.
    Written,
    /// The endpoint writes metadata, and managedFields do not record it.
    Unowned,
    /// The labels, annotations, finalizers and owners of the stored object are kept. Changes of other metadata are
    /// validated.
    Reset,
    /// The metadata of the stored object is kept.
    Kept,
}

/// A subresource of a kind other than `status` and `scale`.
#[derive(Clone, Debug)]
pub struct OwnSubresource {
    pub name: &'static str,
    pub verbs: Vec<&'static str>,
    pub endpoint: OwnEndpoint,
}

/// The behaviour of a subresource.
#[derive(Clone, Copy, Debug)]
pub enum OwnEndpoint {
    /// Writes a part of the object.
    Part(&'static Part),
    /// Takes an object of another kind, which is processed and not stored.
    Posted(&'static BuiltIn),
    /// Connects the client with what the object represents.
    Connect(Connect),
}

/// The target of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// The log of a container.
    Log,
    /// The streams of a container. The text is the kind of the options.
    Streams(&'static str),
    /// The HTTP server of a Pod, Service or Node. The text is the kind of the options.
    Proxy(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVersionKind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
}

impl OwnSubresource {
    /// Whether the name of the subresource may be followed by a path.
    pub fn takes_paths(&self) -> bool {
        matches!(self.endpoint, OwnEndpoint::Connect(Connect::Proxy(_)))
    }

    /// The kind of the objects of the subresource, if it differs from that of the resource.
    pub fn kind(&self) -> Option<GroupVersionKind> {
        match self.endpoint {
            OwnEndpoint::Posted(row) => {
                Some(GroupVersionKind { group: row.group, version: row.version, kind: row.kind })
            }
            OwnEndpoint::Connect(Connect::Streams(kind) | Connect::Proxy(kind)) => {
                Some(GroupVersionKind { group: "", version: "v1", kind })
            }
            OwnEndpoint::Connect(Connect::Log) | OwnEndpoint::Part(_) => None,
        }
    }
}

/// When a version is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The version is served unless `--runtime-config` switches it off by name.
    Default,
    /// `--runtime-config` can switch the version by name or together with others. It is on by default.
    On,
    /// As `On`, but off by default.
    Off,
    /// As `Off`, for versions that Kubernetes has removed.
    Legacy,
    /// The version is not served. Its objects are only stored, or posted to another resource.
    Never,
}

/// Where a version is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    pub availability: Availability,
    /// The first release that has the version.
    pub since: Release,
    /// The release from which responses have a deprecation warning, if the version is deprecated.
    pub deprecated: Option<&'static str>,
    /// The release of Kubernetes that no longer serves the version, such as `1.38`, if it is known.
    pub removed: Option<&'static str>,
    /// The recommendation of the warning: a version, and after a colon a different kind, if any.
    pub replacement: Option<&'static str>,
}

/// Which changes increment the generation of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Objects have no generation.
    None,
    /// Changes outside of metadata and status.
    Changes,
    /// As `Changes`, and also changes of fields that feature gates drop.
    Gated,
    /// As `Changes`, and also changes between empty and absent lists.
    Literal,
    /// As `Changes`, but new objects have no generation.
    Updates,
}

/// The status subresource of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusFacts {
    /// The first release that has the subresource.
    pub since: Release,
    /// Whether a create resets the status to its zero value.
    pub is_reset: bool,
    pub metadata: StatusMetadata,
    /// Whether the endpoint can return tables.
    pub has_tables: bool,
}

/// A version of a built-in kind: its facts, which come from `kinds.txt`, and its behaviour.
#[derive(Clone)]
pub struct BuiltIn {
    pub group: &'static str,
    pub version: &'static str,
    /// `group/version`, or just the version in the core group.
    pub api_version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: Vec<&'static str>,
    pub categories: Vec<&'static str>,
    /// The verbs, if the version does not support all of them.
    pub verbs: Option<Vec<&'static str>>,
    pub namespaced: bool,
    pub status: Option<StatusFacts>,
    /// Whether the kind has the subresource `scale`, whose replicas are `spec.replicas` and `status.replicas`.
    pub scale: bool,
    /// Subresources other than `status` and `scale`.
    pub subresources: Vec<OwnSubresource>,
    /// Fields besides name and namespace that selectors may use.
    pub selectable: Vec<Selectable>,
    /// How errors of field selectors name the kind.
    pub labels: Labels,
    pub generation: Generation,
    /// The feature gate without which the generation counts nothing.
    pub generation_gate: Option<&'static str>,
    pub metadata: MetadataRules,
    pub deletion: Deletion,
    /// Whether PUT without resourceVersion overwrites the object.
    pub unconditional_update: bool,
    /// Whether PUT creates an object that does not exist.
    pub create_on_update: bool,
    /// Whether the errors of declarative rules never replace those of hand-written ones.
    pub keeps_written: bool,
    /// Whether the first column of tables is the name.
    pub name_column: bool,
    /// The annotation that makes an object the default of its kind. Tables show the mark after the name.
    pub default_mark: Option<&'static str>,
    pub lifecycle: Lifecycle,
    /// The feature gate without which the version is not served.
    pub gate: Option<&'static str>,
    /// The version in which objects are stored, if it differs from this one.
    pub stored_as: Option<&'static str>,
    /// The first part of the keys in kube-apiserver's layout, if it is not the plural.
    pub folder: Option<&'static str>,
    /// The version whose storage hash discovery shows, if it is not the newest version.
    pub storage_hash: Option<&'static str>,
    /// The version whose Go type the objects have.
    pub form: &'static str,
    /// The name of the Go type, set when it is first needed.
    pub(in crate::builtin) go_type: OnceLock<&'static str>,
    /// The shape of the Go type, set when it is first needed.
    pub(in crate::builtin) structure: OnceLock<&'static Struct>,
    /// The rules of the Go type, set when they are first needed: a write looks them up several times.
    pub(in crate::builtin) ruled: OnceLock<Option<&'static Ruled>>,
    pub behaviour: &'static Behaviour,
    /// Whether kube-apiserver serves the kind from a separate server.
    pub has_own_server: bool,
    /// Whether manifests may have objects of the kind.
    pub has_static_objects: bool,
    /// Another value of `apiVersion` that a body may have: that of a version with the same fields, of which nothing is
    /// stored.
    pub also_posted_as: Option<&'static str>,
    /// Whether a body with a namespace is refused before its fields are reset.
    pub refuses_namespaces: bool,
    /// All built-in kinds, this one among them.
    pub catalogue: &'static Catalogue,
}

impl PartialEq for BuiltIn {
    fn eq(&self, other: &BuiltIn) -> bool {
        self.group == other.group && self.kind == other.kind
    }
}

impl Eq for BuiltIn {}

impl std::fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind)
    }
}

/// The minor version of a release. The release need not be one that can be served.
pub fn minor(release: &str) -> Option<u32> {
    release.strip_prefix("1.").and_then(|minor| minor.parse().ok())
}

/// The items of a comma-separated list.
pub fn list(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split(',').filter(|item| !item.is_empty())
}

impl BuiltIn {
    /// The group, version and plural by which `--runtime-config` switches a version.
    pub fn key(&self) -> Key {
        (self.group, self.version, self.plural)
    }

    /// Whether the version is served unless `--runtime-config` says otherwise.
    pub fn is_on_by_default(&self) -> bool {
        matches!(self.lifecycle.availability, Availability::Default | Availability::On)
    }

    /// Whether the version is of the kind of CRDs, which have a decoder of their own.
    pub fn is_definition(&self) -> bool {
        self.group == DEFINITION_GROUP
    }

    /// Whether objects of the kind are stored.
    pub fn is_stored(&self) -> bool {
        matches!(self.behaviour.objects, Objects::Stored)
    }

    /// The review that handles a POST, if objects are not stored.
    pub fn review(&self) -> Option<Review> {
        if let Objects::Reviewed(review) = self.behaviour.objects { Some(review) } else { None }
    }

    /// Computes the objects of a kind whose objects are not stored.
    pub fn computed(&self) -> Option<fn() -> Vec<Value>> {
        if let Objects::Computed(all) = self.behaviour.objects { Some(all) } else { None }
    }

    /// The group and the kind as tables name them: the core group, which has no name, is called by its version.
    pub fn table_name(&self) -> (&'static str, &'static str) {
        (if self.group.is_empty() { self.version } else { self.group }, self.kind)
    }

    /// The group whose types alone kube-apiserver knows where it serves the kind; `None` if those are all others.
    pub fn scheme(&self) -> Option<&'static str> {
        self.has_own_server.then_some(self.group)
    }

    /// The first part of the keys in kube-apiserver's layout.
    pub fn upstream_folder(&self) -> &'static str {
        self.folder.unwrap_or(self.plural)
    }

    /// The part of an object's key in kube-apiserver that follows the prefix. What a separate server serves is stored
    /// like custom resources.
    pub fn upstream_path(&self, path: &str) -> String {
        match self.has_own_server {
            true => format!("{}/{}/{path}", self.group, self.plural),
            false => format!("{}/{path}", self.upstream_folder()),
        }
    }

    pub fn status_metadata(&self) -> StatusMetadata {
        self.status.map_or(StatusMetadata::Written, |status| status.metadata)
    }

    /// Whether an object is the default of its kind.
    pub fn is_default(&self, object: &Value) -> bool {
        self.default_mark.is_some_and(|mark| object.str_at(&["metadata", "annotations", mark]) == "true")
    }

    /// Whether changes increment the generation, given the feature gates.
    pub fn counts_generation(&self, gates: &FeatureGates) -> bool {
        self.generation != Generation::None && self.generation_gate.is_none_or(|gate| gates.is_on(gate))
    }

    /// The warning that every response has if the version is deprecated in this release.
    pub fn deprecation(&self, release: Release) -> Option<Text> {
        let Lifecycle { deprecated, removed, replacement, .. } = self.lifecycle;
        let deprecated = deprecated?;
        let first = minor(deprecated)?;
        (release.minor() >= first).then(|| {
            let mut warning = format!("{} {} is deprecated in v{deprecated}+", self.api_version, self.kind);
            if let Some(removed) = removed {
                warning += &format!(", unavailable in v{removed}+");
            }
            if let Some(replacement) = replacement {
                let (version, kind) = replacement.split_once(':').unwrap_or((replacement, self.kind));
                warning += &format!("; use {version} {kind}");
            }
            Text::from(warning)
        })
    }
}
