//! Tests random histories: a list plus the events after it must equal every later list, and all pages of a list must
//! have one revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use machinery::{Value, json};

use super::*;
use crate::test_server;

const BOATS: &str = "/apis/harbor.example.com/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SEEDS: u64 = 40;
const STEPS: usize = 60;

/// The views that are listed and watched: each has a scope and a selector.
const VIEWS: [(&str, &str); 8] = [
    ("", ""),
    ("/namespaces/n", ""),
    ("", "labelSelector=tide%3Dhigh"),
    ("", "labelSelector=tide+notin+(high),sea"),
    ("/namespaces/m", "labelSelector=!tide"),
    ("", "fieldSelector=spec.port%3Da"),
    ("/namespaces/n", "fieldSelector=spec.port!%3Da&labelSelector=tide"),
    ("/namespaces/m", "fieldSelector=metadata.name%3Db1"),
];

/// A xorshift generator. The same seed always gives the same history.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// Objects by namespace and name.
type Objects = BTreeMap<String, Value>;

fn key(object: &Value) -> String {
    format!("{}/{}", object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]))
}

struct TestServer {
    api: test_server::TestServer,
    random: Random,
}

impl TestServer {
    async fn new(seed: u64) -> TestServer {
        let api = test_server::TestServer::start().await;
        for name in ["n", "m"] {
            api.ok(Method::POST, "/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
        }
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"port": {"type": "string"}, "sails": {"type": "integer"}}}}});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            "selectableFields": [{"jsonPath": ".spec.port"}]});
        let names = json!({"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boats.harbor.example.com"},
            "spec": {"group": "harbor.example.com", "scope": "Namespaced", "names": names, "versions": [version]}});
        api.ok(Method::POST, DEFINITIONS, definition).await;
        TestServer { api, random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1) }
    }

    fn request(&self, method: &Method, path: &str) -> Arc<Request> {
        let resource = self.api.context.registry.get("harbor.example.com", "boats").unwrap();
        Arc::new(self.api.context.controller_request("tester", &resource, method, path))
    }

    fn boat(&mut self) -> (&'static str, String) {
        (["n", "m"][self.random.below(2)], format!("b{}", self.random.below(4)))
    }

    fn some(&mut self, of: &[&'static str]) -> Value {
        let at = self.random.below(of.len() + 1);
        of.get(at).map_or(Value::Null, |text| Value::from(*text))
    }

    /// One random write, which may fail.
    async fn step(&mut self) {
        let (namespace, name) = self.boat();
        let place = format!("{BOATS}/namespaces/{namespace}/boats");
        let item = format!("{place}/{name}");
        let labels = json!({"tide": (self.some(&["high", "low"])), "sea": (self.some(&["north"]))});
        let spec = json!({"port": (self.some(&["a", "b"])), "sails": (self.random.below(3) as i64)});
        let _ = match self.random.below(10) {
            0..4 => {
                let metadata = json!({"name": name, "labels": (set(labels))});
                let boat = json!({"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": metadata, "spec": (set(spec))});
                create(&self.api.context, &self.request(&Method::POST, &place), &Document::json(&boat)).await
            }
            4..7 => {
                let held: Value = if self.random.below(4) == 0 { json!(["example.com/hold"]) } else { Value::Null };
                let change = json!({"metadata": {"labels": labels, "finalizers": held}, "spec": spec});
                let request = self.request(&Method::PATCH, &item);
                patch(&self.api.context, &request, PatchKind::Merge, &Document::json(&change)).await
            }
            7..9 => delete(&self.api.context, &self.request(&Method::DELETE, &item), None).await,
            _ => {
                let path = format!("{place}?labelSelector=tide%3Dlow");
                delete_collection(&self.api.context, &self.request(&Method::DELETE, &path), None).await
            }
        };
    }

    fn path((place, query): (&str, &str), more: &str) -> String {
        format!("{BOATS}{place}/boats?{query}&{more}")
    }

    async fn list(&self, view: (&str, &str), more: &str) -> (ListOutcome, Objects) {
        let request = self.request(&Method::GET, &TestServer::path(view, more));
        match list(&self.api.context, &request).await.unwrap() {
            Outcome::List(list) => {
                let objects = objects(&request, list.items.clone()).await;
                (list, objects)
            }
            _ => panic!("the outcome of a list is a list"),
        }
    }

    async fn watch(&self, view: (&str, &str), more: &str) -> Watch {
        let request = self.request(&Method::GET, &TestServer::path(view, &format!("watch=1&{more}")));
        watch(self.api.context.clone(), request, self.api.stop.subscribe()).await.unwrap()
    }
}

