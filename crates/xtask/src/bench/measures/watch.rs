//! The delivery of events to watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::task::JoinSet;

use super::super::fixtures::{self, Kind};
use super::super::load::{Samples, drive};
use super::super::row::{Goal, Row};
use super::super::sizes::Sizes;
use super::super::subject::Subject;
use super::row;
use client::{Call, Connection, Result, fail};

/// Time limit until the last event arrives.
const PATIENCE: Duration = Duration::from_secs(10);
/// Size of an object in the request, in bytes.
const SIZE: usize = 1000;

/// The time at which each write was sent.
struct Clock {
    started: Instant,
    sent: Vec<AtomicU64>,
}

impl Clock {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn since_sent(&self, i: usize) -> Option<Duration> {
        let sent = self.sent.get(i)?.load(Ordering::Acquire);
        Some(Duration::from_nanos(self.now().saturating_sub(sent)))
    }
}

/// The number of the object in a line of a watch.
fn object_of(line: &[u8]) -> Option<usize> {
    const BEFORE: &[u8] = b"\"name\":\"w-";
    let at = line.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
    let digits = line.get(at..)?.split(|b| *b == b'"').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Reads a watch until all writes have arrived; returns the delay of each.
async fn follow(mut body: Incoming, clock: Arc<Clock>) -> Vec<Duration> {
    let mut seen = vec![false; clock.sent.len()];
    let (mut times, mut rest) = (vec![], vec![]);
    let end = tokio::time::Instant::now() + PATIENCE * 6;
    while times.len() < seen.len() {
        let Ok(Some(Ok(frame))) = tokio::time::timeout_at(end, body.frame()).await else { break };
        let Some(data) = frame.data_ref() else { continue };
        rest.extend_from_slice(data);
        let Some(complete) = rest.iter().rposition(|b| *b == b'\n') else { continue };
        for line in rest[..complete].split(|b| *b == b'\n') {
            let Some(i) = object_of(line).filter(|i| seen.get(*i) == Some(&false)) else { continue };
            seen[i] = true;
            times.extend(clock.since_sent(i));
        }
        rest.drain(..=complete);
    }
    times
}

/// The current resourceVersion of the collection.
async fn version(subject: &Subject, kind: &Kind) -> Result<String> {
    let response = subject.client.connect().await?.send(Call::get(kind.collection())).await?.ok("a list")?;
    let text = String::from_utf8_lossy(&response.body).into_owned();
    let (_, rest) = text.rsplit_once("\"resourceVersion\":\"").ok_or("a list has no resourceVersion")?;
    Ok(rest.split('"').next().unwrap_or_default().to_owned())
}

/// Opens `count` watches of a collection, each on its own connection. The connections must live as long as the watches.
async fn open(subject: &Subject, kind: &Kind, count: usize) -> Result<(Vec<Connection>, Vec<Incoming>)> {
    let path = format!("{}?watch=true&resourceVersion={}", kind.collection(), version(subject, kind).await?);
    let mut connections = subject.client.connections(count).await?;
    let mut bodies = vec![];
    for connection in &mut connections {
        let response = connection.open(Call::get(path.clone())).await?;
        if !response.status().is_success() {
            return fail(format!("a watch failed with status {}", response.status()));
        }
        bodies.push(response.into_body());
    }
    Ok((connections, bodies))
}

/// The delay of events, with a single writer that pauses between writes.
pub async fn watch(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = subject.define("watches").await?;
    let sent = (0..sizes.watch_writes).map(|_| AtomicU64::new(0)).collect();
    let clock = Arc::new(Clock { started: Instant::now(), sent });
    let (_connections, bodies) = open(subject, &kind, sizes.watchers).await?;
    let mut watchers: JoinSet<_> = bodies.into_iter().map(|body| follow(body, clock.clone())).collect();
    let before = subject.processor();
    let started = Instant::now();
    let mut writer = subject.client.connect().await?;
    for i in 0..sizes.watch_writes {
        let call = Call::post(kind.collection(), fixtures::object(&kind, i, SIZE));
        clock.sent[i].store(clock.now(), Ordering::Release);
        writer.send(call).await?.ok("a write")?;
    }
    let mut times = vec![];
    let collected = async {
        while let Some(watcher) = watchers.join_next().await {
            times.extend(watcher.unwrap_or_default());
        }
    };
    let complete = tokio::time::timeout(PATIENCE, collected).await.is_ok();
    let wall = started.elapsed();
    let share = times.len() as f64 / (sizes.watchers * sizes.watch_writes).max(1) as f64;
    let what = format!("{} watchers × {} writes", sizes.watchers, sizes.watch_writes);
    let goal = Goal::Delivered(Duration::from_millis(15));
    let mut row = row(subject, what, Samples::new(times, wall), goal, before);
    row.delivered = Some(share);
    row.note = format!("{:.1}% delivered{}", share * 100.0, if complete { "" } else { " in time" });
    Ok(row)
}

/// Reads a watch until `wanted` events have arrived; returns the number of events.
async fn count(mut body: Incoming, wanted: usize) -> usize {
    let mut seen = 0;
    while seen < wanted {
        let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE, body.frame()).await else { break };
        seen += frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
    }
    seen
}

/// The rate of events, from the first write to the last event, with concurrent writers.
pub async fn flood(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = subject.define("floods").await?;
    let (_connections, bodies) = open(subject, &kind, sizes.watchers).await?;
    let mut watchers: JoinSet<_> = bodies.into_iter().map(|body| count(body, sizes.flood_writes)).collect();
    let before = subject.processor();
    let started = Instant::now();
    let make = move |i| Call::post(kind.collection(), fixtures::object(&kind, i, SIZE));
    drive(&subject.client, sizes.clients, sizes.flood_writes, make).await?;
    let mut arrived = 0;
    while let Some(watcher) = watchers.join_next().await {
        arrived += watcher.unwrap_or_default();
    }
    let wall = started.elapsed();
    let expected = sizes.watchers * sizes.flood_writes;
    if arrived != expected {
        return fail(format!("{arrived} of {expected} events arrived"));
    }
    // only the rate is measured, since the time at which each event was sent is unknown
    let samples = Samples::new(vec![wall / u32::try_from(arrived).unwrap_or(u32::MAX).max(1); arrived], wall);
    let what = format!("events to {} watchers, {} writers", sizes.watchers, sizes.clients);
    Ok(row(subject, what, samples, Goal::Rate(200_000.0), before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn export_lines_name_their_object() {
        let line = br#"{"type":"ADDED","object":{"metadata":{"labels":{"name":"x"},"name":"w-000042"}}}"#;
        assert_eq!(object_of(line), Some(42));
        assert_eq!(object_of(b"{\"type\":\"BOOKMARK\"}"), None);
    }
}
