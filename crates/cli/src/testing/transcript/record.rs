//! `pintle record`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use client::{Context as _, Result};
use machinery::{Value, json};

use super::super::{Objects, TargetWorkspace};
use super::file;
use super::saving::transcript;
use crate::child::{Forwarded, exit_code};
use crate::count::counted;
use crate::logs;
use crate::runtime::block_on;

#[derive(Args)]
pub struct RecordTask {
    /// File of the transcript, which is written at the end.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Keep the data of Secrets, and tokens. Without this they are replaced, in requests and in responses.
    #[arg(long)]
    secrets: bool,

    #[command(flatten)]
    target: TargetWorkspace,

    /// Record while this command runs, and exit with its status [default: until Ctrl-C].
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Records until the command, or this process, is ended. Fails with a one-line message.
pub fn run(task: &RecordTask) -> Result<ExitCode> {
    block_on(async {
        // a mistake in the name should not show only at the end
        std::fs::write(&task.output, "").cannot("write", &task.output)?;
        created(&task.target, json!({})).await?;
        let code = wait(&task.command).await?;
        let status = created(&task.target, json!({"end": true, "secrets": (task.secrets)})).await?;
        let steps = status.items_at(&["steps"]);
        let name = task.output.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = file::text(&transcript(&name, steps));
        std::fs::write(&task.output, text).cannot("write", &task.output)?;
        logs::print_error(&format!("{} in {}", counted(steps.len(), "request"), task.output.display()));
        if status.is_true_at(&["truncated"]) {
            logs::print_error("pintle: the recording is incomplete: a limit of the server was reached");
        }
        Ok(code)
    })
}

/// The status of a new Recording, over a connection of its own: one that waits would be closed as idle.
async fn created(target: &TargetWorkspace, spec: Value) -> Result<Value> {
    let created = Objects::connect(target).await?.create("Recording", "recordings", "recording", spec).await?;
    Ok(created.get("status").cloned().unwrap_or_default())
}

async fn wait(command: &[OsString]) -> Result<ExitCode> {
    let Some((program, arguments)) = command.split_first() else {
        logs::print_error("recording; end it with Ctrl-C");
        tokio::signal::ctrl_c().await.context("cannot listen for signals")?;
        return Ok(ExitCode::SUCCESS);
    };
    let signals = Forwarded::listen()?;
    let child = Command::new(program).args(arguments).spawn();
    let child = child.cannot("run", Path::new(program))?;
    signals.forward_until_end(child).await.map(exit_code)
}
