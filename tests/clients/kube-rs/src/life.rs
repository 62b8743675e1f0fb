//! Definitions, discovery, the life of objects, apply, and refusals.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::{GroupVersionKind, Status};
use kube::discovery::{self, Discovery, Scope, verbs};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::boat::{Boat, Hand, boat, namespace};

const DEFINITION: &str = "boats.harbor.example.com";

pub async fn define(client: Client) -> Result<()> {
    let text = std::fs::read_to_string(std::env::var("DEFINITION")?)?;
    let asked: CustomResourceDefinition = serde_yaml::from_str(&text)?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    definitions.create(&PostParams::default(), &asked).await?;
    await_condition(definitions, DEFINITION, conditions::is_crd_established()).await?;
    Ok(())
}

pub async fn undefine(client: Client) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &namespace(&client).await?);
    let made = boats.create(&PostParams::default(), &boat("last", 1)).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let uid = definitions.get(DEFINITION).await?.uid().context("no uid")?;
    definitions.delete(DEFINITION, &DeleteParams::default()).await?;
    await_condition(definitions, DEFINITION, conditions::is_deleted(&uid)).await?;
    let gone = refusal(boats.get(&made.name_any()).await)?;
    ensure!(gone.code == 404, "{gone:?}");
    Ok(())
}

pub async fn discovered(client: Client) -> Result<()> {
    let old = Discovery::new(client.clone()).run().await?;
    let aggregated = Discovery::new(client.clone()).run_aggregated().await?;
    let names = |found: &Discovery| -> Vec<String> {
        let groups = found.groups_alphabetical();
        let kinds = groups.iter().flat_map(|group| group.recommended_resources().into_iter().map(|(kind, _)| kind));
        let mut names: Vec<String> = kinds.map(|kind| format!("{} {}", kind.api_version, kind.plural)).collect();
        names.sort();
        names
    };
    ensure!(names(&old) == names(&aggregated), "{:?} and {:?}", names(&old), names(&aggregated));
    let wanted = GroupVersionKind::gvk("harbor.example.com", "v1", "Boat");
    let (kind, can) = discovery::pinned_kind(&client, &wanted).await?;
    ensure!(kind.plural == "boats" && can.scope == Scope::Namespaced && can.supports_operation(verbs::WATCH));
    ensure!(can.subresources.len() == 2, "{:?}", can.subresources);
    ensure!(client.apiserver_version().await?.minor == "37");
    Ok(())
}

pub async fn boats(client: Client) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &namespace(&client).await?);
    let mut made = boats.create(&PostParams::default(), &boat("anna", 2)).await?;
    ensure!(made.spec.port.as_deref() == Some("Palos"), "{made:?}");
    made.spec.sails = 3;
    let replaced = boats.replace("anna", &PostParams::default(), &made).await?;
    ensure!(replaced.metadata.generation == Some(2), "{replaced:?}");
    let merged = json!({"spec": {"port": "Genoa"}});
    boats.patch("anna", &PatchParams::default(), &Patch::Merge(&merged)).await?;
    let afloat = json!({"status": {"phase": "afloat"}, "spec": {"sails": 9}});
    let told = boats.patch_status("anna", &PatchParams::default(), &Patch::Merge(&afloat)).await?;
    ensure!(told.status.and_then(|status| status.phase).as_deref() == Some("afloat") && told.spec.sails == 3);
    let scaled = json!({"spec": {"replicas": 4}});
    boats.patch_scale("anna", &PatchParams::default(), &Patch::Merge(&scaled)).await?;
    let mut scale = boats.get_scale("anna").await?;
    scale.spec.as_mut().context("no spec")?.replicas = Some(5);
    boats.replace_scale("anna", &PostParams::default(), &scale).await?;
    ensure!(boats.get("anna").await?.spec.replicas == Some(5));
    ensure!(boats.list(&ListParams::default().fields("spec.port=Genoa")).await?.items.len() == 1);
    let mut entry = boats.entry("berta").await?.or_insert(|| boat("berta", 1));
    entry.commit(&PostParams::default()).await?;
    boats.delete("anna", &DeleteParams::default()).await?;
    boats.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    ensure!(boats.list(&ListParams::default()).await?.items.is_empty());
    Ok(())
}

