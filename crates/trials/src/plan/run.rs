//! Runs a change in one fork, and not in another.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use machinery::Text;

use super::Plan;
use super::reasons;
use crate::compare::{Ignored, Objects, compare};
use crate::engine::{Command, Engine, Error, Fork, Patience, Reach, Write};
use crate::limits;

/// How often the change happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runs {
    #[default]
    Once,
    /// In two forks, to show what differs between them.
    Twice,
}

/// What would change.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Files and directories of manifests to apply.
    pub applied: Vec<PathBuf>,
    /// Objects to delete: `KIND/NAME` or `KIND/NAMESPACE/NAME`.
    pub deleted: Vec<String>,
    /// The controllers that run without the change.
    pub before: Option<Command>,
    /// The controllers that run with the change; those of `before` if there are none.
    pub command: Option<Command>,
    pub patience: Patience,
    pub runs: Runs,
    /// What the command of the change reaches.
    pub reach: Reach,
}

impl Default for Changes {
    fn default() -> Changes {
        let patience = Patience { quiet: Duration::from_secs(1), timeout: Duration::from_secs(60) };
        let (applied, deleted, before, command, runs, reach) = Default::default();
        Changes { applied, deleted, before, command, patience, runs, reach }
    }
}

/// A fork that has settled.
#[derive(Default)]
struct Settled {
    objects: Objects,
    writes: Vec<Write>,
    /// The hosts that the command has asked for.
    hosts: Vec<String>,
}

/// Returns what the changes would do.
///
/// # Errors
///
/// A change is refused, a command fails, or something does not settle.
pub async fn plan(engine: &Engine, changes: &Changes) -> Result<Plan, Error> {
    engine.base().settle(Patience { quiet: limits::BEGIN_LOOK, ..changes.patience }).await?;
    let origin = origin(engine, changes).await?;
    let again = async {
        match changes.runs {
            Runs::Once => Ok(None),
            Runs::Twice => changed(&origin, changes).await.map(Some),
        }
    };
    let (one, other) = (unchanged(&origin, changes), unchanged(&origin, changes));
    let changed = changed(&origin, changes);
    let (found, one, other, changed, again) = tokio::try_join!(origin.objects(), one, other, changed, again)?;
    let kept: HashSet<Text> = found.values().map(|object| object.str_at(&["metadata", "uid"]).into()).collect();
    let (mut unchanged, mut ignored) = (Settled { objects: found, ..Settled::default() }, Ignored::default());
    // without controllers, nothing happens
    if let (Some(one), Some(other)) = (one, other) {
        origin.delete().await?;
        ignored.learn(&compare(&one.objects, &other.objects, &kept, &ignored));
        unchanged = Settled { writes: [one.writes, other.writes].concat(), ..one };
    }
    let differences = compare(&unchanged.objects, &changed.objects, &kept, &ignored);
    let lines = reasons::lines(&differences, &unchanged.objects, &changed.objects, &changed.writes);
    let refused = reasons::refusals(&changed.writes, &unchanged.writes);
    let mut varying = vec![];
    if let Some(again) = again {
        let between = compare(&changed.objects, &again.objects, &kept, &ignored);
        varying = reasons::varying(&changed.writes, &again.writes, &between);
    }
    let is_webhook = |resource: &str| resource.ends_with("webhookconfigurations.admissionregistration.k8s.io");
    let webhooks = changed.objects.keys().filter(|key| is_webhook(&key.resource)).map(ToString::to_string).collect();
    Ok(Plan { lines, refused, varying, webhooks, hosts: changed.hosts })
}

/// The state that is forked: the source, as the controllers of `before` leave it.
async fn origin(engine: &Engine, changes: &Changes) -> Result<Fork, Error> {
    let Some(before) = &changes.before else { return Ok(engine.base().clone()) };
    let fork = engine.base().fork().await?;
    run(&fork, Some(before), changes).await?;
    Ok(fork)
}

/// What the controllers of `before` do without the change, if there are any.
async fn unchanged(origin: &Fork, changes: &Changes) -> Result<Option<Settled>, Error> {
    let Some(before) = &changes.before else { return Ok(None) };
    let fork = origin.fork().await?;
    let settled = run(&fork, Some(before), changes).await?;
    fork.delete().await?;
    Ok(Some(settled))
}

async fn changed(origin: &Fork, changes: &Changes) -> Result<Settled, Error> {
    let fork = origin.fork().await?;
    let applied = fork.workspace().apply(&changes.applied).await?;
    if applied.is_empty() && !changes.applied.is_empty() {
        let paths: Vec<String> = changes.applied.iter().map(|path| path.display().to_string()).collect();
        return Err(Error::Setup(format!("no manifests are found in {}", paths.join(", "))));
    }
    for name in &changes.deleted {
        fork.delete_named(name).await?;
    }
    let settled = run(&fork, changes.command.as_ref().or(changes.before.as_ref()), changes).await?;
    fork.delete().await?;
    Ok(settled)
}

/// Runs a command in a fork until everything has settled.
async fn run(fork: &Fork, command: Option<&Command>, changes: &Changes) -> Result<Settled, Error> {
    let network = fork.network(changes.reach)?;
    let mut running = None;
    match command {
        None => fork.settle(changes.patience).await?,
        Some(command) => {
            fork.release_leases().await?;
            let command = running.insert(network.start(command, fork.kubeconfig())?);
            fork.settle_with(command, changes.patience).await?;
        }
    }
    let settled = Settled { objects: fork.objects().await?, writes: fork.writes().await?, hosts: network.hosts() };
    if let Some(running) = running {
        running.stop().await;
    }
    Ok(settled)
}
