//! Workspaces: whole APIs of their own below `/clusters/NAME`, each with its objects, CRDs, RBAC, controllers and revisions.
//!
//! The API at `/` is the workspace `default`. The others are objects of `workspaces.pintle.dev` in it. A workspace
//! begins as a fork of another workspace or of an empty API, and shares objects with its source until either side
//! changes them. Lower layers know nothing of workspaces: each has a store and, while it is used, a context of its
//! own.

mod controller;
mod copied;
mod copier;
mod definition;
mod gate;
mod kept;
mod label;
mod open;
mod quick;
mod rewriting;
mod room;
#[cfg(test)]
mod tests;
mod workspace;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use access::audit::Audit;
use access::flow::{SeatPool, SeatSupply};
use base::request::FeatureGates;
use base::webhook::Egress;
use base::{clock, task};
use kinds::RuntimeConfig;
use machinery::{Release, Text, Value};
use objects::{Event, EventKind, Key};
use parking_lot::Mutex;
use store::{Memory, Revision, Store};
use tokio::sync::{Notify, watch};

use crate::assembly::{Blueprint, Observer};
use crate::controllers::Membership;
use crate::http::{BRANCHES, Branches, Edge, Health, InFlightMax};
use crate::verbs::Context;

use definition::{GROUP, PLURAL, Spec};
use kept::FoundWorkspace;
pub use kept::{workspace_of, workspaces_in};
pub use label::is_pristine;
pub use quick::kubeconfig;
use workspace::{Fork, Origin, Workspace, WorkspaceContent, earlier, revision_of};

/// The name of the workspace at `/`.
pub const DEFAULT: &str = "default";
/// The error of a fork of the origin of `default`.
const BEGAN_EMPTY: &str = "the workspace \"default\" began empty";

/// Determines the optional APIs and the feature gates of a release.
pub type Features = Box<dyn Fn(Release) -> Result<(RuntimeConfig, FeatureGates), String> + Send + Sync>;

/// The parts of the server that workspaces use.
pub struct Parts {
    pub blueprint: Arc<Blueprint>,
    pub features: Features,
    /// The networks that webhooks and other calls of workspaces may reach.
    pub egress: Egress,
    pub health: Arc<Health>,
    pub audit: Arc<Audit>,
    pub request_timeout: std::time::Duration,
    pub inflight_max: InFlightMax,
    /// The number of watches of a workspace that sets no limit.
    pub watches_max: usize,
    pub compatible_minor: u32,
    /// The URL of the server, for the status of workspaces.
    pub url: String,
    /// The domain DOMAIN: requests for the host `NAME.DOMAIN` go to the workspace NAME.
    pub domain: String,
    /// Whether kubeconfigs name that host, because the certificate is valid for it.
    pub names_hosts: bool,
    /// Whether the workspace `default` is durable.
    pub durable: bool,
    /// Whether workspaces serve `testing.pintle.dev`.
    pub testing: bool,
}

/// An empty API: no user has created an object in it.
struct Pristine {
    blueprint: Blueprint,
    /// Its context, which new workspaces share.
    context: Arc<Context>,
}

/// The workspaces of a server.
pub struct Workspaces {
    parts: Parts,
    /// The seats that workspaces share, if API priority and fairness is enabled. There are as many as `default` has
    /// for itself.
    seats: Option<Arc<SeatPool>>,
    /// The workspace `default`, set once it serves requests.
    home: OnceLock<Weak<Edge>>,
    all: Mutex<HashMap<Text, Arc<Workspace>>>,
    /// The empty API of each release. Workspaces that name no source begin from it.
    pristine: tokio::sync::Mutex<BTreeMap<Release, Arc<Pristine>>>,
    /// Workspaces found when the server started, until they are restored.
    found: Mutex<Vec<FoundWorkspace>>,
    /// Workspaces whose content was in the memory of an earlier run of the server.
    lost: Mutex<Vec<Text>>,
    /// Names of workspaces that the controller has to process.
    changed: Mutex<BTreeSet<Text>>,
    has_changed: Notify,
    /// In a shared store: the uids of workspaces that have been deleted, whose copies are to be removed.
    gone: Mutex<Vec<Text>>,
    /// In a shared store: workspaces that wait for the copy of their source to be complete, by the name of the
    /// source.
    waiting: Mutex<BTreeMap<Text, Vec<Text>>>,
    /// In a shared store: makes this server one of those that run the controllers of workspaces.
    membership: OnceLock<Arc<Membership>>,
    /// Identifies this run of the server in claims of copies.
    run: String,
    /// The expiry times of workspaces, in milliseconds since the Unix epoch. If a lifetime has changed, the earlier
    /// entry remains, and the specification decides when it is due.
    ends: Mutex<BTreeSet<(i64, Text)>>,
}

