//! Faults, gates, waits and clocks in process.

mod settling;
mod time;

use std::sync::Arc;
use std::time::Duration;

use access::authorization::{self, AuthorizationMode};
use base::clock;
use http::Method;
use http_body_util::BodyExt as _;
use machinery::{Value, json};
use objects::Storage;
use store::Memory;
use tokio::sync::watch;

use super::{KeptObservations, Testing};
use crate::assembly::{ApiConfig, Beginning};
use crate::controllers::Controllers;
use crate::http::{Body, Edge, EdgeParts, Health};
use crate::limits;
use crate::test_server::{administrator, parts, read, request};

const API: &str = "/apis/testing.pintle.dev/v1alpha1";
pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server with `--testing`.
pub struct TestServer {
    edge: Arc<Edge>,
    testing: Arc<Testing>,
    stop: watch::Sender<bool>,
}

/// A watch of a test.
pub struct TestWatch(Body, String);

impl TestServer {
    pub async fn start() -> TestServer {
        TestServer::start_on(Arc::new(Memory::default()), None).await
    }

    /// Controllers run, if they are given.
    async fn start_on(store: Arc<Memory>, controllers: Option<Controllers>) -> TestServer {
        TestServer::start_with(store, controllers, Arc::default()).await
    }

    async fn start_with(
        store: Arc<Memory>,
        controllers: Option<Controllers>,
        kept: Arc<KeptObservations>,
    ) -> TestServer {
        let storage = Storage::own(store);
        let runs = controllers.is_some();
        let health = Arc::new(Health::new(storage.store.clone()));
        let modes = authorization::modes(vec![AuthorizationMode::Rbac]);
        let controllers = controllers.unwrap_or_default();
        let api = ApiConfig { modes, controllers, ..ApiConfig::default() };
        let testing = Testing::new(Duration::from_secs(60), kept);
        let beginning = Beginning { observers: vec![testing.observer()], ..Beginning::of(storage) };
        let clock = Some(testing.clock().clone());
        let assembled = clock::within(clock, api.assemble(beginning)).await.unwrap();
        let stop = watch::Sender::new(false);
        super::keep_kinds(true, &assembled.context).await.unwrap();
        super::start(&testing, &assembled, stop.subscribe());
        if runs {
            clock::scoped(Some(testing.clock()), || assembled.start(&api, &stop.subscribe()));
        }
        let edge = Arc::new(Edge::new(EdgeParts {
            interceptor: Some(testing.clone().interceptor()),
            clock: Some(testing.clock().clone()),
            ..parts(assembled.context, health, &stop)
        }));
        TestServer { edge, testing, stop }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> http::Response<Body> {
        self.send_accepting(method, path, body, "application/json").await
    }

    /// The code of the response to a client with this User-Agent; none is sent if it is empty.
    async fn send_as(&self, agent: &str, path: &str) -> u16 {
        let mut request = request(Method::GET, path, &Value::Null);
        if !agent.is_empty() {
            request.headers_mut().insert("user-agent", agent.parse().unwrap());
        }
        self.edge.clone().serve(administrator(), request).await.status().as_u16()
    }

    async fn send_accepting(&self, method: Method, path: &str, body: &Value, accept: &str) -> http::Response<Body> {
        let mut request = request(method, path, body);
        for (name, value) in [("user-agent", "tester/1"), ("accept", accept)] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        self.edge.clone().serve(administrator(), request).await
    }

    /// The code and the body of a response; the code is 0 if the connection ends before it does.
    pub async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        read(self.send(method, path, &body).await).await
    }

    pub async fn ok(&self, method: Method, path: &str, body: Value) -> Value {
        let (code, body) = self.call(method, path, body).await;
        assert!((200..300).contains(&code), "{path}: {code} {}", body.to_json());
        body
    }

    pub async fn create(&self, kind: &str, name: &str, spec: Value) -> (u16, Value) {
        let object = json!({"apiVersion": "testing.pintle.dev/v1alpha1", "kind": kind, "metadata": {"name": name},
            "spec": (spec)});
        self.call(Method::POST, &format!("{API}/{}s", kind.to_lowercase()), object).await
    }

