//! Declarative suites beside definitions: what is created and changed, and the expected responses of the server.
//!
//! Suites are found and read, each becomes one job for each definition that it tests, and the jobs run on all cores. The
//! report depends on neither the number of cores nor the order in which jobs end.

mod coverage;
mod definitions;
mod expect;
mod find;
mod fixtures;
mod format;
mod report;
mod run;
mod selection;
mod setup;
#[cfg(test)]
mod tests;
mod update;
mod wording;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::{self, Options};
use crate::error::Error;
use definitions::Files;
use format::Suite;
use run::{CaseOutcome, Job};
use sources::DOCUMENT_BYTES_MAX;

pub use coverage::CoveredExpression;
pub use report::{SuiteReport, print};
pub use run::Failure;
pub use selection::Selection;

pub const SCHEMA: &str = include_str!("schema.json");

/// The results of a suite on a definition, in the order of its cases.
#[derive(Debug)]
pub struct Tested {
    pub suite: PathBuf,
    pub name: String,
    pub definition: PathBuf,
    pub cases: Vec<TestedCase>,
}

#[derive(Debug)]
pub struct TestedCase {
    /// The list of the case and its index in it, such as `onCreate[3]`.
    pub place: String,
    pub name: String,
    pub failure: Option<Failure>,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Results {
    pub suites: Vec<Tested>,
    /// Suites that could not be read or have no definition, one line each.
    pub problems: Vec<String>,
    /// The number of cases that were not selected.
    pub left_out: usize,
    /// What suites have that nothing checks, and definitions that are tested although they are refused, one line each.
    pub notes: Vec<String>,
    /// The expressions of definitions and policies, if their coverage is asked for.
    pub coverage: Vec<CoveredExpression>,
    /// Suites whose expected objects were written, with the number of objects.
    pub updated: Vec<(PathBuf, usize)>,
}

impl Results {
    /// The part of the expressions that were both true and false, in percent; 100 if there are none.
    pub fn covered_percent(&self) -> usize {
        let full = self.coverage.iter().filter(|covered| covered.missing().is_none()).count();
        (full * 100).checked_div(self.coverage.len()).unwrap_or(100)
    }

    pub fn failures(&self) -> usize {
        self.suites.iter().flat_map(|suite| &suite.cases).filter(|case| case.failure.is_some()).count()
    }
}

/// A run of suites.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Suites, or directories in which they are searched for.
    pub paths: Vec<PathBuf>,
    /// Whether the expected objects are written to the suites.
    pub update: bool,
    /// Whether definitions whose rules cost too much are tested, as if an earlier release had stored them.
    pub allows_expensive_rules: bool,
    /// Whether the coverage of expressions is determined, by running the cases once more.
    pub coverage: bool,
    /// The cases that are run.
    pub selection: Selection,
    pub options: Options,
}

/// Runs suites. Fails with a one-line message.
pub fn test(task: &Task) -> Result<Results, Error> {
    let mut results = Results::default();
    let files = find::suites(&task.paths, &mut results.problems);
    let named: std::collections::BTreeSet<&PathBuf> = task.paths.iter().collect();
    let read = on_all_cores(&files, |file| read(file));
    let mut suites = vec![];
    for (file, read) in files.iter().zip(read) {
        match read {
            Ok(Some(mut suite)) => {
                results.left_out += task.selection.apply(&mut suite);
                let notes = suite.notes.iter().map(|note| format!("{}: {note}", file.display()));
                results.notes.extend(notes);
                suites.push(suite);
            }
            Ok(None) if named.contains(file) => {
                results.problems.push(format!("{}: it is not a suite: it has no tests", file.display()));
            }
            // some other file in a directory of tests
            Ok(None) => {}
            Err(why) => results.problems.push(format!("{}: {why}", file.display())),
        }
    }
    if suites.is_empty() && results.problems.is_empty() {
        return Err("there are no suites: files named *.testsuite.yaml, or in tests/NAME/".into());
    }
    suites.retain(|suite| !suite.cases.is_empty() || results.left_out == 0);
    if suites.is_empty() && results.problems.is_empty() {
        return Err("no case has a name that --run and --skip leave".into());
    }
    let files = definitions_of(&suites);
    let jobs = jobs(&suites, &files, &mut results.problems);
    let runtime = engine::runtime()?;
    let ran = on_all_cores(&jobs, |job| {
        runtime.block_on(async {
            let ran = run::run(job, task).await;
            let seen = if task.coverage { coverage::of(job, task).await } else { vec![] };
            (ran, seen)
        })
    });
    let mut outcomes: Vec<(usize, usize, Vec<CaseOutcome>)> = vec![];
    for (at, (of_job, seen)) in ran.into_iter().enumerate() {
        results.notes.extend(of_job.note);
        coverage::add(&mut results.coverage, seen);
        outcomes.extend(of_job.outcomes.into_iter().map(|(suite, of_suite)| (suite, at, of_suite)));
    }
    outcomes.sort_by_key(|(suite, job, _)| (*suite, *job));
    if task.update {
        update::write(&suites, &mut outcomes, &mut results)?;
    }
    results.suites =
        outcomes.into_iter().map(|(suite, job, of_suite)| tested(&suites[suite], &jobs[job], of_suite)).collect();
    Ok(results)
}

