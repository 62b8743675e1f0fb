//! MutatingAdmissionPolicies, and type checks of ValidatingAdmissionPolicies.

use super::*;
use crate::test_server::TestServer;

const GROUP: &str = "/apis/admissionregistration.k8s.io";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const MUTATING_BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOATS: &str = "/apis/acme.io/v1/namespaces/default/boats";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn constraints() -> Value {
    json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps", "boats"]}]})
}

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn json_patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// The body of a policy with these mutations, and with more fields of its spec.
fn policy(name: &str, mutations: Value, more: Value) -> Value {
    let mut spec = json!({"matchConstraints": (constraints()), "mutations": mutations, "reinvocationPolicy": "Never"});
    for (field, value) in more.fields() {
        spec.set_at(&[field], value.clone());
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

/// Creates a policy and its binding.
async fn bind(server: &TestServer, name: &str, mutations: Value, more: Value) {
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    server.ok(Method::POST, MUTATING_BINDINGS, binding).await;
    server.ok(Method::POST, MUTATING, policy(name, mutations, more)).await;
}

/// A server with a CRD of boats.
async fn with_boats(server: TestServer) -> TestServer {
    let member = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "role": {"type": "string"}}});
    let crew = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": member});
    let flags = json!({"type": "array", "items": {"type": "string"}});
    let properties = json!({"crew": crew, "sails": {"type": "integer", "maximum": 5}, "flags": flags});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "boats", "kind": "Boat"});
    let spec = json!({"group": "acme.io", "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": "boats.acme.io"}, "spec": spec});
    server.ok(Method::POST, DEFINITIONS, definition).await;
    server
}

fn boat(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "acme.io/v1", "kind": "Boat", "metadata": {"name": name}, "spec": spec})
}

/// An object is served and can be changed in both versions, in whichever it was written.
#[tokio::test]
async fn one_policy_in_both_versions() {
    let runtime =
        RuntimeConfig::parse(&["admissionregistration.k8s.io/v1beta1=true".to_owned()], &FeatureGates::default());
    let api = ApiConfig { runtime: runtime.unwrap(), ..ApiConfig::default() };
    let server = TestServer::of(api, Arc::new(Memory::default())).await;
    let at = |version: &str| format!("{GROUP}/{version}/mutatingadmissionpolicies");
    for written in ["v1", "v1beta1"] {
        let mutations = json!([(json_patch("[JSONPatch{op: 'test', path: '/a', value: 1}]"))]);
        server.ok(Method::POST, &at(written), policy(written, mutations, json!({}))).await;
        for requested in ["v1", "v1beta1"] {
            let (path, version) =
                (format!("{}/{written}", at(requested)), format!("admissionregistration.k8s.io/{requested}"));
            let mut label = json!({});
            label.set_at(&["metadata", "labels", requested], Value::from("seen"));
            let found = server.ok(Method::PATCH, &path, label).await;
            assert_eq!(found.str_at(&["apiVersion"]), version);
            assert_eq!(server.ok(Method::GET, &path, Value::Null).await, found);
            assert_eq!(server.ok(Method::GET, &at(requested), Value::Null).await.str_at(&["apiVersion"]), version);
        }
        let found = server.ok(Method::GET, &format!("{}/{written}", at("v1beta1")), Value::Null).await;
        assert_eq!(found.at(&["metadata", "labels"]), Some(&json!({"v1": "seen", "v1beta1": "seen"})));
        assert_eq!(found.at(&["metadata", "generation"]), Some(&Value::Int(1)));
    }
}

