//! One run of a scenario, in a fork of its own, with the disturbance of a cell or without one.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use base::clock;
use embed::{Workspace, json};
use machinery::{Text, Value};

use super::cells::{Act, Cell, Edit, Effect, Steps};
use super::record::{Record, StepRecord};
use super::scenario::{Check, Scenario, Step, evaluate};
use crate::compare::{Ignored, LEFT_OUT, ObjectKey, Objects, compare};
use crate::engine::{Command, Ending, Error, Fork, Patience, RunningCommand, Write};
use crate::limits;

/// The code of the response to a write that has created an object, by whichever verb.
const CREATED: i64 = 201;

/// What all runs of a trial have in common, as far as the runs without faults have shown.
#[derive(Clone)]
pub struct Setting<'a> {
    pub scenario: &'a Scenario,
    /// The state in which every run begins.
    pub prepared: &'a Fork,
    /// The time in which nothing must happen, for each step.
    pub quiets: Vec<Duration>,
    /// The time in which nothing must happen before what looks wrong counts.
    pub last_quiet: Duration,
    pub timeout: Duration,
    /// The watches that run once the command has started, if that is known.
    pub watches: Option<u64>,
    pub clients: Vec<Text>,
    pub seed: u64,
    /// The uids of the objects that the runs begin with.
    pub kept: HashSet<Text>,
    /// What differs without faults shows nothing.
    pub ignored: Ignored,
}

/// What happens in a run.
#[derive(Clone, Copy)]
pub enum Course<'a> {
    Clean,
    /// The edit of a cell happens when its step has settled.
    AtRest(&'a Cell),
    /// The disturbance of a cell. The objects after each step are those that are expected.
    Disturbed(&'a Cell, &'a [Objects]),
}

/// What a run has shown.
#[derive(Default)]
pub struct Observed {
    /// The requests, events and starts that were disturbed.
    pub hits: u64,
    /// The failures that were seen, each with its step.
    pub symptoms: Vec<Symptom>,
    /// The objects after each step, of a run that is not disturbed.
    pub objects: Vec<Objects>,
    pub record: Record,
    /// The suspicious requests after all steps, by check.
    pub findings: BTreeMap<String, i64>,
    /// How often each object was created: one that was deleted by mistake and created again is no other one at the end.
    pub created: BTreeMap<ObjectKey, usize>,
    /// The time from the end of each step until nothing happened any more.
    pub active: Vec<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symptom {
    pub step: usize,
    pub text: String,
}

/// A Fault or a Gate that is in effect until the end of a step.
struct InEffect {
    workspace: Workspace,
    path: String,
    last: usize,
}

impl InEffect {
    /// The requests that a Fault has hit, or the events that a Gate holds.
    async fn hits(&self) -> Result<u64, Error> {
        let object = self.workspace.get(&self.path).await?;
        let [hits, held] = ["hits", "held"].map(|field| object.int_at(&["status", field]));
        Ok(u64::try_from(hits + held).unwrap_or_default())
    }

    async fn end(self) -> Result<(), Error> {
        Ok(self.workspace.delete_object(&self.path).await.map(drop)?)
    }
}

/// A run in progress.
struct Run<'a> {
    setting: &'a Setting<'a>,
    course: Course<'a>,
    fork: Fork,
    /// That of the current step.
    patience: Patience,
    observed: Observed,
    /// The command, which is started again when it has ended, as a Deployment would do.
    command: Command,
    running: Option<RunningCommand>,
    /// How it has ended, as often as it did so by itself.
    endings: Vec<Ending>,
    /// The watches that had been started before it was.
    started_before: u64,
    effect: Option<InEffect>,
}

/// Runs the scenario. If it is disturbed, symptoms have its errors.
pub async fn run(setting: &Setting<'_>, course: Course<'_>) -> Result<Observed, Error> {
    let fork = setting.prepared.fork().await?;
    let seed = Value::Int(i64::try_from(setting.seed).unwrap_or_default());
    // uids and generated names of equal runs are equal; the capture of a cluster has a Clock of its own
    match fork.workspace().testing("Clock", "clocks", "clock", json!({"seed": seed})).await {
        Err(error) if error.code() != Some(409) => return Err(error.into()),
        _ => {}
    }
    let mut command = Command::shell(&setting.scenario.start);
    // two commands at once need two ports
    if let Ok(port) = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()) {
        command.environment.push(("PINTLE_PORT".into(), port.port().to_string().into()));
    }
    let mut run = Run {
        setting,
        course,
        fork,
        patience: Patience { quiet: Duration::ZERO, timeout: setting.timeout },
        observed: Observed::default(),
        command,
        running: None,
        endings: vec![],
        started_before: 0,
        effect: None,
    };
    let done = run.all().await;
    let Run { fork, observed, running, .. } = run;
    drop(running);
    fork.delete().await?;
    done.map(|()| observed)
}

