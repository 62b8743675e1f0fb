//! Aggregated API servers: APIServices with a service.
//!
//! Invariants: the stored APIServices alone determine which servers there are, whether they are available and where requests
//! go. The discovery and OpenAPI documents of servers are cached here.

mod check;
mod documents;
mod identity;
mod openapi;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use base::webhook::{Backend, Client, Identity, TransportError};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use kinds::{API_SERVICES, REGISTRATION_GROUP};
use machinery::{Text, Value};
use objects::{Event, EventKind, Key};
use tokio::sync::watch;

use crate::limits;

pub use check::Condition;
pub use identity::{introduce, remove_hop_by_hop, set_upgrade, upgrade_of};
pub use openapi::Documents;

/// Servers by group and version.
type Remotes = BTreeMap<(Text, Text), Arc<Remote>>;

/// A server that serves a version of a group.
pub struct Remote {
    pub group: Text,
    pub version: Text,
    pub group_priority: i64,
    pub version_priority: i64,
    /// The spec and conditions of its APIService.
    pub available: bool,
    spec: Value,
    backend: Arc<Backend>,
    /// The version's entry of the aggregated discovery document.
    document: Arc<ArcSwap<Value>>,
    openapi: Arc<ArcSwap<Documents>>,
}

/// The aggregated API servers.
#[derive(Default)]
pub struct Aggregation {
    client: Arc<Client>,
    identity: Option<Arc<Identity>>,
    remotes: ArcSwap<Remotes>,
    /// Increased with every change of the discovery documents.
    generation: AtomicU64,
    /// Increased with every change of the OpenAPI documents.
    openapi_generation: AtomicU64,
    /// Increased when servers are added or removed or their address changes.
    moved: watch::Sender<u64>,
    /// Increased whenever `moved` is, and when the availability of a server changes.
    changed: watch::Sender<u64>,
}

impl Aggregation {
    /// `identity` is the client certificate for requests to the servers.
    pub fn new(client: Arc<Client>, identity: Option<Arc<Identity>>) -> Aggregation {
        Aggregation { client, identity, ..Aggregation::default() }
    }

    /// Observes events, which are passed in order.
    pub fn observe(&self, key: &Key, event: &Event) {
        if key.group == REGISTRATION_GROUP && key.plural == API_SERVICES {
            let body = &event.object.body;
            // most APIServices are local
            let wanted = (event.kind != EventKind::Deleted && body.has("spec", "service")).then(|| body.to_value(0));
            self.set(&key.path, wanted.filter(|service| service.at(&["spec", "service"]).is_some()));
        } else if key.group.is_empty() && key.plural == "services" && !self.remotes.load().is_empty() {
            // the Service of a server may have changed
            self.moved.send_modify(|count| *count += 1);
        }
    }

    /// Applies the APIService of this name; `None` means that it has been deleted.
    fn set(&self, name: &str, service: Option<Value>) {
        let Some((version, group)) = name.split_once('.') else { return };
        let place = (Text::from(group), Text::from(version));
        let before = self.remotes.load().get(&place).cloned();
        if before.is_none() && service.is_none() {
            return;
        }
        let remote = service.map(|service| Arc::new(self.remote(&place, &service, before.as_deref())));
        let moved = before.as_deref().map(|remote| &remote.spec) != remote.as_deref().map(|remote| &remote.spec);
        self.remotes.rcu(|remotes| {
            let mut next = Remotes::clone(remotes);
            match &remote {
                Some(remote) => next.insert(place.clone(), remote.clone()),
                None => next.remove(&place),
            };
            next
        });
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.openapi_generation.fetch_add(1, Ordering::AcqRel);
        if moved {
            self.moved.send_modify(|count| *count += 1);
        }
        self.changed.send_modify(|count| *count += 1);
    }

    fn remote(&self, (group, version): &(Text, Text), service: &Value, before: Option<&Remote>) -> Remote {
        let spec = service.get("spec").cloned().unwrap_or_default();
        let number = |key: &str| spec.int_at(&[key]);
        let known = before.filter(|before| before.spec == spec);
        Remote {
            group: group.clone(),
            version: version.clone(),
            group_priority: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
            available: schema::definition::is_condition_true(service, "Available"),
            backend: match known {
                Some(known) => known.backend.clone(),
                None => Arc::new(Backend::parse(&spec, self.identity.as_deref())),
            },
            document: match known {
                Some(known) => known.document.clone(),
                None => Arc::new(ArcSwap::from_pointee(documents::stale(version))),
            },
            openapi: known.map(|known| known.openapi.clone()).unwrap_or_default(),
            spec,
        }
    }

    /// The aggregated API server that serves a path, if there is one: `/apis/GROUP/VERSION` and paths below it, or
    /// the path of the group version's OpenAPI v3 document.
    pub fn find(&self, path: &str) -> Option<Arc<Remote>> {
        let remotes = self.remotes.load();
        if remotes.is_empty() {
            return None;
        }
        if let Some(name) = path.strip_prefix("/openapi/v3") {
            let (group, version) = name.strip_prefix("/apis/")?.split_once('/')?;
            let remote = remotes.get(&(group.into(), version.into()))?;
            return (!remote.openapi.load().v3.is_empty()).then(|| remote.clone());
        }
        let mut segments = path.strip_prefix("/apis/")?.split('/');
        let (group, version) = (segments.next()?, segments.next()?);
        remotes.get(&(group.into(), version.into())).cloned()
    }