#[tokio::test]
async fn configurations_and_patches_change_objects() {
    let server = with_boats(TestServer::start().await).await;
    let mutations = json!([
        (apply(
            "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}, spec: Object.spec{crew: [Object.spec.crew{name: 'cook', role: variables.role}]}}"
        )),
        (json_patch(
            "[JSONPatch{op: 'test', path: '/metadata/labels/seen', value: 'yes'}, \
             JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('acme.io/x'), value: request.operation}, \
             JSONPatch{op: 'add', path: '/spec/sails', value: size(object.spec.crew)}]"
        ))
    ]);
    let more = json!({
        "variables": [{"name": "role", "expression": "'of ' + object.metadata.name"}],
        "matchConditions": [{"name": "boats", "expression": "request.resource.resource == 'boats'"}]
    });
    bind(&server, "crew", mutations, more).await;
    let made = server.ok(Method::POST, BOATS, boat("a", json!({"crew": [{"name": "ann"}]}))).await;
    let crew = json!([{"name": "ann"}, {"name": "cook", "role": "of a"}]);
    assert_eq!(made.get("spec"), Some(&json!({"crew": crew, "sails": 2})));
    assert_eq!(made.at(&["metadata", "labels"]), Some(&json!({"seen": "yes", "acme.io/x": "CREATE"})));
    let path = format!("{BOATS}/a");
    let changed = server.ok(Method::PATCH, &path, json!({"spec": {"crew": []}})).await;
    assert_eq!(changed.str_at(&["metadata", "labels", "acme.io/x"]), "UPDATE");
    assert_eq!(changed.at(&["spec", "sails"]), Some(&Value::Int(1)));
    let map = server.ok(Method::POST, MAPS, json!({"metadata": {"name": "m"}})).await;
    assert_eq!(map.at(&["metadata", "labels"]), None);
    let before = server.ok(Method::GET, &path, Value::Null).await;
    let dry_run =
        server.ok(Method::PATCH, &format!("{path}?dryRun=All"), json!({"spec": {"crew": [{"name": "bob"}]}})).await;
    assert_eq!(dry_run.at(&["spec", "sails"]), Some(&Value::Int(2)));
    assert_eq!(server.ok(Method::GET, &path, Value::Null).await, before);
}

#[tokio::test]
async fn failing_policies_deny_or_are_ignored() {
    let server = with_boats(TestServer::start().await).await;
    let nested = (b'a'..b'g')
        .rev()
        .fold("1".to_owned(), |inner, name| format!("[1,2,3,4,5,6,7,8,9,0].map({}, {inner})", char::from(name)));
    let costly = json_patch(&format!("[JSONPatch{{op: 'add', path: '/spec/sails', value: {nested}}}]"));
    let sails = "[JSONPatch{op: 'add', path: '/spec/sails', value: object.spec.none}]";
    for (name, mutation, wanted) in [
        (
            "atomic",
            apply("Object{spec: Object.spec{flags: ['x']}}"),
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.flags",
        ),
        (
            "misnamed",
            apply("Object{spec: Object.status{sails: 1}}"),
            r#"unexpected type name "Object.status", expected "Object.spec""#,
        ),
        ("undeclared", apply("Object{spec: Object.spec{masts: 1}}"), ".spec.masts: field not declared in schema"),
        ("absent", json_patch("[JSONPatch{op: 'remove', path: '/spec/sails'}]"), "JSON Patch: "),
        ("failing", json_patch(sails), "no such key: none"),
        ("costly", costly, "actual cost limit exceeded"),
    ] {
        bind(&server, name, json!([mutation]), json!({})).await;
        let status = server.refused(Method::POST, BOATS, boat("a", json!({})), 403).await;
        let message = status.str_at(&["message"]);
        assert_eq!(status.str_at(&["reason"]), "Invalid", "{name}");
        assert!(message.starts_with(&format!("policy '{name}' with binding '{name}' denied request: ")), "{message}");
        assert!(message.contains(wanted), "{message}");
        let path = format!("{MUTATING}/{name}");
        let ignoring = server.ok(Method::PATCH, &path, json!({"spec": {"failurePolicy": "Ignore"}})).await;
        assert_eq!(ignoring.at(&["metadata", "generation"]), Some(&Value::Int(2)), "{name}");
        server.ok(Method::POST, &format!("{BOATS}?dryRun=All"), boat("a", json!({}))).await;
        server.ok(Method::DELETE, &path, Value::Null).await;
    }
    // the result of a policy is validated like a request
    bind(&server, "sails", json!([(apply("Object{spec: Object.spec{sails: 9}}"))]), json!({})).await;
    let status = server.refused(Method::POST, BOATS, boat("a", json!({})), 422).await;
    assert!(status.str_at(&["message"]).contains("should be less than or equal to 5"), "{}", status.to_json());
}

