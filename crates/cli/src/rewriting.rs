//! Rewriting of the objects of a resource: each gets an empty merge patch, and the server writes the object unless its
//! stored bytes would stay the same. Only the API is used, so other clients are not disturbed.

use std::path::PathBuf;

use client::{JsonClient, Method, Result, next_page};
use machinery::{Value, json};

use crate::count::counted;
use crate::limits;
use crate::logs::say;

const ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const MANY: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub seen: usize,
    pub written: usize,
    pub refused: usize,
}

/// A resource as it is served.
pub struct Served<'a> {
    /// The name for reports.
    pub name: &'a str,
    /// `/apis/GROUP/VERSION`, or `/api/v1`.
    pub root: &'a str,
    pub plural: &'a str,
}

/// Rewrites all objects of a resource whose stored bytes would differ now, over several connections. The error is one
/// line.
pub async fn rewrite_all(kubeconfigs: &[PathBuf], client: &mut JsonClient, of: Served<'_>) -> Result<Counts> {
    let mut writers = Vec::new();
    for _ in 0..limits::WRITERS {
        writers.push(JsonClient::connect(kubeconfigs).await?);
    }
    let mut pass = Pass { of, writers, counts: Counts::default() };
    pass.rewrite_all(client).await?;
    Ok(pass.counts)
}

const WORKSPACES: &str = "/apis/workspaces.pintle.dev/v1alpha1/workspaces";

/// Failures of a rewriting of all workspaces.
#[derive(Default)]
pub struct WorkspaceCounts {
    pub written: usize,
    /// A line for each workspace that still needs a former key.
    pub needing_keys: Vec<String>,
}

/// Has the server write the values of all workspaces again, templates included. Fails with a one-line message.
pub async fn rewrite_workspaces(client: &mut JsonClient, resources: &[String]) -> Result<WorkspaceCounts> {
    let list = client.get(WORKSPACES).await?;
    let mut counts = WorkspaceCounts::default();
    // a server that has never served workspaces has no such kind
    if list.code == 404 {
        return Ok(counts);
    }
    let list = list.ok()?;
    let named: Vec<String> = resources.iter().map(|name| format!("resource={name}")).collect();
    for workspace in list.items_at(&["items"]) {
        let name = workspace.str_at(&["metadata", "name"]);
        // one that has failed holds nothing
        if workspace.str_at(&["status", "phase"]) != "Failed" {
            rewrite_workspace(client, name, &named.join("&"), &mut counts).await?;
        }
    }
    Ok(counts)
}

async fn rewrite_workspace(
    client: &mut JsonClient,
    name: &str,
    query: &str,
    counts: &mut WorkspaceCounts,
) -> Result<()> {
    let path = format!("/clusters/{name}/storage/rewrite?{query}");
    let mut response = client.call(Method::POST, &path, "application/json", None).await?;
    for _ in 1..limits::WRITE_ATTEMPTS {
        // what was written within the deadline of the request stays
        if response.code != 504 {
            break;
        }
        response = client.call(Method::POST, &path, "application/json", None).await?;
    }
    if !response.is_ok() {
        let why = response.message();
        if client.get(&format!("{WORKSPACES}/{name}")).await?.code != 404 {
            counts.needing_keys.push(format!("workspace {name}: its objects cannot be written: {why}"));
        }
        return Ok(());
    }
    let count = |field: &str| response.body.int_at(&[field]);
    let count = |field: &str| usize::try_from(count(field)).unwrap_or_default();
    let (written, refused, for_reset) = (count("written"), count("refused"), count("forReset"));
    if written > 0 {
        say(&format!("workspace {name}: {written} of {} written", counted(count("objects"), "object")));
    }
    counts.written += written;
    if refused > 0 {
        let them = counted(refused, "object");
        counts.needing_keys.push(format!("workspace {name}: no key of the configuration decrypts {them}"));
    }
    if for_reset > 0 {
        let them = counted(for_reset, "object");
        counts.needing_keys.push(format!("workspace {name}: a reset returns to {them} with a former key"));
    }
    Ok(())
}

struct Pass<'a> {
    of: Served<'a>,
    writers: Vec<JsonClient>,
    counts: Counts,
}

impl Pass<'_> {
    async fn rewrite_all(&mut self, client: &mut JsonClient) -> Result<()> {
        let (name, path) = (self.of.name, format!("{}/{}", self.of.root, self.of.plural));
        let mut token = String::new();
        loop {
            let list = client.page(&path, &token, MANY).await?;
            self.rewrite(list.items_at(&["items"])).await?;
            token = next_page(&list);
            if token.is_empty() {
                return Ok(());
            }
            let Counts { seen, written, .. } = self.counts;
            let remaining = list.int_at(&["metadata", "remainingItemCount"]);
            say(&format!("{name}: {written} of {} written; {remaining} to go", counted(seen, "object")));
        }
    }

    /// Sends an empty patch for each object, over several connections.
    async fn rewrite(&mut self, items: &[Value]) -> Result<()> {
        let (root, plural) = (self.of.root, self.of.plural);
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
            let (writer, done) = share.await??;
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
                    say(&format!("{}: {why}", self.of.name));
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

pub fn version(item: &Value) -> String {
    item.str_at(&["metadata", "resourceVersion"]).to_owned()
}

enum Rewritten {
    Written,
    /// The object is already stored in the storage version, or has been deleted.
    Kept,
    Refused(String),
}

async fn rewrite_one(client: &mut JsonClient, path: &str, before: &str) -> Result<Rewritten> {
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
