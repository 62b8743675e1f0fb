//! What a recording has.

use http::Method;
use machinery::{Value, json};

use super::super::tests::{MAPS, TestServer};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

async fn recorded(server: &TestServer, secrets: bool) -> Value {
    let (code, body) = server.create("Recording", "r", json!({"end": true, "secrets": secrets})).await;
    assert_eq!(code, 201, "{}", body.to_json());
    body.get("status").cloned().unwrap()
}

async fn begin(server: &TestServer) {
    assert_eq!(server.create("Recording", "r", json!({})).await.0, 201);
}

#[tokio::test]
async fn requests_responses_and_events_are_steps() {
    let server = TestServer::start().await;
    let (code, body) = server.create("Recording", "r", json!({"end": true})).await;
    assert_eq!((code, body.str_at(&["message"])), (400, "no recording has begun"));
    server.put("before", "1").await;
    begin(&server).await;
    let mut watch = server.watch().await;
    server.put("a", "1").await;
    server.get(&format!("{MAPS}/none")).await;
    server.get(MAPS).await;
    assert_eq!(watch.next().await.as_deref(), Some("ADDED a1"));
    let status = recorded(&server, false).await;
    server.put("after", "1").await;
    assert_eq!(status.get("truncated"), Some(&Value::Bool(false)));
    let steps = status.items_at(&["steps"]);
    let ids: Vec<&str> = steps.iter().map(|step| step.str_at(&["id"])).collect();
    assert_eq!(ids, ["1-watch-configmaps", "2-create-configmaps", "3-get-configmaps", "4-list-configmaps"]);
    let [watched, created, missing, listed] = steps else { panic!("{}", status.to_json()) };
    let events = watched.items_at(&["answer"]);
    assert_eq!((events.len(), events[0].str_at(&["object", "data", "value"])), (1, "1"));
    assert!(watched.str_at(&["path"]).starts_with(&format!("{MAPS}?watch=true")));
    assert_eq!((created.str_at(&["method"]), created.str_at(&["path"])), ("POST", MAPS));
    assert_eq!(created.str_at(&["body", "data", "value"]), "1");
    let code = |step: &Value| step.at(&["answer", "status"]).and_then(Value::as_int);
    assert_eq!((code(created), code(missing)), (Some(201), Some(404)));
    assert_eq!(created.str_at(&["answer", "headers", "content-type"]), "application/json");
    assert_eq!(listed.items_at(&["answer", "body", "items"]).len(), 2, "a list is sent in pieces");
    let sent = created.get("headers").and_then(Value::as_object).unwrap();
    let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Accept", "Content-Type", "User-Agent"], "no other header is kept");
}

#[tokio::test]
async fn secrets_are_replaced_unless_they_are_asked_for() {
    let server = TestServer::start().await;
    let run = async |secrets: bool| {
        begin(&server).await;
        let annotations =
            json!({"kubectl.kubernetes.io/last-applied-configuration": "{\"stringData\":{\"k\":\"hidden\"}}"});
        let secret = json!({"metadata": {"name": "s", "annotations": annotations}, "stringData": {"k": "hidden"}});
        server.ok(Method::POST, SECRETS, secret).await;
        server.get(&format!("{SECRETS}?watch=true&timeoutSeconds=1")).await;
        server.call(Method::PATCH, &format!("{SECRETS}/s"), json!({"data": {"k": "aGlkZGVu"}})).await;
        server.get(SECRETS).await;
        let review =
            json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": "hidden"}});
        server.call(Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews", review).await;
        server.ok(Method::DELETE, &format!("{SECRETS}/s"), Value::Null).await;
        recorded(&server, secrets).await.to_json()
    };
    let (kept, replaced) = (run(true).await, run(false).await);
    assert!(kept.contains("hidden") && kept.contains("aGlkZGVu"));
    assert!(!replaced.contains("hidden") && !replaced.contains("aGlkZGVu"), "{replaced}");
    assert_eq!(kept.matches("\"id\"").count(), replaced.matches("\"id\"").count(), "no step is missing");
}
