//! `pintle test`: suites of cases, without a server.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use client::Result;
use machinery::Release;
use offline::engine::Options;
use offline::suites::{self, Results, Selection, SuiteReport, Task};

use crate::logs;
use crate::values::{release, words};

#[derive(Args)]
pub struct Test {
    /// Suites, or directories that are searched for *.testsuite.yaml and tests/NAME/*.yaml [default: the current directory].
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Write the objects that are stored to the suites, in place of those that are expected.
    #[arg(long)]
    pub update: bool,

    /// Test definitions whose rules cost more than the release allows, as if an earlier release had stored them.
    #[arg(long)]
    pub allow_expensive_rules: bool,

    /// Report the rules of the definitions and the expressions of the policies that no case has seen true, false or at all.
    #[arg(long)]
    pub coverage: bool,

    /// Fail if less than this part of the expressions was both true and false, in percent.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub coverage_min: Option<u8>,

    /// Run only the cases that match a regular expression, by the text that a failure shows: suite, place and name.
    #[arg(long, value_name = "PATTERN")]
    pub run: Option<String>,

    /// Leave out the cases that match a regular expression.
    #[arg(long, value_name = "PATTERN")]
    pub skip: Option<String>,

    /// The release of Kubernetes whose API server responds, such as 1.36 [default: 1.37].
    #[arg(long, value_name = "VERSION", value_parser = release)]
    pub kubernetes_version: Option<Release>,

    /// Feature gates, comma separated: NAME=true or NAME=false.
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',')]
    pub feature_gates: Vec<String>,

    /// Print the JSON Schema of suites, and run nothing.
    #[arg(long, conflicts_with_all = ["paths", "update", "coverage"])]
    pub schema: bool,

    /// The form of the report.
    #[arg(short, long, value_parser = words(&FORMS), default_value = "text")]
    pub output: SuiteReport,
}

const FORMS: [(&str, SuiteReport); 3] =
    [("text", SuiteReport::Text), ("json", SuiteReport::Json), ("junit", SuiteReport::Junit)];

/// Runs the command. It fails if nothing can be tested.
pub fn run(task: &Test) -> Result<ExitCode> {
    let results = tested(task)?;
    Ok(match results.problems.is_empty() {
        false => ExitCode::from(2),
        true if results.failures() > 0 || !is_covered(task, &results) => ExitCode::from(1),
        true => ExitCode::SUCCESS,
    })
}

/// Whether enough expressions were covered; otherwise an error says so.
fn is_covered(task: &Test, results: &Results) -> bool {
    let (wanted, found) = (task.coverage_min.map_or(0, usize::from), results.covered_percent());
    if found < wanted {
        logs::print_error(&format!("pintle: the coverage is {found} %, less than {wanted} %"));
    }
    found >= wanted
}

fn tested(task: &Test) -> Result<Results> {
    if task.schema {
        logs::print(suites::SCHEMA.as_bytes())?;
        return Ok(Results::default());
    }
    let paths = if task.paths.is_empty() { vec![PathBuf::from(".")] } else { task.paths.clone() };
    let release = task.kubernetes_version.unwrap_or_default();
    let options = Options { release, feature_gates: task.feature_gates.clone(), ..Options::default() };
    let results = suites::test(&Task {
        paths,
        update: task.update,
        allows_expensive_rules: task.allow_expensive_rules,
        coverage: task.coverage || task.coverage_min.is_some(),
        selection: Selection::new(task.run.as_deref(), task.skip.as_deref())?,
        options,
    })?;
    logs::print(suites::print(&results, task.output).as_bytes())?;
    Ok(results)
}
