//! The verbs of resources: get, list, watch, create, update, patch, apply, delete, deletecollection.
//!
//! Invariants: no HTTP here. A verb takes an [`Authorized`] request with its options and returns an [`Outcome`] or a
//! [`Status`]. Every write goes through the one loop in `pipeline.rs`.

mod addresses;
mod admit;
mod as_server;
mod bootstrap;
mod change;
mod commit;
mod connect;
mod context;
mod continuation;
pub mod control_plane;
mod definitions;
mod delete;
mod deletion;
mod deliveries;
mod deposit;
mod flow_upkeep;
mod hooks;
mod image;
mod inflight;
mod items;
mod list;
mod meta;
mod naming;
mod outcome;
mod patch;
mod pipeline;
mod quota;
mod rbac;
mod reconcile;
mod request;
mod response;
mod review;
mod selection;
mod stand_in;
mod stored;
#[cfg(test)]
mod tests;
mod third_party;
mod tracking;
mod unreadable;
mod upkeep;
mod warnings;
mod watch;
mod write;

pub use as_server::{CONTROLLERS, SERVER, change_as, path_in, path_of};
pub use bootstrap::{
    TOKEN_TRACKING, bootstrap, create_namespaces, publish_trust, restore_registration, token_tracking,
};
pub use connect::connect;
pub use context::{Context, NeededRight, WriteRules};
pub use definitions::{PendingCrdDeletions, finalize};
pub use delete::{check_selection, delete, delete_as_server, delete_collection, empty_namespace};
pub use deliveries::{Deliveries, Passed, WatchEvent};
pub use deposit::deposit;
pub use flow_upkeep::{Kept, are_flows_changed, keep_flows};
pub use image::Image;
pub use items::Items;
pub use list::{catch_up, check_options, get, list};
pub use naming::{establish, establish_all, establish_peers};
pub use outcome::{Effect, ListOutcome, Outcome};
pub use patch::PatchKind;
pub use request::{Behind, Completion, Growth, Lag, Request, Room};
pub use response::ResponseObject;
pub use stand_in::{Addition, Provenance, StandIn, stand_in};
pub use upkeep::{create_missing, identify};
pub use warnings::Warnings;
pub use watch::{Watch, watch};
pub use write::{check_update_options, create, patch, update};

pub use resource::{Document, Format, Subresource};

/// The parts of the server that every verb uses.
pub struct Context {
    pub objects: Arc<Objects>,
    pub registry: Arc<Registry>,
    pub admission: Arc<Admission>,
    pub authentication: Authentication,
    pub authorizer: Authorizer,
    loopback: Loopback,
    /// API priority and fairness, if it is enabled.
    pub flow: Option<Arc<Flow>>,
    /// The aggregated API servers.
    pub aggregation: Arc<Aggregation>,
    /// The addresses and node ports of Services.
    pub allocation: Allocation,
    pub writes: WritesInFlight,
    /// The rules of a layer above, if it has any.
    pub write_rules: OnceLock<WriteRules>,
    /// Held while quotas are charged, so that concurrent charges do not conflict.
    quota_turn: tokio::sync::Mutex<()>,
    /// Held while the names of a CRD are accepted, so that no other CRD accepts the same names.
    naming_turn: tokio::sync::Mutex<()>,
}

impl Context {
    pub fn new(
        objects: Arc<Objects>,
        registry: Arc<Registry>,
        admission: Arc<Admission>,
        authentication: Authentication,
        (authorizer, loopback): (Authorizer, Loopback),
        flow: Option<Arc<Flow>>,
        aggregation: Arc<Aggregation>,
        allocation: Allocation,
    ) -> Context {
        Context {
            objects,
            registry,
            admission,
            authentication,
            authorizer,
            loopback,
            flow,
            aggregation,
            allocation,
            writes: WritesInFlight::new(),
            write_rules: OnceLock::new(),
            quota_turn: Default::default(),
            naming_turn: Default::default(),
        }
    }

    /// A resource of a built-in kind that is not registered, such as one whose objects are posted to a subresource.
    pub fn unregistered(&self, row: &'static builtin::BuiltIn) -> Arc<Resource> {
        Arc::new(resource::from_row(row, &[], &self.objects, self.registry.gates()))
    }

    /// The input of admission.
    fn cluster(&self) -> ClusterState<'_> {
        ClusterState { objects: &self.objects, registry: &self.registry, authorizer: &self.authorizer }
    }
}

