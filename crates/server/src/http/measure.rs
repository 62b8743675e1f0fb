//! Metrics of requests.

use std::sync::Arc;

use base::clock;
use base::metrics::{
    BuildInfo, COMPONENT, DeprecatedApi, DrySeries, FieldValidationMode, GroupResource, GroupVersionResource,
    KindSeries, Label, METRICS, RequestSeries, Series, StorageCluster, StoredResource, Terminated, Username,
    VersionInfo, WatchList,
};
use base::request::{RequestInfo, User, Verb};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response};
use machinery::{Text, Value};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use resource::Registry;
use tokio::time::Instant;

use super::body::Body;
use super::health;
use super::respond::header;
use crate::verbs::{Context, Request};

/// Non-resource paths with metrics of their own: the path, and the labels `subresource` and `component`.
const PATHS: [(&str, &str, &str); 9] = [
    ("/healthz", "/healthz", ""),
    ("/livez", "/livez", ""),
    ("/readyz", "/readyz", ""),
    ("/metrics", "/metrics", ""),
    ("/version", "/version", ""),
    ("/openapi/v2", "openapi/v2", ""),
    ("/openapi/v3", "openapi/v3", ""),
    ("/api", "api", COMPONENT),
    ("/apis", "apis", COMPONENT),
];

/// The measurement of one request; requests for paths that are not served have no labels and are not counted.
pub struct Measured {
    started: Instant,
    series: Option<Arc<RequestSeries>>,
    watch: bool,
    field_validation: Option<&'static str>,
}

impl Measured {
    pub fn begin(context: &Context, info: &RequestInfo, headers: &HeaderMap) -> Measured {
        let dry_run = match info.query.get("dryRun") {
            None => "",
            Some(_) if info.query.all("dryRun").all(|value| value == "All") => "All",
            Some(_) => "invalid",
        };
        let series = series(&context.registry, context.objects.series, info, headers);
        let series = series.map(|series| METRICS.requests.get(DrySeries { dry_run, series }));
        Measured {
            started: clock::instant(),
            series,
            watch: info.verb == Verb::Watch,
            field_validation: field_validation(info),
        }
    }

    /// Counts the response. Durations exclude watches, whose response only begins here. The size of a
    /// [`Body::Document`] is observed once it has been sent.
    pub fn end(self, response: &mut Response<Body>) {
        let Some(series) = self.series.filter(|series| series.is_current()) else { return };
        let code = response.status().as_u16();
        if matches!(code, 429 | 504) {
            METRICS.request_terminations.get_or_create(&Terminated { code, series: series.labels().clone() }).inc();
        }
        if !self.watch {
            let seconds = self.started.elapsed().as_secs_f64();
            series.took(seconds);
            if let Some(field_validation) = self.field_validation {
                let mode = FieldValidationMode { field_validation };
                METRICS.field_validation_request_duration_seconds.get_or_create(&mode).observe(seconds);
            }
        }
        let reads = matches!(series.labels().verb, "GET" | "LIST" | "WATCH");
        match response.body_mut() {
            Body::Full(bytes) if reads => series.sizes().observe(bytes.len() as f64),
            Body::Parts { parts, .. } if reads => {
                series.sizes().observe(parts.iter().map(|part| part.len() as f64).sum());
            }
            Body::Document(_, size) if reads => size.histogram = Some(series.sizes().clone()),
            _ => {}
        }
        series.count(code);
    }
}

/// The `fieldValidation` mode of a write; `None` for other requests and invalid modes.
fn field_validation(info: &RequestInfo) -> Option<&'static str> {
    if !matches!(info.verb, Verb::Create | Verb::Update | Verb::Patch) {
        return None;
    }
    match info.query.get("fieldValidation").unwrap_or_default() {
        "" | "Warn" => Some("Warn"),
        "Ignore" => Some("Ignore"),
        "Strict" => Some("Strict"),
        _ => None,
    }
}

