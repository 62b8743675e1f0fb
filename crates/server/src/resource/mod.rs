//! What a served resource is (layer 2): one model for custom resources and for shipped kinds.
//!
//! Invariants: this room knows no requests. A [`Resource`] is immutable; a change of its definition makes a new one and
//! retires the old, which ends its watches. Programs are compiled when they are first needed and live as
//! long as a version with that schema.

pub mod builtin;
mod conversion;
mod definition;
mod names;
mod program;
mod read;
mod registry;
mod storage;
mod third_party;
mod version;

use std::sync::Arc;

use machinery::value::quote;
use machinery::{Status, Text};

use crate::objects::{Collection, Key};

pub use builtin::RuntimeConfig;
pub use conversion::Conversion;
#[cfg(test)]
pub use definition::from_definition;
pub use definition::{Outline, with_empty_schemas};
pub use registry::{Registry, kube_aware};
pub use storage::{CustomForm, upstream_storage};
pub use third_party::{defined, defined_by, registrations};
pub use version::{Column, ScalePaths, Version};

/// The rules of shipped kinds that go beyond their shape; custom resources have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    Custom,
    Shipped(&'static builtin::Shipped),
}

/// A served resource.
pub struct Resource {
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
    pub rules: Rules,
    /// It is a ThirdPartyResource that defines it.
    pub third_party: bool,
    /// Its conversion can't be set up: every request is answered 500.
    pub broken: bool,
    /// Discovery shows it.
    pub established: bool,
    /// Nothing is left to decide about its definition.
    pub settled: bool,
    /// Its definition is being deleted: nothing can be created.
    pub terminating: bool,
    pub collection: Arc<Collection>,
    /// What is served besides the versions, as text: watches end when it changes.
    pub fingerprint: String,
    /// Becomes true when another form of the resource takes over, or the resource is gone.
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

    /// The served version of that name.
    pub fn served(&self, name: &str) -> Option<&Arc<Version>> {
        self.version(name).filter(|version| version.served)
    }

    /// Answered and not stored: only create.
    pub fn is_review(&self) -> bool {
        self.shipped().is_some_and(|s| s.review)
    }

    pub fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    pub fn is_custom(&self) -> bool {
        self.rules == Rules::Custom
    }

    /// PUT without resourceVersion overwrites.
    pub fn unconditional_update(&self) -> bool {
        self.third_party || self.shipped().is_some_and(|shipped| shipped.unconditional_update)
    }

    pub fn shipped(&self) -> Option<&'static builtin::Shipped> {
        match self.rules {
            Rules::Custom => None,
            Rules::Shipped(shipped) => Some(shipped),
        }
    }

    /// The group under which objects are stored.
    fn storage_group(&self) -> Text {
        self.shipped().map_or_else(|| self.group.clone(), |shipped| Text::new_static(shipped.storage_group()))
    }

    pub fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(&self.storage_group(), &self.plural, if self.namespaced { namespace } else { "" }, name)
    }

    pub fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.group, &self.plural, name)
    }

    /// The conflict of a write that was made for another resourceVersion than the stored one.
    pub fn modified(&self, name: &str) -> Status {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(&self.group, &self.plural, name, why)
    }

    /// `group/version`, or just the version in the core group.
    pub fn api_version(&self, version: &Version) -> Text {
        group_version(&self.group, &version.name)
    }

    /// base64 of the first 8 bytes of SHA-256 of `group/version/kind` of the storage version; only where that is served.
    pub fn storage_version_hash(&self) -> Option<String> {
        use base64::Engine as _;
        use sha2::Digest as _;
        let storage = self.storage_version();
        if !storage.served {
            return None;
        }
        // definitions count as stored in v1beta1, as kube-apiserver has them
        let definitions = self.group == builtin::DEFINITION_GROUP;
        let version = if definitions { "v1beta1" } else { storage.name.as_str() };
        let digest = sha2::Sha256::digest(format!("{}/{version}/{}", self.storage_group(), self.kind));
        Some(base64::engine::general_purpose::STANDARD.encode(&digest[..8]))
    }
}

/// What is told of a type that nobody knows.
pub fn unknown_kind(kind: &str, api_version: &str) -> String {
    let (kind, version) = (quote(kind), quote(api_version));
    format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\"")
}

/// `group/version`, or just the version in the core group.
pub fn group_version(group: &str, version: &str) -> Text {
    if group.is_empty() { Text::from(version) } else { Text::from(format!("{group}/{version}")) }
}
