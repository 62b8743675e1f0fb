//! `pintle progress`: the sets of Progress objects that the program has.

use clap::Args;
use client::Result;

use crate::logs;

#[derive(Args)]
pub struct ProgressTask {
    /// The set. Without it, the names of the sets are printed.
    #[arg(value_name = "SET", value_parser = clap::builder::PossibleValuesParser::new(server::progress_sets()))]
    pub set: Option<String>,
}

/// Prints a set. Fails with a one-line message.
pub fn print(task: &ProgressTask) -> Result<()> {
    match task.set.as_deref() {
        Some(name) => logs::print(server::progress_set(name).unwrap_or_default().as_bytes()),
        None => logs::print(server::progress_sets().map(|name| format!("{name}\n")).collect::<String>().as_bytes()),
    }
}
