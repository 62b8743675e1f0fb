//! Clocks in process.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use machinery::{Value, json};
use store::Memory;

use super::{API, MAPS, TestServer};
use crate::controllers::Controllers;

const EVENTS: &str = "/api/v1/namespaces/default/events";
const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const CLOCK: &str = "/apis/testing.pintle.dev/v1alpha1/clocks/clock";

impl TestServer {
    /// One whose controllers run, and whose Events live for an hour.
    async fn with_controllers() -> TestServer {
        let hour = Duration::from_secs(3600);
        let mut controllers = Controllers::parse(&[]).unwrap();
        (controllers.alone, controllers.event_ttl) = (true, hour);
        TestServer::start_on(Arc::new(Memory::default()), Some(controllers)).await
    }

    async fn clock(&self, spec: Value) -> Value {
        let (code, body) = self.create("Clock", "clock", spec).await;
        assert_eq!(code, 201, "{}", body.to_json());
        body
    }

    async fn change_clock(&self, spec: Value) -> (u16, Value) {
        self.call(Method::PATCH, CLOCK, json!({"spec": (spec)})).await
    }

    /// The creationTimestamp of a new ConfigMap.
    async fn created(&self, name: &str) -> String {
        let map = self.ok(Method::POST, MAPS, json!({"metadata": {"name": name}})).await;
        map.str_at(&["metadata", "creationTimestamp"]).to_owned()
    }
}

