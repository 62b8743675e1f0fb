//! Requests through the handler chain, for responses that no verb determines alone.

mod legacy;
mod mutations;
mod restart;
mod users;

use access::authorization::{self, AuthorizationMode};
use base::request::FeatureGates;
use http::Method;
use http_body_util::BodyExt as _;
use kinds::RuntimeConfig;
use machinery::json;
use objects::Storage;
use store::Memory;

use super::*;

struct Served(InProcess);

impl Served {
    async fn start() -> Served {
        let modes = authorization::modes(vec![AuthorizationMode::AlwaysAllow]);
        let api = ApiConfig { modes, ..ApiConfig::default() };
        let config = InProcessConfig { api, has_default_objects: true };
        Served(InProcess::start(Storage::own(Arc::new(Memory::default())), config).await.unwrap())
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", media);
        let response = self.0.call(&Caller::admin(), request.body(body.to_json().into()).unwrap()).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), machinery::value::decode(&bytes).unwrap_or_default())
    }

    /// Creates a running Pod with a label.
    async fn pod(&self, name: &str) {
        let spec = json!({"nodeName": "n1", "serviceAccountName": "none", "containers": [{"name": "c", "image": "i"}]});
        let pod = json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec});
        let account = json!({"metadata": {"name": "none"}});
        self.call(Method::POST, "/api/v1/namespaces/default/serviceaccounts", &account).await;
        assert_eq!(self.call(Method::POST, PODS, &pod).await.0, 201);
        let running = json!({"status": {"phase": "Running"}});
        assert_eq!(self.call(Method::PATCH, &format!("{PODS}/{name}/status"), &running).await.0, 200);
    }
}

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn evictions_have_the_codes_of_kube_apiserver() {
    let served = Served::start().await;
    served.pod("a").await;
    let condition = async || {
        let pod = served.call(Method::GET, &format!("{PODS}/a"), &Value::Null).await.1;
        pod.items_at(&["status", "conditions"]).iter().any(|found| found.str_at(&["type"]) == "DisruptionTarget")
    };
    let evict = async |version: &str, options: Value, query: &str| {
        let eviction =
            json!({"apiVersion": (version), "kind": "Eviction", "metadata": {"name": "a"}, "deleteOptions": (options)});
        let (code, status) = served.call(Method::POST, &format!("{PODS}/a/eviction{query}"), &eviction).await;
        (code, status.str_at(&["message"]).to_owned())
    };
    for (version, options, query, code, message) in [
        ("policy/v1", json!({}), "?dryRun=All", 201, ""),
        ("policy/v1beta1", json!({}), "?dryRun=All", 201, ""),
        ("policy/v1beta1", json!({}), "?dryRun=All&fieldValidation=Strict", 201, ""),
        ("policy/v2", json!({}), "?dryRun=All", 400, "no kind \"Eviction\""),
        (
            "policy/v1",
            json!({"kind": "DeleteOptions", "apiVersion": "v1"}),
            "?dryRun=All&fieldValidation=Strict",
            201,
            "",
        ),
        ("policy/v1", json!({"unknown": 1}), "?dryRun=All&fieldValidation=Strict", 400, "strict decoding error"),
        (
            "policy/v1",
            json!({"dryRun": ["x"]}),
            "?dryRun=All",
            500,
            "Non-matching dry-run options in request and content: [All] and [x]",
        ),
        ("policy/v1", json!({"dryRun": ["x"]}), "", 422, "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun"),
        (
            "policy/v1",
            json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true}),
            "",
            422,
            "can not be set for pod eviction",
        ),
    ] {
        let (found, why) = evict(version, options.clone(), query).await;
        assert!(found == code && why.contains(message), "{version} {} {query}: {found} {why}", options.to_json());
    }
    assert!(!condition().await, "nothing has marked the Pod yet");
    let (code, why) = evict("policy/v1", json!({"propagationPolicy": "Nope"}), "").await;
    assert!(code == 422 && why.contains("propagationPolicy: Unsupported value"), "{code} {why}");
    assert!(condition().await, "kube-apiserver validates the options only when it deletes the Pod");
    for name in ["p", "q"] {
        let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}});
        let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
        let budget = json!({"metadata": {"name": (name)}, "spec": spec});
        assert_eq!(served.call(Method::POST, budgets, &budget).await.0, 201);
    }
    let (code, why) = evict("policy/v1", json!({}), "").await;
    assert_eq!(
        (code, why.as_str()),
        (500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
    );
}

#[tokio::test]
async fn no_generated_name_is_shown_while_a_definition_terminates() {
    let served = Served::start().await;
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let names = json!({"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"});
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": "boats.example.com", "finalizers": ["a.b/c"]}, "spec": spec});
    assert_eq!(served.call(Method::POST, DEFINITIONS, &definition).await.0, 201);
    let path = format!("{DEFINITIONS}/boats.example.com");
    assert_eq!(served.call(Method::DELETE, &path, &json!({})).await.0, 200);
    let condition = |kind: &str| json!({"type": (kind), "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2001-01-01T00:00:00Z"});
    let conditions = ["NamesAccepted", "Established", "Terminating"].map(condition).into_iter().collect::<Value>();
    let terminating = json!({"status": {"conditions": conditions}});
    served.call(Method::PATCH, &format!("{path}/status"), &terminating).await;
    for (metadata, shown) in [(json!({"name": "b"}), " \"b\""), (json!({"generateName": "g-"}), "")] {
        let boat = json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": metadata});
        let (code, status) = served.call(Method::POST, "/apis/example.com/v1/namespaces/default/boats", &boat).await;
        let want = format!(
            "boats.example.com{shown} is forbidden: create not allowed while custom resource definition is terminating"
        );
        assert_eq!((code, status.str_at(&["message"])), (403, want.as_str()));
    }
}

/// Between two JSON patches, a typed object is encoded, which omits what is empty.
#[tokio::test]
async fn empty_lists_are_lost_between_patches_of_a_policy() {
    let served = Served::start().await;
    let patch = |operation: &str| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": (operation)}});
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let add = r#"[JSONPatch{op: "add", path: "/metadata/ownerReferences", value: []}]"#;
    let append = r#"[JSONPatch{op: "add", path: "/metadata/ownerReferences/-", value: Object.metadata.ownerReferences{apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "u1"}}]"#;
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [rule]},
        "mutations": [(patch(add)), (patch(append))]
    }});
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p"}});
    const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
    for (plural, object) in [("mutatingadmissionpolicies", policy), ("mutatingadmissionpolicybindings", binding)] {
        let (code, status) = served.call(Method::POST, &format!("{GROUP}/{plural}"), &object).await;
        assert_eq!(code, 201, "{}", status.to_json());
    }
    let map = json!({"metadata": {"name": "a"}, "data": {"a": "1"}});
    let (code, status) = served.call(Method::POST, "/api/v1/namespaces/default/configmaps", &map).await;
    assert!(code >= 400 && status.str_at(&["message"]).contains("JSON Patch"), "{code} {}", status.to_json());
}
