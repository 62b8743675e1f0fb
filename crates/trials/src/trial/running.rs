//! One run of a scenario, in a fork of its own, with the disturbance of a cell or without one.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use base::clock;
use embed::{Fault, json};
use machinery::{Text, Value};

use super::cells::{Act, Cell, Edit, Effect, Steps};
use super::record::{Record, StepRecord};
use super::scenario::{Check, Scenario, Step, evaluate};
use crate::compare::{Ignored, LEFT_OUT, ObjectKey, Objects, compare};
use crate::engine::{Command, Ending, Error, Fork, Patience, RunningCommand, Write};
use crate::limits;

/// The code of the response to a write that has created an object, by whichever verb.
const CREATED: i64 = 201;

/// How runs are paced, as far as the runs without faults have shown.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The time in which nothing must happen, for each step.
    pub quiets: Vec<Duration>,
    /// The time in which nothing must happen before what looks wrong counts.
    pub last_quiet: Duration,
    pub timeout: Duration,
    /// The watches that run once the command has started, if that is known.
    pub watches: Option<u64>,
    /// The runs at the same time.
    pub parallel: usize,
}

/// What all runs of a trial have in common.
#[derive(Clone)]
pub struct Setting<'a> {
    pub scenario: &'a Scenario,
    /// The state in which every run begins.
    pub prepared: &'a Fork,
    pub pace: Pace,
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

impl Course<'_> {
    /// What happens in a step.
    fn in_step(self, step: usize) -> Self {
        match self {
            Course::AtRest(cell) | Course::Disturbed(cell, _) if !cell.disturbs(step) => Course::Clean,
            course => course,
        }
    }
}

/// A command that is started again when it has ended, as a Deployment would do.
struct Supervised {
    command: Command,
    running: Option<RunningCommand>,
    /// How it has ended, as often as it did so by itself.
    endings: Vec<Ending>,
    /// The watches that had been started before it was.
    before: u64,
}

/// A run in progress.
struct Run<'a> {
    setting: &'a Setting<'a>,
    course: Course<'a>,
    fork: Fork,
    /// That of the current step.
    patience: Patience,
    supervised: Supervised,
    observed: Observed,
    /// The gate that holds events, and the step after which it opens.
    gate: Option<usize>,
    /// The fault of all steps.
    lasting: Option<Fault>,
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
    let supervised = Supervised { command, running: None, endings: vec![], before: 0 };
    let observed = Observed::default();
    let patience = Patience { quiet: Duration::ZERO, timeout: setting.pace.timeout };
    let mut run =
        Run { setting, course, fork: fork.clone(), patience, supervised, observed, gate: None, lasting: None };
    let done = run.all().await;
    let observed = std::mem::take(&mut run.observed);
    drop(run);
    fork.delete().await?;
    done.map(|()| observed)
}

