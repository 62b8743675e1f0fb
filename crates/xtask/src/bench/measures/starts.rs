//! The time of a start, with and without data, and the memory of an idle server.

use std::time::Duration;

use client::{Call, Protocol, Result};

use super::super::fixtures;
use super::super::load::{Samples, drive};
use super::super::process::{Launch, memory};
use super::super::row::{Goal, Row};
use super::super::sizes::Sizes;
use super::super::subject::Subject;

/// Size of an object in the request, in bytes.
const SIZE: usize = 1000;
/// Time between the start of a server and the measurement of its memory.
const QUIET: Duration = Duration::from_millis(1500);

/// Starts and stops the server on each of the data directories; the memory is that of the last one.
fn starts(launch: &Launch, names: impl Iterator<Item = String>, what: String, goal: Duration) -> Result<Row> {
    let (mut times, mut memory_now) = (vec![], None);
    for name in names {
        let server = launch.start(&name)?;
        times.push(server.took);
        memory_now = memory(server.id());
        server.stop()?;
    }
    let wall = times.iter().sum();
    let mut row = Row::new(what, Samples::new(times, wall), Goal::Median(goal));
    row.memory = memory_now;
    Ok(row)
}

pub fn ready(launch: &Launch, sizes: &Sizes) -> Result<Row> {
    let names = (0..sizes.starts).map(|i| format!("ready-{i}"));
    starts(launch, names, "empty directory to ready".to_owned(), Duration::from_millis(50))
}

pub async fn restart(launch: &Launch, protocol: Protocol, sizes: &Sizes) -> Result<Row> {
    let server = launch.start("restart")?;
    let subject = Subject::new(server.access.clone(), Some(server.id()), protocol)?;
    let kind = subject.define("restarts").await?;
    let make = move |i| Call::post(kind.collection(), fixtures::object(&kind, i, SIZE));
    drive(&subject.client, sizes.clients, sizes.restart_objects, make).await?;
    drop(subject);
    server.stop()?;
    let what = format!("restart with {} objects of 1 KB to ready", sizes.restart_objects);
    starts(launch, (0..sizes.starts).map(|_| "restart".to_owned()), what, Duration::from_millis(150))
}

pub async fn idle(launch: &Launch) -> Result<Row> {
    let server = launch.start("idle")?;
    tokio::time::sleep(QUIET).await;
    let mut row = Row::new("memory of an idle server", Samples::default(), Goal::Memory(20 << 20));
    row.memory = memory(server.id());
    server.stop()?;
    Ok(row)
}
