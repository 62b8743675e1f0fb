//! Discovery: the documents of the served groups, versions and resources.
//!
//! Invariant: everything is derived from a registry snapshot on request; a change of a CRD costs nothing here. The
//! aggregated documents are cached until the registry or an APIService changes.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{digest, task};
use kinds::CATALOGUE;
use machinery::priority::kube_aware;
use machinery::{Text, Value, json};
use resource::builtin::GroupVersionKind;
use resource::{Registry, Resource, Snapshot, Version, group_version};

use tokio::sync::Mutex;

use crate::aggregation::{Aggregation, Remote};

/// The discovery documents of a registry and the aggregated API servers.
pub struct Discovery {
    registry: Arc<Registry>,
    /// The aggregated API servers.
    aggregation: Arc<Aggregation>,
    /// The cached aggregated documents. The lock is held while new ones are built, for which other requests wait.
    aggregated: Mutex<Option<Aggregated>>,
}

/// The state that documents are built from: the generation of the registry and that of the APIServices.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BuiltFrom {
    registry: u64,
    aggregation: u64,
}

#[derive(Clone)]
struct Aggregated {
    built_from: BuiltFrom,
    core: Document,
    groups: Document,
}

#[derive(Clone)]
struct Document {
    value: Arc<Value>,
    json: bytes::Bytes,
    etag: String,
}

/// Renders documents as responses; implemented by `http`.
pub trait Render {
    type Response;
    /// Whether the best acceptable form is the aggregated one.
    fn wants_aggregated(&self) -> bool;
    /// Responds with an unaggregated document. `cbor` is whether kube-apiserver serves it in CBOR, too.
    fn document(&self, value: &Value, cbor: bool) -> Self::Response;
    /// Responds with an aggregated document, which is also passed as compact JSON.
    fn aggregated(&self, value: &Value, json: &bytes::Bytes, etag: &str) -> Self::Response;
    /// Responds with 304.
    fn not_modified(&self, etag: &str) -> Self::Response;
}

const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

fn texts(list: &[impl Borrow<str>]) -> Value {
    list.iter().map(|text| Value::from(text.borrow())).collect()
}

impl Discovery {
    pub fn new(registry: Arc<Registry>, aggregation: Arc<Aggregation>) -> Discovery {
        Discovery { registry, aggregation, aggregated: Mutex::new(None) }
    }

