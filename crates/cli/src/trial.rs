//! `pintle trial`: which faults break what a command does.

use std::process::ExitCode;
use std::time::Duration;

use base::clock;
use clap::{Args, ValueEnum};
use client::{Result, fail};
use offline::findings::escapes::xml;
use trials::trial::{
    Cell, Check, Options, Outcome, Permissions, Progress, Scenario, Step, Verdict, quoted, repetition, trial,
};

use crate::runtime::{block_on, until_signalled};
use crate::values::duration;
use crate::{limits, logs};

/// Try what faults break in a controller: run a scenario again and again, with one disturbance each time.
///
/// The first runs are without faults, and show what the command requests and watches. Then each request fails, loses its
/// response or finds the command killed, each watch ends, expires or lags, and the command starts with a stale cache. What
/// differs from the runs without faults is shrunk, repeated, and printed with a command that shows it again. The exit status is
/// 1 if anything differs, and 2 if the scenario does not work without faults.
#[derive(Args)]
pub struct TrialTask {
    /// YAML file with the fields start, setup, steps, check, from, progress, budget, seed, clients and permissions. Flags take precedence.
    #[arg(value_name = "FILE")]
    file: Option<String>,

    /// The command under test, such as a controller, for sh. It must use KUBECONFIG. Each run has a free port in PINTLE_PORT, also for the commands of steps and checks.
    #[arg(long, value_name = "CMD")]
    start: Option<String>,

    /// Manifests to apply before the command starts, such as its CRDs: a file or a directory. May be repeated.
    #[arg(long, value_name = "PATH")]
    setup: Vec<String>,

    /// What happens then, step by step: a file (*.yaml, *.yml, *.json) whose documents are applied one after the other, or
    /// a command. May be repeated.
    #[arg(long, value_name = "FILE|CMD")]
    steps: Vec<String>,

    /// What must be true after each step: a command that fails if something is wrong, or a CEL expression on objects. Without it,
    /// the objects after each step are compared with those of a run without faults.
    #[arg(long, value_name = "CMD|CEL")]
    check: Option<String>,

    /// Objects to begin with, as for pintle serve. May be repeated; later ones win.
    #[arg(long, value_name = "SOURCE")]
    from: Vec<String>,

    /// Progress objects that move other objects on, as for pintle serve: workloads makes Pods ready, for example.
    #[arg(long, value_name = "SET|FILE,...", value_delimiter = ',')]
    progress: Vec<String>,

    /// Stop beginning cells after this time; the rest is listed as not tried [default: 5m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    budget: Option<Duration>,

    /// Seed of uids, generated names and recipes [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Beginning of the user agents to disturb [default: those seen before the first step]. May be repeated.
    #[arg(long, value_name = "NAME")]
    client: Vec<String>,

    /// Take away each right that the command uses, one at a time: minus-one [default: all].
    #[arg(long, value_name = "all|minus-one")]
    permissions: Option<Permissions>,

    /// The time without requests after which a step is over [default: learned from the run without faults].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    quiet: Option<Duration>,

    /// The longest time until a step is over.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    timeout: Duration,

    /// Number of cells that run at the same time [default: three for each core, or six if these leave half of the processor time].
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,

    /// Run only this cell, by the id that a trial has printed. May be repeated.
    #[arg(long, value_name = "ID", value_parser = |id: &str| id.parse::<Cell>())]
    cell: Vec<Cell>,

    /// The form of the result.
    #[arg(short, long, value_enum, default_value = "text")]
    output: TrialForm,

    /// Results for which the exit status is 1.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "RESULT,...", default_value = "differs")]
    fail_on: Vec<FailOn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TrialForm {
    Text,
    Json,
    Junit,
    Markdown,
}

/// What makes a trial fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A cell differs from the run without faults.
    Differs,
    /// A cell was not tried.
    NotTried,
}

/// Runs the trial. Fails with a one-line message if it cannot run.
pub fn run(task: &TrialTask) -> Result<ExitCode> {
    let scenario = scenario(task)?;
    let options =
        Options { quiet: task.quiet, timeout: task.timeout, parallel: task.parallel, cells: task.cell.clone() };
    let mut meter = TrialMeter::default();
    let mut progress = |progress| meter.show(&progress);
    let tried = async { Ok(trial(&scenario, &options, &mut progress).await?) };
    let outcome = block_on(until_signalled(tried))?;
    let (elapsed, clean) = (outcome.elapsed.as_secs(), outcome.clean.as_secs_f64());
    logs::print_error(&format!("{elapsed} s; a run without faults takes {clean:.1} s"));
    let command = called();
    let text = match task.output {
        TrialForm::Text => outcome.text(&command),
        TrialForm::Json => outcome.json(&command).to_json() + "\n",
        TrialForm::Junit => junit(&outcome, &command),
        TrialForm::Markdown => outcome.markdown(&command),
    };
    logs::print(text.as_bytes())?;
    Ok(ExitCode::from(u8::from(task.fail_on.iter().any(|on| on.applies(&outcome)))))
}

