//! The resources of an aggregated API server, in the format of aggregated discovery.

use base::request::User;
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
    let list = machinery::value::decode(&body.to_bytes()).ok()?;
    let resources = list.get("resources").and_then(Value::as_array).unwrap_or_default();
    Some(json!({"version": (remote.version.clone()), "resources": (aggregated(resources)), "freshness": "Current"}))
}

/// The entries of an APIResourceList, converted.
fn aggregated(resources: &[Value]) -> Value {
    let mut out: Vec<Value> = vec![];
    for resource in resources {
        let name = resource.str_at(&["name"]);
        let text = |key: &str| Value::from(resource.str_at(&[key]));
        let kind = json!({"group": (text("group")), "version": (text("version")), "kind": (text("kind"))});
        let verbs = resource.get("verbs").cloned().unwrap_or(Value::Array(vec![]));
        match name.split_once('/') {
            None => {
                let scope = match resource.get("namespaced").and_then(Value::as_bool) {
                    Some(true) => "Namespaced",
                    _ => "Cluster",
                };
                let mut entry = json!({
                    "resource": name, "responseKind": kind, "scope": scope, "singularResource": (text("singularName")),
                    "verbs": verbs
                });
                for list in ["shortNames", "categories"] {
                    if let Some(names) = resource.get(list) {
                        entry.set_at(&[list], names.clone());
                    }
                }
                out.push(entry);
            }
            Some((of, subresource)) => {
                let entry = json!({"subresource": subresource, "responseKind": kind, "verbs": verbs});
                if let Some(owner) = out.iter_mut().find(|owner| owner.str_at(&["resource"]) == of) {
                    let mut known = owner.get("subresources").and_then(Value::as_array).unwrap_or_default().to_vec();
                    known.push(entry);
                    owner.set_at(&["subresources"], Value::Array(known));
                }
            }
        }
    }
    Value::Array(out)
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
}
