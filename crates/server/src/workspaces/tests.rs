//! Tests workspaces in process: requests to one workspace, and what the others see of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use access::audit::Audit;
use access::authorization::{self, AuthorizationMode};
use access::flow::SeatSupply;
use base::request::{FeatureGates, User};
use http::Method;
use http_body_util::BodyExt as _;
use kinds::RuntimeConfig;
use machinery::{Value, json};
use objects::Storage;
use store::{Memory, Store};
use tokio::sync::watch;

mod durable;
mod tenants;

use super::{Parts, WorkspaceConfig, Workspaces};
use crate::assembly::{ApiConfig, Beginning};
use crate::http::{BRANCHES, Branches, Client, Edge, EdgeParts, Health, RequestConfig};
use crate::in_process::Caller;
use crate::test_server::{self, administrator as admin, request};

const WORKSPACES: &str = "/apis/workspaces.pintle.dev/v1alpha1/workspaces";

/// A server with workspaces.
struct TestServer {
    home: Arc<Edge>,
    workspaces: Arc<Workspaces>,
    stop: watch::Sender<bool>,
}

fn client(user: User) -> Arc<Client> {
    Caller::new(user).client()
}

fn user(name: &str) -> Arc<Client> {
    client(User { name: name.into(), ..User::default() })
}

/// A server whose only authorizer is RBAC.
fn api_config() -> ApiConfig {
    ApiConfig { modes: authorization::modes(vec![AuthorizationMode::Rbac]), ..ApiConfig::default() }
}

impl TestServer {
    async fn start() -> TestServer {
        Self::on(Arc::new(Memory::default())).await
    }

    async fn on(store: Arc<dyn Store>) -> TestServer {
        Self::with(store, None).await
    }

    /// A server with this number of seats, if API priority and fairness is to be enabled.
    async fn with(store: Arc<dyn Store>, seats: Option<usize>) -> TestServer {
        Self::of(store, ApiConfig { seats: seats.map(SeatSupply::Own), ..api_config() }, Audit::default()).await
    }

    async fn of(store: Arc<dyn Store>, api: ApiConfig, audit: Audit) -> TestServer {
        let storage = Storage::own(store);
        let health = Arc::new(Health::new(storage.store.clone()));
        let requests = RequestConfig { audit: Arc::new(audit), ..RequestConfig::default() };
        let api = Arc::new(api);
        let features = |release| {
            let gates = FeatureGates::parse(&[], release)?;
            Ok((RuntimeConfig::parse(&[], &gates)?, gates))
        };
        let config = WorkspaceConfig {
            features: Box::new(features),
            url: "https://pintle.example.com".to_owned(),
            domain: "workspaces.localhost".to_owned(),
            names_hosts: false,
            egress: Default::default(),
        };
        let parts = Parts {
            config,
            api: api.clone(),
            health: health.clone(),
            requests: requests.clone(),
            watches_max: 2,
            storage: Storage::own(storage.store.clone()),
        };
        let workspaces = Workspaces::new(parts);
        let assembled =
            api.assemble(Beginning { observers: vec![workspaces.observer()], ..Beginning::of(storage) }).await.unwrap();
        let stop = watch::Sender::new(false);
        let home =
            Arc::new(Edge::new(EdgeParts { config: requests, ..test_server::parts(assembled.context, health, &stop) }));
        let (_, leads) = watch::channel(true);
        super::start(Some(workspaces.clone()), &home, leads, stop.subscribe()).await.unwrap();
        TestServer { home, workspaces, stop }
    }

    async fn send(
        &self,
        client: &Arc<Client>,
        method: Method,
        path: &str,
        body: &Value,
    ) -> http::Response<crate::Body> {
        let request = request(method, path, body);
        if path.starts_with(BRANCHES) {
            self.workspaces.clone().serve(client.clone(), request).await
        } else {
            self.home.clone().serve(client.clone(), request).await
        }
    }

