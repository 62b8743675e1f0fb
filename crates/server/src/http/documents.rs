//! Non-resource endpoints: discovery, OpenAPI, health, version, metrics.

use std::collections::BTreeSet;

use base::request::RequestInfo;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, IF_NONE_MATCH};
use http::{HeaderMap, Method, Response, StatusCode};
use machinery::{Status, Value};
use resource::{Registry, no_such_method};

use super::body::Body;
use super::chain::{Edge, HttpResponse};
use super::negotiate::{self, Accepted, Media};
use super::respond::{self, Reply, header, set};
use super::{backup, measure};
use crate::discovery::Render as _;
use crate::openapi::ContentCoding;
use crate::verbs;

/// Paths that are served regardless of the registered resources.
const INDEX: [&str; 14] = [
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/readyz",
    "/version",
];

/// Nothing is served below the documents of the issuer.
const ISSUER_PATHS: [&str; 2] = ["/.well-known/openid-configuration/", "/openid/v1/jwks/"];

impl Edge {
    /// Waits for CRDs that another server has just committed before discovery and OpenAPI are served, if the store is
    /// shared and reachable.
    pub(super) async fn catch_up_for(&self, path: &str) {
        let store = self.context.objects.store();
        if store.is_shared() && store.health().is_ok() && (path.starts_with("/api") || path.starts_with("/openapi")) {
            let _ = verbs::catch_up(&self.context).await;
        }
    }

    /// Responds to a request for a non-resource path; unknown paths return 404.
    pub(super) async fn document(&self, info: &RequestInfo, headers: &HeaderMap, reply: &Reply) -> HttpResponse {
        match info.path.as_str() {
            path @ ("/healthz" | "/livez" | "/readyz") => return self.health.respond(path, &info.query),
            "/healthz/" | "/livez/" | "/readyz/" => return page_not_found(),
            "/" | "/index.html" => {
                let paths: Value = self.index().into_iter().map(Value::from).collect();
                return pretty(&machinery::json!({"paths": paths}), reply);
            }
            _ => {}
        }
        if let Some(page) = self.pages.respond(&info.path, headers, reply, || self.index()) {
            return page;
        }
        let path = info.path.trim_end_matches('/');
        if path == "/version" {
            return self.version(info, headers, reply);
        }
        // metrics and backups are those of the whole server, so owners of workspaces do not get them
        if info.path == "/metrics" && !self.is_workspace() {
            return self.metrics(header(headers, ACCEPT));
        }
        if path == backup::PATH && info.method == Method::POST && !self.is_workspace() {
            let body = backup::backup(self.context.objects.store()).await;
            return body.map_or_else(|status| reply.status(&status), Response::new);
        }
        if let Some(check) = ["/healthz/", "/livez/", "/readyz/"].iter().find_map(|parent| path.strip_prefix(parent)) {
            return self.health.check(check);
        }
        self.api_document(info, headers, reply).await
    }

    /// Responds to a request for OpenAPI or discovery.
    async fn api_document(&self, info: &RequestInfo, headers: &HeaderMap, reply: &Reply) -> HttpResponse {
        let path = info.path.trim_end_matches('/');
        if info.path.starts_with("/openapi/v2/") {
            return page_not_found();
        }
        if path == "/openapi/v2" || path == "/openapi/v3" || path.starts_with("/openapi/v3/") {
            let (accept, etag) = (header(headers, ACCEPT), header(headers, IF_NONE_MATCH));
            let coding = if reply.gzip { ContentCoding::Gzip } else { ContentCoding::Identity };
            return openapi(self.openapi.respond(&info.path, &info.query, accept, etag, coding).await, reply);
        }
        if info.path.starts_with("//") || info.path.starts_with("/apis//") {
            return page_not_found();
        }
        let is_built_in = is_built_in(path, &self.context.registry);
        if let Some(response) = self.discovery.respond(path, header(headers, IF_NONE_MATCH), reply).await {
            // only built-in routes check the method and the media types
            let error = if is_built_in { route_error(info, headers, self.served) } else { None };
            return error.map_or(response, |status| reply.status(&status));
        }
        if is_built_in || path.starts_with("/version/") {
            return reply.status(&Status::no_such_resource());
        }
        page_not_found()
    }

    fn version(&self, info: &RequestInfo, headers: &HeaderMap, reply: &Reply) -> HttpResponse {
        match route_error(info, headers, &[Media::Json]) {
            Some(status) => reply.status(&status),
            None => pretty(&self.version, reply),
        }
    }

    /// All served paths, which `/` lists.
    fn index(&self) -> BTreeSet<String> {
        let pages = self.pages.paths();
        let mut paths: BTreeSet<String> = INDEX.into_iter().chain(pages).map(str::to_owned).collect();
        let remotes = self.context.aggregation.all();
        let aggregated = remotes.iter().map(|remote| (remote.group.clone(), remote.version.clone()));
        let served = self.context.registry.snapshot();
        let local = served.values().flat_map(|resource| {
            resource.served_versions().map(|version| (resource.group.clone(), version.name.clone()))
        });
        for (group, version) in local.chain(aggregated).filter(|(group, _)| !group.is_empty()) {
            paths.insert(format!("/apis/{group}"));
            paths.insert(format!("/apis/{group}/{version}"));
        }
        for endpoint in ["/healthz", "/livez", "/readyz"] {
            paths.extend(self.health.names(endpoint).map(|check| format!("{endpoint}/{check}")));
        }
        paths
    }