impl Run<'_> {
    async fn all(&mut self) -> Result<(), Error> {
        let mut last = self.setting.scenario.steps.len();
        if let Course::AtRest(cell) | Course::Disturbed(cell, _) = self.course
            && let (Some(_), Steps::One(step)) = (cell.edit(), cell.steps)
        {
            // later steps may need what the user has deleted
            last = step.min(last);
        }
        for step in 0..=last {
            let done = self.step(step).await;
            self.blame(step, done)?;
            if !self.observed.symptoms.is_empty() {
                // the run ends before the disturbance does
                if let Some(effect) = &self.effect {
                    self.observed.hits += effect.hits().await?;
                }
                return Ok(());
            }
        }
        let done = self.conclude().await;
        self.blame(last, done)
    }

    /// Makes a symptom of a failure that a disturbance may have caused.
    fn blame(&mut self, step: usize, done: Result<(), Error>) -> Result<(), Error> {
        match done {
            Err(
                error @ (Error::NeverSettled { .. } | Error::Failed { .. } | Error::Silent { .. } | Error::Refused(_)),
            ) if self.cell().is_some() => {
                // the failure has ended the step before its hits were counted; repetitions show whether it was chance
                self.observed.hits += 1;
                self.symptom(step, error.to_string());
                Ok(())
            }
            done => done,
        }
    }

    /// Looks at what is written at rest.
    async fn conclude(&mut self) -> Result<(), Error> {
        if self.setting.scenario.check.is_none() {
            self.noted().await?;
            let mut quiet = self.setting.last_quiet;
            // the quiet time of the first run is long, and has just passed
            if self.setting.watches.is_some() {
                quiet = quiet.max(self.patience.quiet);
            }
            self.fork.settle(Patience { quiet, ..self.patience }).await?;
            self.noted().await?;
        }
        Ok(())
    }

    fn symptom(&mut self, step: usize, text: String) {
        self.observed.symptoms.push(Symptom { step, text });
    }

    /// The cell that disturbs this run.
    fn cell(&self) -> Option<&Cell> {
        match self.course {
            Course::Disturbed(cell, _) => Some(cell),
            _ => None,
        }
    }

    /// Whether this step is disturbed by an act.
    fn act(&self, step: usize) -> Option<&Act> {
        self.cell().filter(|cell| cell.disturbs(step)).map(|cell| &cell.act)
    }

    async fn step(&mut self, step: usize) -> Result<(), Error> {
        self.patience.quiet = self.setting.quiets.get(step).copied().unwrap_or(self.patience.quiet);
        // the requests of a check belong to no step
        self.noted().await?;
        self.disturb(step).await?;
        let mut performing = None;
        if step == 0 {
            self.restart().await?;
        } else {
            performing = self.begin(step).await?;
        }
        if self.act(step).is_some_and(Act::interrupts) {
            self.interrupt(step, performing.as_ref()).await?;
        }
        self.finish(step, performing).await?;
        let performed = clock::instant();
        if matches!(self.act(step), Some(Act::Down)) && self.running.is_none() {
            self.restart().await?;
        }
        self.settle().await?;
        self.observed.active.push(performed.elapsed().saturating_sub(self.patience.quiet));
        if let Some(Act::Request(_, Effect::StaleStart, _)) = self.act(step) {
            self.start_stale().await?;
        }
        if let Course::AtRest(cell) = self.course
            && let Some((edit, object)) = cell.edit().filter(|_| cell.disturbs(step))
        {
            self.edit(edit, object).await?;
            self.settle().await?;
        }
        if let Some(effect) = self.effect.take_if(|effect| step >= effect.last) {
            self.end(effect).await?;
        }
        self.ended(step);
        let record = self.noted().await?;
        self.observed.record.0.push(record);
        if self.cell().is_none() {
            let objects = self.objects().await?;
            self.observed.objects.push(objects);
        }
        let is_early = self.cell().is_some_and(|cell| cell.begins_after(step));
        if is_early || self.effect.is_some() { Ok(()) } else { self.check(step).await }
    }

    /// Sets up the disturbance of a step.
    async fn disturb(&mut self, step: usize) -> Result<(), Error> {
        let Some(cell) = self.cell().filter(|cell| cell.disturbs(step)).cloned() else { return Ok(()) };
        let last = self.setting.scenario.steps.len();
        let (kind, last) = match (&cell.act, cell.steps) {
            (Act::Request(_, Effect::StaleStart, _), _) => return Ok(()),
            (Act::Down | Act::Release(_), _) => {
                if cell.act == Act::Down {
                    self.running = None;
                }
                self.observed.hits += 1;
                return Ok(());
            }
            (Act::Recipe(..) | Act::Request(_, Effect::Forbidden, _), Steps::All) => ("Fault", last),
            (Act::Request(_, Effect::Late, _), _) => ("Gate", last.min(step + 1)),
            _ => ("Fault", step),
        };
        if self.effect.is_none() {
            let spec = cell.act.spec(&self.setting.clients, cell.count);
            self.effect = Some(self.put(kind, "disturbance", spec, last).await?);
        }
        Ok(())
    }

    /// Creates a Fault or a Gate.
    async fn put(&self, kind: &str, name: &str, spec: Value, last: usize) -> Result<InEffect, Error> {
        let (workspace, plural) = (self.fork.workspace().clone(), kind.to_lowercase() + "s");
        workspace.testing(kind, &plural, name, spec).await?;
        Ok(InEffect { workspace, path: format!("/apis/testing.pintle.dev/v1alpha1/{plural}/{name}"), last })
    }

    /// Ends the effect of a Fault or a Gate, and waits for what that sets free.
    async fn end(&mut self, effect: InEffect) -> Result<(), Error> {
        self.observed.hits += effect.hits().await?;
        effect.end().await?;
        self.settle().await
    }

    async fn start(&mut self) -> Result<(), Error> {
        self.running = None;
        // a Lease of its predecessor, which ended without releasing it, would make it wait
        self.fork.release_leases().await?;
        self.started_before = StepRecord::read(&self.fork.workspace().report().await?).started;
        self.running = Some(self.fork.start(&self.command)?);
        Ok(())
    }

    async fn restart(&mut self) -> Result<(), Error> {
        self.start().await?;
        self.ready().await
    }

    /// Waits until the command has started: it has the watches that it had in the run without faults.
    async fn ready(&mut self) -> Result<(), Error> {
        let timeout = self.patience.timeout;
        let Some(watches) = self.setting.watches else {
            let Some(command) = &self.running else { return Ok(()) };
            return self.fork.begun(command, timeout).await;
        };
        // a fault may keep it from watching
        let began = clock::instant();
        while began.elapsed() < timeout.min(limits::READY) {
            self.restart_ended().await?;
            let report = self.fork.workspace().report().await?;
            let record = StepRecord::read(&report);
            let is_done = self.running.as_ref().is_none_or(|running| running.ending().is_some());
            let started = record.started.saturating_sub(self.started_before);
            if is_done || started >= watches.max(1) || watches == 0 && !record.requests.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(limits::BEGIN_LOOK).await;
        }
        Ok(())
    }

    /// Starts the command again if it has failed.
    async fn restart_ended(&mut self) -> Result<(), Error> {
        let Some(running) = &self.running else { return Ok(()) };
        let Some(ending) = running.ending().filter(|ending| !ending.is_success()) else { return Ok(()) };
        let failure = running.failure(ending);
        self.endings.push(ending);
        if self.cell().is_none() || self.endings.len() > limits::RESTARTS_MAX {
            return Err(failure);
        }
        self.start().await
    }

    /// Waits until nothing happens, and keeps the command running meanwhile.
    async fn settle(&mut self) -> Result<(), Error> {
        loop {
            self.restart_ended().await?;
            let patience = self.patience;
            let settled = self.fork.settle(patience);
            match &self.running {
                Some(running) if running.ending().is_none() => tokio::select! {
                    settled = settled => return settled,
                    ending = running.ended() => if ending.is_success() { return self.fork.settle(patience).await },
                },
                _ => return settled.await,
            }
        }
    }

    /// When a write of the command arrives, kills the command before or after the commit, and starts it again; or edits an
    /// object after the commit.
    async fn interrupt(&mut self, step: usize, performing: Option<&RunningCommand>) -> Result<(), Error> {
        let (Some(act), Some(fault)) = (self.act(step).cloned(), self.effect.take()) else { return Ok(()) };
        let hit = async {
            while fault.hits().await? == 0 {
                tokio::time::sleep(limits::BEGIN_LOOK).await;
            }
            Ok::<_, Error>(())
        };
        let over = async {
            if let Some(performing) = performing {
                performing.ended().await;
            }
            self.fork.settle(self.patience).await
        };
        // the request is in flight until the fault is deleted, so the first to be done decides
        let is_hit = tokio::select! {
            biased;
            hit = hit => hit.map(|()| true),
            over = over => over.map(|()| false),
        };
        if !is_hit? {
            return fault.end().await;
        }
        if let Act::Request(_, Effect::KilledBeforeCommit, _) = act {
            self.running = None;
        }
        // it is stopped while the request is handled, so that it does not see the response yet
        self.running.iter().for_each(RunningCommand::pause);
        fault.end().await?;
        if self.running.is_some() {
            let committed = Patience { quiet: limits::BEGIN_LOOK, timeout: limits::READY };
            let _ = self.fork.settle(committed).await;
        }
        if let Act::Edit(_, edit, object) = act {
            self.edit(edit, &object).await?;
            self.running.iter().for_each(RunningCommand::resume);
            return Ok(());
        }
        self.observed.hits += 1;
        self.restart().await
    }

    /// Edits an object as a user would do, if it exists.
    async fn edit(&mut self, edit: Edit, object: &ObjectKey) -> Result<(), Error> {
        let kinds = self.fork.kinds().await?;
        let Some(kind) = kinds.iter().find(|kind| kind.resource == object.resource.as_str()) else { return Ok(()) };
        let path = kind.path(&object.namespace, &object.name);
        let edited = match edit {
            Edit::Deletes => self.fork.workspace().delete_object(&path).await,
            Edit::Unlabels => self.fork.workspace().patch(&path, &json!({"metadata": {"labels": null}})).await,
        };
        self.observed.hits += u64::from(edited.is_ok());
        Ok(())
    }

    /// Starts the command again, for which time has gone back: its first lists lack the changes of the step.
    async fn start_stale(&mut self) -> Result<(), Error> {
        let Some(cell) = self.cell() else { return Ok(()) };
        let spec = cell.act.spec(&self.setting.clients, cell.count);
        let matched = spec.get("match").cloned().unwrap_or_default();
        let stale = self.put("Fault", "disturbance", spec, 0).await?;
        let late = json!({"match": matched, "effect": {"watch": "Delay", "delay": "1s"}});
        let late = self.put("Fault", "late", late, 0).await?;
        self.restart().await?;
        self.settle().await?;
        late.end().await?;
        self.end(stale).await
    }

    /// Begins a step. Returns the command that performs it, if one does.
    async fn begin(&mut self, step: usize) -> Result<Option<RunningCommand>, Error> {
        match step.checked_sub(1).and_then(|index| self.setting.scenario.steps.get(index)) {
            Some(Step::Apply(objects)) => {
                for object in objects {
                    self.fork.workspace().apply_object(object).await?;
                }
                Ok(None)
            }
            Some(Step::Run(line)) => self.fork.start(&self.shell(line)).map(Some),
            None => Ok(None),
        }
    }

    /// A command of a step or a check. It has the environment of the command under test, whose port it may call.
    fn shell(&self, line: &str) -> Command {
        Command { environment: self.command.environment.clone(), ..Command::shell(line) }
    }

    /// Waits for the end of the command of a step. A step may itself wait for the command under test, as `kubectl delete` does
    /// for finalizers; the disturbance then ends earlier.
    async fn finish(&mut self, step: usize, performing: Option<RunningCommand>) -> Result<(), Error> {
        let Some(performing) = performing else { return Ok(()) };
        let is_blocked = tokio::time::timeout(limits::STEP_BLOCKED, performing.ended()).await.is_err();
        match self.cell().map(|cell| &cell.act).filter(|_| is_blocked) {
            Some(Act::Request(_, Effect::Late, _)) => {
                if let Some(gate) = self.effect.take() {
                    self.end(gate).await?;
                }
            }
            Some(Act::Down) if self.running.is_none() => self.restart().await?,
            _ => {}
        }
        let timeout = self.patience.timeout;
        match tokio::time::timeout(timeout, performing.ended()).await {
            Ok(ending) if ending.is_success() => Ok(()),
            Ok(ending) => Err(performing.failure(ending)),
            Err(_) => Err(Error::NeverSettled {
                waits_for: format!("step {step} ({performing}) still runs"),
                within: timeout,
            }),
        }
    }

    /// Notes how the command has ended by itself. One that gives up since a request of its start fails shows nothing: it is
    /// started again, as by a Deployment.
    fn ended(&mut self, step: usize) {
        if step == 0 && matches!(self.act(step), Some(Act::Request(_, Effect::Fails | Effect::LosesResponse, _))) {
            self.endings.clear();
        }
        if let Some(ending) = self.endings.last() {
            let text = format!("the command ended with {ending}, and was started again");
            self.symptom(step, text);
        }
    }

    /// What the clients did since the last report.
    async fn noted(&mut self) -> Result<StepRecord, Error> {
        let status = self.fork.report().await?;
        for check in limits::COMPARED_FINDINGS {
            let count = status.items_at(&["agents"]).iter().map(|agent| agent.int_at(&["counts", check])).sum();
            self.observed.findings.insert(check.to_owned(), count);
        }
        let writes = status.items_at(&["writes"]).iter().map(Write::read);
        let counts = |write: &Write| {
            write.code == CREATED
                && !write.object.name.is_empty()
                && !LEFT_OUT.contains(&write.object.resource.as_str())
        };
        for created in writes.filter(counts) {
            *self.observed.created.entry(created.object).or_default() += 1;
        }
        Ok(StepRecord::read(&status))
    }

    /// Checks the objects. A check that fails is repeated later, since the command may only be slow.
    async fn check(&mut self, step: usize) -> Result<(), Error> {
        if self.look(step).await?.is_empty() {
            return Ok(());
        }
        let quiet = self.patience.quiet.max(self.setting.last_quiet).max(limits::SECOND_LOOK);
        self.fork.settle(Patience { quiet, ..self.patience }).await?;
        self.look(step).await?.into_iter().for_each(|wrong| self.symptom(step, wrong));
        Ok(())
    }

    /// The objects, without labels that a user has removed: the command may restore them whenever it writes the object.
    async fn objects(&self) -> Result<Objects, Error> {
        let mut objects = self.fork.objects().await?;
        if let Course::AtRest(cell) | Course::Disturbed(cell, _) = self.course
            && let Some((Edit::Unlabels, key)) = cell.edit()
            && let Some(object) = objects.get_mut(key)
        {
            object.remove_at(&["metadata", "labels"]);
        }
        Ok(objects)
    }

    /// Runs the check once, or compares the objects with those of the runs without faults. Returns a line for each difference.
    async fn look(&mut self, step: usize) -> Result<Vec<String>, Error> {
        match &self.setting.scenario.check {
            None => {
                let Course::Disturbed(_, expected) = self.course else { return Ok(vec![]) };
                let Some(expected) = expected.get(step) else { return Ok(vec![]) };
                let found = compare(expected, &self.objects().await?, &self.setting.kept, &self.setting.ignored);
                Ok(found.iter().map(ToString::to_string).collect())
            }
            Some(Check::Expression(text, program)) => {
                Ok(evaluate(text, program, &self.fork.objects().await?).err().into_iter().collect())
            }
            Some(Check::Command(line)) => {
                let running = self.fork.start(&self.shell(line))?;
                let ended = tokio::time::timeout(self.patience.timeout, running.ended()).await;
                let Ok(ending) = ended else {
                    return Ok(vec![format!("the check ({line}) does not end")]);
                };
                if ending.is_success() {
                    return Ok(vec![]);
                }
                let output = running.output();
                let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
                Ok(vec![if lines.is_empty() { format!("the check ended with {ending}") } else { lines.join("; ") }])
            }
        }
    }
}
