//! `pintle test`: suites of cases, without a server.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use machinery::Release;
use offline::engine::Options;
use offline::suites::{self, Results, SuiteReport, Task};

use crate::logs;
use crate::values::release;

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
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: SuiteForm,
}

/// The forms of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SuiteForm {
    Text,
    Json,
    Junit,
}

/// Runs the command. What could not be done is printed to stderr.
pub fn run(task: &Test) -> ExitCode {
    match tested(task) {
        Ok(results) if !results.problems.is_empty() => ExitCode::from(2),
        Ok(results) if results.failures() > 0 => ExitCode::from(1),
        Ok(_) => ExitCode::SUCCESS,
        Err(message) => {
            logs::print_error(&format!("pintle: {message}"));
            ExitCode::from(2)
        }
    }
}

fn tested(task: &Test) -> Result<Results, String> {
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
        coverage: task.coverage,
        options,
    })?;
    let form = match task.output {
        SuiteForm::Text => SuiteReport::Text,
        SuiteForm::Json => SuiteReport::Json,
        SuiteForm::Junit => SuiteReport::Junit,
    };
    logs::print(suites::print(&results, form).as_bytes())?;
    Ok(results)
}
