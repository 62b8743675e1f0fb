//! Cells and scenarios, as far as nothing runs.

use machinery::json;
use trials::trial::{Cell, Record, Step, StepRecord, generate};

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
    Record(vec![StepRecord::read(&report(&[start])), StepRecord::read(&report(&[step, kubectl]))])
}

#[test]
fn cells_come_from_the_clean_run_rare_ones_first() {
    let record = record();
    assert_eq!(record.clients().into_iter().collect::<Vec<_>>(), ["manager"]);
    let ids: Vec<String> = generate(&record, &["manager".into()], 7).iter().map(ToString::to_string).collect();
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
        "all:recipe:stale-reads:7",
    ];
    assert_eq!(ids[..expected.len()], expected);
    assert!(!ids.iter().any(|id| id.contains("kubectl")), "steps are not disturbed");
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
        ("all:recipe:throttled:3", r#"{"match":{"userAgents":["a*","b*"]},"recipe":"throttled","when":{"seed":3}}"#),
    ];
    for (id, wanted) in cases {
        let cell: Cell = id.parse().unwrap();
        assert_eq!(cell.to_string(), id);
        assert_eq!(cell.act.spec(&["a".into(), "b".into()], cell.count).to_json(), wanted);
    }
    for id in ["", "1", "1:lost", "x:down", "1:lost:a:b:c:d", "all:recipe:unknown:1", "1:unknown"] {
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
