//! Encrypts the values of workspaces again with the current keys, including those of sealed workspaces, and finds
//! values whose key is gone.
//!
//! Writes go to the store directly: the objects do not change, and a template accepts no writes through its API.

use std::collections::BTreeMap;

use base::request::{Query, RequestInfo};
use base::task;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, Method};
use machinery::status::Reason;
use machinery::{Release, Result, Status, Text, Value, json, names};
use objects::{Key, Layout};
use store::{Branching, Entry, Expected, Refused, Store, Write};

use super::content::{Contents, OriginStore};
use super::definition::{GROUP, PLURAL};
use super::gate;
use super::label::{is_pristine, pristine_id};
use super::manager::Workspaces;
use super::recovery::FoundWorkspace;
use super::unusable::Unusable;
use super::workspace::Workspace;
use crate::assembly::StartError;
use crate::http::Client;
use crate::limits;

/// The result for one workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RewriteCounts {
    objects: usize,
    written: usize,
    /// Values that no key decrypts.
    refused: usize,
    /// Values encrypted with a former key that only a reset would read.
    for_reset: usize,
}

/// The resources whose values are written again, as `PLURAL` or `PLURAL.GROUP`. If empty, all resources are.
struct Wanted(Vec<String>);

impl Wanted {
    fn has(&self, key: &Key) -> bool {
        let Key { group, plural, .. } = key;
        let is_it = |name: &String| match group.as_str() {
            "" => *name == plural.as_str(),
            group => name.strip_prefix(plural.as_str()).and_then(|rest| rest.strip_prefix('.')) == Some(group),
        };
        self.0.is_empty() || self.0.iter().any(is_it)
    }
}

impl Workspaces {
    /// Encrypts the values of a workspace that have a former key again. The user must be allowed to `create` the
    /// resource `workspaces/storage` in `default`.
    pub(super) async fn rewrite(&self, client: &Client, headers: &HeaderMap, name: &str, query: &str) -> Result<Value> {
        let home = self.home().ok_or_else(gate::stopping)?;
        let path = format!("/apis/{GROUP}/v1alpha1/{PLURAL}/{name}/storage");
        home.vouch(client, headers, RequestInfo::parse(&Method::POST, &path, "")).await?;
        let not_found = || Status::not_found(GROUP, PLURAL, name);
        if !names::dns1123_label(name).is_empty() {
            return Err(not_found());
        }
        let workspace = self.workspace(name).ok_or_else(not_found)?;
        let wanted = Wanted(Query::parse(query).all("resource").map(str::to_owned).collect());
        let rewritten = tokio::time::timeout(self.parts.requests.timeout, self.rewrite_all(&workspace, &wanted)).await;
        let out_of_time = |_| Status::new(Reason::Timeout, "not all values could be written in time; try again");
        let RewriteCounts { objects, written, refused, for_reset } =
            rewritten.map_err(out_of_time)?.map_err(|why| Status::new(Reason::ServiceUnavailable, why.to_string()))?;
        tracing::info!(workspace = name, objects, written, refused, for_reset, "values have been encrypted again");
        Ok(json!({"objects": objects, "written": written, "refused": refused, "forReset": for_reset}))
    }

    async fn rewrite_all(&self, workspace: &Workspace, wanted: &Wanted) -> Result<RewriteCounts, Unusable> {
        let layout = self.layout();
        let mut counts = RewriteCounts::default();
        if let Some(log) = &self.log {
            // new workspaces begin with the values of empty APIs
            for release in Release::ALL {
                let Some(empty) = log.log.branch(pristine_id(release).as_bytes()) else { continue };
                rewrite_store(&*empty, layout, wanted, &mut RewriteCounts::default()).await?;
            }
        }
        workspace.begun().await;
        let content = workspace.content();
        if !matches!(content, Contents::Begun(_) | Contents::Copied(_)) {
            return Ok(counts);
        }
        let Some(begun) = workspace.backing.open(content.clone()).await? else { return Ok(counts) };
        rewrite_store(&*begun.store, layout, wanted, &mut counts).await?;
        match workspace.backing.origin(&workspace.uid, content).await? {
            Some(OriginStore::Writable(origin)) => {
                let mut of_origin = RewriteCounts::default();
                rewrite_store(&*origin, layout, wanted, &mut of_origin).await?;
                counts.for_reset = of_origin.refused;
            }
            Some(OriginStore::Branch(origin, log)) => {
                let StaleValues { stale, unreadable, .. } = find_stale(&*origin, layout, wanted).await?;
                counts.written += stale.len();
                if !stale.is_empty() {
                    let done = log.rewrite_origin(workspace.uid.as_bytes(), stale).await;
                    done?;
                }
                counts.for_reset = unreadable;
            }
            Some(OriginStore::Fixed(origin)) => {
                let found = find_stale(&*origin, layout, wanted).await?;
                counts.for_reset = found.stale.len() + found.unreadable;
            }
            None => {}
        }
        Ok(counts)
    }

