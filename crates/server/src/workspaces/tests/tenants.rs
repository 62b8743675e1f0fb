//! Attacks of an owner of a workspace on the server and on other workspaces.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use access::authentication::{Authentication, ClientCertificate};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use machinery::{Release, Value, json};
use objects::Storage;
use store::Memory;

use super::{TestServer, WORKSPACES, admin, api_config, enthrone, user};
use crate::assembly::{ApiConfig, Assembled, Beginning};
use crate::controllers::{CertificateSigner, Controllers};
use crate::http::{BRANCHES, Branches as _, Client, RequestBody, Tap};
use crate::verbs::{self, Document, PatchKind, Subresource};

/// The certificate of an approved CertificateSigningRequest after all work of the controllers; empty if it has none.
async fn certificate_of(assembled: &Assembled) -> String {
    let Assembled { context, controllers } = assembled;
    let (group, plural) = ("certificates.k8s.io", "certificatesigningrequests");
    let path = format!("/apis/{group}/v1/{plural}");
    let resource = context.registry.get(group, plural).unwrap();
    let spec = json!({"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
        "request": (STANDARD.encode(include_str!("jane.csr")))});
    let object = json!({"metadata": {"name": "jane"}, "spec": spec});
    let create = context.controller_request("tester", &resource, &Method::POST, &path);
    verbs::create(context, &create, &Document::json(&object)).await.unwrap();
    let place = format!("{path}/jane/approval");
    let approve = context.controller_request("tester", &resource, &Method::PATCH, &place);
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}});
    let approve = approve.through(Subresource::Own("approval"));
    verbs::patch(context, &approve, PatchKind::Merge, &Document::json(&approved)).await.unwrap();
    controllers.finish_work(context).await;
    let stored = resource.collection.get("jane").unwrap();
    stored.body.to_value(stored.revision).str_at(&["status", "certificate"]).to_owned()
}

#[tokio::test]
async fn workspaces_sign_no_certificates() {
    let signed = Arc::new(AtomicUsize::new(0));
    let counted = signed.clone();
    let signer = CertificateSigner::new(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(include_str!("jane.crt").to_owned())
    });
    let mut controllers = Controllers::parse(&[]).unwrap();
    controllers.signer = Some(signer);
    let server =
        TestServer::of(Arc::new(Memory::default()), ApiConfig { controllers, ..api_config() }, Default::default());
    let server = server.await;
    let empty = || Beginning::of(Storage::own(Arc::new(Memory::default())));
    let inner = server.workspaces.api_config(Release::NEWEST).unwrap().assemble(empty()).await.unwrap();
    assert_eq!((certificate_of(&inner).await, signed.load(Ordering::Relaxed)), (String::new(), 0));
    let outer = server.workspaces.parts.api.assemble(empty()).await.unwrap();
    assert!(!certificate_of(&outer).await.is_empty() && signed.load(Ordering::Relaxed) == 1);
}

