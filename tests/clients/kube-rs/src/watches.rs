//! Watchers and reflectors.

use anyhow::{Context, Result, bail, ensure};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, predicates, reflector};
use kube::{Client, ResourceExt};

use crate::boat::{Boat, boat, create_namespace};
use crate::harness::{eventually, restart_server};

/// Returns the next event of an object. Skips errors, from which the watcher recovers, and the marks of a new list.
async fn next(
    events: &mut (impl Stream<Item = watcher::Result<Event<Boat>>> + Unpin),
) -> Result<(&'static str, String)> {
    loop {
        match events.next().await.context("the watcher ended")? {
            Ok(Event::InitApply(boat)) => return Ok(("initial", boat.name_any())),
            Ok(Event::Apply(boat)) => return Ok(("applied", boat.name_any())),
            Ok(Event::Delete(boat)) => return Ok(("deleted", boat.name_any())),
            Ok(Event::Init | Event::InitDone) | Err(_) => {}
        }
    }
}

async fn expect(
    events: &mut (impl Stream<Item = watcher::Result<Event<Boat>>> + Unpin),
    what: &'static str,
    name: &str,
) -> Result<()> {
    let found = next(events).await?;
    if found != (what, name.to_owned()) { bail!("got {found:?}, want {what} {name}") } else { Ok(()) }
}

pub async fn watcher(client: Client, streaming: bool, command: &'static str) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &create_namespace(&client).await?);
    boats.create(&PostParams::default(), &boat("early", 1)).await?;
    let config = if streaming { watcher::Config::default().streaming_lists() } else { watcher::Config::default() };
    let mut events = kube::runtime::watcher(boats.clone(), config).default_backoff().boxed();
    expect(&mut events, "initial", "early").await?;
    let creation = tokio::spawn({
        let boats = boats.clone();
        async move { boats.create(&PostParams::default(), &boat("between", 1)).await }
    });
    expect(&mut events, "applied", "between").await?;
    creation.await??;
    restart_server(command).await?;
    boats.create(&PostParams::default(), &boat("late", 1)).await?;
    boats.delete("early", &DeleteParams::default()).await?;
    expect(&mut events, "applied", "late").await?;
    expect(&mut events, "deleted", "early").await
}

pub async fn metadata_reflector(client: Client) -> Result<()> {
    let namespace = create_namespace(&client).await?;
    let boats: Api<Boat> = Api::namespaced(client.clone(), &namespace);
    let metadata: Api<PartialObjectMeta<Boat>> = Api::namespaced(client, &namespace);
    let (store, writer) = reflector::store();
    let stream = kube::runtime::watcher(metadata, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .touched_objects()
        .predicate_filter(predicates::generation, Default::default());
    let reader = tokio::spawn(stream.for_each(|_| futures::future::ready(())));
    store.wait_until_ready().await?;
    for (name, command) in [("first", "restart"), ("second", "kill")] {
        boats.create(&PostParams::default(), &boat(name, 1)).await?;
        restart_server(command).await?;
    }
    boats.delete("first", &DeleteParams::default()).await?;
    eventually(async || {
        let names: Vec<String> = store.state().iter().map(|object| object.name_any()).collect();
        Ok((names == ["second"]).then_some(()))
    })
    .await?;
    reader.abort();
    Ok(())
}

/// Writes more history than the server keeps: creates and deletes 540 ConfigMaps.
async fn flood(config_maps: &Api<ConfigMap>) -> Result<()> {
    let labels = Some([("flood".to_owned(), String::new())].into());
    let data = Some([("key".to_owned(), "x".repeat(95_000))].into());
    let create = async |number: usize| {
        let name = Some(format!("flood-{number}"));
        let metadata = ObjectMeta { name, labels: labels.clone(), ..ObjectMeta::default() };
        let config_map = ConfigMap { metadata, data: data.clone(), ..ConfigMap::default() };
        config_maps.create(&PostParams::default(), &config_map).await
    };
    for part in 0..90 {
        let requests = (0..6).map(|number| create(part * 6 + number));
        futures::future::try_join_all(requests).await?;
    }
    config_maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("flood")).await?;
    Ok(())
}

/// The watch is not read until its history has expired. The watcher must then list again.
pub async fn expired(client: Client, streaming: bool) -> Result<()> {
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), &create_namespace(&client).await?);
    let new_config_map = |name: &str| ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    config_maps.create(&PostParams::default(), &new_config_map("early")).await?;
    let config = if streaming { watcher::Config::default().streaming_lists() } else { watcher::Config::default() };
    let (store, writer) = reflector::store();
    let mut events = kube::runtime::watcher(config_maps.clone(), config).default_backoff().reflect(writer).boxed();
    while !matches!(events.next().await, Some(Ok(Event::InitDone))) {}
    config_maps.create(&PostParams::default(), &new_config_map("read")).await?;
    while !matches!(events.next().await, Some(Ok(Event::Apply(_)))) {}

    config_maps.delete("early", &DeleteParams::default()).await?;
    flood(&config_maps).await?;
    config_maps.create(&PostParams::default(), &new_config_map("late")).await?;
    let mut expired = false;
    loop {
        match events.next().await.context("the watcher ended")? {
            Err(watcher::Error::WatchError(status)) => expired |= status.code == 410,
            Ok(Event::InitDone) => break,
            _ => {}
        }
    }
    let mut names: Vec<String> = store.state().iter().map(|object| object.name_any()).collect();
    names.sort();
    ensure!(expired && names == ["late", "read"], "expired: {expired}, there are {names:?}");
    Ok(())
}
