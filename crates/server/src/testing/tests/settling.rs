//! Waits until nothing happens any more.

use std::sync::Arc;
use std::time::Duration;

use base::clock;
use http::Method;
use machinery::{Value, json};
use store::Memory;

use super::{API, MAPS, TestServer};
use crate::controllers::Controllers;

#[tokio::test]
async fn settle_returns_when_everything_is_delivered() {
    let server = Arc::new(TestServer::start().await);
    let report = server.settle(json!({"quiet": "5ms"})).await;
    assert_eq!((report.get("settled"), report.str_at(&["reason"])), (Some(&Value::Bool(true)), "Settled"));
    let mut watch = server.watch().await;
    server.put("a", "1").await;
    let (waiting, begun) = (server.clone(), clock::instant());
    let settling =
        base::task::spawn("settle", async move { waiting.settle(json!({"quiet": "0s", "timeout": "20s"})).await });
    // nothing reads the watch, so it is behind
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!settling.is_finished());
    let (delivered, deliveries) = std::sync::mpsc::sync_channel(1);
    let reading = base::task::spawn("watch", async move {
        while watch.next().await.is_some() {
            let _ = delivered.try_send(clock::instant());
        }
    });
    let report = settling.await.unwrap();
    // 5 ms on a machine that does nothing else
    let late = deliveries.try_recv().unwrap().elapsed();
    assert!(late < Duration::from_millis(100), "{late:?}");
    assert_eq!(report.get("settled"), Some(&Value::Bool(true)), "{}", report.to_json());
    assert!(begun.elapsed() < Duration::from_secs(5));
    reading.abort();
    let (code, list) = server.get(&format!("{API}/settles")).await;
    assert_eq!((code, list.items_at(&["items"]).len()), (200, 0), "it is not stored");
}

#[tokio::test]
async fn settle_names_who_is_behind() {
    let server = TestServer::start().await;
    let mut watch = server.watch().await;
    assert_eq!(server.create("Gate", "g", json!({})).await.0, 201);
    server.put("a", "1").await;
    let report = tokio::select! {
        biased;
        event = watch.next() => panic!("{event:?} is held"),
        report = server.settle(json!({"timeout": "30ms", "quiet": "1ms"})) => report,
    };
    let behind = &report.items_at(&["behind"])[0];
    assert_eq!((behind.str_at(&["heldBy"]), behind.str_at(&["userAgent"])), ("Gate g", "tester/1"));
    let message = "the watch of configmaps in default by tester/1 (admin) waits for 1 event held by Gate g";
    assert_eq!((report.str_at(&["reason"]), report.str_at(&["message"])), ("TimedOut", message));
    let report = server.settle(json!({"timeout": "5s", "quiet": "1ms", "held": "Ignore"})).await;
    assert_eq!((report.get("settled"), report.get("held")), (Some(&Value::Bool(true)), Some(&Value::Int(1))));
}

#[tokio::test]
async fn settle_ends_when_writes_do_not() {
    let server = Arc::new(TestServer::start().await);
    server.put("a", "0").await;
    let writing = server.clone();
    let writer = base::task::spawn("writer", async move {
        for number in 1.. {
            writing.change("a", &number.to_string()).await;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    });
    let report = server.settle(json!({"quiet": "10s", "timeout": "20s", "rounds": 3})).await;
    assert_eq!(report.str_at(&["reason"]), "StillWriting", "{}", report.to_json());
    assert_eq!(report.str_at(&["message"]), "objects are still written, configmaps default/a was the last");
    let report = server.settle(json!({"quiet": "1ms", "timeout": "20s", "ignore": ["configmaps"]})).await;
    assert_eq!(report.get("settled"), Some(&Value::Bool(true)));
    writer.abort();
}

#[tokio::test]
async fn settle_gives_clients_the_quiet_time_after_a_late_event() {
    let server = Arc::new(TestServer::start().await);
    let mut watch = server.watch().await;
    server.fault("late", json!({"effect": {"watch": "Delay", "delay": "150ms"}})).await;
    server.put("a", "1").await;
    let writing = server.clone();
    let client = base::task::spawn("client", async move {
        assert_eq!(watch.next().await.as_deref(), Some("ADDED a1"));
        let reading = async { while watch.next().await.is_some() {} };
        let handling = async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            writing.put("b", "1").await;
        };
        tokio::join!(reading, handling);
    });
    let report = server.settle(json!({"quiet": "120ms", "timeout": "20s"})).await;
    assert_eq!(report.get("settled"), Some(&Value::Bool(true)), "{}", report.to_json());
    assert_eq!(server.get(&format!("{MAPS}/b")).await.0, 200, "the client has handled the event");
    client.abort();
}

