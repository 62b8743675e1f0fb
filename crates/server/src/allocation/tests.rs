//! Allocation in a whole server: no value is allocated twice, and values are released.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::Method;
use machinery::{Status, Value, json};

use super::*;
use crate::verbs::control_plane::{self, ControlPlane};
use crate::verbs::{self, Context, Document, Effect, Outcome, Request};

async fn server(store: Arc<dyn store::Store>) -> Arc<Context> {
    crate::assembly::tests::server(store).await.0
}

fn request(context: &Context, method: &Method, name: &str) -> Request {
    let resource = context.registry.get("", "services").unwrap();
    let path = format!("/api/v1/namespaces/default/services/{name}");
    context.controller_request("tester", &resource, method, path.trim_end_matches('/'))
}

async fn create(context: &Context, name: &str, spec: Value) -> Result<Value, Status> {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    let outcome = verbs::create(context, &request(context, &Method::POST, ""), &Document::json(&service)).await?;
    match outcome {
        Outcome::Object(Effect::Created, shown) => Ok(shown.to_value()),
        _ => panic!("a Service is created"),
    }
}

async fn delete(context: &Context, name: &str) {
    verbs::delete(context, &request(context, &Method::DELETE, name), None).await.unwrap();
}

fn port() -> Value {
    json!({"ports": [{"port": 80}]})
}

fn node_port(port: i64) -> Value {
    json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]})
}

async fn taken(context: &Context) -> Vec<bool> {
    context.allocation.try_ports(&context.objects, |pool| pool.taken.clone())
}

#[tokio::test]
async fn each_address_is_allocated_once() {
    let context = server(Arc::new(store::Memory::default())).await;
    let mut given = BTreeSet::new();
    // all addresses except that of the network, its broadcast address and that of the server's own Service
    for i in 0..253 {
        let service = create(&context, &format!("s{i}"), port()).await.unwrap();
        assert!(given.insert(service.str_at(&["spec", "clusterIP"]).to_owned()));
    }
    assert!(!given.contains("10.0.0.1"));
    let full = create(&context, "more", port()).await.unwrap_err();
    assert_eq!(full.message, "Internal error occurred: failed to allocate a serviceIP: range is full");
    delete(&context, "s7").await;
    let again = create(&context, "more", port()).await.unwrap();
    given.remove(again.str_at(&["spec", "clusterIP"]));
    assert_eq!(given.len(), 252);
}

#[tokio::test]
async fn rejected_service_releases_its_allocations() {
    let context = server(Arc::new(store::Memory::default())).await;
    create(&context, "a", node_port(30_001)).await.unwrap();
    for wrong in [node_port(30_001), json!({"type": "NodePort", "ports": [{"port": 80, "protocol": "x"}]})] {
        assert_eq!(create(&context, "b", wrong).await.unwrap_err().code, 422);
    }
    assert_eq!(create(&context, "a", node_port(30_002)).await.unwrap_err().code, 409);
    assert_eq!(taken(&context).await.iter().filter(|taken| **taken).count(), 1);
    assert_eq!(addresses::collection(&context.objects).latest().0.len(), 1);
    delete(&context, "a").await;
    assert!(!taken(&context).await.contains(&true));
    assert_eq!(addresses::collection(&context.objects).latest().0.len(), 0);
}

#[tokio::test]
async fn start_repairs_reservations() {
    let store: Arc<dyn store::Store> = Arc::new(store::Memory::default());
    let address = {
        let context = server(store.clone()).await;
        let service = create(&context, "a", node_port(30_001)).await.unwrap();
        // as if a server had ended between a reservation and the write of its Service, and between a deletion and the
        // release
        let mut other = json!({"metadata": {"name": "b", "namespace": "default"}, "spec": (node_port(30_005))});
        let _ = context
            .allocation
            .begin(context.as_ref(), &mut other, None, false, machinery::Release::NEWEST)
            .await
            .unwrap();
        context.allocation.release_all(context.as_ref(), &service).await;
        service.str_at(&["spec", "clusterIP"]).to_owned()
    };
    let context = server(store).await;
    let (root, _) = addresses::collection(&context.objects).latest();
    assert_eq!(root.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), [address]);
    let ports: Vec<usize> = taken(&context).await.iter().enumerate().filter(|(_, t)| **t).map(|(i, _)| i).collect();
    assert_eq!(ports, [1]);
}

#[tokio::test]
async fn reservations_are_released_on_second_repair() {
    let context = server(Arc::new(store::Memory::default())).await;
    let mut service = json!({"metadata": {"name": "b", "namespace": "default"}, "spec": (node_port(30_005))});
    let _ = context
        .allocation
        .begin(context.as_ref(), &mut service, None, false, machinery::Release::NEWEST)
        .await
        .unwrap();
    let mut suspects = UnownedReservations::default();
    for left in [1, 0] {
        context.allocation.repair(context.as_ref(), &mut suspects, Unowned::ReleasedLater).await.unwrap();
        assert_eq!(taken(&context).await.iter().filter(|taken| **taken).count(), left);
        assert_eq!(addresses::collection(&context.objects).latest().0.len(), left);
    }
}

