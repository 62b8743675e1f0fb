//! Scenarios in which a cost was the product of two sizes: of fields and paths, bindings and rules, versions and managers.

use client::Call;

use super::inputs::{
    Attack, DEFINITIONS, FREE, MAPS, Scenario, THINGS, apply_as, definition, definition_of, free, joined, policy,
    thing, version, with_text,
};
use super::webhook;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const TENANT: &str = "tenant";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const NAMESPACES: &str = "/api/v1/namespaces";
const HELD: &str = "/api/v1/namespaces/held/configmaps";
/// Objects that are deleted elsewhere while a namespace is held.
const DELETED: usize = 50;
const VERSIONS: usize = 120;

/// An object with 3,000 fields of this value below a hundred keys of 990 bytes each.
fn below_long_keys(manager: &str, value: u8) -> Call {
    const DEPTH: usize = 100;
    let keys = |each: fn(usize) -> String| (0..DEPTH).map(each).collect::<String>();
    let (open, close) = (keys(|i| format!(r#"{{"{i:0>990}":"#)), "}".repeat(DEPTH));
    let fields = joined(3_000, |i| format!(r#""f{i}":{value}"#));
    let head = r#""apiVersion":"hostile.example.com/v1","kind":"Thing","metadata":{"name":"deep"}"#;
    apply_as(manager, THINGS, "deep", format!(r#"{{{head},"spec":{open}{{{fields}}}{close}}}"#))
}

fn conflicting() -> Vec<Call> {
    vec![below_long_keys("two", 2), below_long_keys("three", 3)]
}

fn role(name: &str, more: &str) -> Call {
    let rules = joined(18_000, |i| format!(r#"{{"apiGroups":[""],"resources":["r{i}"],"verbs":["get"]}}"#));
    Call::post(
        format!("{RBAC}/roles"),
        format!(
            r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{{"name":"{name}"}},"rules":[{more}{rules}]}}"#
        ),
    )
}

fn bindings() -> Vec<Call> {
    let binding = |i: usize| {
        let role = r#"{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"large"}"#;
        let subject = format!(r#"{{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"{TENANT}"}}"#);
        Call::post(
            format!("{RBAC}/rolebindings"),
            format!(
                r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{{"name":"b{i}"}},"roleRef":{role},"subjects":[{subject}]}}"#
            ),
        )
    };
    let creates = r#"{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["create"]},"#;
    std::iter::once(role("large", creates)).chain((0..100).map(binding)).collect()
}

/// A review of the tenant's rules, and a role that they may grant.
fn reviews() -> Vec<Call> {
    const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let review = Call::post(
        REVIEWS,
        r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"default"}}"#,
    );
    [review, role("granted", "")].into_iter().map(|call| Call { user: TENANT, ..call }).collect()
}

fn duplicate_keys() -> Vec<Call> {
    let patch = joined(9_000, |i| format!(r#"{{"op":"add","path":"/spec/f{i}","value":{{"k":1,"k":2}}}}"#));
    (0..6)
        .map(|_| Call::patch(format!("{THINGS}/patched"), "application/json-patch+json", format!("[{patch}]")))
        .collect()
}

fn unions() -> Vec<Call> {
    const DEPTH: usize = 25;
    let path = format!(".spec{}", "['a','a']".repeat(DEPTH));
    let columns = format!(r#","additionalPrinterColumns":[{{"name":"A","type":"string","jsonPath":"{path}"}}]"#);
    let spec = format!("{}1{}", r#"{"a":"#.repeat(DEPTH), "}".repeat(DEPTH));
    vec![definition_of(&version("v1", FREE, &columns)), thing("columns", &spec)]
}

fn tables() -> Vec<Call> {
    (0..2).map(|_| Call { accept: TABLE, ..Call::get(format!("{THINGS}/columns")) }).collect()
}

/// A namespace that is being deleted, with a hundred objects of 880 KB that have finalizers, and objects elsewhere.
fn held_namespace() -> Vec<Call> {
    let map = |collection: &str, name: String, more: &str, text: &str| {
        Call::post(
            collection,
            format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"{more}}},"data":{{"a":"{text}"}}}}"#
            ),
        )
    };
    let text = "x".repeat(880_000);
    let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"held"}}"#;
    let held = |i: usize| map(HELD, format!("held-{i}"), r#","finalizers":["example.com/held"]"#, &text);
    let mut calls = vec![Call::post(NAMESPACES, namespace)];
    calls.extend((0..100).map(held));
    calls.extend((0..DELETED).map(|i| map(MAPS, format!("elsewhere-{i}"), "", "x")));
    calls.push(Call::delete(format!("{NAMESPACES}/held")));
    calls
}

fn deletions() -> Vec<Call> {
    (0..DELETED).map(|i| Call::delete(format!("{MAPS}/elsewhere-{i}"))).collect()
}

fn alternatives() -> Vec<Call> {
    let lengths = joined(15_000, |_| r#"{"minLength":2000000}"#.to_owned());
    vec![definition(&format!(r#"{{"type":"object","properties":{{"text":{{"type":"string","anyOf":[{lengths}]}}}}}}"#))]
}

/// An object in which each of 120 managers has applied a field in a version of its own.
fn many_versions() -> Vec<Call> {
    let versions = joined(VERSIONS, |i| version(&format!("v{}", i + 1), FREE, ""));
    let applied = |i: usize| {
        let collection = format!("/apis/hostile.example.com/v{i}/namespaces/default/things");
        let head =
            format!(r#""apiVersion":"hostile.example.com/v{i}","kind":"Thing","metadata":{{"name":"versions"}}"#);
        apply_as(&format!("m{i}"), &collection, "versions", format!(r#"{{{head},"spec":{{"f{i}":1}}}}"#))
    };
    std::iter::once(definition_of(&versions)).chain((1..=VERSIONS).map(applied)).collect()
}

fn small_patch() -> Vec<Call> {
    vec![Call::patch(format!("{THINGS}/versions"), "application/merge-patch+json", r#"{"spec":{"other":1}}"#)]
}

fn many_requirements() -> Vec<Call> {
    let selector = joined(7_000, |i| format!("!l{i}"));
    (0..4).map(|_| Call::get(format!("{THINGS}?labelSelector={selector}"))).collect()
}

pub fn scenarios() -> Vec<Scenario> {
    let requests = Scenario::requests;
    vec![
        requests("12 conflicts below long keys", || vec![definition(FREE), below_long_keys("one", 1)], conflicting),
        requests("13 a role bound 100 times", bindings, reviews),
        requests(
            "14 findAll over 900 KB",
            || policy("object.spec.text.findAll('a').size() > 0"),
            || vec![with_text("matches", "a", 900_000)],
        ),
        requests("15 duplicate keys in patches", || vec![definition(FREE), thing("patched", "{}")], duplicate_keys),
        requests("16 unions of a printer column", unions, tables),
        Scenario { setup: free, ..Scenario::of("17 messages on 40 WebSockets", Attack::WebSockets(40)) },
        requests("18 deletions beside a held namespace", held_namespace, deletions),
        requests("19 15,000 alternatives", alternatives, || vec![with_text("long", "x", 1_000_000)]),
        requests("20 120 versions and managers", many_versions, small_patch),
        Scenario { objects: (20_000, 10), ..requests("21 7,000 label requirements", free, many_requirements) },
        requests("22 a webhook's response of 60 MB", webhook::configured, webhook::labelled),
    ]
}

/// Whether a request creates a definition, after which its resource may be served a little later.
pub fn defines(call: &Call) -> bool {
    call.path == DEFINITIONS
}
