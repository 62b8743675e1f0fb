//! Replays the transcripts without a server, as far as possible: it follows definitions and live objects, and compares
//! what `update` and `apply` make of each write.

use machinery::value::decode;
use machinery::{Release, Status, Text, Value};
use schema::apply::{ConvertError, FieldSet, Force, Request, TypeSchema, Versions, apply, update};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const LIST: [&str; 2] = ["metadata", "managedFields"];

struct Definition {
    group: String,
    kind: String,
    versions: Vec<(Text, TypeSchema)>,
    schemas: Vec<Value>,
    statuses: Vec<Text>,
}

impl Definition {
    fn prune(&self, version: &str, value: &mut Value) {
        if let Some(schema) = self.versions.iter().position(|(v, _)| v == version).and_then(|i| self.schemas.get(i)) {
            prune(schema, value, true);
        }
    }
}

struct Endpoint<'a> {
    definition: &'a Definition,
    reset: Option<FieldSet>,
}

impl Versions for Endpoint<'_> {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        self.definition.versions.iter().find(|(v, _)| v == api_version).map(|(_, types)| types)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if self.types(api_version).is_none() {
            return Err(ConvertError::MissingVersion);
        }
        let mut object = object.clone();
        object.set_at(&["apiVersion"], Value::from(api_version));
        Ok(object)
    }

    fn reset_fields(&self, _: &str) -> Option<&FieldSet> {
        self.reset.as_ref()
    }
}

/// Removes the fields that the schema does not declare.
fn prune(schema: &Value, value: &mut Value, root: bool) {
    let keep = schema.get("x-kubernetes-preserve-unknown-fields").is_some();
    match (value, schema.get("properties"), schema.get("additionalProperties"), schema.get("items")) {
        (Value::Object(map), properties, additional, _) => map.retain(|name, value| {
            if root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                return true;
            }
            match (properties.and_then(|p| p.get(name)), additional) {
                (Some(schema), _) | (None, Some(schema)) => prune(schema, value, false),
                _ => return keep,
            }
            true
        }),
        (Value::Array(items), _, _, Some(schema)) => items.iter_mut().for_each(|item| prune(schema, item, false)),
        _ => {}
    }
}

fn transcripts() -> Vec<PathBuf> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts");
    let entries = |folder: PathBuf| std::fs::read_dir(folder).expect("the recorded transcripts");
    let entries = entries(own.join("recorded/1.37")).chain(entries(own));
    let mut files: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "json"));
    files.sort();
    files
}

fn define(crd: &Value) -> Option<Definition> {
    let group = crd.str_at(&["spec", "group"]).to_owned();
    let mut definition = Definition {
        kind: crd.str_at(&["spec", "names", "kind"]).to_owned(),
        group,
        versions: vec![],
        schemas: vec![],
        statuses: vec![],
    };
    for version in crd.at(&["spec", "versions"])?.as_array()? {
        let name = Text::from(format!("{}/{}", definition.group, version.str_at(&["name"])));
        let schema = version.at(&["schema", "openAPIV3Schema"]);
        let types = schema.map(TypeSchema::compile);
        definition.schemas.push(schema.cloned().unwrap_or_default());
        definition.versions.push((name.clone(), types.unwrap_or_else(TypeSchema::schemaless)));
        if version.at(&["subresources", "status"]).is_some() {
            definition.statuses.push(name);
        }
    }
    Some(definition)
}

/// The sorted list without times, which the server restores where a write changes nothing else.
fn comparable(list: Option<&Value>) -> String {
    let mut entries: Vec<String> = vec![];
    for entry in list.and_then(Value::as_array).unwrap_or_default() {
        let mut entry = entry.clone();
        entry.remove_at(&["time"]);
        entries.push(entry.to_json());
    }
    entries.sort();
    format!("[{}]", entries.join(",\n "))
}

/// The sorted words of a text, without uids.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text
        .split([' ', ',', '[', ']', '\n', '.', '='])
        .filter(|w| !w.is_empty() && !w.contains("uid:") && !w.contains("0000"))
        .collect();
    words.sort_unstable();
    words
}