    async fn fault(&self, name: &str, spec: Value) {
        let (code, body) = self.create("Fault", name, spec).await;
        assert_eq!(code, 201, "{}", body.to_json());
    }

    pub async fn put(&self, name: &str, value: &str) -> u16 {
        let object = json!({"metadata": {"name": name}, "data": {"value": value}});
        self.call(Method::POST, MAPS, object).await.0
    }

    async fn change(&self, name: &str, value: &str) -> u16 {
        self.call(Method::PATCH, &format!("{MAPS}/{name}"), json!({"data": {"value": value}})).await.0
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, Value::Null).await
    }

    async fn delete(&self, kind: &str, name: &str) {
        self.ok(Method::DELETE, &format!("{API}/{kind}/{name}"), Value::Null).await;
    }

    /// Watches the ConfigMaps from now on.
    pub async fn watch(&self) -> TestWatch {
        let revision = self.edge.context.objects.revision();
        let path = format!("{MAPS}?watch=true&resourceVersion={revision}");
        let response = self.send(Method::GET, &path, &Value::Null).await;
        assert_eq!(response.status().as_u16(), 200);
        TestWatch(response.into_body(), String::new())
    }

    /// The status once it is as wanted.
    async fn status(&self, path: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let status = self.ok(Method::GET, &format!("{API}/{path}"), Value::Null).await.get("status").cloned();
            if let Some(status) = status.filter(&is_it) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn settle(&self, spec: Value) -> Value {
        let (code, body) = self.create("Settle", "s", spec).await;
        assert_eq!(code, 201, "{}", body.to_json());
        body.get("status").cloned().unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl TestWatch {
    /// The next event, as its type and the name and value of its object; `None` at the end.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((line, rest)) = self.1.split_once('\n') {
                let event = machinery::value::decode(line.as_bytes()).unwrap();
                let text = |path: &[&str]| event.str_at(path).to_owned();
                let (kind, name) = (text(&["type"]), text(&["object", "metadata", "name"]));
                let value = text(&["object", "data", "value"]) + event.str_at(&["object", "reason"]);
                self.1 = rest.to_owned();
                return Some(format!("{kind} {name}{value}"));
            }
            let frame = self.0.frame().await?.ok()?;
            self.1.push_str(std::str::from_utf8(frame.data_ref()?).unwrap());
        }
    }

    /// The next `count` events.
    async fn take(&mut self, count: usize) -> Vec<String> {
        let mut taken = vec![];
        for _ in 0..count {
            taken.extend(self.next().await);
        }
        taken
    }
}

#[tokio::test]
async fn requests_are_disrupted_as_a_fault_says() {
    let server = TestServer::start().await;
    let maps = json!({"resources": ["configmaps"], "verbs": ["create"]});
    for (effect, code, reason, is_stored) in [
        (json!({"error": {"code": 409}}), 409, "Conflict", false),
        (json!({"error": {"code": 410}}), 410, "Expired", false),
        (json!({"error": {"code": 429, "retryAfterSeconds": 7}}), 429, "TooManyRequests", false),
        (json!({"error": {"code": 500, "message": "no"}}), 500, "InternalError", false),
        (json!({"error": {"code": 503}}), 503, "ServiceUnavailable", false),
        (json!({"error": {"code": 401}}), 401, "Unauthorized", false),
        (json!({"error": {"code": 413}}), 413, "RequestEntityTooLarge", false),
        (json!({"error": {"code": 422}}), 422, "Invalid", false),
        (json!({"error": {"code": 502}}), 502, "", false),
        (json!({"error": {"code": 504}}), 504, "Timeout", false),
        (json!({"connection": "Reset"}), 500, "", false),
        (json!({"connection": "Cut"}), 0, "", true),
        (json!({"afterCommit": "Timeout"}), 504, "Timeout", true),
        (json!({"afterCommit": "Reset"}), 500, "", true),
        (json!({"delay": "1ms", "jitter": "1ms"}), 201, "", true),
    ] {
        server.fault("f", json!({"match": (maps.clone()), "effect": (effect.clone())})).await;
        let (found, body) = server.call(Method::POST, MAPS, json!({"metadata": {"name": "a"}})).await;
        assert_eq!((found, body.str_at(&["reason"])), (code, reason), "{}", effect.to_json());
        server.delete("faults", "f").await;
        let stored = server.call(Method::DELETE, &format!("{MAPS}/a"), Value::Null).await.0;
        assert_eq!(stored == 200, is_stored, "{}", effect.to_json());
    }
    assert_eq!(server.put("b", "1").await, 201, "the deletion of a fault ends its effect");
}

