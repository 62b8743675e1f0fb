use std::collections::BTreeMap;

use super::*;
use access::authorization::GROUP as RBAC;
use base::clock;
use http::Method;

use crate::{test_server, verbs};

const GROUP: &str = "harbor.example.com";

/// ConfigMaps `n/name`, by name; ClusterRoles where the name begins with `@`.
struct TestServer {
    api: test_server::TestServer,
    graph: Arc<Graph>,
}

/// An owner: its kind, name and uid, and whether it waits.
type Reference<'a> = (&'a str, &'a str, &'a str, bool);

impl TestServer {
    async fn new() -> TestServer {
        let api = test_server::TestServer::start().await;
        for name in ["n", "m"] {
            api.ok(Method::POST, "/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
        }
        let server = TestServer { graph: api.controllers.owners.clone().unwrap(), api };
        server.collect(Duration::ZERO).await;
        server
    }

    fn resource(&self, group: &str, plural: &str) -> Arc<Resource> {
        self.api.context.registry.get(group, plural).unwrap()
    }

    async fn create(&self, name: &str, owners: &[Reference<'_>]) -> String {
        let reference = |(kind, name, uid, blocks): &Reference<'_>| -> Value {
            let api_version = if *kind == "Boat" { "harbor.example.com/v1" } else { "v1" };
            json!({"apiVersion": api_version, "kind": (*kind), "name": (*name), "uid": (*uid), "blockOwnerDeletion": (*blocks)})
        };
        let owners: Value = owners.iter().map(reference).collect();
        let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
        let path = if name.starts_with('@') {
            "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        } else {
            "/api/v1/namespaces/n/configmaps"
        };
        self.api.ok(Method::POST, path, object).await;
        self.stored(name).unwrap().meta.uid.to_string()
    }

    fn stored(&self, name: &str) -> Option<Arc<Stored>> {
        if name.starts_with('@') {
            self.resource(RBAC, "clusterroles").collection.get(name)
        } else {
            self.resource("", "configmaps").collection.get(&format!("n/{name}"))
        }
    }

    fn live(&self, group: &str, plural: &str, path: &str) -> LiveObject<'_> {
        let resource = self.resource(group, plural);
        let stored = resource.collection.get(path).unwrap();
        LiveObject { context: &self.api.context, resource, stored }
    }

    async fn delete(&self, name: &str, policy: &'static str) {
        self.live("", "configmaps", &format!("n/{name}")).delete(policy).await.unwrap();
    }

    /// Collects everything that becomes due before `after` has passed.
    async fn collect(&self, after: Duration) {
        for _ in 0..100 {
            let tasks = self.graph.take_by(clock::instant() + after);
            if tasks.is_empty() {
                return;
            }
            join_all(tasks.into_iter().map(|task| examine(&self.api.context, &self.graph, task))).await;
        }
        panic!("there is always something to do");
    }

    /// The ConfigMaps that exist, except the server's own, each with its owners.
    fn listed(&self) -> String {
        let (root, _) = self.resource("", "configmaps").collection.latest();
        let listed = |stored: &Arc<Stored>| {
            let owners: Vec<&str> = stored.meta.owners.iter().map(|owner| owner.name.as_str()).collect();
            (stored.meta.name.to_string(), owners.join("+"))
        };
        let all = root.values().filter(|stored| stored.meta.namespace != "kube-system");
        let all: BTreeMap<String, String> = all.map(listed).collect();
        all.into_iter().map(|(name, owners)| format!("{name}<{owners}")).collect::<Vec<_>>().join(" ")
    }
}

const SOON: Duration = Duration::ZERO;
const AFTER_GRACE: Duration = limits::ABSENT_OWNER_GRACE;

#[tokio::test]
async fn dependents_follow_their_owner() {
    for (policy, blocks, soon) in [
        ("Background", false, "other<"),
        ("Foreground", false, "other<"),
        ("Foreground", true, "other<"),
        ("Orphan", false, "child< grandchild<child other<"),
    ] {
        let server = TestServer::new().await;
        let owner = server.create("owner", &[]).await;
        let child = server.create("child", &[("ConfigMap", "owner", &owner, blocks)]).await;
        server.create("grandchild", &[("ConfigMap", "child", &child, blocks)]).await;
        server.create("other", &[]).await;
        server.collect(SOON).await;
        server.delete("owner", policy).await;
        server.collect(SOON).await;
        assert_eq!(server.listed(), soon, "{policy} {blocks}");
    }
}

#[tokio::test]
async fn foreground_deletion_waits_for_blocking_dependents() {
    let server = TestServer::new().await;
    let owner = server.create("owner", &[]).await;
    server.create("child", &[("ConfigMap", "owner", &owner, true)]).await;
    let held = json!({"finalizers": ["example.com/hold"]});
    server.live("", "configmaps", "n/child").patch(held).await.unwrap();
    server.delete("owner", "Foreground").await;
    server.collect(AFTER_GRACE).await;
    assert_eq!(server.listed(), "child<owner owner<");
    assert!(server.stored("child").unwrap().meta.deleting);
    server.live("", "configmaps", "n/child").patch(json!({"finalizers": null})).await.unwrap();
    server.collect(SOON).await;
    assert_eq!(server.listed(), "");
}

