//! PersistentVolumes and PersistentVolumeClaims.

use base::clock;
use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Release, Value, json};

use super::checks::{entries, list, text};
use super::defaults::{at_mut, restore, set_default};
use super::object_warnings::CLASS;
use super::{claims, pod_volumes, podspec, volume_sources};

/// The phase of a new volume or claim.
const PENDING: &str = "Pending";

/// Sets the defaults of PersistentVolumes, which the inline volumes of attachments do not get.
pub fn default_volume(volume: &mut Value) {
    if volume.str_at(&["spec", "persistentVolumeReclaimPolicy"]).is_empty() {
        volume.set_at(&["spec", "persistentVolumeReclaimPolicy"], Value::from("Retain"));
    }
    set_default(volume, &["spec", "volumeMode"], Value::from("Filesystem"));
}

/// Sets the phase of a new volume to Pending, with its transition time.
pub fn prepare_volume(volume: &mut Value, old: Option<&Value>) {
    prepare_pending(volume, old);
    if old.is_none() {
        volume.set_at(&["status", "lastPhaseTransitionTime"], Value::from(clock::now_rfc3339()));
    }
}

/// Keeps the time of the last change of the phase. If this write changes the phase and has no time of its own, the time
/// becomes now.
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

/// Sets the phase of a new claim to Pending, and completes `dataSource` and `dataSourceRef` from each other.
pub fn prepare_claim(claim: &mut Value, old: Option<&Value>) {
    prepare_pending(claim, old);
    let reference = ["spec", "dataSourceRef"];
    let has_reference = old.and_then(|old| old.at(&reference)).is_some_and(|reference| !reference.is_null());
    // sources in other namespaces need a feature gate that is off
    if !has_reference && !claim.str_at(&["spec", "dataSourceRef", "namespace"]).is_empty() {
        claim.remove_at(&reference);
    }
    let source = claim.at(&["spec", "dataSource"]).filter(|source| !source.is_null());
    let is_set = |claim: &Value, name: &str| claim.at(&["spec", name]).is_some_and(|source| !source.is_null());
    let is_in_use = |old: &Value| ["dataSource", "dataSourceRef"].iter().any(|name| is_set(old, name));
    let is_plain = !old.is_some_and(is_in_use) && !is_set(claim, "dataSourceRef");
    if is_plain && source.is_some_and(|source| !is_known_source(source)) {
        claim.remove_at(&["spec", "dataSource"]);
    }
    default_claim(claim);
}

/// Whether `dataSource` accepted this source before `dataSourceRef` existed: another claim or a snapshot.
fn is_known_source(source: &Value) -> bool {
    const KNOWN: [(&str, &str); 2] = [("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")];
    KNOWN.contains(&(text(source, "apiGroup"), text(source, "kind")))
}

const FIXED: &str =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

pub fn validate_claim(claim: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, spec) = (FieldPath::new("spec"), claim.get("spec").unwrap_or(&Value::Null));
    let is_group_checked = !old.is_some_and(has_group);
    claims::spec(spec, is_group_checked, &path, &mut errors);
    if let Some((before, old)) = old.and_then(|old| Some((old, old.get("spec")?))) {
        claim_changes(claim, before, &path, &mut errors);
        shrunk(spec, old, before, &path, &mut errors);
        attributes_class_removed(claim, before, &path, &mut errors);
    }
    errors
}

/// Whether the data source of a claim has an API group.
fn has_group(claim: &Value) -> bool {
    ["dataSource", "dataSourceRef"]
        .iter()
        .any(|name| claim.at(&["spec", name, "apiGroup"]).is_some_and(|group| !group.is_null()))
}

/// The error of a negative amount, which the error shows as a whole number.
fn basic_error(amount: &Value, path: &FieldPath) -> Option<FieldError> {
    let number = Quantity::of(amount).ok()?.units();
    (number < 0).then(|| FieldError::invalid(path, &Value::Int(number), "must be a valid resource quantity"))
}

/// A claim whose storage request is reduced must still request more than its current capacity.
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

/// The resources that the status of a claim names must be known or have a domain; only `storage` needs none.
pub fn validate_claim_status(claim: &Value, _old: &Value, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    for (resource, amount) in entries(claim, &["status", "capacity"]) {
        errors.extend(basic_error(amount, &FieldPath::new("status").child("capacity").key(resource)));
    }
    for name in ["allocatedResourceStatuses", "allocatedResources"] {
        let path = FieldPath::new("status").child(name);
        for (resource, given) in entries(claim, &["status", name]) {
            let problems = machinery::names::qualified_name(resource);
            let is_native = !resource.contains('/') || resource.contains("kubernetes.io/");
            if problems.is_empty() && is_native && resource.as_str() != "storage" {
                let value = Value::from(resource.as_str());
                errors.push(FieldError::not_supported(&path, &value, &["storage"]));
            }
            if problems.is_empty() && name == "allocatedResources" && (!is_native || resource.as_str() == "storage") {
                errors.extend(basic_error(given, &path.key(resource)));
            }
            super::checks::invalid_each(&path, resource, problems, &mut errors);
            if name == "allocatedResourceStatuses" && !given.as_str().is_some_and(|state| RESIZING.contains(&state)) {
                errors.push(FieldError::not_supported(&path, &Value::from(resource.as_str()), &RESIZING));
            }
        }
    }
    errors
}

