//! The versions of a definition: which there are, and what each serves beside its schema.

use machinery::Value;
use machinery::value::quote;

use super::{Change, FoundChanges, Severity, checks, node};
use crate::openapi::flag;

const VERSIONS: &str = "spec.versions";

fn versions(definition: &Value) -> &[Value] {
    definition.items_at(&["spec", "versions"])
}

fn named<'a>(definition: &'a Value, name: &str) -> Option<&'a Value> {
    versions(definition).iter().find(|version| version.str_at(&["name"]) == name)
}

fn storage(definition: &Value) -> &str {
    versions(definition).iter().find(|version| flag(version, "storage")).map_or("", |version| version.str_at(&["name"]))
}

/// The schema of a version; null if it has none.
pub(super) fn schema(version: &Value) -> &Value {
    version.at(&["schema", "openAPIV3Schema"]).unwrap_or(&Value::Null)
}

pub(super) fn compare(old: &Value, new: &Value, changes: &mut FoundChanges) {
    let (before, after) = (storage(old), storage(new));
    if before != after && named(new, before).is_some() {
        let reason = format!("objects are stored in {} instead of {}", quote(after), quote(before));
        changes.add(&checks::STORAGE_VERSION_CHANGED, VERSIONS, reason);
    }
    for version in versions(old) {
        let name = version.str_at(&["name"]);
        let Some(kept) = named(new, name) else {
            removed(old, new, version, changes);
            continue;
        };
        name.clone_into(&mut changes.version);
        serving(version, kept, changes);
        subresources(version, kept, changes);
        columns(version, kept, changes);
        selectable_fields(version, kept, changes);
        node::compare(schema(version), schema(kept), changes);
        changes.version.clear();
    }
    for version in versions(new).iter().filter(|version| named(old, version.str_at(&["name"])).is_none()) {
        let reason = format!("version {} is new", quote(version.str_at(&["name"])));
        changes.add(&checks::VERSION_ADDED, VERSIONS, reason);
    }
}

fn removed(old: &Value, new: &Value, version: &Value, changes: &mut FoundChanges) {
    let name = version.str_at(&["name"]);
    let mut successors = versions(new).iter().filter(|other| {
        named(old, other.str_at(&["name"])).is_none() && node::are_equal(schema(version), schema(other))
    });
    let renamed = match (successors.next(), successors.next()) {
        (Some(only), None) => format!("; version {} has the same schema", quote(only.str_at(&["name"]))),
        _ => String::new(),
    };
    if flag(version, "served") {
        changes.add(&checks::VERSION_REMOVED, VERSIONS, format!("version {} is removed{renamed}", quote(name)));
    }
    let is_stored = old.texts_at(&["status", "storedVersions"]).any(|stored| stored == name) || storage(old) == name;
    if is_stored {
        let reason = format!("version {} is removed, and objects are stored in it", quote(name));
        changes.add(&checks::STORED_VERSION_REMOVED, VERSIONS, reason);
    } else if !flag(version, "served") {
        let reason = format!("version {}, which is not served, is removed", quote(name));
        changes.add(&checks::UNSERVED_VERSION_REMOVED, VERSIONS, reason);
    }
}

fn serving(old: &Value, new: &Value, changes: &mut FoundChanges) {
    if flag(old, "served") && !flag(new, "served") {
        changes.add(&checks::VERSION_NOT_SERVED, "", "the version is no longer served".to_owned());
    }
    if !flag(old, "deprecated") && flag(new, "deprecated") {
        let reason = "the version is deprecated: every response has a warning".to_owned();
        changes.add(&checks::VERSION_DEPRECATED, "", reason);
    }
}

fn subresources(old: &Value, new: &Value, changes: &mut FoundChanges) {
    let get = |version: &'_ Value, name: &str| version.at(&["subresources", name]).cloned();
    match (get(old, "status").is_some(), get(new, "status").is_some()) {
        (false, true) => {
            changes.add(&checks::STATUS_ADDED, "status", "status becomes a subresource".to_owned());
        }
        (true, false) => {
            changes.add(&checks::STATUS_REMOVED, "status", "status is no longer a subresource".to_owned());
        }
        _ => {}
    }
    match (get(old, "scale"), get(new, "scale")) {
        (None, Some(_)) => changes.add(&checks::SCALE_ADDED, "", "there is a subresource scale".to_owned()),
        (Some(_), None) => changes.add(&checks::SCALE_REMOVED, "", "there is no subresource scale".to_owned()),
        (Some(before), Some(after)) if before != after => {
            let reason = format!("scale changes from {} to {}", before.to_json(), after.to_json());
            changes.add(&checks::SCALE_CHANGED, "", reason);
        }
        _ => {}
    }
}

fn columns(old: &Value, new: &Value, changes: &mut FoundChanges) {
    const KEY: &str = "additionalPrinterColumns";
    let find = |version: &'_ Value, name: &str| -> Option<Value> {
        version.items_at(&[KEY]).iter().find(|column| column.str_at(&["name"]) == name).cloned()
    };
    for column in old.items_at(&[KEY]) {
        let name = column.str_at(&["name"]);
        let Some(kept) = find(new, name) else {
            changes.add(&checks::COLUMN_REMOVED, "", format!("the column {} is removed", quote(name)));
            continue;
        };
        for field in ["jsonPath", "type", "format"] {
            let (before, after) = (column.str_at(&[field]), kept.str_at(&[field]));
            if before != after {
                let name = quote(name);
                let reason = format!("the {field} of the column {name} changes from {before:?} to {after:?}");
                changes.add(&checks::COLUMN_CHANGED, "", reason);
            }
        }
    }
    for column in new.items_at(&[KEY]) {
        let name = column.str_at(&["name"]);
        if find(old, name).is_none() {
            changes.add(&checks::COLUMN_ADDED, "", format!("there is a column {}", quote(name)));
        }
    }
}

fn selectable_fields(old: &Value, new: &Value, changes: &mut FoundChanges) {
    let paths = |version: &Value| -> Vec<String> {
        version.items_at(&["selectableFields"]).iter().map(|field| field.str_at(&["jsonPath"]).to_owned()).collect()
    };
    let (before, after) = (paths(old), paths(new));
    for path in before.iter().filter(|path| !after.contains(path)) {
        let reason = "field selectors can no longer name the field".to_owned();
        changes.add(&checks::SELECTABLE_FIELD_REMOVED, path.trim_start_matches('.'), reason);
    }
    for path in after.iter().filter(|path| !before.contains(path)) {
        let reason = "field selectors can name the field".to_owned();
        changes.add(&checks::SELECTABLE_FIELD_ADDED, path.trim_start_matches('.'), reason);
    }
}

/// Fields that each served version of a definition loses to the next; what is lost between any two is lost in one of these
/// steps.
pub(super) fn pairs(definition: &Value) -> Vec<Change> {
    let mut served: Vec<&Value> = versions(definition).iter().filter(|version| flag(version, "served")).collect();
    served.sort_by(|a, b| machinery::priority::kube_aware(b.str_at(&["name"]), a.str_at(&["name"])));
    let mut changes = FoundChanges::default();
    for pair in served.windows(2) {
        let [older, newer] = pair else { continue };
        changes.version = format!("{} -> {}", older.str_at(&["name"]), newer.str_at(&["name"]));
        node::compare(schema(older), schema(newer), &mut changes);
    }
    changes.count_descriptions();
    changes.found.retain(|change| change.severity > Severity::Info);
    changes.found
}
