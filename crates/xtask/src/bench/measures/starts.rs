//! The time of a start, with and without data, and the memory of an idle server.

use std::time::Duration;

use client::Call;
use store::{Durability, Embedded, Expected, Options, Store as _, Write};

use super::super::load::{Samples, drive};
use super::super::process::{Launch, memory};
use super::super::row::{Goal, Row};
use super::super::sizes::Sizes;
use super::super::subject::Subject;
use super::super::{fixtures, fixtures::Kind};

/// Size of an object in the request, in bytes.
const SIZE: usize = 1000;
/// Time between the start of a server and the measurement of its memory.
const QUIET: Duration = Duration::from_millis(1500);

fn of_times(times: Vec<Duration>) -> Samples {
    let wall = times.iter().sum();
    Samples::new(times, wall)
}

pub fn ready(launch: &Launch, sizes: &Sizes) -> Result<Row, String> {
    let mut times = vec![];
    let mut memory_now = None;
    for i in 0..sizes.starts {
        let server = launch.start(&format!("ready-{i}"))?;
        times.push(server.took);
        memory_now = memory(server.id());
        server.stop()?;
    }
    let mut row = Row::new("empty directory to ready", of_times(times), Goal::Median(Duration::from_millis(50)));
    row.memory = memory_now;
    Ok(row)
}

pub async fn restart(launch: &Launch, http2: bool, sizes: &Sizes) -> Result<Row, String> {
    let server = launch.start("restart")?;
    let subject = Subject::new(server.access()?, Some(server.id()), http2)?;
    let kind = subject.define("restarts").await?;
    let make = move |i| Call::post(kind.collection(), fixtures::object(&kind, i, SIZE));
    drive(&subject.client, sizes.clients, sizes.restart_objects, make).await?;
    drop(subject);
    server.stop()?;
    let mut times = vec![];
    let mut memory_now = None;
    for _ in 0..sizes.starts {
        let server = launch.start("restart")?;
        times.push(server.took);
        memory_now = memory(server.id());
        server.stop()?;
    }
    let what = format!("restart with {} objects of 1 KB to ready", sizes.restart_objects);
    let mut row = Row::new(what, of_times(times), Goal::Median(Duration::from_millis(150)));
    row.memory = memory_now;
    Ok(row)
}

/// A restart after many changes of the objects: as much history as a server keeps, plus that of one compaction interval. The
/// changes are written directly to the store.
pub async fn restart_with_history(launch: &Launch, sizes: &Sizes) -> Result<Row, String> {
    const NAME: &str = "restart-history";
    launch.start(NAME)?.stop()?;
    let options = Options { durability: Durability::None, ..Options::default() };
    let store =
        Embedded::open(&launch.directory.join(NAME), "the bench", options).map_err(|error| error.to_string())?;
    let mut at: Vec<Expected> = vec![Expected::Absent; sizes.restart_objects];
    for number in 0..sizes.restart_objects + sizes.history {
        let object = number % at.len();
        let value = Some(fixtures::stored_config_map(object, number, SIZE).into());
        let key = format!("/registry/core/configmaps/default/map-{object}").into();
        let done = store.commit(Write { key, expected: at[object], value }).await;
        at[object] = Expected::At(done.map_err(|refused| format!("{refused:?}"))?);
    }
    drop(store);
    let (mut times, mut memory_now) = (vec![], None);
    for _ in 0..sizes.starts {
        let server = launch.start(NAME)?;
        times.push(server.took);
        memory_now = memory(server.id());
        server.stop()?;
    }
    let what = format!("restart with {} objects after {} changes to ready", sizes.restart_objects, sizes.history);
    let mut row = Row::new(what, of_times(times), Goal::Median(Duration::from_millis(150)));
    row.memory = memory_now;
    Ok(row)
}

/// A restart with definitions of 13 KB that have no objects.
pub async fn restart_definitions(launch: &Launch, http2: bool, sizes: &Sizes) -> Result<Row, String> {
    let server = launch.start("restart-crds")?;
    let subject = Subject::new(server.access()?, Some(server.id()), http2)?;
    let kinds: Vec<Kind> = (0..sizes.definitions).map(|i| subject.kind(&format!("many{i}"))).collect();
    let make = move |i: usize| Call::post(fixtures::DEFINITIONS, fixtures::large_definition(&kinds[i]));
    drive(&subject.client, 1, sizes.definitions, make).await?;
    drop(subject);
    server.stop()?;
    let mut times = vec![];
    let mut memory_now = None;
    for _ in 0..sizes.starts {
        let server = launch.start("restart-crds")?;
        times.push(server.took);
        memory_now = memory(server.id());
        server.stop()?;
    }
    let what = format!("restart with {} definitions to ready", sizes.definitions);
    let mut row = Row::new(what, of_times(times), Goal::Median(Duration::from_secs(1)));
    row.memory = memory_now;
    Ok(row)
}

pub async fn idle(launch: &Launch) -> Result<Row, String> {
    let server = launch.start("idle")?;
    tokio::time::sleep(QUIET).await;
    let mut row = Row::new("memory of an idle server", Samples::default(), Goal::Memory(20 << 20));
    row.memory = memory(server.id());
    server.stop()?;
    Ok(row)
}
