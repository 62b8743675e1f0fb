//! The objects of followed files, and those that were applied from them.
//!
//! A file counts as a whole: while something is wrong with it, its objects stay as they were. Definitions and namespaces are the
//! exception, since the verdict on other objects needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base::clock;
use client::{Result, fail};
use http::Method;
use machinery::{Status, Value, json};
use offline::engine::Refusal;
use offline::findings::{self, Checked, Finding};
use server::Mapping;
use tokio::time::Instant;

use super::api::{Api, Effect};
use super::changes::{Changes, Next};
use super::read::{Item, Stamp, excerpt, read};
use super::statuses::Statuses;
use super::{APPLIED_LABEL, FILE_ANNOTATION};
use crate::limits::{self, FOLLOWED_BYTES_MAX, FOLLOWED_FILES_MAX};
use crate::logs::print_error;

/// Kinds that other objects need: they are applied first and deleted last.
const NEEDED: [&str; 2] = ["CustomResourceDefinition", "Namespace"];

/// The identity of an object, whatever its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    group: String,
    plural: String,
    namespace: String,
    name: String,
}

/// An object that was applied.
struct Applied {
    /// The path of its requests.
    path: String,
    file: PathBuf,
    is_needed: bool,
}

/// The last reading of a file.
struct KnownFile {
    stamp: Stamp,
    /// The error that was reported; `None` if the file was applied.
    problem: Option<String>,
    /// When it was first found to be gone.
    gone_since: Option<Instant>,
}

/// A file that has changed.
struct Changed {
    file: PathBuf,
    items: Vec<Item>,
    wrong: Vec<Checked>,
    /// The objects that it has.
    keys: BTreeSet<Key>,
}

pub struct FollowedFiles {
    arguments: Vec<PathBuf>,
    api: Api,
    statuses: Option<Statuses>,
    files: BTreeMap<PathBuf, KnownFile>,
    applied: BTreeMap<Key, Applied>,
    /// The error of the directory that was reported.
    problem: Option<String>,
    next: Next,
}

impl FollowedFiles {
    pub fn new(arguments: Vec<PathBuf>, api: Api, statuses: Option<Statuses>) -> FollowedFiles {
        let (files, applied) = (BTreeMap::new(), BTreeMap::new());
        FollowedFiles { arguments, api, statuses, files, applied, problem: None, next: Next::Change }
    }

    /// Finds what an earlier run has applied.
    pub async fn find_applied(&mut self) {
        for mapping in self.api.mappings() {
            let uri = format!("{}?labelSelector={APPLIED_LABEL}%3Dtrue", mapping.path("", ""));
            let Ok(list) = self.api.call(Method::GET, &uri, "", None).await else { continue };
            for object in list.items_at(&["items"]) {
                let file = object.str_at(&["metadata", "annotations", FILE_ANNOTATION]).into();
                self.note(&mapping, object, file);
            }
        }
    }

    fn note(&mut self, mapping: &Mapping, object: &Value, file: PathBuf) {
        let (key, path) = (key(mapping, object), path(mapping, object));
        let is_needed = NEEDED.contains(&mapping.kind().as_ref());
        self.applied.insert(key, Applied { path, file, is_needed });
        self.statuses.iter_mut().for_each(|statuses| statuses.follow(mapping));
    }

    /// Brings the server in step with the files.
    pub async fn pass(&mut self, changes: &mut Changes) -> Next {
        self.next = Next::Change;
        let found = match self.found(changes) {
            Ok(found) => found,
            Err(failure) => {
                let why = failure.to_string();
                if self.problem.as_ref() != Some(&why) {
                    print_error(&format!("pintle: {why}; all objects stay as they are"));
                }
                self.problem = Some(why);
                return Next::After(limits::FOLLOWED_RETRY);
            }
        };
        self.problem = None;
        let gone = self.gone(&found);
        let is_known = |(file, stamp): &(&PathBuf, &Stamp)| {
            self.files.get(*file).is_some_and(|known| known.stamp == **stamp && known.gone_since.is_none())
        };
        let is_same = found.iter().all(|file| is_known(&file));
        let is_retried = self.files.values().any(|known| known.problem.is_some());
        if is_same && gone.is_empty() && !is_retried {
            return self.next;
        }
        let is_good = |file: &PathBuf| self.files.get(file).is_some_and(|known| known.problem.is_none());
        // what another file has changed may be what one with a problem lacks
        let changed: Vec<_> = found.iter().filter(|file| !is_known(file) || !is_good(file.0)).collect();
        let mut read: Vec<Changed> =
            base::task::blocking(|| changed.iter().map(|(file, _)| Changed::read(file)).collect());
        for changed in &mut read {
            self.apply_needed(changed).await;
        }
        self.find_keys(&mut read);
        for changed in &mut read {
            self.apply(changed).await;
        }
        for changed in &read {
            self.report(changed, found[&changed.file]);
        }
        gone.iter().for_each(|file| drop(self.files.remove(file)));
        self.prune(&read).await;
        self.next
    }

