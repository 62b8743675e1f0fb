//! All objects of a running cluster, read with `get` and `list` only.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use client::{Access, JSON, JsonClient, next_page};
use machinery::Value;

use crate::cluster::kubeconfigs;
use crate::error::{ClusterError, Error};
use crate::layouts::{LogKey, Run};
use crate::limits::{LISTS_IN_FLIGHT, LOG_BYTES_MAX};
use crate::packed::PackedObject;
use crate::spool::{Part, Writer};

/// Resources whose objects other lists have as well, or that are computed.
const LEFT_OUT: [(&str, &str); 2] = [("", "componentstatuses"), ("events.k8s.io", "events")];

/// Why something was not read after all connections have ended.
const UNREACHABLE: &str = "the server can no longer be reached";

/// A cluster, as an argument names it: `kubeconfig[:FILE][#CONTEXT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCluster {
    kubeconfigs: Vec<PathBuf>,
    context: Option<String>,
}

/// An object of a cluster.
#[derive(Debug)]
pub struct ListedObject {
    pub object: PackedObject,
    /// The path of its list, such as `apis/apps/v1/deployments`.
    pub list: String,
    pub plural: String,
}

/// The objects of a cluster, and the lists that could not be read, each with the reason.
#[derive(Debug, Default)]
pub struct Listed {
    pub objects: Vec<ListedObject>,
    pub problems: Vec<(String, String)>,
}

/// A resource that can be listed.
struct Resource {
    path: String,
    api_version: String,
    kind: String,
    plural: String,
}

impl LiveCluster {
    /// The cluster that an argument names; `None` for other arguments.
    pub fn parse(argument: &str) -> Option<LiveCluster> {
        let (place, context) = match argument.split_once('#') {
            Some((place, context)) => (place, Some(context.to_owned())),
            None => (argument, None),
        };
        Some(LiveCluster { kubeconfigs: kubeconfigs(place)?, context })
    }

    /// Lists all objects, in pages, with some lists in flight. Fails if the server cannot be asked what it
    /// serves.
    pub fn list(&self) -> Result<Listed, Error> {
        let access = Access::read_context(&self.kubeconfigs, self.context.as_deref())?;
        let (resources, problems) = on_thread(|| blocking(resources(&access)))??;
        let mut listed = Listed { objects: vec![], problems };
        let left = read_all(&access, resources, list, |resource, found| match found {
            Ok(objects) => listed.objects.extend(objects),
            Err(error) => listed.problems.push((resource.path, error.to_string())),
        });
        listed.problems.extend(left.into_iter().map(|resource| (resource.path, UNREACHABLE.to_owned())));
        Ok(listed)
    }
}

impl LiveCluster {
    /// Reads the logs of containers, with the time of each line, into a file without a name. Those that cannot be read have a
    /// problem.
    pub fn logs(&self, wanted: Vec<LogKey>) -> Result<Logs, Error> {
        let access = Access::read_context(&self.kubeconfigs, self.context.as_deref())?;
        let mut writer = Writer::new().map_err(|source| Error::Temporary { act: "create", source })?;
        let mut logs = Logs::default();
        let left = read_all(&access, wanted, log, |key, text| {
            let text = text.map_err(|error| error.to_string());
            match text.and_then(|text| writer.copy(&*text).map_err(|error| error.to_string())) {
                Ok(part) => logs.read.push((key, part)),
                Err(why) => logs.problems.push((log_name(&key), why)),
            }
        });
        logs.problems.extend(left.iter().map(|key| (log_name(key), UNREACHABLE.to_owned())));
        Ok(logs)
    }
}

/// Logs that were read, and why others could not be.
#[derive(Debug, Default)]
pub struct Logs {
    pub read: Vec<(LogKey, Part)>,
    pub problems: Vec<(String, String)>,
}

fn log_name(key: &LogKey) -> String {
    format!("log of {}/{}/{}", key.namespace, key.pod, key.container)
}

async fn log(client: &mut JsonClient, key: &LogKey) -> Result<Vec<u8>, client::Error> {
    let LogKey { namespace, pod, container, run } = key;
    let previous = if *run == Run::Previous { "&previous=true" } else { "" };
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}");
    client.text(&format!("{path}&timestamps=true&limitBytes={LOG_BYTES_MAX}{previous}")).await
}

