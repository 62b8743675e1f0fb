//! Classes, drivers and attachments of storage.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Release, Value, names};

use super::checks::{duplicates, invalid_each, invalid_internal, is_set, items, list, named, text};
use super::{podspec, rule_checks, volumes};
use crate::limits::{TOKEN_SECONDS_MAX, TOKEN_SECONDS_MIN};

type Errors = Vec<FieldError>;

pub fn validate_driver(driver: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), driver.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    const MODES: [&str; 2] = ["Persistent", "Ephemeral"];
    for mode in list(spec, "volumeLifecycleModes") {
        if !mode.as_str().is_some_and(|mode| MODES.contains(&mode)) {
            errors.push(named(FieldError::not_supported(&path.child("volumeLifecycleModes"), mode, &MODES), mode));
        }
    }
    let mut audiences = HashSet::new();
    for (path, request) in items(spec, "tokenRequests", &path) {
        let audience = text(request, "audience");
        if !audiences.insert(audience) {
            errors.push(FieldError::duplicate(&path.child("audience"), &Value::from(audience)));
            continue;
        }
        let Some(seconds) = request.get("expirationSeconds").and_then(Value::as_int) else { continue };
        let path = path.child("expirationSeconds");
        if seconds < TOKEN_SECONDS_MIN {
            let why = "may not specify a duration less than 10 minutes";
            errors.push(FieldError::invalid(&path, &Value::Int(seconds), why));
        }
        if seconds > TOKEN_SECONDS_MAX {
            let why = "may not specify a duration larger than 2^32 seconds";
            errors.push(FieldError::invalid(&path, &Value::Int(seconds), why));
        }
    }
    let secrets = spec.get("serviceAccountTokenInSecrets").filter(|set| !set.is_null());
    if let Some(given) = secrets.filter(|_| audiences.is_empty()) {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(FieldError::invalid(&path.child("serviceAccountTokenInSecrets"), given, why));
    }
    const PERIOD_MIN: i64 = 10;
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds").and_then(Value::as_int);
    if let Some(period) = period.filter(|period| *period < PERIOD_MIN) {
        let (path, why) =
            (path.child("nodeAllocatableUpdatePeriodSeconds"), "must be greater than or equal to 10 seconds");
        errors.push(FieldError::invalid(&path, &Value::Int(period), why));
    }
    if let Some(before) = old.and_then(|old| old.get("spec")) {
        driver_changes(spec, before, &path, &mut errors);
    }
    errors
}

/// Reports changes of the immutable fields of a driver.
fn driver_changes(spec: &Value, before: &Value, path: &FieldPath, errors: &mut Errors) {
    // kube-apiserver misspells the first of these fields
    for (name, shown) in [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")] {
        if spec.get(name) != before.get(name) {
            let value = spec.get(name).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&path.child(shown), &value, "field is immutable"));
        }
    }
}

pub fn validate_node(node: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), node.get("spec").unwrap_or(&Value::Null));
    let mut errors = vec![];
    let names = items(spec, "drivers", &path).map(|(path, driver)| (path.child("name"), text(driver, "name")));
    duplicates(names, &mut errors);
    const ID_BYTES_MAX: usize = 256;
    for (path, driver) in items(spec, "drivers", &path) {
        let id = text(driver, "nodeID");
        if id.len() > ID_BYTES_MAX {
            let why = "must be 256 characters or less";
            errors.push(FieldError::invalid(&path.child("nodeID"), &Value::from(id), why));
        }
        // upstream reports keys at the path of their driver
        let mut known = HashSet::new();
        for key in list(driver, "topologyKeys").iter().map(|key| key.as_str().unwrap_or_default()) {
            if !known.insert(key) {
                errors.push(FieldError::duplicate(&path, &Value::from(key)));
            }
            if key.is_empty() {
                errors.push(FieldError::required(&path, ""));
            }
            invalid_each(&path, key, names::qualified_name(key), &mut errors);
        }
    }
    for before in old.map_or(&[][..], |old| list(old.get("spec").unwrap_or(&Value::Null), "drivers")) {
        changed_drivers(spec, before, &path.child("drivers"), &mut errors);
    }
    errors
}