/// Gives a user a role in `default` with these rules.
async fn allow(server: &TestServer, name: &str, rules: Value) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let binding = json!({"metadata": {"name": name}, "subjects": [{"kind": "User", "name": name}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
    let role = json!({"metadata": {"name": name}, "rules": rules});
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let (code, body) = server.call(&admin(), Method::POST, &format!("{rbac}/{plural}"), object).await;
        assert_eq!(code, 201, "{body}");
    }
}

/// A rule about Workspaces.
fn rule(verbs: &[&str], names: &[&str]) -> Value {
    let list = |texts: &[&str]| texts.iter().map(|text| Value::from(*text)).collect::<Value>();
    json!({"apiGroups": ["workspaces.pintle.dev"], "resources": ["workspaces"], "verbs": (list(verbs)),
        "resourceNames": (list(names))})
}

#[tokio::test]
async fn a_fork_needs_a_right_to_its_source() {
    let server = TestServer::start().await;
    for name in ["a", "b-1"] {
        server.create(name, json!({})).await;
        server.put(name, "one").await;
    }
    let creates = || rule(&["create", "patch"], &[]);
    allow(&server, "jane", json!([(creates()), (rule(&["fork"], &["a"]))])).await;
    allow(&server, "ann", json!([(creates()), (rule(&["fork"], &[]))])).await;
    allow(&server, "max", json!([(creates()), (rule(&["fork-default"], &[]))])).await;
    let from = |name: &str| json!({"workspace": name});
    let cases = [
        ("jane", from("a"), 201),
        ("jane", json!({"workspace": "a", "origin": true}), 201),
        ("jane", from("b-1"), 403),
        ("jane", json!({"workspace": "b-1", "origin": true}), 403),
        ("jane", json!({"workspace": "b-1", "resourceVersion": "1"}), 403),
        ("jane", from("none"), 403),
        ("jane", from("default"), 403),
        ("ann", from("b-1"), 201),
        ("ann", from("default"), 403),
        ("max", from("default"), 201),
        ("max", from("a"), 403),
    ];
    for (index, (name, from, code)) in cases.into_iter().enumerate() {
        let (client, fork) = (user(name), format!("fork-{index}"));
        let spec = json!({"from": from});
        let object = json!({"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace",
            "metadata": {"name": (fork.as_str())}, "spec": (spec.clone())});
        let dry = server.call(&client, Method::POST, &format!("{WORKSPACES}?dryRun=All"), object.clone()).await.0;
        let created = server.call(&client, Method::POST, WORKSPACES, object).await.0;
        let quick = server.call(&client, Method::POST, &format!("/clusters/quick-{index}"), spec.clone()).await;
        assert_eq!((dry, created, quick.0), (code, code, code), "{name}: {spec:?} {}", quick.1);
        // a source cannot be given to a workspace that exists
        if code == 403 {
            let path = format!("{WORKSPACES}/a");
            let patched = server.call(&client, Method::PATCH, &path, json!({"spec": (spec.clone())})).await;
            assert_eq!(patched.0, 403, "{name}: {spec:?} {}", patched.1);
        }
    }
    // the response is the same for a source that exists and for one that does not
    let refused = async |source: &str| {
        let (code, body) =
            server.call(&user("jane"), Method::POST, "/clusters/x", json!({"from": (from(source))})).await;
        (code, body.replace(source, "SOURCE"))
    };
    assert_eq!(refused("b-1").await, refused("no-such").await);
    assert_eq!(refused("b-1").await.0, 403);
    assert_eq!(server.names("fork-0").await, ["one"]);
}

#[tokio::test]
async fn a_policy_keeps_names_from_users_who_may_create() {
    let server = TestServer::start().await;
    server.create("taken", json!({})).await;
    allow(&server, "jane", json!([(rule(&["create"], &[]))])).await;
    let refused = async |name: &str| {
        let (code, body) = server.call(&user("jane"), Method::POST, &format!("/clusters/{name}"), Value::Null).await;
        (code, body.replace(name, "NAME"))
    };
    // as for any object
    assert_eq!(refused("taken").await.0, 409);
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let rules = json!([{"apiGroups": ["workspaces.pintle.dev"], "apiVersions": ["*"], "operations": ["CREATE"],
        "resources": ["workspaces"]}]);
    let expression = "object.metadata.name.startsWith(request.userInfo.username + '-')";
    let policy = json!({"metadata": {"name": "names"}, "spec": {"matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": expression}]}});
    let binding =
        json!({"metadata": {"name": "names"}, "spec": {"policyName": "names", "validationActions": ["Deny"]}});
    for (plural, object) in [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)] {
        let (code, body) = server.call(&admin(), Method::POST, &format!("{admission}/{plural}"), object).await;
        assert_eq!(code, 201, "{body}");
    }
    assert_eq!(refused("taken").await, refused("vacant").await);
    assert_eq!((refused("taken").await.0, refused("jane-1").await.0), (422, 201));
}

fn client(certificate: ClientCertificate) -> Arc<Client> {
    Arc::new(Client { certificate, address: Ipv4Addr::LOCALHOST.into() })
}

/// Sends a request to the workspace `a` as this client, with this token. Returns the code.
async fn with_token(server: &TestServer, client: &Arc<Client>, headers: &[(&str, &str)]) -> u16 {
    let mut request = http::Request::builder().method(Method::GET).uri("/clusters/a/version");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(RequestBody::own(Default::default())).unwrap();
    server.workspaces.clone().serve(client.clone(), request).await.status().as_u16()
}

