//! The workspaces of a server: follows the Workspace objects in `default`, and finds workspaces by name.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use access::flow::{SeatPool, SeatSupply};
use base::clock;
use base::request::FeatureGates;
use base::webhook::Egress;
use kinds::RuntimeConfig;
use machinery::{Release, Result, Text, Value};
use objects::{Event, EventKind, Key, Layout, Storage};
use parking_lot::Mutex;
use resource::Resource;
use tokio::sync::Notify;

use super::backing::{Backing, BegunSource, Declared, ForkSource, Forking, SourceUse, Sources};
use super::content::{Begun, Contents, Decoded, revision_of};
use super::copies::Copies;
use super::definition::{DEFAULT, ForkPoint, GROUP, PLURAL, Spec};
use super::label::pristine_id;
use super::log::InLog;
use super::memory::InMemory;
use super::unusable::Unusable;
use super::workspace::Workspace;
use crate::assembly::{ApiConfig, Observer};
use crate::controllers::Membership;
use crate::http::{BRANCHES, Edge, Health, RequestConfig};
use crate::verbs::{Context, Subresource};

/// Determines the optional APIs and the feature gates of a release.
pub type Features = Box<dyn Fn(Release) -> Result<(RuntimeConfig, FeatureGates), String> + Send + Sync>;

pub struct WorkspaceConfig {
    /// The optional APIs and the feature gates of a release that a workspace emulates.
    pub features: Features,
    pub url: String,
    /// Requests for the host `NAME.DOMAIN` are for the workspace NAME.
    pub domain: String,
    /// Whether kubeconfigs name that host: the certificate is valid for it.
    pub names_hosts: bool,
    /// The networks that webhooks and other calls of workspaces may reach.
    pub egress: Egress,
}

pub struct Parts {
    pub config: WorkspaceConfig,
    pub api: Arc<ApiConfig>,
    pub requests: RequestConfig,
    pub health: Arc<Health>,
    /// The number of watches of a workspace that sets no limit.
    pub watches_max: usize,
    /// The store of `default`, and its layout. Durable workspaces have the same layout, so that values are encrypted
    /// alike.
    pub storage: Storage,
}

/// An empty API: no user has created an object in it. New workspaces share its context.
pub struct EmptyApi {
    pub config: ApiConfig,
    pub context: Arc<Context>,
}

pub struct Workspaces {
    pub(super) parts: Parts,
    /// The seats that workspaces share, if API priority and fairness is enabled. There are as many as `default` has
    /// for itself.
    pub(super) seats: Option<Arc<SeatPool>>,
    /// The workspace `default`, set once it serves requests.
    pub(super) home: OnceLock<Weak<Edge>>,
    /// The backing of durable workspaces, unless the server is in memory or its store is shared.
    pub(super) log: Option<Arc<InLog>>,
    /// The backing of all workspaces in a store that several servers share.
    pub(super) copies: Option<Arc<Copies>>,
    /// In a shared store: makes this server one of those that run the controllers of workspaces.
    pub(super) membership: OnceLock<Arc<Membership>>,
    /// The empty API of each release. Workspaces that name no source begin from it. Locked while one is made, so that
    /// all that need it wait for one.
    pub(super) empty_apis: tokio::sync::Mutex<BTreeMap<Release, Arc<EmptyApi>>>,
    /// Which workspaces there are, and which of them need work. Locked for a look-up or a change of a map: the observer
    /// of `default` holds up all writes while it waits. The state of a workspace may be locked inside, not the other
    /// way round.
    pub(super) state: Mutex<ManagerState>,
    pub(super) has_changed: Notify,
}

#[derive(Default)]
pub struct ManagerState {
    pub all: HashMap<Text, Arc<Workspace>>,
    /// Workspaces that the controller has to process.
    pub changed: BTreeSet<Text>,
    /// In a shared store: workspaces that wait for the copy of their source to be complete, by the name of the source.
    pub waiting: BTreeMap<Text, Vec<Text>>,
    /// The expiry times of workspaces, in milliseconds since the Unix epoch. If a lifetime has changed, the earlier
    /// entry remains, and the specification decides when it is due.
    pub ends: BTreeSet<(i64, Text)>,
}

