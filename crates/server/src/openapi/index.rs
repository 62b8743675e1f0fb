//! The served resources by group version, with hashes that change when the documents change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base::digest::{self, Sha512};
use base::task;
use bytes::Bytes;
use machinery::value::write_json_string;
use machinery::{Value, json};
use resource::{Resource, Snapshot, Version};
use tokio::sync::OnceCell;

use super::remote::RemoteDocuments;
use super::{DocumentEncoding, standard};

/// Prefix of every hash, as other releases may write other documents.
const RELEASE: &str = concat!("openapi 2 ", env!("CARGO_PKG_VERSION"));

/// The source of a v3 document, and the document once it has been requested.
pub struct Group {
    /// Its name, such as `apis/apps/v1`.
    pub name: String,
    /// Whether kube-apiserver itself serves the group.
    pub is_built_in: bool,
    /// The resources of a group version; empty in documents of anything else.
    pub resources: Vec<ServedResource>,
    pub hash: String,
    pub kept: CachedDocuments,
}

/// A resource in one version.
#[derive(Clone)]
pub struct ServedResource {
    pub resource: Arc<Resource>,
    pub version: Arc<Version>,
}

/// A document in the encodings that have been requested.
#[derive(Default)]
pub struct CachedDocuments {
    json: OnceCell<Bytes>,
    protobuf: OnceCell<Bytes>,
}

impl CachedDocuments {
    /// The document in an encoding. The first call builds it; concurrent calls wait for that.
    pub async fn get(&self, encoding: DocumentEncoding, build: impl FnOnce() -> Vec<u8>) -> Bytes {
        let slot = match encoding {
            DocumentEncoding::Json => &self.json,
            DocumentEncoding::Protobuf => &self.protobuf,
        };
        slot.get_or_init(async || Bytes::from(task::blocking(build))).await.clone()
    }
}

/// The served group versions at one generation of the registry.
#[derive(Default)]
pub struct Index {
    pub generation: Option<u64>,
    /// By name: `api/v1`, `apis/<group>/<version>`, `apis/<group>` and those of [`standard::FIXED`].
    pub groups: BTreeMap<String, Arc<Group>>,
    pub hash: String,
    pub remotes: RemoteDocuments,
    /// The document of `/openapi/v3`.
    pub body: Bytes,
    /// The digest of each version of a resource, by the version's id.
    digests: HashMap<u64, [u8; 32]>,
}

impl Index {
    /// Builds the index of a snapshot. Digests and documents that have not changed are reused from `old`.
    pub fn new(generation: u64, snapshot: &Snapshot, mut remotes: RemoteDocuments, old: &Index) -> Index {
        let fixed = standard::FIXED.iter().map(|name| ((*name).to_owned(), vec![]));
        let mut served: BTreeMap<String, Vec<ServedResource>> = fixed.collect();
        for resource in snapshot.values().filter(|r| r.established) {
            for version in resource.served_versions() {
                let prefix = if resource.group.is_empty() { "api" } else { "apis/" };
                let name = format!("{prefix}{}/{}", resource.group, version.name);
                if version.built_in.is_some() && !resource.group.is_empty() {
                    served.entry(format!("apis/{}", resource.group)).or_default();
                }
                served
                    .entry(name)
                    .or_default()
                    .push(ServedResource { resource: resource.clone(), version: version.clone() });
            }
        }
        let mut digests = HashMap::new();
        let mut groups = BTreeMap::new();
        let mut all = Sha512::with_prefix(RELEASE);
        for (name, resources) in served {
            let mut hasher = Sha512::with_prefix(RELEASE);
            for resource in &resources {
                let id = resource.version.id;
                let digest = old.digests.get(&id).copied().unwrap_or_else(|| digest_of(resource));
                digests.insert(id, digest);
                hasher.update(&digest);
            }
            let hash = hasher.upper_hex();
            all.update(name.as_bytes());
            all.update(hash.as_bytes());
            let group = match old.groups.get(&name) {
                Some(group) if group.hash == hash => group.clone(),
                _ => Arc::new(Group::new(&name, resources, hash)),
            };
            groups.insert(name, group);
        }
        // paths of this server take precedence
        remotes.all.retain(|remote| !groups.contains_key(&remote.name));
        for remote in &remotes.all {
            [&remote.name, &remote.v3, &remote.v2.to_json()].iter().for_each(|text| all.update(text.as_bytes()));
        }
        let hash = all.upper_hex();
        let body = paths_document(&groups, &remotes);
        Index { generation: Some(generation), groups, hash, remotes, body, digests }
    }

    /// The URL of a document with its hash.
    pub fn location(name: &str, group: &Group) -> String {
        format!("/openapi/v3/{name}?hash={}", group.hash)
    }
}

/// The document of `/openapi/v3`.
fn paths_document(groups: &BTreeMap<String, Arc<Group>>, remotes: &RemoteDocuments) -> Bytes {
    let remote = remotes.all.iter().filter(|remote| !remote.v3.is_empty());
    let remote = remote.map(|remote| (&remote.name, remote.v3.clone()));
    let local = groups.iter().map(|(name, group)| (name, Index::location(name, group)));
    let all: BTreeMap<&String, String> = remote.chain(local).collect();
    let mut out = b"{\"paths\":{".to_vec();
    for (i, (name, location)) in all.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_json_string(name, &mut out);
        out.extend_from_slice(b":{\"serverRelativeURL\":");
        write_json_string(location, &mut out);
        out.push(b'}');
    }
    out.extend_from_slice(b"}}");
    Bytes::from(out)
}

impl Group {
    fn new(name: &str, resources: Vec<ServedResource>, hash: String) -> Group {
        let is_built_in = resources.is_empty() || resources.iter().any(|served| served.version.built_in.is_some());
        Group { name: name.to_owned(), is_built_in, resources, hash, kept: CachedDocuments::default() }
    }
}

/// The digest of everything that documents contain of a resource in one version.
fn digest_of(served: &ServedResource) -> [u8; 32] {
    let ServedResource { resource, version } = served;
    let texts = [&resource.group, &version.name, &resource.plural, &resource.kind, &resource.list_kind];
    let flags = [
        resource.namespaced,
        resource.built_in().is_none(),
        version.status,
        version.scale.is_some(),
        version.preserve_unknown_fields,
    ];
    let identity = json!([
        (texts.into_iter().map(Value::from).collect::<Value>()),
        (flags.into_iter().map(Value::from).collect::<Value>()),
        (version.selectable.iter().map(Value::from).collect::<Value>())
    ]);
    let mut bytes = Vec::with_capacity(4096);
    machinery::value::write_json(&identity, &mut bytes);
    bytes.extend_from_slice(&version.encoded);
    digest::sha256(&bytes)
}
