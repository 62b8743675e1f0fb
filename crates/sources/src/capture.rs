//! The content of a source: its objects as they were captured, its logs, and the moment of the capture.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::clock;
use bytes::Bytes;
use machinery::Value;
use machinery::time::parse_rfc3339;

use crate::error::Error;
use crate::etcd::StoredObject;
use crate::inputs::{Input, SourceFile, files};
pub use crate::layouts::{LogKey, Run};
use crate::limits::{DOCUMENT_BYTES_MAX, OBJECT_BYTES_MAX, READERS_MAX};
use crate::live::{ListedObject, LiveCluster};
use crate::packed::PackedObject;
use crate::problems::Problems;
use crate::spool::Part;
use crate::{etcd, layouts, limits};

/// The mark of a text with the logs of containers between objects, as `kubectl cluster-info dump` writes it.
const DUMPED_LOG: &[u8] = b"==== START logs for container ";
const DUMPED_END: &[u8] = b"==== END logs for container ";

/// An object of a source.
#[derive(Debug)]
pub struct Captured {
    pub object: PackedObject,
    /// The path of its file, which may name its kind.
    pub path: Arc<str>,
    /// The plural of its kind, if the source says so.
    pub plural: Option<String>,
}

/// A log of a container.
#[derive(Clone, Debug)]
pub struct CapturedLog(Input);

impl CapturedLog {
    pub fn read(&self) -> Result<Bytes, Error> {
        self.0.text(limits::LOG_BYTES_MAX)
    }
}

/// The content of a source. [`Capture::read`] makes it of files; a reader of another kind of source is another function that makes one.
#[derive(Debug, Default)]
pub struct Capture {
    pub name: String,
    pub objects: Vec<Captured>,
    pub logs: BTreeMap<LogKey, CapturedLog>,
    /// The newest time in it that is not in the future, in seconds since the Unix epoch.
    pub moment: Option<i64>,
    pub problems: Problems,
}

/// An object, as it is read.
struct Found {
    value: Value,
    path: Arc<str>,
    plural: Option<String>,
}

/// The content of a file.
#[derive(Default)]
struct Content {
    objects: Vec<Captured>,
    /// The newest time in the objects.
    newest: Option<i64>,
    logs: Vec<(LogKey, CapturedLog)>,
    problems: Vec<String>,
}

impl Capture {
    /// Reads a source: a file, a directory, an archive, stdin, or a commit. Fails if it has no objects.
    pub fn read(source: &str) -> Result<Capture, Error> {
        if let Some(cluster) = LiveCluster::parse(source) {
            return Capture::of_cluster(source, &cluster);
        }
        let mut problems = Problems::default();
        let files = files(source, &mut problems)?;
        let name = source.trim_end_matches('/');
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        let mut capture = Capture { name, problems, ..Capture::default() };
        let is_alone = files.len() == 1;
        let now = clock::now_seconds();
        for (file, content) in files.iter().zip(contents(&files, is_alone)) {
            let is_empty = content.objects.is_empty() && content.logs.is_empty();
            let written = file.modified.filter(|_| !is_empty);
            let times = [content.newest, written.filter(|time| *time <= now), capture.moment];
            capture.moment = times.into_iter().flatten().max();
            capture.objects.extend(content.objects);
            capture.logs.extend(content.logs);
            content.problems.iter().for_each(|why| capture.problems.add(&file.path, why));
        }
        match capture.objects.is_empty() && capture.logs.is_empty() {
            true => {
                let problem = capture.problems.lines().into_iter().next();
                let of_source = problem.as_ref().and_then(|line| line.strip_prefix(&format!("{source}: ")));
                Err(match of_source.map(str::to_owned) {
                    // the error of the source itself names it
                    Some(why) if why.contains(source) => Error::Problem(why),
                    Some(why) => Error::NoObjects { name: source.to_owned(), problem: Some(why) },
                    None => Error::NoObjects { name: source.to_owned(), problem },
                })
            }
            false => Ok(capture),
        }
    }
}

impl Capture {
    fn of_cluster(source: &str, cluster: &LiveCluster) -> Result<Capture, Error> {
        let listed = cluster.list()?;
        let mut capture = Capture { name: source.to_owned(), moment: Some(clock::now_seconds()), ..Capture::default() };
        listed.problems.iter().for_each(|(list, why)| capture.problems.add(list, why));
        let captured =
            |ListedObject { object, list, plural }| Captured { object, path: list.into(), plural: Some(plural) };
        capture.objects.extend(listed.objects.into_iter().map(captured));
        Ok(capture)
    }
}

