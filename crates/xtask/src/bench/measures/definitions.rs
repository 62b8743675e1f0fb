//! CRDs: the time until one is served, and the cost of many.

use std::time::{Duration, Instant};

use super::super::fixtures::{self, DEFINITIONS, Kind};
use super::super::load::{Samples, drive};
use super::super::row::{Goal, Row, memory_text, time_text};
use super::super::sizes::Sizes;
use super::super::subject::Subject;
use super::row;
use client::{Call, Connection};

/// Time limit until the first object is accepted.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time from the POST of a definition to the first accepted object.
async fn first_one(connection: &mut Connection, kind: &Kind) -> Result<Duration, String> {
    let started = Instant::now();
    connection.send(Call::post(DEFINITIONS, fixtures::definition(kind))).await?.ok("POST of a definition")?;
    loop {
        let response = connection.send(Call::post(kind.collection(), fixtures::object(kind, 0, 0))).await?;
        match response.status {
            201 => return Ok(started.elapsed()),
            404 | 429 | 503 if started.elapsed() < PATIENCE => {}
            _ => return response.ok("the first object").map(|_| started.elapsed()),
        }
    }
}

pub async fn first(subject: &Subject, sizes: &Sizes) -> Result<Row, String> {
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

/// Definitions of 5,000 properties.
pub async fn big(subject: &Subject, sizes: &Sizes) -> Result<Row, String> {
    let kinds: Vec<Kind> = (0..sizes.first_runs).map(|i| subject.kind(&format!("big{i}"))).collect();
    for kind in &kinds {
        subject.remember(kind);
    }
    let before = subject.processor();
    let make = move |i: usize| Call::post(DEFINITIONS, fixtures::big_definition(&kinds[i]));
    let samples = drive(&subject.client, 1, sizes.first_runs, make).await?;
    let goal = Goal::Median(Duration::from_millis(20));
    Ok(row(subject, "definition of 5,000 properties", samples, goal, before))
}

fn many_kinds(subject: &Subject, sizes: &Sizes) -> Vec<Kind> {
    (0..sizes.definitions).map(|i| subject.kind(&format!("many{i}"))).collect()
}

/// Creates of objects of the many definitions that [`many`] has created; the target is the time for a single definition.
pub async fn spread(subject: &Subject, sizes: &Sizes) -> Result<Row, String> {
    let kinds = many_kinds(subject, sizes);
    if kinds.iter().any(|kind| subject.remember(kind)) {
        many(subject, sizes).await?;
    }
    let picked = |kinds: &[Kind], i: usize| kinds[i.wrapping_mul(7919) % kinds.len()].clone();
    let runs = sizes.first_runs * 10;
    let creates = |kinds: Vec<Kind>, first: usize| {
        move |i: usize| {
            let kind = picked(&kinds, i);
            Call::post(kind.collection(), fixtures::object(&kind, first + i, 0))
        }
    };
    // the first object of each definition causes its schema to be compiled, so it is not timed
    drive(&subject.client, 1, runs, creates(kinds.clone(), 0)).await?;
    let one = drive(&subject.client, 1, runs, creates(kinds[..1].to_vec(), runs)).await?;
    let before = subject.processor();
    let samples = drive(&subject.client, 1, runs, creates(kinds, 2 * runs)).await?;
    let goal = Goal::Median(one.quantile(0.5).mul_f64(1.2));
    let what = format!("create in any of {} definitions", sizes.definitions);
    let mut row = row(subject, what, samples, goal, before);
    row.note = format!("in one {}", time_text(one.quantile(0.5)));
    Ok(row)
}

pub async fn many(subject: &Subject, sizes: &Sizes) -> Result<Row, String> {
    let kinds = many_kinds(subject, sizes);
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