/// Removes null fields.
fn set(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

async fn objects(request: &Request, mut items: Items) -> Objects {
    let mut objects = Objects::new();
    while items.len() > 0 {
        for shown in items.next(request).await.unwrap() {
            let object = shown.to_value();
            objects.insert(key(&object), object);
        }
    }
    objects
}

/// A watcher and the objects derived from its events.
struct Watcher {
    view: (&'static str, &'static str),
    label: String,
    objects: Objects,
    watch: Watch,
    /// The revision of the last event; `None` before the end of the initial events.
    newest: Option<u64>,
}

impl Watcher {
    fn hear(&mut self, event: WatchEvent) {
        let label = &self.label;
        let (kind, shown) = match event {
            WatchEvent::Object(kind, shown) => (kind, shown),
            WatchEvent::Bookmark(revision, _) => {
                self.newest = Some(revision);
                return;
            }
            WatchEvent::Error(status) => panic!("{label}: {}", status.message),
        };
        let object = shown.to_value();
        let version: u64 = object.str_at(&["metadata", "resourceVersion"]).parse().unwrap();
        match &mut self.newest {
            Some(newest) => {
                assert!(version > *newest, "{label}: {version} comes after {newest}");
                *newest = version;
            }
            None => assert_eq!(kind, "ADDED", "{label}: {object}"),
        }
        let before = match kind {
            "DELETED" => self.objects.remove(&key(&object)),
            _ => self.objects.insert(key(&object), object.clone()),
        };
        assert_eq!(before.is_none(), kind == "ADDED", "{label}: {kind} {object}");
    }
}

#[tokio::test]
async fn list_plus_later_events_equals_every_later_list() {
    for seed in 1..=SEEDS {
        let mut server = TestServer::new(seed).await;
        let mut watchers = vec![];
        for step in 0..STEPS {
            if step % 5 == 0 {
                let view = VIEWS[server.random.below(VIEWS.len())];
                let label = format!("seed {seed}, step {step}, {view:?}");
                let initial = server.random.below(3) == 0;
                let (objects, more, newest) = if initial {
                    let more = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
                    (Objects::new(), more.to_owned(), None)
                } else {
                    let (list, objects) = server.list(view, "").await;
                    (objects, format!("resourceVersion={}", list.revision), Some(list.revision))
                };
                if server.random.below(2) == 0 {
                    // between the list and the watch
                    server.step().await;
                }
                let watch = server.watch(view, &more).await;
                watchers.push(Watcher { view, label, objects, watch, newest });
            }
            server.step().await;
        }
        server.api.stop.send_replace(true);
        for mut watcher in watchers {
            while let Some(events) = watcher.watch.next().await {
                events.into_iter().for_each(|event| watcher.hear(event));
            }
            assert_eq!(watcher.objects, server.list(watcher.view, "").await.1, "{}", watcher.label);
        }
    }
}

#[tokio::test]
async fn paginated_list_is_a_consistent_snapshot() {
    for seed in 1..=SEEDS {
        let mut server = TestServer::new(seed).await;
        for _ in 0..STEPS / 2 {
            server.step().await;
        }
        let view = VIEWS[server.random.below(VIEWS.len())];
        let (whole, all) = server.list(view, "").await;
        let mut paged = Objects::new();
        let mut more = format!("limit={}", 1 + server.random.below(3));
        loop {
            let (page, objects) = server.list(view, &more).await;
            assert_eq!(page.revision, whole.revision, "seed {seed}, {view:?}");
            paged.extend(objects);
            if page.continue_token.is_empty() {
                break;
            }
            server.step().await;
            more = format!("limit=2&continue={}", page.continue_token);
        }
        assert_eq!(paged, all, "seed {seed}, {view:?}");
    }
}

/// A deletecollection ends with the first deletion that fails, and the objects after it are kept.
#[tokio::test]
async fn deletecollection_stops_at_first_refusal() {
    let server = TestServer::new(1).await;
    let place = format!("{BOATS}/namespaces/n/boats");
    let mut versions = vec![];
    for name in ["a", "b", "c"] {
        let boat = json!({"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": name}});
        let made = server.api.ok(Method::POST, &place, boat).await;
        versions.push(made.str_at(&["metadata", "resourceVersion"]).to_owned());
    }
    let request = server.request(&Method::DELETE, &place);
    let options = Document::json(&json!({"preconditions": {"resourceVersion": (versions[0].clone())}}));
    let refused = delete_collection(&server.api.context, &request, Some(&options)).await.err().unwrap();
    assert!(refused.message.contains("\"b\": the ResourceVersion in the precondition"), "{}", refused.message);
    let left = server.list(("/namespaces/n", ""), "").await.1;
    assert_eq!(left.keys().collect::<Vec<_>>(), ["n/b", "n/c"]);
    // only objects that existed at the given version are deleted
    let request = server.request(&Method::DELETE, &format!("{place}?resourceVersion={}", versions[1]));
    delete_collection(&server.api.context, &request, None).await.unwrap();
    let left = server.list(("/namespaces/n", ""), "").await.1;
    assert_eq!(left.keys().collect::<Vec<_>>(), ["n/c"]);
}