#[tokio::test]
async fn objects_have_the_time_of_the_clock() {
    let server = TestServer::start().await;
    let before = server.created("before").await;
    let clock = server.clock(json!({"stopped": true, "time": "2090-01-01T00:00:00Z"})).await;
    assert_eq!(clock.get("status").unwrap().to_json(), r#"{"time":"2090-01-01T00:00:00.000000Z"}"#);
    let map = json!({"metadata": {"name": "a", "finalizers": ["example.com/f"]}});
    let map = server.ok(Method::POST, MAPS, map).await;
    assert_eq!(map.str_at(&["metadata", "creationTimestamp"]), "2090-01-01T00:00:00Z");
    assert_eq!(map.items_at(&["metadata", "managedFields"])[0].str_at(&["time"]), "2090-01-01T00:00:00Z");
    assert_eq!(server.change_clock(json!({"advance": "2h"})).await.0, 200);
    assert_eq!(server.change_clock(json!({"advance": "2h"})).await.0, 200, "the total has not changed");
    let deleted = server.ok(Method::DELETE, &format!("{MAPS}/a"), Value::Null).await;
    assert_eq!(deleted.str_at(&["metadata", "deletionTimestamp"]), "2090-01-01T02:00:00Z");
    assert_eq!(server.change_clock(json!({"time": "2090-06-01T00:00:00Z"})).await.0, 200);
    assert_eq!(server.created("b").await, "2090-06-01T00:00:00Z");
    assert_eq!(server.change_clock(json!({"stopped": false})).await.0, 200);
    assert!(server.created("c").await.starts_with("2090-06-01T00:0"), "it goes on from there");
    server.delete("clocks", "clock").await;
    let after = server.created("after").await;
    assert!(before <= after && after.as_str() < "2090", "{before} {after}");
}

#[tokio::test]
async fn ages_follow_the_clock() {
    let server = TestServer::start().await;
    server.clock(json!({"stopped": true})).await;
    server.put("a", "1").await;
    server.change_clock(json!({"advance": "3h"})).await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for path in [format!("{MAPS}/a"), MAPS.to_owned(), format!("{MAPS}?watch=true&resourceVersion=0")] {
        let mut response = server.send_accepting(Method::GET, &path, &Value::Null, table).await.into_body();
        let frame = response.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = String::from_utf8_lossy(&frame).into_owned();
        assert!(text.contains(r#""3h""#), "{path}: {text}");
    }
}

#[tokio::test]
async fn bad_clocks_get_one_clear_error() {
    let server = TestServer::start().await;
    let (code, body) = server.create("Clock", "other", json!({})).await;
    assert!(code == 422 && body.str_at(&["message"]).contains("one Clock, whose name is clock"), "{}", body.to_json());
    let (code, body) = server.create("Clock", "clock", json!({"time": "2001-01-01T00:00:00Z"})).await;
    assert!(code == 422 && body.str_at(&["message"]).contains("never goes back"), "{}", body.to_json());
    server.clock(json!({"time": "2090-01-01T00:00:00Z", "stopped": true, "advance": "2h", "seed": 1})).await;
    for (spec, why) in [
        (
            json!({"time": "2089-01-01T00:00:00Z"}),
            "Clock.testing.pintle.dev \"clock\" is invalid: spec.time: Invalid value: \"2089-01-01T00:00:00Z\": \
             the clock shows 2090-01-01T02:00:00.000000Z and never goes back",
        ),
        (json!({"advance": "1h"}), "the clock has been advanced by more in all, and never goes back"),
        (json!({"advance": (Value::Null)}), "the clock has been advanced by more in all, and never goes back"),
        (json!({"advance": "tomorrow"}), "should match"),
        (json!({"time": "tomorrow"}), "date-time"),
        (json!({"seed": 2}), "the seed cannot be changed"),
        (json!({"seed": (Value::Null)}), "the seed cannot be changed"),
    ] {
        let given = spec.to_json();
        let (code, body) = server.change_clock(spec).await;
        let message = body.str_at(&["message"]);
        assert!(code == 422 && message.contains(why), "{given}: {code} {message}");
    }
    assert_eq!(server.created("a").await, "2090-01-01T02:00:00Z", "a refused change has no effect");
    let path = format!("{CLOCK}?dryRun=All");
    server.ok(Method::PATCH, &path, json!({"spec": {"time": "2095-01-01T00:00:00Z"}})).await;
    assert_eq!(server.created("b").await, "2090-01-01T02:00:00Z", "nor has a dry run");
}

#[tokio::test]
async fn a_clock_outlives_its_server() {
    let store = Arc::new(Memory::default());
    let server = TestServer::start_on(store.clone(), None).await;
    server.clock(json!({"stopped": true, "time": "2090-01-01T00:00:00Z", "seed": 3})).await;
    let first = server.ok(Method::POST, MAPS, json!({"metadata": {"name": "a"}})).await;
    server.ok(Method::DELETE, &format!("{MAPS}/a"), Value::Null).await;
    drop(server);
    let server = TestServer::start_on(store, None).await;
    let second = server.ok(Method::POST, MAPS, json!({"metadata": {"name": "a"}})).await;
    assert_eq!(second.str_at(&["metadata", "creationTimestamp"]), "2090-01-01T00:00:00Z");
    let uid = |map: &Value| map.str_at(&["metadata", "uid"]).to_owned();
    assert_ne!(uid(&first), uid(&second), "no uid is given twice");
}

#[tokio::test]
async fn what_an_advance_makes_due_is_done_before_settle_returns() {
    let server = TestServer::with_controllers().await;
    server.clock(json!({"stopped": true})).await;
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "8c2c6b51-0c2e-4b43-8f0a-3f3a0e7e2a10"}]);
    for round in 1..=5 {
        let object = json!({"kind": "Namespace", "name": "default", "namespace": "default"});
        let event = json!({"metadata": {"name": "e"}, "involvedObject": (object), "type": "Normal"});
        server.ok(Method::POST, EVENTS, event).await;
        server
            .ok(Method::POST, MAPS, json!({"metadata": {"name": "orphan", "ownerReferences": (owner.clone())}}))
            .await;
        let waiting = server.settle(json!({"quiet": "20ms", "timeout": "200ms"})).await;
        assert_eq!(waiting.get("settled"), Some(&Value::Bool(false)), "an owner may come for ten seconds");
        assert_eq!(server.get(&format!("{EVENTS}/e")).await.0, 200);
        assert_eq!(server.get(&format!("{MAPS}/orphan")).await.0, 200);
        server.change_clock(json!({"advance": (format!("{}h", 2 * round))})).await;
        let settled = server.settle(json!({"quiet": "1ms", "timeout": "20s"})).await;
        assert_eq!(settled.get("settled"), Some(&Value::Bool(true)), "{}", settled.to_json());
        assert_eq!(server.get(&format!("{EVENTS}/e")).await.0, 404, "an Event lives for an hour");
        assert_eq!(server.get(&format!("{MAPS}/orphan")).await.0, 404, "the grace period of its owner is over");
    }
}

