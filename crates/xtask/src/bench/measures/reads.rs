//! Gets and lists.

use std::time::Duration;

use super::super::fixtures::{Kind, SHARDS};
use super::super::load::drive;
use super::super::row::{Goal, Row};
use super::super::sizes::Sizes;
use super::super::subject::Subject;
use super::row;
use client::{Call, Result};

/// Size of a listed object in the request; in responses, with the fields that the server adds, it is 1.55 KB.
const SIZE: usize = 700;

pub async fn get(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = subject.filled("gets", sizes.targets, super::writes::SIZE).await?;
    let before = subject.processor();
    let targets = sizes.targets;
    let make = move |i: usize| Call::get(kind.item(i.wrapping_mul(7919) % targets));
    let samples = drive(&subject.client, sizes.clients, sizes.gets, make).await?;
    Ok(row(subject, format!("gets, {} clients", sizes.clients), samples, Goal::Rate(20_000.0), before))
}

async fn listed(subject: &Subject, sizes: &Sizes) -> Result<Kind> {
    subject.filled("lists", sizes.list_objects, SIZE).await
}

pub async fn list(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = listed(subject, sizes).await?;
    let response = subject.client.connect().await?.send(Call::get(kind.collection())).await?.ok("a list")?;
    let before = subject.processor();
    let samples = drive(&subject.client, 1, sizes.lists, move |_| Call::get(kind.collection())).await?;
    let what = format!("list of {} objects", sizes.list_objects);
    let mut row = row(subject, what, samples, Goal::Median(Duration::from_millis(20)), before);
    row.note = format!("{:.1} MB", response.size as f64 / 1e6);
    Ok(row)
}

pub async fn select(subject: &Subject, sizes: &Sizes) -> Result<Row> {
    let kind = listed(subject, sizes).await?;
    let path = |shard: usize| format!("{}?labelSelector=shard%3Ds-{}", kind.collection(), shard % SHARDS);
    let paths: Vec<String> = (0..SHARDS).map(path).collect();
    let before = subject.processor();
    let samples = drive(&subject.client, 1, sizes.selects, move |i| Call::get(paths[i % SHARDS].clone())).await?;
    let what = format!("list of 1 in {SHARDS} of {} by label", sizes.list_objects);
    Ok(row(subject, what, samples, Goal::Median(Duration::from_millis(3)), before))
}
