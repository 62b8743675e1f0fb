//! An operator for mailboxes: each gets a ConfigMap with its settings, and leaves one behind as an archive when it is deleted.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Client, CustomResource, KubeSchema, Resource as _, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub const FINALIZER: &str = "example.com/archive";

#[derive(CustomResource, KubeSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Mailbox", namespaced, status = "MailboxStatus")]
pub struct MailboxSpec {
    #[x_kube(validation = ("self == oldSelf", "a mailbox keeps its owner"))]
    pub owner: String,
    /// In megabytes.
    #[serde(default = "usual_quota")]
    #[schemars(range(min = 1, max = 1000))]
    pub quota: i32,
}

#[derive(KubeSchema, Clone, Debug, Serialize, Deserialize)]
pub struct MailboxStatus {
    /// The quota that the settings have.
    pub quota: i32,
}

fn usual_quota() -> i32 {
    10
}

/// Makes what a mailbox has as it should be.
pub async fn reconcile(mailbox: Arc<Mailbox>, client: Arc<Client>) -> Result<Action, finalizer::Error<kube::Error>> {
    let namespace = mailbox.namespace().unwrap_or_default();
    let mailboxes: Api<Mailbox> = Api::namespaced((*client).clone(), &namespace);
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    finalizer(&mailboxes, FINALIZER, mailbox, |event| async {
        match event {
            Event::Apply(mailbox) => configure(&mailbox, &mailboxes, &maps).await,
            Event::Cleanup(mailbox) => archive(&mailbox, &maps).await,
        }
    })
    .await
}

async fn configure(mailbox: &Mailbox, mailboxes: &Api<Mailbox>, maps: &Api<ConfigMap>) -> Result<Action, kube::Error> {
    let MailboxSpec { owner, quota } = &mailbox.spec;
    let mut settings = map("mailbox", mailbox, &[("owner", owner.clone()), ("quota", quota.to_string())]);
    settings.metadata.owner_references = Some(mailbox.controller_owner_ref(&()).into_iter().collect());
    maps.patch(&settings.name_any(), &PatchParams::apply("mailboxes").force(), &Patch::Apply(&settings)).await?;
    let status = Patch::Merge(json!({"status": {"quota": quota}}));
    mailboxes.patch_status(&mailbox.name_any(), &PatchParams::default(), &status).await?;
    Ok(Action::await_change())
}

async fn archive(mailbox: &Mailbox, maps: &Api<ConfigMap>) -> Result<Action, kube::Error> {
    let archive = map("archive", mailbox, &[("owner", mailbox.spec.owner.clone())]);
    match maps.create(&PostParams::default(), &archive).await {
        // of an earlier mailbox, or of an earlier attempt
        Err(kube::Error::Api(refused)) if refused.is_already_exists() => {}
        created => drop(created?),
    }
    Ok(Action::await_change())
}

fn map(prefix: &str, mailbox: &Mailbox, data: &[(&str, String)]) -> ConfigMap {
    let name = Some(format!("{prefix}-{}", mailbox.name_any()));
    let metadata = ObjectMeta { name, namespace: mailbox.namespace(), ..ObjectMeta::default() };
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
    ConfigMap { metadata, data: Some(data.collect::<BTreeMap<_, _>>()), ..ConfigMap::default() }
}

/// Runs the operator. What fails is tried again after the pause.
pub async fn run(client: Client, pause: Duration) {
    let config = watcher::Config::default();
    Controller::new(Api::<Mailbox>::all(client.clone()), config.clone())
        .owns(Api::<ConfigMap>::all(client.clone()), config)
        .run(reconcile, |_, _, _| Action::requeue(pause), Arc::new(client))
        .for_each(|_| ready(()))
        .await;
}
