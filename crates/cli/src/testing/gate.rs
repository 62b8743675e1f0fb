//! `pintle gate`.

use clap::{Subcommand, ValueEnum};
use client::Result;
use machinery::{Value, json};

use super::{DeleteFlags, ListFlags, Matching, Objects, TargetWorkspace};
use crate::count::counted;
use crate::logs;
use crate::runtime::block_on;

#[derive(Subcommand)]
pub enum GateTask {
    /// Create a gate, which holds the events of the watches that match, or close an open one.
    ///
    /// Events of one object keep their order, and bookmarks wait for what is held before them.
    Hold {
        /// Name of the new gate.
        name: String,

        #[command(flatten)]
        matching: Matching,

        /// Order in which held events are released.
        #[arg(long, value_enum, default_value = "forward")]
        order: Order,

        /// Seed of the order shuffled.
        #[arg(long, value_name = "N")]
        seed: Option<u32>,

        #[command(flatten)]
        target: TargetWorkspace,
    },
    /// Release events of a gate: a number of them, or all by opening it.
    Release {
        /// Gate whose events to release.
        name: String,

        /// Number of events; an event counts once for each watch. Without it, all pass until the gate holds again.
        #[arg(short, long, value_name = "N")]
        number: Option<u32>,

        #[command(flatten)]
        target: TargetWorkspace,
    },
    /// List the gates, with the number of events that they hold.
    List(ListFlags),
    /// Delete gates, which releases all that they hold.
    Delete(DeleteFlags),
}

/// The order in which held events are released.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Order {
    /// The oldest first.
    Forward,
    /// The newest first.
    Reversed,
    /// As the seed says.
    Shuffled,
}

impl Order {
    fn as_str(self) -> &'static str {
        match self {
            Order::Forward => "InOrder",
            Order::Reversed => "Reversed",
            Order::Shuffled => "Shuffled",
        }
    }
}

/// Runs a task. Fails with a one-line message.
pub fn run(task: &GateTask) -> Result<()> {
    block_on(async {
        match task {
            GateTask::Hold { name, matching, order, seed, target } => {
                let mut spec = json!({"match": (matching.value()), "order": (order.as_str())});
                seed.iter().for_each(|seed| spec.set_at(&["seed"], Value::from(*seed)));
                hold(&mut Objects::connect(target).await?, name, spec).await
            }
            GateTask::Release { name, number, target } => {
                release(&mut Objects::connect(target).await?, name, *number).await
            }
            GateTask::List(flags) => {
                let header = format!("{:<24} {:<6} {:>8} {:>8}", "NAME", "OPEN", "HELD", "RELEASED");
                flags.run("gates", &header, row).await
            }
            GateTask::Delete(flags) => flags.run("gate", "gates").await,
        }
    })
}

async fn hold(objects: &mut Objects, name: &str, spec: Value) -> Result<()> {
    if objects.get("gates", name).await?.is_ok() {
        let mut closed = spec;
        closed.set_at(&["open"], Value::Bool(false));
        objects.patch("gates", name, closed).await?;
    } else {
        objects.create("Gate", "gates", name, spec).await?;
    }
    logs::print(format!("gate {name:?} holds events\n").as_bytes())
}

async fn release(objects: &mut Objects, name: &str, number: Option<u32>) -> Result<()> {
    let Some(number) = number else {
        objects.patch("gates", name, json!({"open": true})).await?;
        return logs::print(format!("gate {name:?} is open\n").as_bytes());
    };
    let gate = objects.get("gates", name).await?.ok()?;
    let total = gate.int_at(&["spec", "release"]) + i64::from(number);
    objects.patch("gates", name, json!({"release": total})).await?;
    let events = counted(number as usize, "more event");
    logs::print(format!("gate {name:?} lets {events} through\n").as_bytes())
}

fn row(gate: &Value) -> String {
    let open = gate.is_true_at(&["spec", "open"]);
    let (held, released) = (gate.int_at(&["status", "held"]), gate.int_at(&["status", "released"]));
    format!("{:<24} {open:<6} {held:>8} {released:>8}", gate.str_at(&["metadata", "name"]))
}
