//! `--from`: the objects of files and captures, served as they are.

use clap::ValueEnum;
use client::{Context as _, Result};
use embed::captures;
use offline::findings::Form;
use offline::validate::{self, Empty, Outcome, Settings};
use server::ServedCapture;
use sources::{INFERRED, Input, Inputs, Plan, Planned, Writer};

use crate::logs::print_error;

/// The value of `--clock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClockFlag {
    Capture,
    Now,
}

/// The content of sources.
pub struct Read {
    plan: Plan,
    /// Counts of objects that were found and left out.
    lines: Vec<String>,
}

/// Reads sources, and reports what the rules of `judge` would refuse. Fails with a one-line message if one of the sources has nothing
/// to serve.
pub fn read(from: &[String], judge: Option<&Settings>) -> Result<Read> {
    captures::read(from, |mut plan| {
        let mut report = vec![];
        if let Some(settings) = judge {
            plan.invalid = judged(&plan, settings, &mut report)?.summary.invalid;
        }
        let skipped = plan.problems.lines().into_iter().map(|line| format!("skipped: {line}"));
        let mut lines: Vec<String> = std::iter::once(plan.summary()).chain(skipped).collect();
        lines.extend(String::from_utf8_lossy(&report).lines().map(str::to_owned));
        lines.push("changes are kept in memory; the source is never written".to_owned());
        Ok(Read { plan, lines })
    })
}

/// The verdict on the objects of sources, by kind. Objects without a definition have no rules.
fn judged(plan: &Plan, settings: &Settings, report: &mut Vec<u8>) -> Result<Outcome> {
    const FAILED: &str = "the report cannot be made";
    let mut spool = Writer::new().context(FAILED)?;
    let mut inputs = Inputs::default();
    for Planned { object, path, .. } in &plan.objects {
        if !object.mentions(INFERRED) {
            let part = spool.copy(&object.json()[..]).context(FAILED)?;
            inputs.inputs.push(Input::Part(path.as_str().into(), part));
        }
    }
    let settings =
        Settings { ignores_missing: true, empty: Empty::Allowed, style: Form::Kinds.into(), ..settings.clone() };
    Ok(offline::engine::runtime()?.block_on(validate::check(&settings, inputs, vec![], report))?)
}

/// Writes the content of sources to a new store, and says on stderr what it is.
pub async fn load(read: Option<Read>, clock: ClockFlag, storage: &server::Storage) -> Result<Option<ServedCapture>> {
    let Some(Read { plan, lines }) = read else { return Ok(None) };
    lines.iter().for_each(|line| print_error(line));
    let mut served = captures::load(plan, storage).await?;
    served.moment = served.moment.filter(|_| clock == ClockFlag::Capture);
    Ok(Some(served))
}
