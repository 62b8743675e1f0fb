//! The state that recorded requests leave behind, and the requests that this crate can evaluate.

use std::collections::HashMap;

use machinery::field::FieldErrorKind;
use machinery::patch::merge_patch;
use machinery::{FieldError, Release, Value};
use schema::at::errors_of;
use schema::definition::{self, ApiVersion};
use schema::metadata::validate_before_update;
use schema::{Malformed, Prior, Schema};

use crate::compare::{self, Verdict};
use crate::exchange::Step;
use crate::patch;
use crate::view::View;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Replaces the times that recordings hide.
const TIME: &str = "2026-01-01T00:00:00Z";

#[derive(Default)]
pub struct State {
    definitions: HashMap<String, Value>,
    objects: HashMap<String, Value>,
}

/// A custom resource request.
struct Target<'a> {
    definition: &'a Value,
    version: String,
    key: String,
    subresource: String,
}

/// A verdict, and the CRD or object after the request.
type Evaluated = (Verdict, Option<Value>);

impl State {
    /// Evaluates a step; `None` if this crate cannot.
    pub fn play(&mut self, step: &Step) -> Option<Verdict> {
        if let Some(rest) = step.path.strip_prefix(DEFINITIONS) {
            let name = rest.trim_start_matches('/').to_owned();
            let response = self.definition_request(step, &name);
            let (verdict, new) = response.map_or((None, None), |(verdict, new)| (Some(verdict), new));
            self.learn_definition(step, &name, new);
            return verdict;
        }
        let response = self.object_request(step);
        let (verdict, new) = response.map_or((None, None), |(verdict, new)| (Some(verdict), new));
        self.learn_object(step, new);
        verdict
    }

    fn learn_definition(&mut self, step: &Step, name: &str, new: Option<Value>) {
        if !matches!(step.status, 200 | 201) || step.query.contains("dryRun") {
            return;
        }
        let name = name.split('/').next().unwrap_or_default();
        if step.method == "DELETE" {
            let gone = self.definitions.remove(name).unwrap_or_default();
            settle(&mut self.definitions, gone.str_at(&["spec", "group"]));
            return;
        }
        let complete =
            step.response.at(&["spec", "versions"]).is_some() && step.response.at(&["spec", "names"]).is_some();
        let new = new.or_else(|| complete.then(|| step.response.clone()));
        let Some(mut new) = new else { return };
        if step.status == 200
            && let Some(status) = step.response.get("status").and_then(Value::as_object)
        {
            status.iter().for_each(|(key, value)| new.set_at(&["status", key], value.clone()));
        }
        show_times(&mut new);
        let group = new.str_at(&["spec", "group"]).to_owned();
        self.definitions.insert(new.str_at(&["metadata", "name"]).to_owned(), new);
        settle(&mut self.definitions, &group);
    }

    /// Updates the state from our own result if there is one, and else from the recorded response.
    fn learn_object(&mut self, step: &Step, new: Option<Value>) {
        let status = step.response.str_at(&["kind"]) == "Status";
        if !matches!(step.status, 200 | 201) || step.query.contains("dryRun") {
            return;
        }
        let name = step.response.str_at(&["metadata", "name"]).to_owned();
        let Some(target) = self.target(step) else { return };
        let key = if step.method == "POST" { format!("{}/{name}", target.key) } else { target.key };
        if step.method == "DELETE" {
            self.objects.remove(&key);
        } else if let Some(new) = new {
            self.objects.insert(key, new);
        } else if !status && step.response.get("items").is_none() && target.subresource != "scale" && !name.is_empty() {
            self.objects.insert(key, step.response.clone());
        }
    }

    fn definition_request(&self, step: &Step, name: &str) -> Option<Evaluated> {
        if step.query.contains("fieldValidation") || step.query.contains("dryRun=Some") || step.query.contains("force")
        {
            return None;
        }
        if let Some(name) = name.strip_suffix("/status") {
            let old = self.definitions.get(name)?;
            return update_definition_status(step, old, &patched(step, old)?);
        }
        match step.method.as_str() {
            "GET" if step.status == 200 && !name.is_empty() => {
                let definition = self.definitions.get(name)?;
                Some((compare::status(step, definition), None))
            }
            "POST" if name.is_empty() => create_definition(step),
            "PATCH" | "PUT" => {
                let old = self.definitions.get(name)?;
                let body = patched(step, old)?;
                if body.str_at(&["metadata", "name"]) != name {
                    return None;
                }
                update_definition(step, old, &body)
            }
            _ => None,
        }
    }

