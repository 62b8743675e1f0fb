//! A fork: an API of its own, with the objects of what it was forked from.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::clock;
use embed::{Value, Workspace, json};

use super::command::{Command, RunningCommand};
use super::error::Error;
use super::files::Directory;
use super::kinds::Kinds;
use super::network::{Network, Reach};
use super::writes::{OWN, Write};
use crate::compare::{ObjectKey, Objects};
use crate::limits;

/// Where older versions of client-go keep the leader.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";

/// How long is waited for rest, and how long nothing must happen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    pub quiet: Duration,
    pub timeout: Duration,
}

/// An API of its own. It is deleted with [`Fork::delete`], or with the engine.
#[derive(Clone)]
pub struct Fork {
    workspace: Workspace,
    kubeconfig: PathBuf,
    files: Arc<Directory>,
}

impl Fork {
    /// Takes over a new workspace, and begins to record the writes to it.
    pub(super) async fn begin(workspace: Workspace, files: Arc<Directory>) -> Result<Fork, Error> {
        let kubeconfig = files.write(&format!("{}.kubeconfig", workspace.name()), &workspace.kubeconfig()?)?;
        let fork = Fork { workspace, kubeconfig, files };
        // writes are recorded from the first report on
        fork.report().await?;
        Ok(fork)
    }

    /// A fork of this one, with its objects as they are now. Nothing is copied.
    pub async fn fork(&self) -> Result<Fork, Error> {
        Fork::begin(self.workspace.fork().await?, self.files.clone()).await
    }

    /// For objects, faults and everything else that an API has.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The file with which programs reach this API.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The network for a command that runs in this fork.
    pub fn network(&self, reach: Reach) -> Result<Network, Error> {
        let kubeconfig = self.workspace.kubeconfig()?;
        let server = kubeconfig.split_once("https://").map_or("", |(_, rest)| rest);
        let end = server.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').unwrap_or(server.len());
        let api = server[..end].parse().map_err(|error| Error::Setup(format!("the API has no port: {error}")))?;
        Network::new(reach, api)
    }

    pub fn start(&self, command: &Command) -> Result<RunningCommand, Error> {
        RunningCommand::start(command, &self.kubeconfig)
    }

    /// Deletes an object that a user names, as `KIND/NAME` or `KIND/NAMESPACE/NAME`. A namespace is needed only if objects of this name are in
    /// several.
    pub async fn delete_named(&self, given: &str) -> Result<(), Error> {
        let kinds = self.kinds().await?;
        let wrong = || Error::Setup(format!("{given:?} is neither KIND/NAME nor KIND/NAMESPACE/NAME"));
        let (kind, rest) = given.split_once('/').ok_or_else(wrong)?;
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        let kind = kinds.named(kind)?;
        let list =
            self.workspace.get(&format!("{}?fieldSelector=metadata.name%3D{name}", kind.path(namespace, ""))).await?;
        match list.items_at(&["items"]) {
            [] => Err(Error::Setup(format!("there is no object {given:?} in the source"))),
            [one] => {
                let path = kind.path(one.str_at(&["metadata", "namespace"]), one.str_at(&["metadata", "name"]));
                self.workspace.delete_object(&path).await?;
                Ok(())
            }
            several => {
                let namespaces: Vec<&str> = several.iter().map(|one| one.str_at(&["metadata", "namespace"])).collect();
                let namespaces = namespaces.join(", ");
                Err(Error::Setup(format!(
                    "{given:?} is in several namespaces ({namespaces}): name one, as KIND/NAMESPACE/NAME"
                )))
            }
        }
    }

    /// Deletes all Leases, and takes their leaders from older locks. A controller would otherwise wait until the lock of its predecessor,
    /// which does not run here, has expired.
    pub async fn release_leases(&self) -> Result<(), Error> {
        for (plural, kind) in [("configmaps", "ConfigMap"), ("endpoints", "Endpoints")] {
            let list = self.workspace.get(&format!("/api/v1/{plural}")).await?;
            for lock in list.items_at(&["items"]).iter().filter(|object| is_lock(object)) {
                let [namespace, name] = ["namespace", "name"].map(|field| lock.str_at(&["metadata", field]));
                let mut free =
                    json!({"apiVersion": "v1", "kind": (kind), "metadata": {"name": (name), "namespace": (namespace)}});
                free.set_at(&["metadata", "annotations", LEADER], Value::from("{}"));
                self.workspace.apply_object(&free).await?;
            }
        }
        for lease in self.workspace.get(LEASES).await?.items_at(&["items"]) {
            let [namespace, name] = ["namespace", "name"].map(|field| lease.str_at(&["metadata", field]));
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
            self.workspace.delete_object(&path).await?;
        }
        Ok(())
    }

