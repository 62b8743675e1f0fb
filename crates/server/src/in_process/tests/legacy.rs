//! v1beta1 CustomResourceDefinitions and ThirdPartyResources.

use bytes::Bytes;
use machinery::Release;

use super::*;
use crate::test_server::{TestServer, administrator};

const V1: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1BETA1: &str = "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions";
const CRONTABS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";
const EVERYWHERE: &str = "/apis/stable.example.com/v1/crontabs";
const RESOURCES: &str = "/apis/extensions/v1beta1/thirdpartyresources";
const NAME: &str = "/crontabs.stable.example.com";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const WARNING: &str = "299 - \"apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; \
                       use apiextensions.k8s.io/v1 CustomResourceDefinition\"";

async fn server(apis: &[&str]) -> TestServer {
    let apis: Vec<String> = apis.iter().map(|api| format!("{api}=true")).collect();
    let gates = FeatureGates::parse(&[], Release::NEWEST).unwrap();
    let runtime = RuntimeConfig::parse(&apis, &gates).unwrap();
    TestServer::of(ApiConfig { gates, runtime, ..ApiConfig::default() }, Arc::new(Memory::default())).await
}

async fn with_beta() -> TestServer {
    server(&["apiextensions.k8s.io/v1beta1"]).await
}

/// The head and the body of a response; the last word of `header` is its value.
async fn exchange(
    server: &TestServer,
    method: Method,
    path: &str,
    body: &Value,
    header: Option<(&'static str, &'static str)>,
) -> (http::response::Parts, Bytes) {
    let mut request = crate::test_server::request(method, path, body);
    if let Some((name, value)) = header {
        request.headers_mut().insert(name, http::HeaderValue::from_static(value));
    }
    let (head, body) = server.send(administrator(), request).await.into_parts();
    (head, body.collect().await.unwrap().to_bytes())
}

async fn with_header(
    server: &TestServer,
    method: Method,
    path: &str,
    body: &Value,
    header: (&'static str, &'static str),
) -> (u16, Value) {
    let (head, bytes) = exchange(server, method, path, body, Some(header)).await;
    (head.status.as_u16(), machinery::value::decode(&bytes).unwrap())
}

async fn apply(server: &TestServer, path: &str, manager: &str, body: &Value, force: bool) -> (u16, Value) {
    let path = format!("{path}{NAME}?fieldManager={manager}&force={force}");
    with_header(server, Method::PATCH, &path, body, ("content-type", "application/apply-patch+yaml")).await
}

/// The next lines of a watch that has `wanted`, and those before it.
async fn events(watch: &mut crate::Body, wanted: &str) -> Vec<String> {
    let mut received = String::new();
    while !received.contains(wanted) || !received.ends_with('\n') {
        let frame = watch.frame().await.unwrap().unwrap().into_data().unwrap();
        received.push_str(std::str::from_utf8(&frame).unwrap());
    }
    received.lines().map(str::to_owned).collect()
}

async fn watch(server: &TestServer, path: &str) -> crate::Body {
    server.send(administrator(), crate::test_server::request(Method::GET, path, &Value::Null)).await.into_body()
}

/// A v1beta1 CRD of CronTabs with more fields of its spec.
fn definition(more: Value) -> Value {
    let mut spec = json!({"group": "stable.example.com", "names": {"plural": "crontabs", "kind": "CronTab"}});
    for (name, field) in more.fields() {
        spec.set_at(&[name], field.clone());
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"}, "spec": spec
    })
}

fn crontab(name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": name}});
    for (name, field) in more.fields() {
        object.set_at(&[name], field.clone());
    }
    object
}

fn message(status: &Value) -> &str {
    status.str_at(&["message"])
}

