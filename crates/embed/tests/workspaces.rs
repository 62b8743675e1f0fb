//! Embedded servers: workspaces, manifests, users, faults, ports.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use embed::{Api, Server, Value, Workspace, json};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tower_service::Service as _;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

async fn names(workspace: &Workspace) -> Vec<String> {
    let list = workspace.get(CONFIG_MAPS).await.unwrap();
    let names = list.items_at(&["items"]).iter().map(|item| item.str_at(&["metadata", "name"]).to_owned());
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

#[tokio::test]
async fn workspaces_are_apart_and_can_be_forked_and_reset() {
    let server = Server::ephemeral().start().await.unwrap();
    let (one, other) = (server.workspace().await.unwrap(), server.workspace().await.unwrap());
    one.post(CONFIG_MAPS, &named("a")).await.unwrap();
    assert_eq!((names(&one).await, names(&other).await), (vec!["a".to_owned()], vec![]));
    let fork = one.fork().await.unwrap();
    fork.post(CONFIG_MAPS, &named("b")).await.unwrap();
    assert_eq!((names(&fork).await, names(&one).await), (vec!["a".to_owned(), "b".to_owned()], vec!["a".to_owned()]));
    fork.reset().await.unwrap();
    assert_eq!(names(&fork).await, ["a"]);
    let taken = one.post(CONFIG_MAPS, &named("a")).await.unwrap_err();
    assert_eq!((taken.code(), taken.reason()), (Some(409), "AlreadyExists"));
    fork.clone().delete().await.unwrap();
    assert_eq!(fork.get(CONFIG_MAPS).await.unwrap_err().code(), Some(404));
}

#[tokio::test]
async fn templates_are_built_once() {
    let server = Server::ephemeral().start().await.unwrap();
    let broken = server.template("key", |workspace| async move { workspace.get("/nonexistent").await.map(drop) }).await;
    assert_eq!(broken.err().and_then(|error| error.code()), Some(404));
    let builds = &AtomicUsize::new(0);
    let build = |workspace: Workspace| async move {
        builds.fetch_add(1, Ordering::Relaxed);
        workspace.post(CONFIG_MAPS, &named("a")).await.map(drop)
    };
    let (one, other) = tokio::join!(server.template("key", build), server.template("key", build));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((one.name(), builds.load(Ordering::Relaxed)), (other.name(), 1));
    assert_eq!(one.post(CONFIG_MAPS, &named("b")).await.unwrap_err().code(), Some(405));
    assert_eq!(names(&one.fork().await.unwrap()).await, ["a"]);
}

#[tokio::test]
async fn manifests_are_applied_in_the_order_that_works() {
    let directory = tempfile::tempdir().unwrap();
    let boat = "apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: argo, namespace: harbour}\nspec: {crew: 50}\n";
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boats.example.com}\n\
        spec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: boats, kind: Boat}\n  versions:\n  \
        - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, \
        properties: {crew: {type: integer, maximum: 50}}}}}}}\n";
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: harbour}\n";
    std::fs::write(directory.path().join("a.yaml"), boat).unwrap();
    std::fs::write(directory.path().join("b.yaml"), format!("{crd}---\n{namespace}")).unwrap();
    let server = Server::ephemeral().start().await.unwrap();
    let workspace = server.workspace().await.unwrap();
    let applied = workspace.apply([directory.path()]).await.unwrap();
    let kinds: Vec<&str> = applied.iter().map(|object| object.str_at(&["kind"])).collect();
    assert_eq!(kinds, ["Namespace", "CustomResourceDefinition", "Boat"]);
    let mut larger = applied[2].clone();
    larger.set_at(&["spec", "crew"], Value::from(51));
    larger.remove_at(&["metadata", "managedFields"]);
    let refused = workspace.apply_object(&larger).await.unwrap_err();
    assert_eq!((refused.code(), refused.reason()), (Some(422), "Invalid"), "{refused}");
    let unknown = workspace.apply_object(&json!({"apiVersion": "example.com/v2", "kind": "Boat"})).await.unwrap_err();
    assert!(unknown.to_string().starts_with("no matches for kind \"Boat\""), "{unknown}");
}

async fn status(api: &Api, path: &str) -> StatusCode {
    let request = Request::get(path).body(Full::<bytes::Bytes>::default()).unwrap();
    api.clone().call(request).await.unwrap().status()
}