    /// Fails if no key decrypts a value of a durable workspace. As with values of `default`,
    /// the server then does not start.
    pub(super) async fn check_keys(&self, log: &dyn Branching, found: &[FoundWorkspace]) -> Result<(), StartError> {
        let of = |found: &FoundWorkspace| (Bytes::copy_from_slice(found.uid.as_bytes()), found.name.clone());
        let known: BTreeMap<Bytes, Text> = found.iter().map(of).collect();
        if known.is_empty() {
            return Ok(());
        }
        let content = log.content().await?;
        let layout = self.layout();
        let mut unreadable = BTreeMap::new();
        task::blocking(|| {
            content.for_each_branch_value(|id, key, value| {
                let place = layout.find(key).filter(|_| !unreadable.contains_key(id));
                let opened = place.map_or(Ok(()), |place| layout.open(&place, value.clone()).map(drop));
                if let Err(why) = opened {
                    let key = String::from_utf8_lossy(key).into_owned();
                    unreadable
                        .insert(id.clone(), format!("the value of {key} cannot be read, and is left as it is: {why}"));
                }
            });
        });
        for (id, why) in unreadable {
            if is_pristine(&id) {
                // an empty API is made again when it is next needed
                log.end(&id);
            } else if let Some(name) = known.get(&id) {
                let name = name.as_str();
                let why = format!(
                    "workspace {name:?}: {why}; if the key is lost, start without --workspaces and delete the workspace"
                );
                return Err(why.into());
            }
        }
        Ok(())
    }
}

/// The values of a store whose encryption is not the current one.
#[derive(Default)]
struct StaleValues {
    seen: usize,
    /// The same values with the current encryption.
    stale: Vec<Entry>,
    unreadable: usize,
}

async fn find_stale(store: &dyn Store, layout: &Layout, wanted: &Wanted) -> Result<StaleValues, Unusable> {
    let snapshot = store.snapshot().await?;
    task::blocking(|| {
        let mut found = StaleValues::default();
        for entry in snapshot.entries {
            let Some(place) = layout.find(&entry.key).filter(|place| wanted.has(&place.key)) else { continue };
            found.seen += 1;
            match layout.open(&place, entry.value) {
                Ok(opened) if opened.stale => {
                    let value = layout.seal(&place, opened.value)?;
                    found.stale.push(Entry { value, key: entry.key, revision: entry.revision });
                }
                Ok(_) => {}
                Err(_) => found.unreadable += 1,
            }
        }
        Ok(found)
    })
}

async fn rewrite_store(
    store: &dyn Store,
    layout: &Layout,
    wanted: &Wanted,
    counts: &mut RewriteCounts,
) -> Result<(), Unusable> {
    let StaleValues { seen, stale, unreadable } = find_stale(store, layout, wanted).await?;
    counts.objects += seen;
    counts.refused += unreadable;
    let write = |Entry { key, value, revision }: &Entry| {
        store.commit(Write { key: key.clone(), expected: Expected::At(*revision), value: Some(value.clone()) })
    };
    for some in stale.chunks(limits::REWRITES_AT_A_TIME) {
        // started together, so that they share syncs
        for done in join_all(some.iter().map(write)).await {
            match done {
                Ok(_) => counts.written += 1,
                // a client has written the object meanwhile, and thereby with the current key
                Err(Refused::Conflict(_)) => {}
                Err(Refused::Failed(error)) => return Err(Unusable::Store(error)),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_named_as_by_kubectl() {
        let has = |names: &[&str], group: &str, plural: &str| {
            let wanted = Wanted(names.iter().map(|name| (*name).to_owned()).collect());
            wanted.has(&Key::new(&group.into(), &plural.into(), "", "x"))
        };
        assert!(has(&[], "", "secrets") && has(&["a", "secrets"], "", "secrets"));
        assert!(has(&["boats.example.com"], "example.com", "boats"));
        for (name, group, plural) in [
            ("secrets", "", "configmaps"),
            ("boats", "example.com", "boats"),
            ("boats.example.com", "other.com", "boats"),
            ("secrets.example.com", "", "secrets"),
        ] {
            assert!(!has(&[name], group, plural), "{name}");
        }
    }
}
