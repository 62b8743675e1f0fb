//! A trial: runs without faults, then the cells, of which those that differ are repeated and shrunk.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base::clock;
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use futures_util::stream::{FuturesOrdered, FuturesUnordered};
use machinery::{Release, Text};
use tokio::sync::{OnceCell, Semaphore};

use super::cells::{Act, Cell, Steps, generate, without_one_right};
use super::record::Record;
use super::running::{Course, Observed, Setting, run};
use super::scenario::{Permissions, Scenario};
use crate::compare::{Ignored, compare};
use crate::engine::{Engine, Error, Fork, Patience, Settings};
use crate::limits;

/// How a trial is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The time in which nothing must happen; learnt from the run without faults by default.
    pub quiet: Option<Duration>,
    /// The longest wait for rest.
    pub timeout: Duration,
    /// The cells that run at the same time; by default three for each core, or six if these leave half of the processor time.
    pub parallel: Option<usize>,
    /// The only cells to run, as they are, if there are any.
    pub cells: Vec<Cell>,
}

impl Default for Options {
    fn default() -> Options {
        Options { quiet: None, timeout: limits::STEP_TIMEOUT, parallel: None, cells: vec![] }
    }
}

/// What a cell has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Same,
    Differs(Vec<String>),
    NotTried(NotTried),
}

machinery::text_enum! {
    /// Why a cell counts as not tried.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum NotTried {
        HitNothing = "hit nothing",
        BudgetUsedUp = "the budget was used up",
        /// It differed once, and in no repetition.
        NotRepeatable = "differed once, but not in repetitions that waited longer",
    }
}

/// Cells that show the same, with the smallest that does.
#[derive(Clone, Debug)]
pub struct Finding {
    pub cell: Cell,
    pub symptoms: Vec<String>,
    /// The repetitions that have shown so.
    pub shown: usize,
    pub cells: Vec<Cell>,
}

/// The result of a trial.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The duration of the run without faults.
    pub clean: Duration,
    pub elapsed: Duration,
    pub cells: Vec<(Cell, Verdict)>,
    pub findings: Vec<Finding>,
}

impl Outcome {
    pub fn not_tried(&self) -> impl Iterator<Item = (&Cell, NotTried)> {
        self.cells.iter().filter_map(|(cell, verdict)| match verdict {
            Verdict::NotTried(why) => Some((cell, *why)),
            _ => None,
        })
    }
}

/// What is being done, for the user who waits.
#[derive(Clone, Debug)]
pub enum Progress {
    Clean(usize),
    Cells { done: usize, of: usize, differ: usize },
    Shrinking { done: usize, of: usize },
}

/// What differs in a cell from a run that was not disturbed, each in one line.
fn differences(clean: &Observed, seen: &Observed, is_checked: bool) -> Vec<String> {
    if !seen.symptoms.is_empty() || is_checked {
        let new = seen.symptoms.iter().filter(|symptom| !clean.symptoms.contains(symptom));
        return new.map(|symptom| step_name(symptom.step) + &symptom.text).collect();
    }
    let created = seen.created.iter().filter_map(|(key, count)| {
        let before = clean.created.get(key).filter(|before| *before < count)?;
        Some(format!("{key} was created {count} times, without faults {before}"))
    });
    let findings = seen.findings.iter().filter_map(|(check, count)| {
        // how often it happens without faults may be chance
        let is_new = *count > 0 && clean.findings.get(check).is_none_or(|before| *before == 0);
        is_new.then(|| format!("{check}: {count}, without faults none"))
    });
    created.chain(findings).collect()
}

/// The quiet time of each step, given how long each took: no pause of the command was longer than that, and what is late may be done
/// in a later step.
fn quiets(active: &[Duration], times: u32, most: Duration) -> Vec<Duration> {
    let longest = |longest: &mut Duration, active: &Duration| {
        *longest = (*longest).max(times * *active).min(most);
        Some(*longest)
    };
    active.iter().scan(limits::QUIET_MIN, longest).collect()
}

fn step_name(step: usize) -> String {
    if step == 0 { "start: ".to_owned() } else { format!("step {step}: ") }
}