#[tokio::test]
async fn invalid_policies_are_refused() {
    let server = TestServer::start().await;
    let deletes = json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["configmaps"]}]});
    for (mutations, more, wanted) in [
        (json!([]), json!({}), "spec.mutations: Required value: mutations must contain at least one item"),
        (json!([{"patchType": "Merge"}]), json!({}), r#"spec.mutations[0].patchType: Unsupported value: "Merge""#),
        (
            json!([(apply("1"))]),
            json!({}),
            r#"spec.mutations[0].applyConfiguration.expression: Invalid value: "1": must evaluate to Object but got int"#,
        ),
        (json!([(json_patch("Object{}"))]), json!({}), "must evaluate to list(JSONPatch) but got Object"),
        (
            json!([(json_patch("[JSONPatch{verb: 'add'}]"))]),
            json!({}),
            "expected type of field 'verb' is '' but provided type is 'string'",
        ),
        (
            json!([(json_patch("[JSONPatch{op: 1}]"))]),
            json!({}),
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        (
            json!([{"patchType": "JSONPatch"}]),
            json!({}),
            "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        ),
        (
            json!([(apply("Object{}"))]),
            json!({"reinvocationPolicy": "Always"}),
            r#"spec.reinvocationPolicy: Unsupported value: "Always""#,
        ),
        (
            json!([(apply("Object{}"))]),
            json!({"matchConstraints": deletes}),
            r#"spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE""#,
        ),
    ] {
        let status = server.refused(Method::POST, MUTATING, policy("p", mutations, more), 422).await;
        assert!(status.str_at(&["message"]).contains(wanted), "{}", status.to_json());
    }
    let validations = json!([{"expression": "Object{} == Object{}"}]);
    let validating =
        json!({"metadata": {"name": "v"}, "spec": {"matchConstraints": (constraints()), "validations": validations}});
    let status = server.refused(Method::POST, VALIDATING, validating, 422).await;
    assert!(status.str_at(&["message"]).contains("undeclared reference to 'Object'"), "{}", status.to_json());
}

#[tokio::test]
async fn parameters_of_policies() {
    const PARAMETERS: &str = "/api/v1/namespaces/kube-system/configmaps";
    let server = TestServer::start().await;
    let mutation = apply("Object{metadata: Object.metadata{annotations: {'from': params.data.text}}}");
    let kind = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}});
    server.ok(Method::POST, MUTATING, policy("p", json!([mutation]), kind)).await;
    server.ok(Method::POST, PARAMETERS, json!({"metadata": {"name": "texts"}, "data": {"text": "hello"}})).await;
    let reference = json!({"name": "texts", "namespace": "kube-system", "parameterNotFoundAction": "Deny"});
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "paramRef": reference}});
    server.ok(Method::POST, MUTATING_BINDINGS, binding).await;
    let made = server.ok(Method::POST, MAPS, json!({"metadata": {"name": "m"}})).await;
    assert_eq!(made.at(&["metadata", "annotations"]), Some(&json!({"from": "hello"})));
    server.ok(Method::DELETE, &format!("{PARAMETERS}/texts"), Value::Null).await;
    let status = server.refused(Method::POST, MAPS, json!({"metadata": {"name": "n"}}), 403).await;
    assert_eq!(status.str_at(&["reason"]), "Forbidden");
    let wanted = "no params found for policy binding with `Deny` parameterNotFoundAction";
    assert!(status.str_at(&["message"]).contains(wanted), "{}", status.to_json());
}

/// A server that checks the types of ValidatingAdmissionPolicies.
async fn checking() -> TestServer {
    let switches = ["*".to_owned(), "validatingadmissionpolicy-status-controller".to_owned()];
    let api = ApiConfig { controllers: Controllers::parse(&switches).unwrap(), ..ApiConfig::default() };
    with_boats(TestServer::of(api, Arc::new(Memory::default())).await).await
}

/// The status of a policy when controllers have nothing to do.
async fn status_of(server: &TestServer, name: &str) -> Value {
    server.controllers.finish_work(&server.context).await;
    let path = format!("{VALIDATING}/{name}");
    server.ok(Method::GET, &path, Value::Null).await.get("status").cloned().unwrap()
}

