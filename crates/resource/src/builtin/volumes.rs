//! PersistentVolumes and PersistentVolumeClaims.

use base::clock;
use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Release, Value};

use super::checks::{list, text};
use super::defaults::at_mut;
use super::{podspec, volume_sources};

/// The phase of a new volume or claim.
const PENDING: &str = "Pending";

/// Sets the phase of a new volume to Pending, with its transition time.
pub fn prepare_volume(volume: &mut Value, old: Option<&Value>) {
    prepare_pending(volume, old);
    if old.is_none() {
        volume.set_at(&["status", "lastPhaseTransitionTime"], Value::from(clock::now_rfc3339()));
    }
}

/// Keeps the time at which the phase has changed, and sets it to now if the phase changes and the write has no other time.
pub fn prepare_volume_status(volume: &mut Value, old: &Value) {
    const TIME: [&str; 2] = ["status", "lastPhaseTransitionTime"];
    let time = |volume: &Value| volume.at(&TIME).filter(|time| !time.is_null()).cloned();
    let (given, before) = (time(volume), time(old));
    let is_changed = volume.str_at(&["status", "phase"]) != old.str_at(&["status", "phase"]);
    if is_changed && (given.is_none() || given == before) {
        volume.set_at(&TIME, Value::from(clock::now_rfc3339()));
    } else if let (None, Some(before)) = (given, before) {
        volume.set_at(&TIME, before);
    }
}

/// Sets the phase of a new claim to Pending; `dataSource` and `dataSourceRef` complete each other.
pub fn prepare_claim(claim: &mut Value, old: Option<&Value>) {
    prepare_pending(claim, old);
    let source = claim.at(&["spec", "dataSource"]).filter(|source| !source.is_null());
    if old.is_none() && source.is_some_and(|source| !is_known_source(source)) {
        claim.remove_at(&["spec", "dataSource"]);
    }
    let reference = ["spec", "dataSourceRef"];
    let has_reference = old.and_then(|old| old.at(&reference)).is_some_and(|reference| !reference.is_null());
    // what other namespaces have is behind a gate that is off
    if !has_reference && !claim.str_at(&["spec", "dataSourceRef", "namespace"]).is_empty() {
        claim.remove_at(&reference);
    }
    default_claim(claim);
}

/// Whether a source is one that claims had before they could have any: another claim, or a snapshot.
fn is_known_source(source: &Value) -> bool {
    const KNOWN: [(&str, &str); 2] = [("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")];
    KNOWN.contains(&(text(source, "apiGroup"), text(source, "kind")))
}

const FIXED: &str =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// A PersistentVolumeClaim.
pub fn validate_claim(claim: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    let spec = claim.get("spec").unwrap_or(&empty);
    claim_spec(spec, &path, &mut errors);
    if let Some(old) = old.and_then(|old| old.get("spec")) {
        claim_changes(spec, old, claim, &path, &mut errors);
        shrunk(spec, old, claim, &path, &mut errors);
    }
    errors
}

/// The spec of a claim, or of a template of claims.
pub fn claim_spec(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    podspec::selector_operators(selector, &path.child("selector"), errors);
    let storage = spec.at(&["resources", "requests", "storage"]).filter(|amount| !amount.is_null());
    if storage.is_none() {
        errors.push(FieldError::required(&path.child("resources").key("storage"), ""));
    }
    if let (Some(source), Some(reference)) = (spec.get("dataSource"), spec.get("dataSourceRef"))
        && !source.is_null()
        && !reference.is_null()
    {
        let is_equal = ["apiGroup", "kind", "name"].iter().all(|name| source.get(name) == reference.get(name));
        if !text(reference, "namespace").is_empty() {
            let why = "may not be specified when dataSourceRef.namespace is specified";
            errors.push(FieldError::invalid(path, &Value::object(), why));
        } else if !is_equal {
            errors.push(FieldError::invalid(path, &Value::object(), "must match dataSourceRef"));
        }
    }
    for name in ["dataSource", "dataSourceRef"] {
        if let Some(source) = spec.get(name).filter(|source| !source.is_null()) {
            let kind = text(source, "kind");
            if text(source, "apiGroup").is_empty() && kind != "PersistentVolumeClaim" {
                let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
                errors.push(FieldError::invalid(&path.child(name), &Value::from(kind), why));
            }
        }
    }
}

