//! Who did what, in which order, and why.

use std::collections::HashSet;

use machinery::{Text, Value, json};

use super::reasons::{lines, refusals, varying};
use super::{Detail, Plan};
use crate::compare::{Ignored, ObjectKey, Objects, compare};
use crate::engine::Write;

/// Objects, from `RESOURCE NAMESPACE/NAME`, a uid, and the rest of the object.
fn objects(list: &[(&str, &str, Value)]) -> Objects {
    let place = |(key, uid, object): &(&str, &str, Value)| {
        let (resource, rest) = key.split_once(' ').unwrap();
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        let mut object = object.clone();
        for (field, text) in [("namespace", namespace), ("name", name), ("uid", uid)] {
            object.set_at(&["metadata", field], Value::from(text));
        }
        (ObjectKey { resource: resource.into(), namespace: namespace.into(), name: name.into() }, object)
    };
    list.iter().map(place).collect()
}

/// Writes, from `AGENT VERB RESOURCE NAMESPACE/NAME CODE`, with the rest as the message.
fn writes(list: &[&str]) -> Vec<Write> {
    let write = |line: &&str| {
        let [agent, verb, resource, place, rest] = line.splitn(5, ' ').collect::<Vec<_>>().try_into().unwrap();
        let (code, message) = rest.split_once(' ').unwrap_or((rest, ""));
        let (namespace, name) = place.split_once('/').unwrap_or(("", place));
        Write::read(
            &json!({"userAgent": agent, "verb": verb, "resource": resource, "namespace": namespace, "name": name,
            "code": (code.parse::<i64>().unwrap()), "message": message}),
        )
    };
    list.iter().map(write).collect()
}

fn owned_by(uid: &str) -> Value {
    json!({"metadata": {"ownerReferences": [{"uid": uid, "kind": "K", "name": "n"}]}})
}

fn plan(old: &Objects, new: &Objects, made: &[Write]) -> Plan {
    let kept: HashSet<Text> = old.values().map(|object| object.str_at(&["metadata", "uid"]).into()).collect();
    let differences = compare(old, new, &kept, &Ignored::default());
    Plan { lines: lines(&differences, old, new, made), refused: refusals(made, &[]), ..Plan::default() }
}