impl FailOn {
    fn applies(self, outcome: &Outcome) -> bool {
        outcome.cells.iter().any(|(_, verdict)| match self {
            FailOn::Differs => matches!(verdict, Verdict::Differs(_)),
            FailOn::NotTried => matches!(verdict, Verdict::NotTried(_)),
        })
    }
}

/// The result as JUnit XML.
fn junit(outcome: &Outcome, command: &str) -> String {
    let differ = outcome.cells.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Differs(_))).count();
    let (tests, skipped) = (outcome.cells.len(), outcome.not_tried().count());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"pintle trial\" tests=\"{tests}\" failures=\"{differ}\" skipped=\"{skipped}\">\n",
    );
    for (cell, verdict) in &outcome.cells {
        let result = match verdict {
            Verdict::Same => String::new(),
            Verdict::NotTried(why) => format!("<skipped message=\"{}\"/>", why.as_str()),
            Verdict::Differs(symptoms) => {
                let (message, more) = (xml(&symptoms.join("; ")), xml(&repetition(command, cell)));
                format!("<failure message=\"{message}\">{more}</failure>")
            }
        };
        text.push_str(&format!("  <testcase name=\"{}\">{result}</testcase>\n", xml(&cell.to_string())));
    }
    text + "</testsuite>\n"
}

/// The scenario of a file and of the flags.
fn scenario(task: &TrialTask) -> Result<Scenario> {
    let mut scenario = task.file.as_deref().map_or_else(|| Ok(Scenario::default()), Scenario::read)?;
    if let Some(start) = &task.start {
        scenario.start.clone_from(start);
    }
    if !task.steps.is_empty() {
        scenario.steps = task.steps.iter().map(|given| Step::of_flag(given)).collect::<Result<Vec<_>, _>>()?.concat();
    }
    for (given, field) in
        [(&task.setup, &mut scenario.setup), (&task.from, &mut scenario.from), (&task.progress, &mut scenario.progress)]
    {
        if !given.is_empty() {
            field.clone_from(given);
        }
    }
    if !task.client.is_empty() {
        scenario.clients = task.client.iter().map(|name| name.as_str().into()).collect();
    }
    scenario.check = task.check.as_deref().map(Check::read).transpose()?.or(scenario.check);
    scenario.permissions = task.permissions.unwrap_or(scenario.permissions);
    scenario.seed = task.seed.or(scenario.seed);
    scenario.budget = task.budget.or(scenario.budget).or(Some(limits::TRIAL_BUDGET));
    if scenario.start.trim().is_empty() {
        return fail("nothing is started: give --start, or a file with the field start");
    }
    if scenario.steps.is_empty() {
        return fail("nothing happens: give --steps, or a file with the field steps");
    }
    Ok(scenario)
}

/// How this trial was called, without what a repetition of one cell replaces.
fn called() -> String {
    let mut words = vec!["pintle".to_owned()];
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        if word == "--cell" {
            given.next();
        } else if !word.starts_with("--cell=") {
            words.push(quoted(&word));
        }
    }
    words.join(" ")
}

/// Progress on stderr.
#[derive(Default)]
struct TrialMeter {
    printed: Option<tokio::time::Instant>,
}

impl TrialMeter {
    fn show(&mut self, progress: &Progress) {
        let line = match progress {
            Progress::Clean(number) => format!("run {number} of 2 without faults"),
            Progress::Cells { done, of, .. } if done < of && !self.is_due() => return,
            Progress::Cells { done, of, differ } => format!("{done} of {of} cells, {differ} differ"),
            Progress::Shrinking { of: 0, .. } => return,
            Progress::Shrinking { done, of } if done < of && !self.is_due() => return,
            Progress::Shrinking { done, of } => format!("shrinking: {done} of {of} findings"),
        };
        self.printed = Some(clock::instant());
        logs::print_error(&line);
    }

    fn is_due(&self) -> bool {
        self.printed.is_none_or(|at| at.elapsed() >= limits::PROGRESS_INTERVAL)
    }
}