/// The storage of a claim that is reduced stays above what it has.
fn shrunk(spec: &Value, old: &Value, claim: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let storage = |object: &Value, at: &[&str]| {
        let none = Quantity::from_int(0);
        object.at(at).and_then(|amount| Quantity::of(amount).ok()).unwrap_or(none)
    };
    let requested = ["resources", "requests", "storage"];
    let (new, before) = (storage(spec, &requested), storage(old, &requested));
    let has = storage(claim, &["status", "capacity", "storage"]);
    if new.compare(&before).is_lt() && new.compare(&has).is_le() {
        let path = path.child("resources").child("requests").child("storage");
        errors.push(FieldError::forbidden(&path, "field can not be less than status.capacity"));
    }
}

const RESIZING: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// The resources that the status of a claim names are known ones, of which storage is the only one without a domain.
pub fn validate_claim_status(claim: &Value, _old: &Value, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    for name in ["allocatedResourceStatuses", "allocatedResources"] {
        let path = FieldPath::new("status").child(name);
        let given = claim.at(&["status", name]).and_then(Value::as_object);
        for (resource, _) in given.into_iter().flat_map(machinery::Map::iter) {
            let problems = machinery::names::qualified_name(resource);
            if problems.is_empty() && !resource.contains('/') && resource.as_str() != "storage" {
                let value = Value::from(resource.as_str());
                errors.push(FieldError::not_supported(&path, &value, &["storage"]));
            }
            super::checks::invalid_each(&path, resource, problems, &mut errors);
            let state = given.and_then(|given| given.get(resource.as_str())).and_then(Value::as_str);
            if name == "allocatedResourceStatuses" && !state.is_some_and(|state| RESIZING.contains(&state)) {
                errors.push(FieldError::not_supported(&path, &Value::from(resource.as_str()), &RESIZING));
            }
        }
    }
    errors
}

fn claim_changes(spec: &Value, old: &Value, claim: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut new = spec.clone();
    let bound = claim.str_at(&["status", "phase"]) == "Bound";
    let storage = ["resources", "requests", "storage"];
    if bound && new.at(&storage[..2]).is_some_and(|requests| !requests.is_null()) {
        new.set_at(&storage, old.at(&storage).cloned().unwrap_or_else(|| Value::from("0")));
    }
    if text(old, "volumeName").is_empty() {
        // the binding
        new.remove_at(&["volumeName"]);
    }
    if new != *old {
        let print = |spec: &Value| machinery::types::internal_json(spec, "core.PersistentVolumeClaimSpec", true);
        let difference = machinery::difflines::unified(&print(old), &print(&new));
        errors.push(FieldError::forbidden(path, format!("{FIXED}\n{difference}")));
    }
    let mode = |spec: &Value| spec.get("volumeMode").cloned().unwrap_or_default();
    if mode(spec) != mode(old) {
        errors.push(FieldError::invalid(&FieldPath::new("volumeMode"), &mode(spec), "field is immutable"));
    }
}

/// Only volumes of CSI have a class of attributes, whose name is not empty.
fn attributes_class(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(class) = spec.get("volumeAttributesClassName").and_then(Value::as_str) else { return };
    let own = path.child("volumeAttributesClassName");
    if class.is_empty() {
        errors.push(FieldError::required(&own, "an empty string is disallowed"));
    } else {
        super::checks::invalid_each(&own, class, machinery::names::dns1123_subdomain(class), errors);
    }
    if !super::checks::is_set(spec, "csi") {
        let why = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(&path.child("csi"), why));
    }
}

/// The source and the node affinity of a volume are immutable.
fn volume_changes(spec: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let print = |spec: &Value| machinery::types::internal_json(spec, "core.PersistentVolumeSource", true);
    let mut source = spec.clone();
    // a driver may get the Secret for expansion later
    let expansion = ["csi", "controllerExpandSecretRef"];
    if super::checks::is_set(old, "csi") && old.at(&expansion).is_none_or(Value::is_null) {
        source.remove_at(&expansion);
    }
    let (before, after) = (print(old), print(&source));
    if before != after {
        let difference = machinery::difflines::unified(&before, &after);
        let why = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(FieldError::forbidden(&path.child("persistentvolumesource"), why));
    }
    let affinity = |spec: &Value| spec.get("nodeAffinity").filter(|affinity| !affinity.is_null()).cloned();
    let is_changed = |old: Value| affinity(spec).is_none_or(|new| with_stable_labels(old, &new) != new);
    let class = "volumeAttributesClassName";
    if super::checks::is_set(old, class) && !super::checks::is_set(spec, class) {
        let error = FieldError::forbidden(&path.child(class), "update from non-nil value to nil is forbidden");
        errors.push(error);
    }
    if affinity(old).is_some_and(is_changed) {
        let print = |affinity: Value| machinery::types::internal_json(&affinity, "core.VolumeNodeAffinity", false);
        let shown = affinity(spec).map_or_else(|| "null".to_owned(), print);
        let why = "field is immutable, except for updating from beta label to GA";
        let error = FieldError::invalid(&FieldPath::new("nodeAffinity"), &Value::Null, why);
        errors.push(FieldError { value: shown, ..error });
    }
}

