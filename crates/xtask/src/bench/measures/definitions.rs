//! CRDs: the time until one is served, and the cost of many.

use std::time::{Duration, Instant};

use super::super::fixtures::{self, DEFINITIONS, Kind};
use super::super::load::{Samples, drive};
use super::super::row::{Goal, Row, memory_text};
use super::super::sizes::Sizes;
use super::super::subject::Subject;
use super::row;
use client::{Call, Connection, Result};

/// Time limit until the first object is accepted.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time from the POST of a definition to the first accepted object.
async fn first_one(connection: &mut Connection, kind: &Kind) -> Result<Duration> {
    let started = Instant::now();
    connection.send(Call::post(DEFINITIONS, fixtures::definition(kind))).await?.ok("POST of a definition")?;
    loop {
        let response = connection.send(Call::post(kind.collection(), fixtures::object(kind, 0, 0))).await?;
        match response.status {
            201 => return Ok(started.elapsed()),
            404 | 429 | 503 if started.elapsed() < PATIENCE => {}
            _ => return Ok(response.ok("the first object").map(|_| started.elapsed())?),
        }
    }
}

pub async fn first(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let mut connection = subject.client.connect().await?;
    let before = subject.processor();
    let mut times = vec![];
    for i in 0..sizes.first_runs {
        let kind = subject.kind(&format!("firsts{i}"));
        subject.remember(&kind);
        times.push(first_one(&mut connection, &kind).await?);
    }
    let wall = times.iter().sum();
    let goal = Goal::Median(Duration::from_millis(5));
    Ok(row(subject, "definition to first accepted object", Samples::new(times, wall), goal, before))
}

pub async fn many(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kinds: Vec<Kind> = (0..sizes.definitions).map(|i| subject.kind(&format!("many{i}"))).collect();
    for kind in &kinds {
        subject.remember(kind);
    }
    let size = kinds.first().map_or(0, |kind| fixtures::large_definition(kind).len());
    let (before, memory) = (subject.processor(), subject.memory());
    let make = move |i: usize| Call::post(DEFINITIONS, fixtures::large_definition(&kinds[i]));
    let samples = drive(&subject.client, 1, sizes.definitions, make).await?;
    let what = format!("{} definitions", sizes.definitions);
    let mut row = row(subject, what, samples, Goal::Median(Duration::from_millis(3)), before);
    row.note = format!("{:.0} KB each", size as f64 / 1e3);
    if let (Some(before), Some(after)) = (memory, row.memory) {
        let each = after.saturating_sub(before) / (sizes.definitions.max(1) as u64);
        row.note.push_str(&format!(", {} of memory each", memory_text(each)));
    }
    Ok(row)
}
