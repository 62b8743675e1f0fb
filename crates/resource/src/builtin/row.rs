//! The row of a built-in kind, and what follows from it for objects.

use std::sync::LazyLock;

use base::request::FeatureGates;
use machinery::{FieldError, Release, Value};
use schema::apply::FieldSet;
use schema::definition::ApiVersion;
use schema::shape::{Struct, TypeError};

use super::columns::{self, BuiltInColumn};
use crate::rules::{Deletion, MetadataRules};

/// The effect of decoding into the Go type of a kind and encoding it again.
pub enum Form {
    Typed(&'static Struct),
    /// The Go type of that name in the table of `machinery::types`.
    Named(&'static str),
    /// CRDs have a decoder of their own.
    Definition(ApiVersion),
}

/// How a kind is stored whose objects are stored in another group or version.
pub struct StoredAs {
    pub group: &'static str,
    pub to_stored: fn(Value) -> Value,
    pub to_shown: fn(Value) -> Value,
}

/// A field that selectors may use, and where its text is: at the first of these paths that has one. A text that begins with
/// an equals sign stands for itself.
pub type Selectable = (&'static str, &'static [&'static str]);

/// An object in its typed shape.
pub struct Shaped {
    pub value: Value,
    pub unknown: Vec<String>,
    pub error: Option<String>,
    /// All type errors, if decoding went on after the first.
    pub errors: Vec<TypeError>,
}

impl BuiltIn {
    /// Whether an object is the default one of its kind.
    pub fn is_default(&self, object: &Value) -> bool {
        !self.default_mark.is_empty() && object.str_at(&["metadata", "annotations", self.default_mark]) == "true"
    }

    /// Whether the generation counts the changes of an object.
    pub fn counts_generation(&self, gates: &FeatureGates) -> bool {
        self.generation && (self.generation_gate.is_empty() || gates.is_on(self.generation_gate))
    }

    /// Whether the version is deprecated in a release: its warning names the first one.
    pub fn is_deprecated(&self, release: Release) -> bool {
        let first = self.deprecation.split_once(" is deprecated in v1.").and_then(|(_, rest)| rest.split_once('+'));
        first.is_some_and(|(minor, _)| minor.parse().is_ok_and(|minor: u32| release.minor() >= minor))
    }
}

impl Shaped {
    /// The type error that is reported of a JSON document with this text.
    pub fn error_in(self, text: &[u8]) -> Option<String> {
        schema::shape::first_error_in(&self.errors, text).or(self.error)
    }
}

/// Additional work of the verbs around writes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hooks {
    None,
    /// Reserves cluster IPs and node ports.
    Service,
    /// Prevents privilege escalation: authors can only grant permissions that they have.
    Role,
    RoleBinding,
    /// Names and establishes what a CRD defines.
    Definition,
    ThirdPartyResource,
    /// Sets the user of a certificate signing request.
    CertificateRequest,
    /// Requires a permission for the signer to write the status.
    PodCertificateRequest,
    /// Restricts administrative access to devices.
    ResourceClaim,
}

/// The handler in the verbs of a POST of a kind that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    SelfSubject,
    Access,
    SelfAccess,
    SelfRules,
    Token,
    TokenRequest,
    /// Assigns a Pod to a Node.
    Binding,
    /// Deletes a Pod unless a budget forbids it.
    Eviction,
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
    /// Labels, annotations, finalizers and owners of the stored object are kept; a change of other metadata is validated.
    Reset,
    /// Metadata of the stored object are kept.
    Kept,
}

/// A subresource that a kind has besides `status` and `scale`.
#[derive(Debug)]
pub struct OwnSubresource {
    pub name: &'static str,
    pub verbs: &'static [&'static str],
    pub endpoint: OwnEndpoint,
}

/// The behaviour of an own subresource.
#[derive(Clone, Copy, Debug)]
pub enum OwnEndpoint {
    /// Writes a part of the object.
    Part(&'static Part),
    /// Takes an object of another kind, which is responded to and not stored.
    Posted(&'static BuiltIn),
    /// Connects the client with what the object stands for.
    Connect(Connect),
}

/// The strategy of a subresource that writes a part of the object.
pub struct Part {
    /// Restores what the endpoint does not write; the second is the stored object.
    pub prepare: fn(&mut Value, &Value),
    pub validate: fn(&Value, &Value, Release) -> Vec<FieldError>,
    /// The fields that the endpoint does not write, for managedFields.
    pub reset: fn() -> &'static FieldSet,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Part")
    }
}

/// How the server itself writes what follows from a posted object.
pub(super) static AS_SERVER: Part = Part { prepare: keep_owners, validate: |_, _, _| vec![], reset: || &NO_RESETS };

/// Writes of the server itself have no owner.
fn keep_owners(object: &mut Value, old: &Value) {
    let path = ["metadata", "managedFields"];
    match old.at(&path) {
        Some(owners) => object.set_at(&path, owners.clone()),
        None => drop(object.remove_at(&path)),
    }
}

pub(super) static NO_RESETS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[]));

