//! What follows a write follows it though the request that made it is dropped, at whichever point.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use http::Method;
use machinery::{Value, json};
use objects::Stored;
use schema::definition::is_condition_true;

use super::*;
use crate::Storage;
use crate::verbs::{self, Document, controller_request};

const DEFINITIONS: (&str, &str, &str) =
    ("apiextensions.k8s.io", "customresourcedefinitions", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
const NAMESPACES: (&str, &str, &str) = ("", "namespaces", "/api/v1/namespaces");
/// More polls than any of these requests needs.
const POLLS: usize = 40;
const PATIENCE: Duration = Duration::from_secs(30);

/// Polls a future a number of times, each when it has been woken, and drops it.
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

struct World {
    context: Arc<Context>,
    _stop: watch::Sender<bool>,
}

impl World {
    async fn new() -> World {
        let derived = Arc::new(Derived::new(&Controllers::default(), false));
        let store = Storage::own(Arc::new(store::Embedded::in_memory()));
        let prepared = crate::prepare(
            store,
            Default::default(),
            Default::default(),
            derived.clone(),
            Default::default(),
            Default::default(),
        );
        let context = prepared.await.unwrap();
        let stop = watch::Sender::new(false);
        start(&context, &derived, Duration::from_secs(300), &stop.subscribe());
        World { context, _stop: stop }
    }

    async fn create(&self, (group, plural, path): (&str, &str, &str), object: Value, polls: usize) -> bool {
        let resource = self.context.registry.get(group, plural).unwrap();
        let request = controller_request("tester", &resource, &Method::POST, path);
        let document = Document::json(&object);
        dropped_after(polls, verbs::create(&self.context, &request, &document)).await.is_some()
    }

    async fn delete(&self, (group, plural, path): (&str, &str, &str), name: &str, polls: usize) {
        let resource = self.context.registry.get(group, plural).unwrap();
        let request = controller_request("tester", &resource, &Method::DELETE, &format!("{path}/{name}"));
        dropped_after(polls, verbs::delete(&self.context, &request, None)).await;
    }

    fn stored(&self, (group, plural, _): (&str, &str, &str), name: &str) -> Option<Arc<Stored>> {
        self.context.registry.get(group, plural).unwrap().collection.get(name)
    }

    /// Waits until a condition holds, which is looked at after every write.
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
    let world = World::new().await;
    let mut completed = 0;
    for polls in 0..POLLS {
        completed += usize::from(world.create(DEFINITIONS, definition(polls), polls).await);
    }
    assert!(completed > 0 && completed < POLLS, "some of {POLLS} requests are dropped, {completed} are not");
    let mut stored = 0;
    for number in 0..POLLS {
        let name = format!("{}.harbor.example.com", plural(number));
        let established = || {
            let found = world.stored(DEFINITIONS, &name);
            found.is_none_or(|found| is_condition_true(&found.body.to_value(0), "Established"))
        };
        world.until(&format!("{name} is established"), established).await;
        stored += usize::from(world.stored(DEFINITIONS, &name).is_some());
    }
    assert!(stored > completed, "{stored} definitions are stored of {completed} completed requests");
}

#[tokio::test]
async fn dropped_delete_completes_or_has_no_effect() {
    let world = World::new().await;
    for number in 0..POLLS {
        assert!(world.create(DEFINITIONS, definition(number), usize::MAX).await);
        assert!(world.create(NAMESPACES, json!({"metadata": {"name": (plural(number))}}), usize::MAX).await);
    }
    for polls in 0..POLLS {
        world.delete(DEFINITIONS, &format!("{}.harbor.example.com", plural(polls)), polls).await;
        world.delete(NAMESPACES, &plural(polls), polls).await;
    }
    for number in 0..POLLS {
        let name = format!("{}.harbor.example.com", plural(number));
        let rests = |of, name: &str| world.stored(of, name).is_none_or(|stored| !stored.meta.deleting);
        world.until(&format!("{name} is gone"), || rests(DEFINITIONS, &name)).await;
        world.until(&format!("namespace {number} is gone"), || rests(NAMESPACES, &plural(number))).await;
    }
    assert!(world.stored(NAMESPACES, &plural(POLLS - 1)).is_none(), "a delete that is not dropped deletes");
}