#[tokio::test]
async fn absent_owners_are_verified() {
    let server = TestServer::new().await;
    let owner = server.create("owner", &[]).await;
    server.api.ok(Method::POST, "/api/v1/namespaces/m/configmaps", json!({"metadata": {"name": "far"}})).await;
    let far = server.resource("", "configmaps").collection.get("m/far").unwrap().meta.uid.to_string();
    server.create("absent", &[("ConfigMap", "nobody", "u", false)]).await;
    server.create("another", &[("ConfigMap", "owner", "u", false)]).await;
    server.create("both", &[("ConfigMap", "owner", &owner, false), ("Secret", "nobody", "u", false)]).await;
    server.create("elsewhere", &[("ConfigMap", "far", &far, false)]).await;
    server.create("unknown", &[("Boat", "nina", "u", false)]).await;
    server.create("@cluster", &[("ConfigMap", "owner", "u", false)]).await;
    let all = "absent<nobody another<owner both<owner+nobody elsewhere<far far< owner< unknown<nina";
    server.collect(SOON).await;
    assert_eq!(server.listed(), all);
    server.collect(AFTER_GRACE).await;
    assert_eq!(server.listed(), "both<owner far< owner< unknown<nina");
    assert!(server.stored("@cluster").is_some(), "an object of the cluster cannot have an owner in a namespace");
    let (events, _) = server.resource("", "events").collection.latest();
    let events: Vec<Value> = events.values().map(|event| event.body.to_value(0)).collect();
    let reported: Vec<_> = events.iter().map(|e| (e.str_at(&["reason"]), e.str_at(&["message"]).to_owned())).collect();
    let lies = |name: &str, uid: &str, namespace: &str| {
        let owner = format!("[v1/ConfigMap, namespace: {namespace}, name: {name}, uid: {uid}]");
        ("OwnerRefInvalidNamespace", format!("ownerRef {owner} does not exist in namespace \"{namespace}\""))
    };
    assert_eq!(reported, [lies("owner", "u", ""), lies("far", &far, "n")]);
}

#[tokio::test]
async fn unknown_owner_kinds_are_resolved_by_crd_changes() {
    let server = TestServer::new().await;
    server.create("early", &[("Boat", "nina", "u", false)]).await;
    server.collect(AFTER_GRACE).await;
    assert_eq!(server.listed(), "early<nina");
    let names = json!({"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"});
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let spec = json!({"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": "boats.harbor.example.com"}, "spec": spec});
    server.api.ok(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    server.collect(SOON).await;
    assert_eq!(server.listed(), "early<nina");
    server.collect(AFTER_GRACE).await;
    assert_eq!(server.listed(), "");
    let boat = json!({"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": "nina"}});
    server.api.ok(Method::POST, "/apis/harbor.example.com/v1/namespaces/n/boats", boat).await;
    let boat = server.resource(GROUP, "boats").collection.get("n/nina").unwrap().meta.uid.to_string();
    server.create("deck", &[("Boat", "nina", &boat, false)]).await;
    server.collect(AFTER_GRACE).await;
    assert_eq!(server.listed(), "deck<nina");
    let key = server.resource(GROUP, "boats").key("n", "nina");
    let definition = server.live("apiextensions.k8s.io", "customresourcedefinitions", "boats.harbor.example.com");
    definition.delete("Background").await.unwrap();
    verbs::finalize(&server.api.context, &mut verbs::PendingCrdDeletions::default()).await;
    assert!(LiveObject::of(&server.api.context, &key, &boat).is_none());
    server.collect(SOON).await;
    // the boat can no longer be read, but its deletion was observed
    assert_eq!(server.listed(), "");
}

#[tokio::test]
async fn cycles_of_owners_are_collected() {
    for policy in ["Background", "Foreground"] {
        for delete_both in [false, true] {
            let server = TestServer::new().await;
            let a = server.create("a", &[]).await;
            let b = server.create("b", &[("ConfigMap", "a", &a, true)]).await;
            let owners = json!([
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": (b.as_str()), "blockOwnerDeletion": true},
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": (a.as_str()), "blockOwnerDeletion": true}
            ]);
            let metadata = json!({"ownerReferences": owners});
            server.live("", "configmaps", "n/a").patch(metadata).await.unwrap();
            server.collect(SOON).await;
            server.delete("a", policy).await;
            if delete_both {
                server.delete("b", policy).await;
            }
            server.collect(AFTER_GRACE).await;
            assert_eq!(server.listed(), "", "{policy} {delete_both}");
        }
    }
}

#[tokio::test]
async fn object_without_dependents_is_released_after_grace_period() {
    for policy in ["Foreground", "Orphan"] {
        let server = TestServer::new().await;
        server.create("alone", &[]).await;
        server.delete("alone", policy).await;
        server.collect(SOON).await;
        assert_eq!(server.listed(), "alone<", "{policy}");
        server.collect(limits::NO_DEPENDENTS_GRACE).await;
        assert_eq!(server.listed(), "", "{policy}");
    }
}

#[tokio::test]
async fn an_object_that_owns_itself_stays_until_it_is_deleted() {
    for policy in ["Background", "Foreground", "Orphan"] {
        let server = TestServer::new().await;
        let own = server.create("own", &[]).await;
        let owner =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": own, "blockOwnerDeletion": true});
        server.live("", "configmaps", "n/own").patch(json!({"ownerReferences": [owner]})).await.unwrap();
        server.collect(AFTER_GRACE).await;
        assert_eq!(server.listed(), "own<own", "{policy}");
        server.delete("own", policy).await;
        server.collect(AFTER_GRACE).await;
        assert_eq!(server.listed(), "", "{policy}");
    }
}
