//! An API without connections and controllers, for commands that need the verdict of the server. A whole server
//! inside a program is started by `Server::start_in_process`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use access::admission::PolicyExpression;
use access::authentication::ClientCertificate;
use base::request::User;
use bytes::Bytes;
use futures_util::TryFutureExt as _;
use futures_util::future::BoxFuture;
use machinery::{Result, Text, Value, url::encode_path};
use objects::Storage;
use resource::{Document, Resource, Version};
use tokio::sync::watch;

use crate::assembly::{ApiConfig, Beginning, Outgoing, StartError};
use crate::controllers::Controllers;
use crate::http::{Body, Client, Door, Edge, EdgeParts, Health, RequestBody};
use crate::verbs::{self, Provenance, StandIn};

/// The configuration of a server without connections.
#[derive(Default)]
pub struct InProcessConfig {
    pub api: ApiConfig,
    /// Whether the objects are created that every cluster has: namespaces, roles, classes, APIServices.
    pub has_default_objects: bool,
}

/// A server without connections: requests go to the handler chain that also serves connections.
///
/// It runs no controllers and calls nothing, neither webhooks nor aggregated API servers; a CRD is established when the request that creates it has returned. It belongs to the Tokio
/// runtime on which it was started.
pub struct InProcess {
    edge: Arc<Edge>,
    /// Watches end when this is dropped.
    _stop: watch::Sender<bool>,
}

impl InProcess {
    /// Loads the store. Fails with a one-line message.
    ///
    /// The futures are boxed here for the reason that [`crate::Server::start`] gives.
    pub fn start(storage: Storage, config: InProcessConfig) -> BoxFuture<'static, Result<InProcess, String>> {
        Box::pin(Self::start_on(storage, config).map_err(|why| why.to_string()))
    }

    async fn start_on(storage: Storage, config: InProcessConfig) -> Result<InProcess, StartError> {
        let health = Arc::new(Health::new(storage.store.clone()));
        let door = Door::new(health.clone());
        let stop = watch::Sender::new(false);
        let api = ApiConfig { outgoing: Outgoing::None, controllers: Controllers::none(), ..config.api };
        // a request for a token would wait for a key that is never made
        let no_key = "a server without connections issues no tokens".to_owned();
        let _ = api.authentication.accounts.set_signing_key(Err(no_key));
        let context = match config.has_default_objects {
            true => api.assemble(Beginning::of(storage)).await?.context,
            false => api.load(Beginning::of(storage)).await?.context,
        };
        health.watch(&context.objects);
        health.loaded();
        let edge = Edge::new(EdgeParts::new(context, health, door.open.clone(), stop.subscribe()));
        Ok(InProcess { edge: Arc::new(edge), _stop: stop })
    }

    /// Handles a request of a user. A response is always returned; its body may be a stream, such as that of a watch.
    pub fn call(&self, caller: &Caller, request: http::Request<Bytes>) -> BoxFuture<'static, http::Response<Body>> {
        Box::pin(self.edge.clone().serve(caller.0.clone(), request.map(RequestBody::own)))
    }

    /// As [`InProcess::call`], with a body of a few KiB that has been decoded and has no duplicate fields. `text`
    /// is its encoding as JSON, if that is known.
    pub fn call_decoded(
        &self,
        caller: &Caller,
        request: http::Request<Arc<Value>>,
        text: Option<Bytes>,
    ) -> BoxFuture<'static, http::Response<Body>> {
        let request = request.map(|value| RequestBody::of_document(Document::decoded(value, text)));
        Box::pin(self.edge.clone().serve(caller.0.clone(), request))
    }
}

/// How objects of a kind are addressed.
#[derive(Clone)]
pub struct Mapping {
    resource: Arc<Resource>,
    version: Arc<Version>,
}

impl Mapping {
    /// Maps a kind in its first served version.
    fn first(resource: &Arc<Resource>) -> Option<Mapping> {
        let version = resource.served_versions().next()?.clone();
        Some(Mapping { resource: resource.clone(), version })
    }

    pub fn is_namespaced(&self) -> bool {
        self.resource.namespaced
    }

    pub fn group(&self) -> &Text {
        &self.resource.group
    }

    pub fn kind(&self) -> &Text {
        &self.resource.kind
    }

    pub fn plural(&self) -> &Text {
        &self.resource.plural
    }

    /// The name of the version.
    pub fn version(&self) -> &Text {
        &self.version.name
    }

    /// The path of an object, or of the collection if `name` is empty. The namespace of a cluster-scoped kind is ignored.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let namespace = if self.resource.namespaced { namespace } else { "" };
        let path = verbs::path_in(&self.resource, &self.version, &encode_path(namespace), &encode_path(name));
        path.trim_end_matches('/').to_owned()
    }
}

