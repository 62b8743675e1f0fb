//! Tests of the counts, and of the roles that follow from them.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use access::authorization::{GrantedRole, PolicyRule};
use base::clock;
use base::request::{RequestInfo, User};
use http::Method;
use machinery::status::Reason;
use machinery::{Text, Value, json};

use super::observing::{Exchange, agent_of};
use super::rights::{Right, sufficient, unused};
use super::tally::{Tally, WatchKey};
use super::writes::Writes;
use crate::http::RequestEnding;
use crate::limits;

const MAP: &str = "/api/v1/namespaces/n/configmaps/a";
const NONE: Text = Text::new_static("");
const OK: RequestEnding = RequestEnding { code: 200, reason: None, message: NONE, revision: None, name: NONE };
const CONFLICT: RequestEnding =
    RequestEnding { code: 409, reason: Some(Reason::Conflict), message: NONE, revision: None, name: NONE };

fn exchange(agent: &str, request: &str) -> Exchange {
    let (method, uri) = request.split_once(' ').unwrap();
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let mut exchange = Exchange::new(RequestInfo::parse(&method.parse::<Method>().unwrap(), path, query), agent);
    exchange.user = Some(User { name: "u".into(), ..User::default() });
    exchange
}

/// A request begins and ends.
fn send(tally: &mut Tally, agent: &str, request: &str, ending: RequestEnding) {
    let mut exchange = exchange(agent, request);
    if exchange.is_write() {
        tally.begins(&mut exchange);
    }
    tally.ended(&exchange, &ending, clock::instant());
}

/// The findings of all agents, as texts.
fn findings(tally: &Tally) -> Vec<String> {
    let status = tally.copy(|_| true).status(clock::instant(), |_| vec![]);
    let mut found = vec![];
    for agent in status.items_at(&["agents"]) {
        for finding in agent.items_at(&["findings"]) {
            let text = |name: &str| finding.str_at(&[name]);
            let count = finding.get("count").and_then(Value::as_int).unwrap();
            found.push(format!("{} {}: {} {count}", agent.str_at(&["userAgent"]), text("check"), text("subject")));
        }
    }
    found
}

fn key(resource: &str) -> WatchKey {
    WatchKey { group: "".into(), resource: resource.into(), namespace: "n".into(), selection: String::new() }
}

#[test]
fn responses_are_judged_by_code_and_reason() {
    let refusal = |code, reason| RequestEnding { code, reason, ..OK };
    for (request, ending, wanted) in [
        ("GET", OK, vec![]),
        ("GET", refusal(404, Some(Reason::NotFound)), vec![]),
        ("GET", refusal(403, Some(Reason::Forbidden)), vec!["m/1 forbidden: get configmaps n/a 1"]),
        ("GET", refusal(429, None), vec!["m/1 throttled: get configmaps n/a 1"]),
        ("PUT", refusal(422, Some(Reason::Invalid)), vec!["m/1 refused: update configmaps n/a 1"]),
        ("PUT", refusal(409, Some(Reason::AlreadyExists)), vec![]),
        ("PUT", refusal(500, None), vec!["m/1 failed: update configmaps n/a 1"]),
        ("PUT", RequestEnding::default(), vec!["m/1 failed: update configmaps n/a 1"]),
        ("PUT", CONFLICT, vec!["m/1 conflicts: update configmaps n/a 1", "m/1 conflictsNotRetried: configmaps n/a 1"]),
    ] {
        let mut tally = Tally::default();
        send(&mut tally, "m/1 (linux)", &format!("{request} {MAP}"), ending.clone());
        assert_eq!(findings(&tally), wanted, "{request} {ending:?}");
    }
}

