//! Attacks of an owner of a workspace on the server and on other workspaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use machinery::{Release, Value, json};
use objects::Storage;
use store::Memory;

use super::{TestServer, WORKSPACES, admin, blueprint, user};
use crate::assembly::{Assembled, Beginning, Blueprint};
use crate::controllers::{CertificateSigner, Controllers};
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
        TestServer::of(Arc::new(Memory::default()), Blueprint { controllers, ..blueprint() }, Default::default());
    let server = server.await;
    let empty = || Beginning::of(Storage::own(Arc::new(Memory::default())));
    let inner = server.workspaces.blueprint(Release::NEWEST).unwrap().assemble(empty()).await.unwrap();
    assert_eq!((certificate_of(&inner).await, signed.load(Ordering::Relaxed)), (String::new(), 0));
    let outer = server.workspaces.parts.blueprint.assemble(empty()).await.unwrap();
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
    // the response does not tell a source that exists from one that does not
    let refused = async |source: &str| {
        let (code, body) =
            server.call(&user("jane"), Method::POST, "/clusters/x", json!({"from": (from(source))})).await;
        (code, body.replace(source, "SOURCE"))
    };
    assert_eq!(refused("b-1").await, refused("no-such").await);
    assert_eq!(refused("b-1").await.0, 403);
    assert_eq!(server.names("fork-0").await, ["one"]);
}