    /// The code and the body of a response.
    async fn call(&self, client: &Arc<Client>, method: Method, path: &str, body: Value) -> (u16, String) {
        let response = self.send(client, method, path, &body).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn get(&self, path: &str) -> (u16, String) {
        self.call(&admin(), Method::GET, path, Value::Null).await
    }

    /// Creates a workspace.
    async fn create(&self, name: &str, spec: Value) {
        let object = json!({"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace",
            "metadata": {"name": name}, "spec": spec});
        let (code, body) = self.call(&admin(), Method::POST, WORKSPACES, object).await;
        assert_eq!(code, 201, "{body}");
    }

    async fn change(&self, name: &str, spec: Value) -> (u16, String) {
        self.call(&admin(), Method::PATCH, &format!("{WORKSPACES}/{name}"), json!({"spec": spec})).await
    }

    /// Creates a ConfigMap in a workspace, and returns the code.
    async fn put(&self, workspace: &str, name: &str) -> u16 {
        let path = format!("/clusters/{workspace}/api/v1/namespaces/default/configmaps");
        self.call(&admin(), Method::POST, &path, json!({"metadata": {"name": name}})).await.0
    }

    /// The names of the ConfigMaps of a workspace.
    async fn names(&self, workspace: &str) -> Vec<String> {
        let (code, body) = self.get(&format!("/clusters/{workspace}/api/v1/namespaces/default/configmaps")).await;
        assert_eq!(code, 200, "{body}");
        let list = machinery::value::decode(body.as_bytes()).unwrap();
        list.items_at(&["items"]).iter().map(|map| map.str_at(&["metadata", "name"]).to_owned()).collect()
    }

    /// The status of a workspace, once its phase is the given one.
    async fn reported(&self, name: &str, phase: &str) -> Value {
        let kind = self.home.context.registry.get(super::definition::GROUP, super::definition::PLURAL).unwrap();
        // like a watch that starts from the beginning
        self.home.context.objects.reach_back(0).await;
        let mut cursor = kind.collection.subscribe(objects::Scope::All, 0).unwrap();
        loop {
            if let Some(stored) = kind.collection.get(name) {
                let object = stored.body.to_value(0);
                if object.str_at(&["status", "phase"]) == phase {
                    return object.get("status").cloned().unwrap();
                }
            }
            cursor.next().await.unwrap();
        }
    }
}

#[tokio::test]
async fn forks_begin_with_the_objects_of_their_source() {
    let server = TestServer::start().await;
    server.create("a", json!({})).await;
    assert_eq!(server.put("a", "one").await, 201);
    server.create("b", json!({"from": {"workspace": "a"}})).await;
    assert_eq!((server.put("a", "two").await, server.put("b", "three").await), (201, 201));
    assert_eq!(
        (server.names("a").await, server.names("b").await),
        (vec!["one".into(), "two".into()], vec!["one".into(), "three".into()])
    );
    let status = server.reported("b", "Ready").await;
    assert_eq!(status.str_at(&["url"]), "https://pintle.example.com/clusters/b");
    // an API of another release, and a fork of what is at `/`, which does not show workspaces
    server.create("c", json!({"from": {"workspace": "default"}, "kubernetesVersion": "1.35"})).await;
    let (code, version) = server.get("/clusters/c/version").await;
    assert!(code == 200 && version.contains("\"emulationMinor\": \"35\""), "{version}");
    assert_eq!(server.get(&format!("/clusters/c{WORKSPACES}")).await.0, 404);
    // forks of a workspace of that release emulate it too, whether or not it has been used
    server.create("h", json!({"kubernetesVersion": "1.35"})).await;
    server.create("i", json!({"from": {"workspace": "h"}})).await;
    server.create("j", json!({"from": {"workspace": "c"}})).await;
    for name in ["i", "j"] {
        let (_, version) = server.get(&format!("/clusters/{name}/version")).await;
        assert!(version.contains("\"emulationMinor\": \"35\""), "{version}");
    }
    assert_eq!(server.get(WORKSPACES).await.0, 200);
    for (name, source, why) in [
        ("d", json!({"workspace": "none"}), "there is no workspace \"none\" to fork"),
        ("e", json!({"workspace": "e"}), "there is no workspace \"e\" to fork"),
        ("f", json!({"workspace": "d"}), "workspace \"d\" is not ready"),
        (
            "g",
            json!({"workspace": "a", "resourceVersion": "1"}),
            "workspace \"a\" does not keep what it held at resourceVersion 1",
        ),
        ("k", json!({"workspace": "a", "resourceVersion": "99999"}), "workspace \"a\" is at resourceVersion"),
    ] {
        server.create(name, json!({"from": source})).await;
        let status = server.reported(name, "Failed").await;
        assert!(status.str_at(&["message"]).starts_with(why), "{status:?}");
        let (code, body) = server.get(&format!("/clusters/{name}/api/v1/pods")).await;
        assert!(code == 403 && body.contains("cannot be used"), "{body}");
    }
}

#[tokio::test]
async fn each_workspace_is_a_cluster_of_its_own() {
    let server = TestServer::start().await;
    for (name, from) in [("a", Value::Null), ("b", json!({"workspace": "a"})), ("c", json!({"workspace": "default"}))] {
        server.create(name, if from == Value::Null { json!({}) } else { json!({"from": from}) }).await;
    }
    let id = async |prefix: &str| {
        let (_, namespace) = server.get(&format!("{prefix}/api/v1/namespaces/kube-system")).await;
        machinery::value::decode(namespace.as_bytes()).unwrap().str_at(&["metadata", "uid"]).to_owned()
    };
    let [home, a, b, c] = [id("").await, id("/clusters/a").await, id("/clusters/b").await, id("/clusters/c").await];
    let all = BTreeSet::from([&home, &a, &b, &c]);
    assert!(all.len() == 4 && !all.contains(&String::new()), "{all:?}");
    assert_eq!(server.change("b", json!({"reset": "1"})).await.0, 200);
    assert_eq!(id("/clusters/b").await, b);
}

#[tokio::test]
async fn reset_restores_the_source_and_ends_watches() {
    let server = TestServer::start().await;
    server.create("a", json!({})).await;
    server.put("a", "one").await;
    server.create("b", json!({"from": {"workspace": "a"}})).await;
    server.put("b", "two").await;
    let maps = "/clusters/b/api/v1/namespaces/default/configmaps";
    let list = machinery::value::decode(server.get(maps).await.1.as_bytes()).unwrap();
    let before = list.str_at(&["metadata", "resourceVersion"]).to_owned();
    let watch = format!("{maps}?watch=1&resourceVersion={before}");
    let watching = server.send(&admin(), Method::GET, &watch, &Value::Null).await;
    assert_eq!(server.change("b", json!({"reset": "1"})).await.0, 200);
    assert!(watching.into_body().collect().await.unwrap().to_bytes().is_empty(), "the watch has ended");
    assert_eq!(server.names("b").await, ["one"]);
    let (code, body) = server.call(&admin(), Method::GET, &watch, Value::Null).await;
    assert!(code == 200 && body.contains("\"code\":410"), "{code} {body}");
    let continued = format!("{maps}?limit=1&continue={}", continue_token(&before));
    assert_eq!(server.get(&continued).await.0, 410);
    server.put("b", "three").await;
    server.put("a", "four").await;
    server.create("o", json!({"from": {"workspace": "b", "origin": true}})).await;
    assert_eq!((server.names("o").await, server.names("b").await.len()), (vec!["one".to_owned()], 2));
    assert_eq!(server.change("b", json!({"reset": "2"})).await.0, 200);
    assert_eq!(server.names("b").await, ["one"]);
}

#[tokio::test]
async fn an_earlier_revision_is_forked_from_the_history() {
    let server = TestServer::start().await;
    server.create("a", json!({})).await;
    let list = async |name: &str, query: &str| {
        let path = format!("/clusters/{name}/api/v1/namespaces/default/configmaps{query}");
        let (code, body) = server.get(&path).await;
        assert_eq!(code, 200, "{path}: {body}");
        machinery::value::decode(body.as_bytes()).unwrap()
    };
    let shown = |list: &Value| -> Vec<String> {
        let of =
            |item: &Value| ["name", "uid", "resourceVersion"].map(|field| item.str_at(&["metadata", field]).to_owned());
        list.items_at(&["items"]).iter().map(|item| of(item).join(" ")).collect()
    };
    let mut known = vec![];
    for step in 0..6 {
        server.put("a", &format!("m{step}")).await;
        if step % 2 == 1 {
            let path = format!("/clusters/a/api/v1/namespaces/default/configmaps/m{}", step - 1);
            assert_eq!(server.call(&admin(), Method::DELETE, &path, Value::Null).await.0, 200);
        }
        let now = list("a", "").await;
        known.push((now.str_at(&["metadata", "resourceVersion"]).to_owned(), shown(&now)));
    }
    for (index, (version, wanted)) in known.iter().enumerate() {
        let exact = list("a", &format!("?resourceVersionMatch=Exact&resourceVersion={version}")).await;
        assert_eq!(&shown(&exact), wanted, "{version}");
        let name = format!("f{index}");
        server.create(&name, json!({"from": {"workspace": "a", "resourceVersion": (version.as_str())}})).await;
        assert_eq!(&shown(&list(&name, "").await), wanted, "{version}");
        assert_eq!(server.put(&name, "later").await, 201);
        let later = list(&name, "").await;
        assert_eq!(later.items_at(&["items"]).len(), wanted.len() + 1);
        assert_eq!(server.change(&name, json!({"reset": "1"})).await.0, 200);
        assert_eq!(&shown(&list(&name, "").await), wanted, "a reset returns to it");
    }
    assert_eq!(shown(&list("a", "").await), known.last().unwrap().1, "the source has not changed");

    let maps = "/api/v1/namespaces/default/configmaps";
    let create = async |name: &str| {
        let (code, body) = server.call(&admin(), Method::POST, maps, json!({"metadata": {"name": name}})).await;
        assert_eq!(code, 201, "{body}");
        machinery::value::decode(body.as_bytes()).unwrap().str_at(&["metadata", "resourceVersion"]).to_owned()
    };
    let version = create("one").await;
    create("two").await;
    server.create("of-default", json!({"from": {"workspace": "default", "resourceVersion": version}})).await;
    assert_eq!(server.names("of-default").await, ["one"]);
}

/// A continue token of a list at a revision.
fn continue_token(revision: &str) -> String {
    use base64::Engine as _;
    let token = json!({"v": "meta.k8s.io/v1", "rv": (revision.parse::<i64>().unwrap()), "start": "default/a\u{0}"});
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token.to_json())
}