/// Serves the workspaces besides `default` until `stop` becomes true. `leads` says whether this server runs the
/// controllers of `default`. Fails with a one-line message.
pub async fn start(
    workspaces: Option<Arc<Workspaces>>,
    home: &Arc<Edge>,
    leads: watch::Receiver<bool>,
    stop: watch::Receiver<bool>,
) -> Result<Option<Arc<dyn Branches>>, String> {
    let Some(workspaces) = workspaces else { return Ok(None) };
    let _ = workspaces.home.set(Arc::downgrade(home));
    let _ = home.context.write_rules.set(definition::WRITE_RULES);
    controller::create_definition(&home.context).await.map_err(|status| status.message.clone())?;
    let store = home.context.objects.store();
    if store.copying().is_some() && !workspaces.parts.blueprint.controllers.alone {
        let _ = workspaces.membership.set(Membership::begin(&home.context, &stop));
    }
    match store.branching() {
        Some(log) => {
            workspaces.check_keys(log).await?;
            workspaces.restore(&**store, log);
        }
        // a server in memory is there for tests: made ahead of time, because the first test would wait for the empty
        // API longer than for the start of the server
        None => drop(task::spawn("empty API", workspaces.clone().prepare())),
    }
    if store.copying().is_some() {
        task::spawn("copies of workspaces", copier::run(workspaces.clone(), leads.clone(), stop.clone()));
        task::spawn("workspaces", controller::run_copied(workspaces.clone(), leads, stop));
    } else {
        task::spawn("workspaces", controller::run(workspaces.clone(), stop));
    }
    Ok(Some(workspaces))
}

impl Workspaces {
    /// The workspaces of a server, without any at first.
    pub fn new(parts: Parts) -> Arc<Workspaces> {
        let seats = parts.blueprint.seats.as_ref().map(SeatSupply::seats);
        let seats = seats.map(|seats| Arc::new(SeatPool::new(seats, PLURAL)));
        Arc::new(Workspaces {
            parts,
            seats,
            home: OnceLock::new(),
            all: Mutex::default(),
            pristine: tokio::sync::Mutex::default(),
            found: Mutex::default(),
            lost: Mutex::default(),
            changed: Mutex::default(),
            has_changed: Notify::new(),
            gone: Mutex::default(),
            waiting: Mutex::default(),
            membership: OnceLock::new(),
            run: clock::uuid(),
            ends: Mutex::default(),
        })
    }

    /// The observer of the objects of `default`.
    pub fn observer(self: &Arc<Self>) -> Observer {
        let workspaces = Arc::downgrade(self);
        Box::new(move |objects, key, event| {
            if let Some(workspaces) = workspaces.upgrade() {
                workspaces.observe(&**objects.store(), key, event);
            }
        })
    }

    fn home(&self) -> Option<Arc<Edge>> {
        self.home.get()?.upgrade()
    }

    fn workspace(&self, name: &str) -> Option<Arc<Workspace>> {
        self.all.lock().get(name).cloned()
    }

    /// Follows the Workspace objects in `default`. A workspace forks its source before the request that creates it
    /// returns.
    fn observe(&self, store: &dyn Store, key: &Key, event: &Event) {
        if key.group != GROUP || key.plural != PLURAL {
            return;
        }
        let name = &key.path;
        if store.copying().is_some() {
            return self.observe_copied(name, event);
        }
        let object = event.object.body.to_value(event.revision);
        let uid = &event.object.meta.uid;
        if self.home.get().is_none() {
            // `default` does not serve yet: the server is still loading objects
            return self.find(store, name, uid, &object);
        }
        if event.kind == EventKind::Deleted {
            self.remove(name, uid);
            store.branching().iter().for_each(|log| log.end(uid.as_bytes()));
        } else {
            let spec = Spec::read(&object);
            if let Some(end) = spec.end {
                self.ends.lock().insert((end, name.clone()));
            }
            match self.workspace(name).filter(|workspace| workspace.uid == *uid) {
                // the specification is the same: the controller has written the status, for example
                Some(workspace) if workspace.spec() == spec => return,
                Some(workspace) => workspace.change(spec, store.branching()),
                None => {
                    let content = WorkspaceContent::begin(self.begin(store, uid, &spec));
                    self.insert(name, Workspace::with_content(name, uid, spec, content));
                }
            }
        }
        self.changed.lock().insert(name.clone());
        self.has_changed.notify_one();
    }

