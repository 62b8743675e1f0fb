//! `pintle storage migrate`: rewrites objects that may be stored in an older version.
//!
//! Each object gets an empty merge patch, for which the server rewrites it unless it is stored in the storage version.
//! Finally, the storage version becomes the only one in `status.storedVersions`. Only the API is used, so other clients are
//! not disturbed.

use std::io::Write as _;
use std::path::Path;

use machinery::{Value, json};

use client::Method;

use crate::client::Client;
use crate::flags::Storage;
use crate::limits;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const MANY: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Runs the migration and prints its progress line by line. The error is one line.
pub fn run(task: &Storage) -> Result<(), String> {
    let Storage::Migrate { names, all, dry_run, kubeconfig } = task;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut client = Client::connect(kubeconfig).await?;
        let chosen = chosen(&mut client, names, *all).await?;
        if *dry_run {
            chosen.iter().for_each(|definition| say(&Plan::of(definition).describe()));
            say("nothing has been changed");
            return Ok(());
        }
        let mut failed = 0;
        for definition in &chosen {
            if let Err(why) = migrate(kubeconfig, &mut client, definition).await {
                say(&format!("{}: {why}", definition.str_at(&["metadata", "name"])));
                failed += 1;
            }
        }
        match failed {
            0 => Ok(()),
            _ => Err(format!("{failed} of {} resources are not migrated", chosen.len())),
        }
    })
}