    /// The OIDC discovery document and the JWKS with which third parties verify ServiceAccount tokens; `None` for other
    /// paths.
    pub(super) async fn issuer_document(
        &self,
        info: &RequestInfo,
        headers: &HeaderMap,
        reply: &Reply,
    ) -> Option<HttpResponse> {
        let accounts = &self.context.authentication.accounts;
        let (content_type, document) = match info.path.trim_end_matches('/') {
            "/.well-known/openid-configuration" => ("application/json", accounts.configuration().await?),
            "/openid/v1/jwks" => ("application/jwk-set+json", accounts.key_set().await),
            path if ISSUER_PATHS.iter().any(|parent| path.starts_with(parent)) => {
                return Some(reply.status(&Status::no_such_resource()));
            }
            _ => return None,
        };
        if info.method != Method::GET {
            return Some(reply.status(&no_such_method()));
        }
        if !negotiate::lists(header(headers, ACCEPT), &[content_type]) {
            return Some(reply.status(&negotiate::not_available(content_type)));
        }
        let mut response = respond::text(200, &document.to_json());
        set(response.headers_mut(), CONTENT_TYPE.as_str(), content_type);
        set(response.headers_mut(), "cache-control", "public, max-age=3600");
        Some(response)
    }

    fn metrics(&self, accept: &str) -> HttpResponse {
        let (format, text) = measure::expose(&self.context.registry, &**self.context.objects.store(), accept);
        let mut response = respond::text(200, &text);
        set(response.headers_mut(), CONTENT_TYPE.as_str(), format);
        response
    }
}

fn page_not_found() -> HttpResponse {
    respond::text(404, "404 page not found\n")
}

/// A document in indented JSON.
pub(super) fn pretty(document: &Value, reply: &Reply) -> HttpResponse {
    reply.tree(StatusCode::OK, document, &Accepted { pretty: Some(true), ..Accepted::JSON })
}

/// Whether a path belongs to the discovery documents of built-in groups.
fn is_built_in(path: &str, registry: &Registry) -> bool {
    let group = path.strip_prefix("/apis/").and_then(|rest| rest.split_once('/')).map(|(group, _)| group);
    group.is_some_and(|group| registry.is_own_group(group)) || path == "/api" || path.starts_with("/api/")
}

/// The error of a route that serves only GET, and takes and returns only these media types.
fn route_error(info: &RequestInfo, headers: &HeaderMap, media: &[Media]) -> Option<Status> {
    if info.method != Method::GET {
        return Some(no_such_method());
    }
    if !negotiate::takes(header(headers, CONTENT_TYPE), media) {
        return Some(negotiate::unsupported_body());
    }
    let names: Vec<&str> = media.iter().map(|media| media.as_str()).collect();
    if !negotiate::lists(header(headers, ACCEPT), &names) {
        return Some(negotiate::not_available(&negotiate::media_list(media)));
    }
    None
}

/// Converts the result of an OpenAPI request to an HTTP response.
pub(super) fn openapi(found: crate::openapi::Response, reply: &Reply) -> HttpResponse {
    use crate::openapi::Response as Found;
    match found {
        Found::NotFound => respond::response(StatusCode::NOT_FOUND, Body::Empty),
        Found::NotAcceptable => respond::response(StatusCode::NOT_ACCEPTABLE, Body::Empty),
        Found::NotModified { etag } => reply.not_modified(&etag),
        Found::Moved { location } => {
            let mut response = respond::response(StatusCode::MOVED_PERMANENTLY, Body::Empty);
            set(response.headers_mut(), "location", &location);
            response
        }
        Found::Document { content_type, body, coding, etag, expires } => {
            let response = match coding {
                ContentCoding::Identity => reply.bytes(StatusCode::OK, content_type, body),
                ContentCoding::Gzip => reply.compressed(content_type, body),
            };
            let mut response = cached(response, &etag);
            if let Some(expires) = expires {
                set(response.headers_mut(), "cache-control", "public, immutable");
                set(response.headers_mut(), "expires", &expires);
            }
            response
        }
    }
}

/// Adds the headers with which clients cache a response and revalidate it by its ETag.
pub(super) fn cached(mut response: HttpResponse, etag: &str) -> HttpResponse {
    set(response.headers_mut(), "etag", etag);
    set(response.headers_mut(), "vary", "Accept");
    response
}

impl crate::discovery::Render for Reply {
    type Response = HttpResponse;

    fn wants_aggregated(&self) -> bool {
        self.aggregated.is_some()
    }

    fn document(&self, value: &Value, cbor: bool) -> HttpResponse {
        let served = if cbor { self.served } else { &Media::USUAL };
        match self.plain.iter().find(|accepted| served.contains(&accepted.media)) {
            Some(accepted) => self.built_in(value, accepted),
            None => self.status_in(&negotiate::not_acceptable(served), None),
        }
    }

    fn aggregated(&self, value: &Value, json: &Bytes, etag: &str) -> HttpResponse {
        let accepted = self.aggregated.unwrap_or(Accepted::JSON);
        let response = match accepted.media {
            Media::Json if !self.is_pretty(&accepted) => {
                self.record(|| value.clone());
                self.bytes(StatusCode::OK, Media::Json.as_str(), json.clone())
            }
            _ => self.built_in(value, &accepted),
        };
        let form = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let mut response = cached(response, etag);
        set(response.headers_mut(), CONTENT_TYPE.as_str(), &[accepted.media.as_str(), form].concat());
        set(response.headers_mut(), "cache-control", "public");
        response
    }

    fn not_modified(&self, etag: &str) -> HttpResponse {
        cached(respond::response(StatusCode::NOT_MODIFIED, Body::Empty), etag)
    }
}
