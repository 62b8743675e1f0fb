//! Watcher and reflector.

use anyhow::{Context, Result, bail};
use futures::{Stream, StreamExt};
use kube::api::{Api, DeleteParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, predicates, reflector};
use kube::{Client, ResourceExt};

use crate::boat::{Boat, boat, namespace};
use crate::harness::{end, eventually};

/// The next event, over errors, which the watcher itself recovers from, and over starts from anew.
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
    if found != (what, name.to_owned()) { bail!("{found:?} came, not {what} {name}") } else { Ok(()) }
}

pub async fn watcher(client: Client, streaming: bool, how: &'static str) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &namespace(&client).await?);
    boats.create(&PostParams::default(), &boat("early", 1)).await?;
    let config = if streaming { watcher::Config::default().streaming_lists() } else { watcher::Config::default() };
    let mut events = kube::runtime::watcher(boats.clone(), config).default_backoff().boxed();
    expect(&mut events, "initial", "early").await?;
    let between = tokio::spawn({
        let boats = boats.clone();
        async move { boats.create(&PostParams::default(), &boat("between", 1)).await }
    });
    expect(&mut events, "applied", "between").await?;
    between.await??;
    end(how).await?;
    boats.create(&PostParams::default(), &boat("late", 1)).await?;
    boats.delete("early", &DeleteParams::default()).await?;
    expect(&mut events, "applied", "late").await?;
    expect(&mut events, "deleted", "early").await
}

pub async fn reflected(client: Client) -> Result<()> {
    let space = namespace(&client).await?;
    let boats: Api<Boat> = Api::namespaced(client.clone(), &space);
    let metadata: Api<PartialObjectMeta<Boat>> = Api::namespaced(client, &space);
    let (store, writer) = reflector::store();
    let stream = kube::runtime::watcher(metadata, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .touched_objects()
        .predicate_filter(predicates::generation, Default::default());
    let reader = tokio::spawn(stream.for_each(|_| futures::future::ready(())));
    store.wait_until_ready().await?;
    for (name, how) in [("first", "restart"), ("second", "kill")] {
        boats.create(&PostParams::default(), &boat(name, 1)).await?;
        end(how).await?;
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