#[tokio::test]
async fn a_fault_names_itself_and_counts() {
    let server = TestServer::start().await;
    let when = json!({"every": 2, "count": 2});
    let matched =
        json!({"resources": ["configmaps"], "userAgents": ["tester/*"], "selector": {"matchLabels": {"a": "b"}}});
    let labelled = json!({"metadata": {"name": "x", "labels": {"a": "b"}}});
    server.ok(Method::POST, MAPS, labelled).await;
    assert_eq!(server.put("y", "1").await, 201);
    let effect = json!({"error": {"code": 429, "retryAfterSeconds": 3}});
    server.fault("busy", json!({"match": (matched), "when": (when), "effect": (effect)})).await;
    let path = format!("{MAPS}/x");
    let mut codes = vec![];
    for _ in 0..6 {
        assert_eq!(server.get(&format!("{MAPS}/y")).await.0, 200, "another object");
        assert_eq!(server.get(MAPS).await.0, 200, "a list has no labels");
        let response = server.send(Method::GET, &path, &Value::Null).await;
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        codes.push((response.status().as_u16(), header("pintle-fault"), header("retry-after")));
    }
    let busy = (429, Some("busy".to_owned()), Some("3".to_owned()));
    let well = (200, None, None);
    assert_eq!(codes, [well.clone(), busy.clone(), well.clone(), busy, well.clone(), well]);
    let status = server.status("faults/busy", |status| status.str_at(&["phase"]) == "Ended").await;
    assert_eq!(status.get("hits").and_then(Value::as_int), Some(2));
    assert_eq!(server.status("faults/busy", |_| true).await, status);
    let last = status.items_at(&["last"]);
    assert_eq!((last.len(), last[0].str_at(&["request"])), (2, "get configmaps default/x"));
    assert_eq!((last[0].str_at(&["user"]), last[0].str_at(&["userAgent"])), ("admin", "tester/1"));
    assert!(!server.testing.is_active(), "an ended fault costs no request anything");
}

#[tokio::test]
async fn reports_and_faults_outlive_the_context_of_their_workspace() {
    let (store, kept) = (Arc::new(Memory::default()), Arc::<KeptObservations>::default());
    let open = async || TestServer::start_with(store.clone(), None, kept.clone()).await;
    let before = open().await;
    before
        .fault("third", json!({"match": {"verbs": ["get"]}, "when": {"nth": 3}, "effect": {"error": {"code": 500}}}))
        .await;
    assert_eq!((before.get(MAPS).await.0, before.get(MAPS).await.0), (200, 200));
    let path = format!("{MAPS}/a");
    assert_eq!((before.get(&path).await.0, before.get(&path).await.0), (404, 404));
    drop(before);
    let after = open().await;
    assert_eq!(after.get(&path).await.0, 500, "the third one");
    let report = after.create("Report", "r", json!({})).await.1;
    let requests = report.items_at(&["status", "agents"])[0].items_at(&["requests"]);
    let count =
        |verb: &str| requests.iter().find(|it| it.str_at(&["verb"]) == verb).and_then(|it| it.get("count").cloned());
    assert_eq!((count("list"), count("get")), (Some(Value::Int(2)), Some(Value::Int(3))));
    kept.reset();
    drop(after);
    assert_eq!(open().await.get(&path).await.0, 404, "after a reset, matches are counted anew");
}