#[tokio::test]
async fn faults_end_by_the_clock() {
    let server = TestServer::start().await;
    server.clock(json!({"stopped": true})).await;
    let effect = json!({"error": {"code": 503}});
    server
        .fault("busy", json!({"match": {"resources": ["configmaps"]}, "when": {"ttl": "1h"}, "effect": effect}))
        .await;
    assert_eq!(server.get(MAPS).await.0, 503);
    server.change_clock(json!({"advance": "59m"})).await;
    assert_eq!(server.get(MAPS).await.0, 503);
    server.change_clock(json!({"advance": "60m"})).await;
    assert_eq!(server.get(MAPS).await.0, 200);
    server.status("faults/busy", |status| status.str_at(&["phase"]) == "Ended").await;
}

/// The bodies of the responses to a script, which a number chooses.
async fn script(number: u64) -> Vec<String> {
    let server = TestServer::start().await;
    server.clock(json!({"stopped": true, "time": "2090-01-01T00:00:00Z", "seed": 5})).await;
    // without controllers, nothing else creates it, and a Pod would be refused after a second
    server.ok(Method::POST, ACCOUNTS, json!({"metadata": {"name": "default"}})).await;
    let mut bodies = vec![];
    let mut state = number;
    for step in 0..80 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (what, name) = (state >> 60, format!("o{}", state >> 33 & 3));
        let pod = json!({"containers": [{"name": "c", "image": "i"}]});
        let service = json!({"type": "NodePort", "ports": [{"port": 80}]});
        let (method, path, body) = match what {
            0..=2 => (Method::POST, MAPS.to_owned(), json!({"metadata": {"generateName": (format!("{name}-"))}})),
            3..=5 => (Method::POST, MAPS.to_owned(), json!({"metadata": {"name": name}})),
            6..=7 => (Method::DELETE, format!("{MAPS}/{name}"), Value::Null),
            8 => (Method::PATCH, format!("{MAPS}/{name}"), json!({"data": {"step": (format!("{step}"))}})),
            9 => (Method::PATCH, CLOCK.to_owned(), json!({"spec": {"advance": (format!("{step}m"))}})),
            10..=11 => (Method::POST, PODS.to_owned(), json!({"metadata": {"generateName": "p-"}, "spec": (pod)})),
            12 => (Method::DELETE, PODS.to_owned(), Value::Null),
            13 => {
                let services = PODS.replace("pods", "services");
                (Method::POST, services, json!({"metadata": {"name": name}, "spec": (service)}))
            }
            _ => (Method::GET, MAPS.to_owned(), Value::Null),
        };
        let (code, body) = server.call(method, &path, body).await;
        // the Clock itself was created before there was one
        let body = if path == CLOCK { body.get("status").cloned().unwrap_or_default() } else { body };
        bodies.push(format!("{path} {code} {}", body.to_json()));
    }
    bodies
}

#[tokio::test]
async fn a_seed_makes_the_responses_to_a_script_the_same_bytes() {
    let mut uids = std::collections::HashSet::new();
    for number in 0..3 {
        let (one, other) = tokio::join!(script(number), script(number));
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one, other, "script {number}");
        }
        uids.extend(one);
    }
    assert!(uids.len() > 120, "the scripts differ");
    let server = TestServer::start().await;
    server.clock(json!({"seed": 5})).await;
    let uid = async |name: &str| {
        let map = server.ok(Method::POST, MAPS, json!({"metadata": {"name": name}})).await;
        map.str_at(&["metadata", "uid"]).to_owned()
    };
    let (a, b) = (uid("a").await, uid("b").await);
    server.ok(Method::DELETE, &format!("{MAPS}/a"), Value::Null).await;
    let again = uid("a").await;
    assert!(a != b && a != again && b != again, "{a} {b} {again}");
    let other = server.get(&format!("{API}/clocks")).await.1;
    assert_eq!(other.items_at(&["items"]).len(), 1);
}
