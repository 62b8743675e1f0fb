//! An authorized request for a resource, with its options and the limits that a higher layer sets.

use std::sync::Arc;

use access::audit::AuditContext;
use access::authorization::Authorized;
use base::request::parse_uint;
use machinery::{Result, Status, Text, Value};
use objects::{CollectionState, Expired, Key, Stored};
use resource::{Resource, Strategy, Subresource, Version, builtin, strategy};
use store::Revision;

use super::response::ResponseObject;
use super::warnings::Warnings;

/// An authorized request for a resource.
pub struct Request {
    pub authorized: Authorized,
    pub resource: Arc<Resource>,
    pub version: Arc<Version>,
    pub subresource: Subresource,
    /// The resource to which an object of another kind is posted.
    pub posted_to: Option<Arc<Resource>>,
    /// The strategy of the endpoint.
    pub(super) strategy: Arc<dyn Strategy>,
    /// The field manager of writes that name none, derived from the User-Agent.
    pub default_manager: Text,
    /// Whether admission applies. It does not apply to edits by the server itself.
    pub admitted: bool,
    /// Whether a dry run returns the object, for which it has to take its stored form.
    pub wants_object: bool,
    pub warnings: Warnings,
    /// The audit context, if the request is audited.
    pub audit_context: Option<Arc<AuditContext>>,
    /// If the request reads from an old cache: how far that is behind.
    pub lag: Option<Lag>,
    /// The limit on the content of the API, for requests of clients.
    pub capacity: Option<Arc<dyn Capacity>>,
    /// Completes the object that the request writes, if a higher layer asks for that.
    pub completion: Option<Box<dyn Completion>>,
    /// The object that a dry run uses in place of the stored one.
    pub stand_in: Option<Arc<Stored>>,
}

/// What a higher layer adds to the objects of a resource when they are written.
pub trait Completion: Send + Sync {
    /// Completes or refuses a valid object that is about to be written. `old` is the object that it replaces, if any.
    fn complete(&self, object: &mut Value, old: Option<&Value>) -> Result<()>;
}

/// How a write decodes the object that it changes, which decides the text of errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoding {
    /// As a get does: dry runs and deletions.
    AsGet,
    ForUpdate,
}

/// How much an API grows by a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// By an object of so many bytes.
    Object(usize),
    /// By so many bytes, of an object that exists already.
    Bytes(usize),
}

/// A limit on the content of an API, which applies to the writes of its clients.
pub trait Capacity: Send + Sync {
    /// Fails if there is no capacity for the growth.
    fn check(&self, growth: Growth) -> Result<()>;

    /// Counts bytes that are about to be written. Fails if too many have been written lately.
    fn spend(&self, bytes: usize) -> Result<()>;
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
    /// Whether it also serves consistent reads, which have no resourceVersion.
    pub consistent_reads: bool,
}

/// Parses a resourceVersion; an empty one is 0. The error has kube-apiserver's text.
pub fn parse_version(text: &str) -> Result<Revision, String> {
    if text.is_empty() {
        return Ok(0);
    }
    parse_uint(text).map_err(|why| format!("resourceVersion: Invalid value: {}: {why}", machinery::value::quote(text)))
}

/// Fails if a namespace is required and empty.
pub(super) fn check_namespace(namespace: Option<&str>) -> Result<()> {
    match namespace {
        Some("") => Err(Status::bad_request("Namespace parameter required.")),
        _ => Ok(()),
    }
}