fn read(file: &std::path::Path) -> Result<Option<Suite>, Error> {
    let failed = |error: std::io::Error| format!("cannot read it: {error}");
    let mut text = vec![];
    let file_text = std::fs::File::open(file).map_err(failed)?;
    file_text.take(DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut text).map_err(failed)?;
    match text.len() > DOCUMENT_BYTES_MAX {
        true => Err(format!("cannot read it: it has more than {DOCUMENT_BYTES_MAX} bytes").into()),
        false => Ok(format::read(file, &text)?),
    }
}

fn tested(suite: &Suite, job: &Job<'_>, outcomes: Vec<CaseOutcome>) -> Tested {
    let case = |outcome: CaseOutcome| {
        let case = &suite.cases[outcome.case];
        let place = format!("{}[{}]", case.place.0, case.place.1);
        TestedCase { place, name: case.name.clone(), failure: outcome.failure }
    };
    Tested {
        suite: suite.file.clone(),
        name: suite.name.clone(),
        definition: job.definition.file.clone(),
        cases: outcomes.into_iter().map(case).collect(),
    }
}

/// Reads all files that suites name, each once.
fn definitions_of(suites: &[Suite]) -> Files {
    let mut paths = std::collections::BTreeSet::new();
    for suite in suites {
        let places = if suite.is_of_policies() { vec![] } else { definitions::places(suite) };
        paths.extend(places.iter().flat_map(|place| definitions::listed(place).unwrap_or_default()));
        let directory = suite.file.parent().unwrap_or(std::path::Path::new(""));
        paths.extend(suite.files.iter().map(|file| directory.join(file)));
        if !suite.feature_gates.is_empty()
            && let Some(payloads) = definitions::payloads(suite)
        {
            paths.extend(definitions::listed(&payloads).unwrap_or_default());
        }
    }
    let paths: Vec<PathBuf> = paths.into_iter().collect();
    let read = on_all_cores(&paths, |path| Arc::new(fixtures::read(path)));
    Files(paths.into_iter().zip(read).collect())
}

/// The jobs: suites without objects of their own share the engine of their definition.
fn jobs<'s>(suites: &'s [Suite], files: &Files, problems: &mut Vec<String>) -> Vec<Job<'s>> {
    let mut jobs: Vec<Job<'s>> = vec![];
    let mut shared: BTreeMap<(PathBuf, String, String), usize> = BTreeMap::new();
    for (at, suite) in suites.iter().enumerate() {
        let found = files.of_suite(suite).and_then(|found| Ok((found, files.given(suite)?)));
        let (definitions, given) = match found {
            Ok(found) => found,
            Err(why) => {
                problems.push(format!("{}: {why}", suite.file.display()));
                continue;
            }
        };
        for definition in definitions {
            let name = definition.value.str_at(&["metadata", "name"]).to_owned();
            let key = (definition.file.clone(), name, suite.version.clone());
            match shared.get(&key).filter(|_| given.is_empty()) {
                Some(job) => jobs[*job].suites.push((at, suite)),
                None => {
                    if given.is_empty() {
                        shared.insert(key, jobs.len());
                    }
                    let files = files.given_by(suite);
                    jobs.push(Job { definition, suites: vec![(at, suite)], given: given.clone(), files });
                }
            }
        }
    }
    jobs
}

/// Computes a value of each item, on as many threads as there are cores.
fn on_all_cores<T: Sync, R: Send>(items: &[T], compute: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(items.len().max(1));
    let next = AtomicUsize::new(0);
    let (next, compute) = (&next, &compute);
    let work = || {
        let mut done = vec![];
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break done };
            done.push((at, compute(item)));
        }
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().stack_size(server::WORKER_STACK_BYTES).spawn_scoped(scope, work);
        // if no thread can be started, this one does all
        let threads: Vec<_> = (0..cores).filter_map(|core| start(core).ok()).collect();
        let own = if threads.is_empty() { work() } else { vec![] };
        let ended =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        own.into_iter().chain(ended.flatten()).collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}