    /// Waits until a started command has ended, has begun to watch, or seems to poll. Fails if it fails, or sends no request.
    pub async fn begun(&self, command: &RunningCommand, within: Duration) -> Result<(), Error> {
        let began = clock::instant();
        let mut first_request = None;
        loop {
            if let Some(ending) = command.ending() {
                return if ending.is_success() { Ok(()) } else { Err(command.failure(ending)) };
            }
            let report = self.workspace.report().await?;
            let agents = || report.items_at(&["agents"]).iter().filter(|agent| agent.str_at(&["userAgent"]) != OWN);
            let mut watches = agents().flat_map(|agent| agent.items_at(&["watches"]));
            if watches.any(|watch| watch.int_at(&["running"]) > 0) {
                return Ok(());
            }
            if agents().next().is_some() {
                let since = *first_request.get_or_insert_with(clock::instant);
                if since.elapsed() >= limits::BEGIN_POLLING {
                    return Ok(());
                }
            } else if began.elapsed() >= within {
                return Err(Error::Silent { command: command.to_string(), within });
            }
            // polled, as the server does for a Settle; the end of the command is an event
            let _ = tokio::time::timeout(limits::BEGIN_LOOK, command.ended()).await;
        }
    }

    /// Waits until nothing happens any more: no request is in flight, every watch has received everything, controllers of the server have
    /// no work, and nothing but Leases has been written for the quiet time. Events that a Gate holds are not waited for. Fails with
    /// what it waits for.
    pub async fn settle(&self, Patience { quiet, timeout }: Patience) -> Result<(), Error> {
        let (began, mut rested) = (clock::instant(), Duration::ZERO);
        loop {
            // no request may last as long as quiet times and timeouts do
            let part = quiet.saturating_sub(rested).min(limits::SETTLE_SLICE);
            let left = timeout.saturating_sub(began.elapsed()).min(limits::SETTLE_SLICE + part);
            let text = |duration: Duration| format!("{}ms", duration.as_millis());
            let spec = json!({"quiet": (text(part)), "timeout": (text(left)), "held": "Ignore"});
            let settled = self.workspace.testing("Settle", "settles", "settle", spec).await?;
            let is_settled = settled.is_true_at(&["status", "settled"]);
            rested = if is_settled { rested + part } else { Duration::ZERO };
            if is_settled && rested >= quiet {
                return Ok(());
            }
            if began.elapsed() >= timeout {
                let why = if is_settled {
                    "the quiet time has not passed yet"
                } else {
                    settled.str_at(&["status", "message"])
                };
                return Err(Error::NeverSettled { waits_for: why.to_owned(), within: timeout });
            }
        }
    }

    /// Waits until a command has begun and everything has settled. Fails at once if the command fails.
    pub async fn settle_with(&self, command: &RunningCommand, patience: Patience) -> Result<(), Error> {
        self.begun(command, patience.timeout).await?;
        tokio::select! {
            biased;
            failure = command.failed() => Err(failure),
            settled = self.settle(patience) => settled,
        }
    }

    pub async fn kinds(&self) -> Result<Kinds, Error> {
        Kinds::read(&self.workspace).await
    }

    /// All objects of this fork as they are at one resourceVersion, without those of the server itself.
    pub async fn objects(&self) -> Result<Objects, Error> {
        let now = self.workspace.get("/api/v1/namespaces?limit=1").await?;
        let at =
            format!("?resourceVersion={}&resourceVersionMatch=Exact", now.str_at(&["metadata", "resourceVersion"]));
        let mut objects = Objects::new();
        for kind in self.kinds().await?.iter() {
            let mut list = match self.workspace.get(&(kind.path("", "") + &at)).await {
                // the kind is gone since discovery has named it
                Err(error) if error.code() == Some(404) => continue,
                list => list?,
            };
            let Some(Value::Array(items)) = list.remove_at(&["items"]) else { continue };
            for mut object in items.into_iter().filter(|object| !is_maintained(object) && !is_lock(object)) {
                // the items of a list have no kind
                object.set_at(&["kind"], Value::from(kind.kind.as_str()));
                let [namespace, name] = ["namespace", "name"].map(|field| object.str_at(&["metadata", field]).into());
                let key = ObjectKey { resource: kind.resource.as_str().into(), namespace, name };
                objects.insert(key, object);
            }
        }
        Ok(objects)
    }

    /// What each client has done since the last report: the `status` of a Report, with `writes`.
    pub async fn report(&self) -> Result<Value, Error> {
        let spec = json!({"writes": true, "reset": true});
        let mut report = self.workspace.testing("Report", "reports", "report", spec).await?;
        Ok(report.remove_at(&["status"]).unwrap_or_default())
    }

    /// The writes of clients since the last report, in the order in which they have ended. What the server's own controllers do is not
    /// among them.
    pub async fn writes(&self) -> Result<Vec<Write>, Error> {
        Ok(self.report().await?.items_at(&["writes"]).iter().map(Write::read).collect())
    }

    /// Deletes the fork. Commands in it should have been stopped.
    pub async fn delete(self) -> Result<(), Error> {
        let _ = std::fs::remove_file(&self.kubeconfig);
        Ok(self.workspace.delete().await?)
    }
}

/// Whether an object is a lock with which leaders are elected, as a Lease is.
fn is_lock(object: &Value) -> bool {
    object.at(&["metadata", "annotations", LEADER]).is_some()
}

/// Whether the server itself writes an object whenever it is missing: an APIService of a group that it serves.
fn is_maintained(object: &Value) -> bool {
    object.at(&["metadata", "labels", "kube-aggregator.kubernetes.io/automanaged"]).is_some()
}