/// An authorized request for a resource.
pub struct Request {
    pub authorized: Authorized,
    pub resource: Arc<Resource>,
    pub version: Arc<Version>,
    pub subresource: Subresource,
    /// The resource to which an object of another kind is posted.
    pub posted_to: Option<Arc<Resource>>,
    /// The strategy of the endpoint.
    strategy: Arc<dyn Strategy>,
    /// From the User-Agent, for writes that name no field manager.
    pub default_manager: Text,
    /// Whether admission applies; it does not to edits by the server itself.
    pub admitted: bool,
    /// Whether the object of a dry run is returned, so that it has to take its stored form.
    pub wants_object: bool,
    pub warnings: Warnings,
    /// The audit context of the request, if it is recorded.
    pub audit_context: Option<Arc<AuditContext>>,
    /// The old cache from which the request reads, if it does.
    pub lag: Option<Lag>,
    /// The limit of what the API holds, for a request of a client.
    pub room: Option<Arc<dyn Room>>,
    /// Completes the object that the request writes, if a layer above does so.
    pub completion: Option<Box<dyn Completion>>,
    /// What takes the place of the stored object, in a dry run.
    pub stand_in: Option<Arc<Stored>>,
}

/// What a layer above adds to the objects of a resource.
pub trait Completion: Send + Sync {
    /// Completes a valid object that is to be written, in place of `old` if there is one, or refuses it.
    fn complete(&self, object: &mut Value, old: Option<&Value>) -> Result<(), Status>;
}

/// A right that a write needs besides the one to make it: `verb` on the object `name` of a resource.
pub struct NeededRight {
    pub verb: &'static str,
    pub resource: &'static str,
    pub name: String,
}

/// The rules of a layer above about writes of objects.
pub struct WriteRules {
    /// The right that the write of an object needs, in place of the second object if there is one.
    pub needed_right: fn(&Resource, &Value, Option<&Value>) -> Option<NeededRight>,
    /// Changes an object that is to be created.
    pub prepare: fn(&Resource, &mut Value),
    /// Why the object of a name cannot be deleted, if it cannot.
    pub protection: fn(&Resource, &str) -> Option<&'static str>,
}

/// What a write adds to an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// An object of so many bytes.
    Object(usize),
    /// So many bytes of an object that exists.
    Bytes(usize),
}

/// The limit of what an API holds, for the writes of its clients.
pub trait Room: Send + Sync {
    /// Fails if there is no room for more.
    fn check(&self, growth: Growth) -> Result<(), Status>;

    /// Counts so many bytes that are to be written; fails if too many have been written lately.
    fn spend(&self, bytes: usize) -> Result<(), Status>;
}

/// How far a watch cache is behind the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// It has reached this revision.
    At(Revision),
    /// It lacks this many changes of the resource.
    Changes(usize),
}

/// A watch cache that is behind the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    pub behind: Behind,
    /// Whether it also serves reads that have to be consistent, those without a resourceVersion.
    pub consistent_reads: bool,
}

/// Fails if a namespace is required and empty.
fn check_namespace(namespace: Option<&str>) -> Result<(), Status> {
    match namespace {
        Some("") => Err(Status::bad_request("Namespace parameter required.")),
        _ => Ok(()),
    }
}

/// Fails if no object can have a key: its namespace is missing, or its name is not a valid path segment.
fn check_key(namespace: Option<&str>, name: &str) -> Result<(), Status> {
    check_namespace(namespace)?;
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    match machinery::names::path_segment(name).first() {
        Some(why) => {
            let quoted = machinery::value::quote(name);
            Err(Status::bad_request(format!("Name parameter invalid: {quoted}: {why}")))
        }
        None => Ok(()),
    }
}

impl Request {
    /// A request to which admission applies and that is not audited.
    pub fn new(
        authorized: Authorized,
        resource: Arc<Resource>,
        version: Arc<Version>,
        subresource: Subresource,
        default_manager: Text,
    ) -> Request {
        Request {
            strategy: strategy::strategy(&resource, &version, subresource),
            authorized,
            resource,
            version,
            subresource,
            default_manager,
            posted_to: None,
            admitted: true,
            wants_object: true,
            warnings: Default::default(),
            audit_context: None,
            lag: None,
            room: None,
            completion: None,
            stand_in: None,
        }
    }

    /// This request in another version.
    pub fn in_version(self, version: Arc<Version>) -> Request {
        let strategy = strategy::strategy(&self.resource, &version, self.subresource);
        Request { version, strategy, ..self }
    }

    /// This request with an audit context.
    pub fn audited(self, audit_context: Option<Arc<AuditContext>>) -> Request {
        Request { audit_context, ..self }
    }

    /// This request, which reads from an old cache.
    pub fn lagging(self, lag: Option<Lag>) -> Request {
        Request { lag, ..self }
    }

    /// This request, in an API that holds no more than a limit.
    pub fn limited_by(self, room: Option<Arc<dyn Room>>) -> Request {
        Request { room, ..self }
    }

    /// This request, whose object a layer above completes.
    pub fn completed_by(self, completion: Option<Box<dyn Completion>>) -> Request {
        Request { completion, ..self }
    }

