//! The kind Workspace: its definition, and the specification as the server reads it.

use machinery::{Release, Result, Status, Value};
use objects::Key;
use resource::Resource;
use resource::builtin::{DEFINITION_GROUP, DEFINITIONS};
use store::Revision;

use crate::verbs::{NeededRight, WriteRules};

/// The name of the workspace at `/`.
pub const DEFAULT: &str = "default";
pub const GROUP: &str = "workspaces.pintle.dev";
/// The plural of the kind. Requests for the content of a workspace are authorized with its subresource `content`.
pub const PLURAL: &str = "workspaces";

/// The CustomResourceDefinition of workspaces.
pub fn definition() -> Result<Value> {
    let decoded = machinery::yaml::decode(include_bytes!("workspaces.yaml"));
    decoded.map(|decoded| decoded.value).map_err(|error| Status::internal(error.to_string()))
}

/// Whether a key is that of a Workspace object or of their CRD, which only `default` has.
pub fn is_of_workspaces(key: &Key) -> bool {
    let is_definition = || key.path.strip_prefix(PLURAL).and_then(|rest| rest.strip_prefix('.')) == Some(GROUP);
    key.group == GROUP || key.plural == DEFINITIONS && key.group == DEFINITION_GROUP && is_definition()
}

/// The specification of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The workspace that is forked; `None` for a new API, which has only the objects that every server creates.
    pub from: Option<String>,
    pub fork_point: ForkPoint,
    /// Whether the workspace is sealed: it can only be read and forked.
    pub template: bool,
    /// Whether the workspace ends with the server.
    pub ephemeral: bool,
    /// The release to emulate; `None` for the release of the source.
    pub release: Option<Release>,
    /// When the workspace expires, in milliseconds since the Unix epoch.
    pub end: Option<i64>,
    pub controllers: RunningControllers,
    /// Any text: changing it resets the workspace.
    pub reset: String,
    pub limits: Limits,
}

/// The state of its source that a workspace begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkPoint {
    /// The state of the source when it is forked.
    #[default]
    Newest,
    /// Its state at this revision.
    At(Revision),
    /// Its beginning. If a revision is given, the fork fails unless it is the source's.
    Origin(Option<Revision>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunningControllers {
    /// Those of the server.
    #[default]
    All,
    /// None that deletes, expires or completes objects: they stay as they were captured.
    None,
}

/// The limits of a workspace; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub objects: usize,
    pub bytes: usize,
    pub requests_in_flight: usize,
    pub watches: usize,
    /// Bytes per second that may be written.
    pub write_rate: usize,
}

/// The names of the limits in the specification.
const LIMITS: [&str; 5] = ["objects", "bytes", "requestsInFlight", "watches", "writtenBytesPerSecond"];

impl Spec {
    /// Reads the specification of an object that is valid by its schema.
    pub fn read(object: &Value) -> Spec {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let text = |path: &[&str]| spec.str_at(path).to_owned();
        let flag = |name: &str| spec.is_true_at(&[name]);
        let limits = LIMITS.map(|name| limit(object, name));
        let [objects, bytes, requests_in_flight, watches, write_rate] = limits;
        Spec {
            from: Some(text(&["from", "workspace"])).filter(|source| !source.is_empty()),
            fork_point: match (spec.at(&["from", "origin"]), text(&["from", "resourceVersion"]).parse().ok()) {
                (Some(Value::Bool(true)), revision) => ForkPoint::Origin(revision),
                (_, revision) => revision.map_or(ForkPoint::Newest, ForkPoint::At),
            },
            template: flag("template"),
            ephemeral: flag("ephemeral"),
            release: text(&["kubernetesVersion"]).parse().ok(),
            end: end(object),
            controllers: match spec.str_at(&["controllers"]) {
                "None" => RunningControllers::None,
                _ => RunningControllers::All,
            },
            reset: text(&["reset"]),
            limits: Limits { objects, bytes, requests_in_flight, watches, write_rate },
        }
    }
}

/// The rules for writes of Workspace objects in `default`.
pub const WRITE_RULES: WriteRules = WriteRules { needed_right, prepare, protection };

/// A limit in the specification of a workspace; 0 if there is none.
fn limit(object: &Value, name: &str) -> usize {
    let limit = object.at(&["spec", "limits", name]).and_then(Value::as_int);
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or_default()
}

/// Gives a new fork the limits of its source, unless its own are lower. Otherwise a user could escape the limits by
/// forking. Gives it no controllers if its source has none and it does not ask for them.
fn prepare(resource: &Resource, new: &mut Value) {
    if resource.group != GROUP || resource.plural != PLURAL {
        return;
    }
    let source = Spec::read(new).from.and_then(|source| resource.collection.get(&source));
    let Some(source) = source.map(|stored| stored.body.to_value(stored.revision)) else { return };
    let controllers = source.at(&["spec", "controllers"]).filter(|_| new.at(&["spec", "controllers"]).is_none());
    if let Some(controllers) = controllers.cloned() {
        new.set_at(&["spec", "controllers"], controllers);
    }
    for name in LIMITS {
        let (most, own) = (limit(&source, name), limit(new, name));
        if most > 0 && (own == 0 || own > most) {
            new.set_at(&["spec", "limits", name], Value::from(most));
        }
    }
}

/// Protects the CRD of workspaces: `kubectl delete crd --all` would delete every workspace with it.
fn protection(resource: &Resource, name: &str) -> Option<&'static str> {
    let is_it = resource.group == DEFINITION_GROUP
        && resource.plural == DEFINITIONS
        && name.strip_prefix(PLURAL).and_then(|rest| rest.strip_prefix('.')) == Some(GROUP);
    is_it.then_some("all workspaces would be deleted with it; a server without --workspaces deletes it")
}

/// The right that a write of a Workspace needs besides the right to make the write. A user who forks a workspace can
/// read all of it, and by `from.resourceVersion` its past, so forking requires the right to read the source. Forking
/// `default` requires a verb of its own, so that no rule about workspaces reveals the Secrets of `default`.
fn needed_right(resource: &Resource, new: &Value, old: Option<&Value>) -> Option<NeededRight> {
    if resource.group != GROUP || resource.plural != PLURAL {
        return None;
    }
    let source = Spec::read(new).from?;
    let verb = if source == DEFAULT { "fork-default" } else { "fork" };
    let is_known = old.is_some_and(|old| old.at(&["spec", "from"]) == new.at(&["spec", "from"]));
    (!is_known).then_some(NeededRight { verb, resource: PLURAL, name: source })
}

/// When the lifetime of a workspace ends, in milliseconds since the Unix epoch; `None` without a `ttl`.
fn end(object: &Value) -> Option<i64> {
    let ttl = machinery::time::parse_duration(object.str_at(&["spec", "ttl"])).ok().filter(|ttl| !ttl.is_zero())?;
    let (created, _) = machinery::time::parse_rfc3339(object.str_at(&["metadata", "creationTimestamp"]))?;
    created.checked_mul(1000)?.checked_add(i64::try_from(ttl.as_millis()).ok()?)
}