    /// How many files are not applied.
    pub fn wrong(&self) -> usize {
        self.files.values().filter(|known| known.problem.is_some()).count() + usize::from(self.problem.is_some())
    }

    /// The files that there are. Those that a program is writing are as they were.
    fn found(&self, changes: &mut Changes) -> Result<BTreeMap<PathBuf, Stamp>> {
        let mut found = BTreeMap::new();
        for argument in &self.arguments {
            let files = sources::manifests(argument, &mut |directory| changes.watch(directory))?;
            found.extend(files.into_iter().filter_map(|file| {
                let before = self.files.get(&file).filter(|_| changes.is_written(&file)).map(|known| known.stamp);
                let stamp = before.or_else(|| Stamp::of(&file).filter(|_| !changes.is_written(&file)))?;
                Some((file, stamp))
            }));
        }
        let bytes: u64 = found.values().map(|stamp| stamp.bytes).sum();
        let arguments: Vec<String> = self.arguments.iter().map(|path| path.display().to_string()).collect();
        match () {
            () if found.len() > FOLLOWED_FILES_MAX => {
                fail(format!("{}: more than {FOLLOWED_FILES_MAX} manifests cannot be followed", arguments.join(", ")))
            }
            () if bytes > FOLLOWED_BYTES_MAX => fail(format!(
                "{}: manifests of more than {} MiB cannot be followed",
                arguments.join(", "),
                FOLLOWED_BYTES_MAX >> 20
            )),
            () => Ok(found),
        }
    }

    /// The files that are gone. Editors take a file away before they write its successor, so one counts as gone after a while.
    fn gone(&mut self, found: &BTreeMap<PathBuf, Stamp>) -> Vec<PathBuf> {
        let mut gone = vec![];
        for (file, known) in &mut self.files {
            if found.contains_key(file) {
                continue;
            }
            let since = *known.gone_since.get_or_insert_with(clock::instant);
            if since.elapsed() >= limits::FOLLOWED_GONE {
                gone.push(file.clone());
            } else {
                self.next = Next::After(limits::FOLLOWED_GONE);
            }
        }
        gone
    }

    /// Applies definitions and namespaces.
    async fn apply_needed(&mut self, changed: &mut Changed) {
        for item in
            changed.items.extract_if(.., |item| NEEDED.contains(&item.value().str_at(&["kind"]))).collect::<Vec<_>>()
        {
            let Some(mapping) = self.api.mapping(item.value()) else {
                changed.wrong.push(item.checked(vec![missing(&item)]));
                continue;
            };
            changed.keys.insert(key(&mapping, item.value()));
            self.apply_one(&mapping, &item, changed).await;
        }
    }

    /// Finds out which objects the files have. Each object is in one of them.
    fn find_keys(&self, read: &mut [Changed]) {
        let mut owners: BTreeMap<Key, PathBuf> = BTreeMap::new();
        let is_read: BTreeSet<PathBuf> = read.iter().map(|changed| changed.file.clone()).collect();
        for changed in read {
            for item in &changed.items {
                let Some(mapping) = self.api.mapping(item.value()) else {
                    changed.wrong.push(item.checked(vec![missing(item)]));
                    continue;
                };
                let key = key(&mapping, item.value());
                // an object of a file that has changed may have moved here
                let is_there = |file: &&PathBuf| {
                    !is_read.contains(*file) && self.files.get(*file).is_some_and(|known| known.gone_since.is_none())
                };
                let unchanged = self.applied.get(&key).map(|applied| &applied.file).filter(is_there);
                if let Some(other) = owners.get(&key).or(unchanged) {
                    let why = format!("the object is also in {}", other.display());
                    changed.wrong.push(item.checked(vec![item.error("Duplicate", "metadata.name", &why)]));
                }
                changed.keys.insert(key.clone());
                owners.entry(key).or_insert_with(|| changed.file.clone());
            }
        }
    }

    /// Applies the objects of a file if the server accepts all of them.
    async fn apply(&mut self, changed: &mut Changed) {
        let items = std::mem::take(&mut changed.items);
        // one object alone is stored or not
        if items.len() > 1 {
            for item in &items {
                let Some(mapping) = self.api.mapping(item.value()) else { continue };
                let object = marked(item.value(), &changed.file);
                let verdict = self.api.apply(&path(&mapping, item.value()), &object, Effect::Verdict).await;
                changed.wrong.extend(verdict.err().map(|status| self.refused(item, &status)));
            }
        }
        if !changed.wrong.is_empty() {
            return;
        }
        for item in &items {
            let Some(mapping) = self.api.mapping(item.value()) else { continue };
            self.apply_one(&mapping, item, changed).await;
        }
    }

    async fn apply_one(&mut self, mapping: &Mapping, item: &Item, changed: &mut Changed) {
        let object = marked(item.value(), &changed.file);
        match self.api.apply(&path(mapping, item.value()), &object, Effect::Stored).await {
            Ok(stored) => self.note(mapping, &stored, changed.file.clone()),
            Err(status) => changed.wrong.push(self.refused(item, &status)),
        }
    }

