//! Comparisons of the objects of two runs.

use std::collections::HashSet;

use machinery::{Text, Value, json};

use trials::compare::{Ignored, ObjectKey, Objects, compare};

/// Objects by their names, all of one resource; `uid` and `more` are merged into them.
fn objects(list: &[(&str, &str, Value)]) -> Objects {
    let place = |name: &str| match name.split_once(':') {
        Some((resource, name)) => (resource.to_owned(), name.to_owned()),
        None => ("configmaps".to_owned(), name.to_owned()),
    };
    let entry = |(name, uid, more): &(&str, &str, Value)| {
        let (resource, name) = place(name);
        let mut object = more.clone();
        object.set_at(&["metadata", "name"], Value::from(name.as_str()));
        object.set_at(&["metadata", "uid"], Value::from(*uid));
        (ObjectKey { resource: resource.into(), namespace: "default".into(), name: name.into() }, object)
    };
    list.iter().map(entry).collect()
}

fn lines(old: &Objects, new: &Objects, ignored: &Ignored) -> Vec<String> {
    let kept: HashSet<Text> = ["kept".into()].into();
    compare(old, new, &kept, ignored).iter().map(ToString::to_string).collect()
}

fn generated(data: i64) -> Value {
    json!({"metadata": {"generateName": "web-"}, "data": {"n": data}})
}

fn owned(name: &str, uid: &str) -> Value {
    json!({"metadata": {"ownerReferences": [{"kind": "Foo", "name": name, "uid": uid}]}, "data": {"of": (format!("x-{name}-y"))}})
}

fn condition(status: &str, at: &str) -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": at}]}})
}

#[test]
fn differences_are_those_that_a_user_would_see() {
    let named = |name: &&str| json!({"name": (*name)});
    let listed = |names: &[&str]| json!({"spec": {"list": (names.iter().map(named).collect::<Value>())}});
    let cases: [(&str, Objects, Objects, &[&str]); 13] = [
        ("nothing", objects(&[("a", "1", json!({}))]), objects(&[("a", "2", json!({}))]), &[]),
        ("added", objects(&[]), objects(&[("a", "1", json!({}))]), &["configmaps default/a exists"]),
        ("removed", objects(&[("a", "1", json!({}))]), objects(&[]), &["configmaps default/a is missing"]),
        (
            "recreated",
            objects(&[("a", "kept", json!({"data": {"x": "1"}}))]),
            objects(&[("a", "2", json!({"data": {"x": "2"}}))]),
            &["configmaps default/a was created again: data.x: 1 → 2"],
        ),
        (
            "noise of metadata",
            objects(&[("a", "1", json!({"metadata": {"resourceVersion": "1", "managedFields": [1]}}))]),
            objects(&[("a", "2", json!({"metadata": {"resourceVersion": "2", "managedFields": [2]}}))]),
            &[],
        ),
        (
            "times by name and form",
            objects(&[("a", "1", condition("True", "2030-01-01T00:00:00Z"))]),
            objects(&[("a", "1", condition("True", "2030-01-01T00:00:09Z"))]),
            &[],
        ),
        (
            "condition",
            objects(&[("a", "1", condition("True", "2030-01-01T00:00:00Z"))]),
            objects(&[("a", "1", condition("False", "2030-01-01T00:00:00Z"))]),
            &["configmaps default/a: status.conditions[type=Ready].status: True → False"],
        ),
        (
            "elements with names have no order",
            objects(&[("a", "1", listed(&["x", "y"]))]),
            objects(&[("a", "1", listed(&["y", "x", "z"]))]),
            &["configmaps default/a: spec.list[name=z]: (none) → {\"name\":\"z\"}"],
        ),
        (
            "left out",
            objects(&[("leases.coordination.k8s.io:a", "1", json!({}))]),
            objects(&[("events:b", "1", json!({}))]),
            &[],
        ),
        (
            "generated names are paired by what they hold",
            objects(&[("web-1", "1", generated(1)), ("web-2", "2", generated(2))]),
            objects(&[("web-8", "3", generated(2)), ("web-9", "4", generated(1))]),
            &[],
        ),
        (
            "one more with a generated name",
            objects(&[("web-1", "1", generated(1))]),
            objects(&[("web-7", "5", generated(7)), ("web-8", "3", generated(1))]),
            &["configmaps default/web-7 exists"],
        ),
        (
            "references to paired objects",
            objects(&[("web-1", "1", generated(1)), ("b", "2", owned("web-1", "1"))]),
            objects(&[("web-8", "3", generated(1)), ("b", "4", owned("web-8", "3"))]),
            &[],
        ),
        (
            "references to other objects",
            objects(&[("a", "kept", json!({})), ("b", "1", owned("a", "kept"))]),
            objects(&[("a", "kept", json!({})), ("b", "2", owned("a", "other"))]),
            &["configmaps default/b: metadata.ownerReferences[name=a].uid: kept → other"],
        ),
    ];
    for (name, old, new, wanted) in cases {
        assert_eq!(lines(&old, &new, &Ignored::default()), wanted, "{name}");
    }
}

#[test]
fn what_two_equal_runs_differ_in_is_noise() {
    let run = |tick: i64, name: &str| {
        objects(&[("a", "1", json!({"data": {"tick": tick, "x": 1}})), (name, "2", generated(tick))])
    };
    let mut noise = Ignored::default();
    let differences = compare(&run(1, "web-1"), &run(2, "web-2"), &HashSet::new(), &noise);
    noise.learn(&differences);
    assert_eq!(lines(&run(1, "web-1"), &run(3, "web-3"), &noise), [""; 0]);
    let added = objects(&[("a", "1", json!({"data": {"tick": 1, "x": 2}}))]);
    let expected = ["configmaps default/a: data.x: 1 → 2", "configmaps default/web-1 is missing"];
    assert_eq!(lines(&run(1, "web-1"), &added, &noise), expected);
    let counted = |number: i64| {
        let condition = json!({"type": "Ready", "observedGeneration": number});
        json!({"metadata": {"generation": number}, "status": {"observedGeneration": number, "conditions": [condition]}})
    };
    let generation = |number: i64| objects(&[("a", "1", counted(number))]);
    assert_eq!(lines(&generation(1), &generation(2), &Ignored::default()), [""; 0]);
}

#[test]
fn assigned_addresses_and_empty_values_of_a_status_are_no_difference() {
    let found = |old: Value, new: Value| {
        lines(&objects(&[("a", "1", old)]), &objects(&[("a", "1", new)]), &Ignored::default()).len()
    };
    let reported = |ip: &str| json!({"status": {"podIP": (ip)}, "subsets": [{"ip": (ip)}]});
    assert_eq!(found(reported("10.128.0.1"), reported("198.18.0.2")), 0);
    assert_eq!(found(reported("10.1.0.1"), reported("10.1.0.2")), 1);
    assert_eq!(found(json!({"status": {"canary": {}}}), json!({"status": {"list": []}})), 0);
    assert_eq!(found(json!({"status": {}}), json!({})), 0);
    assert_eq!(found(json!({"spec": {"emptyDir": {}}}), json!({"spec": {}})), 1);
    let wanted = |ip: &str| json!({"spec": {"ip": (ip)}});
    assert_eq!(found(wanted("10.128.0.1"), wanted("10.128.0.2")), 1);
}