#[test]
fn a_conflict_is_retried_by_a_write_that_succeeds() {
    for (requests, is_retried) in [
        (vec![("GET", OK)], false),
        (vec![("PUT", CONFLICT)], false),
        (vec![("PUT", CONFLICT), ("PATCH", OK)], true),
        (vec![("DELETE", OK)], true),
        (vec![("PUT", OK), ("PUT", CONFLICT)], false),
    ] {
        let mut tally = Tally::default();
        send(&mut tally, "m", &format!("PUT {MAP}"), CONFLICT);
        for (method, ending) in &requests {
            send(&mut tally, "m", &format!("{method} {MAP}"), ending.clone());
        }
        send(&mut tally, "other", &format!("PUT {MAP}"), OK);
        let found = findings(&tally).iter().any(|finding| finding.contains("conflictsNotRetried"));
        assert_eq!(found, !is_retried, "{requests:?}");
    }
}

#[test]
fn a_write_that_leaves_the_revision_is_a_no_op() {
    for (request, before, after, found) in [
        ("PUT", Some(3), Some(3), true),
        ("PATCH", Some(3), Some(3), true),
        ("PUT", Some(3), Some(4), false),
        ("PUT", None, None, false),
        ("PATCH", None, Some(3), false),
    ] {
        let mut tally = Tally::default();
        let mut exchange = exchange("m", &format!("{request} {MAP}"));
        exchange.before = before;
        tally.ended(&exchange, &RequestEnding { revision: after, ..OK }, clock::instant());
        assert_eq!(!findings(&tally).is_empty(), found, "{request} {before:?} {after:?}");
    }
    assert!(!exchange("m", &format!("PUT {MAP}?dryRun=All")).changes_object());
}

#[test]
fn writes_are_listed_once_a_report_has_asked_for_them() {
    let mut tally = Tally::default();
    send(&mut tally, "m/1", &format!("PUT {MAP}"), OK);
    tally.writes = Some(Writes::default());
    let created = RequestEnding { code: 201, reason: None, message: NONE, revision: Some(7), name: "a-x1".into() };
    send(&mut tally, "m/1 (linux)", "POST /api/v1/namespaces/n/configmaps", created);
    send(&mut tally, "m/1", &format!("GET {MAP}"), OK);
    let refused =
        RequestEnding { code: 422, reason: Some(Reason::Invalid), message: "no".into(), revision: None, name: NONE };
    send(&mut tally, "k", "PATCH /apis/apps/v1/namespaces/n/deployments/d/status", refused);
    let lines = |tally: &Tally| -> Vec<String> {
        tally
            .writes
            .iter()
            .flat_map(|writes| writes.value().items_at(&[]).to_vec())
            .map(|write| write.to_json())
            .collect()
    };
    let first = r#"{"code":201,"name":"a-x1","namespace":"n","resource":"configmaps","resourceVersion":"7","userAgent":"m/1","verb":"create"}"#;
    let second = r#"{"code":422,"message":"no","name":"d","namespace":"n","resource":"deployments/status.apps","userAgent":"k","verb":"patch"}"#;
    assert_eq!(lines(&tally), [first, second]);
    tally.reset();
    send(&mut tally, "k", &format!("DELETE {MAP}"), OK);
    assert_eq!(lines(&tally).len(), 1, "a reset forgets them, and goes on");
}

