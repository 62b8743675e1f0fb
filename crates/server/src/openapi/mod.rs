//! OpenAPI: v2 and v3 documents, built on request and cached.
//!
//! Invariants: a change of a CRD costs nothing here. The next request builds a new [`Index`], whose hashes are
//! computed from the content of schemas, each of which is read once. A document is built on the first request for
//! it and cached until its hash changes; that of v2 is kept compressed, and rebuilt group by group. The ETag is the
//! hash, so that a 304 needs no document.
//!
//! `index.rs` groups the served resources by group version, `document.rs` writes documents, `merged.rs` keeps that
//! of v2. `routes` generates paths, `definitions.rs` the schemas of built-in kinds, and `schema.rs` those of custom
//! resources. `remote.rs` adds the documents of aggregated API servers.

mod definitions;
mod deflated;
mod document;
mod index;
mod merged;
mod pieces;
mod proto;
mod remote;
mod routes;
mod schema;
mod standard;

use std::sync::Arc;

use base::request::Query;
use base::{clock, task};
use bytes::Bytes;
use resource::Registry;
use tokio::sync::Mutex;

use index::Index;
use merged::Merged;
use remote::RemoteDocuments;

use crate::aggregation::Aggregation;

/// The response to a request for a document.
pub enum Response {
    /// A document. With `expires`, an HTTP date, it was requested by its hash: it is immutable and may be cached until
    /// then.
    Document {
        content_type: &'static str,
        body: Bytes,
        coding: ContentCoding,
        etag: String,
        expires: Option<String>,
    },
    NotModified {
        etag: String,
    },
    /// The requested hash is not the current one; `location` is the URL of the document with the current hash.
    Moved {
        location: String,
    },
    NotFound,
    NotAcceptable,
}

/// Whether the body of a response is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    Identity,
    Gzip,
}

