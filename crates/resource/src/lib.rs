//! The model of a served resource, shared by custom resources and built-in kinds.
//!
//! Invariants: this room handles the bodies of requests, but neither users nor HTTP. A [`Resource`] is immutable; a
//! change of its CRD creates a new one and retires the old, which ends its watches. Programs are compiled on first use
//! and live as long as a version with that schema.

mod api_services;
mod body;
pub mod builtin;
mod codec;
mod conversion;
mod definition;
pub mod limits;
mod manifest;
mod names;
mod priority;
mod program;
mod read;
mod registry;
mod row;
pub mod rules;
mod serving;
mod storage;
pub mod strategy;
mod third_party;
mod unreadable;
mod version;

use std::sync::Arc;

use base::request::FeatureGates;
use machinery::value::quote;
use machinery::{Release, Status, Text};
use objects::{Collection, Key};

pub use api_services::api_services;
pub use body::{Document, Format, Strict, type_text};
pub use builtin::RuntimeConfig;
pub use codec::{Codec, Patched, TypeMeta, Unpatched, timestamps};
pub use conversion::Conversion;
pub use definition::{Outline, from_definition, with_empty_schemas};
pub use manifest::{ManifestKinds, ManifestObject, manifest_objects};
pub use priority::kube_aware;
pub use registry::{Registry, Snapshot};
pub use row::from_row;
pub use rules::Subresource;
pub use serving::{Serving, no_such_method};
pub use storage::{CustomForm, upstream_key, upstream_path, upstream_storage};
pub use strategy::Strategy;
pub use third_party::{defined, defined_by, registrations};
pub use version::{Column, ScalePaths, Version};

/// A served resource.
pub struct Resource {
    /// The release that decides how the resource behaves.
    pub release: Release,
    /// The features of the server.
    pub gates: FeatureGates,
    pub group: Text,
    pub plural: Text,
    pub singular: Text,
    pub kind: Text,
    pub list_kind: Text,
    pub short_names: Vec<Text>,
    pub categories: Vec<Text>,
    pub namespaced: bool,
    pub versions: Vec<Arc<Version>>,
    /// Index of the storage version.
    pub storage: usize,
    pub conversion: Conversion,
    /// The row of a built-in kind in its storage version; `None` for custom resources.
    pub built_in: Option<&'static builtin::BuiltIn>,
    /// The behaviour of the endpoints.
    pub serving: &'static Serving,
    /// Additional work of the verbs around writes.
    pub hooks: builtin::Hooks,
    pub deletion: &'static rules::Deletion,
    /// Whether a ThirdPartyResource defines the resource, rather than a CRD.
    pub third_party: bool,
    /// The conversion cannot be set up: every request fails with 500.
    pub broken: bool,
    /// The CRD is established: discovery lists the resource.
    pub established: bool,
    /// The CRD is established and all names of its spec are accepted.
    pub names_accepted: bool,
    /// The CRD is being deleted: nothing can be created.
    pub terminating: bool,
    pub collection: Arc<Collection>,
    /// Everything served besides the versions, as text: watches end when it changes.
    pub fingerprint: String,
    /// Becomes true when a changed resource replaces this one, or when it is removed.
    pub retired: Arc<tokio::sync::watch::Sender<bool>>,
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.plural, self.group)
    }
}

impl Resource {
    pub fn storage_version(&self) -> &Arc<Version> {
        &self.versions[self.storage]
    }

    pub fn version(&self, name: &str) -> Option<&Arc<Version>> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version of that name, if it is served.
    pub fn served(&self, name: &str) -> Option<&Arc<Version>> {
        self.version(name).filter(|version| version.served)
    }

    /// Whether objects are not stored: create is the only verb.
    pub fn is_review(&self) -> bool {
        self.review().is_some()
    }

    /// Whether objects are stored, so that they can be watched.
    pub fn is_stored(&self) -> bool {
        self.built_in.is_none_or(|row| row.review.is_none() && row.computed.is_none())
    }

    /// The review that responds to a POST, if objects are not stored.
    pub fn review(&self) -> Option<builtin::Review> {
        self.built_in.and_then(|row| row.review)
    }

    /// Whether objects are computed when they are read.
    pub fn is_computed(&self) -> bool {
        self.built_in.is_some_and(|row| row.computed.is_some())
    }

    pub fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    pub fn is_custom(&self) -> bool {
        self.built_in.is_none()
    }

    pub fn built_in(&self) -> Option<&'static builtin::BuiltIn> {
        self.built_in
    }

    /// The group under which objects are stored, and which conflicts name.
    pub fn storage_group(&self) -> Text {
        self.built_in().map_or_else(|| self.group.clone(), |built_in| Text::new_static(built_in.storage_group()))
    }

    pub fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(&self.storage_group(), &self.plural, if self.namespaced { namespace } else { "" }, name)
    }

    pub fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.group, &self.plural, name)
    }

    /// The conflict of a write whose resourceVersion is not the stored one.
    pub fn modified(&self, name: &str) -> Status {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(&self.group, &self.plural, name, why)
    }

    /// `group/version`, or just the version in the core group.
    pub fn api_version(&self, version: &Version) -> Text {
        group_version(&self.group, &version.name)
    }

    /// `storageVersionHash` of discovery: base64 of the first 8 bytes of the SHA-256 of the storage version's
    /// `group/version/kind`; `None` if that version is not served.
    pub fn storage_version_hash(&self) -> Option<String> {
        use base64::Engine as _;
        let storage = self.storage_version();
        if !storage.served {
            return None;
        }
        // kube-apiserver still stores CRDs, and the newest kinds for the sake of a downgrade, as v1beta1
        let version = match (self.group.as_str(), self.kind.as_str()) {
            (builtin::DEFINITION_GROUP, _) => "v1beta1",
            ("certificates.k8s.io", "ClusterTrustBundle" | "PodCertificateRequest") => "v1beta1",
            ("scheduling.k8s.io", "PodGroup" | "Workload") => "v1beta1",
            ("storagemigration.k8s.io", _) => "v1beta1",
            ("resource.k8s.io", "DeviceTaintRule") => "v1beta2",
            _ => storage.name.as_str(),
        };
        let digest = base::digest::sha256(format!("{}/{version}/{}", self.storage_group(), self.kind).as_bytes());
        Some(base64::engine::general_purpose::STANDARD.encode(&digest[..8]))
    }
}

/// Go's error for a type that is not registered in the scheme. A version with an empty group is shown without the slash.
pub fn unknown_kind(kind: &str, api_version: &str) -> String {
    let (kind, version) = (quote(kind), quote(api_version.strip_prefix('/').unwrap_or(api_version)));
    format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\"")
}

/// `group/version`, or just the version in the core group.
pub fn group_version(group: &str, version: &str) -> Text {
    if group.is_empty() { Text::from(version) } else { Text::from(format!("{group}/{version}")) }
}