    /// The versions of a group that an established resource serves, a CRD announces or an aggregated API server serves,
    /// by priority.
    fn versions(&self, group: &str) -> Vec<Text> {
        let (snapshot, remotes) = (self.registry.snapshot(), self.aggregation.all());
        let served = established(&snapshot, group)
            .flat_map(|resource| resource.served_versions())
            .map(|version| version.name.clone());
        let announced = self.registry.names().announced().into_iter().filter(|(of, _)| of == group);
        let aggregated = remotes.iter().filter(|remote| remote.group == group).map(|remote| remote.version.clone());
        let mut versions = vec![];
        for version in served.chain(announced.map(|(_, version)| version)).chain(aggregated) {
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        sort_versions(group, &mut versions, &remotes);
        versions
    }

    /// The groups with their versions, both by priority. `announced` are group versions that CRDs declare although no
    /// resource is served in them.
    fn groups(&self, announced: BTreeSet<(Text, Text)>) -> Vec<(Text, Vec<Text>)> {
        let (snapshot, remotes) = (self.registry.snapshot(), self.aggregation.all());
        let established = snapshot.values().filter(|resource| resource.established);
        let served =
            established.flat_map(|resource| resource.served_versions().map(|version| (&resource.group, &version.name)));
        let aggregated = remotes.iter().map(|remote| (&remote.group, &remote.version));
        let announced = announced.iter().map(|(group, version)| (group, version));
        let mut groups: BTreeMap<&Text, Vec<Text>> = BTreeMap::new();
        for (group, version) in served.chain(aggregated).chain(announced) {
            let versions = groups.entry(group).or_default();
            if !versions.contains(version) {
                versions.push(version.clone());
            }
        }
        groups.remove(&Text::default());
        let mut groups: Vec<(Text, Vec<Text>)> =
            groups.into_iter().map(|(group, versions)| (group.clone(), versions)).collect();
        groups.iter_mut().for_each(|(group, versions)| sort_versions(group, versions, &remotes));
        groups.sort_by_key(|(group, versions)| std::cmp::Reverse(group_priority(group, versions, &remotes)));
        groups
    }

    /// The unaggregated document of a path; `None` if it is not a discovery path or nothing is served there.
    pub fn document(&self, path: &str) -> Option<Value> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["api"] => Some(api_versions()),
            ["apis"] => {
                let groups = self.groups(self.registry.names().announced());
                let groups = groups.iter().map(|(group, versions)| api_group(group, versions)).collect();
                Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": (Value::Array(groups))}))
            }
            ["apis", group] => {
                let versions = self.versions(group);
                if group.is_empty() || versions.is_empty() {
                    return None;
                }
                let mut document = api_group(group, &versions);
                document.set_at(&["kind"], "APIGroup".into());
                document.set_at(&["apiVersion"], "v1".into());
                Some(document)
            }
            ["api", version] => self.resources("", version),
            ["apis", group, version] if !group.is_empty() => self.resources(group, version),
            _ => None,
        }
    }

    fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let snapshot = self.registry.snapshot();
        let mut list = vec![];
        for resource in established(&snapshot, group) {
            if let Some(version) = resource.served(version) {
                api_resources(resource, version, &mut list);
            }
        }
        if list.is_empty() {
            return None;
        }
        let group_version = group_version(group, version);
        let mut document = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": list});
        if !group.is_empty() {
            document.set_at(&["apiVersion"], "v1".into());
        }
        Some(document)
    }

    /// Responds to a discovery path; `None` if there is no document. `etag` is the value of `If-None-Match`.
    pub async fn respond<R: Render>(&self, path: &str, etag: &str, render: &R) -> Option<R::Response> {
        if matches!(path, "/api" | "/apis") && render.wants_aggregated() {
            let aggregated = self.aggregated().await;
            let document = if path == "/api" { aggregated.core } else { aggregated.groups };
            if etag == document.etag {
                return Some(render.not_modified(&document.etag));
            }
            return Some(render.aggregated(&document.value, &document.json, &document.etag));
        }
        let group = path.strip_prefix("/apis/").and_then(|rest| rest.split_once('/')).map(|(group, _)| group);
        let is_custom_version = group.is_some_and(|group| !CATALOGUE.is_built_in_group(group));
        // the list of all groups may take long
        let document = if path == "/apis" { task::blocking(|| self.document(path)) } else { self.document(path) };
        document.map(|document| render.document(&document, !is_custom_version))
    }

    /// The aggregated documents of the current state.
    async fn aggregated(&self) -> Aggregated {
        let mut kept = self.aggregated.lock().await;
        let (registry, aggregation) = (self.registry.generation(), self.aggregation.generation());
        let built_from = BuiltFrom { registry, aggregation };
        if let Some(documents) = kept.as_ref().filter(|documents| documents.built_from == built_from) {
            return documents.clone();
        }
        let documents = task::blocking(|| {
            let core = self.discovery_list(&[(Text::default(), self.versions(""))]);
            let groups = self.discovery_list(&self.groups(BTreeSet::new()));
            Aggregated { built_from, core, groups }
        });
        *kept = Some(documents.clone());
        documents
    }

    fn discovery_list(&self, groups: &[(Text, Vec<Text>)]) -> Document {
        let (snapshot, remotes) = (self.registry.snapshot(), self.aggregation.all());
        let mut items = vec![];
        for (group, versions) in groups {
            let mut listed = vec![];
            for name in versions {
                if let Some(remote) = remotes.iter().find(|remote| remote.group == *group && remote.version == *name) {
                    listed.push(remote.document());
                    continue;
                }
                let served = established(&snapshot, group);
                let resources: Value =
                    served.filter_map(|resource| Some(discovery_resource(resource, resource.served(name)?))).collect();
                listed.push(json!({"version": (name.clone()), "resources": resources, "freshness": "Current"}));
            }
            let mut item = json!({"metadata": {}, "versions": (Value::Array(listed))});
            item.put_text(&["metadata", "name"], group.as_str());
            items.push(item);
        }
        let list = json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
            "items": (Value::Array(items))
        });
        let mut json = list.to_json();
        let etag = format!("\"{}\"", digest::sha512_hex(json.as_bytes()));
        json.push('\n');
        Document { value: Arc::new(list), json: json.into(), etag }
    }
}

fn established<'a>(snapshot: &'a Snapshot, group: &'a str) -> impl Iterator<Item = &'a Arc<Resource>> {
    let from = (Text::from(group), Text::default());
    let of_group = snapshot.range(from..).map(|(_, resource)| resource).take_while(move |r| r.group == group);
    of_group.filter(|resource| resource.established)
}

/// Sorts versions by the priority in their APIServices, for built-in groups the one that kube-apiserver registers, then
/// by name as Kubernetes orders versions.
fn sort_versions(group: &str, versions: &mut [Text], remotes: &[Arc<Remote>]) {
    let priority = |version: &Text| {
        let remote = remotes.iter().find(|remote| remote.group == group && remote.version == *version);
        remote.map_or_else(|| CATALOGUE.version_priority(group, version), |remote| remote.version_priority)
    };
    versions.sort_by(|a, b| priority(b).cmp(&priority(a)).then_with(|| kube_aware(a, b)));
}

