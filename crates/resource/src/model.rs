//! A served resource: what discovery says of it, its versions, and where its objects are.

use std::ops::Deref;
use std::sync::Arc;

use base::request::FeatureGates;
use bytes::Bytes;
use machinery::{Release, Status, Text};
use objects::{Collection, Key, Objects};
use schema::metadata::MetadataContext;
use tokio::sync::watch;

use super::builtin::OwnSubresource;
use super::conversion::Conversion;
use super::names::DefinitionNames;
use super::rules::Subresource;
use super::scheme::group_version;
use super::serving::{Serving, no_such_method};
use super::version::Version;
use super::{builtin, rules};

/// A resource, wherever its objects are.
#[derive(Clone)]
pub struct Facts {
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
    /// Everything served besides the versions, as text: watches end when it changes.
    pub fingerprint: String,
    /// The names of the CRD.
    pub names: Option<Arc<DefinitionNames>>,
    /// The CRD as it is stored; empty for other resources.
    pub stored: Bytes,
}

/// A served resource: its facts, which contexts share, and its objects.
#[derive(Clone)]
pub struct Resource {
    facts: Arc<Facts>,
    pub collection: Arc<Collection>,
    /// Becomes true when a changed resource replaces this one, or when it is removed.
    pub retired: Arc<watch::Sender<bool>>,
}

impl Deref for Resource {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.plural, self.group)
    }
}

impl Resource {
    pub fn new(facts: Facts, collection: Arc<Collection>) -> Resource {
        Resource { facts: Arc::new(facts), collection, retired: Arc::new(watch::Sender::new(false)) }
    }

    /// A resource that shares the facts of a resource of another context.
    pub fn sharing(facts: Arc<Facts>, objects: &Objects) -> Resource {
        let collection = objects.collection(&facts.storage_group(), &facts.plural);
        Resource { facts, collection, retired: Arc::new(watch::Sender::new(false)) }
    }

    /// A built-in resource with the objects of another context. It is never retired.
    pub fn with_objects_of(&self, objects: &Objects) -> Resource {
        let collection = objects.collection(&self.storage_group(), &self.plural);
        Resource { collection, ..self.clone() }
    }

    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// The facts, which can be changed as long as the resource is not served.
    pub fn facts_mut(&mut self) -> &mut Facts {
        Arc::make_mut(&mut self.facts)
    }
}

impl Facts {
    pub fn storage_version(&self) -> &Arc<Version> {
        &self.versions[self.storage]
    }

    pub fn version(&self, name: &str) -> Option<&Arc<Version>> {
        self.versions.iter().find(|version| version.name == name)
    }

    pub fn served(&self, name: &str) -> Option<&Arc<Version>> {
        self.version(name).filter(|version| version.served)
    }

    pub fn served_versions(&self) -> impl Iterator<Item = &Arc<Version>> {
        self.versions.iter().filter(|version| version.served)
    }

    /// Whether objects are not stored: create is the only verb.
    pub fn is_review(&self) -> bool {
        self.review().is_some()
    }

    /// Whether objects are stored, so that they can be watched.
    pub fn is_stored(&self) -> bool {
        self.built_in.is_none_or(builtin::BuiltIn::is_stored)
    }

    /// The review that responds to a POST, if objects are not stored.
    pub fn review(&self) -> Option<builtin::Review> {
        self.built_in.and_then(builtin::BuiltIn::review)
    }

    /// Whether objects are computed when they are read.
    pub fn is_computed(&self) -> bool {
        self.built_in.is_some_and(|row| row.computed().is_some())
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

    pub fn metadata_context(&self) -> MetadataContext {
        MetadataContext { namespaced: self.namespaced, release: self.release }
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
        // kube-apiserver still stores CRDs, and the newest kinds for the sake of a downgrade, in a beta version
        let own = self.built_in.and_then(|row| row.storage_hash);
        let version = own.unwrap_or(storage.name.as_str());
        let digest = base::digest::sha256(format!("{}/{version}/{}", self.storage_group(), self.kind).as_bytes());
        Some(base64::engine::general_purpose::STANDARD.encode(&digest[..8]))
    }
}

/// The endpoints that follow from the facts.
impl Facts {
    /// The verbs that discovery lists.
    pub fn verbs(&self) -> Vec<&'static str> {
        let own = self.built_in.and_then(|row| row.verbs.clone());
        let verbs = if self.terminating { self.serving.terminating_verbs } else { self.serving.verbs };
        own.unwrap_or_else(|| verbs.to_vec())
    }

    pub fn has_delete_collection(&self) -> bool {
        self.verbs().contains(&"deletecollection")
    }

    /// The subresources that only this kind has.
    pub fn own_subresources(&self) -> &'static [OwnSubresource] {
        self.built_in.map_or(&[], |row| &row.subresources)
    }

    /// A subresource that only this kind has.
    pub fn own_subresource(&self, name: &str) -> Option<&'static OwnSubresource> {
        self.built_in.and_then(|row| row.own_subresource(name))
    }

    /// Whether the objects of an endpoint can be shown as a table.
    pub fn has_tables(&self, subresource: Subresource) -> bool {
        match subresource {
            Subresource::Status => self.built_in.is_none_or(|row| row.status.is_some_and(|status| status.has_tables)),
            Subresource::Own(_) => false,
            _ => !self.is_review(),
        }
    }

    /// Whether the resource may be served if its group is one of kube-apiserver's own.
    pub fn is_allowed_in_reserved_groups(&self) -> bool {
        self.built_in.is_some() || self.third_party
    }

    /// The 405 of a verb that the resource does not support.
    pub fn verb_not_supported(&self, verb: &str) -> Status {
        if self.serving.routes {
            no_such_method()
        } else {
            Status::method_not_supported(&self.group, &self.plural, verb)
        }
    }

    /// The 404 of a subresource that the resource does not have.
    pub fn no_subresource(&self, name: &str) -> Status {
        if self.serving.routes { Status::no_such_resource() } else { self.not_found(name) }
    }

    /// The Go type of objects, as errors print it; `None` for custom resources.
    pub fn go_type(&self) -> Option<String> {
        self.built_in.map(|row| format!("*{}.{}", row.go_package(), row.kind))
    }

    /// The Go type of lists, as errors print it.
    pub fn go_list_type(&self) -> String {
        match self.built_in {
            Some(row) => format!("*{}.{}", row.go_package(), self.list_kind),
            None => "*unstructured.UnstructuredList".to_owned(),
        }
    }
}
