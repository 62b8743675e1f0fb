//! A controller: creates a ConfigMap for every boat, which the boat owns, sets a finalizer and the status, and records an event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event as RecordedEvent, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;

use crate::boat::{Boat, boat, create_namespace};
use crate::harness::{eventually, restart_server};

const FINALIZER: &str = "harbor.example.com/moored";

struct Data {
    client: Client,
    recorder: Recorder,
}

async fn reconcile(boat: Arc<Boat>, ctx: Arc<Data>) -> Result<Action, finalizer::Error<kube::Error>> {
    let boats: Api<Boat> = Api::namespaced(ctx.client.clone(), &boat.namespace().unwrap_or_default());
    finalizer(&boats, FINALIZER, boat, |event| async {
        match event {
            finalizer::Event::Apply(boat) => apply_berth(&boat, &ctx).await,
            finalizer::Event::Cleanup(_) => Ok(Action::await_change()),
        }
    })
    .await
}

async fn apply_berth(boat: &Boat, ctx: &Data) -> Result<Action, kube::Error> {
    let namespace = boat.namespace().unwrap_or_default();
    let name = boat.name_any() + "-berth";
    let owned = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: Some(boat.controller_owner_ref(&()).into_iter().collect()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("sails".to_owned(), boat.spec.sails.to_string())])),
        ..ConfigMap::default()
    };
    let apply = PatchParams::apply("harbor").force();
    Api::<ConfigMap>::namespaced(ctx.client.clone(), &namespace).patch(&name, &apply, &Patch::Apply(owned)).await?;
    let event = RecordedEvent {
        type_: EventType::Normal,
        reason: "Berthed".into(),
        note: Some(format!("{} has a berth", boat.name_any())),
        action: "Berthing".into(),
        secondary: None,
    };
    ctx.recorder.publish(&event, &boat.object_ref(&())).await?;
    let status = json!({"apiVersion": "harbor.example.com/v1", "kind": "Boat", "status": {"phase": "afloat"}});
    Api::<Boat>::namespaced(ctx.client.clone(), &namespace)
        .patch_status(&boat.name_any(), &apply, &Patch::Apply(status))
        .await?;
    Ok(Action::await_change())
}

pub async fn survives(client: Client) -> Result<()> {
    let namespace = create_namespace(&client).await?;
    let boats: Api<Boat> = Api::namespaced(client.clone(), &namespace);
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let recorder = Recorder::new(client.clone(), Reporter { controller: "harbor".into(), instance: None });
    let controller = Controller::new(boats.clone(), watcher::Config::default())
        .owns(config_maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), Arc::new(Data { client, recorder }))
        .for_each(|_| futures::future::ready(()));
    let controller = tokio::spawn(controller);
    let ready = async |name: &str| -> Result<Boat> {
        eventually(async || {
            let boat = boats.get(name).await?;
            let phase = boat.status.as_ref().and_then(|status| status.phase.as_deref());
            Ok((phase == Some("afloat")).then_some(boat))
        })
        .await
    };
    for (name, command) in [("anna", "restart"), ("berta", "kill")] {
        boats.create(&PostParams::default(), &boat(name, 2)).await?;
        ready(name).await?;
        restart_server(command).await?;
    }
    boats.create(&PostParams::default(), &boat("clara", 2)).await?;
    let clara = ready("clara").await?;
    ensure!(clara.finalizers() == [FINALIZER], "{:?}", clara.finalizers());
    let owned = config_maps.get("clara-berth").await?;
    ensure!(owned.owner_references().first() == clara.controller_owner_ref(&()).as_ref(), "{:?}", owned.metadata);
    let uid = owned.uid().context("no uid")?;
    // The watch of ConfigMaps may come back later than that of boats, and does not show what is deleted before it lists again. Two
    // changes of the boat may still be queued; the third restoration is one that the watch of ConfigMaps has caused.
    for _ in 0..3 {
        let changed = Patch::Merge(json!({"data": {"sails": "0"}}));
        config_maps.patch("clara-berth", &PatchParams::default(), &changed).await?;
        eventually(async || {
            let found = config_maps.get("clara-berth").await?;
            Ok((found.data == owned.data).then_some(()))
        })
        .await?;
    }
    config_maps.delete("clara-berth", &DeleteParams::default()).await?;
    eventually(async || {
        Ok(config_maps.get_opt("clara-berth").await?.filter(|found| found.uid().as_ref() != Some(&uid)))
    })
    .await?;
    boats.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    eventually(async || Ok(boats.list(&ListParams::default()).await?.items.is_empty().then_some(()))).await?;
    controller.abort();
    Ok(())
}