    /// The objects and the revision of the old cache from which the request reads, if it does. The cache is never
    /// older than the client demands.
    fn lagging_state(&self) -> Option<(CollectionState, Revision)> {
        let lag = self.lag?;
        let wanted = match self.query().get("resourceVersion").unwrap_or_default() {
            "" if !lag.consistent_reads => return None,
            wanted => list::parse_version(wanted).unwrap_or_default(),
        };
        let collection = &self.resource.collection;
        let reached = match lag.behind {
            Behind::At(revision) => revision,
            Behind::Changes(changes) => collection.revision_before(changes),
        };
        let revision = reached.max(wanted);
        let oldest = |Expired { oldest }| Some((collection.at(oldest).ok()?, oldest));
        collection.at(revision).map_or_else(oldest, |state| Some((state, revision)))
    }

    /// This request, with an object posted to a resource of another kind.
    pub fn posted_to(self, resource: Option<Arc<Resource>>) -> Request {
        Request { posted_to: resource, ..self }
    }

    /// This request to a subresource.
    pub fn through(self, subresource: Subresource) -> Request {
        let strategy = strategy::strategy(&self.resource, &self.version, subresource);
        Request { subresource, strategy, ..self }
    }

    pub fn namespace(&self) -> &Text {
        &self.authorized.info.namespace
    }

    pub fn name(&self) -> &Text {
        &self.authorized.info.name
    }

    /// The key of the object of the request; fails if no object can have it. As in kube-apiserver, this is checked when the
    /// object is read, after the body has been decoded.
    pub fn place(&self) -> Result<Key, Status> {
        check_key(self.resource.namespaced.then(|| self.namespace().as_str()), self.name())?;
        self.check_path(self.name())?;
        Ok(self.resource.key(self.namespace(), self.name()))
    }

    /// The object that the request names, if there is one.
    fn target(&self) -> Result<Option<Arc<Stored>>, Status> {
        let path = self.place()?.path;
        Ok(self.stand_in.clone().or_else(|| self.resource.collection.get(&path)))
    }

    /// Fails if the namespace of the request cannot be part of a key of kube-apiserver. `name` is empty for all objects of the
    /// namespace.
    fn check_path(&self, name: &str) -> Result<(), Status> {
        if !self.resource.namespaced || !matches!(self.namespace().as_str(), "." | "..") {
            return Ok(());
        }
        let key = match name.is_empty() {
            true => self.resource.key("", self.namespace()),
            false => self.resource.key(self.namespace(), name),
        };
        let shown = format!("/{}", kinds::upstream_path(&key));
        Err(Status::untyped(500, format!("invalid key: {}", machinery::value::quote(&shown))))
    }

    /// Whether the object that the request names has more than `limit` bytes.
    pub fn stored_exceeds(&self, limit: usize) -> bool {
        let collection = &self.resource.collection;
        if self.name().is_empty() || collection.largest_bytes() <= limit {
            return false;
        }
        let path = self.resource.key(self.namespace(), self.name()).path;
        collection.get(&path).is_some_and(|stored| stored.body.bytes.len() > limit)
    }

    pub fn query(&self) -> &base::request::Query {
        &self.authorized.info.query
    }

    /// The namespace of the request; empty if the resource is cluster-scoped.
    pub fn scope(&self) -> &str {
        if self.resource.namespaced { self.namespace() } else { "" }
    }

    pub fn not_found(&self) -> Status {
        self.resource.not_found(self.name())
    }

    /// The own subresource that the request is for, if any.
    pub fn endpoint(&self) -> Option<builtin::OwnEndpoint> {
        self.resource.own_subresource(self.subresource.as_str()).map(|own| own.endpoint)
    }

    /// The objects of a kind that is computed instead of stored, such as ComponentStatus.
    fn computed(&self) -> Option<Vec<Value>> {
        self.resource.built_in().and_then(|row| row.behaviour.further.computed).map(|all| all())
    }

    /// An object in the form of the endpoint: in its version, or the view of its subresource.
    pub async fn show(&self, stored: Arc<Stored>) -> Result<ResponseObject, Status> {
        let shown = ResponseObject::converted(&self.resource, &self.version, stored).await?;
        match self.strategy.view() {
            Some(view) => view.of(&shown.into_value()).map(ResponseObject::Tree),
            None => Ok(shown),
        }
    }

    /// [`Request::show`] for a read, which fails if the object cannot be decoded or converted.
    pub async fn read(&self, stored: Arc<Stored>) -> Result<ResponseObject, Status> {
        let unreadable = |why| self.resource.unreadable(&stored, why);
        if let Some(view) = self.strategy.view() {
            let object = self.resource.read_converted(&stored, &self.version).await.map_err(unreadable)?;
            view.check_readable(&object)?;
        }
        self.show(stored.clone()).await.map_err(unreadable)
    }