#[tokio::test]
async fn only_the_credential_that_authenticates_opens_the_gate() {
    let authentication = Authentication::default();
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    authentication.accounts.set_signing_key(Ok(key.as_bytes())).unwrap();
    let store = Arc::new(Memory::default());
    let server = TestServer::of(store, ApiConfig { authentication, ..api_config() }, Default::default()).await;
    server.create("a", json!({})).await;
    let accounts = "/clusters/a/api/v1/namespaces/default/serviceaccounts";
    let token_of = async |name: &str, spec: Value| {
        let account = json!({"metadata": {"name": name}});
        assert_eq!(server.call(&admin(), Method::POST, accounts, account).await.0, 201);
        let path = format!("{accounts}/{name}/token");
        let (code, body) = server.call(&admin(), Method::POST, &path, json!({"spec": spec})).await;
        assert_eq!(code, 201, "{body}");
        let token = machinery::value::decode(body.as_bytes()).unwrap();
        format!("Bearer {}", token.str_at(&["status", "token"]))
    };
    let living = token_of("living", json!({})).await;
    let elsewhere = token_of("elsewhere", json!({"audiences": ["elsewhere"]})).await;
    let deleted = token_of("deleted", json!({})).await;
    let path = format!("{accounts}/deleted");
    assert_eq!(server.call(&admin(), Method::DELETE, &path, Value::Null).await.0, 200);
    let unnamed = client(ClientCertificate::None);
    let proxy = client(ClientCertificate::Valid { user: None, proxy: true, not_after: i64::MAX });
    let remote = ("x-remote-user", "max");
    for (what, client, headers, code) in [
        ("a token", &unnamed, vec![("authorization", living.as_str())], 200),
        ("the token of a deleted account", &unnamed, vec![("authorization", deleted.as_str())], 401),
        ("a token for another audience", &unnamed, vec![("authorization", elsewhere.as_str())], 401),
        ("a certificate beside a token", &user("max"), vec![("authorization", living.as_str())], 403),
        ("a certificate beside the token of a deleted account", &user("max"), vec![("authorization", &deleted)], 403),
        ("a user of a front proxy beside a token", &proxy, vec![remote, ("authorization", &living)], 403),
        ("a token that a front proxy passes on", &proxy, vec![("authorization", &living)], 200),
        ("a member of system:masters beside a token", &admin(), vec![("authorization", &deleted)], 200),
    ] {
        assert_eq!(with_token(&server, client, &headers).await, code, "{what}");
    }
}

/// Notes whether a body is read.
#[derive(Default)]
struct BodyRead(AtomicBool);

impl Tap for BodyRead {
    fn sent(&self, _: &Bytes) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn responded(&self, _: &http::response::Parts) {}

    fn received(&self, _: &Bytes) {}
}

#[tokio::test]
async fn no_body_is_read_before_authorization() {
    let server = TestServer::start().await;
    server.create("a", json!({})).await;
    enthrone(&server, "jane", "a").await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let unnamed = client(ClientCertificate::None);
    // the response, and whether the body was read
    let send = async |client: &Arc<Client>, method: Method, path: &str| {
        let read = Arc::new(BodyRead::default());
        let body = RequestBody::own("{}".into()).tapped(read.clone());
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(body).unwrap();
        let response = match path.starts_with(BRANCHES) {
            true => server.workspaces.clone().serve(client.clone(), request).await,
            false => server.home.clone().serve(client.clone(), request).await,
        };
        (response.status().as_u16(), read.0.load(Ordering::Relaxed))
    };
    for (method, path) in [
        (Method::POST, "/clusters/x".to_owned()),
        (Method::POST, "/clusters/a".to_owned()),
        (Method::POST, WORKSPACES.to_owned()),
        (Method::PUT, format!("{WORKSPACES}/a")),
        (Method::PATCH, format!("{WORKSPACES}/a")),
        (Method::DELETE, format!("{WORKSPACES}/a")),
        (Method::POST, maps.to_owned()),
        (Method::DELETE, maps.to_owned()),
        (Method::POST, format!("/clusters/a{maps}")),
        (Method::POST, format!("/clusters/none{maps}")),
        (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned()),
        (Method::POST, "/version".to_owned()),
        (Method::POST, "/metrics".to_owned()),
        (Method::POST, "/clusters/a/metrics".to_owned()),
    ] {
        assert_eq!(send(&unnamed, method.clone(), &path).await, (403, false), "{method} {path}");
        let of_workspace = path.starts_with("/clusters/a/api");
        if !of_workspace && !path.contains("selfsubject") {
            assert_eq!(send(&user("jane"), method.clone(), &path).await, (403, false), "{method} {path}");
        }
    }
    assert_eq!(send(&admin(), Method::POST, "/clusters/x").await, (201, true));
}

