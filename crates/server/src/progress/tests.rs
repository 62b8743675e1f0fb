//! The engine and the sets, with a server in process.

use std::sync::Arc;

use http::Method;
use machinery::{Value, json};
use store::Memory;

use super::plan::Plan;
use super::{Progresses, names, read, set};
use crate::assembly::ApiConfig;
use crate::test_server::TestServer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn server(objects: Vec<Value>) -> TestServer {
    let progress = Progresses::new(true, objects);
    let api = ApiConfig { progress: progress.clone(), ..ApiConfig::default() };
    let server = TestServer::of(api, Arc::new(Memory::default())).await;
    progress.keep(&server.context).await.unwrap();
    server.controllers.finish_work(&server.context).await;
    server
}

/// A Progress of ConfigMaps with these rules.
fn of_maps(rules: Value) -> Value {
    json!({
        "apiVersion": "testing.pintle.dev/v1alpha1", "kind": "Progress", "metadata": {"name": "maps"},
        "spec": {
            "for": {"apiVersion": "v1", "kind": "ConfigMap"}, "namespaces": ["default"],
            "with": {"secrets": {"apiVersion": "v1", "kind": "Secret", "owned": true}}, "rules": rules
        }
    })
}

#[test]
fn sets_compile() {
    for name in names() {
        for object in read(set(name).unwrap().as_bytes()).unwrap() {
            let plan = Plan::compile(&object);
            assert_eq!(plan.problem, None, "{}", plan.name);
            for (rule, compiled) in &plan.rules {
                assert!(compiled.is_ok(), "{} {rule}: {:?}", plan.name, compiled.as_ref().err());
            }
        }
    }
}

#[test]
fn files_have_progress_objects_only() {
    for (text, why) in [
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n", "ConfigMap \"m\" of \"v1\" is not a Progress"),
        ("apiVersion: testing.pintle.dev/v1alpha1\nkind: Progress\n", "Progress \"\""),
        ("a: [", "line 2: did not find expected node content"),
    ] {
        let error = read(text.as_bytes()).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[tokio::test]
async fn rules_write_what_their_expressions_say() {
    let secret = |rest: &str| format!("{{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {{'name': 's'}}{rest}}}");
    let create =
        json!({"name": "create", "when": "secrets.size() == 0", "create": (secret(", 'stringData': {'a': 'b'}"))});
    let at = |path: &[&str], object: &Value| object.at(path).cloned().unwrap_or_default();
    for (rules, path, wanted) in [
        (json!([{"name": "m", "merge": "{'data': {'n': 'x'}}"}]), &["data", "n"][..], Value::from("x")),
        (json!([{"name": "m", "when": "false", "merge": "{'data': {'n': 'x'}}"}]), &["data", "n"], Value::Null),
        (json!([{"name": "m", "percent": 0, "merge": "{'data': {'n': 'x'}}"}]), &["data", "n"], Value::Null),
        (json!([{"name": "m", "after": "1h", "merge": "{'data': {'n': 'x'}}"}]), &["data", "n"], Value::Null),
        (
            json!([{"name": "m", "after": "1h", "since": "'2020-01-01T00:00:00Z'", "merge": "{'data': {'n': 'x'}}"}]),
            &["data", "n"],
            Value::from("x"),
        ),
        (
            json!([(create.clone()), {"name": "m", "merge": "{'data': {'n': string(secrets.size())}}"}]),
            &["data", "n"],
            Value::from("1"),
        ),
        (
            json!([
                (create.clone()),
                {"name": "p", "patch": (secret(", 'data': {'a': 'Yw=='}"))},
                {"name": "m", "when": "secrets.size() > 0", "merge": "{'data': {'n': secrets[0].data.a}}"}
            ]),
            &["data", "n"],
            Value::from("Yw=="),
        ),
        (json!([{"name": "f", "removeFinalizers": ["a/b"]}]), &["metadata", "finalizers"], Value::Null),
        (
            json!([{"name": "d", "delete": "object", "when": "!has(object.metadata.finalizers)"}]),
            &["data"],
            Value::Null,
        ),
    ] {
        let shown = rules.to_json();
        let server = server(vec![of_maps(rules)]).await;
        let map = json!({"metadata": {"name": "m", "finalizers": ["a/b"]}});
        server.ok(Method::POST, MAPS, map).await;
        server.controllers.finish_work(&server.context).await;
        let found = server.ok(Method::GET, &format!("{MAPS}/m"), Value::Null).await;
        assert_eq!(at(path, &found), wanted, "{shown}");
    }
}

#[tokio::test]
async fn owners_and_events() {
    let rule = json!([{
        "name": "create", "when": "secrets.size() == 0",
        "create": "{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'generateName': 's-'}}",
        "event": {"reason": "Made", "message": "'made for ' + object.metadata.name"}
    }]);
    let server = server(vec![of_maps(rule)]).await;
    let map = server.ok(Method::POST, MAPS, json!({"metadata": {"name": "m"}})).await;
    server.controllers.finish_work(&server.context).await;
    let secrets = server.ok(Method::GET, "/api/v1/namespaces/default/secrets", Value::Null).await;
    let [secret] = secrets.items_at(&["items"]) else { panic!("{}", secrets.to_json()) };
    let owner = &secret.items_at(&["metadata", "ownerReferences"])[0];
    assert_eq!(owner.get("uid"), map.at(&["metadata", "uid"]));
    assert_eq!(owner.get("controller"), Some(&Value::Bool(true)));
    let events = server.ok(Method::GET, "/api/v1/namespaces/default/events", Value::Null).await;
    let made = events.items_at(&["items"]).iter().find(|event| event.str_at(&["reason"]) == "Made");
    assert_eq!(made.map(|event| event.str_at(&["message"])), Some("made for m"));
}

#[tokio::test]
async fn deployments_become_available() {
    let server = server(read(set("workloads").unwrap().as_bytes()).unwrap()).await;
    let template =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    });
    let all = "/apis/apps/v1/namespaces/default/deployments";
    // admission of Pods asks for it
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    server.ok(Method::POST, accounts, json!({"metadata": {"name": "default"}})).await;
    server.ok(Method::POST, all, deployment).await;
    server.controllers.finish_work(&server.context).await;
    let deployment = server.ok(Method::GET, &format!("{all}/web"), Value::Null).await;
    let available = deployment.at(&["status", "availableReplicas"]);
    assert_eq!(available, Some(&Value::Int(3)), "{}", deployment.to_json());
}