impl Workspaces {
    /// The workspaces of a server, without any at first.
    pub fn new(parts: Parts) -> Arc<Workspaces> {
        let seats = parts.api.seats.as_ref().map(SeatSupply::seats);
        let seats = seats.map(|seats| Arc::new(SeatPool::new(seats, PLURAL)));
        let (store, release) = (&parts.storage.store, parts.api.runtime.release);
        let copies = |copying| Arc::new(Copies { copying, release, run: clock::uuid(), deleted: Mutex::default() });
        Arc::new(Workspaces {
            log: store.clone().branching().map(|log| Arc::new(InLog { log })),
            copies: store.clone().copying().map(copies),
            parts,
            seats,
            home: OnceLock::new(),
            membership: OnceLock::new(),
            empty_apis: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            has_changed: Notify::new(),
        })
    }

    /// The observer of the objects of `default`.
    pub fn observer(self: &Arc<Self>) -> Observer {
        let workspaces = Arc::downgrade(self);
        Box::new(move |_, key, event| {
            if let Some(workspaces) = workspaces.upgrade() {
                workspaces.observe(key, event);
            }
        })
    }

    pub(super) fn home(&self) -> Option<Arc<Edge>> {
        self.home.get()?.upgrade()
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.parts.storage.layout
    }

    pub(super) fn kind(&self) -> Option<(Arc<Context>, Arc<Resource>)> {
        let context = self.home()?.context.clone();
        let resource = context.registry.get(GROUP, PLURAL)?;
        Some((context, resource))
    }