/// If a Node already has a driver, only the number of its allocatable volumes may change.
fn changed_drivers(spec: &Value, before: &Value, path: &FieldPath, errors: &mut Errors) {
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        driver.remove_at(&["allocatable"]);
        driver
    };
    let is_changed = |driver: &&Value| text(driver, "name") == text(before, "name") && fixed(driver) != fixed(before);
    for driver in list(spec, "drivers").iter().filter(is_changed) {
        errors.push(invalid_internal(path, &fixed(driver), "storage.CSINodeDriver", "field is immutable"));
    }
}

pub fn validate_class(class: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, mut known_terms) = (vec![], HashSet::new());
    for (path, term) in items(class, "allowedTopologies", &FieldPath::root()) {
        let requirements = || items(term, "matchLabelExpressions", &path);
        duplicates(requirements().map(|(path, one)| (path.child("key"), text(one, "key"))), &mut errors);
        for (path, requirement) in requirements() {
            let values = items(requirement, "values", &path);
            duplicates(values.map(|(path, value)| (path, value.as_str().unwrap_or_default())), &mut errors);
        }
        // an empty term counts as a repetition
        let expressions = list(term, "matchLabelExpressions");
        if expressions.is_empty() || !known_terms.insert(Value::Array(expressions.to_vec()).to_json()) {
            errors.push(FieldError::duplicate(&path.child("matchLabelExpressions"), &Value::from("")));
        }
    }
    errors
}

pub fn validate_capacity(capacity: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    podspec::selector_operators(capacity.get("nodeTopology"), &FieldPath::new("nodeTopology"), &mut errors);
    let given = capacity.get("capacity").filter(|amount| !amount.is_null());
    let is_negative = |amount: Quantity| amount.compare(&Quantity::from_int(0)).is_lt();
    if let Some(amount) = given.filter(|amount| Quantity::of(amount).is_ok_and(is_negative)) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&FieldPath::new("capacity"), amount, why));
    }
    errors
}

/// The driver and the parameters of a VolumeAttributesClass are immutable.
pub fn validate_attributes(class: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let changed = |name: &&str| old.is_some_and(|old| old.get(name) != class.get(name));
    let names = ["driverName", "parameters"].into_iter().filter(changed);
    let refused =
        |name: &str| FieldError::forbidden(&FieldPath::new(name), format!("updates to {name} are forbidden."));
    names.map(refused).collect()
}

pub fn validate_attachment(attachment: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("spec").child("source"));
    let source = attachment.at(&["spec", "source"]).unwrap_or(&Value::Null);
    const NO_SINGLE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    const SOURCES: [&str; 2] = ["inlineVolumeSpec", "persistentVolumeName"];
    let count = SOURCES.iter().filter(|name| is_set(source, name)).count();
    if count == 0 {
        errors.push(FieldError::required(&path, NO_SINGLE_SOURCE));
    } else if count == SOURCES.len() {
        errors.push(FieldError::forbidden(&path, NO_SINGLE_SOURCE));
    } else if is_set(source, SOURCES[1]) {
        if text(source, SOURCES[1]).is_empty() {
            let why = "must specify non empty persistentVolumeName";
            errors.push(FieldError::required(&path.child(SOURCES[1]), why));
        }
    } else {
        let volume = source.get(SOURCES[0]).unwrap_or(&Value::Null);
        volumes::inline_errors(volume, &path.child(SOURCES[0]), &mut errors);
    }
    if is_set(source, SOURCES[1]) {
        let name = text(source, SOURCES[1]);
        invalid_each(&path.child(SOURCES[1]), name, names::dns1123_subdomain(name), &mut errors);
    }
    let attacher = attachment.str_at(&["spec", "attacher"]);
    if !attacher.is_empty() {
        // the declared rules replace the others
        let check = if old.is_none() { rule_checks::driver_name } else { rule_checks::csi_driver };
        crate::builtin::at::at_path(
            &Value::from(attacher),
            &FieldPath::new("spec").child("attacher"),
            &mut errors,
            check,
        );
    }
    if old.is_some_and(|old| old.get("spec") != attachment.get("spec")) {
        errors.push(FieldError::invalid(&FieldPath::new("spec"), &Value::Null, "field is immutable"));
    }
    errors
}