/// An update whose object is deleted concurrently reads it again and finds none (`GuaranteedUpdate` in upstream's store.go).
#[tokio::test]
async fn update_after_concurrent_deletion_is_not_found() {
    let server = TestServer::new(1).await;
    let place = format!("{BOATS}/namespaces/n/boats");
    let item = server.request(&Method::PUT, &format!("{place}/b"));
    let boat = json!({"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": "b"}});
    let mut codes = vec![];
    for _ in 0..20 {
        let made =
            create(&server.api.context, &server.request(&Method::POST, &place), &Document::json(&boat)).await.unwrap();
        let Outcome::Object(_, made) = made else { panic!("no object") };
        let mut changed = made.to_value();
        changed.set_at(&["spec", "sails"], Value::Int(1));
        let deletion = server.request(&Method::DELETE, &format!("{place}/b"));
        let changed = Document::json(&changed);
        let (deleted, updated) =
            tokio::join!(delete(&server.api.context, &deletion, None), update(&server.api.context, &item, &changed));
        deleted.unwrap();
        codes.push(updated.map_or_else(|status| status.code, |_| 200));
    }
    assert_eq!(codes, [404; 20]);
}

/// The field manager waits for conversion webhooks without blocking a thread; this runtime has only one.
#[tokio::test]
async fn field_manager_does_not_block_threads() {
    let server = TestServer::new(1).await;
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": (name == "v1"),
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let webhook = json!({"clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"]});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rafts.harbor.example.com"},
        "spec": {"group": "harbor.example.com", "scope": "Namespaced", "names": {"plural": "rafts", "kind": "Raft"},
            "versions": [(version("v1")), (version("v2"))], "conversion": {"strategy": "Webhook", "webhook": webhook}}});
    server.api.ok(Method::POST, DEFINITIONS, definition).await;
    let resource = server.api.context.registry.get("harbor.example.com", "rafts").unwrap();
    let request = server.api.context.controller_request(
        "tester",
        &resource,
        &Method::PATCH,
        &format!("{BOATS}/namespaces/n/rafts/r"),
    );
    let owned = json!({"manager": "other", "operation": "Update", "apiVersion": "harbor.example.com/v2",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:sails": {}}});
    let raft = |sails: i64| json!({"apiVersion": "harbor.example.com/v1", "kind": "Raft", "metadata": {"name": "r"}, "sails": sails});
    let mut live = raft(1);
    live.set_at(&["metadata", "managedFields"], json!([owned]));
    let refused = request.track_apply(Some(&live), &raft(2), true, "me").await.unwrap_err();
    let wanted = "conversion webhook for harbor.example.com/v1, Kind=Raft failed: Post \"https://127.0.0.1:1/convert?timeout=30s\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert!(refused.message.contains(wanted), "{}", refused.message);
}

/// A change that conflicts with another write at every attempt is reported as a conflict, so that its controller retries it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods, reason = "the other write must finish within the change")]
async fn repeated_conflicts_are_reported() {
    let server = TestServer::new(1).await;
    let crds = server.api.context.registry.get("apiextensions.k8s.io", "customresourcedefinitions").unwrap();
    let name = "boats.harbor.example.com";
    let with_message = |count: usize| {
        move |value: &mut Value| {
            let condition = json!({"type": "Test", "status": "True", "reason": "Test", "message": (count.to_string())});
            value.set_at(&["status", "conditions"], Value::Array(vec![condition]));
        }
    };
    let attempts = std::sync::atomic::AtomicUsize::new(0);
    let overtaken = |value: &mut Value| {
        let count = 1 + attempts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let other = with_message(count);
        let definition = server.api.context.as_server(&crds, "", name).through(Subresource::Status);
        let write = definition.change(&other);
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(write)).unwrap();
        with_message(0)(value);
    };
    let lost = server.api.context.as_server(&crds, "", name).through(Subresource::Status).change(overtaken).await;
    assert_eq!(lost.unwrap_err().reason, machinery::status::Reason::Conflict);
    assert_eq!(attempts.into_inner(), crate::limits::WRITE_RETRIES);
}
