//! Events in their two groups. Both have the same objects, which are stored in the form of the core group.

use machinery::{Value, names};
use schema::shape::{named, read, read_stored};

use crate::limits;
use resource::builtin::checks::go_struct;
use schema::at::{At, errors_of};

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

/// Validates an Event in its core form, regardless of the group through which it is written.
pub fn validate_common(event: At, controller_name: &str) {
    let (namespace, involved) = (event.text("metadata.namespace"), event.field_or_empty("involvedObject.namespace"));
    let is_new_style = event.has("eventTime");
    let fits = match (is_new_style, involved.as_text().is_empty()) {
        (false, true) => matches!(namespace, "" | "default"),
        (false, false) => namespace == involved.as_text(),
        (true, true) => matches!(namespace, "default" | "kube-system"),
        (true, false) => true,
    };
    involved.invalid_if(!fits, "does not match event.namespace");
    if !is_new_style {
        return;
    }
    let controller = event.field("reportingComponent").with_name(controller_name);
    controller.require_text("");
    controller.check_text(names::qualified_name);
    let limits = [
        ("reportingInstance", limits::EVENT_TEXT_BYTES_MAX, true),
        ("action", limits::EVENT_TEXT_BYTES_MAX, true),
        ("reason", limits::EVENT_TEXT_BYTES_MAX, true),
        ("message", limits::EVENT_NOTE_BYTES_MAX, false),
    ];
    for (name, most, required) in limits {
        let at = event.field(name);
        if required {
            at.require_text("");
        }
        if at.as_text().len() > most {
            at.shown_as_text("").invalid(format!("can have at most {most} characters"));
        }
    }
}

/// Validates an Event written through events.k8s.io.
pub fn validate(at: At) {
    let (new, old) = (to_core(at.value.clone()), at.old.cloned().map(to_core));
    at.extend(errors_of(&new, old.as_ref(), at.release(), validate_new_style));
}

fn validate_new_style(event: At) {
    validate_common(event, "reportingController");
    let series = event.field("series");
    if series.old.is_none_or(|old| old != series.value) && series.is_given() {
        if series.int("count").unwrap_or_default() < 2 {
            series.field("count").shown_as_text("").invalid("should be at least 2");
        }
        series.field("lastObservedTime").require("");
    }
    if event.is_update() { unchanged(event) } else { validate_created(event) }
}

fn validate_created(event: At) {
    event.field("eventTime").require("");
    let kind = event.text("type");
    if !matches!(kind, "Normal" | "Warning") {
        event.field("type").shown_as_text("").invalid(format!("has invalid value: {kind}"));
    }
    let unset = ["firstTimestamp", "lastTimestamp", "count", "source"].map(|name| event.field(name));
    for at in unset.into_iter().filter(|at| at.is_given() && *at.value != Value::object()) {
        at.shown_as_text("").invalid("needs to be unset");
    }
}

/// Only metadata and series may change.
fn unchanged(event: At) {
    const KEPT: [&str; 14] = [
        "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count",
        // upstream checks the reason twice
        "reason", "type", "eventTime", "action", "related", "reportingComponent", "reportingInstance",
    ];
    for name in KEPT {
        let at = event.field(name);
        if at.old != Some(at.value) {
            changed(name, if name == "reportingComponent" { at.with_name("reportingController") } else { at });
        }
    }
}

/// Reports a changed field. Structs are shown with the names of their Go fields.
fn changed(name: &str, at: At) {
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
    let fields = match name {
        "involvedObject" | "related" if at.is_given() => REFERENCE,
        "source" if at.is_given() => SOURCE,
        "count" if !at.is_given() => return at.shown_verbatim("0").invalid(WHY),
        "related" | "eventTime" | "firstTimestamp" | "lastTimestamp" => return at.invalid(WHY),
        _ => return at.or_empty().invalid(WHY),
    };
    let shown: Vec<(&str, Value)> = fields.iter().map(|(go, field)| (*go, Value::from(at.text(field)))).collect();
    at.shown_verbatim(&go_struct(&shown)).invalid(WHY);
}