struct Step<'a> {
    step: &'a Value,
    resource: String,
    subresource: String,
    manager: String,
    version: Text,
    query: String,
}

/// Splits `/apis/g/v/[namespaces/n/]plural/name[/sub]?query`.
fn locate(step: &Value) -> Option<Step<'_>> {
    let path = step.str_at(&["path"]);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (version, rest) = match parts.as_slice() {
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, sub] => (*plural, *name, *sub),
        _ => return None,
    };
    let group = version.split('/').next().unwrap_or_default();
    let body_name = step.str_at(&["body", "metadata", "name"]);
    let name = if name.is_empty() { body_name } else { name };
    let parameter = |key: &str| {
        let pair = query.split('&').find_map(|p| p.strip_prefix(key)).unwrap_or_default();
        pair.replace('+', " ").replace("%20", " ").replace("%2F", "/").replace("%C3%BC", "ü")
    };
    Some(Step {
        step,
        resource: format!("{group}/{plural}/{namespace}/{name}"),
        subresource: subresource.to_owned(),
        manager: Some(parameter("fieldManager=")).filter(|m| !m.is_empty()).unwrap_or("replay".into()),
        version: version.into(),
        query: query.to_owned(),
    })
}

#[derive(Default)]
struct World {
    definitions: BTreeMap<String, Definition>,
    live: BTreeMap<String, Value>,
    /// The objects whose state is no longer known.
    lost: BTreeSet<String>,
    checked: usize,
    /// How many seconds the recording has slept.
    time: i64,
    failures: Vec<String>,
}

fn response_object(step: &Value) -> Option<&Value> {
    let status = step.at(&["answer", "status"])?.as_int()?;
    let body = step.at(&["answer", "body"])?;
    (matches!(status, 200 | 201) && body.at(&["metadata", "name"]).is_some() && body.str_at(&["kind"]) != "Status")
        .then_some(body)
}

impl World {
    fn run(&mut self, file: &str, scenario: &Value) {
        for step in scenario.items_at(&["steps"]) {
            self.time += step.get("sleep").map_or(0, |s| s.as_float().unwrap_or_default().ceil() as i64);
            let Some(located) = locate(step) else { continue };
            if located.resource.starts_with("apiextensions.k8s.io/customresourcedefinitions/") {
                let body = step.get("body").or_else(|| step.at(&["answer", "body"]));
                if let Some(definition) = body.and_then(define)
                    && matches!(step.str_at(&["method"]), "POST" | "PUT")
                {
                    let plural = body.map(|b| b.str_at(&["spec", "names", "plural"])).unwrap_or_default();
                    self.definitions.insert(format!("{}/{plural}", definition.group), definition);
                } else if step.str_at(&["method"]) == "PATCH" {
                    // patches of definitions are not followed
                    let name = located.resource.rsplit('/').next().unwrap_or_default();
                    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
                    self.definitions.remove(&format!("{group}/{plural}"));
                }
                continue;
            }
            self.write(file, &located);
        }
    }