/// The version of OpenAPI: 2.0 or 3.0.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// The prefix of references to schemas.
    fn prefix(self) -> &'static str {
        match self {
            Dialect::V2 => "#/definitions/",
            Dialect::V3 => "#/components/schemas/",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DocumentEncoding {
    Json,
    Protobuf,
}

/// The OpenAPI documents of the resources in a registry and of aggregated API servers.
pub struct OpenApi {
    registry: Arc<Registry>,
    aggregation: Arc<Aggregation>,
    /// The lock is held while a new index is built, for which other requests wait.
    index: Mutex<Arc<Index>>,
    merged: Merged,
}

impl OpenApi {
    pub fn new(registry: Arc<Registry>, aggregation: Arc<Aggregation>) -> OpenApi {
        OpenApi { registry, aggregation, index: Mutex::default(), merged: Merged::default() }
    }

    /// Responds to `/openapi/v2`, `/openapi/v3` and `/openapi/v3/…`. `etag` is the value of `If-None-Match`,
    /// `coding` the best one that the client accepts.
    pub async fn respond(
        &self,
        path: &str,
        query: &Query,
        accept: &str,
        etag: &str,
        coding: ContentCoding,
    ) -> Response {
        match path {
            "/openapi/v2" => self.merged(accept, etag, coding).await,
            "/openapi/v3" => self.paths(etag).await,
            _ => match path.strip_prefix("/openapi/v3/") {
                Some(name) => self.group(name, query, accept, etag).await,
                None => Response::NotFound,
            },
        }
    }

    /// The index of the current registry. It is rebuilt if the registry or an aggregated API server has changed.
    async fn index(&self) -> Arc<Index> {
        let mut kept = self.index.lock().await;
        let generation = self.registry.generation();
        let is_current = kept.remotes.generation == self.aggregation.openapi_generation();
        if kept.generation != Some(generation) || !is_current {
            let remotes = RemoteDocuments::new(&self.aggregation);
            *kept = task::blocking(|| Arc::new(Index::new(generation, &self.registry.snapshot(), remotes, &kept)));
        }
        kept.clone()
    }

    /// `/openapi/v3`, which ignores Accept and has the content type `text/plain`, as in kube-apiserver.
    async fn paths(&self, etag: &str) -> Response {
        let index = self.index().await;
        let current = quoted(&index.hash);
        if etag == current {
            return Response::NotModified { etag: current };
        }
        let body = index.body.clone();
        Response::Document {
            content_type: "text/plain; charset=utf-8",
            body,
            coding: ContentCoding::Identity,
            etag: current,
            expires: None,
        }
    }

    /// `/openapi/v3/<name>`.
    async fn group(&self, name: &str, query: &Query, accept: &str, etag: &str) -> Response {
        let Some(group) = self.index().await.groups.get(name).cloned() else { return Response::NotFound };
        let Some(encoding) = negotiate(accept, "v3") else { return Response::NotAcceptable };
        let requested_hash = query.get("hash").unwrap_or_default();
        if !requested_hash.is_empty() && requested_hash != group.hash {
            return Response::Moved { location: Index::location(name, &group) };
        }
        let expires = (!requested_hash.is_empty()).then(|| http_date(clock::machine_seconds() + YEAR_SECONDS));
        let current = quoted(&group.hash);
        if etag == current {
            return Response::NotModified { etag: current };
        }
        let release = self.registry.release();
        let build = || document::group(&group, encoding, release);
        let body = group.kept.get(encoding, build).await;
        let content_type = content_type(Dialect::V3, encoding);
        Response::Document { content_type, body, coding: ContentCoding::Identity, etag: current, expires }
    }

    /// `/openapi/v2`: all groups in one document.
    async fn merged(&self, accept: &str, etag: &str, coding: ContentCoding) -> Response {
        let Some(encoding) = negotiate(accept, "v2") else { return Response::NotAcceptable };
        let current = quoted(&self.index().await.hash);
        if etag == current {
            return Response::NotModified { etag: current };
        }
        let mut slot = self.merged.lock(encoding).await;
        // the index may have changed while another request built the document
        let index = self.index().await;
        let document = slot.document(&index, encoding, self.registry.release());
        drop(slot);
        Response::Document {
            content_type: content_type(Dialect::V2, encoding),
            body: match coding {
                ContentCoding::Identity => document.plain(),
                ContentCoding::Gzip => document.gzip(),
            },
            coding,
            etag: quoted(&document.hash),
            expires: None,
        }
    }
}

const YEAR_SECONDS: i64 = 365 * 24 * 60 * 60;

fn quoted(hash: &str) -> String {
    format!("\"{hash}\"")
}

fn content_type(dialect: Dialect, encoding: DocumentEncoding) -> &'static str {
    match (encoding, dialect) {
        (DocumentEncoding::Json, _) => "application/json",
        (DocumentEncoding::Protobuf, Dialect::V2) => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        (DocumentEncoding::Protobuf, Dialect::V3) => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    }
}

/// The encoding that a client prefers: clauses are sorted by quality, then in the order of the header. An empty header
/// accepts any; `None` is a 406.
fn negotiate(accept: &str, version: &str) -> Option<DocumentEncoding> {
    if accept.trim().is_empty() {
        return Some(DocumentEncoding::Json);
    }
    let quality = |clause: &str| {
        let q = clause.split(';').skip(1).find_map(|p| p.trim().strip_prefix("q=")?.trim().parse::<f64>().ok());
        q.unwrap_or(1.0)
    };
    let mut clauses: Vec<&str> = accept.split(',').map(str::trim).collect();
    clauses.sort_by(|a, b| quality(b).total_cmp(&quality(a)));
    clauses.iter().find_map(|clause| {
        let media = clause.split(';').next().unwrap_or_default().trim();
        let prefix = "application/com.github.proto-openapi.spec.";
        match media {
            "application/json" | "application/*" | "*/*" => Some(DocumentEncoding::Json),
            _ => match media.strip_prefix(prefix)?.strip_prefix(version)? {
                ".v1.0+protobuf" | "@v1.0+protobuf" => Some(DocumentEncoding::Protobuf),
                _ => None,
            },
        }
    })
}