/// The priority of a group: the highest one of the APIServices of its versions.
fn group_priority(group: &str, versions: &[Text], remotes: &[Arc<Remote>]) -> i64 {
    let of_version = |version: &Text| {
        let remote = remotes.iter().find(|remote| remote.group == group && remote.version == *version);
        remote.map_or_else(|| i64::from(CATALOGUE.group_priority(group)), |remote| remote.group_priority)
    };
    versions.iter().map(of_version).max().unwrap_or_default()
}

fn api_versions() -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]
    })
}

fn api_group(group: &str, versions: &[Text]) -> Value {
    let entry = |version: &Text| json!({"groupVersion": (group_version(group, version)), "version": (version.clone())});
    let preferred = versions.first().map(entry).unwrap_or_default();
    let versions: Value = versions.iter().map(entry).collect();
    json!({"name": group, "versions": versions, "preferredVersion": preferred})
}

struct Subresource {
    name: &'static str,
    /// The kind of its objects, if it is not that of the resource.
    kind: Option<GroupVersionKind>,
    verbs: &'static [&'static str],
}

/// The subresources of a version, in the order of discovery: by name if the resource has routes.
fn subresources(resource: &Resource, own_version: &Version) -> Vec<Subresource> {
    let own = resource.own_subresources().iter();
    let mut all: Vec<Subresource> =
        own.map(|own| Subresource { name: own.name, kind: own.kind(), verbs: &own.verbs }).collect();
    if own_version.status {
        all.push(Subresource { name: "status", kind: None, verbs: &SUBRESOURCE_VERBS });
    }
    if own_version.scale.is_some() {
        let kind = Some(GroupVersionKind { group: "autoscaling", version: "v1", kind: "Scale" });
        all.push(Subresource { name: "scale", kind, verbs: &SUBRESOURCE_VERBS });
    }
    if resource.serving.routes {
        all.sort_by_key(|entry| entry.name);
    }
    // the group and version of the document are left out
    for GroupVersionKind { group, version, .. } in all.iter_mut().filter_map(|entry| entry.kind.as_mut()) {
        if (*group, *version) == (resource.group.as_str(), own_version.name.as_str()) {
            (*group, *version) = ("", "");
        }
    }
    all
}

/// Adds the short names and the categories of a resource to its entry.
fn add_names(resource: &Resource, entry: &mut Value) {
    for (field, names) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !names.is_empty() {
            entry.set_at(&[field], texts(names));
        }
    }
}

/// Appends the entries of a resource and its subresources in an APIResourceList.
fn api_resources(resource: &Resource, version: &Version, out: &mut Vec<Value>) {
    let entry = |name: String, singular: &str, kind: &str, verbs: &[&str]| {
        let namespaced = resource.namespaced;
        json!({"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": (texts(verbs))})
    };
    let mut main = entry(resource.plural.to_string(), &resource.singular, &resource.kind, &resource.verbs());
    add_names(resource, &mut main);
    let is_stored = !resource.is_review() && !resource.is_computed();
    let hashes = resource.gates.has(base::request::Feature::StorageVersionHash);
    if let Some(hash) = resource.storage_version_hash().filter(|_| is_stored && hashes) {
        main.set_at(&["storageVersionHash"], Value::from(hash));
    }
    out.push(main);
    for sub in subresources(resource, version) {
        let kind = sub.kind.map_or(resource.kind.as_str(), |of| of.kind);
        let mut entry = entry(format!("{}/{}", resource.plural, sub.name), "", kind, sub.verbs);
        if let Some(GroupVersionKind { group, version, .. }) = sub.kind.filter(|of| !of.version.is_empty()) {
            entry.set_at(&["group"], group.into());
            entry.set_at(&["version"], version.into());
        }
        out.push(entry);
    }
}

fn response_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn discovery_resource(resource: &Resource, version: &Version) -> Value {
    // resources with routes leave out the group and version, which the enclosing document has
    let kind = if resource.serving.routes {
        response_kind("", "", &resource.kind)
    } else {
        response_kind(&resource.group, &version.name, &resource.kind)
    };
    let mut entry = json!({
        "resource": (resource.plural.clone()), "responseKind": (kind.clone()),
        "scope": (if resource.namespaced { "Namespaced" } else { "Cluster" }),
        "singularResource": (resource.singular.clone()), "verbs": (texts(&resource.verbs()))
    });
    add_names(resource, &mut entry);
    let of = |sub: Subresource| -> Value {
        let kind = sub.kind.map_or_else(|| kind.clone(), |of| response_kind(of.group, of.version, of.kind));
        json!({"subresource": (sub.name), "responseKind": kind, "verbs": (texts(sub.verbs))})
    };
    let subresources: Vec<Value> = subresources(resource, version).into_iter().map(of).collect();
    if !subresources.is_empty() {
        entry.set_at(&["subresources"], Value::Array(subresources));
    }
    entry
}