    /// Returns the findings for an object that the server refuses.
    fn refused(&mut self, item: &Item, status: &Status) -> Checked {
        if matches!(status.code, 429 | 503 | 504) {
            self.next = Next::After(limits::FOLLOWED_RETRY);
        }
        item.checked(match Refusal::of(status) {
            Refusal::Untyped(fields) if !fields.is_empty() => {
                fields.into_iter().map(|(field, why)| item.error(findings::UNKNOWN_FIELD, field, why)).collect()
            }
            _ => findings::of_verdict(&item.document, &item.object, status),
        })
    }

    /// Reports the errors of a file once.
    fn report(&mut self, changed: &Changed, stamp: Stamp) {
        let file = changed.file.display();
        let before = self.files.remove(&changed.file).and_then(|known| known.problem);
        let problem = (!changed.wrong.is_empty()).then(|| excerpt(&changed.wrong));
        match &problem {
            Some(problem) if before.as_ref() != Some(problem) => {
                print_error(&format!("pintle: {file} is not applied, its objects stay as they are:\n{problem}"));
            }
            None if before.is_some() => print_error(&format!("pintle: {file} is applied")),
            _ => {}
        }
        self.files.insert(changed.file.clone(), KnownFile { stamp, problem, gone_since: None });
    }

    /// Deletes the objects that are gone from their files. Those of a file with a problem stay.
    async fn prune(&mut self, read: &[Changed]) {
        let wanted: BTreeSet<&Key> = read.iter().flat_map(|changed| &changed.keys).collect();
        let is_changed = |file: &PathBuf| read.iter().any(|changed| changed.file == *file && changed.wrong.is_empty());
        let is_pruned = |(key, applied): &(&Key, &Applied)| {
            !wanted.contains(key) && (is_changed(&applied.file) || !self.files.contains_key(&applied.file))
        };
        let mut pruned: Vec<(bool, Key)> =
            self.applied.iter().filter(is_pruned).map(|(key, applied)| (applied.is_needed, key.clone())).collect();
        pruned.sort();
        for (_, key) in pruned {
            let Some(Applied { path, file, .. }) = self.applied.get(&key) else { continue };
            match self.delete(path).await {
                Ok(()) => drop(self.applied.remove(&key)),
                Err(status) => {
                    let name = format!("{} {}", key.plural, key.name);
                    print_error(&format!("pintle: {name}, which is gone from {}, stays: {status}", file.display()));
                    self.next = Next::After(limits::FOLLOWED_RETRY);
                }
            }
        }
    }

    /// Deletes an object, unless it has been replaced by one that is not from a file.
    async fn delete(&self, path: &str) -> Result<(), Status> {
        let is_gone = |status: &Status| matches!(status.code, 404 | 409);
        let object = match self.api.call(Method::GET, path, "", None).await {
            Err(status) if is_gone(&status) => return Ok(()),
            found => found?,
        };
        if object.str_at(&["metadata", "labels", APPLIED_LABEL]) != "true" {
            return Ok(());
        }
        let options = json!({"preconditions": {"uid": (object.str_at(&["metadata", "uid"]))}});
        match self.api.call(Method::DELETE, path, "application/json", Some(&options)).await {
            Err(status) if !is_gone(&status) => Err(status),
            _ => Ok(()),
        }
    }
}

impl Changed {
    fn read(file: &Path) -> Changed {
        let (items, wrong) = match read(file) {
            Ok(items) => (items, vec![]),
            Err(wrong) => (vec![], wrong),
        };
        Changed { file: file.to_owned(), items, wrong, keys: BTreeSet::new() }
    }
}

fn namespace(object: &Value) -> &str {
    match object.str_at(&["metadata", "namespace"]) {
        "" => "default",
        namespace => namespace,
    }
}

fn key(mapping: &Mapping, object: &Value) -> Key {
    let namespace = if mapping.is_namespaced() { namespace(object) } else { "" };
    Key {
        group: mapping.group().to_string(),
        plural: mapping.plural().to_string(),
        namespace: namespace.to_owned(),
        name: object.str_at(&["metadata", "name"]).to_owned(),
    }
}

fn path(mapping: &Mapping, object: &Value) -> String {
    mapping.path(namespace(object), object.str_at(&["metadata", "name"]))
}

fn missing(item: &Item) -> Finding {
    let (version, kind) = (item.value().str_at(&["apiVersion"]), item.value().str_at(&["kind"]));
    item.error("NoDefinition", "kind", &format!("no matches for kind {kind:?} in version {version:?}"))
}

/// An object with the label and the annotation of its file.
fn marked(object: &Value, file: &Path) -> Value {
    let mut object = object.clone();
    let marks = [("labels", APPLIED_LABEL, "true".into()), ("annotations", FILE_ANNOTATION, file.to_string_lossy())];
    for (of, name, text) in marks {
        // the server reports what else it is
        if matches!(object.at(&["metadata", of]), None | Some(Value::Null | Value::Object(_))) {
            object.set_at(&["metadata", of, name], Value::from(&*text));
        }
    }
    object
}
