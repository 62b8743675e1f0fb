//! Runs CRDs and objects of the recordings through `Rules`, whose errors must equal the recorded ones.
//!
//! There is no server here: objects are not pruned, defaulted or checked against their schema, so only responses that
//! come from rules are compared. The recordings do not contain steps whose objects would have been changed first.

use crate::place::Node;
use cel::SchemaOf;
use cel::rules::{Options, Rules, Validation};
use machinery::value::decode;
use machinery::{FieldError, FieldPath, Release, Text, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Parts of messages that don't come from rules.
const OTHERS: [&str; 8] = [
    "some validation rules were not checked",
    " in body ",
    "Too long",
    "Too many",
    "Duplicate value: ",
    "must be Gate",
    "must validate one",
    "regex used for validation is",
];

/// Adds the expressions of all rules in a schema.
fn add_expressions(value: &Value, found: &mut Vec<Text>) {
    for rule in value.items_at(&["x-kubernetes-validations"]) {
        found.extend(["rule", "messageExpression"].iter().filter_map(|key| rule.get(key)?.as_str()).map(Text::new));
    }
    value.fields().for_each(|(_, child)| add_expressions(child, found));
}

type Cause = (String, String, String);

struct Definition {
    versions: BTreeMap<String, (Option<Rules>, Value)>,
    body: Value,
    schemas: Vec<Value>,
}

#[derive(Default)]
struct State {
    definitions: BTreeMap<String, Definition>,
    objects: BTreeMap<String, Value>,
    compared: usize,
    differences: Vec<String>,
}

fn transcripts() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts/recorded/1.37");
    let files = std::fs::read_dir(folder).expect("the recorded transcripts");
    let mut paths: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    paths.retain(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("cel-")));
    paths.sort();
    paths
}

fn causes(response: &Value) -> BTreeSet<Cause> {
    let causes = response.items_at(&["body", "details", "causes"]);
    causes
        .iter()
        .map(|c| (c.str_at(&["field"]).into(), anonymous(c.str_at(&["message"])), c.str_at(&["reason"]).into()))
        .collect()
}

