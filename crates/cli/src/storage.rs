//! `pintle storage migrate`: rewrites objects that may be stored in an older version. Finally, the storage version becomes the
//! only one in `status.storedVersions`. `pintle storage rewrite`: rewrites objects of any resource, after a change of the keys
//! that encrypt them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use machinery::{Value, json};

use client::{JsonClient, Method, Result, fail};

use crate::count::{are, counted};
use crate::flags::Storage;
use crate::limits;
use crate::logs::say;
use crate::rewriting::{Counts, Served, WorkspaceCounts, rewrite_all, rewrite_workspaces, version};
use crate::runtime::block_on;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Runs the migration and prints its progress line by line. Fails with a one-line message.
pub fn run(task: &Storage) -> Result<()> {
    block_on(async {
        let (names, all, dry_run, kubeconfigs) = match task {
            Storage::Migrate { names, all, dry_run, server } => (names, *all, *dry_run, server.kubeconfigs()),
            Storage::Rewrite { resource, server } => return rewrite(resource, &server.kubeconfigs()).await,
        };
        let mut client = JsonClient::connect(&kubeconfigs).await?;
        let chosen = chosen(&mut client, names, all).await?;
        if dry_run {
            chosen.iter().for_each(|definition| say(&Plan::of(definition).describe()));
            say("nothing has been changed");
            return Ok(());
        }
        let mut failed = 0;
        for definition in &chosen {
            if let Err(why) = migrate(&kubeconfigs, &mut client, definition).await {
                say(&format!("{}: {why}", definition.str_at(&["metadata", "name"])));
                failed += 1;
            }
        }
        match failed {
            0 => Ok(()),
            _ => fail(format!("{failed} of {} {} not migrated", counted(chosen.len(), "resource"), are(failed))),
        }
    })
}

/// The CRDs with the given names or groups.
async fn chosen(client: &mut JsonClient, names: &[String], all: bool) -> Result<Vec<Value>> {
    let list = client.get(DEFINITIONS).await?.ok()?;
    let definitions = list.items_at(&["items"]);
    let is = |definition: &Value, name: &str| {
        definition.str_at(&["metadata", "name"]) == name || definition.str_at(&["spec", "group"]) == name
    };
    if let Some(name) = names.iter().find(|name| !definitions.iter().any(|definition| is(definition, name))) {
        return fail(format!("there is no CustomResourceDefinition {name}, and none of group {name}"));
    }
    let named = |definition: &&Value| all || names.iter().any(|name| is(definition, name));
    Ok(definitions.iter().filter(named).cloned().collect())
}

/// The steps for one CRD.
struct Plan<'a> {
    name: &'a str,
    /// The version in which objects are requested: the storage version if it is served, so that they are converted only once.
    served: Option<&'a str>,
    storage: &'a str,
    stored: Vec<&'a str>,
    deleting: bool,
}