#[tokio::test]
async fn templates_are_sealed_and_limits_hold() {
    let server = TestServer::start().await;
    server.create("t", json!({})).await;
    server.put("t", "one").await;
    assert_eq!(server.change("t", json!({"template": true})).await.0, 200);
    assert_eq!(server.put("t", "two").await, 405);
    let review = "/clusters/t/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked = json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    assert_eq!(server.call(&admin(), Method::POST, review, asked).await.0, 201);
    let (code, body) = server.change("t", json!({"template": false})).await;
    assert!(code == 422 && body.contains("a template stays a template"), "{body}");
    server.create("l", json!({"from": {"workspace": "t"}, "limits": {"objects": 1, "watches": 1}})).await;
    assert_eq!(server.put("l", "two").await, 403);
    let watch = "/clusters/l/api/v1/watch/configmaps";
    let first = server.send(&admin(), Method::GET, watch, &Value::Null).await;
    assert_eq!((first.status().as_u16(), server.get(watch).await.0), (200, 429));
    // a workspace that sets no limit has the server's, which is 2 here
    let watch = "/clusters/n/api/v1/watch/configmaps";
    server.create("n", json!({})).await;
    for (limits, open) in [(json!(null), 2), (json!({"watches": 3}), 3), (json!({"watches": 1}), 1)] {
        assert_eq!(server.change("n", json!({"limits": (limits)})).await.0, 200);
        let mut watches = vec![];
        for _ in 0..open {
            watches.push(server.send(&admin(), Method::GET, watch, &Value::Null).await);
        }
        assert!(watches.iter().all(|watch| watch.status() == 200), "{open}");
        assert_eq!(server.get(watch).await.0, 429, "{open}");
    }
    server.create("m", json!({"from": {"workspace": "t"}, "limits": {"bytes": 1}})).await;
    assert_eq!(server.put("m", "two").await, 403);
    server.workspaces.mark(server.workspaces.drop_idle());
    server.workspaces.report_changed().await;
    let status = server.reported("m", "Ready").await;
    let (objects, bytes) = (status.get("objects").and_then(Value::as_int), status.get("bytes").and_then(Value::as_int));
    assert!(objects > Some(50) && bytes > Some(10_000), "{status:?}");
    for (name, spec) in [("default", json!({})), ("a.b", json!({})), ("x", json!({"kubernetesVersion": "1.2"}))] {
        let object = json!({"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace",
            "metadata": {"name": name}, "spec": spec});
        let (code, body) = server.call(&admin(), Method::POST, WORKSPACES, object).await;
        assert_eq!(code, 422, "{name}: {body}");
    }
}