#[tokio::test]
async fn requests_for_the_api_itself_are_never_disrupted() {
    let server = TestServer::start().await;
    server.fault("all", json!({"effect": {"error": {"code": 500}}})).await;
    assert_eq!((server.get(MAPS).await.0, server.get(&format!("{API}/faults")).await.0), (500, 200));
    assert_eq!(server.get("/version").await.0, 200, "only requests for resources");
    server.delete("faults", "all").await;
    assert_eq!(server.get(MAPS).await.0, 200);
    server.fault("all", json!({"effect": {"connection": "Cut"}})).await;
    let mut watch = server.watch().await;
    server.put("a", "1").await;
    assert_eq!(watch.next().await.as_deref(), Some("ADDED a1"), "a watch is not cut");
}

#[tokio::test]
async fn bad_input_gets_one_clear_error() {
    let server = TestServer::start().await;
    for (kind, spec, why) in [
        ("Fault", json!({}), "give either a recipe or an effect"),
        ("Fault", json!({"recipe": "throttled", "effect": {"delay": "1s"}}), "give either a recipe or an effect"),
        ("Fault", json!({"recipe": "no-such"}), "Unsupported value"),
        ("Fault", json!({"effect": {}}), "give an effect"),
        ("Fault", json!({"effect": {"connection": "Cut", "watch": "End"}}), "give at most one of error"),
        ("Fault", json!({"effect": {"error": {"code": 418}}}), "Unsupported value"),
        ("Fault", json!({"effect": {"watch": "Delay"}}), "Delay needs a delay"),
        ("Fault", json!({"effect": {"delay": "soon"}}), "should match"),
        ("Fault", json!({"effect": {"stale": {}}}), "give either changes or age"),
        ("Fault", json!({"recipe": "throttled", "when": {"percent": 101}}), "less than or equal to 100"),
        ("Fault", json!({"recipe": "throttled", "when": {"nth": 1, "every": 2}}), "give at most one of nth"),
        ("Fault", json!({"recipe": "throttled", "when": {"burst": 2}}), "burst needs every"),
        (
            "Fault",
            json!({"recipe": "throttled", "match": {"groups": ["testing.pintle.dev"]}}),
            "requests for testing.pintle.dev are never intercepted",
        ),
        (
            "Gate",
            json!({"match": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}}),
            "In and NotIn need values",
        ),
        ("Gate", json!({"match": {"groups": ["testing.pintle.dev"]}}), "are never intercepted"),
        ("Gate", json!({"release": (-1)}), "greater than or equal to 0"),
        (
            "Settle",
            json!({"timeout": "1h"}),
            "spec.timeout must be shorter than the request timeout of the server, 60 s",
        ),
    ] {
        let (code, body) = server.create(kind, "bad", spec.clone()).await;
        let message = body.str_at(&["message"]);
        let wanted = if why.starts_with("spec.timeout must") { 400 } else { 422 };
        assert!(code == wanted && message.contains(why), "{}: {code} {message}", spec.to_json());
    }
    let object = json!({"apiVersion": "testing.pintle.dev/v1alpha1", "kind": "Settle", "metadata": {"name": "s"}});
    for method in [Method::PUT, Method::PATCH] {
        let (code, _) = server.call(method, &format!("{API}/settles/s"), object.clone()).await;
        assert_eq!(code, 405, "a Settle is never stored");
    }
}

