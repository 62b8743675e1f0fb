//! `pintle migrate`: converts a ThirdPartyResource, with all its objects, to a CustomResourceDefinition.
//!
//! The server stores the objects of both under the same keys and serves a ThirdPartyResource until it is deleted. The CRD
//! is therefore created first and takes over with the deletion: nothing is copied, and the objects are always served.
//!
//! Invariants:
//! - The ThirdPartyResource is deleted only once a CRD that serves its objects is established: the server keeps the objects
//!   of a deleted ThirdPartyResource only then.
//! - The preconditions of the deletion are the uid and the resourceVersion from which the CRD was derived.
//! - A CRD that this run has created is deleted again if it cannot be established. Until the deletion of the
//!   ThirdPartyResource, a failure leaves its objects as they were, and the migration can be repeated: it accepts a CRD that
//!   exists and matches.

use std::collections::BTreeMap;
use std::path::PathBuf;

use client::{Context as _, JSON, JsonClient, Method, Result, fail, next_page};
use machinery::{Value, json, names};
use schema::definition::{
    Taken, ThirdPartyNames, find_condition, is_condition_true, keeps_third_party, naming, successor_of_third_party,
    third_party_versions,
};

use crate::count::counted;
use crate::flags::Migrate;
use crate::limits;
use crate::logs::say;
use crate::runtime::block_on;

const REGISTRATIONS: &str = "/apis/extensions/v1beta1/thirdpartyresources";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Lists of objects without their content.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Runs the migration and prints its progress line by line. Fails with a one-line message.
pub fn run(task: &Migrate) -> Result<()> {
    let Migrate::ThirdPartyResource { name, dry_run, server } = task;
    block_on(migrate(name, *dry_run, &server.kubeconfigs()))
}

/// The uids of objects by namespace and name.
type Uids = BTreeMap<(String, String), String>;

async fn migrate(name: &str, dry_run: bool, kubeconfigs: &[PathBuf]) -> Result<()> {
    let third_party = ThirdPartyNames::parse(name)?;
    if let Some(why) = names::dns1123_subdomain(name).first() {
        return fail(format!("{name:?}: {why}"));
    }
    let mut client = JsonClient::connect(kubeconfigs).await?;
    let registration = registration(&mut client, name).await?;
    let versions = third_party_versions(&registration);
    let Some(stored) = versions.first() else {
        return fail(format!("ThirdPartyResource {name} has no versions, so it has no objects to migrate"));
    };
    let path = format!("/apis/{}/{stored}/{}", third_party.group, third_party.plural);
    let before = objects(&mut client, &path).await?;
    let kind = format!("{} in {}, {}", third_party.kind, third_party.group, versions.join(", "));
    say(&format!("ThirdPartyResource {name} serves {kind}: {}", objects_and_namespaces(&before)));

    let is_created = prepare(&mut client, &registration, &third_party, dry_run).await?;
    if dry_run {
        say(&format!("ThirdPartyResource {name} would be deleted; nothing has been changed"));
        return Ok(());
    }
    if let Err(why) = established(&mut client, &third_party).await {
        let undone = if is_created { undo(&mut client, &third_party).await } else { String::new() };
        return fail(format!("{why}{undone}"));
    }
    say(&format!("CustomResourceDefinition {} is established", third_party.definition()));
    hand_over(&mut client, name, &registration).await?;
    say(&format!("ThirdPartyResource {name} is deleted"));
    report(&before, &objects(&mut client, &path).await?)
}

async fn registration(client: &mut JsonClient, name: &str) -> Result<Value> {
    let response = client.get(&format!("{REGISTRATIONS}/{name}")).await?;
    if response.code == 404 && response.body.str_at(&["kind"]) != "Status" {
        return fail(
            "the server does not serve ThirdPartyResources: start it with --runtime-config=extensions/v1beta1=true",
        );
    }
    let registration = response.ok()?;
    match registration.at(&["metadata", "deletionTimestamp"]) {
        Some(_) => fail(format!("ThirdPartyResource {name} is being deleted already, with its objects")),
        None => Ok(registration),
    }
}

/// All objects that are served under a path.
async fn objects(client: &mut JsonClient, path: &str) -> Result<Uids> {
    let mut found = Uids::new();
    let mut token = String::new();
    loop {
        let list = client.page(path, &token, METADATA).await?;
        for item in list.items_at(&["items"]) {
            let text = |key: &str| item.str_at(&["metadata", key]).to_owned();
            found.insert((text("namespace"), text("name")), text("uid"));
        }
        token = next_page(&list);
        if token.is_empty() {
            return Ok(found);
        }
    }
}