#[tokio::test]
async fn outsiders_learn_nothing_of_workspaces() {
    let server = TestServer::start().await;
    server.create("a", json!({})).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "enter"}, "rules": [{"apiGroups": ["workspaces.pintle.dev"],
        "resources": ["workspaces/content"], "resourceNames": ["a", "gone"], "verbs": ["get"]}]});
    let binding = json!({"metadata": {"name": "enter"}, "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "enter"}});
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let (code, body) = server.call(&admin(), Method::POST, &format!("{rbac}/{plural}"), object).await;
        assert_eq!(code, 201, "{body}");
    }
    for (who, workspace, path, code) in [
        ("jane", "a", "/version", 200),
        ("jane", "a", "/api/v1/pods", 403), // she may enter, and no role of the workspace is hers
        ("jane", "gone", "/version", 404),
        ("jane", "b", "/version", 403),
        ("max", "a", "/version", 403),
        ("max", "a.uid", "/version", 403),
        ("max", "b", "/version", 403),
        ("max", "a", "", 403),
        ("max", "A", "/version", 404),
        ("max", "a%2f", "/version", 404),
        ("max", "..", "/clusters/a/version", 404),
        ("max", "", "/version", 404),
    ] {
        let path = format!("/clusters/{workspace}{path}");
        assert_eq!(server.call(&user(who), Method::GET, &path, Value::Null).await.0, code, "{who} {path}");
    }
    let max = user("max");
    let of = |path: &'static str| server.call(&max, Method::GET, path, Value::Null);
    let (real, unreal) = (of("/clusters/a/api").await.1, of("/clusters/b/api").await.1);
    assert_eq!(real.replace("\\\"a\\\"", "\\\"b\\\"").replace("\"name\":\"a\"", "\"name\":\"b\""), unreal);
}