    fn insert(&self, name: &Text, workspace: Workspace) {
        self.all.lock().insert(name.clone(), Arc::new(workspace));
    }

    fn remove(&self, name: &Text, uid: &Text) {
        let mut all = self.all.lock();
        if all.get(name).is_some_and(|workspace| workspace.uid == *uid)
            && let Some(workspace) = all.remove(name)
        {
            drop(all);
            workspace.close();
        }
    }

    /// Notes a workspace that exists when the server starts.
    fn find(&self, store: &dyn Store, name: &Text, uid: &Text, object: &Value) {
        let spec = Spec::read(object);
        if spec.ephemeral || store.branching().is_none() {
            return self.lost.lock().push(name.clone());
        }
        let status = object.get("status").cloned().unwrap_or(Value::Null);
        self.found.lock().push(FoundWorkspace {
            name: name.clone(),
            uid: uid.clone(),
            spec,
            status,
            is_forked_again: false,
        });
    }

    fn url_of(&self, name: &str) -> String {
        format!("{}{BRANCHES}{name}", self.parts.url)
    }

    /// The host that kubeconfigs name in addition to the URL, for clients that drop the path of a URL; empty if the
    /// certificate is not valid for it.
    fn host_of(&self, name: &str) -> String {
        if self.parts.names_hosts { format!("{name}.{}", self.parts.domain) } else { String::new() }
    }

    /// Forks the source of a new workspace. Fails with a one-line message.
    fn begin(&self, home: &dyn Store, uid: &Text, spec: &Spec) -> Result<Fork, String> {
        match home.branching() {
            Some(log) if !spec.ephemeral => match spec.from.as_deref() {
                None => Ok(Fork::Empty(None)),
                Some(DEFAULT) if spec.of_origin => Err(BEGAN_EMPTY.to_owned()),
                Some(DEFAULT) => self.fork_home_in_log(home, uid, spec),
                Some(name) => self.source(name)?.fork_in_log(log, uid, spec),
            },
            None if self.parts.durable && !spec.ephemeral => {
                Err("this server keeps workspaces in memory only: set spec.ephemeral to true".to_owned())
            }
            _ => self.fork(home, spec),
        }
    }

    fn source(&self, name: &str) -> Result<Arc<Workspace>, String> {
        self.workspace(name).ok_or_else(|| format!("there is no workspace {name:?} to fork"))
    }

    /// Forks in memory. Fails with a one-line message.
    fn fork(&self, home: &dyn Store, spec: &Spec) -> Result<Fork, String> {
        let Some(name) = &spec.from else { return Ok(Fork::Empty(None)) };
        let fork = match name.as_str() {
            DEFAULT if spec.of_origin => return Err(BEGAN_EMPTY.to_owned()),
            DEFAULT => Fork::Of(self.fork_home(home)?),
            name if spec.of_origin => self.source(name)?.fork_origin(home.branching())?,
            name => self.source(name)?.fork()?,
        };
        if let (Fork::Of(origin), Ok(wanted)) = (&fork, spec.revision.parse()) {
            let head = revision_of(&*origin.store);
            if wanted > head || wanted < head && spec.of_origin {
                return Err(format!("workspace {name:?} is at resourceVersion {head}, not at {wanted}"));
            }
            if wanted < head {
                return self.fork_at(name, origin, wanted);
            }
        }
        Ok(fork)
    }

    /// Forks an earlier revision in memory, which copies its keys. The rest is as in `newest`, a fork of the newest
    /// revision.
    fn fork_at(&self, name: &str, newest: &Origin, revision: Revision) -> Result<Fork, String> {
        let objects = match name {
            DEFAULT => self.home().map(|home| home.context.objects.clone()),
            name => self.source(name)?.objects(),
        };
        let snapshot = task::blocking(|| earlier(name, objects.as_ref(), revision))?;
        let store = Arc::new(Memory::with(snapshot));
        let objects = objects.as_ref().map(Arc::downgrade).unwrap_or_default();
        Ok(Fork::Of(Origin { store, objects, at: Some(revision), ..newest.clone() }))
    }

    fn fork_home(&self, store: &dyn Store) -> Result<Origin, String> {
        let store = store.fork(0).ok_or("the store of the workspace \"default\" cannot be forked")?;
        let home = self.home().ok_or("the server is stopping")?;
        let layout = home.context.objects.layout().clone();
        Ok(Origin {
            store,
            layout,
            release: self.parts.blueprint.runtime.release,
            has_workspaces: true,
            is_complete: true,
            objects: Weak::new(),
            at: None,
        })
    }
}