    /// The object that a write changes, in the version of the endpoint. Dry runs and deletions decode it as a get does,
    /// whose errors have another text.
    async fn read_for_write(&self, stored: &Arc<Stored>, as_get: bool) -> Result<Value, Status> {
        let (resource, version) = (&self.resource, &self.version);
        match as_get {
            true => resource.read_converted(stored, version).await.map_err(|why| resource.unreadable(stored, why)),
            false => resource.read_managed(stored, version).await.map_err(|why| resource.undecodable(stored, why)),
        }
    }

    /// `group/version` of the request.
    pub fn api_version(&self) -> Text {
        self.resource.api_version(&self.version)
    }

    pub fn warn(&self, warning: impl Into<String>) {
        self.warnings.add(warning.into());
    }
}

#[derive(Clone, Debug)]
pub enum ResponseObject {
    /// A stored object in the version of the request, see [`Stored::rendition`].
    Stored(Arc<Stored>, Rendition),
    /// An object that was computed for this response.
    Tree(Value),
}

/// The bytes of a stored object in the version of its rendition.
fn body<'a>(stored: &'a Stored, rendition: &'a Rendition) -> &'a Body {
    rendition.as_deref().unwrap_or(&stored.body)
}

impl ResponseObject {
    pub fn stored(resource: &Resource, version: &Version, stored: Arc<Stored>) -> Result<ResponseObject, Status> {
        let rendition = resource.rendition(&stored, version)?;
        Ok(ResponseObject::Stored(stored, rendition))
    }

    /// [`ResponseObject::stored`], converted first if necessary.
    pub async fn converted(
        resource: &Resource,
        version: &Version,
        stored: Arc<Stored>,
    ) -> Result<ResponseObject, Status> {
        resource.prepare(&[&stored], version).await?;
        ResponseObject::stored(resource, version, stored)
    }

    pub fn to_value(&self) -> Value {
        match self {
            ResponseObject::Stored(stored, rendition) => body(stored, rendition).to_value(stored.revision),
            ResponseObject::Tree(value) => value.clone(),
        }
    }

    pub fn into_value(self) -> Value {
        match self {
            ResponseObject::Stored(stored, rendition) => body(&stored, &rendition).to_value(stored.revision),
            ResponseObject::Tree(value) => value,
        }
    }

    /// The stored object; `None` if the object was computed for this response.
    pub fn as_stored(&self) -> Option<&Stored> {
        match self {
            ResponseObject::Stored(stored, _) => Some(stored),
            ResponseObject::Tree(_) => None,
        }
    }

    /// The size of the object as JSON in bytes; 0 if it was computed for this response.
    pub fn stored_bytes(&self) -> usize {
        match self {
            ResponseObject::Stored(stored, rendition) => body(stored, rendition).bytes.len(),
            ResponseObject::Tree(_) => 0,
        }
    }

    /// The length of the object in protobuf, see [`Stored::protobuf_bytes`].
    pub fn protobuf_bytes(&self, form: ProtobufForm, measure: impl FnOnce() -> usize) -> usize {
        match self {
            ResponseObject::Stored(stored, None) => stored.protobuf_bytes(form, measure),
            _ => measure(),
        }
    }

    /// The object with another resourceVersion.
    pub fn at_revision(&self, revision: Revision) -> Value {
        match self {
            ResponseObject::Stored(stored, rendition) => body(stored, rendition).to_value(revision),
            ResponseObject::Tree(value) => value.clone(),
        }
    }

    /// Appends compact JSON.
    pub fn write(&self, out: &mut impl Sink) {
        match self {
            ResponseObject::Stored(stored, rendition) => body(stored, rendition).write(stored.revision, out),
            ResponseObject::Tree(value) => out.copy(value.to_json().as_bytes()),
        }
    }

    /// Appends compact JSON without `apiVersion` and `kind`, as in typed lists.
    pub fn write_untyped(&self, out: &mut impl Sink) {
        if let ResponseObject::Stored(stored, rendition) = self
            && body(stored, rendition).write_untyped(stored.revision, out)
        {
            return;
        }
        let mut value = self.to_value();
        value.remove_at(&["kind"]);
        value.remove_at(&["apiVersion"]);
        out.copy(value.to_json().as_bytes());
    }
}

pub struct ListOutcome {
    pub items: Items,
    pub revision: Revision,
    pub continue_token: String,
    pub remaining: Option<usize>,
    /// The shards that the list is limited to, if it is.
    pub shards: Option<ShardSelector>,
}

/// What a verb has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It has read or changed what exists.
    Done,
    Created,
    /// It has begun a deletion, which is not finished.
    Begun,
}

/// The outcome of a verb.
pub enum Outcome {
    Object(Effect, ResponseObject),
    /// A Status of success.
    Success(Effect, Value),
    List(ListOutcome),
}