/// The mapping of a kind, if it is served. `api_version` is `version` or `group/version`.
fn mapping(edge: &Edge, api_version: &str, kind: &str) -> Option<Mapping> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = edge.context.registry.of_kind(group, version, kind)?;
    let version = resource.served(version)?.clone();
    Some(Mapping { resource, version })
}

/// The API of a running server, for tasks of its process.
#[derive(Clone)]
pub struct LocalApi {
    door: Arc<Door>,
}

impl LocalApi {
    pub(crate) fn new(door: Arc<Door>) -> LocalApi {
        LocalApi { door }
    }

    /// Handles a request of a user of this process, as if it had come over a connection. A response is always returned; its body may
    /// be a stream, such as that of a watch.
    pub fn call(&self, caller: &Caller, request: http::Request<Bytes>) -> BoxFuture<'static, http::Response<Body>> {
        let (door, client) = (self.door.clone(), caller.client());
        Box::pin(async move { door.dispatch(client, request.map(RequestBody::own)).await })
    }

    /// The mapping of a kind, if it is served. `api_version` is `version` or `group/version`.
    pub fn mapping(&self, api_version: &str, kind: &str) -> Option<Mapping> {
        mapping(self.door.edge()?, api_version, kind)
    }

    /// The mappings of all kinds, each in its first served version.
    pub fn mappings(&self) -> Vec<Mapping> {
        let snapshot = self.door.edge().map(|edge| edge.context.registry.snapshot());
        let resources = snapshot.iter().flat_map(|snapshot| snapshot.values());
        resources.filter_map(Mapping::first).collect()
    }
}

impl InProcess {
    /// The mapping of a kind, if it is served. `api_version` is `version` or `group/version`.
    pub fn mapping(&self, api_version: &str, kind: &str) -> Option<Mapping> {
        mapping(&self.edge, api_version, kind)
    }

    /// The expressions of all admission policies, with what they have resulted in since the policies were written.
    pub fn policy_expressions(&self) -> Vec<PolicyExpression> {
        self.edge.context.admission.policy_expressions()
    }

    /// The mapping of a name that users give, in lower case: a plural, a singular, a short name or a kind, in its
    /// first served version. If several groups have the name, the first one counts.
    pub fn find(&self, name: &str) -> Option<Mapping> {
        let name = name.to_lowercase();
        let snapshot = self.edge.context.registry.snapshot();
        let is_named = |resource: &&Arc<Resource>| {
            resource.plural == name
                || resource.singular == name
                || resource.kind.to_lowercase() == name
                || resource.short_names.iter().any(|short| *short == name)
        };
        Mapping::first(snapshot.values().find(is_named)?)
    }

    /// Stores an object as an earlier server might have written it: without validation and admission, and with its
    /// status and system fields. An object with the same name is replaced. Returns the resourceVersion.
    pub fn deposit<'a>(
        &'a self,
        mapping: &'a Mapping,
        namespace: &'a str,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<u64>> {
        let Mapping { resource, version } = mapping;
        Box::pin(async move {
            verbs::deposit(&self.edge.context, resource, version, &mapping.path(namespace, ""), object).await
        })
    }

    /// Makes an object that takes the place of a stored one in dry runs whose requests have the extension
    /// [`InPlaceOfStored`](crate::InPlaceOfStored). Nothing is stored, and nothing is validated.
    pub fn stand_in<'a>(
        &'a self,
        mapping: &'a Mapping,
        namespace: &'a str,
        object: &'a Value,
        origin: Provenance,
    ) -> BoxFuture<'a, Result<StandIn>> {
        let Mapping { resource, version } = mapping;
        let path = mapping.path(namespace, "");
        Box::pin(async move { verbs::stand_in(&self.edge.context, resource, version, &path, object, origin).await })
    }
}

/// The authenticated user of requests.
#[derive(Clone)]
pub struct Caller(Arc<Client>);

impl Caller {
    pub fn new(user: User) -> Caller {
        let user = Some(Box::new(user.authenticated()));
        let certificate = ClientCertificate::Valid { user, proxy: false, not_after: i64::MAX };
        Caller(Arc::new(Client { certificate, address: IpAddr::V4(Ipv4Addr::LOCALHOST) }))
    }

    /// The client of its requests.
    pub(crate) fn client(&self) -> Arc<Client> {
        self.0.clone()
    }

    /// A user that may do everything.
    pub fn admin() -> Caller {
        Caller::new(User::system("kubernetes-admin"))
    }
}

#[cfg(test)]
mod tests;
