//! `pintle capture`: an archive of the objects of a cluster, or of another source.

use std::path::PathBuf;

use clap::Args;
use client::Result;
use sources::{Capture, Secrets};

use crate::count::counted;
use crate::logs;

#[derive(Args)]
pub struct CaptureTask {
    /// Archive to write, which ends in .tar.gz, or a new directory.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Source of the objects: kubeconfig[:FILE][#CONTEXT] for a cluster, or a file, directory, archive or snapshot of etcd.
    #[arg(long, value_name = "SOURCE", default_value = "kubeconfig")]
    from: String,

    /// Write the data of Secrets. Without this, each value is replaced by "REDACTED".
    #[arg(long)]
    secrets: bool,

    /// Also read the logs of all containers of a cluster.
    #[arg(long)]
    logs: bool,
}

/// Reads the source and writes the archive. Fails with a one-line message.
pub fn run(task: &CaptureTask) -> Result<()> {
    let mut capture = Capture::read(&task.from)?;
    if task.logs {
        capture.add_logs(&task.from)?;
    }
    capture.problems.lines().iter().for_each(|line| logs::print_error(&format!("skipped: {line}")));
    let secrets = if task.secrets { Secrets::Kept } else { Secrets::Redacted };
    let count = sources::write(&capture, &task.file, secrets)?;
    let text = format!("{} of {} in {}\n", counted(count, "object"), capture.name, task.file.display());
    logs::print(text.as_bytes())
}
