//! Allocation in a whole server: no value is allocated twice, and values are released.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::Method;
use machinery::{Value, json};

use super::*;
use crate::test_server::TestServer;
use crate::verbs::Context;
use crate::verbs::control_plane::{self, ControlPlane};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn create(server: &TestServer, name: &str, spec: Value) -> Value {
    server.ok(Method::POST, SERVICES, service(name, spec)).await
}

/// The message of a refused creation.
async fn refused(server: &TestServer, name: &str, spec: Value, code: u16) -> String {
    let status = server.refused(Method::POST, SERVICES, service(name, spec), code).await;
    status.str_at(&["message"]).to_owned()
}

async fn delete(server: &TestServer, name: &str) {
    server.ok(Method::DELETE, &format!("{SERVICES}/{name}"), Value::Null).await;
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
    let server = TestServer::start().await;
    let mut given = BTreeSet::new();
    // all addresses except that of the network, its broadcast address and that of the server's own Service
    for i in 0..253 {
        let service = create(&server, &format!("s{i}"), port()).await;
        assert!(given.insert(service.str_at(&["spec", "clusterIP"]).to_owned()));
    }
    assert!(!given.contains("10.0.0.1"));
    let full = refused(&server, "more", port(), 500).await;
    assert_eq!(full, "Internal error occurred: failed to allocate a serviceIP for Service \"more\": range is full");
    delete(&server, "s7").await;
    let again = create(&server, "more", port()).await;
    given.remove(again.str_at(&["spec", "clusterIP"]));
    assert_eq!(given.len(), 252);
}

#[tokio::test]
async fn rejected_service_releases_its_allocations() {
    let server = TestServer::start().await;
    create(&server, "a", node_port(30_001)).await;
    for wrong in [node_port(30_001), json!({"type": "NodePort", "ports": [{"port": 80, "protocol": "x"}]})] {
        refused(&server, "b", wrong, 422).await;
    }
    refused(&server, "a", node_port(30_002), 409).await;
    assert_eq!(taken(&server.context).await.iter().filter(|taken| **taken).count(), 1);
    assert_eq!(addresses::collection(&server.context.objects).latest().0.len(), 1);
    delete(&server, "a").await;
    assert!(!taken(&server.context).await.contains(&true));
    assert_eq!(addresses::collection(&server.context.objects).latest().0.len(), 0);
}

#[tokio::test]
async fn start_repairs_reservations() {
    let store: Arc<dyn store::Store> = Arc::new(store::Memory::default());
    let address = {
        let server = TestServer::on(store.clone()).await;
        let service = create(&server, "a", node_port(30_001)).await;
        // as if a server had ended between a reservation and the write of its Service, and between a deletion and the
        // release
        let mut other = json!({"metadata": {"name": "b", "namespace": "default"}, "spec": (node_port(30_005))});
        let context = server.context.as_ref();
        let _ = context.allocation.begin(context, &mut other, None, false, machinery::Release::NEWEST).await.unwrap();
        context.allocation.release_all(context, &service).await;
        service.str_at(&["spec", "clusterIP"]).to_owned()
    };
    let server = TestServer::on(store).await;
    let (root, _) = addresses::collection(&server.context.objects).latest();
    assert_eq!(root.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), [address]);
    let ports: Vec<usize> =
        taken(&server.context).await.iter().enumerate().filter(|(_, t)| **t).map(|(i, _)| i).collect();
    assert_eq!(ports, [1]);
}

#[tokio::test]
async fn reservations_are_released_on_second_repair() {
    let server = TestServer::start().await;
    let mut service = json!({"metadata": {"name": "b", "namespace": "default"}, "spec": (node_port(30_005))});
    let context = server.context.as_ref();
    let _ = context.allocation.begin(context, &mut service, None, false, machinery::Release::NEWEST).await.unwrap();
    let mut suspects = UnownedReservations::default();
    for left in [1, 0] {
        context.allocation.repair(context, &mut suspects, Unowned::ReleasedLater).await.unwrap();
        assert_eq!(taken(&server.context).await.iter().filter(|taken| **taken).count(), left);
        assert_eq!(addresses::collection(&server.context.objects).latest().0.len(), left);
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
        let server = TestServer::start().await;
        if let Some(parent) = left {
            server.context.as_ref().create(ip_address(parent)).await.unwrap();
        }
        control_plane::create(&server.context, &plane).await.unwrap();
        assert_eq!(own_service(&server.context), want, "{left:?}");
    }
}

#[tokio::test]
async fn address_of_another_service_that_was_left_is_taken() {
    let server = TestServer::start().await;
    let labels = json!({"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    let parent = json!({"resource": "services", "namespace": "default", "name": "a"});
    let left = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "spec": {"parentRef": parent},
        "metadata": {"name": "10.0.0.9", "labels": labels}
    });
    server.context.as_ref().create(left).await.unwrap();
    let message = refused(&server, "a", json!({"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}), 422).await;
    assert!(message.contains("provided IP is already allocated"), "{message}");
}

#[tokio::test]
async fn addresses_of_ready_service_cidrs_are_allocated() {
    let server = TestServer::start().await;
    let cidrs = "/apis/networking.k8s.io/v1/servicecidrs";
    let more = json!({"metadata": {"name": "more", "finalizers": ["a.b/c"]}, "spec": {"cidrs": ["10.77.0.0/30"]}});
    server.ok(Method::POST, cidrs, more).await;
    let wanted = |address: &str| json!({"clusterIP": address, "ports": [{"port": 80}]});
    let outside = |address: &str| {
        format!("failed to allocate IP {address}: the provided network does not match the current range")
    };
    let message = refused(&server, "a", wanted("10.77.0.1"), 422).await;
    assert!(message.contains(&outside("10.77.0.1")), "it is not ready: {message}");
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "2001-01-01T00:00:00Z"}]}});
    server.ok(Method::PATCH, &format!("{cidrs}/more/status"), ready).await;
    let service = create(&server, "a", wanted("10.77.0.1")).await;
    assert_eq!(service.str_at(&["spec", "clusterIP"]), "10.77.0.1");
    for (address, why) in [
        ("10.77.0.0", outside("10.77.0.0")),
        ("10.77.0.3", outside("10.77.0.3")),
        ("10.79.0.1", outside("10.79.0.1")),
        ("10.77.0.1", "provided IP is already allocated".to_owned()),
    ] {
        let message = refused(&server, "b", wanted(address), 422).await;
        assert!(message.contains(&why), "{address}: {message}");
    }
    server.ok(Method::DELETE, &format!("{cidrs}/more"), Value::Null).await;
    let message = refused(&server, "b", wanted("10.77.0.2"), 422).await;
    assert!(message.contains(&outside("10.77.0.2")), "it is being deleted: {message}");
}