/// The target of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// The log of a container.
    Log,
    /// The streams of a container, by the kind of the options.
    Streams(&'static str),
    /// The HTTP server of a Pod, Service or Node, by the kind of the options.
    Proxy(&'static str),
}

impl OwnSubresource {
    /// Whether a path may follow the name.
    pub fn takes_paths(&self) -> bool {
        matches!(self.endpoint, OwnEndpoint::Connect(Connect::Proxy(_)))
    }

    /// Group, version and kind of its objects, if they are not those of the resource.
    pub fn kind(&self) -> Option<(&'static str, &'static str, &'static str)> {
        match self.endpoint {
            OwnEndpoint::Posted(row) => Some((row.group, row.version, row.kind)),
            OwnEndpoint::Connect(Connect::Streams(kind) | Connect::Proxy(kind)) => Some(("", "v1", kind)),
            OwnEndpoint::Connect(Connect::Log) | OwnEndpoint::Part(_) => None,
        }
    }
}

/// A built-in kind.
pub struct BuiltIn {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    pub status: bool,
    /// The first release that has the status.
    pub status_since: Release,
    /// Whether a create resets the status to its zero value.
    pub fresh_status: bool,
    /// Whether the generation counts the changes of an object.
    pub generation: bool,
    /// The feature gate without which it does not; empty if there is none.
    pub generation_gate: &'static str,
    /// Whether the generation also counts changes of fields that feature gates drop.
    pub counts_gated: bool,
    /// Whether there is a subresource `scale`, of `spec.replicas` and `status.replicas`.
    pub scale: bool,
    pub status_metadata: StatusMetadata,
    pub metadata: MetadataRules,
    pub deletion: Deletion,
    /// Objects that a delete of one object cannot remove, with the reason. A deletecollection removes them, as in
    /// kube-apiserver.
    pub permanent: &'static [(&'static str, &'static str)],
    pub hooks: Hooks,
    /// The review that responds to a POST, if objects of the kind are not stored.
    pub review: Option<Review>,
    /// The fields that the main endpoint resets, if that is not the status alone.
    pub resets: Option<fn() -> &'static FieldSet>,
    /// The fields that the status endpoint resets, if those are not the spec or all but the status.
    pub status_resets: Option<fn() -> &'static FieldSet>,
    /// The objects of a kind that is computed when it is read.
    pub computed: Option<fn() -> Vec<Value>>,
    /// Subresources besides the status.
    pub subresources: &'static [OwnSubresource],
    /// Whether deletecollection is a verb of the kind.
    pub delete_collection: bool,
    /// Whether objects of the status endpoint can be shown as tables.
    pub status_tables: bool,
    /// PUT without resourceVersion overwrites.
    pub unconditional_update: bool,
    /// PUT of an object that does not exist creates it.
    pub create_on_update: bool,
    /// Names that end with `.static.k8s.io` are reserved for manifests.
    pub reserves_names: bool,
    /// Errors show the group in keys of objects.
    pub keyed_by_group: bool,
    /// How errors of field selectors name the kind.
    pub labels: Labels,
    /// Fields besides name and namespace that selectors may use.
    pub selectable: &'static [Selectable],
    pub form: Form,
    pub stored_as: Option<&'static StoredAs>,
    /// The path of a field in the stored form, if objects are prepared and validated in that.
    pub checked_path: Option<fn(&str) -> String>,
    /// The first release that has the version.
    pub since: Release,
    /// The feature gate without which the version is not served; empty if there is none.
    pub gate: &'static str,
    /// Whether a version that `--runtime-config` switches is on by default.
    pub on_by_default: bool,
    /// Text of the warning in every response; empty if the version is not deprecated.
    pub deprecation: &'static str,
    /// The release of Kubernetes that no longer serves the version, such as `1.38`; empty if it is not known.
    pub removed_release: &'static str,
    /// Refuses the body of a create or an update before anything of it is reset.
    pub check_body: fn(&Value) -> Option<FieldError>,
    pub default: fn(&mut Value),
    /// Completes an object that is to be stored by defaults that depend on what was prepared. kube-apiserver sets them when it
    /// reads the stored object.
    pub complete_stored: fn(&mut Value),
    /// Warnings about a new object before it is prepared. They are sent even if the object is refused.
    pub early_warnings: fn(&Value) -> Vec<String>,
    /// Changes an object before it is validated; the second is the stored one.
    pub prepare: fn(&mut Value, Option<&Value>),
    /// Canonicalizes a changed object before its fields get owners.
    pub canonicalize: fn(&mut Value),
    /// The object as it is validated, if that is another one.
    pub validated: fn(&Value) -> Option<Value>,
    pub validate: fn(&Value, Option<&Value>, Release) -> Vec<FieldError>,
    /// Changes an object whose status is written before it is validated; the second is the stored one.
    pub prepare_status: fn(&mut Value, &Value),
    /// The errors of a write to the status subresource.
    pub validate_status: fn(&Value, &Value, Release) -> Vec<FieldError>,
    /// Whether errors of declarative validation never replace others of the same sort at the same field.
    pub keeps_written: bool,
    /// Warnings about what is accepted and not advised.
    pub warnings: fn(&Value, Option<&Value>, Release) -> Vec<String>,
    /// Warnings about a status that is written.
    pub status_warnings: fn(&Value, Release) -> Vec<String>,
    /// Whether tables begin with the name.
    pub name_column: bool,
    /// The annotation that makes an object the default one of its kind, which tables show after its name; empty if there is none.
    pub default_mark: &'static str,
    /// The columns of tables besides the name.
    pub columns: &'static [BuiltInColumn],
    /// The conditions of an object's row in a table.
    pub row_conditions: fn(&Value) -> Option<Value>,
    /// The columns before a release.
    pub former_columns: Option<(Release, &'static [BuiltInColumn])>,
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

pub(super) const BASE: BuiltIn = BuiltIn {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short_names: &[],
    categories: &[],
    namespaced: true,
    status: false,
    status_since: Release::V1_35,
    fresh_status: false,
    generation: false,
    generation_gate: "",
    counts_gated: false,
    scale: false,
    status_metadata: StatusMetadata::Written,
    metadata: MetadataRules::BUILT_IN,
    deletion: Deletion::DEFAULT,
    permanent: &[],
    hooks: Hooks::None,
    review: None,
    resets: None,
    status_resets: None,
    computed: None,
    subresources: &[],
    delete_collection: true,
    status_tables: true,
    unconditional_update: true,
    create_on_update: false,
    reserves_names: false,
    keyed_by_group: false,
    selectable: &[],
    form: Form::Typed(&EMPTY),
    stored_as: None,
    checked_path: None,
    since: Release::V1_35,
    gate: "",
    on_by_default: false,
    deprecation: "",
    removed_release: "",
    check_body: |_| None,
    default: |_| {},
    complete_stored: |_| {},
    early_warnings: |_| vec![],
    prepare: |_, _| {},
    validate: |_, _, _| vec![],
    prepare_status: |_, _| {},
    labels: Labels::Default,
    canonicalize: |_| {},
    validated: |_| None,
    validate_status: |_, _, _| vec![],
    keeps_written: false,
    warnings: |_, _, _| vec![],
    status_warnings: |_, _| vec![],
    name_column: true,
    default_mark: "",
    columns: &[columns::AGE],
    row_conditions: |_| None,
    former_columns: None,
};

static EMPTY: Struct = Struct { name: "", fields: &[] };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_deprecated_since_a_release() {
        let cases = [
            ("", [false, false, false]),
            ("a/v1 A is deprecated in v1.16+, unavailable in v1.22+", [true, true, true]),
            ("a/v1 A is deprecated in v1.36+, unavailable in v1.39+; use a/v2 A", [false, true, true]),
            ("a/v1 A is deprecated in v1.38+, unavailable in v1.41+", [false, false, false]),
        ];
        for (deprecation, want) in cases {
            let row = BuiltIn { deprecation, ..BASE };
            assert_eq!(Release::ALL.map(|release| row.is_deprecated(release)), want, "{deprecation}");
        }
    }
}