#[test]
fn writes_at_rest_are_those_of_watching_clients_before_others_write() {
    let mut tally = Tally::default();
    let events = tally.watch_begins("m/1 (linux)", &key("configmaps"));
    events.store(1, Ordering::Release);
    send(&mut tally, "m/1", &format!("PUT {MAP}"), OK);
    assert!(findings(&tally).is_empty(), "there was no Settle");
    tally.settled(vec!["secrets".to_owned(), "leases.coordination.k8s.io".to_owned()]);
    send(&mut tally, "test", &format!("GET {MAP}"), OK);
    send(&mut tally, "m/1", "PUT /apis/coordination.k8s.io/v1/namespaces/n/leases/a", OK);
    send(&mut tally, "m/1", "PUT /api/v1/namespaces/n/secrets/a", OK);
    send(&mut tally, "m/1", "POST /apis/authorization.k8s.io/v1/subjectaccessreviews", OK);
    send(&mut tally, "m/1", &format!("PUT {MAP}?dryRun=All"), OK);
    send(&mut tally, "m/1", &format!("PUT {MAP}"), CONFLICT);
    assert!(!findings(&tally).iter().any(|finding| finding.contains("AtRest")), "{:?}", findings(&tally));
    send(&mut tally, "m/1", &format!("PATCH {MAP}"), OK);
    assert!(findings(&tally).contains(&"m/1 writesAtRest: patch configmaps n/a 1".to_owned()));
    tally.reset();
    send(&mut tally, "m/1", &format!("PATCH {MAP}"), OK);
    assert!(findings(&tally).contains(&"m/1 writesAtRest: patch configmaps n/a 1".to_owned()), "it is still at rest");
    tally.reset();
    send(&mut tally, "test", "POST /api/v1/namespaces/n/configmaps", OK);
    send(&mut tally, "m/1", &format!("PATCH {MAP}"), OK);
    assert_eq!(findings(&tally), ["m/1 unusedWatches: configmaps in n 1"], "the test has written");
}

#[test]
fn many_requests_in_a_time_are_loops_and_storms() {
    let hot = limits::HOT_LOOP_PER_SECOND * limits::HOT_LOOP.as_secs();
    let cases = [
        (format!("GET {MAP}"), hot, limits::HOT_LOOP, "m hotLoops: get configmaps n/a 1"),
        (format!("PUT {MAP}"), hot, limits::HOT_LOOP, "m hotLoops: update configmaps n/a 1"),
        ("GET /api/v1/pods".to_owned(), limits::LIST_STORM_MAX, limits::LIST_STORM, "m listStorms: list pods 1"),
    ];
    for (request, max, time, wanted) in cases {
        let begun = clock::instant();
        let mut tally = Tally::default();
        let exchange = exchange("m", &request);
        for number in 0..=max {
            assert!(findings(&tally).is_empty(), "{request} {number}");
            tally.ended(&exchange, &OK, begun);
        }
        assert_eq!(findings(&tally), [wanted]);
        let mut slow = Tally::default();
        for number in 0..=max {
            let late = if number == max { time } else { Duration::ZERO };
            slow.ended(&exchange, &OK, begun + late);
        }
        assert!(findings(&slow).is_empty(), "{request}");
    }
    let mut paged = Tally::default();
    (0..100).for_each(|_| send(&mut paged, "m", "GET /api/v1/pods?limit=5", OK));
    assert!(findings(&paged).is_empty());
}

#[test]
fn watches_restart_after_they_have_ended() {
    let mut tally = Tally::default();
    let events = tally.watch_begins("m", &key("pods"));
    tally.watch_begins("m", &key("pods"));
    events.fetch_add(1, Ordering::AcqRel);
    assert!(findings(&tally).is_empty(), "two at a time");
    tally.watch_ends("m", &key("pods"));
    tally.watch_begins("m", &key("pods"));
    assert_eq!(findings(&tally), ["m watchRestarts: pods in n 1"]);
    let copy = tally.copy(|_| true);
    tally.reset();
    assert_eq!(findings(&tally), ["m unusedWatches: pods in n 1"], "two still run");
    assert_eq!(findings(&copy), ["m watchRestarts: pods in n 1"], "the copy is not reset");
}