fn objects_and_namespaces(objects: &Uids) -> String {
    let mut namespaces: Vec<&str> = objects.keys().map(|(namespace, _)| namespace.as_str()).collect();
    namespaces.dedup();
    format!("{} in {}", counted(objects.len(), "object"), counted(namespaces.len(), "namespace"))
}

/// Creates the CRD unless a matching one exists. Returns whether it was created.
async fn prepare(
    client: &mut JsonClient,
    registration: &Value,
    third_party: &ThirdPartyNames,
    dry_run: bool,
) -> Result<bool> {
    let name = third_party.definition();
    let all = client.get(DEFINITIONS).await?.ok()?;
    let all = all.items_at(&["items"]);
    if let Some(existing) = all.iter().find(|definition| definition.str_at(&["metadata", "name"]) == name) {
        if existing.at(&["metadata", "deletionTimestamp"]).is_some() {
            return fail(format!("CustomResourceDefinition {name} is being deleted; wait until it is gone"));
        }
        keeps_third_party(existing, registration)
            .context(format_args!("CustomResourceDefinition {name} already exists and does not match"))?;
        say(&format!("CustomResourceDefinition {name} already exists and matches"));
        return Ok(false);
    }
    let definition = successor_of_third_party(registration)?;
    let mut taken = Taken::default();
    for other in all.iter().filter(|other| other.str_at(&["spec", "group"]) == third_party.group) {
        taken.add(other.at(&["status", "acceptedNames"]).unwrap_or(&Value::Null));
    }
    if let Some(naming) = naming(&definition, &[&taken]).filter(|naming| naming.names_accepted.status == "False") {
        return fail(format!("names conflict in group {}: {}", third_party.group, naming.names_accepted.message));
    }
    let path = format!("{DEFINITIONS}{}", if dry_run { "?dryRun=All" } else { "" });
    client.call(Method::POST, &path, JSON, Some(&definition)).await?.ok()?;
    say(&format!("CustomResourceDefinition {name} {}", if dry_run { "would be created" } else { "is created" }));
    Ok(!dry_run)
}

/// Waits until the CRD is established.
async fn established(client: &mut JsonClient, third_party: &ThirdPartyNames) -> Result<()> {
    let path = format!("{DEFINITIONS}/{}", third_party.definition());
    for _ in 0..limits::ESTABLISHED_WAITS_MAX {
        let definition = client.get(&path).await?.ok()?;
        if is_condition_true(&definition, "Established") {
            return Ok(());
        }
        if let Some(names) = find_condition(&definition, "NamesAccepted").filter(|c| c.str_at(&["status"]) == "False") {
            return fail(format!("names conflict in group {}: {}", third_party.group, names.str_at(&["message"])));
        }
        tokio::time::sleep(limits::ESTABLISHED_WAIT).await;
    }
    fail(format!("CustomResourceDefinition {} is not established after 30 s", third_party.definition()))
}

/// Deletes the CRD after a failure; the objects still belong to the ThirdPartyResource. Returns the end of the error message.
async fn undo(client: &mut JsonClient, third_party: &ThirdPartyNames) -> String {
    let path = format!("{DEFINITIONS}/{}", third_party.definition());
    match client.call(Method::DELETE, &path, JSON, None).await.and_then(client::JsonResponse::ok) {
        Ok(_) => "; the CustomResourceDefinition is deleted again".to_owned(),
        Err(why) => format!("; the CustomResourceDefinition cannot be deleted again: {why}"),
    }
}

/// Deletes the ThirdPartyResource, if it has not changed since it was read.
async fn hand_over(client: &mut JsonClient, name: &str, registration: &Value) -> Result<()> {
    let part = |key: &str| Value::from(registration.str_at(&["metadata", key]));
    let options = json!({"preconditions": {"uid": (part("uid")), "resourceVersion": (part("resourceVersion"))}});
    let response = client.call(Method::DELETE, &format!("{REGISTRATIONS}/{name}"), JSON, Some(&options)).await?;
    response.ok().map(drop).context("the ThirdPartyResource cannot be deleted and still serves its objects")
}

fn report(before: &Uids, after: &Uids) -> Result<()> {
    let same = |(key, uid): &(&(String, String), &String)| after.get(*key) == Some(*uid);
    let kept = before.iter().filter(same).count();
    say(&format!(
        "the CustomResourceDefinition serves {}; {kept} of {} have kept their uid",
        objects_and_namespaces(after),
        before.len()
    ));
    match before.len() - kept {
        0 => Ok(()),
        lost => {
            fail(format!("{} no longer there; another client may have deleted them meanwhile", counted(lost, "object")))
        }
    }
}
