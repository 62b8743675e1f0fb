//! The garbage collector: the time to delete all dependents, and its effect on other clients.

use std::time::{Duration, Instant};

use super::super::fixtures;
use super::super::load::{Samples, drive};
use super::super::row::{Goal, Row, time_text};
use super::super::sizes::Sizes;
use super::super::subject::Subject;
use super::row;
use client::{Call, Result, fail};

/// Time limit of the measurement.
const PATIENCE: Duration = Duration::from_secs(60);
/// Writes of another client between two reads of the remaining objects.
const WRITES_PER_LOOK: usize = 5;

pub async fn collect(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let (owners, kind) = (subject.define("owners").await?, subject.define("dependents").await?);
    let mut connection = subject.client.connect().await?;
    let made = connection.send(Call::post(owners.collection(), fixtures::object(&owners, 0, 0))).await?;
    let made = String::from_utf8_lossy(&made.ok("the owner")?.body).into_owned();
    let uid = made.split_once("\"uid\":\"").and_then(|(_, rest)| rest.split_once('"')).map(|(uid, _)| uid.to_owned());
    let uid = uid.ok_or("the owner has no uid")?;
    let (parent, child) = (owners.clone(), kind.clone());
    let make = move |i| Call::post(child.collection(), fixtures::dependent(&child, i, &parent, &uid));
    drive(&subject.client, sizes.clients, sizes.dependents, make).await?;
    let (before, started) = (subject.processor(), Instant::now());
    connection.send(Call::delete(owners.item(0))).await?.ok("the deletion of the owner")?;
    let mut writes = vec![];
    let left = format!("{}?limit=1", kind.collection());
    loop {
        for _ in 0..WRITES_PER_LOOK {
            let (object, sent) = (fixtures::object(&owners, writes.len() + 1, 0), Instant::now());
            connection.send(Call::post(owners.collection(), object)).await?.ok("another write")?;
            writes.push(sent.elapsed());
        }
        let list = connection.send(Call::get(left.as_str())).await?.ok("a list")?;
        if String::from_utf8_lossy(&list.body).contains("\"items\":[]") {
            break;
        }
        if started.elapsed() > PATIENCE {
            return fail(format!("some dependents still exist after {PATIENCE:?}"));
        }
    }
    let took = started.elapsed();
    let what = format!("{} dependents collected; writes meanwhile", sizes.dependents);
    let goal = Goal::Beside(Duration::from_secs(2), Duration::from_millis(20));
    let mut row = row(subject, what, Samples::new(writes, took), goal, before);
    row.note = format!("took {}", time_text(took));
    Ok(row)
}