#[test]
fn what_is_kept_is_bounded() {
    let mut tally = Tally::default();
    for number in 0..limits::REPORT_AGENTS_MAX + 5 {
        send(&mut tally, &format!("m{number}"), &format!("PUT {MAP}"), OK);
    }
    assert_eq!((tally.agents.len(), tally.is_truncated), (limits::REPORT_AGENTS_MAX, true));
    tally = Tally::default();
    for number in 0..limits::REPORT_ITEMS_MAX + 5 {
        send(&mut tally, "m", &format!("PUT {MAP}{number}"), CONFLICT);
    }
    let agent = &tally.agents["m"];
    assert_eq!((agent.findings.len(), agent.pending.len()), (limits::REPORT_ITEMS_MAX, limits::REPORT_ITEMS_MAX));
    assert_eq!(agent.counts.values().sum::<u64>(), limits::REPORT_ITEMS_MAX as u64 + 5, "all are counted");
    assert!(tally.is_truncated);
    tally = Tally::default();
    let selector = "x".repeat(4096);
    for number in 0..limits::REPORT_BYTES / 4096 + 5 {
        let selection = format!("{number}{selector}");
        tally.watch_begins(&format!("m{}", number % 50), &WatchKey { selection, ..key("pods") });
    }
    let kept: usize = tally.agents.values().flat_map(|agent| agent.watches.keys()).map(|key| key.selection.len()).sum();
    assert!(tally.is_truncated && kept < limits::REPORT_BYTES, "{kept}");
    assert_eq!(agent_of(&"é".repeat(100)).len(), limits::REPORT_AGENT_BYTES);
}

fn rights(requests: &[&str]) -> HashSet<Right> {
    requests.iter().map(|request| Right::of(&exchange("m", request).info)).collect()
}

/// The rules of the roles, by kind and namespace.
fn role_rules(roles: &[Value]) -> Vec<(String, Value)> {
    let of = |role: &Value| {
        let place = format!("{} {}", role.str_at(&["kind"]), role.str_at(&["metadata", "namespace"]));
        (place.trim_end().to_owned(), role.get("rules").cloned().unwrap())
    };
    roles.iter().filter(|role| role.get("rules").is_some()).map(of).collect()
}

#[test]
fn sufficient_roles_merge_rules() {
    let needed = rights(&[
        "GET /api/v1/pods?watch=true",
        "GET /api/v1/secrets?watch=true",
        "GET /api/v1/namespaces/n",
        "GET /api/v1/namespaces/n/pods",
        "PUT /apis/apps/v1/namespaces/n/deployments/a/status",
        "PATCH /apis/apps/v1/namespaces/n/deployments/a/status",
        "DELETE /apis/apps/v1/namespaces/k/deployments/a",
        "DELETE /api/v1/namespaces/k/services/a",
        "DELETE /api/v1/namespaces/n/services/a",
    ]);
    let rule = |group: &str, resources: Value, verbs: Value| json!([{"apiGroups": [group], "resources": resources, "verbs": verbs}]);
    let everywhere = json!([
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["services"], "verbs": ["delete"]}
    ]);
    let wanted = [
        ("ClusterRole".to_owned(), everywhere),
        ("Role k".to_owned(), rule("apps", json!(["deployments"]), json!(["delete"]))),
        ("Role n".to_owned(), rule("apps", json!(["deployments/status"]), json!(["update", "patch"]))),
    ];
    let roles = sufficient("system:serviceaccount:n:m", &needed);
    assert_eq!(role_rules(&roles), wanted);
    // each role allows what it was made from, and nothing of another namespace
    for right in &needed {
        let rules: Vec<PolicyRule> =
            sufficient("m", &HashSet::from([right.clone()])).iter().flat_map(PolicyRule::of_role).collect();
        assert!(rules.iter().any(|rule| rule.allows(&right.attributes())), "{right:?}");
    }
    let reference =
        |role: &Value| format!("{} {}", role.str_at(&["roleRef", "kind"]), role.str_at(&["roleRef", "name"]));
    let bindings: Vec<String> = roles.iter().filter(|role| role.get("roleRef").is_some()).map(reference).collect();
    assert_eq!(bindings, ["ClusterRole m", "Role m", "Role m"]);
    assert_eq!(roles[1].get("subjects"), Some(&json!([{"kind": "ServiceAccount", "name": "m", "namespace": "n"}])));
}

#[test]
fn roles_are_named_after_their_users_and_replace_none_of_the_server() {
    for (user, name, kind) in [
        ("ann", "ann", "User"),
        ("Ann B@example.com", "ann-b-example.com", "User"),
        ("admin", "user-admin", "User"),
        ("system:serviceaccount:a:view", "user-view", "ServiceAccount"),
        ("::", "client", "User"),
    ] {
        let roles = sufficient(user, &rights(&["GET /api/v1/pods"]));
        assert_eq!(
            (roles[0].str_at(&["metadata", "name"]), roles[1].items_at(&["subjects"])[0].str_at(&["kind"])),
            (name, kind)
        );
    }
}