impl Run<'_> {
    async fn all(&mut self) -> Result<(), Error> {
        let mut last = self.setting.scenario.steps.len();
        if let Course::AtRest(cell) | Course::Disturbed(cell, _) = self.course
            && let (Act::Edit(..), Steps::One(step)) = (&cell.act, cell.steps)
        {
            // later steps may need what the user has deleted
            last = step.min(last);
        }
        for step in 0..=last {
            let done = self.step(step).await;
            self.blame(step, done)?;
            if !self.observed.symptoms.is_empty() {
                return self.count_lasting().await;
            }
        }
        let done = self.conclude(last).await;
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

    /// Adds the hits of the disturbance of all steps, of a run that ends before it does.
    async fn count_lasting(&mut self) -> Result<(), Error> {
        if let Some(fault) = &self.lasting {
            self.observed.hits += fault.hits().await?;
        }
        Ok(())
    }

    /// Ends the disturbance of all steps, and looks at the result.
    async fn conclude(&mut self, last: usize) -> Result<(), Error> {
        if let Some(fault) = self.lasting.take() {
            self.observed.hits += fault.hits().await?;
            fault.delete().await?;
            self.settle().await?;
            self.check(last).await?;
        }
        if self.setting.scenario.check.is_none() {
            // what is written from now on is written at rest
            self.noted().await?;
            let quiet = self.patience.quiet.max(self.setting.pace.last_quiet);
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
        self.patience.quiet = self.setting.pace.quiets.get(step).copied().unwrap_or(self.patience.quiet);
        // the requests of a check belong to no step
        self.noted().await?;
        let fault = self.disturb(step).await?;
        let mut performing = None;
        if step == 0 {
            self.start().await?;
            self.ready().await?;
        } else {
            performing = self.begin(step).await?;
        }
        let interrupts = self.act(step).filter(|act| act.interrupts()).cloned();
        if let (Some(fault), Some(act)) = (&fault, &interrupts) {
            self.interrupt(act, fault, performing.as_ref()).await?;
        }
        self.finish(step, performing).await?;
        let performed = clock::instant();
        if let Some(fault) = fault.filter(|_| interrupts.is_none()) {
            self.settle().await?;
            self.observed.hits += fault.hits().await?;
            fault.delete().await?;
        }
        if matches!(self.act(step), Some(Act::Down)) && self.supervised.running.is_none() {
            self.start().await?;
            self.ready().await?;
        }
        self.settle().await?;
        self.observed.active.push(performed.elapsed().saturating_sub(self.patience.quiet));
        if let Some(Act::StaleStart(..)) = self.act(step) {
            self.start_stale().await?;
        }
        if let Course::AtRest(Cell { act: Act::Edit(_, edit, object), .. }) = self.course.in_step(step) {
            self.edit(*edit, object).await?;
            self.settle().await?;
        }
        if self.gate.is_some_and(|last| step >= last) {
            self.open_gate().await?;
        }
        self.ended(step);
        let record = self.noted().await?;
        self.observed.record.0.push(record);
        if self.cell().is_none() {
            let objects = self.objects().await?;
            self.observed.objects.push(objects);
        }
        let is_early = self.cell().is_some_and(|cell| cell.begins_after(step));
        if is_early || self.lasting.is_some() || self.gate.is_some() {
            return Ok(());
        }
        self.check(step).await
    }

    /// Sets up the disturbance of a step. Returns a fault that ends with the step.
    async fn disturb(&mut self, step: usize) -> Result<Option<Fault>, Error> {
        let Course::Disturbed(cell, _) = self.course.in_step(step) else { return Ok(None) };
        let spec = cell.act.spec(&self.setting.clients, cell.count);
        match &cell.act {
            Act::Held(_) => {
                self.fork.workspace().testing("Gate", "gates", "late", spec).await?;
                self.gate = Some((step + 1).min(self.setting.scenario.steps.len()));
                Ok(None)
            }
            Act::Down => {
                self.supervised.running = None;
                self.observed.hits += 1;
                Ok(None)
            }
            Act::StaleStart(..) => Ok(None),
            Act::Release(_) => {
                self.observed.hits += 1;
                Ok(None)
            }
            Act::Recipe(..) | Act::Forbidden(_) if cell.disturbs(0) && cell.disturbs(1) => {
                if self.lasting.is_none() {
                    self.lasting = Some(self.fork.workspace().fault(spec).await?);
                }
                Ok(None)
            }
            _ => Ok(Some(self.fork.workspace().fault(spec).await?)),
        }
    }

    async fn start(&mut self) -> Result<(), Error> {
        self.supervised.running = None;
        // a Lease of its predecessor, which ended without releasing it, would make it wait
        self.fork.release_leases().await?;
        self.supervised.before = StepRecord::read(&self.fork.workspace().report().await?).started;
        self.supervised.running = Some(self.fork.start(&self.supervised.command)?);
        Ok(())
    }

    /// Waits until the command has started: it has the watches that it had in the run without faults.
    async fn ready(&mut self) -> Result<(), Error> {
        let timeout = self.patience.timeout;
        let Some(watches) = self.setting.pace.watches else {
            let Some(command) = &self.supervised.running else { return Ok(()) };
            return self.fork.begun(command, timeout).await;
        };
        // a fault may keep it from watching
        let began = clock::instant();
        while began.elapsed() < timeout.min(limits::READY) {
            self.restart_ended().await?;
            let report = self.fork.workspace().report().await?;
            let record = StepRecord::read(&report);
            let is_done = self.supervised.running.as_ref().is_none_or(|running| running.ending().is_some());
            let started = record.started.saturating_sub(self.supervised.before);
            if is_done || started >= watches.max(1) || watches == 0 && !record.requests.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(limits::BEGIN_LOOK).await;
        }
        Ok(())
    }

    /// Starts the command again if it has failed.
    async fn restart_ended(&mut self) -> Result<(), Error> {
        let Some(running) = &self.supervised.running else { return Ok(()) };
        let Some(ending) = running.ending().filter(|ending| !ending.is_success()) else { return Ok(()) };
        let failure = running.failure(ending);
        self.supervised.endings.push(ending);
        if self.cell().is_none() || self.supervised.endings.len() > limits::RESTARTS_MAX {
            return Err(failure);
        }
        self.start().await
    }

    /// Waits until nothing happens, and keeps the command running meanwhile.
    async fn settle(&mut self) -> Result<(), Error> {
        loop {
            self.restart_ended().await?;
            let patience = self.patience;
            let settled = async {
                match self.gate {
                    Some(_) => self.fork.settle_held(patience).await,
                    None => self.fork.settle(patience).await,
                }
            };
            match &self.supervised.running {
                Some(running) if running.ending().is_none() => tokio::select! {
                    settled = settled => return settled,
                    ending = running.ended() => if ending.is_success() { return self.fork.settle(patience).await },
                },
                _ => return settled.await,
            }
        }
    }

    async fn open_gate(&mut self) -> Result<(), Error> {
        let path = "/apis/testing.pintle.dev/v1alpha1/gates/late";
        let gate = self.fork.workspace().get(path).await?;
        self.observed.hits += u64::try_from(gate.int_at(&["status", "held"])).unwrap_or_default();
        self.fork.workspace().delete_object(path).await?;
        self.gate = None;
        self.settle().await
    }

    /// When a write of the command arrives, kills the command before or after the commit, and starts it again; or edits an
    /// object after the commit.
    async fn interrupt(&mut self, act: &Act, fault: &Fault, step: Option<&RunningCommand>) -> Result<(), Error> {
        let patience = self.patience;
        let hit = async {
            while fault.hits().await? == 0 {
                tokio::time::sleep(limits::BEGIN_LOOK).await;
            }
            Ok::<_, Error>(())
        };
        let over = async {
            if let Some(step) = step {
                step.ended().await;
            }
            self.fork.settle(patience).await
        };
        // the request is in flight until the fault is deleted, so the first to be done decides
        let is_hit = tokio::select! {
            biased;
            hit = hit => hit.map(|()| true),
            over = over => over.map(|()| false),
        };
        if !is_hit? {
            return Ok(fault.clone().delete().await?);
        }
        if let Act::Request(_, Effect::KilledBeforeCommit, _) = act {
            self.supervised.running = None;
        }
        // it is stopped while the request is handled, so that it does not see the response yet
        self.supervised.running.iter().for_each(RunningCommand::pause);
        fault.clone().delete().await?;
        if self.supervised.running.is_some() {
            let committed = Patience { quiet: limits::BEGIN_LOOK, timeout: limits::READY };
            let _ = self.fork.settle(committed).await;
        }
        if let Act::Edit(_, edit, object) = act {
            self.edit(*edit, object).await?;
            self.supervised.running.iter().for_each(RunningCommand::resume);
            return Ok(());
        }
        self.observed.hits += 1;
        self.start().await?;
        self.ready().await
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
        let stale = self.fork.workspace().fault(spec).await?;
        let late = json!({"match": matched, "effect": {"watch": "Delay", "delay": "1s"}});
        let late = self.fork.workspace().fault(late).await?;
        self.start().await?;
        self.ready().await?;
        self.settle().await?;
        self.observed.hits += stale.hits().await?;
        for fault in [stale, late] {
            fault.delete().await?;
        }
        self.settle().await
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
            Some(Step::Run(line)) => self.fork.start(&Command::shell(line)).map(Some),
            None => Ok(None),
        }
    }

    /// Waits for the end of the command of a step. A step may itself wait for the command under test, as `kubectl delete` does
    /// for finalizers; the disturbance then ends earlier.
    async fn finish(&mut self, step: usize, performing: Option<RunningCommand>) -> Result<(), Error> {
        let Some(performing) = performing else { return Ok(()) };
        let is_blocked = tokio::time::timeout(limits::STEP_BLOCKED, performing.ended()).await.is_err();
        if is_blocked && self.gate.is_some() {
            self.open_gate().await?;
        }
        if is_blocked && matches!(self.act(step), Some(Act::Down)) {
            self.start().await?;
            self.ready().await?;
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
        if step == 0 && self.act(step).is_some_and(|act| matches!(act, Act::Request(..)) && !act.interrupts()) {
            self.supervised.endings.clear();
        }
        if let Some(ending) = self.supervised.endings.last() {
            let text = format!("the command ended with {ending}, and was started again");
            self.symptom(step, text);
        }
    }

    /// What the clients did since the last report.
    async fn noted(&mut self) -> Result<StepRecord, Error> {
        let status = self.fork.report_and_forget().await?;
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
        let quiet = self.patience.quiet.max(self.setting.pace.last_quiet).max(limits::SECOND_LOOK);
        self.fork.settle(Patience { quiet, ..self.patience }).await?;
        self.look(step).await?.into_iter().for_each(|wrong| self.symptom(step, wrong));
        Ok(())
    }

    /// The objects, without labels that a user has removed: the command may restore them whenever it writes the object.
    async fn objects(&self) -> Result<Objects, Error> {
        let mut objects = self.fork.objects().await?;
        if let Course::AtRest(cell) | Course::Disturbed(cell, _) = self.course
            && let Act::Edit(_, Edit::Unlabels, key) = &cell.act
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
                let mut objects = self.fork.objects().await?;
                // the items of a list have no kind
                let kinds = self.fork.kinds().await?;
                for (key, object) in &mut objects {
                    let kind = kinds.iter().find(|kind| kind.resource == key.resource.as_str());
                    object.set_at(&["kind"], Value::from(kind.map_or("", |kind| kind.kind.as_str())));
                }
                Ok(evaluate(text, program, &objects).err().into_iter().collect())
            }
            Some(Check::Command(line)) => {
                let running = self.fork.start(&Command::shell(line))?;
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
