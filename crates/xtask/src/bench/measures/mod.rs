//! The measurements. Each creates the objects that it needs first; only the requests that its row names are timed.

mod collect;
mod definitions;
mod ownership;
mod reads;
mod starts;
mod watch;
mod writes;

use std::time::Duration;

use super::flags::Measure;
use super::load::Samples;
use super::process::Launch;
use super::row::{Goal, Row};
use super::sizes::Sizes;
use super::subject::Subject;
use client::{Protocol, Result, fail};

/// Measurements that start their own servers, or need none.
pub async fn start(measure: Measure, launch: &Launch, protocol: Protocol, sizes: &Sizes) -> Result<Row> {
    match measure {
        Measure::Restart => starts::restart(launch, protocol, sizes).await,
        Measure::Idle => starts::idle(launch).await,
        Measure::Ownership => ownership::reapply(sizes),
        _ => starts::ready(launch, sizes),
    }
}

/// Measurements on a running server.
pub async fn under_load(measure: Measure, subject: &Subject, sizes: &Sizes) -> Result<Row> {
    match measure {
        measure if measure.is_of_start() => fail("needs servers of its own"),
        Measure::First => definitions::first(subject, sizes).await,
        Measure::Create => writes::create(subject, sizes).await,
        Measure::Get => reads::get(subject, sizes).await,
        Measure::List => reads::list(subject, sizes).await,
        Measure::Select => reads::select(subject, sizes).await,
        Measure::Watch => watch::watch(subject, sizes).await,
        Measure::Flood => watch::flood(subject, sizes).await,
        Measure::Status => writes::status(subject, sizes).await,
        Measure::Apply => writes::apply(subject, sizes).await,
        Measure::Reapply => writes::reapply(subject, sizes).await,
        Measure::Delete => writes::delete(subject, sizes).await,
        Measure::Collect => collect::collect(subject, sizes).await,
        Measure::Crds => definitions::many(subject, sizes).await,
        _ => fail("needs no server"),
    }
}

/// A row with the processor time of the server since `before`, and its memory.
fn row(subject: &Subject, what: impl Into<String>, samples: Samples, goal: Goal, before: Option<Duration>) -> Row {
    let spent = before.zip(subject.processor()).map(|(before, after)| after.saturating_sub(before));
    let count = u32::try_from(samples.len()).unwrap_or(u32::MAX).max(1);
    let mut row = Row::new(what, samples, goal);
    row.processor = spent.map(|spent| spent / count);
    row.memory = subject.memory();
    row
}
