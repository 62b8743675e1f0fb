//! `pintle plan`: what a change would do to the objects of a source.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use client::{Context as _, Result};
use offline::findings::escapes::xml;
use trials::engine::{Command, Engine, Patience, Reach, Settings};
use trials::plan::{Changes, Detail, Plan, Runs};

use crate::runtime::until_signalled;
use crate::values::{duration, release};
use crate::{envtest, limits, logs};

/// The exit status of a plan with changes.
const CHANGED: u8 = 1;

/// Show what a change would do to the objects of a cluster, before it is made.
///
/// The objects are loaded into a server of this command and forked twice. In one fork the change is applied, objects are deleted, and
/// CMD runs, which finds the API by its KUBECONFIG: a new version of an operator, or nothing, if only the server is to respond.
/// When both have settled, their differences are printed: + created, ~ changed, -/+ recreated, - deleted, each with the client
/// that did it or the reason. The exit status is 0 without changes, 1 with changes, and 2 if no plan could be made.
///
/// Nothing runs in Pods, no webhook is called, and what CMD does outside the API really happens: none of that is in the plan.
#[derive(Args)]
pub struct PlanTask {
    /// The objects to begin with: files, directories, archives, captures of clusters, or kubeconfig:FILE for a cluster, which is only
    /// read. May be repeated; later ones win.
    #[arg(long, value_name = "SOURCE", required = true)]
    from: Vec<String>,

    /// Manifests to apply: a file, or a directory with everything below it. May be repeated.
    #[arg(short, long, value_name = "CHANGE")]
    filename: Vec<PathBuf>,

    /// Object to delete, such as deployment/web or deployment/shop/web, with its namespace. May be repeated.
    #[arg(long, value_name = "KIND/NAME")]
    delete: Vec<String>,

    /// The controllers as they are, as a line for a shell. What they do anyway is no part of the plan.
    #[arg(long, value_name = "CMD")]
    before: Option<String>,

    /// Progress objects that move other objects on, as for pintle serve: workloads makes Pods ready, for example.
    #[arg(long, value_name = "SET|FILE,...", value_delimiter = ',')]
    progress: Vec<String>,

    /// How long nothing must have been written [default: 6s with commands, which may pause, and 1s without].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    quiet: Option<Duration>,

    /// How long to wait for that.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    timeout: Duration,

    /// Let the commands reach nothing but the API. This needs the right to make a network namespace.
    #[arg(long)]
    no_network: bool,

    /// Print all fields, the requests that were refused, and what differs between two runs of the change.
    #[arg(long)]
    details: bool,

    /// The form of the output.
    #[arg(short, long, value_enum, default_value = "text")]
    output: PlanForm,

    /// Release of Kubernetes: 1.35, 1.36 or 1.37.
    #[arg(long, value_name = "VERSION", value_parser = release, default_value = "1.37")]
    kubernetes_version: server::Release,

    /// The controllers with the change, such as a new version of an operator [default: those of --before].
    #[arg(value_name = "CMD", last = true, required_unless_present_any = ["filename", "delete", "before"])]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlanForm {
    Text,
    Json,
    Markdown,
    Junit,
}

/// Prints the plan. Errors are one line.
pub fn run(task: PlanTask) -> Result<ExitCode> {
    let (output, details) = (task.output, if task.details { Detail::Full } else { Detail::Summary });
    let runtime = offline::engine::runtime()?;
    // on a worker, since objects may be nested deeply
    let planned = runtime.block_on(async { base::task::spawn("plan", until_signalled(made(task))).await });
    let plan = planned.context("no plan can be made")??;
    logs::print(
        match output {
            PlanForm::Text => plan.text(details),
            PlanForm::Json => plan.value().to_json() + "\n",
            PlanForm::Markdown => markdown(&plan),
            PlanForm::Junit => junit(&plan),
        }
        .as_bytes(),
    )?;
    Ok(if plan.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(CHANGED) })
}

async fn made(task: PlanTask) -> Result<Plan> {
    let settings = Settings {
        sources: task.from,
        kubernetes_version: Some(task.kubernetes_version.to_string()),
        progress: task.progress,
    };
    let engine = Engine::start(&settings).await?;
    let assets = engine.directory().join("assets");
    envtest::link_programs(&assets)?;
    let with_assets = |command: Command| Command {
        environment: vec![("KUBEBUILDER_ASSETS".into(), assets.clone().into())],
        ..command
    };
    let runs = if task.details && !task.command.is_empty() { Runs::Twice } else { Runs::Once };
    let runs_commands = task.before.is_some() || !task.command.is_empty();
    let quiet = task.quiet.unwrap_or(if runs_commands { limits::PLAN_QUIET_WITH_COMMANDS } else { limits::PLAN_QUIET });
    let changes = Changes {
        applied: task.filename,
        deleted: task.delete,
        before: task.before.map(|line| with_assets(Command::shell(&line))),
        command: Command::new(&task.command).map(with_assets),
        patience: Patience { quiet, timeout: task.timeout },
        runs,
        reach: if task.no_network { Reach::ApiOnly } else { Reach::Everything },
    };
    let plan = trials::plan::plan(&engine, &changes).await;
    engine.stop().await;
    Ok(plan?)
}

/// A plan for a comment on a pull request: the summary, and a diff of objects, whose signs are coloured there.
fn markdown(plan: &Plan) -> String {
    let mut text = format!("**{}**\n", plan.summary());
    if !plan.is_empty() {
        // a line of four backticks cannot be a part of a field, since fields are indented
        text.push_str("\n````diff\n");
        for line in &plan.lines {
            let sign = if line.action.sign() == "~" { "!" } else { line.action.sign() };
            let head = line.head();
            text.push_str(&format!("{sign}{}\n", head.strip_prefix(line.action.sign()).unwrap_or(&head)));
            line.field_lines().iter().for_each(|field| text.push_str(&format!("    {field}\n")));
        }
        text.push_str("````\n");
    }
    for refusal in &plan.refused {
        text.push_str(&format!("\nRefused: `{}`\n", refusal.to_string().replace('`', "'")));
    }
    text
}

/// A plan as JUnit XML: each object that changes is a failed test case.
fn junit(plan: &Plan) -> String {
    let (tests, failures) = (plan.lines.len().max(1), plan.lines.len());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"pintle\">\n  <testsuite name=\"plan\" \
         tests=\"{tests}\" failures=\"{failures}\">\n"
    );
    if plan.is_empty() {
        out.push_str("    <testcase classname=\"plan\" name=\"no changes\"/>\n");
    }
    for line in &plan.lines {
        let [name, head, body] =
            [line.key.to_string(), line.head(), line.field_lines().join("\n")].map(|text| xml(&text));
        out.push_str(&format!(
            "    <testcase classname=\"plan\" name=\"{name}\"><failure message=\"{head}\">{body}</failure></testcase>\n"
        ));
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}