/// Fails if no object can have this key, because the namespace is missing or the name is not a valid path segment.
pub(super) fn check_key(namespace: Option<&str>, name: &str) -> Result<()> {
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
            capacity: None,
            completion: None,
            stand_in: None,
        }
    }

    /// This request in another version.
    pub fn in_version(self, version: Arc<Version>) -> Request {
        let strategy = strategy::strategy(&self.resource, &version, self.subresource);
        Request { version, strategy, ..self }
    }

    /// Adds to the audit context, if there is one.
    pub fn audit(&self, add: impl FnOnce(&AuditContext)) {
        if let Some(audit_context) = &self.audit_context {
            add(audit_context);
        }
    }

    pub fn audited(self, audit_context: Option<Arc<AuditContext>>) -> Request {
        Request { audit_context, ..self }
    }

    /// This request, reading from an old cache.
    pub fn lagging(self, lag: Option<Lag>) -> Request {
        Request { lag, ..self }
    }

    /// This request, in an API whose content is limited.
    pub fn limited_by(self, capacity: Option<Arc<dyn Capacity>>) -> Request {
        Request { capacity, ..self }
    }

    /// This request, whose object a higher layer completes.
    pub fn completed_by(self, completion: Option<Box<dyn Completion>>) -> Request {
        Request { completion, ..self }
    }

    /// The objects and the revision of the old cache, if the request reads from one. The cache is never older than
    /// the client demands.
    pub(super) fn lagging_state(&self) -> Option<(CollectionState, Revision)> {
        let lag = self.lag?;
        let wanted = match self.query().get("resourceVersion").unwrap_or_default() {
            "" if !lag.consistent_reads => return None,
            wanted => parse_version(wanted).unwrap_or_default(),
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
    pub fn place(&self) -> Result<Key> {
        check_key(self.resource.namespaced.then(|| self.namespace().as_str()), self.name())?;
        self.check_path(self.name())?;
        Ok(self.resource.key(self.namespace(), self.name()))
    }

    /// The object that the request names, if there is one.
    pub(super) fn target(&self) -> Result<Option<Arc<Stored>>> {
        let path = self.place()?.path;
        Ok(self.stand_in.clone().or_else(|| self.resource.collection.get(&path)))
    }

    /// Fails if the namespace of the request cannot be part of a key in kube-apiserver. `name` is empty if the
    /// request is for all objects of the namespace.
    pub(super) fn check_path(&self, name: &str) -> Result<()> {
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

    /// The endpoint of the request, if it is a subresource that only this kind has.
    pub fn endpoint(&self) -> Option<builtin::OwnEndpoint> {
        self.resource.own_subresource(self.subresource.as_str()).map(|own| own.endpoint)
    }

    /// All objects of the kind, if they are computed instead of stored, such as ComponentStatuses.
    pub(super) fn computed(&self) -> Option<Vec<Value>> {
        self.resource.built_in().and_then(|row| row.computed()).map(|all| all())
    }

    /// The object as the endpoint shows it: in the version of the request, or the view of a subresource.
    pub async fn show(&self, stored: Arc<Stored>) -> Result<ResponseObject> {
        let shown = ResponseObject::converted(&self.resource, &self.version, stored).await?;
        match self.strategy.view() {
            Some(view) => view.of(&shown.into_value()).map(ResponseObject::Tree),
            None => Ok(shown),
        }
    }

    /// Like [`Request::show`], for reads: fails if the object cannot be decoded or converted.
    pub async fn read(&self, stored: Arc<Stored>) -> Result<ResponseObject> {
        let unreadable = |why| self.resource.unreadable(&stored, why);
        if let Some(view) = self.strategy.view() {
            let object = self.resource.read_converted(&stored, &self.version).await.map_err(unreadable)?;
            view.check_readable(&object)?;
        }
        self.show(stored.clone()).await.map_err(unreadable)
    }

    /// The error of a write whose precondition the stored object does not meet, as kube-apiserver's storage reports it.
    pub(super) fn broken_precondition(&self, dry_run: bool, why: &str) -> Status {
        let resource = &self.resource;
        let key = self.strategy.storage_codec().shown_key(&resource.key(self.namespace(), self.name()));
        // in a dry run, kube-apiserver's message has the key without prefix
        let key = if dry_run { key.trim_start_matches("/registry") } else { &key };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {why}"
        );
        Status::conflict(&resource.group, &resource.plural, self.name(), &why)
    }

    /// The object that a write changes, in the version of the endpoint.
    pub(super) async fn read_for_write(&self, stored: &Arc<Stored>, decoding: Decoding) -> Result<Value> {
        let (resource, version) = (&self.resource, &self.version);
        match decoding {
            Decoding::AsGet => {
                resource.read_converted(stored, version).await.map_err(|why| resource.unreadable(stored, why))
            }
            Decoding::ForUpdate => {
                resource.read_managed(stored, version).await.map_err(|why| resource.undecodable(stored, why))
            }
        }
    }

    pub fn api_version(&self) -> Text {
        self.resource.api_version(&self.version)
    }

    pub fn warn(&self, warning: impl Into<String>) {
        self.warnings.add(warning.into());
    }
}