    pub(super) fn workspace(&self, name: &str) -> Option<Arc<Workspace>> {
        self.state.lock().all.get(name).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Workspace>> {
        self.state.lock().all.values().cloned().collect()
    }

    /// Follows the Workspace objects in `default`.
    ///
    /// A workspace forks its source here, before the request that creates it returns: what a client writes to the
    /// source afterwards is not in the fork. A fork shares what it has with its source, so it takes no longer the more
    /// objects there are.
    fn observe(&self, key: &Key, event: &Event) {
        let is_shared = self.copies.is_some();
        // unless the store is shared, `start` reads the objects that are there before `default` serves
        if key.group != GROUP || key.plural != PLURAL || !is_shared && self.home.get().is_none() {
            return;
        }
        let (name, uid) = (&key.path, &event.object.meta.uid);
        let object = event.object.body.to_managed_value(event.revision);
        let spec = Spec::read(&object);
        if event.kind == EventKind::Deleted {
            self.remove(name, uid);
            self.backing(&spec).end(uid);
            self.wake_forks(name);
        } else {
            match self.workspace(name).filter(|workspace| workspace.uid == *uid) {
                // the controller has written the status, for example
                Some(workspace) if !is_shared && workspace.spec() == spec => return,
                Some(workspace) => {
                    self.note_end(name, &spec);
                    workspace.change(spec, &object);
                }
                None => self.insert(self.begin(name, uid, spec, &object)),
            }
        }
        self.mark([name.clone()]);
    }

    /// Where the content of a workspace is kept.
    pub(super) fn backing(&self, spec: &Spec) -> Arc<dyn Backing> {
        match (&self.copies, &self.log) {
            (Some(copies), _) => copies.clone(),
            (None, Some(log)) if !spec.ephemeral => log.clone(),
            (_, log) => Arc::new(InMemory { log: log.as_ref().map(|log| log.log.clone()) }),
        }
    }

    /// A new workspace, which begins with what its source holds.
    pub(super) fn begin(&self, name: &Text, uid: &Text, spec: Spec, object: &Value) -> Workspace {
        let backing = self.backing(&spec);
        let content = backing.begin(&Declared { uid, spec: &spec, object }, self);
        Workspace::new(name, uid, spec, backing, content.unwrap_or_else(Contents::Failed))
    }

    /// Changes the status of a Workspace object, unless the server is stopping.
    pub(super) async fn change_status(&self, name: &str, update: impl Fn(&mut Value) + Send + Sync) -> Result<()> {
        let Some((context, resource)) = self.kind() else { return Ok(()) };
        context.as_server(&resource, "", name).through(Subresource::Status).change(update).await
    }

    /// Marks workspaces as changed, so that the controller processes them.
    pub(super) fn mark(&self, names: impl IntoIterator<Item = Text>) {
        self.state.lock().changed.extend(names);
        self.has_changed.notify_one();
    }

    /// Marks the workspaces that wait for the copy of `source` as changed.
    pub(super) fn wake_forks(&self, source: &Text) {
        let waiting = self.state.lock().waiting.remove(source);
        waiting.into_iter().for_each(|waiting| self.mark(waiting));
    }

    pub(super) fn insert(&self, workspace: Workspace) {
        let name = workspace.name.clone();
        self.note_end(&name, &workspace.spec());
        let former = self.state.lock().all.insert(name, Arc::new(workspace));
        // in a shared store, no event says that the former workspace was deleted if that was compacted
        former.iter().for_each(|former| former.close());
    }

    fn note_end(&self, name: &Text, spec: &Spec) {
        self.state.lock().ends.extend(spec.end.map(|end| (end, name.clone())));
    }

    fn remove(&self, name: &Text, uid: &Text) {
        let removed = match self.state.lock().all.entry(name.clone()) {
            Entry::Occupied(known) if known.get().uid == *uid => Some(known.remove()),
            _ => None,
        };
        removed.iter().for_each(|workspace| workspace.close());
    }

    pub(super) fn url_of(&self, name: &str) -> String {
        format!("{}{BRANCHES}{name}", self.parts.config.url)
    }

    /// The host that kubeconfigs name in addition to the URL, for clients that drop the path of a URL; empty if the
    /// certificate is not valid for it.
    pub(super) fn host_of(&self, name: &str) -> String {
        let WorkspaceConfig { domain, names_hosts, .. } = &self.parts.config;
        if *names_hosts { format!("{name}.{domain}") } else { String::new() }
    }
}

impl Sources for Workspaces {
    fn fork(&self, spec: &Spec, fork: &mut Forking<'_>) -> Result<Contents, Unusable> {
        let Some(name) = spec.from.as_deref() else { return Ok(Contents::Empty(None)) };
        if name != DEFAULT {
            let source = self.workspace(name).ok_or_else(|| Unusable::NoSource(name.to_owned()))?;
            return source.fork(spec, fork);
        }
        if let ForkPoint::Origin(_) = spec.fork_point {
            return Err(Unusable::BeganEmpty);
        }
        let home = self.home().ok_or("the server is stopping")?;
        let begun = Begun::found(self.parts.storage.store.clone(), self.parts.api.runtime.release);
        let begun = Begun { has_workspaces: true, is_complete: true, ..begun };
        let (activity, point) = (SourceUse::InUse(home.context.objects.clone()), spec.fork_point);
        fork(ForkSource::Begun(BegunSource { name, branch: None, begun, activity, point }))
    }
}

impl Sources for EmptyApi {
    fn fork(&self, _spec: &Spec, fork: &mut Forking<'_>) -> Result<Contents, Unusable> {
        let (release, objects) = (self.config.runtime.release, &self.context.objects);
        let store = objects.store().clone();
        let decoded = Decoded { objects: Arc::downgrade(objects), at: Some(revision_of(&*store)) };
        let begun = Begun { is_fresh: true, is_complete: true, decoded, ..Begun::found(store, release) };
        let (name, id, point) = ("an empty API", pristine_id(release), ForkPoint::Newest);
        let branch = Some(id.as_bytes());
        fork(ForkSource::Begun(BegunSource { name, branch, begun, activity: SourceUse::Fixed, point }))
    }
}
