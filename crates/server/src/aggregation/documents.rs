//! The resources of an aggregated API server, in the format of aggregated discovery.

use std::collections::HashMap;

use base::request::User;
use base::task;
use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt as _, Empty, Limited};
use machinery::{Text, Value, json};

use super::{Aggregation, Remote, identity};

/// The entry of a version whose resources are unknown.
pub fn stale(version: &Text) -> Value {
    json!({"version": (version.clone()), "freshness": "Stale"})
}

/// Requests the resources of a server.
pub async fn read(aggregation: &Aggregation, remote: &Remote) -> Option<Value> {
    let mut request = Request::get(remote.root()).body(Empty::<Bytes>::new()).ok()?;
    identity::introduce(&User::system("system:kube-aggregator"), request.headers_mut()).ok()?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let response = aggregation.forward(remote, request).await.ok()?;
    if response.status() != http::StatusCode::OK {
        return None;
    }
    let body = Limited::new(response.into_body(), base::limits::WEBHOOK_RESPONSE_BYTES_MAX).collect().await.ok()?;
    let body = body.to_bytes();
    let resources = task::blocking(|| {
        let list = machinery::value::decode(&body).ok()?;
        Some(aggregated(list.items_at(&["resources"])))
    })?;
    Some(json!({"version": (remote.version.clone()), "resources": resources, "freshness": "Current"}))
}

/// The entries of an APIResourceList, converted. A subresource belongs to the first resource of its name that precedes it.
fn aggregated(resources: &[Value]) -> Value {
    let (mut out, mut by_name): (Vec<ResourceEntry>, HashMap<&str, usize>) = Default::default();
    for resource in resources {
        let name = resource.str_at(&["name"]);
        match name.split_once('/') {
            None => {
                by_name.entry(name).or_insert(out.len());
                out.push(ResourceEntry { entry: entry_of(name, resource), subresources: vec![] });
            }
            Some((of, subresource)) => {
                if let Some(owner) = by_name.get(of).and_then(|index| out.get_mut(*index)) {
                    let (kind, verbs) = (kind_of(resource), verbs_of(resource));
                    owner.subresources.push(json!({"subresource": subresource, "responseKind": kind, "verbs": verbs}));
                }
            }
        }
    }
    out.into_iter().map(ResourceEntry::into_value).collect()
}

/// A resource with its subresources.
struct ResourceEntry {
    entry: Value,
    subresources: Vec<Value>,
}

impl ResourceEntry {
    fn into_value(mut self) -> Value {
        if !self.subresources.is_empty() {
            self.entry.set_at(&["subresources"], Value::Array(self.subresources));
        }
        self.entry
    }
}

fn entry_of(name: &str, resource: &Value) -> Value {
    let scope = match resource.get("namespaced").and_then(Value::as_bool) {
        Some(true) => "Namespaced",
        _ => "Cluster",
    };
    let singular = resource.str_at(&["singularName"]);
    let (kind, verbs) = (kind_of(resource), verbs_of(resource));
    let mut entry =
        json!({"resource": name, "responseKind": kind, "scope": scope, "singularResource": singular, "verbs": verbs});
    for list in ["shortNames", "categories"] {
        if let Some(names) = resource.get(list) {
            entry.set_at(&[list], names.clone());
        }
    }
    entry
}

fn kind_of(resource: &Value) -> Value {
    let text = |key: &str| Value::from(resource.str_at(&[key]));
    json!({"group": (text("group")), "version": (text("version")), "kind": (text("kind"))})
}

fn verbs_of(resource: &Value) -> Value {
    resource.get("verbs").cloned().unwrap_or(Value::Array(vec![]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_lists_are_converted() {
        let list = json!([
            {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get"], "shortNames": ["th"]},
            {"name": "things/status", "singularName": "", "namespaced": true, "kind": "Thing", "verbs": ["patch"]},
            {"name": "nothing/status", "kind": "Nothing", "verbs": []},
            {"name": "shelves", "group": "x.io", "version": "v2", "kind": "Shelf"}
        ]);
        let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
        let want = json!([
            {
                "resource": "things", "responseKind": (kind("", "", "Thing")), "scope": "Namespaced",
                "singularResource": "thing", "verbs": ["get"], "shortNames": ["th"],
                "subresources": [{"subresource": "status", "responseKind": (kind("", "", "Thing")), "verbs": ["patch"]}]
            },
            {
                "resource": "shelves", "responseKind": (kind("x.io", "v2", "Shelf")), "scope": "Cluster",
                "singularResource": "", "verbs": []
            }
        ]);
        assert_eq!(aggregated(list.as_array().unwrap()), want);
    }

    /// The list is copied once: with a copy for each subresource this would take hours.
    #[test]
    fn many_subresources_are_converted_at_once() {
        const MANY: usize = 40_000;
        let subresources = (0..MANY).map(|i| json!({"name": (format!("things/s{i}")), "verbs": ["get"]}));
        let list: Vec<Value> = std::iter::once(json!({"name": "things"})).chain(subresources).collect();
        let entries = aggregated(&list);
        assert_eq!(entries.as_array().unwrap()[0].get("subresources").and_then(Value::as_array).unwrap().len(), MANY);
    }
}
