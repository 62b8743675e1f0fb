//! `pintle report`.

mod forms;
mod page;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use client::{Result, fail};
use machinery::{Value, json};

use super::{Objects, TargetWorkspace, set_texts};
use crate::logs;
use crate::runtime::block_on;
use forms::Forms;
use page::Surroundings;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    Text,
    Json,
    /// A test case for each expectation, or for each check if there are none.
    Junit,
    /// A page for a bug report, with the faults in force and what each check means.
    Html,
    /// The RBAC roles that would have sufficed, and their bindings, as YAML.
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
        for agent in status.items_at(&["agents"]).iter().chain(status.items_at(&["users"])) {
            let name = agent.at(&["userAgent"]).or(agent.at(&["name"])).and_then(Value::as_str).unwrap_or_default();
            for finding in agent.items_at(&["findings"]).iter().filter(|finding| finding.str_at(&["check"]) == check) {
                found.push(CheckFinding {
                    agent: name.to_owned(),
                    subject: finding.str_at(&["subject"]).to_owned(),
                    count: finding.int_at(&["count"]),
                });
            }
        }
        Verdict { check: check.to_owned(), total: status.int_at(&["counts", check]), max, found }
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

/// Prints the report. Fails with a one-line message.
pub fn run(task: &ReportTask) -> Result<ExitCode> {
    let mut spec = json!({"reset": (task.reset)});
    set_texts(&mut spec, "userAgents", &task.user_agent);
    let (status, around) = block_on(async {
        let mut objects = Objects::connect(&task.target).await?;
        let report = objects.create("Report", "reports", "report", spec).await?;
        let around = match task.output {
            ReportForm::Html => Some(surroundings(task, &mut objects).await?),
            _ => None,
        };
        Ok((report.get("status").cloned().unwrap_or_default(), around))
    })?;
    let verdicts: Vec<Verdict> = match task.expect.as_slice() {
        [] => server::report_checks().map(|check| Verdict::of(&status, check, None)).collect(),
        expected => expected.iter().map(|one| Verdict::of(&status, &one.check, Some(one.max))).collect(),
    };
    let forms = Forms { status: &status, verdicts: &verdicts };
    let text = match task.output {
        ReportForm::Text => forms.text(),
        ReportForm::Json => status.to_json() + "\n",
        ReportForm::Junit => forms.junit(),
        ReportForm::Html => around.map(|around| forms.html(&around)).unwrap_or_default(),
        ReportForm::Roles => forms.roles(),
    };
    logs::print(text.as_bytes())?;
    require_clients(task, &status)?;
    let failed: Vec<&Verdict> = verdicts.iter().filter(|verdict| !verdict.is_met()).collect();
    for verdict in &failed {
        logs::print_error(&format!("pintle: {}", verdict.failure()));
        for found in &verdict.found {
            logs::print_error(&format!("  {}: {} ({})", found.agent, found.subject, found.count));
        }
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails if what is expected is expected of no client, as after a typo in its name.
fn require_clients(task: &ReportTask, status: &Value) -> Result<()> {
    let agents: Vec<&str> = status.items_at(&["agents"]).iter().map(|agent| agent.str_at(&["userAgent"])).collect();
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => agents.iter().any(|agent| agent.starts_with(beginning)),
        None => agents.contains(&if pattern.is_empty() { UNNAMED } else { pattern }),
    };
    match task.user_agent.iter().find(|pattern| !matches(pattern)) {
        Some(pattern) => fail(format!("no request was counted of a client whose User-Agent is {pattern:?}")),
        None if agents.is_empty() && !task.expect.is_empty() => fail("no request was counted"),
        None => Ok(()),
    }
}

/// The name of clients without a User-Agent in reports.
const UNNAMED: &str = "unknown";

async fn surroundings(task: &ReportTask, objects: &mut Objects) -> Result<Surroundings> {
    let version = objects.client.get("/version").await?.ok()?;
    let faults = objects.client.get(&format!("{}/faults", objects.base)).await?.ok()?;
    let server = task.target.access()?.server;
    let workspace = server.split_once("/clusters/").map_or("default", |(_, name)| name.trim_end_matches('/'));
    Ok(Surroundings {
        workspace: workspace.to_owned(),
        time: machinery::time::rfc3339(base::clock::machine_seconds()),
        kubernetes: version.str_at(&["gitVersion"]).to_owned(),
        faults: faults.items_at(&["items"]).to_vec(),
    })
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
