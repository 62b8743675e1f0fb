//! Commits to the embedded store, without a server.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use store::{Embedded, Expected, Options, Store as _, Write};
use tokio::task::JoinSet;

use super::super::load::Samples;
use super::super::process::Launch;
use super::super::row::{Goal, Row, time_text};
use super::super::sizes::Sizes;

/// Size of a value in bytes.
const SIZE: usize = 1500;
/// The target of a single commit, in addition to the time of an fdatasync.
const OVERHEAD: Duration = Duration::from_micros(300);

fn open(launch: &Launch, name: &str) -> Result<Embedded, String> {
    let options = Options::default();
    Embedded::open(&launch.directory.join(name), "the bench", options).map_err(|error| error.to_string())
}

async fn commit(store: &Embedded, number: usize) -> Result<Duration, String> {
    let value = Some(Bytes::from(vec![b'x'; SIZE]));
    let key = format!("/registry/bench/{number:08}").into();
    let started = Instant::now();
    let done = store.commit(Write { key, expected: Expected::Absent, value }).await;
    done.map(|_| started.elapsed()).map_err(|refused| format!("{refused:?}"))
}

/// Concurrent writers, each of which waits until its write is durable.
pub async fn many(launch: &Launch, sizes: &Sizes) -> Result<Row, String> {
    let (store, next, total) = (Arc::new(open(launch, "commits")?), Arc::new(AtomicUsize::new(0)), sizes.commits);
    let started = Instant::now();
    let mut writers = JoinSet::new();
    for _ in 0..sizes.clients {
        let (store, next) = (store.clone(), next.clone());
        writers.spawn(async move {
            let mut times = vec![];
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total {
                    return Ok::<_, String>(times);
                }
                times.push(commit(&store, number).await?);
            }
        });
    }
    let mut times = Vec::with_capacity(total);
    while let Some(done) = writers.join_next().await {
        times.extend(done.map_err(|error| error.to_string())??);
    }
    let what = format!("commits at the store, {} writers", sizes.clients);
    Ok(Row::new(what, Samples::new(times, started.elapsed()), Goal::Rate(30_000.0)))
}

/// A single writer, alternating with an append and fdatasync of as many bytes to another file, so that both find the disk in
/// the same state.
pub async fn one(launch: &Launch, sizes: &Sizes) -> Result<Row, String> {
    let store = open(launch, "commit")?;
    let (mut times, mut syncs) = (vec![], vec![]);
    let mut file = appended(&launch.directory.join("fdatasync"))?;
    let started = Instant::now();
    for number in 0..sizes.single_commits {
        times.push(commit(&store, number).await?);
        let began = Instant::now();
        let synced = file.write_all(&[b'x'; SIZE]).and_then(|()| file.sync_data());
        synced.map_err(|error| format!("cannot write beside the store: {error}"))?;
        syncs.push(began.elapsed());
    }
    let sync = Samples::new(syncs, Duration::ZERO).quantile(0.5);
    let what = format!("one commit at the store (fdatasync p50 {})", time_text(sync));
    Ok(Row::new(what, Samples::new(times, started.elapsed()), Goal::Median(sync + OVERHEAD)))
}

fn appended(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