    /// All aggregated API servers.
    pub fn all(&self) -> Vec<Arc<Remote>> {
        self.remotes.load().values().cloned().collect()
    }

    /// The generation under which the discovery entries of the servers may be cached.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The generation under which the OpenAPI documents of the servers may be cached.
    pub fn openapi_generation(&self) -> u64 {
        self.openapi_generation.load(Ordering::Acquire)
    }

    /// Increased when servers are added or removed or their address changes.
    pub fn moves(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    /// Forwards a request that has the user headers. The error is a response: its code and its text.
    pub async fn forward<B>(&self, remote: &Remote, request: Request<B>) -> Result<Response<Incoming>, (u16, String)>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let unavailable = || (503, "service unavailable\n".to_owned());
        if !remote.available {
            return Err(unavailable());
        }
        let address = self.client.locate(&remote.backend).map_err(|_| unavailable())?;
        let mut request = request;
        identity::forward(&mut request, &address.to_string());
        // a discovery request calls every server and waits for the slowest
        let discovering = request.uri().path().trim_end_matches('/') == remote.root();
        let bound = if discovering { limits::REMOTE_CHECK } else { Duration::MAX };
        let response = self.client.forward(&remote.backend, &address, request);
        let response = tokio::time::timeout(bound, response).await;
        let response = response.unwrap_or(Err(TransportError::Late));
        response.map_err(|why| (503, format!("error trying to reach service: {why}\n")))
    }

    /// Keeps the discovery and OpenAPI documents of servers up to date until `stop` becomes true.
    pub async fn follow(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let reads = self.all().into_iter().map(|remote| self.read(remote));
            futures_util::future::join_all(reads).await;
            let pause = if self.remotes.load().is_empty() { Duration::MAX } else { limits::REMOTE_DISCOVERY };
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Reads the resources of a server and its OpenAPI documents.
    async fn read(&self, remote: Arc<Remote>) {
        let read = tokio::time::timeout(limits::REMOTE_CHECK, documents::read(self, &remote)).await;
        let document = read.ok().flatten().unwrap_or_else(|| documents::stale(&remote.version));
        if **remote.document.load() != document {
            remote.document.store(Arc::new(document));
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        if !remote.available {
            return;
        }
        let known = remote.openapi.load_full();
        let read = tokio::time::timeout(limits::REMOTE_OPENAPI, openapi::read(self, &remote, &known)).await;
        if let Ok(read) = read
            && read != *known
        {
            remote.openapi.store(Arc::new(read));
            self.openapi_generation.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Remote {
    /// The version's entry of the aggregated discovery document.
    pub fn document(&self) -> Value {
        Value::clone(&self.document.load())
    }

    /// The OpenAPI documents of its group version.
    pub fn openapi(&self) -> Arc<Documents> {
        self.openapi.load_full()
    }

    /// The name of its APIService.
    pub fn name(&self) -> Text {
        Text::from(format!("{}.{}", self.version, self.group))
    }

    /// `/apis/GROUP/VERSION`.
    fn root(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn requests_route_to_their_group_and_version() {
        let aggregation = Aggregation::default();
        let service = |available: &str| {
            json!({
                "spec": {"group": "a.b", "version": "v1", "service": {"namespace": "n", "name": "s", "port": 443}},
                "status": {"conditions": [{"type": "Available", "status": available}]}
            })
        };
        let found = |path: &str| aggregation.find(path).map(|remote| remote.available);
        assert_eq!(found("/apis/a.b/v1"), None);
        let moves = || *aggregation.moves().borrow();
        aggregation.set("v1.a.b", Some(service("False")));
        let (seen, generation) = (moves(), aggregation.generation());
        aggregation.set("v1.a.b", Some(service("True")));
        assert_eq!((moves(), aggregation.generation() > generation), (seen, true), "it is where it was");
        for path in ["/apis/a.b/v1", "/apis/a.b/v1/", "/apis/a.b/v1/namespaces/n/things/x/log"] {
            assert_eq!(found(path), Some(true), "{path}");
        }
        let document = "/openapi/v3/apis/a.b/v1";
        assert_eq!(found(document), None);
        let read = Documents { v3: format!("{document}?hash=1"), ..Documents::default() };
        aggregation.all()[0].openapi.store(Arc::new(read));
        assert_eq!((found(document), found("/openapi/v3/apis/a.b/v2"), found("/openapi/v3")), (Some(true), None, None));
        for path in ["/apis/a.b", "/apis/a.b/v2", "/apis/a.b/v10", "/apis/b/v1", "/api/a.b/v1", "/apis", "/"] {
            assert_eq!(found(path), None, "{path}");
        }
        aggregation.set("v1.a.b", None);
        assert_eq!((found("/apis/a.b/v1"), moves() > seen), (None, true));
    }
}
