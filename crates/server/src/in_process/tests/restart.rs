//! Restarts the server after manual changes to objects that it maintains, which it reverts as kube-apiserver does.

use super::*;
use crate::test_server::TestServer;

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:";

/// APIServices; what is done with each; and their priority and their label before and after a restart, if they exist.
const REGISTRATIONS: [(&str, &str, &str, &str); 7] = [
    ("v1.rbac.authorization.k8s.io", "change", "1234 onstart", "17000 onstart"),
    ("v1.authorization.k8s.io", "change -", "1234 ", "1234 "),
    ("v1.authentication.k8s.io", "change true", "1234 true", "17700 true"),
    ("v1.coordination.k8s.io", "delete", "", "16500 onstart"),
    ("v1.once.example.com", "create onstart", "1234 onstart", ""),
    ("v1.mine.example.com", "create -", "1234 ", "1234 "),
    ("v9.coordination.k8s.io", "create onstart", "1234 onstart", ""),
];

/// The states of the APIServices, as [`REGISTRATIONS`] has them.
async fn registrations(server: &TestServer) -> Vec<String> {
    let mut found = vec![];
    for (name, ..) in REGISTRATIONS {
        let (code, service) = server.call(Method::GET, &format!("{SERVICES}/{name}"), Value::Null).await;
        let priority = service.at(&["spec", "groupPriorityMinimum"]).map(Value::to_json).unwrap_or_default();
        let state = format!("{priority} {}", service.str_at(&["metadata", "labels", MANAGED]));
        found.push(if code == 200 { state } else { String::new() });
    }
    found
}

#[tokio::test]
async fn registrations_are_restored() {
    let store = Arc::new(Memory::default());
    let server = TestServer::on(store.clone()).await;
    for (name, change, ..) in REGISTRATIONS {
        let (verb, label) = change.split_once(' ').unwrap_or((change, ""));
        let path = format!("{SERVICES}/{name}");
        let (version, group) = name.split_once('.').unwrap();
        let spec = json!({"groupPriorityMinimum": 1234, "versionPriority": 99, "group": group, "version": version});
        let mut object = json!({"metadata": {"name": name, "labels": {"more": "x"}}, "spec": spec});
        match label {
            "" => {}
            "-" => object.set_at(&["metadata", "labels", MANAGED], Value::Null),
            label => object.set_at(&["metadata", "labels", MANAGED], Value::from(label)),
        }
        match verb {
            "delete" => server.ok(Method::DELETE, &path, Value::Null).await,
            "create" => server.ok(Method::POST, SERVICES, object).await,
            _ => server.ok(Method::PATCH, &path, object).await,
        };
    }
    // a new CRD triggers the controller of APIServices
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let names = json!({"plural": "boats", "kind": "Boat"});
    let spec = json!({"group": "last.example.com", "scope": "Cluster", "names": names, "versions": [version]});
    server.ok(Method::POST, DEFINITIONS, json!({"metadata": {"name": "boats.last.example.com"}, "spec": spec})).await;
    server.controllers.finish_work(&server.context).await;
    server.ok(Method::GET, &format!("{SERVICES}/v1.last.example.com"), Value::Null).await;
    assert_eq!(registrations(&server).await, REGISTRATIONS.map(|(.., before, _)| before));

    let server = TestServer::on(store.clone()).await;
    assert_eq!(registrations(&server).await, REGISTRATIONS.map(|(.., after)| after));
    let path = format!("{SERVICES}/v1.rbac.authorization.k8s.io");
    let restored = server.ok(Method::GET, &path, Value::Null).await;
    assert_eq!(restored.str_at(&["metadata", "labels", "more"]), "x");
    let revision = server.context.objects.revision();
    assert_eq!(TestServer::on(store).await.context.objects.revision(), revision);
}

#[tokio::test]
async fn roles_are_reconciled() {
    let store = Arc::new(Memory::default());
    let server = TestServer::on(store.clone()).await;
    let rules = async |server: &TestServer, name: &str| {
        let role = server.ok(Method::GET, &format!("{ROLES}{name}"), Value::Null).await;
        role.items_at(&["rules"]).to_vec()
    };
    let discovery = rules(&server, "discovery").await;
    let more = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let alone = json!({"rules": [(more.clone())]});
    let mut kept = alone.clone();
    kept.set_at(&["metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate"], Value::from("false"));
    server.ok(Method::PATCH, &format!("{ROLES}discovery"), alone).await;
    server.ok(Method::PATCH, &format!("{ROLES}monitoring"), kept).await;
    server.ok(Method::DELETE, &format!("{ROLES}basic-user"), Value::Null).await;

    let server = TestServer::on(store.clone()).await;
    assert_eq!(rules(&server, "discovery").await, [vec![more.clone()], discovery].concat());
    assert_eq!(rules(&server, "monitoring").await, [more]);
    assert!(!rules(&server, "basic-user").await.is_empty());
    let revision = server.context.objects.revision();
    assert_eq!(TestServer::on(store).await.context.objects.revision(), revision);
}