/// A Unix time in seconds as an HTTP date (RFC 9110, IMF-fixdate).
fn http_date(seconds: i64) -> String {
    let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
    let date = jiff::Timestamp::from_second(seconds).and_then(|time| printer.timestamp_to_rfc9110_string(&time));
    date.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use machinery::{Value, json};

    use super::*;
    use kinds::CATALOGUE;
    use objects::Objects;
    use resource::from_definition;

    fn crd(schema: Value) -> Value {
        let names = json!({"plural": "kites", "singular": "kite", "kind": "Kite", "listKind": "KiteList"});
        json!({
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": (names.clone()),
                "versions": [
                    {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
                    {"name": "v2", "served": false, "storage": false}
                ]
            },
            "status": {
                "acceptedNames": names,
                "conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]
            }
        })
    }

    fn document(response: Response) -> (String, Value) {
        let Response::Document { body, etag, .. } = response else { panic!("no document") };
        (etag, machinery::value::decode(&body).unwrap())
    }

    /// A document is cached until its content changes, and URLs with an old hash redirect to the current one.
    #[tokio::test]
    async fn documents_follow_crds() {
        let store = Arc::new(store::Memory::default());
        let objects =
            Objects::open(objects::Storage::own(store), Default::default(), Box::new(|_, _, _| {})).await.unwrap();
        let registry = Arc::new(Registry::new(&kinds::CATALOGUE, Default::default()));
        let serve = |schema: Value| {
            let resource =
                from_definition(&crd(schema).to_json().into(), &objects, &Default::default(), &Default::default());
            registry.replace(&"example.com".into(), &"kites".into(), resource);
        };
        let built_in =
            resource::from_row(CATALOGUE.row_of("v1", "ConfigMap").unwrap(), &[], &objects, &Default::default());
        let (group, plural) = (built_in.group.clone(), built_in.plural.clone());
        registry.replace(&group, &plural, Some(built_in));
        let openapi = OpenApi::new(registry.clone(), Arc::default());
        let get = async |path: &str, query: &str, etag: &str| {
            openapi.respond(path, &Query::parse(query), "", etag, ContentCoding::Identity).await
        };
        let path = "/openapi/v3/apis/example.com/v1";

        serve(json!({"type": "object"}));
        let (first, tree) = document(get(path, "", "").await);
        assert!(tree.at(&["components", "schemas", "com.example.v1.Kite", "properties"]).is_some());
        assert!(matches!(get(path, "", &first).await, Response::NotModified { .. }));
        assert!(matches!(get("/openapi/v3/apis/example.com/v2", "", "").await, Response::NotFound));
        serve(json!({"type": "object"}));
        assert!(matches!(get(path, "", &first).await, Response::NotModified { .. }), "an unchanged CRD keeps the hash");

        serve(json!({"type": "object", "title": "t"}));
        let stale = format!("hash={}", first.trim_matches('"'));
        let Response::Moved { location } = get(path, &stale, "").await else { panic!("not moved") };
        let (path, query) = location.split_once('?').unwrap();
        assert!(matches!(get(path, query, "").await, Response::Document { expires: Some(_), .. }));

        // a schema that is not structural is published as a free-form object, and v2 contains all groups
        serve(json!({"properties": {"a": {"items": []}}}));
        let (_, tree) = document(get("/openapi/v2", "", "").await);
        let kite = tree.at(&["definitions", "com.example.v1.Kite"]).unwrap();
        assert!(kite.get("properties").is_none() && kite.str_at(&["type"]) == "object");
        assert!(tree.at(&["paths", "/api/v1/configmaps"]).is_some());
    }

    #[test]
    fn encodings_are_negotiated() {
        let proto = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        let old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
        let cases = [
            ("", Some(DocumentEncoding::Json)),
            ("*/*", Some(DocumentEncoding::Json)),
            ("text/plain, application/*;q=0.1", Some(DocumentEncoding::Json)),
            (
                "application/json;q=0.5, application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
                Some(DocumentEncoding::Protobuf),
            ),
            (proto, Some(DocumentEncoding::Protobuf)),
            (old, Some(DocumentEncoding::Protobuf)),
            ("application/com.github.proto-openapi.spec.v3.v1.0+protobuf", None),
            ("application/yaml", None),
            ("text/plain", None),
        ];
        for (accept, expected) in cases {
            assert_eq!(negotiate(accept, "v2"), expected, "{accept}");
        }
    }

    #[test]
    fn dates_are_http_dates() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
