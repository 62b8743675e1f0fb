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

/// A field that selectors may use, and where its text is. Several paths are separated by `|`, and the first that has a
/// text counts. A text that begins with an equals sign stands for itself.
pub type Selectable = (&'static str, &'static str);

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

impl OwnSubresource {
    /// Whether the name of the subresource may be followed by a path.
    pub fn takes_paths(&self) -> bool {
        matches!(self.endpoint, OwnEndpoint::Connect(Connect::Proxy(_)))
    }

    /// Group, version and kind of the objects of the subresource, if they differ from those of the resource.
    pub fn kind(&self) -> Option<(&'static str, &'static str, &'static str)> {
        match self.endpoint {
            OwnEndpoint::Posted(row) => Some((row.group, row.version, row.kind)),
            OwnEndpoint::Connect(Connect::Streams(kind) | Connect::Proxy(kind)) => Some(("", "v1", kind)),
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
    /// The release from which responses have a deprecation warning; empty if the version is not deprecated.
    pub deprecated: &'static str,
    /// The release of Kubernetes that no longer serves the version, such as `1.38`; empty if it is not known.
    pub removed: &'static str,
    /// The recommendation of the warning: a version, and after a colon a different kind, if any.
    pub replacement: &'static str,
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

/// A version of a built-in kind: its facts, which come from `kinds.txt`, and its behaviour. Texts that stand for lists
/// are comma-separated.
#[derive(Clone)]
pub struct BuiltIn {
    pub group: &'static str,
    pub version: &'static str,
    /// `group/version`, or just the version in the core group.
    pub api_version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static str,
    pub categories: &'static str,
    /// The verbs, if the version does not support all of them.
    pub verbs: &'static str,
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
    /// The feature gate without which the generation counts nothing; empty if there is none.
    pub generation_gate: &'static str,
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
    /// The annotation that makes an object the default of its kind; empty if there is none. Tables show the mark after
    /// the name.
    pub default_mark: &'static str,
    pub lifecycle: Lifecycle,
    /// The feature gate without which the version is not served; empty if there is none.
    pub gate: &'static str,
    /// The version in which objects are stored, if it differs from this one.
    pub stored_as: Option<&'static str>,
    /// The first part of the keys in kube-apiserver's layout; empty if it is the plural.
    pub folder: &'static str,
    /// The version whose storage hash discovery shows; empty if it is the newest version.
    pub storage_hash: &'static str,
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
        if self.folder.is_empty() { self.plural } else { self.folder }
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
        !self.default_mark.is_empty() && object.str_at(&["metadata", "annotations", self.default_mark]) == "true"
    }

    /// Whether changes increment the generation, given the feature gates.
    pub fn counts_generation(&self, gates: &FeatureGates) -> bool {
        self.generation != Generation::None && (self.generation_gate.is_empty() || gates.is_on(self.generation_gate))
    }

    /// The warning that every response has if the version is deprecated in this release.
    pub fn deprecation(&self, release: Release) -> Option<Text> {
        let Lifecycle { deprecated, removed, replacement, .. } = self.lifecycle;
        let first = minor(deprecated)?;
        (release.minor() >= first).then(|| {
            let mut warning = format!("{} {} is deprecated in v{deprecated}+", self.api_version, self.kind);
            if !removed.is_empty() {
                warning += &format!(", unavailable in v{removed}+");
            }
            if !replacement.is_empty() {
                let (version, kind) = replacement.split_once(':').unwrap_or((replacement, self.kind));
                warning += &format!("; use {version} {kind}");
            }
            Text::from(warning)
        })
    }
}