/// The labels of a request; `None` if its path is not served.
fn series(registry: &Registry, kinds: KindSeries, info: &RequestInfo, headers: &HeaderMap) -> Option<Series> {
    let (verb, component) = (verb(info, headers)?, COMPONENT);
    if !info.is_resource {
        let (_, subresource, component) = PATHS.into_iter().find(|(path, ..)| *path == info.path)?;
        return Some(Series { verb, subresource: subresource.into(), component, ..Series::default() });
    }
    let resource = registry.get(&info.group, &info.resource)?;
    resource.served(&info.version)?;
    let subresource = match info.subresource.as_str() {
        "" => Text::default(),
        "status" => Text::new_static("status"),
        "scale" => Text::new_static("scale"),
        own => Text::new_static(resource.own_subresource(own)?.name),
    };
    let scope = if !info.authorized_name().is_empty() || info.verb == Verb::Create {
        "resource"
    } else if info.namespace.is_empty() || kinds::is_namespaces(&resource) {
        "cluster"
    } else {
        "namespace"
    };
    let GroupVersionResource { group, version, resource } =
        kinds.of_version(&resource.group, &info.version, &resource.plural);
    Some(Series { verb, group, version, resource, subresource: Label(subresource), scope, component })
}

/// The label `verb`, as kube-apiserver reports it. A GET of a collection that selects one name is a LIST.
fn verb(info: &RequestInfo, headers: &HeaderMap) -> Option<&'static str> {
    let is_apply = |headers: &HeaderMap| header(headers, CONTENT_TYPE).starts_with("application/apply-patch");
    if !info.is_resource {
        return (info.method == http::Method::GET).then_some("GET");
    }
    Some(match info.verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch if is_apply(headers) => "APPLY",
        Verb::Patch => "PATCH",
        Verb::Delete | Verb::DeleteCollection => "DELETE",
        Verb::Proxy | Verb::None => return None,
    })
}

/// A running watch, counted until it is dropped.
pub struct RunningWatch {
    started: Instant,
    series: Series,
    running: Gauge,
    events: Counter,
    dispatched: Counter,
    sizes: Histogram,
}

impl RunningWatch {
    pub fn begin(context: &Context, request: &Request) -> RunningWatch {
        let info = &request.authorized.info;
        let (resource, kinds) = (&request.resource, context.objects.series);
        let labels = kinds.of_version(&resource.group, &request.version.name, &resource.plural);
        let GroupVersionResource { group, version, resource } = labels.clone();
        let scope = if info.namespace.is_empty() { "cluster" } else { "namespace" };
        let series =
            Series { verb: "WATCH", group, version, resource, scope, component: COMPONENT, ..Series::default() };
        // kept, since the series may have ended when the watch does
        let running = METRICS.longrunning_requests.get_or_create_owned(&series);
        running.inc();
        let reads = &METRICS.reads;
        let group_resource = GroupResource { group: labels.group.clone(), resource: labels.resource.clone() };
        RunningWatch {
            started: clock::instant(),
            series,
            running,
            events: reads.watch_events.get_or_create_owned(&labels),
            dispatched: reads.events_dispatched.get_or_create_owned(&group_resource),
            sizes: reads.watch_events_sizes.get_or_create(&labels).clone(),
        }
    }

    /// Counts an event that was encoded in `bytes` bytes.
    pub fn sent(&self, bytes: usize) {
        self.events.inc();
        self.dispatched.inc();
        self.sizes.observe(bytes as f64);
    }

    /// Records the duration of the initial list; called when all of its events have been encoded.
    pub fn listed(&self) {
        let Series { group, version, resource, scope, .. } = self.series.clone();
        let watch_list = WatchList { group, version, resource, scope };
        METRICS
            .reads
            .watch_list_duration_seconds
            .get_or_create(&watch_list)
            .observe(self.started.elapsed().as_secs_f64());
    }
}

impl Drop for RunningWatch {
    fn drop(&mut self) {
        self.running.dec();
    }
}

/// Records a request for a deprecated version.
pub fn deprecated(context: &Context, request: &Request) {
    let (resource, kinds) = (&request.resource, context.objects.series);
    let GroupVersionResource { group, version, resource } =
        kinds.of_version(&resource.group, &request.version.name, &resource.plural);
    let deprecated_api = DeprecatedApi {
        group,
        version,
        resource,
        subresource: request.subresource.as_str().into(),
        removed_release: request.version.built_in.and_then(|row| row.lifecycle.removed).unwrap_or_default(),
    };
    METRICS.requested_deprecated_apis.get_or_create(&deprecated_api).set(1);
}

