//! `pintle report`.

mod forms;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use machinery::{Value, json};

use super::{Objects, TargetWorkspace, block_on, count, set_texts};
use crate::logs;
use forms::Forms;

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    Text,
    Json,
    /// A test case for each expectation, or for each check if there are none.
    Junit,
    /// A page.
    Html,
    /// The RBAC roles that would have sufficed, as YAML.
    Roles,
}

#[derive(Args)]
pub struct ReportTask {
    /// User-Agents, such as manager/* [default: all].
    #[arg(long, value_name = "TEXT,...", value_delimiter = ',')]
    user_agent: Vec<String>,

    /// Fail if a check has found more than this, such as writesAtRest=0.
    ///
    /// The checks are noOpWrites, writesAtRest, hotLoops, conflicts, conflictsNotRetried, forbidden, throttled, refused, failed,
    /// listStorms, watchRestarts, unusedWatches and unusedRules.
    #[arg(long, value_name = "CHECK=MAX,...", value_delimiter = ',', value_parser = expectation)]
    expect: Vec<Expectation>,

    /// Set the counters to zero after this report.
    #[arg(long)]
    reset: bool,

    /// The form of the output.
    #[arg(short, long, value_enum, default_value = "text")]
    output: ReportForm,

    #[command(flatten)]
    target: TargetWorkspace,
}

/// The maximum of what a check may find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    check: String,
    max: u32,
}

fn expectation(text: &str) -> Result<Expectation, String> {
    let (check, max) = text.split_once('=').ok_or("wanted CHECK=MAX")?;
    let known: Vec<&str> = server::report_checks().collect();
    if !known.contains(&check) {
        return Err(format!("there is no check {check:?}, but {}", known.join(", ")));
    }
    let max = max.parse().map_err(|_| format!("{max:?} is not a number"))?;
    Ok(Expectation { check: check.to_owned(), max })
}

/// What a check has found.
struct CheckFinding {
    agent: String,
    subject: String,
    count: i64,
}

/// The verdict about a check.
struct Verdict {
    check: String,
    total: i64,
    /// `None` if nothing is expected.
    max: Option<u32>,
    found: Vec<CheckFinding>,
}

impl Verdict {
    fn of(status: &Value, check: &str, max: Option<u32>) -> Verdict {
        let mut found = vec![];
        for agent in status.items_at(&["agents"]) {
            for finding in agent.items_at(&["findings"]).iter().filter(|finding| finding.str_at(&["check"]) == check) {
                found.push(CheckFinding {
                    agent: agent.str_at(&["userAgent"]).to_owned(),
                    subject: finding.str_at(&["subject"]).to_owned(),
                    count: count(finding, &["count"]),
                });
            }
        }
        Verdict { check: check.to_owned(), total: count(status, &["counts", check]), max, found }
    }

    fn is_met(&self) -> bool {
        self.max.is_none_or(|max| self.total <= i64::from(max))
    }

    /// The expectation that is not met, as one line.
    fn failure(&self) -> String {
        let max = self.max.unwrap_or_default();
        format!("{} is {}, and at most {max} was expected", self.check, self.total)
    }
}

/// Prints the report. The error is one line.
pub fn run(task: &ReportTask) -> Result<ExitCode, String> {
    let mut spec = json!({"reset": (task.reset)});
    set_texts(&mut spec, "userAgents", &task.user_agent);
    let report =
        block_on(async { Objects::connect(&task.target).await?.create("Report", "reports", "report", spec).await })?;
    let status = report.get("status").cloned().unwrap_or_default();
    let verdicts: Vec<Verdict> = match task.expect.as_slice() {
        [] => server::report_checks().map(|check| Verdict::of(&status, check, None)).collect(),
        expected => expected.iter().map(|one| Verdict::of(&status, &one.check, Some(one.max))).collect(),
    };
    let forms = Forms { status: &status, verdicts: &verdicts };
    let text = match task.output {
        ReportForm::Text => forms.text(),
        ReportForm::Json => status.to_json() + "\n",
        ReportForm::Junit => forms.junit(),
        ReportForm::Html => forms.html(),
        ReportForm::Roles => forms.roles(),
    };
    logs::print(text.as_bytes())?;
    let failed: Vec<&Verdict> = verdicts.iter().filter(|verdict| !verdict.is_met()).collect();
    for verdict in &failed {
        logs::print_error(&format!("pintle: {}", verdict.failure()));
        for found in &verdict.found {
            logs::print_error(&format!("  {}: {} ({})", found.agent, found.subject, found.count));
        }
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_name_checks() {
        let wanted = Expectation { check: "writesAtRest".to_owned(), max: 3 };
        assert_eq!(expectation("writesAtRest=3"), Ok(wanted));
        for (text, why) in [
            ("writesAtRest", "wanted CHECK=MAX"),
            ("writes=0", "there is no check \"writes\", but noOpWrites, "),
            ("forbidden=few", "\"few\" is not a number"),
            ("forbidden=-1", "\"-1\" is not a number"),
        ] {
            assert!(expectation(text).unwrap_err().starts_with(why), "{text}");
        }
    }

    #[test]
    fn the_help_names_every_check() {
        let command = crate::flags::command();
        let flags = command.find_subcommand("report").unwrap();
        let expect = flags.get_arguments().find(|flag| flag.get_long() == Some("expect")).unwrap();
        let help = expect.get_long_help().unwrap().to_string();
        for check in server::report_checks() {
            assert!(help.contains(check), "{check}");
        }
    }
}
