//! Creates, patches, applies and deletes.

use std::time::{Duration, Instant};

use super::super::fixtures::{self, APPLY_PATCH, Kind, MERGE_PATCH};
use super::super::load::{Samples, drive};
use super::super::row::{Goal, Row};
use super::super::sizes::Sizes;
use super::super::subject::Subject;
use super::row;
use client::{Call, Result, fail};

/// Size of an object in the request, in bytes.
pub const SIZE: usize = 1500;

pub async fn create(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = subject.define("creates").await?;
    let size = fixtures::object(&kind, 0, SIZE).len();
    let before = subject.processor();
    let make = move |i| Call::post(kind.collection(), fixtures::object(&kind, i, SIZE));
    let samples = drive(&subject.client, sizes.clients, sizes.creates, make).await?;
    let what = format!("creates, {} clients", sizes.clients);
    let mut row = row(subject, what, samples, Goal::Rate(8_000.0), before);
    row.note = format!("{:.1} KB", size as f64 / 1e3);
    Ok(row)
}

pub async fn status(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = subject.filled("statuses", sizes.targets, SIZE).await?;
    let before = subject.processor();
    let targets = sizes.targets;
    let make =
        move |i: usize| Call::patch(format!("{}/status", kind.item(i % targets)), MERGE_PATCH, fixtures::status(i));
    let samples = drive(&subject.client, sizes.clients, sizes.patches, make).await?;
    let what = format!("status patches, {} clients", sizes.clients);
    Ok(row(subject, what, samples, Goal::Rate(8_000.0), before))
}

async fn apply_all(subject: &Subject, sizes: &Sizes, kind: Kind) -> Result<Samples> {
    let make = move |i: usize| {
        let path = format!("{}?fieldManager=bench&force=true", kind.item(i));
        Call::patch(path, APPLY_PATCH, fixtures::object(&kind, i, SIZE))
    };
    drive(&subject.client, sizes.clients, sizes.applies, make).await
}

pub async fn apply(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = subject.define("applies").await?;
    let before = subject.processor();
    let samples = apply_all(subject, sizes, kind).await?;
    let what = format!("server-side applies, {} clients", sizes.clients);
    Ok(row(subject, what, samples, Goal::Rate(6_000.0), before))
}

pub async fn reapply(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = subject.define("applies").await?;
    let there = subject.client.connect().await?.send(Call::get(kind.item(sizes.applies - 1))).await?;
    if there.status == 404 {
        apply_all(subject, sizes, kind.clone()).await?;
    }
    let before = subject.processor();
    let samples = apply_all(subject, sizes, kind).await?;
    let what = format!("the same applies again, {} clients", sizes.clients);
    Ok(row(subject, what, samples, Goal::Rate(6_000.0), before))
}

pub async fn delete(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = subject.filled("deletes", sizes.delete_objects, SIZE).await?;
    let mut connection = subject.client.connect().await?;
    let before = subject.processor();
    let started = Instant::now();
    connection.send(Call::delete(kind.collection())).await?.ok("a deletecollection")?;
    let took = started.elapsed();
    let samples = Samples::new(vec![took], took);
    let what = format!("deletecollection of {} objects", sizes.delete_objects);
    let row = row(subject, what, samples, Goal::Total(Duration::from_millis(500)), before);
    let last = connection.send(Call::get(kind.item(sizes.delete_objects - 1))).await?;
    if last.status == 404 { Ok(row) } else { fail("some objects still exist after a deletecollection") }
}