#[test]
fn writes_need_what_the_server_demands_besides() {
    for (request, wanted) in [
        ("POST /apis/rbac.authorization.k8s.io/v1/namespaces/n/roles", vec!["escalate roles n"]),
        ("PUT /apis/rbac.authorization.k8s.io/v1/clusterroles/a", vec!["escalate clusterroles "]),
        ("GET /apis/rbac.authorization.k8s.io/v1/clusterroles/a", vec![]),
        (
            "POST /apis/rbac.authorization.k8s.io/v1/namespaces/n/rolebindings",
            vec!["bind roles n", "bind clusterroles n"],
        ),
        ("PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/a/approval", vec!["approve signers "]),
    ] {
        let demanded = Right::of(&exchange("m", request).info).demanded();
        let shown = demanded.iter().map(|right| format!("{} {} {}", right.verb, right.resource, right.namespace));
        assert_eq!(shown.collect::<Vec<_>>(), wanted, "{request}");
    }
}

#[test]
fn users_are_reported_once() {
    let mut tally = Tally::default();
    send(&mut tally, "a", "GET /api/v1/pods", OK);
    send(&mut tally, "b", "GET /api/v1/secrets", OK);
    let rule = json!({"apiGroups": [""], "resources": ["pods", "secrets", "nodes"], "verbs": ["list"]});
    let granted = |_: &User| {
        let rules = vec![PolicyRule::parse(&rule)].into();
        vec![GrantedRole { kind: "ClusterRole".into(), name: "r".into(), namespace: "".into(), rules }]
    };
    let status = |agents: &[&str]| tally.copy(|agent| agents.contains(&agent)).status(clock::instant(), granted);
    for (agents, resources) in [(vec!["a", "b"], json!(["pods", "secrets"])), (vec!["b"], json!(["secrets"]))] {
        let status = status(&agents);
        let [user] = status.items_at(&["users"]) else { panic!("{}", status.to_json()) };
        let needed = json!([{"apiGroups": [""], "resources": resources, "verbs": ["list"]}]);
        assert_eq!(role_rules(user.items_at(&["roles"])), [("ClusterRole".to_owned(), needed)]);
        let unused = user.items_at(&["unusedRules"]);
        assert_eq!((unused.len(), unused[0].texts_at(&["rule", "resources"]).collect::<Vec<_>>()), (1, vec!["nodes"]));
        assert_eq!(status.at(&["counts", "unusedRules"]), Some(&Value::Int(1)));
    }
}

#[test]
fn rules_are_unused_as_far_as_no_request_has_needed_them() {
    let needed = rights(&["GET /api/v1/namespaces/n/pods/a", "GET /apis/apps/v1/deployments"]);
    for (namespace, rule, wanted) in [
        ("", json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}), json!([])),
        ("n", json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["b"]}), json!([])),
        (
            "k",
            json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}),
            json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        ),
        (
            "",
            json!({"apiGroups": ["", "apps"], "resources": ["pods", "deployments"], "verbs": ["get", "list"]}),
            json!([
                {"apiGroups": [""], "resources": ["deployments"], "verbs": ["get", "list"]},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
                {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
                {"apiGroups": ["apps"], "resources": ["pods"], "verbs": ["get", "list"]}
            ]),
        ),
        ("", json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}), json!([])),
        ("", json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}), json!([])),
    ] {
        let rules = vec![PolicyRule::parse(&rule)].into();
        let role = GrantedRole { kind: "Role".into(), name: "r".into(), namespace: namespace.into(), rules };
        assert_eq!(unused(&role, &needed).into_iter().collect::<Value>(), wanted, "{}", rule.to_json());
    }
}
