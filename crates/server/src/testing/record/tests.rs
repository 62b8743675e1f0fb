//! Tests of the content of recordings.

use base::request::{RequestInfo, Verb};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use machinery::{Status, Value, json, protobuf};

use super::super::tests::{MAPS, TestServer};
use super::redact::Redacted;
use super::{Recorded, Secrets, steps};

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

/// A recorded request, and its response with this body.
fn exchange(method: &str, path: &str, media: &str, body: Vec<u8>, response: Vec<u8>) -> Recorded {
    let info = RequestInfo::parse(&method.parse::<Method>().unwrap(), path, "");
    Recorded {
        info,
        method: method.to_owned(),
        target: path.to_owned(),
        accept: format!("{media}, application/json"),
        content_type: media.to_owned(),
        agent: "m/1".to_owned(),
        body,
        code: 200,
        headers: vec![("content-type".to_owned(), media.to_owned())],
        response,
    }
}

fn step_of(recorded: &Recorded) -> Value {
    steps::step(0, recorded, &mut Redacted::new(Secrets::Replaced)).unwrap()
}

#[test]
fn protobuf_is_recorded_as_json() {
    let media = "application/vnd.kubernetes.protobuf";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let encoded = protobuf::encode(&map).unwrap();
    let step = step_of(&exchange("POST", MAPS, media, encoded.clone(), encoded.clone()));
    assert_eq!((step.get("body"), step.at(&["answer", "body"])), (Some(&map), Some(&map)));
    assert_eq!(step.str_at(&["answer", "headers", "content-type"]), "application/json");
    let headers = json!({"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "m/1"});
    assert_eq!((step.get("headers"), step.get("protobuf")), (Some(&headers), None));

    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"},
        "items": [{"metadata": {"name": "a"}, "data": {"k": "v"}}]});
    let step = step_of(&exchange("GET", MAPS, media, vec![], protobuf::encode(&list).unwrap()));
    assert_eq!(step.at(&["answer", "body"]), Some(&list));

    let status = Status::not_found("", "configmaps", "a");
    let step = step_of(&exchange("GET", &format!("{MAPS}/a"), media, vec![], protobuf::status(&status)));
    assert_eq!(step.at(&["answer", "body"]), Some(&status.to_value()));

    let mut events = protobuf::watch_event("ADDED", &encoded);
    events.extend(protobuf::watch_event("MODIFIED", &encoded));
    // the connection ended in the middle of an event
    events.extend(&protobuf::watch_event("DELETED", &encoded)[..9]);
    let mut watch = exchange("GET", MAPS, media, vec![], events);
    watch.info.verb = Verb::Watch;
    let wanted = json!([{"type": "ADDED", "object": (map.clone())}, {"type": "MODIFIED", "object": map}]);
    assert_eq!(step_of(&watch).get("answer"), Some(&wanted));

    let unknown = protobuf::envelope("example.com/v1", "Boat", b"\xff\x00");
    let step = step_of(&exchange("POST", "/apis/example.com/v1/boats", media, unknown.clone(), unknown));
    assert!(step.get("base64").is_some() && step.get("protobuf") == Some(&Value::Bool(true)), "{}", step.to_json());
    assert_eq!(step.str_at(&["headers", "Content-Type"]), media);
}

#[test]
fn secrets_are_numbered() {
    let mut redacted = Redacted::new(Secrets::Replaced);
    let media = "application/vnd.kubernetes.protobuf";
    let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data});
    // "one", "two" and "one"
    let data = json!({"a": "b25l", "b": "dHdv", "c": "b25l"});
    let encoded = protobuf::encode(&secret(data)).unwrap();
    let recorded = exchange("PUT", &format!("{SECRETS}/s"), media, encoded.clone(), encoded);
    let step = steps::step(0, &recorded, &mut redacted).unwrap();
    let placeholder = |number: u8| STANDARD.encode(format!("redacted-{number}"));
    let wanted = json!({"a": (placeholder(1)), "b": (placeholder(2)), "c": (placeholder(1))});
    assert_eq!((step.at(&["body", "data"]), step.at(&["answer", "body", "data"])), (Some(&wanted), Some(&wanted)));
    let text = json!({"stringData": {"a": "two", "b": "three"}}).to_json().into_bytes();
    let recorded = exchange("PATCH", &format!("{SECRETS}/s"), "application/merge-patch+json", text, b"{}".to_vec());
    let step = steps::step(1, &recorded, &mut redacted).unwrap();
    assert_eq!(step.at(&["body", "stringData"]), Some(&json!({"a": "redacted-2", "b": "redacted-3"})));
}