/// The number in `selfType123` differs each time.
fn anonymous(text: &str) -> String {
    let mut parts = text.split("selfType");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("selfType");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

fn reported(errors: &[FieldError]) -> BTreeSet<Cause> {
    let message = |e: &FieldError| anonymous(e.message().strip_suffix(": ").unwrap_or(&e.message()));
    errors.iter().map(|e| (e.field.clone(), message(e), e.kind.as_str().to_owned())).collect()
}

fn schemas(definition: &Value) -> Vec<(FieldPath, String, Value)> {
    let versions = definition.items_at(&["spec", "versions"]);
    let schema = |v: &Value| v.at(&["schema", "openAPIV3Schema"]).cloned().unwrap_or_default();
    let same = versions.windows(2).all(|pair| schema(&pair[0]) == schema(&pair[1]));
    let path = |i: usize| {
        if same {
            FieldPath::new("spec.validation.openAPIV3Schema")
        } else {
            FieldPath::new(format!("spec.versions[{i}].schema.openAPIV3Schema"))
        }
    };
    versions.iter().enumerate().map(|(i, v)| (path(i), v.str_at(&["name"]).to_owned(), schema(v))).collect()
}

impl State {
    /// A stored definition with a patch applied.
    fn patched(&self, step: &Value, patch: &Value) -> Option<Value> {
        let name = step.str_at(&["path"]).split('?').next()?.rsplit('/').next()?;
        let (plural, group) = name.split_once('.')?;
        let mut body = self.definitions.get(&format!("{group}/{plural}"))?.body.clone();
        if let Value::Array(operations) = patch {
            operations.iter().for_each(|operation| operate(&mut body, operation));
        } else {
            merge(&mut body, patch);
        }
        Some(body)
    }

    fn compare(&mut self, name: &str, want: &BTreeSet<Cause>, got: &BTreeSet<Cause>) {
        self.compared += 1;
        if want != got {
            let show = |set: &BTreeSet<Cause>, other: &BTreeSet<Cause>, sign: &str| {
                set.difference(other).map(|c| format!("  {sign} {} | {} | {}\n", c.0, c.1, c.2)).collect::<String>()
            };
            self.differences.push(format!("{name}\n{}{}", show(want, got, "-"), show(got, want, "+")));
        }
    }

    fn definition(&mut self, name: &str, step: &Value, body: &Value, dry: bool) {
        let response = step.get("answer").cloned().unwrap_or_default();
        let status = response.get("status").and_then(Value::as_int).unwrap_or(0);
        if !matches!(status, 200 | 201 | 422) {
            return;
        }
        let key = format!("{}/{}", body.str_at(&["spec", "group"]), body.str_at(&["spec", "names", "plural"]));
        let mut options = Options::default();
        let schemas = schemas(body);
        if let Some(stored) = self.definitions.get(&key) {
            stored.schemas.iter().for_each(|schema| add_expressions(schema, &mut options.stored));
        }
        let mut errors = vec![];
        let mut versions = BTreeMap::new();
        for (path, version, schema) in &schemas {
            let unchanged = self.definitions.get(&key).is_some_and(|stored| stored.schemas.contains(schema));
            let mut options = options.clone();
            options.expensive_expressions = unchanged;
            let problems = Rules::check(schema, path, &options);
            errors.extend(problems.fields.into_iter().chain(problems.expressions));
            let rules = Rules::of(schema, SchemaOf::Resource, Release::default());
            let v = body.items_at(&["spec", "versions"]);
            let v = v.iter().find(|v| v.str_at(&["name"]) == version).cloned().unwrap_or_default();
            versions.insert(version.clone(), (rules, v));
        }
        let ours = |c: &Cause| c.0.contains("x-kubernetes-validations") || c.1.contains("estimated rule cost total");
        let all = causes(&response);
        let want: BTreeSet<Cause> = all.iter().filter(|c| ours(c)).cloned().collect();
        // Rules are not compiled where the schema has other errors, and it is the check of schemas that says where
        // rules may be.
        let structural = want.iter().any(|c| c.1.contains("must be empty to be structural"));
        if all.len() == want.len() && !structural {
            self.compare(name, &want, &reported(&errors));
        }
        if status != 422 && !dry {
            let schemas = schemas.into_iter().map(|(_, _, schema)| schema).collect();
            self.definitions.insert(key, Definition { versions, schemas, body: body.clone() });
        }
    }

    fn object(&mut self, name: &str, step: &Value, body: &Value, dry: bool) {
        let path = step.str_at(&["path"]).split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').collect();
        let ["", "apis", group, version, rest @ ..] = parts.as_slice() else { return };
        let rest = if let ["namespaces", _, rest @ ..] = rest { rest } else { rest };
        let (plural, item) = match rest {
            [plural] => (*plural, body.str_at(&["metadata", "name"])),
            [plural, item] | [plural, item, "status"] => (*plural, *item),
            _ => return,
        };
        let Some(definition) = self.definitions.get(&format!("{group}/{plural}")) else { return };
        let Some((rules, version)) = definition.versions.get(*version) else { return };
        let response = step.get("answer").cloned().unwrap_or_default();
        let status = response.get("status").and_then(Value::as_int).unwrap_or(0);
        if !matches!(status, 200 | 201 | 422) {
            return;
        }
        let key = format!("{group}/{plural}/{item}");
        let old = if step.str_at(&["method"]) == "POST" { None } else { self.objects.get(&key).cloned() };
        let mut object = match step.str_at(&["method"]) {
            "POST" | "PUT" => named(body, &response),
            "PATCH" => {
                let kind = step.str_at(&["headers", "Content-Type"]);
                let mut patched = old.clone().unwrap_or_default();
                match body {
                    Value::Array(operations) => {
                        operations.iter().for_each(|operation| operate(&mut patched, operation))
                    }
                    _ if kind.is_empty() || kind.contains("merge-patch") => merge(&mut patched, body),
                    _ => return,
                }
                patched
            }
            _ => return,
        };
        if rest.last() == Some(&"status") {
            let status = object.get("status").cloned();
            object = old.clone().unwrap_or_default();
            status.into_iter().for_each(|status| object.set_at(&["status"], status));
        } else if version.at(&["subresources", "status"]).is_some() {
            object.put_at(&["status"], old.as_ref().and_then(|old| old.get("status")).cloned());
        }
        default(&mut object, version.at(&["schema", "openAPIV3Schema"]).unwrap_or(&Value::Null));
        let place = Node::of(version.at(&["schema", "openAPIV3Schema"]).unwrap_or(&Value::Null));
        let verdict = rules.as_ref().map(|rules| {
            let validation = Validation::of(old.as_ref()).ratcheting(&place);
            rules.validate(&object, &validation)
        });
        let got = verdict.map(|verdict| reported(&verdict.errors)).unwrap_or_default();
        // rules do not check whether the kind is that of the definition
        let want: BTreeSet<Cause> = causes(&response).into_iter().filter(|cause| cause.0 != "kind").collect();
        if !want.iter().any(|cause| OTHERS.iter().any(|other| cause.1.contains(other) && !cause.1.contains("=<"))) {
            self.compare(name, &want, &got);
        }
        if status != 422 && !dry {
            let stored = response.get("body").filter(|b| b.get("spec").is_some() || b.get("kind").is_some());
            let ignored = step.items_at(&["ignore"]);
            let partial = ignored.iter().any(|i| i.as_str() == Some("spec"));
            let stored = stored.filter(|_| !partial).cloned().unwrap_or(object);
            self.objects.insert(key, stored);
        }
    }
}

/// The object with the name that the server made for it.
fn named(body: &Value, response: &Value) -> Value {
    let mut object = body.clone();
    let name = response.get("body").map(|b| {
        if b.get("spec").is_some() { b.str_at(&["metadata", "name"]) } else { b.str_at(&["details", "name"]) }
    });
    if object.at(&["metadata", "name"]).is_none() {
        let made = format!("{}x1y2z", object.str_at(&["metadata", "generateName"]));
        let name = name.filter(|name| !name.is_empty()).map_or(made, str::to_owned);
        object.set_at(&["metadata", "name"], Value::from(name));
    }
    object
}

/// Fills in defaults, as far as the recordings need it.
fn default(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flat_map(machinery::Map::iter) {
                let nullable = property.is_true_at(&["nullable"]);
                if fields.get(name).is_some_and(Value::is_null) && !nullable {
                    fields.remove(name);
                }
                if let (None, Some(default)) = (fields.get(name), property.get("default")) {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(field) = fields.get_mut(name) {
                    default(field, property);
                }
            }
            if let Some(additional) = schema.get("additionalProperties") {
                fields.values_mut().for_each(|field| default(field, additional));
            }
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| default(item, schema));
        }
        _ => {}
    }
}