pub async fn dynamic(client: Client) -> Result<()> {
    let wanted = GroupVersionKind::gvk("harbor.example.com", "v1", "Boat");
    let (kind, _) = discovery::pinned_kind(&client, &wanted).await?;
    let space = namespace(&client).await?;
    let objects: Api<DynamicObject> = Api::namespaced_with(client, &space, &kind);
    let start = objects.list(&ListParams::default()).await?.metadata.resource_version.context("no version")?;
    for number in 0..12 {
        let asked = DynamicObject::new(&format!("boat-{number:02}"), &kind).data(json!({"spec": {"sails": 1}}));
        objects.create(&PostParams::default(), &asked).await?;
    }
    let (mut seen, mut parameters) = (0, ListParams::default().limit(5));
    loop {
        let page = objects.list_metadata(&parameters).await?;
        seen += page.items.len();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    ensure!(seen == 12, "{seen} objects on all pages");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = objects.patch_metadata("boat-00", &PatchParams::default(), &Patch::Merge(&labelled)).await?;
    ensure!(patched.labels()["a"] == "b");
    let mut events = Box::pin(objects.watch(&WatchParams::default().labels("a=b"), &start).await?);
    match futures::StreamExt::next(&mut events).await.context("the watch ended")?? {
        WatchEvent::Added(object) => ensure!(object.name_any() == "boat-00"),
        other => bail!("{other:?}"),
    }
    Ok(())
}

pub async fn applied(client: Client) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &namespace(&client).await?);
    let manned = |name: &str, rank: &str| {
        let mut asked = boat("anna", 1);
        asked.spec.crew = vec![Hand { name: name.into(), rank: rank.into() }];
        asked
    };
    boats.patch("anna", &PatchParams::apply("first"), &Patch::Apply(manned("pip", "boy"))).await?;
    let both = boats.patch("anna", &PatchParams::apply("second"), &Patch::Apply(manned("ahab", "captain"))).await?;
    ensure!(both.spec.crew.len() == 2, "{both:?}");
    let third = PatchParams::apply("third");
    let conflict = refusal(boats.patch("anna", &third, &Patch::Apply(manned("ahab", "mate"))).await)?;
    ensure!(conflict.is_conflict(), "{conflict:?}");
    let causes = &conflict.details.context("no details")?.causes;
    ensure!(causes[0].field == r#".spec.crew[name="ahab"].rank"#, "{causes:?}");
    boats.patch("anna", &third.force(), &Patch::Apply(manned("ahab", "mate"))).await?;
    let left = boats.patch("anna", &PatchParams::apply("first"), &Patch::Apply(boat("anna", 1))).await?;
    ensure!(left.spec.crew == [Hand { name: "ahab".into(), rank: "mate".into() }], "{left:?}");
    Ok(())
}

pub async fn refused(client: Client) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &namespace(&client).await?);
    ensure!(boats.get_opt("none").await?.is_none());
    ensure!(refusal(boats.get("none").await)?.is_not_found());
    let mut made = boats.create(&PostParams::default(), &boat("anna", 1)).await?;
    ensure!(refusal(boats.create(&PostParams::default(), &boat("anna", 1)).await)?.is_already_exists());
    boats.patch("anna", &PatchParams::default(), &Patch::Merge(json!({"spec": {"sails": 2}}))).await?;
    made.spec.sails = 3;
    ensure!(refusal(boats.replace("anna", &PostParams::default(), &made).await)?.is_conflict());
    let invalid = refusal(boats.create(&PostParams::default(), &boat("Anna", 21)).await)?;
    ensure!(invalid.is_invalid(), "{invalid:?}");
    let causes = invalid.details.context("no details")?.causes;
    let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
    ensure!(fields.contains(&"metadata.name") && fields.contains(&"spec.sails"), "{fields:?}");
    let strict = PatchParams { field_manager: Some("tester".into()), ..PatchParams::default() }.validation_strict();
    let unknown = json!({"spec": {"speck": 1}});
    ensure!(refusal(boats.patch("anna", &strict, &Patch::Merge(unknown)).await)?.reason == "Invalid");
    Ok(())
}

/// The status of a call that the server must have refused.
fn refusal<T: std::fmt::Debug>(outcome: kube::Result<T>) -> Result<Status> {
    match outcome {
        Err(kube::Error::Api(status)) => Ok(*status),
        other => bail!("it was not refused: {other:?}"),
    }
}
