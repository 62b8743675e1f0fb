//! Events in their two groups. Both have the same objects, which are stored in the form of the core group.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};
use schema::shape::{named, read, read_stored};

use super::checks::{invalid_each, invalid_struct, text};
use crate::limits;

/// Fields that have different names in the two groups, the core name first.
const RENAMED: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

fn renamed(mut object: Value, api_version: &str, names: impl Iterator<Item = (&'static str, &'static str)>) -> Value {
    for (from, to) in names {
        if let Some(value) = object.remove_at(&[from]) {
            object.set_at(&[to], value);
        }
    }
    object.set_at(&["apiVersion"], Value::from(api_version));
    object
}

pub fn to_core(object: Value) -> Value {
    let object = renamed(object, "v1", RENAMED.into_iter().map(|(core, new)| (new, core)));
    read_stored(&object, named("core.v1.Event"))
}

pub fn from_core(object: Value) -> Value {
    let object = renamed(object, "events.k8s.io/v1", RENAMED.into_iter());
    read(&object, named("events.v1.Event")).value
}

fn is_set(object: &Value, path: &[&str]) -> bool {
    object.at(path).is_some_and(|value| !value.is_null())
}

/// Validates an Event in its core form, regardless of the group through which it is written.
pub fn common_errors(event: &Value, controller_name: &str) -> Vec<FieldError> {
    let mut errors = vec![];
    let namespace = event.str_at(&["metadata", "namespace"]);
    let involved = event.str_at(&["involvedObject", "namespace"]);
    let new_style = is_set(event, &["eventTime"]);
    let fits = match (new_style, involved.is_empty()) {
        (false, true) => matches!(namespace, "" | "default"),
        (false, false) => namespace == involved,
        (true, true) => matches!(namespace, "default" | "kube-system"),
        (true, false) => true,
    };
    if !fits {
        let path = FieldPath::new("involvedObject.namespace");
        errors.push(FieldError::invalid(&path, &Value::from(involved), "does not match event.namespace"));
    }
    if !new_style {
        return errors;
    }
    let controller = text(event, "reportingComponent");
    let path = FieldPath::new(controller_name);
    if controller.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    invalid_each(&path, controller, names::qualified_name(controller), &mut errors);
    let limits = [
        ("reportingInstance", limits::EVENT_TEXT_BYTES_MAX, true),
        ("action", limits::EVENT_TEXT_BYTES_MAX, true),
        ("reason", limits::EVENT_TEXT_BYTES_MAX, true),
        ("message", limits::EVENT_NOTE_BYTES_MAX, false),
    ];
    for (name, most, required) in limits {
        let (value, path) = (text(event, name), FieldPath::new(name));
        if required && value.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if value.len() > most {
            errors.push(FieldError::invalid(&path, &Value::from(""), format!("can have at most {most} characters")));
        }
    }
    errors
}

/// Validates an Event written through events.k8s.io.
pub fn validate(new: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let new = to_core(new.clone());
    let old = old.cloned().map(to_core);
    let mut errors = common_errors(&new, "reportingController");
    let series = |event: &Value| event.get("series").cloned();
    if old.as_ref().is_none_or(|old| series(old) != series(&new)) {
        errors.extend(series_errors(&new));
    }
    match old {
        None => errors.extend(create_errors(&new)),
        Some(old) => errors.extend(update_errors(&new, &old)),
    }
    errors
}

fn series_errors(event: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let Some(series) = event.get("series") else { return errors };
    if series.get("count").and_then(Value::as_int).unwrap_or_default() < 2 {
        errors.push(FieldError::invalid(&FieldPath::new("series.count"), &Value::from(""), "should be at least 2"));
    }
    if !is_set(series, &["lastObservedTime"]) {
        errors.push(FieldError::required(&FieldPath::new("series.lastObservedTime"), ""));
    }
    errors
}

fn create_errors(event: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    if !is_set(event, &["eventTime"]) {
        errors.push(FieldError::required(&FieldPath::new("eventTime"), ""));
    }
    let mut invalid =
        |name: &str, why: &str| errors.push(FieldError::invalid(&FieldPath::new(name), &Value::from(""), why));
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        invalid("type", &format!("has invalid value: {kind}"));
    }
    for name in ["firstTimestamp", "lastTimestamp", "count"] {
        if is_set(event, &[name]) {
            invalid(name, "needs to be unset");
        }
    }
    if event.get("source").is_some_and(|source| *source != Value::object()) {
        invalid("source", "needs to be unset");
    }
    errors
}

/// Only metadata and series may change.
fn update_errors(new: &Value, old: &Value) -> Vec<FieldError> {
    const KEPT: [&str; 14] = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        // upstream checks the reason twice
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    let changed = KEPT.into_iter().filter(|name| new.get(name) != old.get(name));
    let error = |name: &str| {
        let path = if name == "reportingComponent" { "reportingController" } else { name };
        immutable(&FieldPath::new(path), name, new)
    };
    changed.map(error).collect()
}

/// The error of an immutable field. Structs are shown with the names of their Go fields.
fn immutable(path: &FieldPath, name: &str, event: &Value) -> FieldError {
    const WHY: &str = "field is immutable";
    const REFERENCE: &[(&str, &str)] = &[
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ];
    const SOURCE: &[(&str, &str)] = &[("Component", "component"), ("Host", "host")];
    let value = event.get(name);
    let fields = match (name, value) {
        ("involvedObject" | "related", Some(_)) => REFERENCE,
        ("source", Some(_)) => SOURCE,
        ("count", None) => return FieldError::invalid(path, &Value::Int(0), WHY),
        ("related" | "eventTime" | "firstTimestamp" | "lastTimestamp", None) => {
            return FieldError::invalid(path, &Value::Null, WHY);
        }
        _ => return FieldError::invalid(path, value.unwrap_or(&Value::from("")), WHY),
    };
    let object = value.unwrap_or(&Value::Null);
    let shown: Vec<(&str, Value)> = fields.iter().map(|(go, field)| (*go, Value::from(text(object, field)))).collect();
    invalid_struct(path, &shown, WHY)
}