impl Capture {
    /// Adds the logs of all containers that have run, if the source is a cluster; those of other sources have been read.
    pub fn add_logs(&mut self, source: &str) -> Result<(), Error> {
        let Some(cluster) = LiveCluster::parse(source) else { return Ok(()) };
        let objects = self.objects.iter().map(|captured| &captured.object);
        let pods = objects.filter(|object| (&*object.api_version, &*object.kind) == ("v1", "Pod"));
        let logs = cluster.logs(pods.flat_map(|pod| logs_of(&pod.value())).collect())?;
        logs.problems.iter().for_each(|(log, why)| self.problems.add(log, why));
        let named = |(key, part): (LogKey, Part)| {
            let name = format!("{}/{}/{}", key.namespace, key.pod, key.container);
            (key, CapturedLog(Input::Part(name.into(), part)))
        };
        self.logs.extend(logs.read.into_iter().map(named));
        Ok(())
    }
}

/// The logs that the containers of a Pod have: those of a run before are there after a restart.
fn logs_of(pod: &Value) -> Vec<LogKey> {
    let statuses = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
    let statuses = statuses.iter().flat_map(|list| pod.items_at(&["status", list]));
    let has_run =
        |status: &&Value| ["running", "terminated"].iter().any(|state| status.at(&["state", state]).is_some());
    let key = |status: &Value, run| LogKey {
        namespace: pod.str_at(&["metadata", "namespace"]).to_owned(),
        pod: pod.str_at(&["metadata", "name"]).to_owned(),
        container: status.str_at(&["name"]).to_owned(),
        run,
    };
    let current = statuses.clone().filter(has_run).map(|status| key(status, Run::Current));
    let restarted = statuses.filter(|status| status.at(&["lastState", "terminated"]).is_some());
    current.chain(restarted.map(|status| key(status, Run::Previous))).collect()
}

/// The contents of files, in their order, read by as many threads as there are cores.
fn contents(files: &[SourceFile], is_alone: bool) -> Vec<Content> {
    let taken = AtomicU64::new(0);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(READERS_MAX);
    let each = files.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let taken = &taken;
        let read = |chunk: &[SourceFile]| chunk.iter().map(|file| content(file, is_alone, taken)).collect::<Vec<_>>();
        let threads: Vec<_> = files
            .chunks(each)
            .map(|chunk| {
                (
                    chunk,
                    std::thread::Builder::new()
                        .stack_size(base::limits::WORKER_STACK_BYTES)
                        .spawn_scoped(scope, move || read(chunk)),
                )
            })
            .collect();
        // without a thread, the files are read here
        let joined = threads.into_iter().map(|(chunk, thread)| {
            thread.map(|thread| thread.join()).map_or_else(|_| read(chunk), |read| read.unwrap_or_default())
        });
        joined.flatten().collect()
    })
}

/// The content of a file. `taken` counts the bytes of the objects of all files.
fn content(file: &SourceFile, is_alone: bool, taken: &AtomicU64) -> Content {
    let mut content = Content::default();
    if let Some(key) = layouts::log(&file.path) {
        content.logs.push((key, CapturedLog(file.input.clone())));
        return content;
    }
    if let Some(snapshot) = file.input.part().filter(is_snapshot) {
        content.snapshot(&snapshot, taken);
        return content;
    }
    let ending = file.path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_manifest = ["yaml", "yml", "json"].contains(&ending.as_str());
    if layouts::is_repeated(&file.path) {
        return content;
    }
    if !is_manifest && !is_alone && !file.path.ends_with("/logs.txt") {
        return content;
    }
    match dumped(&file.input) {
        Ok(None) => content.documents(&file.input, &file.path, taken),
        Ok(Some(Dumped { rest, logs })) => {
            content.documents(&Input::Read(file.input.name(), rest), &file.path, taken);
            content.logs.extend(logs);
        }
        Err(error) => content.problems.push(error.to_string()),
    }
    content
}

fn is_snapshot(part: &Part) -> bool {
    part.head(etcd::HEAD_BYTES).is_ok_and(|head| etcd::is_database(&head))
}

impl Content {
    /// Adds an object if there is room for it.
    fn add(&mut self, Found { value, path, plural }: Found, taken: &AtomicU64) {
        self.newest = newest(&value, clock::now_seconds()).max(self.newest);
        let object = PackedObject::of(value);
        match taken.fetch_add(object.json().len() as u64, Ordering::Relaxed) < OBJECT_BYTES_MAX {
            true => self.objects.push(Captured { object, path, plural }),
            false => self.problems.push(format!("objects of more than {} GiB are not served", OBJECT_BYTES_MAX >> 30)),
        }
    }