    fn write(&mut self, file: &str, located: &Step<'_>) {
        let step = located.step;
        let key = located.resource.split('/').take(2).collect::<Vec<_>>().join("/");
        let Some(definition) = self.definitions.get(&key) else { return };
        let method = step.str_at(&["method"]);
        if method == "DELETE" {
            return self.delete(located);
        }
        if !definition.versions.iter().any(|(v, _)| *v == located.version) {
            return;
        }
        let reset = match located.subresource.as_str() {
            "" if definition.statuses.contains(&located.version) => Some(FieldSet::of_fields(&[&["status"]])),
            "" => None,
            "status" => Some(FieldSet::of_fields(&[&["metadata"], &["spec"]])),
            _ => {
                self.lost.insert(located.resource.clone());
                return;
            }
        };
        // this response does not contain the object
        if response_object(step).is_some_and(|response| response.str_at(&["kind"]) != definition.kind)
            && method != "GET"
        {
            self.lost.insert(located.resource.clone());
        }
        if self.lost.contains(&located.resource) {
            return;
        }
        let endpoint = Endpoint { definition, reset };
        let request = Request {
            manager: &located.manager,
            api_version: &located.version,
            kind: &definition.kind,
            subresource: &located.subresource,
            time: 1_700_000_000 + self.time,
            versions: &endpoint,
            zero: None,
            release: Release::NEWEST,
        };
        let live = self.live.get(&located.resource).map(|live| {
            let mut live = live.clone();
            live.set_at(&["apiVersion"], Value::from(&located.version));
            definition.prune(&located.version, &mut live);
            live
        });
        let media = step.str_at(&["headers", "Content-Type"]);
        let outcome = match (method, media.starts_with("application/apply-patch")) {
            ("PATCH", true) => applied(located, live.as_ref(), &request),
            // the last finalizer is removed, and with it the object
            ("PUT" | "PATCH", false)
                if located.subresource.is_empty() && response_object(step).is_some_and(is_gone) =>
            {
                if !located.query.contains("dryRun") {
                    self.live.remove(&located.resource);
                }
                return;
            }
            ("POST" | "PUT" | "PATCH", _) => response_object(step).map(|response| {
                let mut new = wanted(response, located, definition);
                update(live.as_ref().filter(|_| method != "POST"), &mut new, &request);
                Ok(new)
            }),
            _ => None,
        };
        self.compare(&format!("{file}: {}", step.str_at(&["id"])), located, outcome);
    }

    /// Compares the outcome of a write with the recorded response, if the write is replayed.
    fn compare(&mut self, id: &str, located: &Step<'_>, outcome: Option<Result<Value, Status>>) {
        let step = located.step;
        match (outcome, response_object(step)) {
            (Some(Ok(new)), Some(response)) => self.compare_lists(id, located, &new, response),
            (Some(Err(status)), _) if step.at(&["answer", "body", "message"]).is_some() => {
                self.compare_errors(id, step, &status);
            }
            (Some(Err(status)), Some(_)) => self.failures.push(format!("{id}: refused: {status}")),
            (None, Some(response)) if step.str_at(&["method"]) != "GET" => {
                self.live.insert(located.resource.clone(), response.clone());
            }
            _ => {}
        }
    }

    fn delete(&mut self, located: &Step<'_>) {
        match (response_object(located.step), self.live.get_mut(&located.resource)) {
            (Some(response), Some(live)) => {
                let mut marked = response.clone();
                marked.set_at(&LIST, live.at(&LIST).cloned().unwrap_or_default());
                *live = marked;
            }
            _ => drop(self.live.remove(&located.resource)),
        }
    }

    fn compare_lists(&mut self, id: &str, located: &Step<'_>, new: &Value, response: &Value) {
        let ignored = located.step.get("ignore").map(Value::to_json).unwrap_or_default();
        if !ignored.contains("managedFields") {
            self.checked += 1;
            let list = |v: &Value| comparable(v.at(&LIST));
            if list(new) != list(response) {
                self.failures.push(format!("{id}\n want {}\n got  {}", list(response), list(new)));
            }
        }
        if !located.query.contains("dryRun") {
            let mut stored = response.clone();
            stored.remove_at(&LIST);
            if let Some(list) = new.at(&LIST) {
                stored.set_at(&LIST, list.clone());
            }
            self.live.insert(located.resource.clone(), stored);
        }
    }

    fn compare_errors(&mut self, id: &str, step: &Value, status: &Status) {
        self.checked += 1;
        let want = step.str_at(&["answer", "body", "message"]);
        if words(want) != words(&status.message) {
            self.failures.push(format!("{id}\n want {want}\n got  {}", status.message));
        }
        let causes = |v: &Value| {
            let list = v.items_at(&["details", "causes"]);
            let mut list: Vec<String> = list.iter().map(Value::to_json).collect();
            list.sort();
            list
        };
        let (want, got) = (step.at(&["answer", "body"]).map(causes), causes(&status.to_value()));
        if want.as_ref().is_some_and(|w| !w.is_empty() && *w != got && !got.concat().contains("uid")) {
            self.failures.push(format!("{id}\n want {want:?}\n got  {got:?}"));
        }
    }
}