#[tokio::test]
async fn mistakes_are_named_with_their_fields() {
    let server = TestServer::start().await;
    for (kind, spec, why) in [
        (
            "Fault",
            json!({"effect": {"error": {"code": 404, "cod": 1}}}),
            "spec.effect.error.cod: Forbidden: unknown field",
        ),
        (
            "Fault",
            json!({"recipe": "throttled", "match": {"resource": ["pods"]}}),
            "spec.match.resource: Forbidden: unknown field; there are groups, names, namespaces",
        ),
        ("Fault", json!({"recipe": "throttled", "wen": {}}), "spec.wen: Forbidden: unknown field"),
        (
            "Fault",
            json!({"recipe": "throttled", "match": {"resources": ["pods", "faults"]}}),
            "spec.match.resources[1]: Invalid value: \"faults\": requests for testing.pintle.dev are never intercepted",
        ),
        (
            "Fault",
            json!({"recipe": "throttled", "match": {"resources": ["deployments.apps"]}}),
            "a resource is named without its group",
        ),
        (
            "Fault",
            json!({"effect": {"watch": "End"}, "match": {"verbs": ["watch", "get"]}}),
            "spec.match.verbs[1]: Invalid value: \"get\": the effect never applies to this verb",
        ),
        ("Fault", json!({"recipe": "missed-events", "match": {"verbs": ["list"]}}), "spec.match.verbs[0]"),
        ("Fault", json!({"effect": {"stale": {"changes": 1}}, "match": {"verbs": ["update"]}}), "it is about reads"),
        (
            "Fault",
            json!({"recipe": "throttled", "when": {"trigger": {"resource": "pods", "expression": "object."}}}),
            "spec.when.trigger.expression: Invalid value",
        ),
        ("Gate", json!({"realease": 1}), "spec.realease: Forbidden: unknown field"),
        ("Settle", json!({"timout": "1s"}), "spec.timout: Forbidden: unknown field"),
        ("Clock", json!({"stoped": true}), "spec.stoped: Forbidden: unknown field"),
    ] {
        let (code, body) = server.create(kind, if kind == "Clock" { "clock" } else { "bad" }, spec.clone()).await;
        let message = body.str_at(&["message"]);
        assert!(code == 422 && message.contains(why), "{}: {code} {message}", spec.to_json());
    }
}

#[tokio::test]
async fn stale_reads_are_of_an_earlier_revision() {
    let server = TestServer::start().await;
    server.put("a", "1").await;
    server.change("a", "2").await;
    let stale = |consistent: bool| json!({"effect": {"stale": {"changes": 1, "consistentReads": consistent}}});
    server.fault("old", stale(false)).await;
    let value = async |query: &str| {
        let one = server.get(&format!("{MAPS}/a{query}")).await.1.str_at(&["data", "value"]).to_owned();
        let list = server.get(&format!("{MAPS}{query}")).await.1;
        let of_list = list.items_at(&["items"]).iter().find(|item| item.str_at(&["metadata", "name"]) == "a");
        assert_eq!(one, of_list.map(|item| item.str_at(&["data", "value"])).unwrap_or_default());
        one
    };
    assert_eq!((value("?resourceVersion=0").await.as_str(), value("").await.as_str()), ("1", "2"));
    let newest = server.get(&format!("{MAPS}/a")).await.1.str_at(&["metadata", "resourceVersion"]).to_owned();
    assert_eq!(value(&format!("?resourceVersion={newest}")).await, "2", "no cache is older than a client demands");
    server.delete("faults", "old").await;
    server.fault("old", stale(true)).await;
    server.change("a", "3").await;
    assert_eq!(value("").await, "2");
    server.delete("faults", "old").await;
    server.fault("old", json!({"effect": {"stale": {"age": "1h", "consistentReads": true}}})).await;
    server.change("a", "4").await;
    server.put("b", "1").await;
    assert_eq!(value("").await, "3", "the cache has stopped at the creation of the fault");
    assert_eq!(server.get(&format!("{MAPS}/b")).await.0, 404);
    server.delete("faults", "old").await;
    server.fault("old", json!({"effect": {"stale": {"age": "1ms", "consistentReads": true}}})).await;
    server.change("a", "5").await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(value("").await, "5", "it follows");
}