/// The Service of the server and the parent of the IPAddress that its address has.
fn own_service(context: &Context) -> (bool, Option<String>) {
    let services = context.objects.collection(&"".into(), &"services".into());
    let address = addresses::collection(&context.objects).get("10.0.0.1");
    let parent = address.map(|stored| {
        let stored = stored.body.to_value(stored.revision);
        stored.str_at(&["spec", "parentRef", "name"]).to_owned()
    });
    (services.get("default/kubernetes").is_some(), parent)
}

fn ip_address(parent: &str) -> Value {
    let labels = json!({"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": "10.0.0.1", "labels": labels},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": parent}}
    })
}

#[tokio::test]
async fn own_service_is_created_after_a_crash_between_its_writes() {
    let plane = ControlPlane { port: 1, address: None, hostname: "a".to_owned(), run: None };
    // the parent of an IPAddress that stands already, and what the creation of the Service makes of it
    for (left, want) in [
        (None, (true, Some("kubernetes".to_owned()))),
        (Some("kubernetes"), (true, Some("kubernetes".to_owned()))),
        // of a client: the start goes on without the Service
        (Some("other"), (false, Some("other".to_owned()))),
    ] {
        let context = server(Arc::new(store::Memory::default())).await;
        if let Some(parent) = left {
            context.as_ref().create(ip_address(parent)).await.unwrap();
        }
        control_plane::create(&context, &plane).await.unwrap();
        assert_eq!(own_service(&context), want, "{left:?}");
    }
}

#[tokio::test]
async fn address_of_another_service_that_was_left_is_taken() {
    let context = server(Arc::new(store::Memory::default())).await;
    let labels = json!({"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    let parent = json!({"resource": "services", "namespace": "default", "name": "a"});
    let left = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "spec": {"parentRef": parent},
        "metadata": {"name": "10.0.0.9", "labels": labels}
    });
    context.as_ref().create(left).await.unwrap();
    let refused = create(&context, "a", json!({"clusterIP": "10.0.0.9", "ports": [{"port": 80}]})).await.unwrap_err();
    assert!(refused.message.contains("provided IP is already allocated"), "{}", refused.message);
}

#[tokio::test]
async fn addresses_of_ready_service_cidrs_are_allocated() {
    let context = server(Arc::new(store::Memory::default())).await;
    let cidrs = context.registry.get("networking.k8s.io", "servicecidrs").unwrap();
    let request = |method: &Method, name: &str, part: verbs::Subresource| {
        let path = format!("/apis/networking.k8s.io/v1/servicecidrs/{name}");
        context.controller_request("tester", &cidrs, method, path.trim_end_matches('/')).through(part)
    };
    let more = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "more", "finalizers": ["a.b/c"]}, "spec": {"cidrs": ["10.77.0.0/30"]}});
    verbs::create(&context, &request(&Method::POST, "", verbs::Subresource::None), &Document::json(&more))
        .await
        .unwrap();
    let wanted = |address: &str| json!({"clusterIP": address, "ports": [{"port": 80}]});
    let refused = |address: &str| {
        format!("failed to allocate IP {address}: the provided network does not match the current range")
    };
    let error = create(&context, "a", wanted("10.77.0.1")).await.unwrap_err();
    assert!(error.message.contains(&refused("10.77.0.1")), "it is not ready: {}", error.message);
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "2001-01-01T00:00:00Z"}]}});
    let status = request(&Method::PATCH, "more", verbs::Subresource::Status);
    verbs::patch(&context, &status, verbs::PatchKind::Merge, &Document::json(&ready)).await.unwrap();
    let service = create(&context, "a", wanted("10.77.0.1")).await.unwrap();
    assert_eq!(service.str_at(&["spec", "clusterIP"]), "10.77.0.1");
    for (address, why) in [
        ("10.77.0.0", refused("10.77.0.0")),
        ("10.77.0.3", refused("10.77.0.3")),
        ("10.79.0.1", refused("10.79.0.1")),
        ("10.77.0.1", "provided IP is already allocated".to_owned()),
    ] {
        let error = create(&context, "b", wanted(address)).await.unwrap_err();
        assert!(error.message.contains(&why), "{address}: {}", error.message);
    }
    verbs::delete(&context, &request(&Method::DELETE, "more", verbs::Subresource::None), None).await.unwrap();
    let error = create(&context, "b", wanted("10.77.0.2")).await.unwrap_err();
    assert!(error.message.contains(&refused("10.77.0.2")), "it is being deleted: {}", error.message);
}
