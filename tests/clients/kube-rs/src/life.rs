//! CRDs, discovery, all verbs on objects, server-side apply, and errors.

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

use crate::boat::{Boat, CrewMember, boat, create_namespace};

const CRD_NAME: &str = "boats.harbor.example.com";

pub async fn create_crd(client: Client) -> Result<()> {
    let text = std::fs::read_to_string(std::env::var("DEFINITION")?)?;
    let crd: CustomResourceDefinition = serde_yaml::from_str(&text)?;
    let crds: Api<CustomResourceDefinition> = Api::all(client);
    crds.create(&PostParams::default(), &crd).await?;
    await_condition(crds, CRD_NAME, conditions::is_crd_established()).await?;
    Ok(())
}

pub async fn delete_crd(client: Client) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &create_namespace(&client).await?);
    let created = boats.create(&PostParams::default(), &boat("last", 1)).await?;
    let crds: Api<CustomResourceDefinition> = Api::all(client);
    let uid = crds.get(CRD_NAME).await?.uid().context("no uid")?;
    crds.delete(CRD_NAME, &DeleteParams::default()).await?;
    await_condition(crds, CRD_NAME, conditions::is_deleted(&uid)).await?;
    let status = error_status(boats.get(&created.name_any()).await)?;
    ensure!(status.code == 404, "{status:?}");
    Ok(())
}

pub async fn discovery(client: Client) -> Result<()> {
    let legacy = Discovery::new(client.clone()).run().await?;
    let aggregated = Discovery::new(client.clone()).run_aggregated().await?;
    let names = |discovery: &Discovery| -> Vec<String> {
        let groups = discovery.groups_alphabetical();
        let kinds = groups.iter().flat_map(|group| group.recommended_resources().into_iter().map(|(kind, _)| kind));
        let mut names: Vec<String> = kinds.map(|kind| format!("{} {}", kind.api_version, kind.plural)).collect();
        names.sort();
        names
    };
    ensure!(names(&legacy) == names(&aggregated), "{:?} and {:?}", names(&legacy), names(&aggregated));
    let wanted = GroupVersionKind::gvk("harbor.example.com", "v1", "Boat");
    let (kind, capabilities) = discovery::pinned_kind(&client, &wanted).await?;
    ensure!(
        kind.plural == "boats"
            && capabilities.scope == Scope::Namespaced
            && capabilities.supports_operation(verbs::WATCH)
    );
    ensure!(capabilities.subresources.len() == 2, "{:?}", capabilities.subresources);
    ensure!(client.apiserver_version().await?.minor == "37");
    Ok(())
}

pub async fn boats(client: Client) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &create_namespace(&client).await?);
    let mut created = boats.create(&PostParams::default(), &boat("anna", 2)).await?;
    ensure!(created.spec.port.as_deref() == Some("Palos"), "{created:?}");
    created.spec.sails = 3;
    let replaced = boats.replace("anna", &PostParams::default(), &created).await?;
    ensure!(replaced.metadata.generation == Some(2), "{replaced:?}");
    let patch = json!({"spec": {"port": "Genoa"}});
    boats.patch("anna", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let afloat = json!({"status": {"phase": "afloat"}, "spec": {"sails": 9}});
    let updated = boats.patch_status("anna", &PatchParams::default(), &Patch::Merge(&afloat)).await?;
    ensure!(updated.status.and_then(|status| status.phase).as_deref() == Some("afloat") && updated.spec.sails == 3);
    let replicas = json!({"spec": {"replicas": 4}});
    boats.patch_scale("anna", &PatchParams::default(), &Patch::Merge(&replicas)).await?;
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

pub async fn dynamic_objects(client: Client) -> Result<()> {
    let wanted = GroupVersionKind::gvk("harbor.example.com", "v1", "Boat");
    let (kind, _) = discovery::pinned_kind(&client, &wanted).await?;
    let namespace = create_namespace(&client).await?;
    let objects: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &kind);
    let start = objects.list(&ListParams::default()).await?.metadata.resource_version.context("no version")?;
    for number in 0..12 {
        let object = DynamicObject::new(&format!("boat-{number:02}"), &kind).data(json!({"spec": {"sails": 1}}));
        objects.create(&PostParams::default(), &object).await?;
    }
    let (mut count, mut parameters) = (0, ListParams::default().limit(5));
    loop {
        let page = objects.list_metadata(&parameters).await?;
        count += page.items.len();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    ensure!(count == 12, "{count} objects on all pages");
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

pub async fn server_side_apply(client: Client) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &create_namespace(&client).await?);
    let with_crew = |name: &str, rank: &str| {
        let mut boat = boat("anna", 1);
        boat.spec.crew = vec![CrewMember { name: name.into(), rank: rank.into() }];
        boat
    };
    boats.patch("anna", &PatchParams::apply("first"), &Patch::Apply(with_crew("pip", "boy"))).await?;
    let both = boats.patch("anna", &PatchParams::apply("second"), &Patch::Apply(with_crew("ahab", "captain"))).await?;
    ensure!(both.spec.crew.len() == 2, "{both:?}");
    let third = PatchParams::apply("third");
    let conflict = error_status(boats.patch("anna", &third, &Patch::Apply(with_crew("ahab", "mate"))).await)?;
    ensure!(conflict.is_conflict(), "{conflict:?}");
    let causes = &conflict.details.context("no details")?.causes;
    ensure!(causes[0].field == r#".spec.crew[name="ahab"].rank"#, "{causes:?}");
    boats.patch("anna", &third.force(), &Patch::Apply(with_crew("ahab", "mate"))).await?;
    let remaining = boats.patch("anna", &PatchParams::apply("first"), &Patch::Apply(boat("anna", 1))).await?;
    ensure!(remaining.spec.crew == [CrewMember { name: "ahab".into(), rank: "mate".into() }], "{remaining:?}");
    Ok(())
}

pub async fn errors(client: Client) -> Result<()> {
    let boats: Api<Boat> = Api::namespaced(client.clone(), &create_namespace(&client).await?);
    ensure!(boats.get_opt("none").await?.is_none());
    ensure!(error_status(boats.get("none").await)?.is_not_found());
    let mut created = boats.create(&PostParams::default(), &boat("anna", 1)).await?;
    ensure!(error_status(boats.create(&PostParams::default(), &boat("anna", 1)).await)?.is_already_exists());
    boats.patch("anna", &PatchParams::default(), &Patch::Merge(json!({"spec": {"sails": 2}}))).await?;
    created.spec.sails = 3;
    ensure!(error_status(boats.replace("anna", &PostParams::default(), &created).await)?.is_conflict());
    let invalid = error_status(boats.create(&PostParams::default(), &boat("Anna", 21)).await)?;
    ensure!(invalid.is_invalid(), "{invalid:?}");
    let causes = invalid.details.context("no details")?.causes;
    let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
    ensure!(fields.contains(&"metadata.name") && fields.contains(&"spec.sails"), "{fields:?}");
    let strict = PatchParams { field_manager: Some("tester".into()), ..PatchParams::default() }.validation_strict();
    let unknown = json!({"spec": {"speck": 1}});
    ensure!(error_status(boats.patch("anna", &strict, &Patch::Merge(unknown)).await)?.reason == "Invalid");
    Ok(())
}

/// The `Status` with which the server must have rejected a request.
fn error_status<T: std::fmt::Debug>(outcome: kube::Result<T>) -> Result<Status> {
    match outcome {
        Err(kube::Error::Api(status)) => Ok(*status),
        other => bail!("the request was not rejected: {other:?}"),
    }
}