#[tokio::test]
async fn settle_waits_for_clients_that_back_off() {
    let server = Arc::new(TestServer::start().await);
    for (name, effect) in [
        ("throttled", json!({"error": {"code": 429, "retryAfterSeconds": 1}})),
        ("reset", json!({"connection": "Reset"})),
        ("lost", json!({"afterCommit": "Timeout"})),
    ] {
        let watch = server.watch().await;
        server.fault("f", json!({"match": {"verbs": ["create"]}, "when": {"count": 1}, "effect": effect})).await;
        assert!(server.put(name, "1").await >= 429);
        let writing = server.clone();
        let client = base::task::spawn("client", async move {
            tokio::time::sleep(Duration::from_millis(150)).await;
            writing.put(name, "1").await
        });
        drop(watch);
        server.delete("faults", "f").await;
        let report = server.settle(json!({"quiet": "10ms", "timeout": "20s"})).await;
        assert!(client.is_finished(), "{name}: {}", report.to_json());
    }
    server.fault("f", json!({"match": {"verbs": ["get"]}, "effect": {"error": {"code": 503}}})).await;
    assert_eq!(server.get(&format!("{MAPS}/a")).await.0, 503);
    let report = server.settle(json!({"quiet": "0s", "timeout": "2s"})).await;
    assert_eq!(report.get("settled"), Some(&Value::Bool(true)), "a command is not expected to repeat anything");
    let effect = json!({"error": {"code": 503, "retryAfterSeconds": 9}});
    server.fault("e", json!({"match": {"verbs": ["list"]}, "effect": effect})).await;
    assert_eq!(server.get(MAPS).await.0, 503);
    let report = server.settle(json!({"quiet": "0s", "timeout": "30ms"})).await;
    let message = "tester/1 (admin) has yet to repeat \"list configmaps default\", which Fault e made fail";
    assert_eq!(report.str_at(&["message"]), message);
}

#[tokio::test]
async fn settle_waits_for_a_watch_that_a_fault_has_ended() {
    let server = Arc::new(TestServer::start().await);
    let mut watch = server.watch().await;
    server.fault("ends", json!({"effect": {"watch": "End"}, "when": {"count": 1}})).await;
    server.put("a", "1").await;
    assert_eq!(watch.next().await, None);
    let watching = server.clone();
    let client = base::task::spawn("client", async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let mut watch = watching.watch().await;
        while watch.next().await.is_some() {}
    });
    let report = server.settle(json!({"quiet": "0s", "timeout": "20s"})).await;
    assert_eq!(report.get("settled"), Some(&Value::Bool(true)), "{}", report.to_json());
    assert!(report.get("milliseconds").and_then(Value::as_int) >= Some(150), "{}", report.to_json());
    client.abort();
}

#[tokio::test]
async fn settle_waits_for_the_controllers_of_the_server() {
    let server = TestServer::start_on(Arc::new(Memory::default()), Some(Controllers::default())).await;
    let spaces = "/api/v1/namespaces";
    server.ok(Method::POST, spaces, json!({"metadata": {"name": "n"}})).await;
    for number in 0..13 {
        let object = json!({"metadata": {"name": (format!("m{number}"))}});
        server.ok(Method::POST, &format!("{spaces}/n/configmaps"), object).await;
    }
    server.ok(Method::DELETE, &format!("{spaces}/n"), Value::Null).await;
    let report = server.settle(json!({"quiet": "0s"})).await;
    assert_eq!(report.get("settled"), Some(&Value::Bool(true)), "{}", report.to_json());
    assert_eq!(server.get(&format!("{spaces}/n")).await.0, 404);
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "u"});
    let dependent = json!({"metadata": {"name": "d", "ownerReferences": [owner]}});
    server.ok(Method::POST, MAPS, dependent).await;
    let report = server.settle(json!({"quiet": "0s", "timeout": "30ms"})).await;
    let message = "the controller \"garbage collector\" of the server has work";
    assert_eq!((report.str_at(&["reason"]), report.str_at(&["message"])), ("TimedOut", message));
    // the grace period of a dependent without an owner
    server.create("Clock", "clock", json!({"advance": "1m"})).await;
    server.settle(json!({"quiet": "0s"})).await;
    assert_eq!(server.get(&format!("{MAPS}/d")).await.0, 404);
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}});
    server.ok(Method::POST, "/api/v1/namespaces/default/events", event).await;
    let report = server.settle(json!({"quiet": "0s", "timeout": "5s"})).await;
    assert_eq!(report.get("settled"), Some(&Value::Bool(true)), "an expiry in an hour: {}", report.to_json());
}