/// The object that the client wants to store, as far as the response shows it.
fn wanted(response: &Value, located: &Step<'_>, definition: &Definition) -> Value {
    let step = located.step;
    let mut new = response.clone();
    new.remove_at(&LIST);
    if let Some(list) = requested_list(step) {
        new.set_at(&LIST, list);
    }
    if let (Some(body), "PATCH") = (step.get("body"), step.str_at(&["method"])) {
        let mut body = body.clone();
        definition.prune(&located.version, &mut body);
        overlay(&mut new, &body);
    }
    let marked = response.at(&["metadata", "deletionTimestamp"]).is_some();
    let time = step.at(&["body", "metadata", "deletionTimestamp"]);
    if let Some(time) = time.filter(|t| marked && !t.is_null()) {
        new.set_at(&["metadata", "deletionTimestamp"], time.clone());
    }
    if located.subresource == "status" {
        merge_metadata(&mut new, step.get("body"));
    }
    new
}

/// Adds fields that a patch sets but the response lacks, because the storage version does not declare them.
fn overlay(new: &mut Value, patch: &Value) {
    let (Value::Object(new), Value::Object(patch)) = (new, patch) else { return };
    for (name, value) in patch.iter().filter(|(name, value)| !value.is_null() && *name != "metadata") {
        match new.get_mut(name) {
            Some(found) => overlay(found, value),
            None => drop(new.insert(name.clone(), value.clone())),
        }
    }
}

fn is_gone(object: &Value) -> bool {
    let held = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    object.at(&["metadata", "deletionTimestamp"]).is_some() && !held
}

/// The response to a status write shows metadata that is not stored.
fn merge_metadata(new: &mut Value, body: Option<&Value>) {
    for name in ["labels", "annotations", "finalizers"] {
        if let Some(value) = body.and_then(|b| b.at(&["metadata", name])) {
            new.set_at(&["metadata", name], value.clone());
            if value.is_null() {
                new.remove_at(&["metadata", name]);
            }
        }
    }
}

/// The managedFields that a write asks for.
fn requested_list(step: &Value) -> Option<Value> {
    let body = step.get("body")?;
    if let Some(list) = body.at(&LIST) {
        return Some(list.clone());
    }
    let operations = body.as_array()?;
    let of = |op: &&Value| op.str_at(&["path"]).starts_with("/metadata/managedFields");
    let op = operations.iter().rev().find(of)?;
    let whole = op.str_at(&["path"]) == "/metadata/managedFields";
    if whole { op.get("value").cloned() } else { step.at(&["answer", "body", "metadata", "managedFields"]).cloned() }
}

fn applied(located: &Step<'_>, live: Option<&Value>, request: &Request<'_>) -> Option<Result<Value, Status>> {
    let step = located.step;
    let body = match (step.get("body"), step.get("text").and_then(Value::as_str)) {
        (Some(body), _) => body.clone(),
        (_, Some(text)) => decode(text.as_bytes()).ok()?,
        _ => return None,
    };
    let status = step.int_at(&["answer", "status"]);
    if matches!(status, 404 | 415 | 422)
        || body.as_object().is_none()
        || located.query.matches("fieldManager=").count() != 1
    {
        return None;
    }
    if located.subresource.is_empty() && body.to_json().contains("${") {
        return None;
    }
    let force = if located.query.contains("force=true") { Force::Yes } else { Force::No };
    let result = apply(live, &body, force, request).map(|outcome| outcome.object);
    match (&result, status) {
        (Ok(_), 200 | 201) | (Err(_), 400 | 409 | 500) => Some(result),
        (Err(_), _) => Some(result),
        _ => None,
    }
}

#[test]
fn recorded_writes_produce_recorded_managed_fields() {
    let mut world = World::default();
    for file in transcripts() {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(bytes) = std::fs::read(&file) else { continue };
        let text = String::from_utf8_lossy(&bytes).replace("\"<time>\"", "\"2023-11-14T22:13:20Z\"");
        let Ok(scenario) = decode(text.as_bytes()) else { continue };
        world.live.clear();
        world.lost.clear();
        world.definitions.clear();
        world.run(&name, &scenario);
    }
    println!("{} responses compared", world.checked);
    assert!(world.failures.is_empty(), "{} of {}:\n{}", world.failures.len(), world.checked, world.failures.join("\n"));
}
