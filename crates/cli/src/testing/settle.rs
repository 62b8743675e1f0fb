//! `pintle settle`.

use std::process::ExitCode;

use clap::Args;
use client::Result;
use machinery::{Value, json};

use super::{Objects, TargetWorkspace, set_texts};
use crate::logs;
use crate::runtime::block_on;
use crate::values::TextOrJson;

#[derive(Args)]
pub struct Settle {
    /// How long nothing must have been written.
    #[arg(long, value_name = "DURATION", default_value = "100ms")]
    quiet: String,

    /// How long to wait; less than the --request-timeout of the server.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    timeout: String,

    /// How often something may be written after everything was delivered; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    rounds: u32,

    /// Do not wait for events that gates hold.
    #[arg(long)]
    ignore_held: bool,

    /// Resources whose writes do not matter [default: leases.coordination.k8s.io].
    #[arg(long, value_name = "RESOURCE,...", value_delimiter = ',')]
    ignore: Vec<String>,

    /// The form of the output.
    #[arg(short, long, value_enum, default_value = "text")]
    output: TextOrJson,

    #[command(flatten)]
    target: TargetWorkspace,
}

/// Waits until the workspace has settled. Fails with a one-line message.
pub fn run(task: &Settle) -> Result<ExitCode> {
    let mut spec = json!({"quiet": (task.quiet.as_str()), "timeout": (task.timeout.as_str()), "rounds": (task.rounds),
        "held": (if task.ignore_held { "Ignore" } else { "Await" })});
    set_texts(&mut spec, "ignore", &task.ignore);
    let settled = block_on(async {
        Ok(Objects::connect(&task.target).await?.create("Settle", "settles", "settle", spec).await?)
    })?;
    let is_settled = settled.is_true_at(&["status", "settled"]);
    if task.output == TextOrJson::Json {
        logs::print((settled.get("status").map(Value::to_json).unwrap_or_default() + "\n").as_bytes())?;
    } else if is_settled {
        let (took, watches) = (settled.int_at(&["status", "milliseconds"]), settled.int_at(&["status", "watches"]));
        logs::print(format!("settled after {took} ms, with {watches} watches\n").as_bytes())?;
    } else {
        logs::print_error(&format!("pintle: not settled: {}", settled.str_at(&["status", "message"])));
    }
    Ok(if is_settled { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