#[tokio::test]
async fn events_of_watches_are_dropped_repeated_and_ended() {
    let server = TestServer::start().await;
    for (index, (effect, events)) in [
        ("Drop", vec!["ADDED a1", "ADDED c1"]),
        ("Repeat", vec!["ADDED a1", "ADDED b1", "ADDED b1", "ADDED c1"]),
        ("Reorder", vec!["ADDED a1", "ADDED c1", "ADDED b1"]),
        ("End", vec!["ADDED a1"]),
        ("Expire", vec!["ADDED a1", "ERROR Expired"]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut watch = server.watch().await;
        server.fault("f", json!({"match": {"names": ["b"]}, "effect": {"watch": effect}})).await;
        for name in ["a", "b", "c"] {
            assert_eq!(server.put(name, "1").await, 201);
        }
        assert_eq!(watch.take(events.len()).await, events, "{effect}, case {index}");
        if ["End", "Expire"].contains(&effect) {
            assert_eq!(watch.next().await, None, "{effect}");
        }
        server.delete("faults", "f").await;
        server.ok(Method::DELETE, MAPS, Value::Null).await;
    }
}

#[tokio::test]
async fn delayed_events_come_late_and_in_order() {
    let server = TestServer::start().await;
    let mut watch = server.watch().await;
    server.fault("slow", json!({"effect": {"watch": "Delay", "delay": "60ms"}, "when": {"nth": 1}})).await;
    let begun = clock::instant();
    server.put("a", "1").await;
    server.put("b", "1").await;
    assert_eq!(watch.take(2).await, ["ADDED a1", "ADDED b1"]);
    assert!(begun.elapsed() >= Duration::from_millis(60));
    server.delete("faults", "slow").await;
    server.fault("stuck", json!({"effect": {"watch": "Delay", "delay": "1h"}})).await;
    server.put("c", "1").await;
    // polled, so that the event reaches the fault
    let report = tokio::select! {
        biased;
        event = watch.next() => panic!("{event:?} is delayed"),
        report = server.settle(json!({"timeout": "30ms", "quiet": "1ms"})) => report,
    };
    assert_eq!(report.items_at(&["behind"])[0].str_at(&["heldBy"]), "Fault stuck", "{}", report.to_json());
    server.delete("faults", "stuck").await;
    assert_eq!(watch.next().await.as_deref(), Some("ADDED c1"));
}

#[tokio::test]
async fn gates_hold_and_release_events() {
    let server = TestServer::start().await;
    let mut watch = server.watch().await;
    assert_eq!(
        server.create("Gate", "g", json!({"match": {"resources": ["configmaps"], "names": ["a", "b"]}})).await.0,
        201
    );
    for name in ["a", "b", "c"] {
        server.put(name, "1").await;
    }
    server.change("a", "2").await;
    assert_eq!(watch.next().await.as_deref(), Some("ADDED c1"), "the gate is not about it");
    let status = server.status("gates/g", |status| status.get("held") == Some(&Value::Int(3))).await;
    assert_eq!(status.get("watches"), Some(&Value::Int(1)));
    let gate = format!("{API}/gates/g");
    let patch = async |spec: Value| server.ok(Method::PATCH, &gate, json!({"spec": (spec)})).await;
    patch(json!({"release": 1})).await;
    assert_eq!(watch.next().await.as_deref(), Some("ADDED a1"));
    patch(json!({"release": 3, "order": "Reversed"})).await;
    assert_eq!(watch.take(2).await, ["MODIFIED a2", "ADDED b1"]);
    server.status("gates/g", |status| status.get("released") == Some(&Value::Int(3))).await;
    server.change("b", "2").await;
    patch(json!({"open": true})).await;
    assert_eq!(watch.next().await.as_deref(), Some("MODIFIED b2"));
    patch(json!({"open": false})).await;
    server.change("b", "3").await;
    server.delete("gates", "g").await;
    assert_eq!(watch.next().await.as_deref(), Some("MODIFIED b3"));
}

#[tokio::test]
async fn the_status_of_a_fault_is_exact_when_it_is_read() {
    let server = TestServer::start().await;
    server.fault("f", json!({"match": {"verbs": ["get"]}, "effect": {"error": {"code": 500}}})).await;
    for number in 1..=20 {
        assert_eq!(server.get(&format!("{MAPS}/a")).await.0, 500);
        let status = server.status("faults/f", |_| true).await;
        assert_eq!(status.get("hits"), Some(&Value::Int(number)));
        let list = server.get(&format!("{API}/faults")).await.1;
        assert_eq!(list.items_at(&["items"])[0].at(&["status", "hits"]), Some(&Value::Int(number)));
    }
}

#[tokio::test]
async fn clients_without_a_user_agent_can_be_matched() {
    let server = TestServer::start().await;
    server.fault("f", json!({"match": {"userAgents": [""]}, "effect": {"error": {"code": 500}}})).await;
    assert_eq!((server.get(MAPS).await.0, server.send_as("", MAPS).await), (200, 500));
}

#[tokio::test]
async fn a_fault_begins_with_its_trigger() {
    let server = TestServer::start().await;
    let expression = "object != null && oldObject != null && object.data.value != oldObject.data.value";
    let trigger = json!({"resource": "configmaps", "name": "a", "expression": expression});
    let matched = json!({"verbs": ["get"]});
    server
        .fault("f", json!({"match": matched, "when": {"trigger": trigger}, "effect": {"error": {"code": 500}}}))
        .await;
    let path = format!("{MAPS}/a");
    for (name, value) in [("a", "1"), ("b", "1")] {
        assert_eq!(server.put(name, value).await, 201);
    }
    server.change("b", "2").await;
    server.change("a", "1").await;
    assert_eq!(server.get(&path).await.0, 200);
    assert_eq!(server.status("faults/f", |_| true).await.str_at(&["phase"]), "Waiting");
    server.change("a", "2").await;
    assert_eq!(server.get(&path).await.0, 500);
    let status = server.status("faults/f", |_| true).await;
    assert_eq!((status.str_at(&["phase"]), status.get("matches")), ("Active", Some(&Value::Int(1))));
}

#[tokio::test]
async fn a_watch_may_be_silent_before_it_expires() {
    let server = TestServer::start().await;
    let mut watch = server.watch().await;
    let when = json!({"count": 1, "percent": 100});
    server.fault("f", json!({"recipe": "missed-events", "when": when})).await;
    let begun = clock::instant();
    for value in ["1", "2"] {
        server.put(value, value).await;
    }
    let client = async {
        assert_eq!(watch.next().await.as_deref(), Some("ERROR Expired"), "events that come meanwhile are not sent");
        assert_eq!(watch.next().await, None);
    };
    client.await;
    assert!(begun.elapsed() >= limits::RECIPE_OUTAGE);
}

#[tokio::test]
async fn faults_meet_the_events_that_a_gate_releases() {
    let server = TestServer::start().await;
    for (effect, events) in [
        ("Repeat", vec!["ADDED a1", "ADDED a1", "ADDED b1"]),
        ("Drop", vec!["ADDED b1"]),
        ("Expire", vec!["ERROR Expired"]),
    ] {
        for is_open in [true, false] {
            let mut watch = server.watch().await;
            assert_eq!(server.create("Gate", "g", json!({})).await.0, 201);
            server.put("a", "1").await;
            server.put("b", "1").await;
            let held = server.status("gates/g", |status| status.get("held") == Some(&Value::Int(2)));
            tokio::select! {
                biased;
                event = watch.next() => panic!("{event:?} is held"),
                _ = held => {}
            }
            // made after the events were held
            server.fault("f", json!({"match": {"names": ["a"]}, "effect": {"watch": effect}})).await;
            let spec = if is_open { json!({"spec": {"open": true}}) } else { json!({"spec": {"release": 2}}) };
            server.ok(Method::PATCH, &format!("{API}/gates/g"), spec).await;
            assert_eq!(watch.take(events.len()).await, events, "{effect} {is_open}");
            server.delete("faults", "f").await;
            server.delete("gates", "g").await;
            server.ok(Method::DELETE, MAPS, Value::Null).await;
        }
    }
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "shows that no request takes this lock")]
async fn requests_take_no_lock_without_a_fault_or_gate() {
    let server = TestServer::start().await;
    let use_all = async || {
        assert_eq!((server.put("a", "1").await, server.change("a", "2").await), (201, 200));
        assert_eq!((server.get(&format!("{MAPS}/a")).await.0, server.get(MAPS).await.0), (200, 200));
        server.ok(Method::DELETE, &format!("{MAPS}/a"), Value::Null).await;
    };
    // meanwhile the task that writes status comes to rest
    use_all().await;
    let held = server.testing.state.lock();
    use_all().await;
    drop(held);
}
