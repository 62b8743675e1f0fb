//! The consequences of a write are carried out even if the request that made it is dropped, at any of its await points.

mod namespaces;

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use http::Method;
use machinery::{Value, json};
use objects::Stored;
use schema::definition::is_condition_true;

use super::*;
use crate::test_server;
use crate::verbs::{self, Document};

/// Kinds: their group, plural and path.
const DEFINITIONS: (&str, &str, &str) =
    ("apiextensions.k8s.io", "customresourcedefinitions", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
const NAMESPACES: (&str, &str, &str) = ("", "namespaces", "/api/v1/namespaces");
/// More polls than any of these requests needs.
const POLLS: usize = 40;
const PATIENCE: Duration = Duration::from_secs(30);

/// Polls a future up to `polls` times, each time when it has been woken, then drops it. `None` if it did not complete.
async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match Pin::as_mut(&mut future).poll(context) {
            Poll::Pending if left > 0 => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        }
    })
    .await
}

struct TestServer {
    context: Arc<Context>,
    api: test_server::TestServer,
}

impl TestServer {
    async fn new() -> TestServer {
        let api = test_server::TestServer::start().await;
        start(&api.context, &api.controllers, Duration::from_secs(300), Records::Kept, &api.stop.subscribe());
        TestServer { context: api.context.clone(), api }
    }

    async fn create(&self, (group, plural, path): (&str, &str, &str), object: Value, polls: usize) -> bool {
        let resource = self.context.registry.get(group, plural).unwrap();
        let request = self.context.controller_request("tester", &resource, &Method::POST, path);
        let document = Document::json(&object);
        dropped_after(polls, verbs::create(&self.context, &request, &document)).await.is_some()
    }

    async fn delete(&self, (group, plural, path): (&str, &str, &str), name: &str, polls: usize) {
        let resource = self.context.registry.get(group, plural).unwrap();
        let request = self.context.controller_request("tester", &resource, &Method::DELETE, &format!("{path}/{name}"));
        dropped_after(polls, verbs::delete(&self.context, &request, None)).await;
    }

    fn stored(&self, (group, plural, _): (&str, &str, &str), name: &str) -> Option<Arc<Stored>> {
        self.context.registry.get(group, plural).unwrap().collection.get(name)
    }

    /// Waits until a condition holds, which is evaluated after every write.
    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let wait = async {
            loop {
                let revision = self.context.objects.revision();
                if holds() {
                    return;
                }
                self.context.objects.wait_for(revision + 1).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"));
    }
}

fn plural(number: usize) -> String {
    format!("boats{number}")
}

fn definition(number: usize) -> Value {
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let names = json!({"plural": (plural(number)), "kind": (format!("Boat{number}"))});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": (format!("{}.harbor.example.com", plural(number)))},
        "spec": {"group": "harbor.example.com", "scope": "Namespaced", "names": names, "versions": [version]}})
}

#[tokio::test]
async fn dropped_create_leaves_established_crd_or_none() {
    let server = TestServer::new().await;
    let mut completed = 0;
    for polls in 0..POLLS {
        completed += usize::from(server.create(DEFINITIONS, definition(polls), polls).await);
    }
    assert!(completed > 0 && completed < POLLS, "some of {POLLS} requests are dropped, {completed} are not");
    let mut stored = 0;
    for number in 0..POLLS {
        let name = format!("{}.harbor.example.com", plural(number));
        let established = || {
            let found = server.stored(DEFINITIONS, &name);
            found.is_none_or(|found| is_condition_true(&found.body.to_value(0), "Established"))
        };
        server.until(&format!("{name} is established"), established).await;
        stored += usize::from(server.stored(DEFINITIONS, &name).is_some());
    }
    assert!(stored > completed, "{stored} definitions are stored of {completed} completed requests");
}

#[tokio::test]
async fn dropped_delete_completes_or_has_no_effect() {
    let server = TestServer::new().await;
    for number in 0..POLLS {
        assert!(server.create(DEFINITIONS, definition(number), usize::MAX).await);
        assert!(server.create(NAMESPACES, json!({"metadata": {"name": (plural(number))}}), usize::MAX).await);
    }
    for polls in 0..POLLS {
        server.delete(DEFINITIONS, &format!("{}.harbor.example.com", plural(polls)), polls).await;
        server.delete(NAMESPACES, &plural(polls), polls).await;
    }
    for number in 0..POLLS {
        let name = format!("{}.harbor.example.com", plural(number));
        let is_not_deleting = |of, name: &str| server.stored(of, name).is_none_or(|stored| !stored.meta.deleting);
        server.until(&format!("{name} is gone"), || is_not_deleting(DEFINITIONS, &name)).await;
        server.until(&format!("namespace {number} is gone"), || is_not_deleting(NAMESPACES, &plural(number))).await;
    }
    assert!(server.stored(NAMESPACES, &plural(POLLS - 1)).is_none(), "a delete that is not dropped deletes");
}