impl<'a> Plan<'a> {
    fn of(definition: &'a Value) -> Plan<'a> {
        let versions = definition.items_at(&["spec", "versions"]);
        let find = |flags: &[&str]| {
            let set = |version: &&Value| flags.iter().all(|flag| version.is_true_at(&[flag]));
            versions.iter().find(set).map(|version| version.str_at(&["name"]))
        };
        let stored = definition.items_at(&["status", "storedVersions"]);
        Plan {
            name: definition.str_at(&["metadata", "name"]),
            served: find(&["served", "storage"]).or_else(|| find(&["served"])),
            storage: find(&["storage"]).unwrap_or_default(),
            stored: stored.iter().filter_map(Value::as_str).collect(),
            deleting: definition.at(&["metadata", "deletionTimestamp"]).is_some(),
        }
    }

    fn is_done(&self) -> bool {
        self.stored == [self.storage]
    }

    fn describe(&self) -> String {
        let Plan { name, storage, stored, .. } = self;
        match self.is_done() {
            true => format!("{name}: all objects are stored in {storage}"),
            false => {
                format!("{name}: objects may be stored in {}; they would be stored in {storage}", stored.join(", "))
            }
        }
    }
}

/// Rewrites all objects of a CRD and reduces its list of stored versions.
async fn migrate(kubeconfigs: &[PathBuf], client: &mut JsonClient, definition: &Value) -> Result<()> {
    let plan = Plan::of(definition);
    if plan.is_done() {
        say(&plan.describe());
        return Ok(());
    }
    if plan.deleting {
        return fail("it is being deleted with its objects");
    }
    let version = plan.served.ok_or("none of its versions is served, so its objects cannot be written")?;
    let names = definition.at(&["status", "acceptedNames"]).unwrap_or(&Value::Null);
    let root = format!("/apis/{}/{version}", definition.str_at(&["spec", "group"]));
    let plural = names.str_at(&["plural"]);
    let counts = rewrite_all(kubeconfigs, client, Served { name: plan.name, root: &root, plural }).await?;
    let storage = plan.storage;
    if counts.refused > 0 {
        let them = counted(counts.refused, "object");
        return fail(format!(
            "{them} {} refused, so status.storedVersions stays {}",
            are(counts.refused),
            plan.stored.join(", ")
        ));
    }
    shrink(client, definition, storage).await?;
    let Counts { seen, written, .. } = counts;
    say(&format!("{}: {written} of {} written; all are stored in {storage}", plan.name, counted(seen, "object")));
    Ok(())
}

/// Sets `status.storedVersions` to the storage version, if the CRD has not changed meanwhile.
async fn shrink(client: &mut JsonClient, definition: &Value, storage: &str) -> Result<()> {
    let path = format!("{DEFINITIONS}/{}", definition.str_at(&["metadata", "name"]));
    for _ in 0..limits::WRITE_ATTEMPTS {
        let now = client.get(&path).await?.ok()?;
        for key in ["uid", "generation"] {
            if now.at(&["metadata", key]) != definition.at(&["metadata", key]) {
                return fail("the CustomResourceDefinition has been changed meanwhile; try again");
            }
        }
        let patch =
            json!({"metadata": {"resourceVersion": (version(&now))}, "status": {"storedVersions": [(storage)]}});
        let response = client.call(Method::PATCH, &format!("{path}/status"), "application/json", Some(&patch)).await?;
        if response.code != 409 {
            response.ok()?;
            return Ok(());
        }
    }
    fail("every attempt to update status.storedVersions conflicted with another write; try again")
}

/// A resource that the server itself stores.
struct Stored {
    /// `PLURAL.GROUP`, or `PLURAL` in the core group.
    name: String,
    root: String,
    plural: String,
}

/// Rewrites the objects of the given resources, or of all, and prints a line for each.
async fn rewrite(names: &[String], kubeconfigs: &[PathBuf]) -> Result<()> {
    let mut client = JsonClient::connect(kubeconfigs).await?;
    let mut resources = stored_resources(&mut client).await?;
    if let Some(name) = names.iter().find(|name| !resources.iter().any(|stored| stored.name == **name)) {
        return fail(format!("there is no resource {name}; wanted PLURAL or PLURAL.GROUP, such as secrets"));
    }
    resources.retain(|stored| names.is_empty() || names.contains(&stored.name));
    let (mut written, mut refused) = (0, 0);
    for Stored { name, root, plural } in &resources {
        let counts = rewrite_all(kubeconfigs, &mut client, Served { name, root, plural }).await?;
        if counts.written + counts.refused > 0 {
            say(&format!("{name}: {} of {} written", counts.written, counted(counts.seen, "object")));
        }
        written += counts.written;
        refused += counts.refused;
    }
    let WorkspaceCounts { written: of_workspaces, needing_keys } = rewrite_workspaces(&mut client, names).await?;
    written += of_workspaces;
    needing_keys.iter().for_each(|line| say(line));
    if !needing_keys.is_empty() {
        let count = needing_keys.len();
        return fail(format!(
            "keep the former keys: {count} {} of workspaces still {} them",
            if count == 1 { "part" } else { "parts" },
            if count == 1 { "needs" } else { "need" }
        ));
    }
    match refused {
        0 => {
            let (objects, resources) = (counted(written, "object"), counted(resources.len(), "resource"));
            say(&format!("{objects} written; all objects of {resources} are up to date"));
        }
        _ => {
            let objects = counted(refused, "object");
            return fail(format!(
                "{objects} {} refused; run the command again once the reasons are removed",
                are(refused)
            ));
        }
    }
    Ok(())
}

/// The resources whose objects can be listed and patched, each in one version, without those of aggregated API servers.
async fn stored_resources(client: &mut JsonClient) -> Result<Vec<Stored>> {
    let services = client.get("/apis/apiregistration.k8s.io/v1/apiservices").await?.ok()?;
    let remote: BTreeSet<&str> = services
        .items_at(&["items"])
        .iter()
        .filter(|service| service.at(&["spec", "service"]).is_some_and(|service| !service.is_null()))
        .map(|service| service.str_at(&["metadata", "name"]))
        .collect();
    let groups = client.get("/apis").await?.ok()?;
    let mut versions = vec![(String::new(), "/api/v1".to_owned())];
    for group in groups.items_at(&["groups"]) {
        let name = group.str_at(&["name"]);
        let own = group.items_at(&["versions"]).iter().map(|version| version.str_at(&["version"]));
        let own = own.filter(|version| !remote.contains(format!("{version}.{name}").as_str()));
        versions.extend(own.map(|version| (name.to_owned(), format!("/apis/{name}/{version}"))));
    }
    let (mut found, mut known) = (vec![], BTreeSet::new());
    for (group, root) in versions {
        let list = client.get(&root).await?.ok()?;
        for resource in list.items_at(&["resources"]) {
            let plural = resource.str_at(&["name"]).to_owned();
            let has = |wanted: &str| resource.items_at(&["verbs"]).iter().any(|verb| verb.as_str() == Some(wanted));
            let name = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
            if !plural.contains('/') && has("list") && has("patch") && known.insert(name.clone()) {
                found.push(Stored { name, root: root.clone(), plural });
            }
        }
    }
    Ok(found)
}