fn say(line: &str) {
    // stdout may be closed
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The CRDs with the given names or groups.
async fn chosen(client: &mut Client, names: &[String], all: bool) -> Result<Vec<Value>, String> {
    let list = client.get(DEFINITIONS).await?.ok()?;
    let definitions = list.get("items").and_then(Value::as_array).unwrap_or_default();
    let is = |definition: &Value, name: &str| {
        definition.str_at(&["metadata", "name"]) == name || definition.str_at(&["spec", "group"]) == name
    };
    if let Some(name) = names.iter().find(|name| !definitions.iter().any(|definition| is(definition, name))) {
        return Err(format!("there is no CustomResourceDefinition {name}, and none of group {name}"));
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
        let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
        let find = |flags: &[&str]| {
            let set =
                |version: &&Value| flags.iter().all(|flag| version.get(flag).and_then(Value::as_bool) == Some(true));
            versions.iter().find(set).map(|version| version.str_at(&["name"]))
        };
        let stored = definition.at(&["status", "storedVersions"]).and_then(Value::as_array).unwrap_or_default();
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
async fn migrate(kubeconfig: &Path, client: &mut Client, definition: &Value) -> Result<(), String> {
    let plan = Plan::of(definition);
    if plan.is_done() {
        say(&plan.describe());
        return Ok(());
    }
    if plan.deleting {
        return Err("it is being deleted with its objects".to_owned());
    }
    let version = plan.served.ok_or("none of its versions is served, so its objects cannot be written")?;
    let names = definition.at(&["status", "acceptedNames"]).unwrap_or(&Value::Null);
    let root = format!("/apis/{}/{version}", definition.str_at(&["spec", "group"]));
    let mut writers = Vec::new();
    for _ in 0..limits::WRITERS {
        writers.push(Client::connect(kubeconfig).await?);
    }
    let mut pass = Pass { plan, root, plural: names.str_at(&["plural"]), writers, counts: Counts::default() };
    pass.rewrite_all(client).await?;
    let (counts, storage) = (pass.counts, pass.plan.storage);
    if counts.refused > 0 {
        let them =
            if counts.refused == 1 { "1 object is".to_owned() } else { format!("{} objects are", counts.refused) };
        return Err(format!("{them} refused, so status.storedVersions stays {}", pass.plan.stored.join(", ")));
    }
    shrink(client, definition, storage).await?;
    let Counts { seen, written, .. } = counts;
    say(&format!("{}: {written} of {seen} objects written; all are stored in {storage}", pass.plan.name));
    Ok(())
}

#[derive(Clone, Copy, Default)]
struct Counts {
    seen: usize,
    written: usize,
    refused: usize,
}

struct Pass<'a> {
    plan: Plan<'a>,
    /// `/apis/GROUP/VERSION`.
    root: String,
    plural: &'a str,
    writers: Vec<Client>,
    counts: Counts,
}

impl Pass<'_> {
    async fn rewrite_all(&mut self, client: &mut Client) -> Result<(), String> {
        let name = self.plan.name;
        let mut token = String::new();
        loop {
            let page = format!("{}/{}?limit={}&continue={token}", self.root, self.plural, limits::PAGE);
            let response = client.call(Method::GET, &page, MANY, None).await?;
            // the continue token has expired; the rest is read from the current state
            let next = response.body.str_at(&["metadata", "continue"]).to_owned();
            if response.code == 410 && !next.is_empty() {
                token = next;
                continue;
            }
            let list = response.ok()?;
            self.rewrite(list.get("items").and_then(Value::as_array).unwrap_or_default()).await?;
            if next.is_empty() {
                return Ok(());
            }
            let Counts { seen, written, .. } = self.counts;
            let remaining = list.at(&["metadata", "remainingItemCount"]).and_then(Value::as_int).unwrap_or_default();
            say(&format!("{name}: {written} of {seen} objects written; {remaining} to go"));
            token = next;
        }
    }

    /// Sends an empty patch for each object, from several connections.
    async fn rewrite(&mut self, items: &[Value]) -> Result<(), String> {
        let (root, plural) = (self.root.as_str(), self.plural);
        let mut shares = Vec::new();
        for (first, mut writer) in self.writers.drain(..).enumerate() {
            let share: Vec<(String, String)> = items
                .iter()
                .skip(first)
                .step_by(limits::WRITERS)
                .map(|item| (path(root, plural, item), version(item)))
                .collect();
            shares.push(tokio::task::spawn_local(async move {
                let mut done = Vec::new();
                for (path, before) in share {
                    done.push(rewrite_one(&mut writer, &path, &before).await?);
                }
                Ok::<_, String>((writer, done))
            }));
        }
        for share in shares {
            let (writer, done) = share.await.map_err(|error| error.to_string())??;
            self.writers.push(writer);
            done.into_iter().for_each(|one| self.count(one));
        }
        Ok(())
    }

    fn count(&mut self, one: Rewritten) {
        self.counts.seen += 1;
        match one {
            Rewritten::Written => self.counts.written += 1,
            Rewritten::Kept => {}
            Rewritten::Refused(why) => {
                self.counts.refused += 1;
                if self.counts.refused <= limits::REFUSED_NAMED {
                    say(&format!("{}: {why}", self.plan.name));
                }
            }
        }
    }
}

fn path(root: &str, plural: &str, item: &Value) -> String {
    let name = item.str_at(&["metadata", "name"]);
    match item.str_at(&["metadata", "namespace"]) {
        "" => format!("{root}/{plural}/{name}"),
        namespace => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
    }
}

fn version(item: &Value) -> String {
    item.str_at(&["metadata", "resourceVersion"]).to_owned()
}

enum Rewritten {
    Written,
    /// It is already stored in the storage version, or has been deleted.
    Kept,
    Refused(String),
}

async fn rewrite_one(client: &mut Client, path: &str, before: &str) -> Result<Rewritten, String> {
    for _ in 0..limits::WRITE_ATTEMPTS {
        let response = client
            .call(Method::PATCH, &format!("{path}?fieldManager=pintle-storage-migration"), ONE, Some(&json!({})))
            .await?;
        match response.code {
            200 if version(&response.body) == before => return Ok(Rewritten::Kept),
            200 => return Ok(Rewritten::Written),
            404 => return Ok(Rewritten::Kept),
            409 => {}
            _ => return Ok(Rewritten::Refused(format!("{path}: {}", response.message()))),
        }
    }
    Ok(Rewritten::Refused(format!("{path}: every attempt conflicted with another write")))
}

/// Sets `status.storedVersions` to the storage version, if the CRD has not changed meanwhile.
async fn shrink(client: &mut Client, definition: &Value, storage: &str) -> Result<(), String> {
    let path = format!("{DEFINITIONS}/{}", definition.str_at(&["metadata", "name"]));
    for _ in 0..limits::WRITE_ATTEMPTS {
        let now = client.get(&path).await?.ok()?;
        for key in ["uid", "generation"] {
            if now.at(&["metadata", key]) != definition.at(&["metadata", key]) {
                return Err("the CustomResourceDefinition has been changed meanwhile; try again".to_owned());
            }
        }
        let patch =
            json!({"metadata": {"resourceVersion": (version(&now))}, "status": {"storedVersions": [(storage)]}});
        let response = client.call(Method::PATCH, &format!("{path}/status"), "application/json", Some(&patch)).await?;
        if response.code != 409 {
            return response.ok().map(drop);
        }
    }
    Err("every attempt to update status.storedVersions conflicted with another write; try again".to_owned())
}