#[tokio::test]
async fn rbac_concerns_other_users() {
    let server = Server::ephemeral().start().await.unwrap();
    let workspace = server.workspace().await.unwrap();
    // who may enter a workspace is decided in the workspace `default`
    let role = json!({"metadata": {"name": "enter"}, "rules": [
        {"apiGroups": ["workspaces.pintle.dev"], "resources": ["workspaces/content"], "verbs": ["get"]}]});
    let binding = json!({"metadata": {"name": "enter"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "enter"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"}]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let home = server.default_workspace();
    home.post(&format!("{rbac}/clusterroles"), &role).await.unwrap();
    home.post(&format!("{rbac}/clusterrolebindings"), &binding).await.unwrap();
    assert_eq!(status(&workspace.api(), CONFIG_MAPS).await, StatusCode::OK);
    assert_eq!(status(&workspace.api_as("ada", &[]), CONFIG_MAPS).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&workspace.api_as("ada", &["system:authenticated"]), "/api/v1").await, StatusCode::OK);
    assert_eq!(status(&workspace.api_as("ada", &["system:masters"]), CONFIG_MAPS).await, StatusCode::OK);
    assert_eq!(status(&workspace.api_as("eve", &[]), CONFIG_MAPS).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn watches_are_streams_and_end_with_the_server() {
    let server = Server::ephemeral().start().await.unwrap();
    let workspace = server.workspace().await.unwrap();
    let watch = format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Da");
    let request = Request::get(watch).body(Full::<bytes::Bytes>::default()).unwrap();
    let mut events = workspace.api().call(request).await.unwrap().into_body();
    workspace.post(CONFIG_MAPS, &named("a")).await.unwrap();
    let event = events.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(event.starts_with(b"{\"type\":\"ADDED\""), "{event:?}");
    server.clone().stop().await;
    while let Some(frame) = events.frame().await {
        frame.unwrap();
    }
    let refused = workspace.get(CONFIG_MAPS).await.unwrap_err();
    assert_eq!(refused.to_string(), "the server has been stopped");
}

#[tokio::test]
async fn faults_hit_and_workspaces_settle() {
    let server = Server::ephemeral().testing().start().await.unwrap();
    let workspace = server.workspace().await.unwrap();
    let spec = json!({"match": {"verbs": ["create"], "resources": ["configmaps"]},
        "effect": {"error": {"code": 503}}});
    let fault = workspace.fault(spec).await.unwrap();
    assert_eq!(workspace.post(CONFIG_MAPS, &named("a")).await.unwrap_err().code(), Some(503));
    assert_eq!(fault.hits().await.unwrap(), 1);
    fault.delete().await.unwrap();
    workspace.post(CONFIG_MAPS, &named("a")).await.unwrap();
    workspace.settle(Duration::from_millis(10), Duration::from_secs(20)).await.unwrap();
    let report = workspace.report().await.unwrap();
    assert!(report.get("agents").is_some(), "{}", report.to_json());
    let plain = Server::ephemeral().start().await.unwrap();
    assert_eq!(plain.default_workspace().report().await.unwrap_err().code(), Some(404));
}

#[tokio::test]
async fn clocks_stop_and_advance() {
    let server = Server::ephemeral().testing().start().await.unwrap();
    let workspace = server.workspace().await.unwrap();
    let clock = workspace.clock();
    clock.stop_at("2090-01-01T00:00:00Z", 7).await.unwrap();
    clock.advance(Duration::from_secs(3600)).await.unwrap();
    clock.advance(Duration::from_millis(1500)).await.unwrap();
    let created = workspace.post(CONFIG_MAPS, &named("a")).await.unwrap();
    assert_eq!(created.str_at(&["metadata", "creationTimestamp"]), "2090-01-01T01:00:01Z");
    let back = clock.set("2089-01-01T00:00:00Z").await.unwrap_err();
    assert!(back.to_string().contains("never goes back"), "{back}");
    clock.stop().await.unwrap();
    clock.resume().await.unwrap();
    clock.delete().await.unwrap();
    let later = workspace.post(CONFIG_MAPS, &named("b")).await.unwrap();
    assert!(later.str_at(&["metadata", "creationTimestamp"]) < "2090", "{}", later.to_json());
}

/// The URL in a kubeconfig.
fn url_of(kubeconfig: &str) -> String {
    let kubeconfig = machinery::value::decode(kubeconfig.as_bytes()).unwrap();
    kubeconfig.items_at(&["clusters"])[0].str_at(&["cluster", "server"]).to_owned()
}

#[tokio::test]
async fn ports_serve_programs_outside() {
    let server = Server::ephemeral().port(0).start().await.unwrap();
    let workspace = server.workspace().await.unwrap();
    let url = &url_of(&workspace.kubeconfig().unwrap());
    assert!(
        url.starts_with("https://127.0.0.1:") && url.ends_with(&format!("/clusters/{}", workspace.name())),
        "{url}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), server.kubeconfig().unwrap()).unwrap();
    let mut client = client::JsonClient::connect(&[file.path().to_owned()]).await.unwrap();
    let served = client.get("/api/v1/namespaces/default").await.unwrap();
    assert_eq!((served.code, served.body.str_at(&["kind"])), (200, "Namespace"));
    let taken = url["https://127.0.0.1:".len()..].split('/').next().unwrap().parse().unwrap();
    let refused = Server::ephemeral().port(taken).start().await.map(drop).unwrap_err();
    assert!(refused.to_string().starts_with("cannot listen on 127.0.0.1:"), "{refused}");
    let without = Server::ephemeral().start().await.unwrap();
    assert!(without.kubeconfig().is_err());
}

#[tokio::test]
async fn tokens_of_service_accounts_are_issued() {
    let server = Server::ephemeral().start().await.unwrap();
    let home = server.default_workspace();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    home.post(accounts, &named("robot")).await.unwrap();
    let issued = home.post(&format!("{accounts}/robot/token"), &json!({"spec": {}})).await.unwrap();
    assert_eq!(issued.str_at(&["status", "token"]).split('.').count(), 3);
}

#[tokio::test]
async fn wrong_settings_are_named() {
    for (builder, want) in [
        (Server::ephemeral().kubernetes_version("1.2"), "\"1.2\" is not a release that can be served"),
        (Server::ephemeral().feature_gate("Nonsense"), "Nonsense"),
    ] {
        let why = builder.start().await.map(drop).unwrap_err().to_string();
        assert!(why.contains(want), "{why}");
    }
    let older = Server::ephemeral().kubernetes_version("1.35").start().await.unwrap();
    let version = older.default_workspace().get("/version").await.unwrap();
    assert_eq!(version.str_at(&["emulationMinor"]), "35");
}

#[tokio::test]
async fn servers_begin_with_sources_which_forks_share() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source.json");
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "shop", "uid": "as-it-was", "creationTimestamp": "2024-05-01T10:00:00Z"}
    });
    std::fs::write(&source, object.to_json()).unwrap();
    let server = Server::ephemeral().source(&source.to_string_lossy()).start().await.unwrap();
    let fork = server.default_workspace().fork().await.unwrap();
    let path = "/api/v1/namespaces/shop/configmaps";
    let found = fork.get(&format!("{path}/a")).await.unwrap();
    assert_eq!(found.str_at(&["metadata", "uid"]), "as-it-was");
    fork.post(path, &named("b")).await.unwrap();
    let list = server.default_workspace().get(path).await.unwrap();
    assert_eq!(list.items_at(&["items"]).len(), 1);
    let why = Server::ephemeral().source("/no/such/source").start().await.err().unwrap();
    assert!(why.to_string().contains("/no/such/source"), "{why}");
}

#[tokio::test]
async fn controllers_act_on_what_changes_in_a_source_if_asked() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source.json");
    let object = |name: &str, owner: &str| {
        let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": owner}]);
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": owners}})
    };
    let list = json!({"apiVersion": "v1", "kind": "List",
        "items": [(object("owner", "not-captured")), (object("dependent", "owner"))]});
    std::fs::write(&source, list.to_json()).unwrap();
    let source = source.to_string_lossy();
    for (builder, left) in [
        (Server::ephemeral().source(&source), vec!["dependent"]),
        (Server::ephemeral().source(&source).controllers(), vec![]),
    ] {
        let server = builder.testing().start().await.unwrap();
        let fork = server.default_workspace().fork().await.unwrap();
        // well below the grace period for owners that are absent: such owners are not waited for
        let settle = async || fork.settle(Duration::from_millis(50), Duration::from_secs(5)).await.unwrap();
        settle().await;
        assert_eq!(names(&fork).await, ["dependent", "owner"]);
        fork.delete_object(&format!("{CONFIG_MAPS}/owner")).await.unwrap();
        settle().await;
        assert_eq!(names(&fork).await, left);
    }
}