    fn target(&self, step: &Step) -> Option<Target<'_>> {
        let mut parts: Vec<&str> = step.path.trim_matches('/').split('/').collect();
        if parts.first() != Some(&"apis") || parts.len() < 4 {
            return None;
        }
        let (group, version) = (parts[1], parts[2].to_owned());
        parts.drain(..3);
        let mut namespace = "";
        if parts.first() == Some(&"namespaces") && parts.len() > 2 {
            namespace = parts[1];
            parts.drain(..2);
        }
        let definition = self.definitions.get(&format!("{}.{group}", parts[0]))?;
        let plural = format!("{}.{group}/{namespace}", parts[0]);
        let key = parts.get(1).map_or(plural.clone(), |name| format!("{plural}/{name}"));
        let subresource = parts.get(2).unwrap_or(&"").to_string();
        Some(Target { definition, version, key, subresource })
    }

    fn object_request(&self, step: &Step) -> Option<Evaluated> {
        let target = self.target(step)?;
        let view = View::new(target.definition);
        let version = view.version(&target.version)?;
        let schema = version.compile(view.preserve_unknown_fields, step.release);
        if step.query.contains("fieldValidation=Strict")
            || step.response.str_at(&["kind"]) == "Table"
            || !matches!(step.status, 200 | 201 | 422)
        {
            return None;
        }
        match (step.method.as_str(), target.subresource.as_str()) {
            ("POST", "") => create_object(step, &view, &target.version, &schema),
            ("PATCH" | "PUT", "" | "status") => {
                let mut old = self.objects.get(&target.key)?.clone();
                read_stored(&mut old, &view, &target.version);
                let body = patched(step, &old)?;
                update_object(step, &view, &target, &schema, &old, body)
            }
            _ => None,
        }
    }
}

/// The whole object that a request stands for.
fn patched(step: &Step, old: &Value) -> Option<Value> {
    let body = step.body.as_ref()?;
    let mut new = old.clone();
    match step.content_type.as_str() {
        "application/json" if step.method == "PUT" => return Some(body.clone()),
        "application/merge-patch+json" => new = merge_patch::apply(new, body.clone()),
        "application/json-patch+json" => patch::apply(&mut new, body)?,
        _ => return None,
    }
    Some(new)
}

fn show_times(value: &mut Value) {
    match value {
        Value::String(s) if s == "<time>" => *value = Value::from(TIME),
        Value::Object(map) => map.values_mut().for_each(show_times),
        Value::Array(items) => items.iter_mut().for_each(show_times),
        _ => {}
    }
}

/// Does what controllers do after a change of a definition.
fn settle(definitions: &mut HashMap<String, Value>, group: &str) {
    for _ in 0..definitions.len() * 4 {
        let mut names: Vec<String> = definitions
            .iter()
            .filter(|(_, d)| d.str_at(&["spec", "group"]) == group)
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        let changed = names.iter().any(|name| control(definitions, name, &names));
        if !changed {
            return;
        }
    }
}

/// Runs one round of the controllers for one CRD. Returns whether they have changed anything.
fn control(definitions: &mut HashMap<String, Value>, name: &str, group: &[String]) -> bool {
    let Some(mut definition) = definitions.get(name).cloned() else { return false };
    let mut taken = definition::Taken::default();
    let peers = group.iter().filter_map(|peer| definitions.get(peer));
    peers.for_each(|peer| taken.add(peer.at(&["status", "acceptedNames"]).unwrap_or(&Value::Null)));
    if let Some(naming) = definition::naming(&definition, &[&taken]) {
        definition.set_at(&["status", "acceptedNames"], naming.accepted_names);
        definition::set_condition(&mut definition, &naming.names_accepted, TIME);
        if let Some(condition) = naming.established {
            definition::set_condition(&mut definition, &condition, TIME);
        }
    }
    if let Some(condition) = definition::establish(&definition) {
        definition::set_condition(&mut definition, &condition, TIME);
    }
    if let Some(condition) = definition::api_approval(&definition) {
        definition::set_condition(&mut definition, &condition, TIME);
    }
    match definition::non_structural(&definition) {
        Some(condition) => definition::set_condition(&mut definition, &condition, TIME),
        None if definition::find_condition(&definition, "NonStructuralSchema").is_some() => {
            definition::remove_condition(&mut definition, "NonStructuralSchema");
        }
        None => {}
    }
    definitions.insert(name.to_owned(), definition.clone()) != Some(definition)
}