/// Labels of nodes that have a stable name now.
const STABLE_LABELS: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
];

/// The node affinity of a volume with the labels of `new` where those may replace its own. A label without a stable name may
/// be replaced by none, as kube-apiserver looks it up.
fn with_stable_labels(mut affinity: Value, new: &Value) -> Value {
    let terms = ["required", "nodeSelectorTerms"];
    let new_terms = new.at(&terms).and_then(Value::as_array).unwrap_or_default();
    let old_terms = at_mut(&mut affinity, &terms).and_then(Value::as_array_mut);
    for (term, new) in old_terms.into_iter().flatten().zip(new_terms) {
        let requirements = term.get_mut("matchExpressions").and_then(Value::as_array_mut);
        for (requirement, new) in requirements.into_iter().flatten().zip(list(new, "matchExpressions")) {
            let key = text(requirement, "key");
            let stable = STABLE_LABELS.into_iter().find(|(label, _)| *label == key).map_or("", |(_, stable)| stable);
            if text(new, "key") == stable {
                requirement.set_at(&["key"], Value::from(stable));
            }
        }
    }
    affinity
}

/// A PersistentVolume.
pub fn validate_volume(volume: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    let spec = volume.get("spec").unwrap_or(&empty);
    let capacity = spec.get("capacity").and_then(Value::as_object);
    if capacity.is_none_or(|capacity| capacity.get("storage").is_none() || capacity.len() > 1) {
        let given = spec.get("capacity").cloned().unwrap_or_default();
        errors.push(FieldError::not_supported(&path.child("capacity"), &given, &["storage"]));
    }
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" && spec.str_at(&["hostPath", "path"]) == "/" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), why));
    }
    if let Some(required) = spec.at(&["nodeAffinity", "required"]) {
        podspec::node_selector(required, &path.child("nodeAffinity").child("required"), &mut errors);
    }
    volume_sources::errors(volume.str_at(&["metadata", "name"]), spec, &path, &mut errors);
    attributes_class(spec, &path, &mut errors);
    if let Some(old) = old.and_then(|old| old.get("spec")) {
        volume_changes(spec, old, &path, &mut errors);
        let mode = |spec: &Value| spec.get("volumeMode").cloned().unwrap_or_default();
        if mode(spec) != mode(old) {
            errors.push(FieldError::invalid(&FieldPath::new("volumeMode"), &mode(spec), "field is immutable"));
        }
    }
    errors
}

/// The warning about CSI drivers that get tokens.
pub fn driver_warnings(driver: &Value, old: Option<&Value>, _release: Release) -> Vec<String> {
    let (empty, requests) = (Value::object(), ["spec", "tokenRequests"]);
    let spec = driver.get("spec").unwrap_or(&empty);
    let is_unchanged = old.is_some_and(|old| old.at(&requests) == driver.at(&requests));
    if is_unchanged
        || list(spec, "tokenRequests").is_empty()
        || spec.get("serviceAccountTokenInSecrets").is_some_and(|set| !set.is_null())
    {
        return vec![];
    }
    vec!["spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes".to_owned()]
}

/// Sets the phase of a new object to Pending.
fn prepare_pending(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["status", "phase"], Value::from(PENDING));
    }
}

/// Completes the deprecated and the current form of a data source by each other.
fn default_claim(claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec") else { return };
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => spec.set_at(&["dataSourceRef"], source),
        (None, Some(reference)) if text(&reference, "namespace").is_empty() => {
            spec.set_at(&["dataSource"], reference);
        }
        _ => {}
    }
}