/// Every response of v1beta1 has a deprecation warning, successful or not.
#[tokio::test]
async fn every_response_has_a_warning() {
    let server = with_beta().await;
    let name = format!("{V1BETA1}{NAME}");
    let of_apply = Some(("content-type", "application/apply-patch+yaml"));
    let (body, none) = (definition(json!({"version": "v1"})), Value::Null);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let scope = json!({"spec": {"scope": "Cluster"}});
    let warning =
        |head: &http::response::Parts| head.headers.get("warning").map(|value| value.to_str().unwrap().to_owned());
    for (code, method, path, body, header) in [
        (201, Method::POST, V1BETA1, &body, None),
        (409, Method::POST, V1BETA1, &body, None),
        (200, Method::GET, V1BETA1, &none, None),
        (200, Method::GET, &name, &none, None),
        (404, Method::GET, &format!("{V1BETA1}/x.example.com"), &none, None),
        (200, Method::GET, &format!("{name}/status"), &none, None),
        (200, Method::PATCH, &name, &label, None),
        (200, Method::PATCH, &format!("{name}?fieldManager=me&force=true"), &body, of_apply),
        (422, Method::PATCH, &name, &scope, None),
        (200, Method::GET, V1BETA1, &none, Some(("accept", TABLE))),
        (200, Method::DELETE, &name, &none, None),
    ] {
        let (head, bytes) = exchange(&server, method.clone(), path, body, header).await;
        assert_eq!(
            (head.status.as_u16(), warning(&head).as_deref()),
            (code, Some(WARNING)),
            "{method} {path} {bytes:?}"
        );
    }
    // its objects are deleted before it is gone
    server.controllers.finish_work(&server.context).await;
    server.refused(Method::GET, &name, Value::Null, 404).await;
    server.ok(Method::POST, V1BETA1, body.clone()).await;
    let protobuf = "application/vnd.kubernetes.protobuf";
    let (head, _) = exchange(&server, Method::GET, &name, &none, Some(("accept", protobuf))).await;
    assert_eq!((head.status.as_u16(), warning(&head).as_deref()), (200, Some(WARNING)));
    assert_eq!(head.headers["content-type"], protobuf);
    assert_eq!(warning(&exchange(&server, Method::GET, V1, &none, None).await.0), None);
}

