//! A controller: every boat gets a config map that it owns; a finalizer, an event and a status tell of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event as Told, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;

use crate::boat::{Boat, boat, namespace};
use crate::harness::{end, eventually};

const MOORED: &str = "harbor.example.com/moored";

struct Harbor {
    client: Client,
    recorder: Recorder,
}

async fn reconcile(boat: Arc<Boat>, harbor: Arc<Harbor>) -> Result<Action, finalizer::Error<kube::Error>> {
    let boats: Api<Boat> = Api::namespaced(harbor.client.clone(), &boat.namespace().unwrap_or_default());
    finalizer(&boats, MOORED, boat, |event| async {
        match event {
            finalizer::Event::Apply(boat) => berth(&boat, &harbor).await,
            finalizer::Event::Cleanup(_) => Ok(Action::await_change()),
        }
    })
    .await
}

async fn berth(boat: &Boat, harbor: &Harbor) -> Result<Action, kube::Error> {
    let space = boat.namespace().unwrap_or_default();
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
    Api::<ConfigMap>::namespaced(harbor.client.clone(), &space).patch(&name, &apply, &Patch::Apply(owned)).await?;
    let told = Told {
        type_: EventType::Normal,
        reason: "Berthed".into(),
        note: Some(format!("{} has a berth", boat.name_any())),
        action: "Berthing".into(),
        secondary: None,
    };
    harbor.recorder.publish(&told, &boat.object_ref(&())).await?;
    let status = json!({"apiVersion": "harbor.example.com/v1", "kind": "Boat", "status": {"phase": "afloat"}});
    Api::<Boat>::namespaced(harbor.client.clone(), &space)
        .patch_status(&boat.name_any(), &apply, &Patch::Apply(status))
        .await?;
    Ok(Action::await_change())
}

pub async fn works(client: Client) -> Result<()> {
    let space = namespace(&client).await?;
    let boats: Api<Boat> = Api::namespaced(client.clone(), &space);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &space);
    let recorder = Recorder::new(client.clone(), Reporter { controller: "harbor".into(), instance: None });
    let running = Controller::new(boats.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), Arc::new(Harbor { client, recorder }))
        .for_each(|_| futures::future::ready(()));
    let running = tokio::spawn(running);
    let ready = async |name: &str| -> Result<Boat> {
        eventually(async || {
            let found = boats.get(name).await?;
            let phase = found.status.as_ref().and_then(|status| status.phase.as_deref());
            Ok((phase == Some("afloat")).then_some(found))
        })
        .await
    };
    for (name, how) in [("anna", "restart"), ("berta", "kill")] {
        boats.create(&PostParams::default(), &boat(name, 2)).await?;
        ready(name).await?;
        end(how).await?;
    }
    boats.create(&PostParams::default(), &boat("clara", 2)).await?;
    let clara = ready("clara").await?;
    ensure!(clara.finalizers() == [MOORED], "{:?}", clara.finalizers());
    let owned = maps.get("clara-berth").await?;
    ensure!(owned.owner_references().first() == clara.controller_owner_ref(&()).as_ref(), "{:?}", owned.metadata);
    let uid = owned.uid().context("no uid")?;
    maps.delete("clara-berth", &DeleteParams::default()).await?;
    eventually(async || Ok(maps.get_opt("clara-berth").await?.filter(|found| found.uid().as_ref() != Some(&uid))))
        .await?;
    boats.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    eventually(async || Ok(boats.list(&ListParams::default()).await?.items.is_empty().then_some(()))).await?;
    running.abort();
    Ok(())
}
