//! Cells and scenarios, as far as nothing runs.

use machinery::json;
use trials::compare::{ObjectKey, Objects};
use trials::trial::{Cell, Record, Step, StepRecord, generate, without_one_right};

fn record() -> Record {
    let requests = |verb: &str, resource: &str, count: i64| json!({"verb": verb, "resource": resource, "count": count});
    let watch = |name: &str, events: i64| json!({"watch": name, "running": 1, "events": events});
    let manager = |requests: &[machinery::Value], watches: &[machinery::Value]| {
        json!({"userAgent": "manager/v1", "requests": (requests.iter().cloned().collect::<machinery::Value>()),
            "watches": (watches.iter().cloned().collect::<machinery::Value>())})
    };
    let kubectl = json!({"userAgent": "kubectl/v1", "requests": [(requests("create", "pods", 1))], "watches": []});
    let start = manager(&[requests("list", "pods", 1)], &[watch("pods in default", 0)]);
    let step = manager(&[requests("update", "deployments/status.apps", 2)], &[watch("pods in default", 1)]);
    let report =
        |agents: &[machinery::Value]| json!({"agents": (agents.iter().cloned().collect::<machinery::Value>())});
    let write = |agent: &str, verb: &str, resource: &str, name: &str| json!({"userAgent": agent, "verb": verb, "resource": resource, "name": name, "namespace": "n", "code": 200});
    let mut second = report(&[step, kubectl]);
    let written = [
        write("manager/v1", "update", "deployments/status.apps", "d"),
        write("manager/v1", "update", "deployments/status.apps", "e"),
        write("kubectl/v1", "create", "pods", "p"),
    ];
    second.set_at(&["writes"], written.into_iter().collect());
    Record(vec![StepRecord::read(&report(&[start])), StepRecord::read(&second)])
}

#[test]
fn cells_come_from_the_clean_run_rare_ones_first() {
    let record = record();
    assert_eq!(record.clients().into_iter().collect::<Vec<_>>(), ["manager"]);
    let key =
        |resource: &str, name: &str| ObjectKey { resource: resource.into(), namespace: "n".into(), name: name.into() };
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let after = Objects::from([(key("deployments.apps", "d"), labelled), (key("pods", "p"), json!({}))]);
    let objects = [Objects::new(), after];
    let ids: Vec<String> =
        generate(&record, &objects, &["manager".into()], 7).iter().map(ToString::to_string).collect();
    let expected = [
        "start:fails:manager:list:pods:1",
        "1:stale-start:manager:pods:1",
        "1:down",
        "1:ends:manager:pods:1",
        "1:expires:manager:pods:1",
        "1:late:manager:pods",
        "1:fails:manager:update:deployments/status.apps:1",
        "1:lost:manager:update:deployments/status.apps:1",
        "1:killed-before:manager:update:deployments/status.apps:1",
        "1:killed-after:manager:update:deployments/status.apps:1",
        "all:release:1.35",
        "all:release:1.36",
        "all:recipe:stale-reads:7",
    ];
    assert_eq!(ids[..expected.len()], expected);
    let edits: Vec<&String> = ids.iter().filter(|id| id.contains("user-")).collect();
    let expected = [
        "1:user-deletes:manager:update:deployments/status.apps:deployments.apps/n/d",
        "1:user-unlabels:manager:update:deployments/status.apps:deployments.apps/n/d",
        "1:user-deletes:manager:update:deployments/status.apps:pods/n/p",
    ];
    assert_eq!(edits, expected);
    assert!(!ids.iter().any(|id| id.contains("kubectl")), "steps are not disturbed");
    let rights = without_one_right(&record, &["manager".into()]);
    let rights: Vec<String> = rights.iter().map(ToString::to_string).collect();
    assert_eq!(rights, ["all:forbidden:manager:list:pods", "all:forbidden:manager:update:deployments/status.apps"]);
    let ids = [ids, rights].concat();
    for id in &ids {
        assert_eq!(id.parse::<Cell>().unwrap().to_string(), *id);
    }
}

#[test]
fn ids_are_specs_of_faults() {
    let cases = [
        (
            "1:lost:m:create:configmaps:2:x1",
            r#"{"effect":{"afterCommit":"Reset"},"match":{"groups":[""],"resources":["configmaps"],"userAgents":["m*"],"verbs":["create"]},"when":{"count":1,"nth":2}}"#,
        ),
        (
            "1:killed-after:unknown:update:deployments/status.apps:1",
            r#"{"effect":{"delay":"10m"},"match":{"groups":["apps"],"resources":["deployments/status"],"userAgents":[""],"verbs":["update"]},"when":{"count":1,"nth":1}}"#,
        ),
        (
            "all:forbidden:a:update:deployments/status.apps",
            r#"{"effect":{"error":{"code":403}},"match":{"groups":["apps"],"resources":["deployments/status"],"userAgents":["a*"],"verbs":["update"]}}"#,
        ),
        (
            "2:user-deletes:m:create:pods:clusterroles.rbac.authorization.k8s.io//system:a",
            r#"{"effect":{"delay":"10m"},"match":{"groups":[""],"resources":["pods"],"userAgents":["m*"],"verbs":["create"]},"when":{"count":1,"nth":1}}"#,
        ),
        ("all:recipe:throttled:3", r#"{"match":{"userAgents":["a*","b*"]},"recipe":"throttled","when":{"seed":3}}"#),
    ];
    for (id, wanted) in cases {
        let cell: Cell = id.parse().unwrap();
        assert_eq!(cell.to_string(), id);
        assert_eq!(cell.act.spec(&["a".into(), "b".into()], cell.count).to_json(), wanted);
    }
    for id in [
        "", "1", "1:lost", "x:down", "1:lost:a:b:c:d", "all:recipe:unknown:1", "all:release:1.1",
        "1:user-deletes:a:b:c:d", "1:unknown",
    ] {
        assert!(id.parse::<Cell>().is_err(), "{id}");
    }
}

#[test]
fn smaller_cells_have_fewer_faults() {
    let smaller = |id: &str| {
        let smaller = id.parse::<Cell>().unwrap().smaller(2);
        smaller.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        smaller("all:recipe:throttled:3"),
        ["start:recipe:throttled:3", "1:recipe:throttled:3", "2:recipe:throttled:3"]
    );
    assert_eq!(smaller("1:recipe:throttled:3:x4"), ["1:recipe:throttled:3:x1", "1:recipe:throttled:3:x2"]);
    assert_eq!(smaller("1:lost:m:create:pods:1"), ["1:lost:m:create:pods:1:x1"]);
    assert_eq!(smaller("1:lost:m:create:pods:1:x1"), [""; 0]);
    assert_eq!(smaller("1:down"), [""; 0]);
}

#[test]
fn steps_are_documents_or_a_list() {
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let steps =
        Step::read_all(&format!("{object}---\nkubectl delete cm a\n---\n- {{apiVersion: v1, kind: Pod}}\n")).unwrap();
    assert!(
        matches!(&steps[..], [Step::Apply(_), Step::Run(command), Step::Apply(_)] if command == "kubectl delete cm a")
    );
    assert!(Step::read_all("a: 1").is_err() && Step::read_all("").is_err());
}
