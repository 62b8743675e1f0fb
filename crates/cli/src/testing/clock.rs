//! `pintle clock`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use client::Result;
use machinery::time::{duration, parse_duration, parse_rfc3339};
use machinery::{Value, json};

use super::faketime::{self, ExecWithClock};
use super::{CLOCK, Objects, TargetWorkspace};
use crate::logs;
use crate::runtime::block_on;
use crate::values::TextOrJson;

#[derive(Subcommand)]
pub enum ClockTask {
    /// Stop the time of a workspace.
    ///
    /// Its objects, Events, tokens and certificates get this time until the clock is advanced, set or resumed.
    Stop(StopClock),
    /// Advance the clock, stopped or not, by a duration such as 90s, 1h or 720h.
    ///
    /// Work that becomes due, such as the end of Events and tokens, is done before `pintle settle` returns.
    Advance {
        /// How far to advance it.
        #[arg(value_name = "DURATION", value_parser = nanoseconds)]
        by: u64,

        #[command(flatten)]
        target: TargetWorkspace,
    },
    /// Set the clock to a time, such as 2030-01-01T00:00:00Z, which is not before the one that it shows.
    Set {
        /// Time to set, such as 2030-01-01T00:00:00Z.
        #[arg(value_parser = time)]
        time: String,

        #[command(flatten)]
        target: TargetWorkspace,
    },
    /// Let a stopped clock go on from the time that it shows.
    Resume(TargetWorkspace),
    /// Print what the clock shows.
    Show(ShowClock),
    /// Delete the Clock: the time is again that of the machine.
    Delete(TargetWorkspace),
    /// Run a command whose own clock is that of the workspace, by libfaketime.
    ///
    /// Works on Linux for programs that ask the C library for the time, such as those in Python, Java, Node, Ruby and C. Go programs,
    /// and those that are linked statically, ask the kernel, and are refused.
    Exec(ExecWithClock),
}

#[derive(Args)]
pub struct StopClock {
    /// Set it to this time first.
    #[arg(long, value_parser = time)]
    time: Option<String>,

    /// Derive uids, generated names, addresses and ports from this number; only while there is no Clock yet.
    #[arg(long, value_name = "N")]
    seed: Option<u32>,

    #[command(flatten)]
    target: TargetWorkspace,
}

#[derive(Args)]
pub struct ShowClock {
    /// The form of the output.
    #[arg(short, long, value_enum, default_value = "text")]
    output: TextOrJson,

    #[command(flatten)]
    target: TargetWorkspace,
}

fn nanoseconds(text: &str) -> Result<u64, &'static str> {
    let given = parse_duration(text).ok().filter(|given| !given.is_zero());
    let given = given.and_then(|given| u64::try_from(given.as_nanos()).ok());
    given.ok_or("wanted a duration such as 1h30m")
}

fn time(text: &str) -> Result<String, &'static str> {
    parse_rfc3339(text).map(|_| text.to_owned()).ok_or("wanted a time such as 2030-01-01T00:00:00Z")
}

/// Runs a task. Fails with a one-line message.
pub fn run(task: &ClockTask) -> Result<ExitCode> {
    block_on(async {
        let done = match task {
            ClockTask::Exec(task) => return faketime::run(task).await,
            ClockTask::Stop(StopClock { time, seed, target }) => {
                let mut spec = json!({"stopped": true});
                time.iter().for_each(|time| spec.set_at(&["time"], Value::from(time.as_str())));
                seed.iter().for_each(|seed| spec.set_at(&["seed"], Value::from(*seed)));
                changed(target, |_| spec).await
            }
            ClockTask::Advance { by, target } => {
                changed(target, |clock| json!({"advance": (advanced(clock, *by))})).await
            }
            ClockTask::Set { time, target } => changed(target, |_| json!({"time": (time.as_str())})).await,
            ClockTask::Resume(target) => changed(target, |_| json!({"stopped": false})).await,
            ClockTask::Show(task) => show(task).await,
            ClockTask::Delete(target) => {
                Objects::connect(target).await?.end("clocks", CLOCK).await?;
                logs::say("the time is that of the machine");
                Ok(())
            }
        };
        done.map(|()| ExitCode::SUCCESS)
    })
}

/// The total advance of the clock, with a further advance.
fn advanced(clock: &Value, by: u64) -> String {
    let before = parse_duration(clock.str_at(&["spec", "advance"])).map_or(0, |before| before.as_nanos());
    let total = i64::try_from(before.saturating_add(u128::from(by))).unwrap_or(i64::MAX);
    duration(total)
}

/// Changes fields of the spec, or creates the Clock with them, and prints what it shows.
async fn changed(target: &TargetWorkspace, spec: impl FnOnce(&Value) -> Value) -> Result<()> {
    let mut objects = Objects::connect(target).await?;
    let found = objects.get("clocks", CLOCK).await?;
    let clock = if found.is_ok() {
        objects.patch("clocks", CLOCK, spec(&found.body)).await?
    } else {
        objects.create("Clock", "clocks", CLOCK, spec(&Value::Null)).await?
    };
    logs::print(shown(&clock).as_bytes())
}

async fn show(task: &ShowClock) -> Result<()> {
    let mut objects = Objects::connect(&task.target).await?;
    let found = objects.get("clocks", CLOCK).await?;
    let text = match task.output {
        _ if found.code == 404 => "that of the machine\n".to_owned(),
        TextOrJson::Text => shown(&found.ok()?),
        TextOrJson::Json => found.ok()?.to_json() + "\n",
    };
    logs::print(text.as_bytes())
}

/// The time of a stopped clock, or by how much a running one is ahead.
fn shown(clock: &Value) -> String {
    let text = |field: &str| clock.str_at(&["status", field]);
    let nanoseconds = |field: &str| {
        parse_rfc3339(text(field)).map(|(seconds, rest)| seconds.saturating_mul(1_000_000_000) + i64::from(rest))
    };
    match (nanoseconds("time"), nanoseconds("since")) {
        (Some(time), Some(since)) => format!("running, {} ahead of the machine\n", duration(time - since)),
        _ => format!("stopped at {}\n", text("time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advances_add_up() {
        let by = |text: &str| nanoseconds(text).unwrap();
        assert_eq!(advanced(&Value::Null, by("90s")), "1m30s");
        assert_eq!(advanced(&json!({"spec": {"advance": "1m30s"}}), by("720h")), "720h1m30s");
        for wrong in ["", "0s", "-1s", "soon"] {
            assert!(nanoseconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_fits_in_a_line() {
        let clock = |status: Value| json!({"status": (status)});
        assert_eq!(
            shown(&clock(json!({"time": "2030-01-01T00:00:00.000000Z"}))),
            "stopped at 2030-01-01T00:00:00.000000Z\n"
        );
        let running = json!({"time": "2030-01-01T01:00:00.5Z", "since": "2030-01-01T00:00:00Z"});
        assert_eq!(shown(&clock(running)), "running, 1h0m0.5s ahead of the machine\n");
    }
}
