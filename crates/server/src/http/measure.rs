//! What is counted of requests (api-machinery 18.3).

use http::{HeaderMap, Response};
use machinery::Text;
use tokio::time::Instant;

use super::body::Body;
use super::health;
use crate::clock;
use crate::metrics::{
    Answered, BuildInfo, COMPONENT, DrySeries, GroupResource, GroupVersionResource, Label, METRICS, RequestKind,
    Series, StoredResource, Terminated,
};
use crate::request::{RequestInfo, Verb};
use crate::resource::Registry;
use crate::verbs::Request;

/// Paths that are no resources and counted by themselves.
const PATHS: [&str; 6] = ["/healthz", "/livez", "/metrics", "/readyz", "/version", "/openapi/v2"];

/// A request that is measured; none for what is not served.
pub struct Measured {
    began: Instant,
    of: Option<DrySeries>,
    watch: bool,
}

impl Measured {
    pub fn begin(registry: &Registry, info: &RequestInfo, headers: &HeaderMap) -> Measured {
        let dry_run = if info.query.get("dryRun").is_some_and(|all| !all.is_empty()) { "All" } else { "" };
        let of = series(registry, info, headers).map(|series| DrySeries { dry_run, series });
        Measured { began: clock::instant(), of, watch: info.verb == Verb::Watch }
    }

    /// Counts the answer. Watches are not done yet and have no duration.
    pub fn end(self, answer: &Response<Body>) {
        let Some(of) = self.of else { return };
        let code = answer.status().as_u16();
        if matches!(code, 429 | 504) {
            METRICS.request_terminations.get_or_create(&Terminated { code, series: of.series.clone() }).inc();
        }
        if !self.watch {
            let seconds = self.began.elapsed().as_secs_f64();
            METRICS.request_duration_seconds.get_or_create(&of).observe(seconds);
            METRICS.request_sli_duration_seconds.get_or_create(&of.series).observe(seconds);
        }
        if let Body::Full(bytes) = answer.body() {
            METRICS.response_sizes.get_or_create(&of.series).observe(bytes.len() as f64);
        }
        METRICS.request.get_or_create(&Answered { code, of }).inc();
    }
}

/// The labels of a request to what is served.
fn series(registry: &Registry, info: &RequestInfo, headers: &HeaderMap) -> Option<Series> {
    let (verb, component) = (verb(info, headers)?, COMPONENT);
    if !info.is_resource {
        let path = PATHS.into_iter().find(|path| *path == info.path)?;
        return Some(Series { verb, subresource: path.into(), component, ..Series::default() });
    }
    let resource = registry.get(&info.group, &info.resource)?;
    resource.served(&info.version)?;
    let subresource = match info.subresource.as_str() {
        known @ ("" | "status" | "scale" | "finalize" | "token") => Text::new_static(known_subresource(known)),
        _ => return None,
    };
    let scope = match (info.authorized_name().is_empty(), info.namespace.is_empty() || info.resource == "namespaces") {
        (false, _) => "resource",
        (true, _) if info.verb == Verb::Create => "resource",
        (true, false) => "namespace",
        (true, true) => "cluster",
    };
    let (group, version) = (Label::from(&resource.group), Label::from(&info.version));
    let resource = Label::from(&resource.plural);
    Some(Series { verb, group, version, resource, subresource: Label(subresource), scope, component })
}

fn known_subresource(name: &str) -> &'static str {
    ["status", "scale", "finalize", "token"].into_iter().find(|known| *known == name).unwrap_or_default()
}

/// The verb as dashboards know it. A GET that selects one name is a LIST.
fn verb(info: &RequestInfo, headers: &HeaderMap) -> Option<&'static str> {
    let applies = |headers: &HeaderMap| {
        let kind = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        kind.starts_with("application/apply-patch")
    };
    if !info.is_resource {
        return (info.method == http::Method::GET).then_some("GET");
    }
    Some(match info.verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch if applies(headers) => "APPLY",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
        Verb::Proxy | Verb::None => return None,
    })
}

/// `mutating` or `readOnly`.
pub fn request_kind(verb: Verb, method: &http::Method) -> RequestKind {
    let reads = matches!(verb, Verb::Get | Verb::List | Verb::Watch)
        || (verb == Verb::None && matches!(*method, http::Method::GET | http::Method::HEAD));
    RequestKind { request_kind: if reads { "readOnly" } else { "mutating" } }
}

/// A watch that runs: counted until it is dropped.
pub struct Running {
    series: Series,
    pub events: prometheus_client::metrics::counter::Counter,
}

impl Running {
    pub fn begin(request: &Request) -> Running {
        let info = &request.authorized.info;
        let (group, version) = (Label::from(&request.resource.group), Label::from(&request.version.name));
        let resource = Label::from(&request.resource.plural);
        let counted =
            GroupVersionResource { group: group.clone(), version: version.clone(), resource: resource.clone() };
        let scope = if info.namespace.is_empty() { "cluster" } else { "namespace" };
        let of = Series { verb: "WATCH", group, version, resource, scope, component: COMPONENT, ..Series::default() };
        METRICS.longrunning_requests.get_or_create(&of).inc();
        Running { series: of, events: METRICS.watch_events.get_or_create_owned(&counted) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        METRICS.longrunning_requests.get_or_create(&self.series).dec();
    }
}

/// Everything, for a scraper that accepts this; what is counted by looking is looked at now.
pub fn expose(registry: &Registry, accept: &str) -> (&'static str, String) {
    METRICS.storage_objects.clear();
    METRICS.resource_objects.clear();
    for ((group, plural), resource) in registry.snapshot().iter() {
        let count = i64::try_from(resource.collection.len()).unwrap_or(i64::MAX);
        let whole = if group.is_empty() { plural.clone() } else { Text::from(format!("{plural}.{group}")) };
        METRICS.storage_objects.get_or_create(&StoredResource { resource: Label(whole) }).set(count);
        let apart = GroupResource { group: group.into(), resource: plural.into() };
        METRICS.resource_objects.get_or_create(&apart).set(count);
    }
    let (major, minor, patch) = health::KUBERNETES_VERSION;
    let git_version = format!("v{major}.{minor}.{patch}+pintle.{}", env!("CARGO_PKG_VERSION"));
    METRICS.set_build(&BuildInfo { major, minor, git_version, platform: "linux/amd64" });
    METRICS.expose(accept, clock::now_seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_those_of_dashboards() {
        let verb_of = |method: http::Method, path: &str, query: &str, kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
            verb(&RequestInfo::parse(&method, path, query), &headers)
        };
        use http::Method as M;
        let (list, item) = ("/api/v1/namespaces/n/configmaps", "/api/v1/namespaces/n/configmaps/a");
        for (method, path, query, kind, wanted) in [
            (M::GET, item, "", "", Some("GET")),
            (M::GET, list, "", "", Some("LIST")),
            (M::GET, list, "fieldSelector=metadata.name%3Da", "", Some("LIST")),
            (M::GET, list, "watch", "", Some("WATCH")),
            (M::PATCH, item, "", "application/merge-patch+json", Some("PATCH")),
            (M::PATCH, item, "", "application/apply-patch+yaml", Some("APPLY")),
            (M::DELETE, list, "", "", Some("DELETECOLLECTION")),
            (M::OPTIONS, item, "", "", None),
            (M::GET, "/readyz", "", "", Some("GET")),
        ] {
            assert_eq!(verb_of(method.clone(), path, query, kind), wanted, "{method} {path}?{query} {kind}");
        }
    }
}