/// The status of ValidatingAdmissionPolicies has the type errors of their expressions.
#[tokio::test]
async fn types_of_validating_policies_are_checked() {
    let server = checking().await;
    let rule =
        json!({"apiGroups": ["acme.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["boats"]});
    let masts = json!({"expression": "object.spec.masts < 3 && variables.v > 1", "messageExpression": "'of ' + string(object.name)"});
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule]}, "variables": [{"name": "v", "expression": "object.spec.masts"}],
        "validations": [{"expression": "object.spec.sails < 3"}, masts]
    });
    let made = server.ok(Method::POST, VALIDATING, json!({"metadata": {"name": "p"}, "spec": spec})).await;
    assert_eq!(made.get("status"), Some(&json!({})));
    let found = status_of(&server, "p").await;
    assert_eq!(found.get("observedGeneration"), Some(&Value::Int(1)));
    let warnings = found.items_at(&["typeChecking", "expressionWarnings"]);
    let [first, second] = warnings else { panic!("{}", found.to_json()) };
    assert_eq!(first.str_at(&["fieldRef"]), "spec.validations[1].expression");
    let text = first.str_at(&["warning"]);
    assert!(text.starts_with("acme.io/v1, Kind=Boat: ERROR: <input>:1:12: undefined field 'masts'"), "{text}");
    assert_eq!(second.str_at(&["fieldRef"]), "spec.validations[1].messageExpression");
    assert!(second.str_at(&["warning"]).contains("undefined field 'name'"), "{}", second.to_json());
    let mended = json!({"spec": {"validations": [{"expression": "object.spec.sails < 2"}]}});
    server.ok(Method::PATCH, &format!("{VALIDATING}/p"), mended).await;
    assert_eq!(status_of(&server, "p").await, json!({"observedGeneration": 2, "typeChecking": {}}));
}

#[tokio::test]
async fn types_are_checked_for_every_kind_that_matches() {
    let server = checking().await;
    let expressions = [
        "object.metadata.labels.a == 1",
        "object.data.x == 1",
        "variables.name == 1",
        "variables.all == 1",
        "params.spec.sails == 'x'",
        "params.metadata.name == 'x'",
        "object.metadata.creationTimestamp == 1",
    ];
    let resources = json!(["secrets", "boats", "boats/status"]);
    let rule =
        json!({"apiGroups": ["", "acme.io"], "apiVersions": ["v1"], "operations": ["*"], "resources": resources});
    let variables = json!([{"name": "name", "expression": "object.metadata.name"}, {"name": "all", "expression": "object.metadata"}]);
    let validations: Value = expressions.into_iter().map(|expression| json!({"expression": expression})).collect();
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule]}, "paramKind": {"apiVersion": "acme.io/v1", "kind": "Boat"},
        "variables": variables, "validations": validations
    });
    server.ok(Method::POST, VALIDATING, json!({"metadata": {"name": "typed"}, "spec": spec})).await;
    let found = status_of(&server, "typed").await;
    let lines: Vec<String> = found
        .items_at(&["typeChecking", "expressionWarnings"])
        .iter()
        .flat_map(|warning| {
            let of_kinds = warning.str_at(&["warning"]).lines().filter(|line| line.contains("Kind="));
            let place = warning.str_at(&["fieldRef"]);
            of_kinds.map(move |line| format!("{place} {line}")).collect::<Vec<_>>()
        })
        .collect();
    let no_match = "found no matching overload for '_==_' applied to";
    let wanted = [
        (0, format!("26: {no_match} '(string, int)'"), format!("26: {no_match} '(string, int)'")),
        (1, format!("15: {no_match} '(bytes, int)'"), "7: undefined field 'data'".to_owned()),
        (2, format!("16: {no_match} '(string, int)'"), format!("16: {no_match} '(string, int)'")),
        (4, format!("19: {no_match} '(int, string)'"), format!("19: {no_match} '(int, string)'")),
        (6, format!("35: {no_match} '(timestamp, int)'"), format!("35: {no_match} '(timestamp, int)'")),
    ];
    let wanted: Vec<String> = wanted
        .into_iter()
        .flat_map(|(index, secret, boat)| {
            let place = format!("spec.validations[{index}].expression");
            [
                format!("{place} /v1, Kind=Secret: ERROR: <input>:1:{secret}"),
                format!("{place} acme.io/v1, Kind=Boat: ERROR: <input>:1:{boat}"),
            ]
        })
        .collect();
    assert_eq!(lines, wanted);
    let stored = server.ok(Method::GET, &format!("{VALIDATING}/typed"), Value::Null).await;
    let entries = stored.items_at(&["metadata", "managedFields"]).iter();
    let of_status = entries.filter(|entry| entry.str_at(&["subresource"]) == "status");
    let managers: Vec<_> = of_status.map(|entry| (entry.str_at(&["manager"]), entry.str_at(&["operation"]))).collect();
    assert_eq!(managers, [("validatingadmissionpolicy-status", "Apply")]);
}