/// Counts an authenticated request by the kind of its user name.
pub fn authenticated(user: &User) {
    let username = match user.name.as_str() {
        "admin" => "admin",
        "system:anonymous" => return,
        name if name.contains('@') => "email_id",
        _ => "other",
    };
    METRICS.authenticated_user_requests.get_or_create(&Username { username }).inc();
}

/// Sets the metrics of the binary and of the releases that it serves from the document of `/version`.
pub fn version(document: &Value) {
    let text = |name: &str| document.str_at(&[name]).to_owned();
    let build = BuildInfo {
        build_date: text("buildDate"),
        compiler: text("compiler"),
        git_commit: text("gitCommit"),
        git_tree_state: text("gitTreeState"),
        git_version: text("gitVersion"),
        go_version: text("goVersion"),
        major: text("major"),
        minor: text("minor"),
        platform: text("platform"),
    };
    let (major, minor, patch) = health::KUBERNETES_VERSION;
    let release = |major: &str, minor: &str| format!("{}.{}", text(major), text(minor));
    let version = VersionInfo {
        component: "kube",
        binary: format!("{major}.{minor}.{patch}"),
        emulation: release("emulationMajor", "emulationMinor"),
        min_compat: release("minCompatibilityMajor", "minCompatibilityMinor"),
    };
    METRICS.set_version(&build, &version);
}

/// All metrics as a content type and a text, in the format that `accept` selects. Gauges of the registry and of the
/// store are updated first.
pub fn expose(registry: &Registry, store: &dyn store::Store, accept: &str) -> (&'static str, String) {
    METRICS.storage_objects.clear();
    METRICS.reads.resource_version.clear();
    METRICS.resource_objects.clear();
    for ((group, plural), resource) in registry.snapshot().iter() {
        let count = i64::try_from(resource.collection.len()).unwrap_or(i64::MAX);
        let qualified_name = if group.is_empty() { plural.clone() } else { Text::from(format!("{plural}.{group}")) };
        METRICS.storage_objects.get_or_create(&StoredResource { resource: Label(qualified_name) }).set(count);
        let group_resource = GroupResource { group: group.into(), resource: plural.into() };
        METRICS.resource_objects.get_or_create(&group_resource).set(count);
        let (_, newest) = resource.collection.latest();
        METRICS.reads.resource_version.get_or_create(&group_resource).set(i64::try_from(newest).unwrap_or(i64::MAX));
    }
    if let Some(bytes) = store.size() {
        let cluster = StorageCluster { storage_cluster_id: "pintle-0" };
        METRICS.storage_size_bytes.get_or_create(&cluster).set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
    METRICS.expose(accept, clock::machine_seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_match_kube_apiserver() {
        let verb_of = |method: http::Method, path: &str, query: &str, kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
            verb(&RequestInfo::parse(&method, path, query), &headers)
        };
        use http::Method as M;
        let (list, item) = ("/api/v1/namespaces/n/configmaps", "/api/v1/namespaces/n/configmaps/a");
        for (method, path, query, kind, expected) in [
            (M::GET, item, "", "", Some("GET")),
            (M::GET, list, "", "", Some("LIST")),
            (M::GET, list, "fieldSelector=metadata.name%3Da", "", Some("LIST")),
            (M::GET, list, "watch", "", Some("WATCH")),
            (M::PATCH, item, "", "application/merge-patch+json", Some("PATCH")),
            (M::PATCH, item, "", "application/apply-patch+yaml", Some("APPLY")),
            (M::DELETE, list, "", "", Some("DELETE")),
            (M::OPTIONS, item, "", "", None),
            (M::GET, "/readyz", "", "", Some("GET")),
        ] {
            assert_eq!(verb_of(method.clone(), path, query, kind), expected, "{method} {path}?{query} {kind}");
        }
    }
}