/// The storage class of a claim is set only once. It may move from the annotation to the field that replaced it.
fn class_changes(claim: &Value, before: &Value, new: &mut Value, errors: &mut Vec<FieldError>) {
    let field = |claim: &Value| claim.at(&["spec", "storageClassName"]).filter(|class| !class.is_null()).cloned();
    let annotation = |claim: &Value| claim.at(&["metadata", "annotations", CLASS]).cloned();
    let (set, given, was_given) = (field(claim), annotation(claim), annotation(before));
    if field(before).is_none() && set.is_some() && (was_given.is_none() || was_given == set) {
        new.remove_at(&["storageClassName"]);
        if was_given.is_some() && (given.is_none() || given == was_given) {
            return;
        }
    }
    if given.clone().unwrap_or_else(|| Value::from("")) != was_given.unwrap_or_else(|| Value::from("")) {
        let path = FieldPath::new("metadata").child("annotations").child(CLASS);
        let shown = given.unwrap_or_else(|| Value::from(""));
        errors.push(FieldError::invalid(&path, &shown, "field is immutable"));
    }
}

/// A claim that has a current VolumeAttributesClass must keep requesting one.
fn attributes_class_removed(claim: &Value, before: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let class =
        |claim: &Value| claim.at(&["spec", "volumeAttributesClassName"]).filter(|class| !class.is_null()).cloned();
    let given = class(claim);
    let has = before.at(&["status", "currentVolumeAttributesClassName"]).is_some_and(|class| !class.is_null());
    if !has || given == class(before) {
        return;
    }
    let what = match given.as_ref().and_then(Value::as_str) {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let why = format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
    errors.push(FieldError::forbidden(&path.child("volumeAttributesClassName"), why));
}

fn claim_changes(claim: &Value, before: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let class = "volumeAttributesClassName";
    let (spec, old) = (claim.get("spec").unwrap_or(&Value::Null), before.get("spec").unwrap_or(&Value::Null));
    let mut new = spec.clone();
    let bound = claim.str_at(&["status", "phase"]) == "Bound";
    class_changes(claim, before, &mut new, errors);
    let storage = ["resources", "requests", "storage"];
    if bound && new.at(&storage[..2]).is_some_and(|requests| !requests.is_null()) {
        new.set_at(&storage, old.at(&storage).cloned().unwrap_or_else(|| Value::from("0")));
    }
    if bound {
        restore(&mut new, old, &[class]);
    }
    let mut old = old.clone();
    if text(&old, "volumeName").is_empty() {
        // the binding
        restore(&mut old, &new, &["volumeName"]);
    }
    let old = &old;
    if !schema::shape::same_fields(&new, old, schema::shape::named("core.v1.PersistentVolumeClaimSpec"), &[]) {
        let print = |spec: &Value| machinery::types::internal_json(spec, "core.PersistentVolumeClaimSpec", true);
        let difference = machinery::difflines::unified(&print(old), &print(&new));
        errors.push(FieldError::forbidden(path, format!("{FIXED}\n{difference}")));
    }
    let mode = |spec: &Value| spec.get("volumeMode").cloned().unwrap_or_default();
    if mode(spec) != mode(old) {
        errors.push(FieldError::invalid(&FieldPath::new("volumeMode"), &mode(spec), "field is immutable"));
    }
}

/// Only CSI volumes may have a VolumeAttributesClass, and its name must not be empty.
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
    // the Secret for expansion may be added later
    let expansion = ["csi", "controllerExpandSecretRef"];
    if super::checks::is_set(old, "csi") && old.at(&expansion).is_none_or(Value::is_null) {
        source.remove_at(&expansion);
    }
    if !schema::shape::same_fields(&source, old, schema::shape::named("core.v1.PersistentVolumeSource"), &[]) {
        let difference = machinery::difflines::unified(&print(old), &print(&source));
        let why = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(FieldError::forbidden(&path.child("persistentvolumesource"), why));
    }
    let affinity = |spec: &Value| spec.get("nodeAffinity").filter(|affinity| !affinity.is_null()).cloned();
    let of = schema::shape::named("core.v1.VolumeNodeAffinity");
    let is_same = |old: &Value, new: &Value| schema::shape::same_fields(old, new, of, &[]);
    let is_changed = |old: Value| affinity(spec).is_none_or(|new| !is_same(&with_stable_labels(old, &new), &new));
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

/// Beta labels of Nodes, and the stable labels that replaced them.
const STABLE_LABELS: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
];

