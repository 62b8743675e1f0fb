use std::collections::BTreeMap;

use super::*;
use access::authorization::GROUP as RBAC;
use base::clock;

use crate::Storage;
use crate::controllers::{Controllers, Derived};

const GROUP: &str = "harbor.example.com";

/// ConfigMaps `n/name`, by name; ClusterRoles where the name begins with `@`.
struct World {
    context: Arc<Context>,
    graph: Arc<Graph>,
}

/// An owner: its kind, name and uid, and whether it waits.
type Reference<'a> = (&'a str, &'a str, &'a str, bool);

impl World {
    async fn new() -> World {
        let derived = Arc::new(Derived::new(&Controllers::default(), false));
        let store = Storage::own(Arc::new(store::Embedded::in_memory()));
        let context = crate::prepare(
            store,
            Default::default(),
            Default::default(),
            derived.clone(),
            Default::default(),
            Default::default(),
        )
        .await
        .unwrap();
        let world = World { context, graph: derived.owners.clone().unwrap() };
        for name in ["n", "m"] {
            world.post("", "namespaces", "", json!({"metadata": {"name": name}})).await;
        }
        world.settle(Duration::ZERO).await;
        world
    }

    fn resource(&self, group: &str, plural: &str) -> Arc<Resource> {
        self.context.registry.get(group, plural).unwrap()
    }

    async fn post(&self, group: &str, plural: &str, namespace: &str, object: Value) {
        let resource = self.resource(group, plural);
        let path = verbs::path_of(&resource, namespace, "");
        let request = verbs::controller_request("tester", &resource, &http::Method::POST, &path);
        let document = Document::json(&object);
        verbs::create(&self.context, &request, &document).await.unwrap();
    }

    async fn create(&self, name: &str, owners: &[Reference<'_>]) -> String {
        let reference = |(kind, name, uid, blocks): &Reference<'_>| -> Value {
            let api_version = if *kind == "Boat" { "harbor.example.com/v1" } else { "v1" };
            json!({"apiVersion": api_version, "kind": (*kind), "name": (*name), "uid": (*uid), "blockOwnerDeletion": (*blocks)})
        };
        let owners: Value = owners.iter().map(reference).collect();
        let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
        match name.starts_with('@') {
            true => self.post(RBAC, "clusterroles", "", object).await,
            false => self.post("", "configmaps", "n", object).await,
        }
        self.stored(name).unwrap().meta.uid.to_string()
    }

    fn stored(&self, name: &str) -> Option<Arc<Stored>> {
        match name.starts_with('@') {
            true => self.resource(RBAC, "clusterroles").collection.get(name),
            false => self.resource("", "configmaps").collection.get(&format!("n/{name}")),
        }
    }

    async fn delete(&self, name: &str, policy: &'static str) {
        let resource = self.resource("", "configmaps");
        let stored = self.stored(name).unwrap();
        let key = resource.key("n", name);
        super::delete(&self.context, &resource, &key, &stored.meta.uid, policy).await.unwrap();
    }

    /// Does all there is to do until `after` has passed.
    async fn settle(&self, after: Duration) {
        for _ in 0..100 {
            let tasks = self.graph.take_by(clock::instant() + after);
            if tasks.is_empty() {
                return;
            }
            join_all(tasks.into_iter().map(|task| attend(&self.context, &self.graph, task))).await;
        }
        panic!("there is always something to do");
    }

    /// The ConfigMaps that are there, the server's own aside, each with its owners.
    fn shown(&self) -> String {
        let (root, _) = self.resource("", "configmaps").collection.latest();
        let shown = |stored: &Arc<Stored>| {
            let owners: Vec<&str> = stored.meta.owners.iter().map(|owner| owner.name.as_str()).collect();
            (stored.meta.name.to_string(), owners.join("+"))
        };
        let all = root.values().filter(|stored| stored.meta.namespace != "kube-system");
        let all: BTreeMap<String, String> = all.map(shown).collect();
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
        let world = World::new().await;
        let owner = world.create("owner", &[]).await;
        let child = world.create("child", &[("ConfigMap", "owner", &owner, blocks)]).await;
        world.create("grandchild", &[("ConfigMap", "child", &child, blocks)]).await;
        world.create("other", &[]).await;
        world.settle(SOON).await;
        world.delete("owner", policy).await;
        world.settle(SOON).await;
        assert_eq!(world.shown(), soon, "{policy} {blocks}");
    }
}

#[tokio::test]
async fn foreground_deletion_waits_for_blocking_dependents() {
    let world = World::new().await;
    let owner = world.create("owner", &[]).await;
    world.create("child", &[("ConfigMap", "owner", &owner, true)]).await;
    let held = json!({"finalizers": ["example.com/hold"]});
    let resource = world.resource("", "configmaps");
    patch(&world.context, &resource, &world.stored("child").unwrap(), held).await.unwrap();
    world.delete("owner", "Foreground").await;
    world.settle(AFTER_GRACE).await;
    assert_eq!(world.shown(), "child<owner owner<");
    assert!(world.stored("child").unwrap().meta.deleting);
    patch(&world.context, &resource, &world.stored("child").unwrap(), json!({"finalizers": null})).await.unwrap();
    world.settle(SOON).await;
    assert_eq!(world.shown(), "");
}

