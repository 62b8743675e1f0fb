//! The FlowSchemas and PriorityLevelConfigurations of a new server: mandatory and suggested ones.

use machinery::{Value, json};

const ALL: &str = "*";

/// A level with queues: its share, its lendable percentage, and the queues.
struct Queued {
    name: &'static str,
    shares: i64,
    lendable_percent: i64,
    queues: i64,
    hand: i64,
}

const fn queued(name: &'static str, shares: i64, lendable_percent: i64, queues: i64, hand: i64) -> Queued {
    Queued { name, shares, lendable_percent, queues, hand }
}

const LEVELS: [Queued; 6] = [
    queued("system", 30, 33, 64, 6),
    queued("node-high", 40, 25, 64, 6),
    queued("leader-election", 10, 0, 16, 4),
    queued("workload-high", 40, 50, 128, 6),
    queued("workload-low", 100, 90, 128, 6),
    queued("global-default", 20, 50, 128, 6),
];

fn named(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name, "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}}, "spec": spec})
}

/// PriorityLevelConfigurations.
pub fn levels() -> Vec<Value> {
    let exempt = json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}});
    let catch_all = json!({
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}}
    });
    let level = |level: Queued| {
        let queuing = json!({"queues": (level.queues), "handSize": (level.hand), "queueLengthLimit": 50});
        let limited = json!({
            "nominalConcurrencyShares": (level.shares), "lendablePercent": (level.lendable_percent),
            "limitResponse": {"type": "Queue", "queuing": queuing}
        });
        named(level.name, json!({"type": "Limited", "limited": limited}))
    };
    [named("exempt", exempt), named("catch-all", catch_all)].into_iter().chain(LEVELS.into_iter().map(level)).collect()
}

fn group(name: &str) -> Value {
    json!({"kind": "Group", "group": {"name": name}})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "user": {"name": name}})
}

fn accounts_of_system() -> Value {
    json!({"kind": "ServiceAccount", "serviceAccount": {"name": ALL, "namespace": "kube-system"}})
}

/// Resources in all namespaces.
fn resources(verbs: &[&str], groups: &[&str], names: &[&str]) -> Value {
    let list = |texts: &[&str]| -> Value { texts.iter().map(|text| Value::from(*text)).collect() };
    json!({"verbs": (list(verbs)), "apiGroups": (list(groups)), "resources": (list(names)), "namespaces": [ALL]})
}

/// As [`resources`], and those without a namespace.
fn all_resources(verbs: &[&str], groups: &[&str], names: &[&str]) -> Value {
    let mut rule = resources(verbs, groups, names);
    rule.set_at(&["clusterScope"], Value::Bool(true));
    rule
}

/// A rule for all requests.
fn everything(subjects: Value) -> Value {
    let paths = json!({"verbs": [ALL], "nonResourceURLs": [ALL]});
    json!([{
        "subjects": subjects, "resourceRules": [(all_resources(&[ALL], &[ALL], &[ALL]))], "nonResourceRules": [paths]
    }])
}

fn schema(name: &str, level: &str, precedence: i64, distinguisher: &str, rules: Value) -> Value {
    let mut spec =
        json!({"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": rules});
    if !distinguisher.is_empty() {
        spec.set_at(&["distinguisherMethod", "type"], Value::from(distinguisher));
    }
    named(name, spec)
}

/// FlowSchemas.
pub fn schemas() -> Vec<Value> {
    let everyone = || json!([(group("system:unauthenticated")), (group("system:authenticated"))]);
    let probes = json!([{
        "subjects": (everyone()),
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]
    }]);
    let leases = |verbs: &[&str]| resources(verbs, &["coordination.k8s.io"], &["leases"]);
    let managers =
        json!([(user("system:kube-controller-manager")), (user("system:kube-scheduler")), (accounts_of_system())]);
    let nodes = json!([(group("system:nodes"))]);
    let of_nodes = all_resources(&[ALL], &[""], &["nodes", "nodes/status"]);
    vec![
        schema("exempt", "exempt", 1, "", everything(json!([(group("system:masters"))]))),
        schema("catch-all", "catch-all", 10_000, "ByUser", everything(everyone())),
        schema("probes", "exempt", 2, "", probes),
        schema(
            "system-leader-election",
            "leader-election",
            100,
            "ByUser",
            json!([{"subjects": managers, "resourceRules": [(leases(&["get", "create", "update"]))]}]),
        ),
        schema(
            "system-node-high",
            "node-high",
            400,
            "ByUser",
            json!([{"subjects": (nodes.clone()), "resourceRules": [of_nodes, (leases(&[ALL]))]}]),
        ),
        schema("system-nodes", "system", 500, "ByUser", everything(nodes)),
        schema(
            "kube-controller-manager",
            "workload-high",
            800,
            "ByNamespace",
            everything(json!([(user("system:kube-controller-manager"))])),
        ),
        schema(
            "kube-scheduler",
            "workload-high",
            800,
            "ByNamespace",
            everything(json!([(user("system:kube-scheduler"))])),
        ),
        schema(
            "kube-system-service-accounts",
            "workload-high",
            900,
            "ByNamespace",
            everything(json!([(accounts_of_system())])),
        ),
        schema(
            "service-accounts",
            "workload-low",
            9000,
            "ByUser",
            everything(json!([(group("system:serviceaccounts"))])),
        ),
        schema("global-default", "global-default", 9900, "ByUser", everything(everyone())),
    ]
}