/// The old node affinity, with beta labels replaced by stable ones where `new` does so. As in kube-apiserver, which
/// looks up an empty replacement for other labels, `new` may also replace those by an empty key.
fn with_stable_labels(mut affinity: Value, new: &Value) -> Value {
    let terms = ["required", "nodeSelectorTerms"];
    let new_terms = new.at(&terms).and_then(Value::as_array).unwrap_or_default();
    let old_terms = at_mut(&mut affinity, &terms).and_then(Value::as_array_mut);
    for (term, new) in old_terms.into_iter().flatten().zip(new_terms) {
        for kind in ["matchExpressions", "matchFields"] {
            let requirements = term.get_mut(kind).and_then(Value::as_array_mut);
            for (requirement, new) in requirements.into_iter().flatten().zip(list(new, kind)) {
                let key = text(requirement, "key");
                let stable =
                    STABLE_LABELS.into_iter().find(|(label, _)| *label == key).map_or("", |(_, stable)| stable);
                if text(new, "key") == stable {
                    requirement.set_at(&["key"], Value::from(stable));
                }
            }
        }
    }
    affinity
}

/// The capacity of a volume must be positive; an absent amount counts as zero.
fn capacity_errors(amount: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Ok(quantity) = (if amount.is_null() { Ok(Quantity::from_int(0)) } else { Quantity::of(amount) }) else {
        return;
    };
    errors.extend(basic_error(amount, path));
    if quantity.signum() <= 0 {
        errors.push(FieldError::invalid(path, &Value::from(quantity.to_string()), "must be greater than zero"));
    }
}

/// The inline volume of an attachment must be a CSI volume, without the fields that bind a PersistentVolume to a claim.
pub fn inline_errors(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const WHERE: &str = "in the context of inline volumes";
    let mut forbid =
        |name: &str, why: &str| errors.push(FieldError::forbidden(&path.child(name), format!("{why} {WHERE}")));
    let is_given = |name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    for name in ["claimRef", "nodeAffinity"].into_iter().filter(|name| is_given(name)) {
        forbid(name, "may not be specified");
    }
    if spec.get("capacity").and_then(Value::as_object).is_some_and(|capacity| !capacity.is_empty()) {
        forbid("capacity", "may not be specified");
    }
    if !["", "Retain"].contains(&text(spec, "persistentVolumeReclaimPolicy")) {
        forbid("persistentVolumeReclaimPolicy", "may only be Retain");
    }
    if !text(spec, "storageClassName").is_empty() {
        forbid("storageClassName", "may not be specified");
    }
    if is_given("volumeMode") && text(spec, "volumeMode") != "Filesystem" {
        forbid("volumeMode", "may not specify volumeMode other than Filesystem");
    }
    if !is_given("csi") {
        let why = format!("has to be specified {WHERE}");
        errors.push(FieldError::required(&path.child("csi"), why));
    }
    volume_sources::errors("", spec, path, errors);
    let mut rest = spec.clone();
    ["claimRef", "nodeAffinity", "persistentVolumeReclaimPolicy", "storageClassName", "volumeMode"]
        .iter()
        .for_each(|name| drop(rest.remove_at(&[name])));
    rest.set_at(&["capacity"], json!({"storage": "1"}));
    pod_volumes::rule_errors(&rest, "core.v1.PersistentVolumeSpec", path, errors);
}

pub fn validate_volume(volume: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, spec) = (FieldPath::new("spec"), volume.get("spec").unwrap_or(&Value::Null));
    let capacity = spec.get("capacity").and_then(Value::as_object);
    if capacity.is_none_or(|capacity| capacity.get("storage").is_none() || capacity.len() > 1) {
        let given = spec.get("capacity").cloned().unwrap_or_default();
        errors.push(FieldError::not_supported(&path.child("capacity"), &given, &["storage"]));
    }
    for (name, amount) in capacity.into_iter().flat_map(machinery::Map::iter) {
        capacity_errors(amount, &path.child("capacity").key(name), &mut errors);
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

/// Warns about CSI drivers that receive ServiceAccount tokens in volume attributes rather than in Secrets.
pub fn driver_warnings(driver: &Value, old: Option<&Value>, _release: Release) -> Vec<String> {
    let requests = ["spec", "tokenRequests"];
    let spec = driver.get("spec").unwrap_or(&Value::Null);
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

/// Completes `dataSource` and `dataSourceRef` from each other.
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