#[tokio::test]
async fn absent_owners_are_verified() {
    let world = World::new().await;
    let owner = world.create("owner", &[]).await;
    world.post("", "configmaps", "m", json!({"metadata": {"name": "far"}})).await;
    let far = world.resource("", "configmaps").collection.get("m/far").unwrap().meta.uid.to_string();
    world.create("absent", &[("ConfigMap", "nobody", "u", false)]).await;
    world.create("another", &[("ConfigMap", "owner", "u", false)]).await;
    world.create("both", &[("ConfigMap", "owner", &owner, false), ("Secret", "nobody", "u", false)]).await;
    world.create("elsewhere", &[("ConfigMap", "far", &far, false)]).await;
    world.create("unknown", &[("Boat", "nina", "u", false)]).await;
    world.create("@cluster", &[("ConfigMap", "owner", "u", false)]).await;
    let all = "absent<nobody another<owner both<owner+nobody elsewhere<far far< owner< unknown<nina";
    world.settle(SOON).await;
    assert_eq!(world.shown(), all);
    world.settle(AFTER_GRACE).await;
    assert_eq!(world.shown(), "both<owner far< owner< unknown<nina");
    assert!(world.stored("@cluster").is_some(), "an object of the cluster cannot have an owner in a namespace");
    let (events, _) = world.resource("", "events").collection.latest();
    let events: Vec<Value> = events.values().map(|event| event.body.to_value(0)).collect();
    let reported: Vec<_> = events.iter().map(|e| (e.str_at(&["reason"]), e.str_at(&["message"]).to_owned())).collect();
    let lies = |name: &str, uid: &str, namespace: &str| {
        let owner = format!("[v1/ConfigMap, namespace: {namespace}, name: {name}, uid: {uid}]");
        ("OwnerRefInvalidNamespace", format!("ownerRef {owner} does not exist in namespace \"{namespace}\""))
    };
    assert_eq!(reported, [lies("owner", "u", ""), lies("far", &far, "n")]);
}

#[tokio::test]
async fn registry_follows_crd_changes() {
    let world = World::new().await;
    world.create("early", &[("Boat", "nina", "u", false)]).await;
    world.settle(AFTER_GRACE).await;
    assert_eq!(world.shown(), "early<nina");
    let names = json!({"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"});
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let spec = json!({"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": "boats.harbor.example.com"}, "spec": spec});
    world.post("apiextensions.k8s.io", "customresourcedefinitions", "", definition).await;
    world.settle(SOON).await;
    assert_eq!(world.shown(), "early<nina");
    world.settle(AFTER_GRACE).await;
    assert_eq!(world.shown(), "");
    let boat = json!({"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": "nina"}});
    world.post(GROUP, "boats", "n", boat).await;
    let boat = world.resource(GROUP, "boats").collection.get("n/nina").unwrap().meta.uid.to_string();
    world.create("deck", &[("Boat", "nina", &boat, false)]).await;
    world.settle(AFTER_GRACE).await;
    assert_eq!(world.shown(), "deck<nina");
    let (_, boat) = live(&world.context, &world.resource(GROUP, "boats").key("n", "nina"), &boat).unwrap();
    let resource = world.resource("apiextensions.k8s.io", "customresourcedefinitions");
    let stored = resource.collection.get("boats.harbor.example.com").unwrap();
    let key = resource.key("", "boats.harbor.example.com");
    super::delete(&world.context, &resource, &key, &stored.meta.uid, "Background").await.unwrap();
    verbs::finalize(&world.context, &mut verbs::PendingCrdDeletions::default()).await;
    assert!(live(&world.context, &key, &boat.meta.uid).is_none());
    world.settle(SOON).await;
    // the boat can no longer be read, but its deletion was observed
    assert_eq!(world.shown(), "");
}

#[tokio::test]
async fn cycles_of_owners_are_collected() {
    for policy in ["Background", "Foreground"] {
        for delete_both in [false, true] {
            let world = World::new().await;
            let a = world.create("a", &[]).await;
            let b = world.create("b", &[("ConfigMap", "a", &a, true)]).await;
            let resource = world.resource("", "configmaps");
            let owners = json!([
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": (b.as_str()), "blockOwnerDeletion": true},
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": (a.as_str()), "blockOwnerDeletion": true}
            ]);
            let metadata = json!({"ownerReferences": owners});
            patch(&world.context, &resource, &world.stored("a").unwrap(), metadata).await.unwrap();
            world.settle(SOON).await;
            world.delete("a", policy).await;
            if delete_both {
                world.delete("b", policy).await;
            }
            world.settle(AFTER_GRACE).await;
            assert_eq!(world.shown(), "", "{policy} {delete_both}");
        }
    }
}

#[tokio::test]
async fn object_without_dependents_is_released_after_grace_period() {
    for policy in ["Foreground", "Orphan"] {
        let world = World::new().await;
        world.create("alone", &[]).await;
        world.delete("alone", policy).await;
        world.settle(SOON).await;
        assert_eq!(world.shown(), "alone<", "{policy}");
        world.settle(limits::NO_DEPENDENTS_GRACE).await;
        assert_eq!(world.shown(), "", "{policy}");
    }
}