    fn snapshot(&mut self, snapshot: &Part, taken: &AtomicU64) {
        let read = etcd::read(snapshot, &mut |key, stored| match stored {
            Ok(StoredObject { value, plural }) => self.add(Found { value, path: key.into(), plural }, taken),
            // of values that cannot be read, a line for each folder is enough
            Err(why) => {
                self.problems.push(format!("{}: {why}", key.rsplit_once('/').map_or(key, |(folder, _)| folder)))
            }
        });
        self.problems.extend(read.err().map(|error| error.to_string()));
    }

    fn documents(&mut self, input: &Input, path: &str, taken: &AtomicU64) {
        let path: Arc<str> = path.into();
        let documents = match input.documents() {
            Ok(documents) => documents,
            Err(error) => return self.problems.push(error.to_string()),
        };
        for document in documents {
            let document = match document {
                Ok(document) => document,
                Err(error) => return self.problems.push(error.to_string()),
            };
            match document.values() {
                Err(undecodable) => self.problems.push(undecodable.why),
                Ok(values) => {
                    values
                        .into_iter()
                        .filter_map(|value| found(value, &path))
                        .for_each(|object| self.add(object, taken));
                }
            }
        }
    }
}

/// An object, or a line of an export with one. `None` for other values, such as configurations of tools.
fn found(mut value: Value, path: &Arc<str>) -> Option<Found> {
    let mut plural = None;
    if value.str_at(&["kind"]).is_empty() && !value.str_at(&["resource"]).is_empty() && value.at(&["object"]).is_some()
    {
        plural = Some(value.str_at(&["resource"]).to_owned());
        value = value.remove_at(&["object"])?;
    }
    if value.str_at(&["kind"]).is_empty()
        && value.at(&["metadata", "name"]).is_some()
        && let Some((version, kind)) = layouts::kind(path)
    {
        value.set_at(&["apiVersion"], Value::from(version));
        value.set_at(&["kind"], Value::from(kind));
    }
    let is_object = !value.str_at(&["apiVersion"]).is_empty() && !value.str_at(&["kind"]).is_empty();
    (is_object && value.at(&["metadata"]).is_some()).then(|| Found { value, path: path.clone(), plural })
}

/// The logs in a text, and the text without them.
struct Dumped {
    rest: Bytes,
    logs: Vec<(LogKey, CapturedLog)>,
}

/// Takes the logs out of a text. `None` if it has none.
fn dumped(input: &Input) -> Result<Option<Dumped>, Error> {
    let text = input.text(DOCUMENT_BYTES_MAX as u64)?;
    let Some(first) = memchr::memmem::find(&text, DUMPED_LOG) else { return Ok(None) };
    let (mut rest, mut logs, mut at) = (text[..first].to_vec(), vec![], first);
    while let Some(start) = memchr::memmem::find(&text[at..], DUMPED_LOG).map(|start| at + start) {
        rest.extend_from_slice(&text[at..start]);
        let head_end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |end| start + end + 1);
        let end = memchr::memmem::find(&text[head_end..], DUMPED_END).map_or(text.len(), |end| head_end + end);
        let head = String::from_utf8_lossy(&text[start + DUMPED_LOG.len()..head_end]);
        let words: Vec<&str> = head.split(' ').collect();
        if let [container, "of", "pod", pod, ..] = words[..]
            && let Some((namespace, pod)) = pod.split_once('/')
        {
            let (namespace, pod, container) = (namespace.to_owned(), pod.to_owned(), container.to_owned());
            let key = LogKey { namespace, pod, container, run: Run::Current };
            logs.push((key, CapturedLog(Input::Read(input.name(), text.slice(head_end..end)))));
        }
        at = memchr::memchr(b'\n', &text[end..]).map_or(text.len(), |line| end + line + 1);
    }
    rest.extend_from_slice(&text[at..]);
    Ok(Some(Dumped { rest: rest.into(), logs }))
}