#[test]
fn lines_have_authors_reasons_and_an_order() {
    let none = || json!({});
    let old = objects(&[
        ("deployments.apps s/web", "1", json!({"spec": {"image": "a", "list": [{"name": "x", "v": 1}]}})),
        ("replicasets.apps s/web-1", "2", owned_by("1")),
        ("pods s/web-1-a", "3", owned_by("2")),
        ("namespaces old", "4", none()),
        ("configmaps old/c", "5", owned_by("4")),
        ("statefulsets.apps s/db", "6", json!({"spec": {"size": 1}})),
        ("customresourcedefinitions.apiextensions.k8s.io boats.x.io", "7", none()),
        ("boats.x.io s/b", "8", none()),
        ("secrets s/k", "9", json!({"data": {"p": "old"}})),
        ("services s/own", "10", none()),
        ("jobs.batch s/j", "11", none()),
    ]);
    let new = objects(&[
        ("statefulsets.apps s/db", "66", json!({"spec": {"size": 2}})),
        ("configmaps s/a-x1", "12", none()),
        ("secrets s/k", "9", json!({"data": {"p": "new"}})),
        ("services s/own", "10", json!({"spec": {"ip": "1"}})),
        (
            "jobs.batch s/j",
            "11",
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b", "c"]}}),
        ),
    ]);
    let made = writes(&[
        "pintle delete namespaces old/old 200",
        "m/1 update statefulsets.apps s/db 422 StatefulSet.apps \"db\" is invalid: spec.size: Invalid value: 2: field is immutable",
        "m/1 delete statefulsets.apps s/db 200",
        "m/1 create statefulsets.apps s/db 201",
        "kubectl/v1 deletecollection deployments.apps s/ 200",
        "pintle delete customresourcedefinitions.apiextensions.k8s.io boats.x.io 200",
        "m/1 update secrets s/k 409 conflict",
        "n/2 patch secrets/status s/k 200",
        "m/1 patch secrets s/k 200",
        "m/1 patch secrets s/k 200",
        "m/1 create configmaps s/a-x1 201",
        "pintle delete jobs.batch s/j 200",
    ]);
    let plan = plan(&old, &new, &made);
    let want = "  \
  - namespaces old  (the change)
  - configmaps old/c  deleted with namespace old
  -/+ statefulsets.apps s/db  (m)  recreated: spec.size: field is immutable
      spec.size: 1 → 2
  - deployments.apps s/web  (kubectl)
  - replicasets.apps s/web-1  deleted by garbage collection: owner deployments.apps s/web deleted
  - pods s/web-1-a  deleted by garbage collection: owner replicasets.apps s/web-1 deleted
  - customresourcedefinitions.apiextensions.k8s.io boats.x.io  (the change)
  - boats.x.io s/b  deleted with its CustomResourceDefinition
  ~ secrets s/k  (n, m)  data.p: (sensitive)
  + configmaps s/a-x1  (m)
  ~ jobs.batch s/j  (the change)  its deletion waits for finalizers: a/b, c
      metadata.deletionTimestamp: (none) → 2026-01-01T00:00:00Z
      metadata.finalizers: (none) → [\"a/b\",\"c\"]
  ~ services s/own  (the server)  spec: (none) → {\"ip\":\"1\"}
Plan: 1 to create, 3 to change, 1 to recreate, 7 to delete. 1 request was refused (see --details)
";
    assert_eq!(plan.text(Detail::Summary), want);
    let value = plan.value();
    assert_eq!(value.at(&["summary"]), Some(&json!({"create": 1, "change": 3, "recreate": 1, "delete": 7})));
    assert!(!value.to_json().contains("\"new\":\"new\""), "values of Secrets are not shown");
}

#[test]
fn what_happens_anyway_is_no_refusal() {
    let made = writes(&[
        "m/1 update configmaps s/a 422 no",
        "m/1 update configmaps s/a 422 no",
        "m/1 create pods s/p 403 forbidden",
        "m/1 delete pods s/q 404 absent",
        "m/1 update pods s/q 409 conflict",
        "m/1 update pods s/q 0",
    ]);
    let refused: Vec<String> =
        refusals(&made, &writes(&["m/2 create pods s/p 403 forbidden"])).iter().map(ToString::to_string).collect();
    assert_eq!(refused, ["m: update configmaps s/a: no (2 times)"]);
    let plan = Plan { refused: refusals(&made, &[]), ..Plan::default() };
    assert_eq!(plan.text(Detail::Summary), "No changes. 3 requests were refused (see --details)\n");
    let details = plan.text(Detail::Full);
    assert!(
        details
            .starts_with("No changes. 3 requests were refused\nRefused requests:\n  m: create pods s/p: forbidden\n"),
        "{details}"
    );
}

#[test]
fn runs_vary_in_what_they_write() {
    let first = writes(&[
        "m/1 create pods s/p 201",
        "m/1 update pods s/p 200",
        "m/1 update pods s/p 200",
        "m/1 create pods s/q-bcd24 201",
        "m/1 create events s/e1 201",
    ]);
    let second = writes(&[
        "m/1 update pods s/p 200",
        "m/1 create pods s/p 500",
        "n/1 delete pods s/p 200",
        "m/1 create pods s/q-xz567 201",
    ]);
    let secret = |value: &str| objects(&[("secrets s/k", "1", json!({"data": {"p": value}}))]);
    let between = compare(&secret("hidden"), &secret("secret"), &HashSet::new(), &Ignored::default());
    let want = [
        "m: create pods s/p (only in the first run)",
        "n: delete pods s/p (only in the second run)",
        "secrets s/k: data.p (another value in each run)",
    ];
    assert_eq!(varying(&first, &second, &between), want);
    assert_eq!(varying(&first, &first, &[]), [""; 0]);
}

#[test]
fn many_fields_are_cut_short() {
    let fields = |value: i64| {
        (0..15).map(|n| (format!("f{n:02}"), Value::Int(value))).fold(json!({}), |mut all, (name, value)| {
            all.set_at(&["spec", &name], value);
            all
        })
    };
    let (old, new) = (objects(&[("pods s/p", "1", fields(1))]), objects(&[("pods s/p", "1", fields(2))]));
    let plan = plan(&old, &new, &[]);
    let text = plan.text(Detail::Summary);
    assert!(text.contains("spec.f09: 1 → 2\n      … and 5 more fields (see --details)\nPlan:"), "{text}");
    assert!(plan.text(Detail::Full).contains("spec.f14"));
}