/// Reads everything that is wanted, over some connections, and passes what was read to `keep`. Returns what is left after all
/// connections have ended.
fn read_all<T: Send, R>(
    access: &Access,
    wanted: Vec<T>,
    read: impl AsyncFn(&mut JsonClient, &T) -> Result<R, client::Error> + Sync,
    keep: impl FnMut(T, Result<R, client::Error>) + Send,
) -> VecDeque<T> {
    let (queue, keep) = (Mutex::new(VecDeque::from(wanted)), Mutex::new(keep));
    let work = async || -> Result<(), Error> {
        let mut client = JsonClient::of(access).await?;
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(wanted) = next else { return Ok(()) };
            let found = read(&mut client, &wanted).await;
            let is_broken = found.is_err();
            keep.lock().unwrap_or_else(PoisonError::into_inner)(wanted, found);
            if is_broken {
                // maybe only the request failed; a connection that broke would fail for all that is left
                client = JsonClient::of(access).await?;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..LISTS_IN_FLIGHT {
            scope.spawn(|| blocking(work()));
        }
    });
    queue.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function on a thread of its own, since this one may belong to a runtime.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, ClusterError> {
    std::thread::scope(|scope| scope.spawn(work).join()).map_err(|_| ClusterError::Panicked)
}

fn blocking<T>(task: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(ClusterError::NotStarted)?.block_on(task)
}

/// The resources of all groups, each in the version that its group prefers, and the group versions that could not be read.
async fn resources(access: &Access) -> Result<(Vec<Resource>, Vec<(String, String)>), Error> {
    let mut client = JsonClient::of(access).await?;
    let groups = client.get("/apis").await?.ok();
    let groups = groups.map_err(|source| ClusterError::Get { path: "/apis".to_owned(), source })?;
    let mut versions = vec!["v1".to_owned()];
    for group in groups.items_at(&["groups"]) {
        let preferred = group.str_at(&["preferredVersion", "groupVersion"]);
        let others = group.items_at(&["versions"]).iter().map(|version| version.str_at(&["groupVersion"]));
        versions
            .extend(std::iter::once(preferred).chain(others.filter(|other| *other != preferred)).map(str::to_owned));
    }
    let (mut found, mut problems, mut known) = (vec![], vec![], BTreeSet::new());
    for version in versions {
        let root = if version.contains('/') { format!("apis/{version}") } else { format!("api/{version}") };
        let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
        let list = match client.get(&format!("/{root}")).await?.ok() {
            Ok(list) => list,
            Err(error) => {
                problems.push((root, error.to_string()));
                continue;
            }
        };
        for resource in list.items_at(&["resources"]) {
            let plural = resource.str_at(&["name"]);
            let can_be_listed = resource.items_at(&["verbs"]).iter().any(|verb| verb.as_str() == Some("list"));
            let is_left_out = plural.contains('/') || LEFT_OUT.contains(&(group.as_str(), plural));
            if !can_be_listed || is_left_out || !known.insert((group.clone(), plural.to_owned())) {
                continue;
            }
            found.push(Resource {
                path: format!("{root}/{plural}"),
                api_version: version.clone(),
                kind: resource.str_at(&["kind"]).to_owned(),
                plural: plural.to_owned(),
            });
        }
    }
    Ok((found, problems))
}

async fn list(client: &mut JsonClient, resource: &Resource) -> Result<Vec<ListedObject>, client::Error> {
    let (mut objects, mut token) = (vec![], String::new());
    loop {
        let mut page = client.page(&format!("/{}", resource.path), &token, JSON).await?;
        token = next_page(&page);
        let items = page.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        objects.extend(items.into_iter().map(|mut value| {
            value.set_at(&["apiVersion"], Value::from(resource.api_version.as_str()));
            value.set_at(&["kind"], Value::from(resource.kind.as_str()));
            let (object, list) = (PackedObject::of(value), resource.path.clone());
            ListedObject { object, list, plural: resource.plural.clone() }
        }));
        if token.is_empty() {
            return Ok(objects);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_clusters() {
        let of = |argument: &str| {
            let cluster = LiveCluster::parse(argument)?;
            let paths: Vec<String> = cluster.kubeconfigs.iter().map(|path| path.display().to_string()).collect();
            Some(format!("{} {}", paths.join(":"), cluster.context.unwrap_or_default()))
        };
        for (argument, want) in [
            ("kubeconfig:a/b.yaml", Some("a/b.yaml ")),
            ("kubeconfig:b#prod#1", Some("b prod#1")),
            ("kubeconfigs", None),
            ("bundle.tar.gz", None),
        ] {
            assert_eq!(of(argument).as_deref(), want, "{argument}");
        }
        assert_eq!(LiveCluster::parse("kubeconfig#prod").and_then(|cluster| cluster.context).as_deref(), Some("prod"));
    }
}