/// Gives a user all rights in a workspace.
async fn enthrone(server: &TestServer, name: &str, workspace: &str) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": name}, "rules": [{"apiGroups": ["workspaces.pintle.dev"],
        "resources": ["workspaces/content"], "resourceNames": [workspace], "verbs": ["get"]}]});
    let bound = |role: &str| {
        json!({"metadata": {"name": name}, "subjects": [{"kind": "User", "name": name}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}})
    };
    let below = format!("/clusters/{workspace}{rbac}/clusterrolebindings");
    for (path, object) in [
        (format!("{rbac}/clusterroles"), role),
        (format!("{rbac}/clusterrolebindings"), bound(name)),
        (below, bound("cluster-admin")),
    ] {
        let (code, body) = server.call(&admin(), Method::POST, &path, object).await;
        assert_eq!(code, 201, "{body}");
    }
}

/// The requests of one workspace take no seat of another, and its own objects decide only about its share.
#[tokio::test]
async fn a_workspace_takes_no_more_than_its_share_of_the_seats() {
    let server = TestServer::with(Arc::new(Memory::default()), Some(16)).await;
    for (name, owner) in [("a", "jane"), ("b", "max")] {
        server.create(name, json!({})).await;
        enthrone(&server, owner, name).await;
    }
    let (jane, max) = (user("jane"), user("max"));
    let maps = |workspace: &str| format!("/clusters/{workspace}/api/v1/namespaces/default/configmaps");
    let text = "x".repeat(600_000);
    for name in ["one", "two", "three"] {
        let map = json!({"metadata": {"name": name}, "data": {"text": (text.as_str())}});
        assert_eq!(server.call(&admin(), Method::POST, &maps("a"), map).await.0, 201);
    }
    let flows = "/apis/flowcontrol.apiserver.k8s.io/v1";
    // all requests of jane are exempt in her workspace, or go to a level whose queues are short
    let schema = json!({"metadata": {"name": "all"}, "spec": {"matchingPrecedence": 2, "rules": [{
        "subjects": [{"kind": "User", "user": {"name": "jane"}}], "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"],
        "resources": ["*"], "clusterScope": true, "namespaces": ["*"]}]}],
        "priorityLevelConfiguration": {"name": "exempt"}}});
    let schemas = format!("/clusters/a{flows}/flowschemas");
    let (code, body) = server.call(&jane, Method::POST, &schemas, schema).await;
    assert_eq!(code, 201, "{body}");
    let path = maps("a");
    let list = || Box::pin(server.send(&jane, Method::GET, &path, &Value::Null));
    // a list occupies its seat while it is sent: there are two
    let sending = [list().await, list().await];
    let mut waiting: Vec<_> = (0..50).map(|_| list()).collect();
    let all_wait = async |waiting: &mut Vec<_>, path: &str, client: &Arc<Client>| {
        tokio::select! {
            biased;
            _ = futures_util::future::select_all(waiting) => panic!("the share is used up"),
            (code, _) = server.call(client, Method::GET, path, Value::Null) => assert_eq!(code, 200, "{path}"),
        }
    };
    for _ in 0..20 {
        all_wait(&mut waiting, &maps("b"), &max).await;
        all_wait(&mut waiting, &maps("a"), &admin()).await;
        all_wait(&mut waiting, "/api/v1/namespaces", &admin()).await;
    }
    let (_, metrics) = server.get("/metrics").await;
    let executing = "\napiserver_flowcontrol_current_executing_requests{priority_level=\"workspaces\"";
    assert!(metrics.contains(executing), "{metrics}");
    drop(waiting);
    let level = json!({"metadata": {"name": "narrow"}, "spec": {"type": "Limited", "limited": {
        "limitResponse": {"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 1}}}}});
    let levels = format!("/clusters/a{flows}/prioritylevelconfigurations");
    assert_eq!(server.call(&admin(), Method::POST, &levels, level).await.0, 201);
    let change = json!({"spec": {"priorityLevelConfiguration": {"name": "narrow"}}});
    assert_eq!(server.call(&admin(), Method::PATCH, &format!("{schemas}/all"), change).await.0, 200);
    let mut first = vec![list()];
    all_wait(&mut first, &maps("b"), &max).await;
    let refused = list().await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    drop(sending);
    assert_eq!(first.remove(0).await.status().as_u16(), 200);
    // a limit of the workspace holds at once
    assert_eq!(server.change("a", json!({"limits": {"requestsInFlight": 1}})).await.0, 200);
    let sending = list().await;
    let mut second = vec![list()];
    all_wait(&mut second, &maps("b"), &max).await;
    drop(sending);
    assert_eq!(second.remove(0).await.status().as_u16(), 200);
    // a workspace does not begin with the objects of `default`, but with those of a new server
    let names = async |prefix: &str| {
        let (_, body) = server.get(&format!("{prefix}{flows}/flowschemas")).await;
        let list = machinery::value::decode(body.as_bytes()).unwrap();
        list.items_at(&["items"]).iter().map(|item| item.str_at(&["metadata", "name"]).to_owned()).collect::<Vec<_>>()
    };
    let (of_home, of_b) = (names("").await, names("/clusters/b").await);
    assert!(of_home == of_b && of_home.contains(&"catch-all".to_owned()), "{of_b:?}");
}

#[tokio::test]
async fn requests_to_one_workspace_leave_the_others_as_they_are() {
    let server = TestServer::start().await;
    for name in ["a", "b"] {
        server.create(name, json!({})).await;
    }
    let paths = [
        "/api",
        "/apis",
        "/api/v1",
        "/openapi/v3",
        "/version",
        "/api/v1/namespaces",
        "/api/v1/configmaps",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/api/v1/events",
        "/apis/g.example.com/v1/foos",
        "/clusters/a/api",
    ];
    let seen = async |workspace: &str| {
        let mut all = vec![];
        for path in paths {
            all.push(server.get(&format!("{workspace}{path}")).await);
        }
        all
    };
    let (b, home) = (seen("/clusters/b").await, seen("").await);
    let crd = json!({"metadata": {"name": "foos.g.example.com"}, "spec": {"group": "g.example.com", "scope": "Cluster",
        "names": {"plural": "foos", "kind": "Foo"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    for round in 0..20 {
        let name = format!("x{round}");
        for (method, path, body) in [
            (Method::POST, "/api/v1/namespaces".to_owned(), json!({"metadata": {"name": (name.clone())}})),
            (Method::POST, format!("/api/v1/namespaces/{name}/configmaps"), json!({"metadata": {"name": "m"}})),
            (Method::PATCH, format!("/api/v1/namespaces/{name}"), json!({"metadata": {"labels": {"a": "b"}}})),
            (Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(), crd.clone()),
            (
                Method::POST,
                "/apis/g.example.com/v1/foos".to_owned(),
                json!({"apiVersion": "g.example.com/v1", "kind": "Foo", "metadata": {"name": (name.clone())}}),
            ),
            (Method::POST, "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(), role.clone()),
            (Method::DELETE, format!("/api/v1/namespaces/{name}"), Value::Null),
        ] {
            let (code, body) = server.call(&admin(), method.clone(), &format!("/clusters/a{path}"), body).await;
            assert!(code < 300 || code == 409, "{method} {path}: {body}");
        }
    }
    assert!(server.get("/clusters/a/apis/g.example.com/v1/foos").await.1.contains("x19"));
    // `default` shows the workspaces themselves, which have not changed either
    assert_eq!((seen("/clusters/b").await, seen("").await), (b, home));
}

#[tokio::test]
async fn deleted_workspaces_give_their_memory_back() {
    let server = TestServer::start().await;
    server.create("a", json!({"ttl": "1ms"})).await;
    server.create("b", json!({})).await;
    server.put("b", "one").await;
    let entered = server.workspaces.workspace("b").unwrap().enter().unwrap();
    let context = Arc::downgrade(&entered.opened.edge.context);
    drop(entered);
    let (code, _) = server.call(&admin(), Method::DELETE, &format!("{WORKSPACES}/b"), Value::Null).await;
    assert_eq!((code, server.get("/clusters/b/version").await.0), (200, 404));
    // the tasks of its controllers end by themselves; `a` ends with its lifetime
    while context.strong_count() > 0 || server.workspaces.workspace("a").is_some() {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.stop.send_replace(true);
}

#[tokio::test]
async fn one_request_creates_and_returns_a_kubeconfig() {
    let server = TestServer::start().await;
    let post = async |client: &Arc<Client>, name: &str, spec: Value| {
        let (code, body) = server.call(client, Method::POST, &format!("/clusters/{name}"), spec).await;
        (code, machinery::value::decode(body.as_bytes()).unwrap_or_default())
    };
    let (code, config) = post(&admin(), "a", Value::Null).await;
    let cluster = &config.items_at(&["clusters"])[0];
    assert_eq!((code, cluster.str_at(&["cluster", "server"])), (201, "https://pintle.example.com/clusters/a"));
    assert_eq!(server.put("a", "one").await, 201);
    assert_eq!(post(&admin(), "b", json!({"from": {"workspace": "a"}})).await.0, 201);
    assert_eq!(server.names("b").await, ["one"]);
    // the kubeconfig of an expiring workspace does not work for the next workspace with that name
    let (_, config) = post(&admin(), "t", json!({"ttl": "1h"})).await;
    let url = config.items_at(&["clusters"])[0].str_at(&["cluster", "server"]).to_owned();
    let path = format!("{}/api/v1/namespaces/default", url.strip_prefix("https://pintle.example.com").unwrap());
    assert_eq!(server.get(&path).await.0, 200);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(server.call(&admin(), Method::DELETE, &format!("{WORKSPACES}/t"), Value::Null).await.0, 200);
    assert_eq!(server.call(&admin(), Method::PATCH, &path, label.clone()).await.0, 404);
    assert_eq!(post(&admin(), "t", Value::Null).await.0, 201);
    let (code, body) = server.call(&admin(), Method::PATCH, &path, label).await;
    assert!(code == 403 && body.contains("another one has its name"), "{body}");
    for (client, name, spec, code, why) in [
        (admin(), "a", Value::Null, 409, "already exists"),
        (admin(), "c", json!({"from": {"workspace": "none"}}), 422, "there is no workspace \"none\" to fork"),
        (admin(), "d", json!(["x"]), 400, "the body is not a JSON object"),
        (admin(), "d", json!({"ttl": "soon"}), 422, "spec.ttl"),
        (admin(), "D", Value::Null, 422, "metadata.name"),
        (user("jane"), "d", Value::Null, 403, "cannot create resource \"workspaces\""),
    ] {
        let (got, status) = post(&client, name, spec).await;
        assert!(got == code && status.str_at(&["message"]).contains(why), "{name}: {got} {status:?}");
    }
}