/// One operation of a JSON patch.
fn operate(body: &mut Value, operation: &Value) {
    let path = operation.str_at(&["path"]);
    let mut keys: Vec<String> = path.split('/').skip(1).map(|k| k.replace("~1", "/").replace("~0", "~")).collect();
    let Some(last) = keys.pop() else { return };
    let mut node = body;
    for key in &keys {
        let next = match node {
            Value::Object(fields) => fields.get_mut(key),
            Value::Array(items) => key.parse::<usize>().ok().and_then(|i| items.get_mut(i)),
            _ => None,
        };
        let Some(next) = next else { return };
        node = next;
    }
    let value = operation.get("value").cloned().unwrap_or_default();
    match (node, operation.str_at(&["op"])) {
        (Value::Object(fields), "remove") => drop(fields.remove(&last)),
        (Value::Object(fields), "add" | "replace") => drop(fields.insert(last.as_str(), value)),
        (Value::Array(items), op) => match (op, last.parse::<usize>()) {
            ("add", Err(_)) => items.push(value),
            ("add", Ok(i)) => items.insert(i.min(items.len()), value),
            ("replace", Ok(i)) if i < items.len() => items[i] = value,
            ("remove", Ok(i)) if i < items.len() => drop(items.remove(i)),
            _ => {}
        },
        _ => {}
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !matches!(target, Value::Object(_)) {
        *target = Value::object();
    }
    let Value::Object(map) = target else { return };
    for (key, value) in fields.iter() {
        if value.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key), value);
        }
    }
}

#[test]
fn responses_equal_the_recorded_ones() {
    let mut total = 0;
    let mut failures = vec![];
    for path in transcripts() {
        let text = std::fs::read(&path).unwrap();
        let transcript = decode(&text).unwrap();
        let file = transcript.str_at(&["name"]).to_owned();
        let mut state = State::default();
        for step in transcript.items_at(&["steps"]) {
            let method = step.str_at(&["method"]);
            let Some(body) = step.get("body").filter(|_| matches!(method, "POST" | "PUT" | "PATCH")) else {
                if method == "DELETE" {
                    let path = step.str_at(&["path"]);
                    let item = path.rsplit('/').next().unwrap_or_default().to_owned();
                    state.objects.retain(|key, _| !key.ends_with(&format!("/{item}")));
                }
                continue;
            };
            let name = format!("{file}: {}", step.str_at(&["id"]));
            let dry = step.str_at(&["path"]).contains("dryRun");
            let path = step.str_at(&["path"]);
            if path.contains("/customresourcedefinitions") && !path.contains("/status") {
                let body = if method == "PATCH" { state.patched(step, body) } else { Some(body.clone()) };
                body.iter().for_each(|body| state.definition(&name, step, body, dry));
            } else {
                state.object(&name, step, body, dry);
            }
        }
        total += state.compared;
        failures.extend(state.differences);
    }
    assert!(failures.is_empty(), "{} of {total} differ:\n{}", failures.len(), failures.join("\n"));
}