#[tokio::test]
async fn metrics_are_for_the_operator_and_name_no_kinds_of_workspaces() {
    let server = TestServer::start().await;
    server.create("a", json!({})).await;
    enthrone(&server, "jane", "a").await;
    let definition = json!({"metadata": {"name": "projects.hidden.example.com"}, "spec": {"group": "hidden.example.com",
        "scope": "Cluster", "names": {"plural": "projects", "kind": "Project"}, "versions": [{"name": "v1", "served": true,
        "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/clusters/a/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, body) = server.call(&admin(), Method::POST, definitions, definition).await;
    assert_eq!(code, 201, "{body}");
    let projects = "/clusters/a/apis/hidden.example.com/v1/projects";
    let project = json!({"apiVersion": "hidden.example.com/v1", "kind": "Project", "metadata": {"name": "x"}});
    let (code, body) = server.call(&user("jane"), Method::POST, projects, project).await;
    assert_eq!(code, 201, "{body}");
    assert_eq!(server.call(&user("jane"), Method::GET, projects, Value::Null).await.0, 200);
    let watch = server.send(&user("jane"), Method::GET, &format!("{projects}?watch=1"), &Value::Null).await;
    assert_eq!(watch.status().as_u16(), 200);
    let (code, shown) = server.get("/metrics").await;
    assert!(code == 200 && shown.contains("resource=\"workspaces/content\""), "{shown}");
    assert!(!shown.contains("hidden.example.com") && !shown.contains("projects"), "{shown}");
    for path in ["/clusters/a/metrics", "/clusters/a/metrics/", "/clusters/a/%6detrics", "/clusters/none/metrics"] {
        assert_eq!(server.call(&user("jane"), Method::GET, path, Value::Null).await.0, 403, "{path}");
        let (code, text) = server.get(path).await;
        assert!(code == 200 && text.contains("apiserver_request_total"), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_full_workspace_can_be_emptied() {
    let server = TestServer::start().await;
    server.create("a", json!({})).await;
    let lease = "/clusters/a/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let maps = "/clusters/a/api/v1/namespaces/default/configmaps";
    let send = async |method: Method, path: &str, body: Value| server.call(&admin(), method, path, body).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/held"]}, "data": {"a": "long"}});
    let holder = |name: &str| json!({"spec": {"holderIdentity": name}});
    for (path, object) in [(maps, held), (lease, json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "one"}}))]
    {
        let (code, body) = send(Method::POST, path, object).await;
        assert_eq!(code, 201, "{body}");
    }
    assert_eq!(server.change("a", json!({"limits": {"objects": 1, "bytes": 1}})).await.0, 200);
    let review = "/clusters/a/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked = json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let (held, lease) = (format!("{maps}/held"), format!("{lease}/l"));
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    for (what, method, path, body, code) in [
        ("a new object", Method::POST, maps, json!({"metadata": {"name": "new"}}), 403),
        ("a larger object", Method::PATCH, held.as_str(), json!({"data": {"b": "more"}}), 403),
        ("a smaller object", Method::PATCH, &held, json!({"data": {"a": (Value::Null)}}), 200),
        ("a Lease with a longer holder", Method::PATCH, &lease, holder("another-one"), 200),
        ("a Lease full of data", Method::PATCH, &lease, holder(&"x".repeat(4000)), 403),
        ("a review", Method::POST, review, asked, 201),
        ("a deletion", Method::DELETE, &held, Value::Null, 200),
        (
            "a label of an object that is being deleted",
            Method::PATCH,
            &held,
            json!({"metadata": {"labels": {"a": "b"}}}),
            403,
        ),
        ("the last finalizer", Method::PATCH, &held, finalizers(json!([])), 200),
        ("an object that is gone", Method::GET, &held, Value::Null, 404),
    ] {
        let (got, response) = send(method, path, body).await;
        assert_eq!(got, code, "{what}: {response}");
    }
}

#[tokio::test]
async fn workspaces_are_kept_from_mistakes_of_their_operator() {
    let server = TestServer::start().await;
    server.create("t", json!({})).await;
    assert_eq!(server.put("t", "one").await, 201);
    assert_eq!(server.change("t", json!({"template": true})).await.0, 200);
    let (code, body) = server.change("t", json!({"reset": "1"})).await;
    assert!(code == 422 && body.contains("a template cannot be reset"), "{body}");
    assert_eq!(server.change("t", json!({"ttl": "1h"})).await.0, 200);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for path in [format!("{definitions}/workspaces.workspaces.pintle.dev"), definitions.to_owned()] {
        let (code, body) = server.call(&admin(), Method::DELETE, &path, Value::Null).await;
        assert!(code == 403 && body.contains("all workspaces would be deleted"), "{path}: {body}");
    }
    assert_eq!(server.names("t").await, ["one"]);
}

#[tokio::test]
async fn mistakes_in_a_specification_are_refused() {
    let server = TestServer::start().await;
    server.create("a", json!({})).await;
    for (spec, code, why) in [
        (json!({"limit": {"objects": 1}}), 400, "unknown field \\\"spec.limit\\\""),
        (json!({"ttl": "99999999999999999999h"}), 422, "spec"),
        (json!({"ttl": "87601h"}), 422, "ten years"),
        (json!({"from": {"workspace": "a", "resourceVersion": "99999999999999999999"}}), 422, "resourceVersion"),
        (json!({"ttl": "87600h"}), 201, ""),
    ] {
        let (got, body) = server.call(&admin(), Method::POST, "/clusters/x", spec.clone()).await;
        assert!(got == code && body.contains(why), "{spec:?}: {got} {body}");
    }
}

/// Repeatable numbers (a linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// A resource for random requests of an owner: its collection, and an object of it that may be created.
fn targets() -> Vec<(&'static str, Value)> {
    let rule = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let everyone = json!({"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"});
    let admin = json!({"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"});
    let hook = json!({"name": "all.example.com", "clientConfig": {"url": "https://127.0.0.1:1"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "rules": [{"apiGroups": [""], "apiVersions": ["*"],
        "operations": ["*"], "resources": ["secrets"]}]});
    vec![
        ("/api/v1/namespaces", json!({})),
        ("/api/v1/namespaces/default/configmaps", json!({"data": {"a": "b"}})),
        ("/api/v1/namespaces/default/secrets", json!({"stringData": {"a": "b"}})),
        ("/api/v1/namespaces/kube-system/serviceaccounts", json!({})),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", json!({"rules": [rule]})),
        ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", json!({"subjects": [everyone], "roleRef": admin})),
        ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", json!({"spec": {"holderIdentity": "me"}})),
        ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", json!({"webhooks": [hook]})),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", json!({"value": 1})),
        ("/apis/workspaces.pintle.dev/v1alpha1/workspaces", json!({"spec": {"from": {"workspace": "b"}}})),
    ]
}

#[tokio::test]
async fn random_requests_of_an_owner_change_nothing_outside() {
    let server = TestServer::start().await;
    for name in ["a", "b"] {
        server.create(name, json!({})).await;
        server.put(name, "own").await;
    }
    enthrone(&server, "jane", "a").await;
    for name in ["a", "b"] {
        server.reported(name, "Ready").await;
    }
    let (jane, targets) = (user("jane"), targets());
    let seen = async |prefix: &str| {
        let mut all = vec![];
        for (collection, _) in targets.iter().filter(|(collection, _)| *collection != WORKSPACES) {
            all.push(server.get(&format!("{prefix}{collection}")).await);
        }
        all
    };
    let before = (seen("").await, seen("/clusters/b").await);
    let names = ["n0", "n1", "n2", "own", "default", "cluster-admin", "a", "b"];
    let methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let (mut numbers, mut changes) = (Numbers(7), 0);
    for _ in 0..600 {
        let prefix = numbers.one(&["/clusters/a", "/clusters/a", "/clusters/b", "", "/clusters/none"]);
        let (method, (collection, mut object)) = (numbers.one(&methods), numbers.one(&targets));
        let name = numbers.one(&names);
        object.set_at(&["metadata", "name"], Value::from(name));
        let path = match method {
            Method::POST => format!("{prefix}{collection}"),
            _ if numbers.below(10) == 0 => format!("{prefix}{collection}"),
            _ => format!("{prefix}{collection}/{name}{}", numbers.one(&["", "", "", "/status"])),
        };
        let body = if [Method::GET, Method::DELETE].contains(&method) { Value::Null } else { object };
        let (code, text) = server.call(&jane, method.clone(), &path, body).await;
        assert!(code < 500, "{method} {path}: {text}");
        if prefix == "/clusters/a" {
            changes += usize::from(code < 300 && method != Method::GET);
        } else {
            assert!(code == 403 && !text.contains("\"uid\""), "{method} {path}: {code} {text}");
        }
    }
    assert!(changes > 20, "{changes} requests have changed something inside");
    assert!((seen("").await, seen("/clusters/b").await) == before, "something outside has changed");
}

/// An owner who may fork their workspace gets no more by that.
#[tokio::test]
async fn a_fork_has_the_limits_of_its_source() {
    let server = TestServer::start().await;
    server.create("a", json!({"limits": {"objects": 70, "bytes": 1_000_000, "writtenBytesPerSecond": 5000}})).await;
    let from = |name: &str, limits: Value| json!({"from": {"workspace": name}, "limits": limits});
    let cases = [
        ("none", from("a", json!({})), json!({"objects": 70, "bytes": 1_000_000, "writtenBytesPerSecond": 5000})),
        (
            "own",
            from("a", json!({"objects": 7, "bytes": 0, "watches": 3, "writtenBytesPerSecond": 5001})),
            json!({"objects": 7, "bytes": 1_000_000, "watches": 3, "writtenBytesPerSecond": 5000}),
        ),
        (
            "again",
            from("own", json!({"objects": 8})),
            json!({"objects": 7, "bytes": 1_000_000,
            "writtenBytesPerSecond": 5000, "watches": 3}),
        ),
    ];
    for (name, spec, limits) in cases {
        server.create(name, spec).await;
        let (_, body) = server.get(&format!("{WORKSPACES}/{name}")).await;
        let object = machinery::value::decode(body.as_bytes()).unwrap();
        for limit in ["objects", "bytes", "requestsInFlight", "watches", "writtenBytesPerSecond"] {
            assert_eq!(object.at(&["spec", "limits", limit]), limits.get(limit), "{name} {limit}");
        }
    }
    // who may change the workspace may raise its limits
    assert_eq!(server.change("own", json!({"limits": {"objects": 1000}})).await.0, 200);
}

#[tokio::test]
async fn written_bytes_have_a_rate() {
    let server = TestServer::start().await;
    server.create("a", json!({"limits": {"writtenBytesPerSecond": 100}})).await;
    server.create("b", json!({})).await;
    let object = |name: &str| json!({"metadata": {"name": name}, "data": {"text": ("x".repeat(2000))}});
    let maps = |workspace: &str| format!("/clusters/{workspace}/api/v1/namespaces/default/configmaps");
    for (workspace, name, code) in [("a", "one", 201), ("a", "two", 429), ("b", "one", 201), ("b", "two", 201)] {
        let client = admin();
        let sent = server.send(&client, Method::POST, &maps(workspace), &object(name)).await;
        let retry_after = sent.headers().get("Retry-After").is_some();
        assert_eq!((sent.status().as_u16(), retry_after), (code, code == 429), "{workspace} {name}");
    }
    // what ends objects is not refused
    assert_eq!(server.call(&admin(), Method::DELETE, &format!("{}/one", maps("a")), Value::Null).await.0, 200);
    assert_eq!(server.change("a", json!({"limits": {"writtenBytesPerSecond": 0}})).await.0, 200);
    assert_eq!(server.call(&admin(), Method::POST, &maps("a"), object("two")).await.0, 201);
}
