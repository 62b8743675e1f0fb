//! Namespaces that are being deleted.

use super::*;

const PATH: &str = "/api/v1/namespaces";
const NOTHING_FAILED: [&str; 3] = [
    "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered",
    "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed",
    "NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization",
];

/// The finalizers of a namespace and of a ConfigMap in it, and what the conditions say of them.
const HELD: [(&str, &str, [&str; 2]); 2] = [
    (
        "acme.io/hold",
        "",
        [
            "NamespaceContentRemaining False ContentRemoved: All content successfully removed",
            "NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers finished",
        ],
    ),
    (
        "",
        "acme.io/never",
        [
            "NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances",
            "NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: acme.io/never in 1 resource instances",
        ],
    ),
];

fn named(name: &str, finalizer: &str) -> Value {
    let finalizers: Value = Some(finalizer).filter(|one| !one.is_empty()).into_iter().map(Value::from).collect();
    json!({"metadata": {"name": name, "finalizers": finalizers}})
}

#[tokio::test]
async fn conditions_say_what_a_deletion_waits_for() {
    for (of_namespace, of_map, remaining) in HELD {
        let running = TestServer::new().await;
        let server = &running.api;
        let (path, maps) = (format!("{PATH}/held"), format!("{PATH}/held/configmaps"));
        server.ok(Method::POST, PATH, named("held", of_namespace)).await;
        server.ok(Method::POST, &maps, named("m", of_map)).await;
        server.ok(Method::POST, &maps, named("free", "")).await;
        server.ok(Method::DELETE, &path, Value::Null).await;
        let found = || running.stored(NAMESPACES, "held").unwrap().body.to_value(0);
        let is_reported = || !found().items_at(&["status", "conditions"]).is_empty();
        running.until("the conditions are there", is_reported).await;
        let namespace = found();
        let text = |condition: &Value| {
            let [kind, status, reason, message] =
                ["type", "status", "reason", "message"].map(|field| condition.str_at(&[field]));
            format!("{kind} {status} {reason}: {message}")
        };
        let conditions: Vec<String> = namespace.items_at(&["status", "conditions"]).iter().map(text).collect();
        assert_eq!(conditions, [&NOTHING_FAILED[..], &remaining].concat());
        assert_eq!(namespace.str_at(&["status", "phase"]), "Terminating");
        let managers = namespace.items_at(&["metadata", "managedFields"]).iter();
        let of_status = managers.filter(|entry| entry.str_at(&["subresource"]) == "status");
        let managers: Vec<_> = of_status.map(|entry| entry.str_at(&["manager"])).collect();
        assert_eq!(managers, ["kube-controller-manager"], "as upstream's controllers");
        let refused = server.refused(Method::POST, &maps, named("late", ""), 403).await;
        assert!(refused.str_at(&["message"]).contains("because it is being terminated"), "{refused:?}");
        // other namespaces can be created and deleted
        server.ok(Method::POST, PATH, named("brief", "")).await;
        server.ok(Method::POST, &format!("{PATH}/brief/configmaps"), named("m", "")).await;
        server.ok(Method::DELETE, &format!("{PATH}/brief"), Value::Null).await;
        let held = if of_map.is_empty() { path.clone() } else { format!("{maps}/m") };
        server.ok(Method::PATCH, &held, json!({"metadata": {"finalizers": (Value::Null)}})).await;
        let are_gone = || ["held", "brief"].iter().all(|name| running.stored(NAMESPACES, name).is_none());
        running.until("both namespaces are gone", are_gone).await;
    }
}
