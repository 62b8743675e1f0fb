use base::metrics::FlowLevel;
use futures_util::FutureExt as _;
use machinery::json;

use super::classify::{PriorityLevel, Schema};
use super::*;

fn seats(total: usize, levels: &[(&'static str, i64, i64, Value)]) -> Seats {
    let seats = Seats::new(SeatSupply::Own(total));
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

/// Flows with shares of a pool, without configuration.
fn shares(total: usize, count: usize) -> Vec<Flow> {
    let pool = Arc::new(SeatPool::new(total, "pooled"));
    let flow = Flow::new(SeatSupply::of(pool));
    (0..count).map(|_| flow.fork()).collect()
}

/// Configures a flow as that of a new server.
fn configure(flow: &Flow) {
    let levels = defaults::levels();
    let levels = levels.iter().map(PriorityLevel::parse).map(|level| (level.name.clone(), Arc::new(level)));
    let mut schemas: Vec<_> = defaults::schemas().iter().map(|object| Arc::new(Schema::parse(object))).collect();
    schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
    flow.configure(Arc::new(FlowObjects { schemas, levels: levels.collect() }));
}

/// Seats for requests of a user, as long as they are to be had at once.
fn taken(flow: &Flow, user: &User, most: usize) -> Vec<Seat> {
    let info = RequestInfo::parse(&http::Method::GET, "/api/v1/namespaces/n/configmaps", "");
    let taken = (0..most).map_while(|_| flow.admit(user, &info, false, LONG).now_or_never()?.1.ok());
    taken.collect()
}

fn ann() -> User {
    User { name: "ann".into(), groups: vec!["system:authenticated".into()], ..User::default() }
}

#[tokio::test]
async fn a_share_falls_with_the_number_of_busy_ones_and_rises_again() {
    let flows = shares(80, 20);
    let mut kept: Vec<_> = flows[..8].iter().map(|flow| taken(flow, &ann(), 1)).collect();
    let all = |flow: &Flow| taken(flow, &ann(), 500).len();
    assert_eq!(all(&flows[0]), 9, "an eighth of the seats, of which it has one");
    kept.extend(flows[8..].iter().map(|flow| taken(flow, &ann(), 1)));
    assert!(kept.iter().all(|seats| seats.len() == 1), "nobody waits for the load of another one");
    assert_eq!((all(&flows[0]), all(&flows[19])), (3, 3));
    kept.clear();
    assert_eq!(all(&flows[0]), 10);
    flows[0].limit_to(4);
    assert_eq!((all(&flows[0]), all(&flows[1])), (4, 10));
    flows[0].limit_to(0);
    assert_eq!(all(&flows[0]), 10);
}

#[tokio::test]
async fn no_configuration_exceeds_a_share() {
    let flows = shares(80, 2);
    configure(&flows[0]);
    // a fork has the same configuration
    let flow = &flows[0].fork();
    let master = User { groups: vec![User::MASTERS.into()], ..ann() };
    let node = User { groups: vec!["system:nodes".into()], ..ann() };
    let info = RequestInfo::parse(&http::Method::GET, "/version", "");
    // a client that impersonates is exempt by the mandatory objects of its API, and not by the server
    let kept = [&master, &ann(), &node].map(|user| taken(flow, user, 500));
    let counts = [0, 1, 2].map(|index| kept[index].len());
    assert!(!counts.contains(&0) && counts.iter().sum::<usize>() <= 10, "{counts:?}");
    assert!([&master, &ann(), &node].iter().all(|user| taken(flow, user, 1).is_empty()));
    let of_the_server = flow.admit(&master, &info, true, LONG).now_or_never();
    assert!(of_the_server.is_some_and(|(_, seat)| seat.is_ok()), "the server's own administrators enter");
    assert_eq!(taken(&flows[1], &ann(), 1).len(), 1);
    drop(kept);
    // each of many levels may execute one request
    let names: Vec<_> = (0..100).map(|index| format!("level{index}")).collect();
    let level = |name: &String| {
        let object = json!({"metadata": {"name": (name.as_str())}, "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 1000, "limitResponse": {"type": "Reject"}}}});
        (name.as_str().into(), Arc::new(PriorityLevel::parse(&object)))
    };
    let schema = |name: &String| {
        let rules = json!([{"subjects": [{"kind": "User", "user": {"name": (name.as_str())}}], "resourceRules": [{
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}]}]);
        Arc::new(Schema::parse(&json!({"metadata": {"name": (name.as_str())}, "spec": {"matchingPrecedence": 1,
            "priorityLevelConfiguration": {"name": (name.as_str())}, "rules": rules}})))
    };
    let objects =
        FlowObjects { schemas: names.iter().map(schema).collect(), levels: names.iter().map(level).collect() };
    flow.configure(Arc::new(objects));
    let users = names.iter().map(|name| User { name: name.as_str().into(), ..User::default() });
    let seats: Vec<_> = users.flat_map(|user| taken(flow, &user, 1)).collect();
    assert_eq!(seats.len(), 10);
    drop(seats);
    // nothing is left of the configuration
    flow.configure(Arc::new(FlowObjects::default()));
    [ann(), master].iter().for_each(|user| assert_eq!(taken(flow, user, 500).len(), 10));
}

#[tokio::test]
async fn users_of_a_share_take_turns() {
    let flows = shares(8, 1);
    configure(&flows[0]);
    let info = RequestInfo::parse(&http::Method::GET, "/api/v1/namespaces/n/configmaps", "");
    let user = |name: &str| User { name: name.into(), ..ann() };
    let (noisy, quiet) = (user("noisy"), user("quiet"));
    let admit = |user| Box::pin(flows[0].admit(user, &info, false, LONG));
    let running = admit(&noisy).await.1.unwrap();
    let mut waiting: Vec<_> = (0..500).map(|_| admit(&noisy)).collect();
    waiting.retain_mut(|waiting| waiting.as_mut().now_or_never().is_none());
    assert_eq!(waiting.len(), 6 * 50, "the queues of its hand are full");
    let mut quiet = admit(&quiet);
    assert!(quiet.as_mut().now_or_never().is_none());
    drop(running);
    let mut served = 0;
    loop {
        if let Some((_, seat)) = quiet.as_mut().now_or_never() {
            break drop(seat.unwrap());
        }
        let before = waiting.len();
        waiting.retain_mut(|waiting| waiting.as_mut().now_or_never().is_none());
        served += before - waiting.len();
        assert!(before > waiting.len() && served <= 6, "one of each queue of the noisy user at most");
    }
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