fn create_definition(step: &Step) -> Option<Evaluated> {
    let body = step.body.as_ref()?;
    if !matches!(step.status, 201 | 400 | 422) || body.str_at(&["kind"]) != "CustomResourceDefinition" {
        return None;
    }
    if body.str_at(&["apiVersion"]) != "apiextensions.k8s.io/v1" || step.content_type != "application/json" {
        return None;
    }
    let decoded = match definition::decode(body, ApiVersion::V1) {
        Ok(decoded) => decoded,
        Err(errors) => {
            let error = schema::shape::first_error(&errors, None).unwrap_or_default();
            let want = step.response.str_at(&["message"]);
            let got = format!(
                "CustomResourceDefinition in version \"v1\" cannot be handled as a CustomResourceDefinition: {error}"
            );
            return Some((if want == got { Ok(()) } else { Err(format!("want {want}\n    got {got}")) }, None));
        }
    };
    let mut new = decoded.definition;
    if new.str_at(&["metadata", "name"]).is_empty() && !new.str_at(&["metadata", "generateName"]).is_empty() {
        return None;
    }
    new.remove_at(&["metadata", "namespace"]);
    definition::prepare_for_create(&mut new);
    let errors = definition::validate_create(&new, step.release);
    if step.status != 201 || !errors.is_empty() {
        return Some((compare::causes(step, &errors), None));
    }
    let stored = definition::to_stored(&new);
    let mut warnings = definition::warnings_on_create(&stored, step.release);
    warnings.extend(decoded.unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    Some((compare::content(step, &stored).and_then(|()| compare::warnings(step, &warnings)), Some(stored)))
}

fn update_definition(step: &Step, old: &Value, body: &Value) -> Option<Evaluated> {
    if !matches!(step.status, 200 | 422) {
        return None;
    }
    let decoded = definition::decode(body, ApiVersion::V1).ok()?;
    let mut new = decoded.definition;
    let old = definition::decode(old, ApiVersion::V1).ok()?.definition;
    if new.str_at(&["metadata", "uid"]).is_empty()
        && let Some(uid) = old.at(&["metadata", "uid"])
    {
        new.set_at(&["metadata", "uid"], uid.clone());
    }
    new.put_at(&["metadata", "creationTimestamp"], old.at(&["metadata", "creationTimestamp"]).cloned());
    new.set_at(&["metadata", "resourceVersion"], Value::from("1"));
    definition::prepare_for_update(&mut new, &old);
    if step.response.to_json().contains("must be specified for an update") {
        return None;
    }
    let mut errors = before_update(step, &new, &old);
    errors.extend(definition::validate_update(&new, &old, step.release));
    if step.status != 200 || !errors.is_empty() {
        return Some((compare::causes(step, &errors), None));
    }
    let stored = definition::to_stored(&new);
    let mut shown = stored.clone();
    for key in ["conditions", "acceptedNames"] {
        if let Some(recorded) = step.response.at(&["status", key]) {
            shown.set_at(&["status", key], recorded.clone());
        }
    }
    Some((compare::content(step, &shown), Some(stored)))
}

fn before_update(step: &Step, new: &Value, old: &Value) -> Vec<FieldError> {
    errors_of(new, Some(old), step.release, |new| validate_before_update(new.field("metadata"), false))
}

fn update_definition_status(step: &Step, old: &Value, body: &Value) -> Option<Evaluated> {
    if !matches!(step.status, 200 | 422) || step.method == "PUT" {
        return None;
    }
    let mut new = definition::decode(body, ApiVersion::V1).ok()?.definition;
    definition::prepare_for_status_update(&mut new, old);
    new.set_at(&["metadata", "resourceVersion"], Value::from("1"));
    let mut errors = before_update(step, &new, old);
    errors.extend(definition::validate_status_update(&new, old, step.release));
    if step.status != 200 || !errors.is_empty() {
        return Some((compare::causes(step, &errors), None));
    }
    Some((Ok(()), Some(definition::to_stored(&new))))
}

/// The recorded errors of metadata, which the server finds. Their text distinguishes them from those of the schema.
fn recorded_metadata(step: &Step) -> Vec<FieldError> {
    let causes = step.response.items_at(&["details", "causes"]);
    let ours = |c: &&Value| {
        let message = c.str_at(&["message"]);
        let schema = ["in body", "Too long", "Unsupported value", "Required value"];
        let named = message.contains("name or generateName");
        let invalid = c.str_at(&["reason"]) == "FieldValueInvalid" && !message.is_empty();
        let of_owner = c.str_at(&["field"]).starts_with("metadata.ownerReferences");
        c.str_at(&["field"]).starts_with("metadata")
            && (named || of_owner || invalid && !schema.iter().any(|s| message.contains(s)))
    };
    causes
        .iter()
        .filter(ours)
        .map(|cause| {
            let field = cause.str_at(&["field"]).to_owned();
            let message = cause.str_at(&["message"]);
            if let Some(detail) = message.strip_prefix("Required value: ") {
                let (kind, value) = (FieldErrorKind::Required, String::new());
                return FieldError { kind, field, value, detail: detail.to_owned() };
            }
            let message = message.strip_prefix("Invalid value: ").unwrap_or_default();
            let (value, detail) = message.split_once(": ").unwrap_or((message, ""));
            FieldError { kind: FieldErrorKind::Invalid, field, value: value.to_owned(), detail: detail.to_owned() }
        })
        .collect()
}

fn prior(step: &Step, object: &Value, view: &View<'_>, version: &str) -> Prior {
    let api_version = format!("{}/{version}", view.group);
    let errors = schema::type_meta_errors(object, &api_version, view.kind);
    if errors.is_empty() { Prior::Metadata(recorded_metadata(step)) } else { Prior::TypeMeta(errors) }
}

/// Decodes a body: it is pruned, coerced and defaulted. `None` if the body is refused.
fn prepare(body: &Value, view: &View<'_>, schema: &Schema) -> Option<(Value, Vec<String>)> {
    let mut object = body.clone();
    let mut unknown = schema::metadata::coerce(object.as_object_mut()?, Malformed::Refuse).ok()?;
    if object.str_at(&["kind"]) == view.kind {
        schema.prune(&mut object, &mut unknown);
        schema.coerce_embedded(&mut object, Malformed::Refuse, &mut unknown).ok()?;
    }
    schema.default(&mut object).expect("few defaults");
    Some((object, unknown))
}

fn through_storage(object: &mut Value, view: &View<'_>, version: &str) {
    let Some(storage) = view.storage_version().filter(|s| s.name != version) else { return };
    storage.compile(view.preserve_unknown_fields, Release::NEWEST).prune(object, &mut vec![]);
    read_stored(object, view, version);
}

fn read_stored(object: &mut Value, view: &View<'_>, version: &str) {
    let Some(storage) = view.storage_version() else { return };
    let schema = storage.compile(view.preserve_unknown_fields, Release::NEWEST);
    schema.prune(object, &mut vec![]);
    let _ = schema.coerce_embedded(object, Malformed::Drop, &mut vec![]);
    schema.default(object).expect("few defaults");
    object.set_at(&["apiVersion"], Value::from(format!("{}/{version}", view.group)));
    if let Some(wanted) = view.version(version) {
        wanted.compile(view.preserve_unknown_fields, Release::NEWEST).prune(object, &mut vec![]);
    }
}

fn create_object(step: &Step, view: &View<'_>, version: &str, schema: &Schema) -> Option<Evaluated> {
    let body = step.body.as_ref()?;
    let (mut object, unknown) = prepare(body, view, schema)?;
    let generate = object.str_at(&["metadata", "generateName"]).to_owned();
    if !generate.is_empty() && object.str_at(&["metadata", "name"]).is_empty() {
        object.set_at(&["metadata", "name"], Value::from(format!("{generate}abcde")));
    }
    if view.version(version)?.status {
        object.remove_at(&["status"]);
    }
    let outcome = schema.validate_after(prior(step, &object, view, version), &object, None);
    if step.status == 422 || !outcome.errors.is_empty() {
        return Some((compare::causes(step, &outcome.errors), None));
    }
    through_storage(&mut object, view, version);
    let mut warnings: Vec<String> =
        unknown.iter().filter(|u| !u.contains(char::is_control)).map(|u| format!("unknown field \"{u}\"")).collect();
    warnings.extend(outcome.warnings);
    let content = compare::content(step, &object);
    let reported = !step.query.contains("fieldValidation=Ignore");
    let plain = reported && step.warnings.iter().all(|w| w.contains("unknown field"));
    let verdict = if plain { content.and_then(|()| compare::warnings(step, &warnings)) } else { content };
    Some((verdict, Some(object)))
}

fn update_object(
    step: &Step,
    view: &View<'_>,
    target: &Target<'_>,
    schema: &Schema,
    old: &Value,
    body: Value,
) -> Option<Evaluated> {
    let with_status = view.version(&target.version)?.status;
    let (mut object, _) = prepare(&body, view, schema)?;
    let outcome = if target.subresource == "status" {
        let status = object.remove_at(&["status"]);
        let kind = (object.get("kind").cloned(), object.get("apiVersion").cloned());
        object = old.clone();
        object.remove_at(&["status"]);
        if let Some(status) = status {
            object.set_at(&["status"], status);
        }
        let prior = prior(step, &Value::from([("kind", kind.0?), ("apiVersion", kind.1?)]), view, &target.version);
        schema.validate_status(prior, &object, old)
    } else {
        if with_status {
            object.remove_at(&["status"]);
            if let Some(status) = old.get("status") {
                object.set_at(&["status"], status.clone());
            }
        }
        schema.validate_after(prior(step, &object, view, &target.version), &object, Some(old))
    };
    if step.status == 422 || !outcome.errors.is_empty() {
        return Some((compare::causes(step, &outcome.errors), None));
    }
    through_storage(&mut object, view, &target.version);
    Some((compare::content(step, &object), Some(object)))
}