/// The newest time that an object records, up to `now`: those of Leases and Events are the nearest to the capture.
fn newest(object: &Value, now: i64) -> Option<i64> {
    let conditions = object.items_at(&["status", "conditions"]).iter();
    let of_conditions = conditions.flat_map(|condition| {
        ["lastHeartbeatTime", "lastTransitionTime", "lastUpdateTime"].map(|field| condition.str_at(&[field]))
    });
    let managers = object.items_at(&["metadata", "managedFields"]).iter().map(|manager| manager.str_at(&["time"]));
    let own: [&[&str]; 5] = [
        &["metadata", "creationTimestamp"],
        &["spec", "renewTime"],
        &["lastTimestamp"],
        &["eventTime"],
        &["series", "lastObservedTime"],
    ];
    let times = own.into_iter().map(|path| object.str_at(path)).chain(of_conditions).chain(managers);
    times.filter_map(|text| parse_rfc3339(text).map(|(seconds, _)| seconds)).filter(|time| *time <= now).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(files: &[(&str, &str)]) -> (Capture, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (Capture::read(&directory.path().to_string_lossy()).unwrap(), directory)
    }

    fn names(capture: &Capture) -> Vec<String> {
        let name = |Captured { object, .. }: &Captured| format!("{} {}", object.kind, object.name);
        let logs = capture.logs.iter().map(|(key, log)| {
            format!(
                "{}/{}/{} {}",
                key.namespace,
                key.pod,
                key.container,
                String::from_utf8_lossy(&log.read().unwrap()).trim_end()
            )
        });
        capture.objects.iter().map(name).chain(logs).collect()
    }

    const POD: &str = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}";
    const BARE: &str = "[{\"metadata\":{\"name\":\"p\"}}]";
    const UNTYPED: &str = "{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"e\"}}]}";
    const TYPED: &str = "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{\"name\":\"a\"}}]}";
    const LOG: &str =
        "==== START logs for container c of pod n/p ====\nline\n==== END logs for container c of pod n/p ====\n";

    /// A layout, its files, and the names of what is read of them.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

    #[test]
    fn layouts_of_tools_are_read() {
        let list = format!("{{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[{POD}]}}");
        let export = format!(
            "{{\"format\":\"pintle objects 1\"}}\n{{\"group\":\"\",\"resource\":\"pods\",\"path\":\"n/p\",\"object\":{POD}}}\n{{\"sha256\":\"\"}}\n"
        );
        let log_of_dump = format!("{list}\n{LOG}");
        let cases: [Case<'_>; 9] = [
            (
                "must-gather",
                &[
                    ("q/namespaces/n/core/pods.yaml", &list),
                    ("q/namespaces/n/pods/p/c/c/logs/current.log", "line\n"),
                    ("q/version", "x"),
                ],
                &["Pod p", "n/p/c line"],
            ),
            (
                "troubleshoot",
                &[
                    ("b/cluster-resources/pods/n.json", BARE),
                    ("b/cluster-resources/events/n.json", UNTYPED),
                    ("b/cluster-resources/nodes.json", TYPED),
                    ("b/cluster-resources/pods/logs/n/p/c.log", "line"),
                    ("b/version.yaml", "a: 1"),
                ],
                &["Event e", "Node a", "Pod p", "n/p/c line"],
            ),
            (
                "rancher",
                &[("s/yamls/namespaced/n/kubernetes/v1/pods.yaml", &list), ("s/logs/n/p/c.log", "line")],
                &["Pod p", "n/p/c line"],
            ),
            (
                "crust-gather",
                &[("namespaces/n/v1/pod/p.yaml", POD), ("namespaces/n/v1/pod/p/c/current.log", "line")],
                &["Pod p", "n/p/c line"],
            ),
            (
                "velero",
                &[
                    ("resources/pods/namespaces/n/p.json", POD),
                    ("resources/pods/v1-preferredversion/namespaces/n/p.json", POD),
                    ("metadata/version", "1.1.0"),
                ],
                &["Pod p"],
            ),
            ("dump directory", &[("d/n/pods.json", &list), ("d/n/p/logs.txt", LOG)], &["Pod p", "n/p/c line"]),
            ("dump", &[("dump.json", &log_of_dump)], &["Pod p", "n/p/c line"]),
            ("export", &[("export.jsonl", &export)], &["Pod p"]),
            (
                "manifests",
                &[
                    (
                        "a.yaml",
                        "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n---\nkind: A\napiVersion: b/v1\nmetadata: {name: b}\n",
                    ),
                    ("values.yaml", "a: [1]"),
                ],
                &["Pod a", "A b"],
            ),
        ];
        for (layout, files, want) in cases {
            let (found, _directory) = capture(files);
            assert_eq!(names(&found), want, "{layout}");
            assert_eq!(found.problems.lines(), Vec::<String>::new(), "{layout}");
        }
    }

    #[test]
    fn the_newest_time_that_has_passed_is_the_moment() {
        let (found, _directory) = capture(&[
            (
                "a.yaml",
                "{kind: Lease, apiVersion: coordination.k8s.io/v1, metadata: {name: a, creationTimestamp: \"2020-01-01T00:00:00Z\"}, spec: {renewTime: \"2021-01-01T00:00:00.5Z\"}}",
            ),
            ("b.yaml", "{kind: Event, apiVersion: v1, metadata: {name: b}, lastTimestamp: \"2999-01-01T00:00:00Z\"}"),
            ("c.yaml", "a: [\n"),
        ]);
        assert_eq!(found.moment.map(machinery::time::rfc3339).as_deref(), Some("2021-01-01T00:00:00Z"));
        assert_eq!(found.problems.count(), 1);
        assert!(Capture::read("/no/such/source").is_err());
    }
}