/// The cells that differ, by index: those together that disturb the same, or show the same in states of one sort.
fn grouped(cells: &[(Cell, Verdict)]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(HashSet<String>, Vec<usize>)> = vec![];
    for (index, (cell, verdict)) in cells.iter().enumerate() {
        let Verdict::Differs(symptoms) = verdict else { continue };
        // wherever it shows
        let unplaced = |text: &String| text.split_once(": ").map_or_else(|| text.clone(), |(_, rest)| rest.to_owned());
        let shown: Vec<String> = symptoms.iter().map(unplaced).collect();
        let shown = format!("{}: {}", cell.act.states(), shown.join("\n"));
        let mut group = (HashSet::from([shown, cell.act.target()]), vec![]);
        let (joined, others) = groups.into_iter().partition(|(keys, _)| !keys.is_disjoint(&group.0));
        groups = others;
        for (keys, indices) in Vec::<(HashSet<String>, Vec<usize>)>::from_iter(joined) {
            group.0.extend(keys);
            group.1.extend(indices);
        }
        group.1.push(index);
        groups.push(group);
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(_, indices)| indices).collect();
    groups.iter_mut().for_each(|indices| indices.sort_unstable());
    groups.sort_by_key(|indices| indices.first().copied());
    groups
}

/// Runs a trial.
///
/// # Errors
///
/// The scenario does not work without faults.
pub async fn trial(
    scenario: &Scenario,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, Error> {
    let began = clock::instant();
    let steps = scenario.steps.len();
    if let Some(cell) = options.cells.iter().find(|cell| matches!(cell.steps, Steps::One(step) if step > steps)) {
        let why = format!("the cell {cell} needs more steps than the scenario has, {steps}");
        return Err(Error::Setup(format!("{why}: use an id that a trial of this scenario has printed")));
    }
    let (engine, prepared) = prepare(scenario, options, Release::default()).await?;
    let tried = async {
        let trial = Trial::begin(scenario, options, &prepared, progress).await?;
        trial.run(progress).await
    };
    let outcome = tried.await;
    engine.stop().await;
    outcome.map(|outcome| Outcome { elapsed: began.elapsed(), ..outcome })
}

/// Starts a server, and makes the fork in which all runs begin.
async fn prepare(scenario: &Scenario, options: &Options, release: Release) -> Result<(Engine, Fork), Error> {
    let (sources, progress) = (scenario.from.clone(), scenario.progress.clone());
    let settings = Settings { sources, progress, kubernetes_version: Some(release.to_string()) };
    let engine = Engine::start(&settings).await?;
    let prepared = engine.base().fork().await?;
    if !scenario.setup.is_empty() {
        prepared.workspace().apply(&scenario.setup).await?;
    }
    prepared.settle(Patience { quiet: limits::BEGIN_LOOK, timeout: options.timeout }).await?;
    Ok((engine, prepared))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The ticks of all processors since the start of the machine: user, nice, system, idle, waiting for a disk, and more. None where this
/// cannot be read: only Linux says it.
fn processor_ticks() -> Vec<u64> {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    text.lines().next().unwrap_or_default().split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect()
}

/// Whether the processors have been idle for half of the time.
fn are_mostly_idle_since(before: &[u64]) -> bool {
    let passed: Vec<u64> =
        processor_ticks().iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect();
    let idle: u64 = passed.iter().skip(3).take(2).sum();
    idle > 0 && 2 * idle >= passed.iter().sum()
}

/// A trial after the runs without faults.
struct Trial<'a> {
    options: &'a Options,
    setting: Setting<'a>,
    clean: Observed,
    /// The duration of the second runs without faults.
    duration: Duration,
    /// Limits the cells that run at the same time.
    permits: Semaphore,
}

impl<'a> Trial<'a> {
    /// Runs the scenario without faults, and learns from it.
    async fn begin(
        scenario: &'a Scenario,
        options: &'a Options,
        prepared: &'a Fork,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Trial<'a>, Error> {
        let first = options.quiet.unwrap_or(limits::FIRST_QUIET);
        let base = prepared.objects().await?;
        let mut setting = Setting {
            scenario,
            prepared,
            quiets: vec![first; scenario.steps.len() + 1],
            last_quiet: limits::LAST_QUIET,
            timeout: options.timeout,
            watches: None,
            clients: vec![],
            seed: scenario.seed.unwrap_or(1),
            kept: base.values().map(|object| object.str_at(&["metadata", "uid"]).into()).collect(),
            ignored: Ignored::default(),
        };
        progress(Progress::Clean(1));
        let mut clean = undisturbed(&setting).await?;
        let times = |active: &[Duration], times: u32| match options.quiet {
            Some(given) => vec![given; active.len()],
            None => quiets(active, times, first),
        };
        // the cells disturb each other
        setting.quiets = times(&clean.active, 6);
        setting.watches = clean.record.0.first().map(|start| start.running);
        setting.clients = clients(&scenario.clients, &clean.record)?;
        if setting.clients.is_empty() {
            return Err(Error::Silent { command: scenario.start.clone(), within: options.timeout });
        }
        // a cell of a client that does not exist would hit nothing
        let of_cells: Vec<Text> = options.cells.iter().filter_map(Cell::client).cloned().collect();
        clients(&of_cells, &clean.record)?;
        progress(Progress::Clean(2));
        let (began, ticks) = (clock::instant(), processor_ticks());
        let mut parallel = options.parallel.unwrap_or_else(|| limits::PARALLEL_PER_CORE * cores()).max(1);
        let together = match options.cells.len() {
            0 => parallel,
            few => parallel.min(few * limits::REPETITIONS),
        };
        let others = try_join_all((0..together).map(|_| undisturbed(&setting))).await?;
        let duration = began.elapsed();
        if options.parallel.is_none() && are_mostly_idle_since(&ticks) {
            parallel *= 2;
        }
        for other in others {
            clean.active.iter_mut().zip(&other.active).for_each(|(most, active)| *most = (*most).max(*active));
            clean.created.retain(|key, count| other.created.get(key) == Some(count));
            for (check, count) in other.findings {
                let most = clean.findings.entry(check).or_default();
                *most = (*most).max(count);
            }
            for (one, other) in clean.objects.iter().zip(&other.objects) {
                let differences = compare(one, other, &setting.kept, &setting.ignored);
                setting.ignored.learn(&differences);
            }
        }
        setting.quiets = times(&clean.active, 2);
        Ok(Trial { options, setting, clean, duration, permits: Semaphore::new(parallel) })
    }

    async fn run(mut self, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, Error> {
        let cells = self.cells(&self.chosen(), progress).await?;
        self.setting.last_quiet = limits::LAST_QUIET_REPEATED;
        let mut outcome = Outcome { clean: self.duration, cells, ..Outcome::default() };
        self.find(&mut outcome, progress).await?;
        Ok(outcome)
    }

    /// The cells that were asked for, or those for the run without faults.
    fn chosen(&self) -> Vec<Cell> {
        if !self.options.cells.is_empty() {
            return self.options.cells.clone();
        }
        let Setting { scenario, clients, seed, .. } = &self.setting;
        let mut cells = generate(&self.clean.record, &self.clean.objects, clients, *seed);
        if scenario.permissions == Permissions::MinusOne {
            cells.splice(0..0, without_one_right(&self.clean.record, clients));
        }
        cells
    }

    /// Runs a cell. `rest` has the run in which its edit happens at rest, once there is one.
    async fn try_cell(&self, cell: &Cell, rest: &OnceCell<Observed>) -> Result<Verdict, Error> {
        let setting = &self.setting;
        match &cell.act {
            Act::Release(release) => {
                let (engine, prepared) = prepare(setting.scenario, self.options, *release).await?;
                // uids of another server are others
                let kept = HashSet::new();
                let mut setting = Setting { prepared: &prepared, kept, ..setting.clone() };
                let (old, new) = (self.setting.prepared.objects().await?, prepared.objects().await?);
                let initial = compare(&old, &new, &setting.kept, &setting.ignored);
                setting.ignored.learn(&initial);
                let verdict = disturbed(&setting, &self.clean, cell).await;
                engine.stop().await;
                verdict
            }
            Act::Edit(..) => match rest.get_or_try_init(|| run(setting, Course::AtRest(cell))).await {
                Ok(rest) if rest.hits == 0 => Ok(Verdict::NotTried(NotTried::HitNothing)),
                Ok(rest) => disturbed(setting, rest, cell).await,
                Err(error) => Ok(Verdict::Differs(vec![format!("already when the command is at rest: {error}")])),
            },
            _ => disturbed(setting, &self.clean, cell).await,
        }
    }

    /// Runs cells until the budget is used up.
    async fn cells(&self, cells: &[Cell], progress: &mut dyn FnMut(Progress)) -> Result<Vec<(Cell, Verdict)>, Error> {
        let (began, budget) = (clock::instant(), self.setting.scenario.budget);
        let of = cells.len();
        // at rest, edits of one object are the same
        let mut rests: BTreeMap<_, Arc<OnceCell<Observed>>> = BTreeMap::new();
        let mut running = FuturesUnordered::new();
        for (index, cell) in cells.iter().enumerate() {
            let rest = rests.entry((cell.steps, cell.edit())).or_default().clone();
            running.push(async move {
                let _permit = self.permits.acquire().await;
                let verdict = match budget.is_some_and(|budget| began.elapsed() >= budget) {
                    true => Verdict::NotTried(NotTried::BudgetUsedUp),
                    false => self.try_cell(cell, &rest).await?,
                };
                Ok::<_, Error>((index, (cell.clone(), verdict)))
            });
        }
        let (mut found, mut differ) = (vec![], 0);
        progress(Progress::Cells { done: 0, of, differ });
        while let Some(next) = running.next().await {
            let next = next?;
            differ += usize::from(matches!(next.1.1, Verdict::Differs(_)));
            found.push(next);
            progress(Progress::Cells { done: found.len(), of, differ });
        }
        found.sort_by_key(|(index, _)| *index);
        Ok(found.into_iter().map(|(_, tried)| tried).collect())
    }

    /// Repeats and shrinks one cell of those that show the same.
    async fn find(&self, outcome: &mut Outcome, progress: &mut dyn FnMut(Progress)) -> Result<(), Error> {
        let groups = grouped(&outcome.cells);
        let of = groups.len();
        let cells = outcome.cells.clone();
        let shrunk = async |indices: Vec<usize>| {
            let members = indices.iter().filter_map(|index| cells.get(*index)).map(|(cell, _)| cell.clone());
            self.shrink(members.collect()).await.map(|found| (found, indices))
        };
        let mut running: FuturesOrdered<_> = groups.into_iter().map(shrunk).collect();
        let mut done = 0;
        progress(Progress::Shrinking { done, of });
        while let Some(next) = running.next().await {
            let (found, indices) = next?;
            match found {
                Some(found) => outcome.findings.push(found),
                None => indices.iter().for_each(|index| {
                    if let Some((_, verdict)) = outcome.cells.get_mut(*index) {
                        *verdict = Verdict::NotTried(NotTried::NotRepeatable);
                    }
                }),
            }
            done += 1;
            progress(Progress::Shrinking { done, of });
        }
        Ok(())
    }

    /// Shrinks the first of some cells, and repeats what remains. None if no repetition differs.
    async fn shrink(&self, cells: Vec<Cell>) -> Result<Option<Finding>, Error> {
        let tried = async |cell: &Cell| {
            let _permit = self.permits.acquire().await;
            self.try_cell(cell, &OnceCell::new()).await
        };
        let Some(mut cell) = cells.first().cloned() else { return Ok(None) };
        while self.options.cells.is_empty() {
            let mut smaller = cell.smaller(self.setting.scenario.steps.len());
            let tried = try_join_all(smaller.iter().map(&tried)).await?;
            let Some(first) = tried.iter().position(|verdict| matches!(verdict, Verdict::Differs(_))) else { break };
            cell = smaller.swap_remove(first);
        }
        let (mut shown, mut symptoms) = (0, vec![]);
        for verdict in try_join_all((0..limits::REPETITIONS).map(|_| tried(&cell))).await? {
            if let Verdict::Differs(found) = verdict {
                shown += 1;
                symptoms = found;
            }
        }
        Ok((shown > 0).then_some(Finding { cell, symptoms, shown, cells }))
    }
}

/// A run without faults, in which everything must work.
async fn undisturbed(setting: &Setting<'_>) -> Result<Observed, Error> {
    let seen = run(setting, Course::Clean).await?;
    match seen.symptoms.first() {
        None => Ok(seen),
        Some(symptom) => Err(Error::Setup(format!("without faults, {}{}", step_name(symptom.step), symptom.text))),
    }
}

/// Compares a run with a disturbance with one without it.
async fn disturbed(setting: &Setting<'_>, clean: &Observed, cell: &Cell) -> Result<Verdict, Error> {
    let seen = run(setting, Course::Disturbed(cell, &clean.objects)).await?;
    let differences = differences(clean, &seen, setting.scenario.check.is_some());
    Ok(match differences.is_empty() {
        _ if seen.hits == 0 => Verdict::NotTried(NotTried::HitNothing),
        true => Verdict::Same,
        false => Verdict::Differs(differences),
    })
}

/// The clients to disturb: those of the command, or all that begin as they were given.
fn clients(given: &[Text], record: &Record) -> Result<Vec<Text>, Error> {
    if given.is_empty() {
        return Ok(record.clients().into_iter().collect());
    }
    let seen = record.all_clients();
    let begins = |client: &Text, given: &Text| client.starts_with(given.as_str());
    if let Some(unknown) = given.iter().find(|given| !seen.iter().any(|client| begins(client, given))) {
        let seen: Vec<&str> = seen.iter().map(Text::as_str).collect();
        return Err(Error::Setup(format!("no client begins with {unknown:?}: there are {}", seen.join(", "))));
    }
    Ok(seen.into_iter().filter(|client| given.iter().any(|given| begins(client, given))).collect())
}
