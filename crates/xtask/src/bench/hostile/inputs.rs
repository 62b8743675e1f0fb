//! The scenarios, numbered after the faults that they reproduced.

use std::fmt::Write as _;
use std::sync::Arc;

use super::super::load;
use client::{Call, Client, Result};

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const THINGS: &str = "/apis/hostile.example.com/v1/namespaces/default/things";
pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const APPLY: &str = "application/apply-patch+yaml";
/// The number of listed objects and their size in bytes: 100 MB.
const OBJECTS: usize = 1_000;
const OBJECT_BYTES: usize = 100_000;

/// The requests of a hostile client.
#[derive(Clone)]
pub enum Attack {
    Requests(fn() -> Vec<Call>),
    /// Connections with a hundred streams each that request the path and read nothing.
    Streams {
        connections: usize,
        path: &'static str,
    },
    /// Connections on which nothing is sent.
    Silent(usize),
    /// Watches over WebSockets whose clients send messages.
    WebSockets(usize),
    /// Connections without credentials that send the body of a request byte by byte.
    Slow(usize),
    Replacements(Replacements),
}

/// Replacements of ConfigMaps, each with another content of the same size.
#[derive(Clone, Copy)]
pub struct Replacements {
    /// The path of the API.
    pub root: &'static str,
    pub objects: usize,
    pub bytes: usize,
    pub total: usize,
}

/// The flags of the server, and what it may use.
#[derive(Clone, Copy, Default)]
pub struct Conditions {
    pub flags: &'static [&'static str],
    /// Descriptors that the process may have open, if they are limited.
    pub descriptors: Option<u32>,
}

pub struct Scenario {
    pub name: &'static str,
    pub setup: fn() -> Vec<Call>,
    /// Whether a server may reject the definition that the scenario needs.
    pub setup_may_fail: bool,
    /// The number of objects that are created after the setup, and their size in bytes.
    pub objects: (usize, usize),
    pub attack: Attack,
    pub conditions: Conditions,
}

impl Scenario {
    /// A scenario of requests.
    pub fn requests(name: &'static str, setup: fn() -> Vec<Call>, calls: fn() -> Vec<Call>) -> Scenario {
        Scenario { setup, setup_may_fail: true, ..Scenario::of(name, Attack::Requests(calls)) }
    }

    /// A scenario without objects and conditions.
    pub fn of(name: &'static str, attack: Attack) -> Scenario {
        let conditions = Conditions::default();
        Scenario { name, setup: Vec::new, setup_may_fail: false, objects: (0, 0), attack, conditions }
    }
}

/// A definition of `things` with this schema of its `spec`.
pub fn definition(spec: &str) -> Call {
    definition_of(&version("v1", spec, ""))
}

/// A version of a definition with this schema of its `spec`, and further fields, each after a comma.
pub fn version(name: &str, spec: &str, more: &str) -> String {
    let schema = format!(r#"{{"type":"object","properties":{{"spec":{spec}}}}}"#);
    let storage = name == "v1";
    format!(r#"{{"name":"{name}","served":true,"storage":{storage},"schema":{{"openAPIV3Schema":{schema}}}{more}}}"#)
}

/// A definition of `things` with these versions.
pub fn definition_of(versions: &str) -> Call {
    let names = r#"{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"}"#;
    Call::post(
        DEFINITIONS,
        format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"things.hostile.example.com"}},"spec":{{"group":"hostile.example.com","scope":"Namespaced","names":{names},"versions":[{versions}]}}}}"#
        ),
    )
}

/// A schema without restrictions.
pub const FREE: &str = r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#;

pub fn free() -> Vec<Call> {
    vec![definition(FREE)]
}

