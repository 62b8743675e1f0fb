//! The OpenAPI documents of an aggregated API server.

use std::sync::Arc;

use base::request::User;
use bytes::Bytes;
use http::header::{ACCEPT, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use machinery::{Map, Value};

use super::{Aggregation, Remote, identity};
use crate::limits;

/// The parts of the OpenAPI documents of a server that concern its group version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Documents {
    /// URL of the v3 document, `/openapi/v3/apis/GROUP/VERSION?hash=…`; empty if the server has none.
    pub v3: String,
    /// The paths of the group version in the v2 document, with the parameters and definitions that they refer to; null if
    /// the server has none.
    pub v2: Arc<Value>,
    /// The ETag of the v2 document; empty if the server sends none.
    pub(super) etag: String,
}

/// Requests the documents of a server. Those that cannot be read are taken from `known`; those that do not exist are empty.
pub async fn read(aggregation: &Aggregation, remote: &Remote, known: &Documents) -> Documents {
    let mut documents = known.clone();
    if let Some(v3) = read_v3(aggregation, remote).await {
        documents.v3 = v3;
    }
    if let Some((v2, etag)) = read_v2(aggregation, remote, &known.etag).await {
        (documents.v2, documents.etag) = (v2, etag);
    }
    documents
}

/// The URL of the v3 document, empty if there is none; `None` if the server fails.
async fn read_v3(aggregation: &Aggregation, remote: &Remote) -> Option<String> {
    let response = get(aggregation, remote, "/openapi/v3", "").await?;
    match response.status() {
        StatusCode::NOT_FOUND => Some(String::new()),
        StatusCode::OK => {
            let paths = body(response).await?;
            let name = remote.root();
            let entry = paths.at(&["paths", name.trim_start_matches('/'), "serverRelativeURL"]);
            Some(entry.and_then(Value::as_str).unwrap_or_default().to_owned())
        }
        _ => None,
    }
}

/// The part of the v2 document that concerns the group version, and its ETag; `None` if the server fails or the document
/// has not changed.
async fn read_v2(aggregation: &Aggregation, remote: &Remote, etag: &str) -> Option<(Arc<Value>, String)> {
    let response = get(aggregation, remote, "/openapi/v2", etag).await?;
    match response.status() {
        StatusCode::NOT_FOUND => Some(Default::default()),
        StatusCode::OK => {
            let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).unwrap_or_default().to_owned();
            let document = body(response).await?;
            Some((Arc::new(base::task::blocking(|| part_of(&document, &format!("{}/", remote.root())))), etag))
        }
        _ => None,
    }
}

async fn get(aggregation: &Aggregation, remote: &Remote, path: &str, etag: &str) -> Option<Response<Incoming>> {
    let mut request = Request::get(path).body(Empty::<Bytes>::new()).ok()?;
    let headers = request.headers_mut();
    // without groups, as in kube-apiserver: every authenticated user may read these documents
    identity::introduce(&User { name: "system:aggregator".into(), ..User::default() }, headers).ok()?;
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if !etag.is_empty() {
        headers.insert(IF_NONE_MATCH, HeaderValue::from_str(etag).ok()?);
    }
    aggregation.forward(remote, request).await.ok()
}

async fn body(response: Response<Incoming>) -> Option<Value> {
    let bytes = Limited::new(response.into_body(), limits::REMOTE_OPENAPI_BYTES_MAX).collect().await.ok()?.to_bytes();
    base::task::blocking(|| machinery::value::decode(&bytes)).ok()
}

/// The paths of a v2 document below a prefix, and the parameters and definitions that they refer to, directly or
/// indirectly.
fn part_of(document: &Value, prefix: &str) -> Value {
    let object = |key: &str| document.get(key).and_then(Value::as_object);
    let paths = object("paths").into_iter().flat_map(Map::iter).filter(|(path, _)| path.starts_with(prefix));
    let paths: Map = paths.map(|(path, item)| (path.clone(), item.clone())).collect();
    let mut unread = vec![];
    paths.iter().for_each(|(_, item)| references(item, &mut unread));
    let mut part = machinery::json!({"parameters": {}, "definitions": {}});
    while let Some(reference) = unread.pop() {
        let Some((section, name)) = reference.split_once('/') else { continue };
        if part.get(section).is_none_or(|known| known.get(name).is_some()) {
            continue;
        }
        if let Some(found) = object(section).and_then(|all| all.get(name)) {
            references(found, &mut unread);
            part.set_at(&[section, name], found.clone());
        }
    }
    part.set_at(&["paths"], Value::Object(paths));
    part
}

/// Appends the references in a value, as `definitions/NAME` or `parameters/NAME`.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| match field {
            Value::String(text) if key == "$ref" => found.extend(text.strip_prefix("#/").map(str::to_owned)),
            _ => references(field, found),
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn part_has_the_paths_of_the_version_and_what_they_refer_to() {
        let to = |name: &str| json!({"$ref": (format!("#/definitions/{name}"))});
        let document = json!({
            "parameters": {"p": {"in": "query"}, "q": {}},
            "paths": {"/apis/a/v1/x": {"get": {"schema": (to("X")), "parameters": [{"$ref": "#/parameters/p"}]}}, "/apis/a/v10/y": {"schema": (to("Y"))}, "/version": {}},
            "definitions": {"X": {"properties": {"x": (to("X")), "list": [(to("Z")), (to("None"))]}}, "Y": {}, "Z": {"$ref": 1}}
        });
        let part = part_of(&document, "/apis/a/v1/");
        let keys = |part: &Value, key: &str| {
            let keys: Vec<String> =
                part.get(key).unwrap().as_object().unwrap().iter().map(|(key, _)| key.to_string()).collect();
            keys.join(" ")
        };
        assert_eq!(keys(&part, "parameters"), "p");
        assert_eq!((keys(&part, "paths").as_str(), keys(&part, "definitions").as_str()), ("/apis/a/v1/x", "X Z"));
        assert_eq!(keys(&part_of(&Value::Null, "/"), "paths"), "");
    }
}