#[tokio::test]
async fn one_object_in_two_versions() {
    let server = with_beta().await;
    let mut watched = watch(&server, &format!("{V1BETA1}?watch=1")).await;
    let cron_spec = json!({"type": "object", "properties": {"cronSpec": {"type": "string", "pattern": "^\\S+$"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": cron_spec}}});
    let columns = json!([{"name": "Spec", "type": "string", "JSONPath": ".spec.cronSpec"}]);
    let made = definition(json!({
        "version": "v1", "validation": (schema.clone()), "additionalPrinterColumns": (columns.clone()),
        "subresources": {"status": {}}, "preserveUnknownFields": false
    }));
    server.ok(Method::POST, V1BETA1, made).await;
    let (v1, beta) = (format!("{V1}{NAME}"), format!("{V1BETA1}{NAME}"));
    let get = async |path: &str| server.ok(Method::GET, path, Value::Null).await;
    let (mut new, old) = (get(&v1).await, get(&beta).await);
    let of_v1 = json!([{"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"}]);
    let version = json!([{
        "name": "v1", "served": true, "storage": true, "schema": (schema.clone()), "subresources": {"status": {}},
        "additionalPrinterColumns": of_v1
    }]);
    assert_eq!(new.at(&["spec", "versions"]), Some(&version));
    for (field, value) in [
        ("versions", json!([{"name": "v1", "served": true, "storage": true}])),
        ("version", json!("v1")),
        ("scope", json!("Namespaced")),
        ("validation", schema.clone()),
        ("additionalPrinterColumns", columns),
        ("preserveUnknownFields", json!(false)),
    ] {
        assert_eq!(old.at(&["spec", field]), Some(&value), "{field}");
    }
    assert_eq!((new.get("metadata"), new.get("status")), (old.get("metadata"), old.get("status")));
    // objects written in v1 are served in v1beta1, and vice versa
    let more = json!({"name": "v2", "served": true, "storage": false, "schema": (schema.clone())});
    let versions: Value = new.items_at(&["spec", "versions"]).iter().cloned().chain([more]).collect();
    new.set_at(&["spec", "versions"], versions);
    let new = server.ok(Method::PUT, &v1, new).await;
    let old = get(&beta).await;
    assert_eq!(old.at(&["spec", "validation"]), Some(&schema));
    assert!(old.at(&["spec", "subresources"]).is_none());
    let versions = old.items_at(&["spec", "versions"]).iter();
    let parts: Vec<_> = versions.map(|of| (of.get("subresources").is_some(), of.get("schema").is_some())).collect();
    assert_eq!(parts, [(true, false), (false, false)]);
    let unchanged = server.ok(Method::PUT, &beta, old).await;
    assert_eq!(unchanged.at(&["metadata", "generation"]), new.at(&["metadata", "generation"]));
    assert_eq!(get(&v1).await.get("spec"), new.get("spec"));
    let lines = events(&mut watched, "\"v2\"").await;
    assert!(lines.iter().any(|line| line.contains("\"MODIFIED\"") && line.contains("\"v2\"")), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(r#""apiVersion":"apiextensions.k8s.io/v1beta1""#)), "{lines:?}");
    // instances are not affected
    let wrong = crontab("a", json!({"spec": {"cronSpec": "* *"}}));
    let status = server.refused(Method::POST, CRONTABS, wrong, 422).await;
    assert!(message(&status).contains("spec.cronSpec in body should match"), "{}", message(&status));
    server.ok(Method::POST, CRONTABS, crontab("a", json!({"spec": {"cronSpec": "*", "more": 1}}))).await;
    let table = with_header(&server, Method::GET, CRONTABS, &Value::Null, ("accept", TABLE)).await.1;
    let cells: Vec<_> = table.items_at(&["rows"]).iter().map(|row| row.get("cells").unwrap().to_json()).collect();
    assert_eq!(cells, [r#"["a","*"]"#]);
    assert_eq!(get(&format!("{CRONTABS}/a")).await.get("spec"), Some(&json!({"cronSpec": "*"})));
}

/// Managers keep their fields, in whichever version managers write.
#[tokio::test]
async fn apply_in_two_versions() {
    let server = with_beta().await;
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": (schema.clone())});
    let names = |short: &str| json!({"plural": "crontabs", "kind": "CronTab", "shortNames": [short]});
    let mut new = definition(json!({"scope": "Namespaced", "names": (names("ct")), "versions": [version]}));
    new.set_at(&["apiVersion"], Value::from("apiextensions.k8s.io/v1"));
    let columns = json!([{"name": "A", "type": "string", "JSONPath": ".a"}]);
    let old = definition(json!({"version": "v1", "names": (names("cron")), "additionalPrinterColumns": columns}));
    assert_eq!(apply(&server, V1, "new", &new, false).await.0, 201);
    let (code, status) = apply(&server, V1BETA1, "old", &old, false).await;
    let causes = status.items_at(&["details", "causes"]);
    assert!(code == 409 && causes.iter().any(|cause| cause.str_at(&["field"]) == ".spec.names.shortNames"));
    let (code, object) = apply(&server, V1BETA1, "old", &old, true).await;
    assert_eq!((code, object.at(&["spec", "validation"])), (200, Some(&schema)));
    let stored = server.ok(Method::GET, &format!("{V1}{NAME}"), Value::Null).await;
    assert_eq!(stored.at(&["spec", "names", "shortNames"]), Some(&json!(["cron"])));
    let stored = &stored.items_at(&["spec", "versions"])[0];
    assert_eq!(stored.get("schema"), Some(&schema));
    let columns = json!([{"name": "A", "type": "string", "jsonPath": ".a"}]);
    assert_eq!(stored.get("additionalPrinterColumns"), Some(&columns));
    let (code, status) = apply(&server, V1, "new", &new, false).await;
    let causes = status.items_at(&["details", "causes"]);
    assert!(
        code == 409 && causes.iter().all(|cause| cause.str_at(&["message"]).contains("\"old\"")),
        "{}",
        status.to_json()
    );
}

#[tokio::test]
async fn validation_depends_on_the_version_of_the_request() {
    let server = with_beta().await;
    let (v1, beta) = (format!("{V1}{NAME}"), format!("{V1BETA1}{NAME}"));
    server.ok(Method::POST, V1BETA1, definition(json!({"version": "v1"}))).await;
    let stored = server.ok(Method::GET, &v1, Value::Null).await;
    assert_eq!(stored.at(&["spec", "preserveUnknownFields"]), Some(&json!(true)));
    assert!(stored.items_at(&["spec", "versions"])[0].get("schema").is_none());
    let conditions = stored.items_at(&["status", "conditions"]);
    let reason = conditions.iter().find(|condition| condition.str_at(&["type"]) == "NonStructuralSchema").unwrap();
    assert_eq!(reason.str_at(&["status"]), "True");
    assert_eq!(message(reason), "spec.preserveUnknownFields: Invalid value: true: must be false");
    let fields = json!({"spec": {"a": [1, null, {"b": 1.5}]}, "other": "x"});
    let made = server.ok(Method::POST, CRONTABS, crontab("a", fields.clone())).await;
    assert_eq!((made.get("spec"), made.get("other")), (fields.get("spec"), fields.get("other")));
    // v1 preserves stored values that it does not accept in a change
    server.ok(Method::PATCH, &v1, json!({"metadata": {"labels": {"a": "b"}}})).await;
    let required = json!({"spec": {"validation": {"openAPIV3Schema": {"required": ["spec"]}}}});
    server.ok(Method::PATCH, &beta, required).await;
    let structural = json!({"openAPIV3Schema": {"type": "object"}});
    let bad = json!({"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}});
    let status = server.refused(Method::POST, CRONTABS, crontab("b", json!({})), 422).await;
    assert!(message(&status).contains("spec: Required value"), "{}", message(&status));
    server.ok(Method::PATCH, &beta, json!({"spec": {"preserveUnknownFields": false, "validation": structural}})).await;
    let status = server.refused(Method::PATCH, &v1, json!({"spec": {"preserveUnknownFields": true}}), 422).await;
    let wanted = "spec.preserveUnknownFields: Invalid value: true: cannot set to true";
    assert!(message(&status).contains(wanted), "{}", message(&status));
    let status = server.refused(Method::PATCH, &beta, json!({"spec": {"validation": bad}}), 422).await;
    assert!(message(&status).contains("must use apiextensions.k8s.io/v1)"), "{}", message(&status));
    for (path, version) in [(V1, "v1beta1"), (V1BETA1, "v1")] {
        let mut other = definition(json!({}));
        other.set_at(&["apiVersion"], Value::from(format!("apiextensions.k8s.io/{version}")));
        let status = server.refused(Method::POST, path, other, 400).await;
        assert!(message(&status).contains("does not match the expected API version"), "{}", message(&status));
    }
    let never = json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "ScaleGroupVersion": "autoscaling/v1"});
    let patched = server.ok(Method::PATCH, &beta, json!({"spec": {"subresources": {"scale": never}}})).await;
    let scale = json!({"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}});
    assert_eq!(patched.at(&["spec", "subresources"]), Some(&scale), "the field was never released, and is unknown");
    let odd = json!({"spec": {"versions": null, "odd": 1}});
    let status = server.refused(Method::PATCH, &format!("{beta}?fieldValidation=Strict"), odd, 422).await;
    assert!(message(&status).contains(r#"unknown field "spec.odd""#), "{}", message(&status));
}

#[tokio::test]
async fn v1beta1_is_discovered() {
    let server = server(&["api/all"]).await;
    let get = async |path: &str| server.ok(Method::GET, path, Value::Null).await;
    let versions = |group: &Value, name: &str| {
        group.items_at(&["versions"]).iter().map(|version| version.str_at(&[name]).to_owned()).collect::<Vec<_>>()
    };
    let group = get("/apis/apiextensions.k8s.io").await;
    assert_eq!(versions(&group, "version"), ["v1", "v1beta1"]);
    assert_eq!(group.str_at(&["preferredVersion", "version"]), "v1");
    let resources = get("/apis/apiextensions.k8s.io/v1beta1").await;
    let resources = resources.items_at(&["resources"]);
    let definitions = resources.iter().find(|of| of.str_at(&["name"]) == "customresourcedefinitions").unwrap();
    assert_eq!((definitions.get("shortNames"), resources.len()), (Some(&json!(["crd", "crds"])), 2));
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let groups = with_header(&server, Method::GET, "/apis", &Value::Null, ("accept", aggregated)).await.1;
    let items = groups.items_at(&["items"]);
    let group = items.iter().find(|of| of.str_at(&["metadata", "name"]) == "apiextensions.k8s.io").unwrap();
    assert_eq!(versions(group, "version"), ["v1", "v1beta1"]);
    let document = get("/openapi/v3/apis/apiextensions.k8s.io/v1beta1").await;
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition";
    let schema = document.at(&["components", "schemas", name]).unwrap().to_json();
    assert!(schema.contains("\"validation\"") && schema.contains("\"version\""), "{schema}");
}

/// A ThirdPartyResource.
fn registration(name: &str, versions: &[&str]) -> Value {
    let versions: Value = versions.iter().map(|version| json!({"name": (*version)})).collect();
    json!({
        "apiVersion": "extensions/v1beta1", "kind": "ThirdPartyResource", "metadata": {"name": name},
        "description": "A specification of a Pod to run on a cron style schedule", "versions": versions
    })
}

#[tokio::test]
async fn names_of_third_party_resources() {
    let server = server(&["extensions/v1beta1", "apiextensions.k8s.io/v1beta1"]).await;
    let invalid = async |body: Value, part: &str| {
        let status = server.refused(Method::POST, RESOURCES, body, 422).await;
        assert!(message(&status).contains(part), "{}", message(&status));
    };
    let namespaced = |name: &str, namespace: &str| {
        let mut body = registration(name, &["v1"]);
        body.set_at(&["metadata", "namespace"], Value::from(namespace));
        body
    };
    const CRON: &str = "cron-tab.stable.example.com";
    for (body, part) in [
        (
            registration("foo.com", &["v1"]),
            "metadata.name: Invalid value: \"foo.com\": unexpectedly short resource name: foo.com, expected at least <kind>.<domain>.<tld>",
        ),
        (namespaced(CRON, "default"), "metadata.namespace: Forbidden: not allowed on this type"),
        (registration(CRON, &["v1", "", "v1"]), "versions[1].name: Invalid value: \"\": must not be empty"),
        (registration(CRON, &["v1", "", "v1"]), "versions[2].name: Duplicate value: \"v1\""),
        (registration("Cron_tab.stable.example.com", &["v1"]), "a lowercase RFC 1123 subdomain"),
        (registration("lease.coordination.k8s.io", &["v1"]), "\"leases\" is already in use"),
    ] {
        invalid(body, part).await;
    }
    let below = RESOURCES.replace("/thirdparty", "/namespaces/default/thirdparty");
    server.refused(Method::POST, &below, registration(CRON, &["v1"]), 404).await;
    for (name, kind, plural) in [
        ("cron-tab", "CronTab", "crontabs"),
        ("network-policy", "NetworkPolicy", "networkpolicies"),
        ("storage-class", "StorageClass", "storageclasses"),
        ("mail-box", "MailBox", "mailboxs"),
    ] {
        server.ok(Method::POST, RESOURCES, registration(&format!("{name}.stable.example.com"), &["v1"])).await;
        let found = server.ok(Method::GET, "/apis/stable.example.com/v1", Value::Null).await;
        let resource = found.items_at(&["resources"]).iter().find(|of| of.str_at(&["name"]) == plural).unwrap();
        assert_eq!(
            (resource.str_at(&["kind"]), resource.str_at(&["singularName"])),
            (kind, kind.to_lowercase().as_str())
        );
        assert_eq!(resource.get("namespaced"), Some(&json!(true)));
        let mut verbs: Vec<_> = resource.items_at(&["verbs"]).iter().filter_map(Value::as_str).collect();
        verbs.sort_unstable();
        assert_eq!(verbs.join(" "), "create delete deletecollection get list patch update watch");
    }
    let path = format!("{RESOURCES}/mail-box.stable.example.com");
    let status = server.refused(Method::PUT, &path, namespaced("mail-box.stable.example.com", "x"), 422).await;
    assert!(message(&status).contains("not allowed on this type"), "{}", message(&status));
    invalid(registration("networkpolicie.stable.example.com", &["v1"]), "\"networkpolicies\" is already in use").await;
}

/// CRDs and ThirdPartyResources cannot have the names of another one.
#[tokio::test]
async fn definitions_and_third_party_resources_share_names() {
    let server = server(&["extensions/v1beta1", "apiextensions.k8s.io/v1beta1"]).await;
    let define = async |plural: &str, kind: &str| {
        let mut body = definition(json!({"version": "v1", "names": {"plural": plural, "kind": kind}}));
        body.set_at(&["metadata", "name"], Value::from(format!("{plural}.stable.example.com")));
        server.ok(Method::POST, V1BETA1, body).await;
    };
    server.ok(Method::POST, RESOURCES, registration("cron-tab.stable.example.com", &["v1"])).await;
    define("ships", "Ship").await;
    let status = server.refused(Method::POST, RESOURCES, registration("ship.stable.example.com", &["v1"]), 422).await;
    assert!(message(&status).contains("\"ships\" is already in use"), "{}", message(&status));
    define("crons", "CronTab").await;
    let crons = format!("{V1}/crons.stable.example.com");
    let found = server.ok(Method::GET, &crons, Value::Null).await;
    let condition = &found.items_at(&["status", "conditions"])[0];
    assert_eq!((condition.str_at(&["status"]), condition.str_at(&["reason"])), ("False", "ListKindConflict"));
    assert_eq!(message(condition), "\"CronTabList\" is already in use");
    server.ok(Method::DELETE, &format!("{RESOURCES}/cron-tab.stable.example.com"), Value::Null).await;
    server.controllers.finish_work(&server.context).await;
    let found = server.ok(Method::GET, &crons, Value::Null).await;
    assert!(schema::definition::is_condition_true(&found, "Established"), "{}", found.to_json());
    // without versions nothing is served until an update adds a version
    const BOAT: &str = "boat.harbor.example.com";
    server.ok(Method::POST, RESOURCES, registration(BOAT, &[])).await;
    server.refused(Method::GET, "/apis/harbor.example.com", Value::Null, 404).await;
    server.ok(Method::PUT, &format!("{RESOURCES}/{BOAT}"), registration(BOAT, &["v1"])).await;
    let boats = server.ok(Method::GET, "/apis/harbor.example.com/v1/boats", Value::Null).await;
    assert_eq!(boats.str_at(&["kind"]), "BoatList");
    let table = with_header(&server, Method::GET, RESOURCES, &Value::Null, ("accept", TABLE)).await.1;
    let columns: Vec<_> = table.items_at(&["columnDefinitions"]).iter().map(|of| of.str_at(&["name"])).collect();
    assert_eq!(columns, ["Name", "Description", "Version(s)"]);
    let row = json!([BOAT, "A specification of a Pod to run on a cron style schedule", "v1"]);
    assert!(table.items_at(&["rows"]).iter().any(|found| found.get("cells") == Some(&row)), "{}", table.to_json());
}

#[tokio::test]
async fn instances_of_third_party_resources() {
    let server = server(&["extensions/v1beta1"]).await;
    let get = async |path: &str| server.ok(Method::GET, path, Value::Null).await;
    server.ok(Method::POST, RESOURCES, registration("cron-tab.stable.example.com", &["v1", "v2"])).await;
    let mut watched = watch(&server, &format!("{EVERYWHERE}?watch=1&labelSelector=a%3Db")).await;
    let data = json!({"cronSpec": "* * * * /5", "status": {"a": null}, "n": 1.5, "list": [1, {"x": null}]});
    let made = server.ok(Method::POST, CRONTABS, crontab("a", data.clone())).await;
    for (name, field) in data.as_object().unwrap().iter() {
        assert_eq!(made.get(name), Some(field), "{name}");
    }
    assert!(!made.str_at(&["metadata", "uid"]).is_empty());
    let generated = json!({"metadata": {"generateName": "b-", "labels": {"a": "b"}}});
    server.ok(Method::POST, CRONTABS, crontab("b", generated)).await;
    let listed = get(CRONTABS).await;
    assert_eq!((listed.str_at(&["kind"]), listed.str_at(&["apiVersion"])), ("CronTabList", "stable.example.com/v1"));
    assert_eq!(listed.items_at(&["items"]).len(), 2);
    let selected = get(&format!("{EVERYWHERE}?labelSelector=a%3Db")).await;
    let labels: Vec<_> = selected.items_at(&["items"]).iter().map(|of| of.at(&["metadata", "labels"])).collect();
    assert_eq!(labels, [Some(&json!({"a": "b"}))]);
    // every version has the same objects
    let path = format!("{CRONTABS}/a");
    let other = get(&path.replace("/v1/", "/v2/")).await;
    assert_eq!((other.str_at(&["apiVersion"]), other.str_at(&["cronSpec"])), ("stable.example.com/v2", "* * * * /5"));
    // an update with a resourceVersion may conflict, one without overwrites
    server.ok(Method::PUT, &path, crontab("a", json!({"cronSpec": "1"}))).await;
    let status = server.refused(Method::PUT, &path, made, 409).await;
    assert_eq!(status.str_at(&["reason"]), "Conflict");
    let patched = server.ok(Method::PATCH, &path, json!({"cronSpec": null, "more": 1})).await;
    assert_eq!(patched.get("more"), Some(&json!(1)));
    let add = json!([{"op": "add", "path": "/more", "value": 2}]);
    let of_json = ("content-type", "application/json-patch+json");
    let (code, patched) = with_header(&server, Method::PATCH, &path, &add, of_json).await;
    assert_eq!((code, patched.get("more")), (200, Some(&json!(2))));
    let strategic = ("content-type", "application/strategic-merge-patch+json");
    assert_eq!(with_header(&server, Method::PATCH, &path, &json!({"a": 1}), strategic).await.0, 415);
    for (field, value, wanted) in [
        ("kind", "Foo", "kind doesn't match, expecting: CronTab, got Foo"),
        ("apiVersion", "stable.example.com/v2", "version doesn't match, expecting: v1, got v2"),
        ("apiVersion", "example.com/v1", "group doesn't match, expecting: stable.example.com, got example.com"),
    ] {
        let mut bad = crontab("c", json!({}));
        bad.set_at(&[field], Value::from(value));
        assert_eq!(message(&server.refused(Method::POST, CRONTABS, bad, 400).await), wanted);
    }
    let lines = events(&mut watched, "\"b-").await;
    assert!(lines.iter().any(|line| line.contains("\"ADDED\"") && line.contains("\"b-")), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(r#""a":"b""#)), "{lines:?}");
    let document = get("/openapi/v3/apis/stable.example.com/v1").await;
    let schema = document.at(&["components", "schemas", "com.example.stable.v1.CronTab"]).unwrap();
    assert_eq!(schema.str_at(&["type"]), "object");
}