pub fn thing(name: &str, spec: &str) -> Call {
    let object = r#""apiVersion":"hostile.example.com/v1","kind":"Thing""#;
    Call::post(THINGS, format!(r#"{{{object},"metadata":{{"name":"{name}"}},"spec":{spec}}}"#))
}

/// A thing with a text of this length.
pub fn with_text(name: &str, letter: &str, length: usize) -> Call {
    thing(name, &format!(r#"{{"text":"{}"}}"#, letter.repeat(length)))
}

fn with_list(name: &str, count: usize, item: impl Fn(usize) -> String) -> Vec<Call> {
    vec![thing(name, &format!(r#"{{"list":[{}]}}"#, joined(count, item)))]
}

pub fn apply(name: &str, yaml: String) -> Call {
    apply_as("bench", THINGS, name, yaml)
}

pub fn apply_as(manager: &str, collection: &str, name: &str, yaml: String) -> Call {
    Call::patch(format!("{collection}/{name}?fieldManager={manager}"), APPLY, yaml)
}

pub fn joined(count: usize, each: impl Fn(usize) -> String) -> String {
    (0..count).map(each).collect::<Vec<_>>().join(",")
}

fn unknown_fields() -> Vec<Call> {
    let fields = joined(200_000, |i| format!(r#""k{i}":1"#));
    (0..2).map(|i| thing(&format!("unknown-{i}"), &format!("{{{fields}}}"))).collect()
}

fn large_yaml() -> Vec<Call> {
    let mut yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n".to_owned();
    (0..30_000).for_each(|i| writeln!(yaml, "  key-{i}: \"the value of {i}\"").unwrap_or_default());
    let mut merged =
        "apiVersion: hostile.example.com/v1\nkind: Thing\nmetadata: {name: merged}\nspec:\n  b: &b {a: 1}\n  c:\n"
            .to_owned();
    (0..20_000).for_each(|_| merged.push_str("    <<: *b\n"));
    vec![Call::patch(format!("{MAPS}/large?fieldManager=bench"), APPLY, yaml), apply("merged", merged)]
}

fn aliases() -> Vec<Call> {
    let text = "x".repeat(1_000_000);
    let list = joined(200_000, |_| "*b".to_owned());
    let head = "apiVersion: hostile.example.com/v1\nkind: Thing\nmetadata: {name: aliases}\nspec:\n";
    vec![apply("aliases", format!("{head}  b: &b \"{text}\"\n  l: [{list}]\n"))]
}

fn large_default() -> Vec<Call> {
    let text = "x".repeat(100_000);
    let item = format!(r#"{{"type":"object","properties":{{"text":{{"type":"string","default":"{text}"}}}}}}"#);
    let list = format!(r#"{{"type":"array","items":{item}}}"#);
    vec![definition(&format!(r#"{{"type":"object","properties":{{"list":{list}}}}}"#))]
}

fn duplicate_key() -> Vec<Call> {
    let keys = joined(250_000, |i| format!(r#""{i}":1"#));
    let deep = format!(r#"{}{{{keys},"0":2}}{}"#, r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
    vec![thing("duplicate", &deep)]
}

fn large_pattern() -> Vec<Call> {
    let pattern = r"(\\pL{1000})".repeat(3_000);
    vec![definition(&format!(
        r#"{{"type":"object","properties":{{"text":{{"type":"string","pattern":"{pattern}"}}}}}}"#
    ))]
}

fn texts() -> Vec<Call> {
    vec![definition(r#"{"type":"object","properties":{"list":{"type":"array","items":{"type":"string"}}}}"#)]
}

fn rule(rule: &str) -> Vec<Call> {
    let validations = format!(r#""x-kubernetes-validations":[{{"rule":"{rule}"}}]"#);
    vec![definition(&format!(r#"{{"type":"object","x-kubernetes-preserve-unknown-fields":true,{validations}}}"#))]
}

/// A policy for `things` with this expression. No schema bounds what `object` contains, so its cost is not estimated.
pub fn policy(expression: &str) -> Vec<Call> {
    const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
    let object = |kind: &str, spec: String| {
        let kind = format!(r#""apiVersion":"admissionregistration.k8s.io/v1","kind":"{kind}""#);
        format!(r#"{{{kind},"metadata":{{"name":"hostile"}},"spec":{spec}}}"#)
    };
    let rules = r#"[{"apiGroups":["hostile.example.com"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["things"]}]"#;
    let validations = format!(r#"[{{"expression":"{expression}"}}]"#);
    let policy = format!(r#"{{"matchConstraints":{{"resourceRules":{rules}}},"validations":{validations}}}"#);
    let binding = r#"{"policyName":"hostile","validationActions":["Deny"]}"#.to_owned();
    let mut calls = free();
    calls.push(Call::post(format!("{PATH}ies"), object("ValidatingAdmissionPolicy", policy)));
    calls.push(Call::post(format!("{PATH}ybindings"), object("ValidatingAdmissionPolicyBinding", binding)));
    calls
}

/// Creates the objects of a scenario.
pub async fn fill(client: &Arc<Client>, (objects, bytes): (usize, usize)) -> Result<()> {
    if objects == 0 {
        return Ok(());
    }
    let make = move |i: usize| with_text(&format!("object-{i}"), "x", bytes);
    load::drive(client, 4, objects, make).await.map(drop)
}

pub fn scenarios() -> Vec<Scenario> {
    const INITIAL: &str = "/apis/hostile.example.com/v1/things?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const LIST: &str = "/apis/hostile.example.com/v1/things";
    let requests = Scenario::requests;
    let streams = |name, connections, path| {
        let (attack, objects) = (Attack::Streams { connections, path }, (OBJECTS, OBJECT_BYTES));
        Scenario { setup: free, objects, ..Scenario::of(name, attack) }
    };
    vec![
        requests("1 unknown fields", texts, unknown_fields),
        requests("2 large YAML", free, large_yaml),
        requests("3 YAML aliases", free, aliases),
        requests("4 large defaults", large_default, || with_list("defaults", 5_000, |_| "{}".to_owned())),
        requests("5 a duplicate key, deep", free, duplicate_key),
        requests("6 a large pattern", large_pattern, || vec![with_text("matched", "a", 1_000_000)]),
        requests("7 wrong types in a list", texts, || with_list("wrong", 40_000, |i| i.to_string())),
        requests(
            "8 a policy that copies",
            || {
                policy(&format!(
                    "lists.range(900).all(i, object.spec.text.replace('', '{}').size() > 0)",
                    "x".repeat(500)
                ))
            },
            || (0..2).map(|i| with_text(&format!("text-{i}"), "a", 60_000)).collect(),
        ),
        requests(
            "9 NaN in a rule",
            || rule("lists.range(64).map(i, i % 3 == 0 ? 0.0/0.0 : double(i)).sort().size() > 0"),
            || with_list("rule", 0, |_| String::new()),
        ),
        streams("10 100 unread lists", 1, LIST),
        streams("10 100 unread watches", 1, INITIAL),
        streams("10 1,000 unread lists", 10, LIST),
        Scenario::of("11 2,000 silent connections", Attack::Silent(2_000)),
    ]
}
