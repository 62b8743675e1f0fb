use base::metrics::FlowLevel;
use futures_util::FutureExt as _;
use machinery::json;

use super::classify::{PriorityLevel, Schema};
use super::*;

fn seats(total: usize, levels: &[(&'static str, i64, i64, Value)]) -> Seats {
    let seats = Seats::new(total);
    let limits = levels.iter().map(|(name, shares, lendable, response)| {
        let level = PriorityLevel::parse(&json!({
            "metadata": {"name": (*name)}, "spec": {"type": "Limited", "limited": {
                "nominalConcurrencyShares": (*shares), "lendablePercent": (*lendable), "limitResponse": (response.clone())
            }}
        }));
        (level.name, level.limit)
    });
    seats.set_levels(limits);
    seats
}

fn queue(queues: i64, hand: i64, length: i64) -> Value {
    json!({"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": length}})
}

fn of(level: &'static str) -> FlowLevel {
    FlowLevel { priority_level: level.into(), flow_schema: "s".into() }
}

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn priority_level_has_its_seats_and_borrows_unused_ones() {
    let reject = json!({"type": "Reject"});
    let seats = seats(10, &[("a", 50, 0, reject.clone()), ("b", 50, 100, reject)]);
    let take = |level: &'static str| seats.take(of(level), "f", LONG);
    let mut kept = vec![];
    // b may borrow the unused seats of a, except its reserved ones
    for _ in 0..5 {
        kept.push(take("b").await.unwrap());
    }
    assert!(take("b").await.is_err());
    for _ in 0..5 {
        kept.push(take("a").await.unwrap());
    }
    assert!(take("a").await.is_err());
    kept.truncate(2);
    // a may use all that b lends
    for _ in 0..8 {
        kept.push(take("a").await.unwrap());
    }
    assert!(take("a").await.is_err());
    assert_eq!((seats.counts("a"), seats.counts("b")), ((8, 0), (2, 0)));
    drop(kept);
    assert_eq!((seats.counts("a"), seats.counts("b")), ((0, 0), (0, 0)));
}

#[tokio::test]
async fn quiet_flow_is_served_before_noisy_one() {
    let seats = seats(1, &[("a", 1, 0, queue(64, 1, 50))]);
    let running = seats.take(of("a"), "noisy", LONG).await.unwrap();
    let mut noisy: Vec<_> = (0..50).map(|_| Box::pin(seats.take(of("a"), "noisy", LONG))).collect();
    assert!(noisy.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
    assert!(seats.take(of("a"), "noisy", LONG).await.is_err(), "its queue is full");
    let mut quiet = Box::pin(seats.take(of("a"), "quiet", LONG));
    assert!(quiet.as_mut().now_or_never().is_none());
    drop(running);
    // the first noisy request arrived first; after it, the other queue is next
    let first = noisy.remove(0).now_or_never().unwrap().unwrap();
    drop(first);
    let quiet = quiet.now_or_never().expect("the quiet flow is next").unwrap();
    assert_eq!(seats.counts("a"), (1, 49));
    // cancelled requests have no effect
    drop(noisy);
    drop(quiet);
    assert_eq!(seats.counts("a"), (0, 0));
}

#[tokio::test]
async fn no_request_waits_forever() {
    let seats = seats(1, &[("a", 1, 0, queue(1, 1, 50))]);
    let running = seats.take(of("a"), "f", LONG).await.unwrap();
    assert!(seats.take(of("a"), "f", Duration::ZERO).await.is_err());
    drop(running);
    assert!(seats.take(of("a"), "f", LONG).now_or_never().is_some(), "who gave up is not in the way");
}

#[test]
fn requests_are_sorted_by_the_first_schema_that_fits() {
    let mut schemas: Vec<Schema> = defaults::schemas().iter().map(Schema::parse).collect();
    schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
    let sorted = |name: &'static str, group: &'static str, method: http::Method, path: &str| {
        let user = User { name: name.into(), groups: vec![group.into()], ..User::default() };
        let info = RequestInfo::parse(&method, path, "");
        schemas.iter().find(|schema| schema.matches(&user, &info)).map(|schema| schema.name.to_string()).unwrap()
    };
    use http::Method as M;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l";
    for (name, group, method, path, wanted) in [
        ("admin", "system:masters", M::GET, "/api/v1/namespaces", "exempt"),
        ("system:anonymous", "system:unauthenticated", M::GET, "/livez", "probes"),
        ("ann", "system:authenticated", M::GET, "/version", "global-default"),
        ("ann", "system:authenticated", M::PUT, leases, "global-default"),
        ("system:kube-scheduler", "system:authenticated", M::PUT, leases, "system-leader-election"),
        ("system:serviceaccount:kube-system:x", "system:serviceaccounts", M::PUT, leases, "system-leader-election"),
        (
            "system:serviceaccount:kube-system:x",
            "system:serviceaccounts",
            M::DELETE,
            leases,
            "kube-system-service-accounts",
        ),
        ("system:serviceaccount:n:x", "system:serviceaccounts", M::PUT, leases, "service-accounts"),
        ("node", "system:nodes", M::PUT, leases, "system-node-high"),
        ("node", "system:nodes", M::PUT, "/api/v1/nodes/a/status", "system-node-high"),
        ("node", "system:nodes", M::GET, "/api/v1/namespaces/n/configmaps", "system-nodes"),
    ] {
        assert_eq!(sorted(name, group, method.clone(), path), wanted, "{name} {method} {path}");
    }
}
