//! PersistentVolumes and PersistentVolumeClaims.

use base::clock;
use machinery::field::FieldPath;
use machinery::quantity::Quantity;
use machinery::{Value, json};

use crate::core::claims::{self, ApiGroups};
use crate::core::{podspec, volume_sources};
use crate::object_warnings::CLASS;
use resource::builtin::checks::{difference, list, text};
use resource::builtin::defaults::{at_mut, restore, set_default};
use schema::at::{At, CheckStage};

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

pub fn validate_claim(claim: At) {
    let spec = claim.field("spec");
    let groups = if claim.old.is_some_and(has_group) { ApiGroups::AsStored } else { ApiGroups::Checked };
    claims::spec(spec, groups);
    if let Some(before) = claim.old {
        claim_changes(claim, before);
        shrunk(claim);
        attributes_class_removed(claim);
    }
}

/// Whether the data source of a claim has an API group.
fn has_group(claim: &Value) -> bool {
    ["dataSource", "dataSourceRef"]
        .iter()
        .any(|name| claim.at(&["spec", name, "apiGroup"]).is_some_and(|group| !group.is_null()))
}

/// Reports a negative amount, which the error shows as a whole number.
fn basic_amount(at: At) {
    let number = Quantity::of(at.value).map_or(0, |amount| amount.units());
    if number < 0 {
        at.shown_verbatim(&number.to_string()).invalid("must be a valid resource quantity");
    }
}

/// A claim whose storage request is reduced must still request more than its current capacity.
fn shrunk(claim: At) {
    let amount = |value: Option<&Value>| {
        value.and_then(|amount| Quantity::of(amount).ok()).unwrap_or_else(|| Quantity::from_int(0))
    };
    let request = claim.field("spec.resources.requests.storage");
    let (new, before) = (amount(Some(request.value)), amount(request.old));
    let has = amount(claim.field("status.capacity.storage").old);
    if new.compare(&before).is_lt() && new.compare(&has).is_le() {
        request.forbidden("field can not be less than status.capacity");
    }
}

const RESIZING: [&str; 5] = [
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
];

/// The resources that the status of a claim names must be known or have a domain; only `storage` needs none.
pub fn validate_claim_status(claim: At) {
    claim.entries_of("status.capacity").for_each(|(_, amount)| basic_amount(amount));
    for name in ["status.allocatedResourceStatuses", "status.allocatedResources"] {
        let (resources, is_amount) = (claim.field(name), name == "status.allocatedResources");
        for (resource, given) in claim.entries_of(name) {
            let problems = machinery::names::qualified_name(resource);
            let is_native = !resource.contains('/') || resource.contains("kubernetes.io/");
            let refuse = |known: &[&str]| resources.shown_as_text(resource).unsupported(known);
            if problems.is_empty() && is_native && resource != "storage" {
                refuse(&["storage"]);
            }
            if problems.is_empty() && is_amount && (!is_native || resource == "storage") {
                basic_amount(given);
            }
            resources.shown_as_text(resource).invalid_each(problems);
            if !is_amount && !RESIZING.contains(&given.as_text()) {
                refuse(&RESIZING);
            }
        }
    }
}

/// The storage class of a claim is set only once. It may move from the annotation to the field that replaced it.
fn class_changes(claim: At, new: &mut Value) {
    let (field, annotations) = (claim.field("spec.storageClassName"), claim.field("metadata.annotations"));
    let annotation = annotations.field_with_dots(CLASS);
    let nothing = &Value::Null;
    let (before, was_given) = (field.old.unwrap_or(nothing), annotation.old.unwrap_or(nothing));
    if before.is_null() && field.is_given() && (was_given.is_null() || was_given == field.value) {
        new.remove_at(&["storageClassName"]);
        if !was_given.is_null() && (!annotation.is_given() || annotation.value == was_given) {
            return;
        }
    }
    if annotation.as_text() != was_given.as_str().unwrap_or_default() {
        annotation.or_empty().in_stage(CheckStage::Change).invalid(FIXED_FIELD);
    }
}

const FIXED_FIELD: &str = "field is immutable";

/// A claim that has a current VolumeAttributesClass must keep requesting one.
fn attributes_class_removed(claim: At) {
    let class = claim.field("spec.volumeAttributesClassName");
    let has = claim.field("status.currentVolumeAttributesClassName").old.is_some_and(|class| !class.is_null());
    if !has || class.old == Some(class.value) {
        return;
    }
    let what = match class.value.as_str() {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    class.forbidden(format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"));
}

fn claim_changes(claim: At, before: &Value) {
    let (spec, mut old) = (claim.field("spec"), before.get("spec").cloned().unwrap_or_default());
    let mut new = spec.value.clone();
    let bound = claim.text("status.phase") == "Bound";
    class_changes(claim, &mut new);
    let storage = ["resources", "requests", "storage"];
    if bound && new.at(&storage[..2]).is_some_and(|requests| !requests.is_null()) {
        new.set_at(&storage, old.at(&storage).cloned().unwrap_or_else(|| Value::from("0")));
    }
    if bound {
        restore(&mut new, &old, &["volumeAttributesClassName"]);
    }
    if text(&old, "volumeName").is_empty() {
        // the binding
        restore(&mut old, &new, &["volumeName"]);
    }
    if !schema::shape::same_fields(&new, &old, schema::shape::named("core.v1.PersistentVolumeClaimSpec"), &[]) {
        let difference = difference(&old, &new, "core.PersistentVolumeClaimSpec");
        spec.in_stage(CheckStage::Change).forbidden(format!("{FIXED}\n{difference}"));
    }
    mode_change(spec);
}

/// The volume mode is immutable. Upstream leaves out the path of the spec.
fn mode_change(spec: At) {
    spec.field("volumeMode").with_path(&FieldPath::new("volumeMode")).immutable();
}

/// The source and the node affinity of a volume are immutable.
fn volume_changes(spec: At, old: &Value) {
    let mut source = spec.value.clone();
    // the Secret for expansion may be added later
    let expansion = ["csi", "controllerExpandSecretRef"];
    if resource::builtin::checks::is_set(old, "csi") && old.at(&expansion).is_none_or(Value::is_null) {
        source.remove_at(&expansion);
    }
    if !schema::shape::same_fields(&source, old, schema::shape::named("core.v1.PersistentVolumeSource"), &[]) {
        let difference = difference(old, &source, "core.PersistentVolumeSource");
        let why = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        spec.field("persistentvolumesource").in_stage(CheckStage::Change).forbidden(why);
    }
    let (class, affinity) = (spec.field("volumeAttributesClassName"), spec.field("nodeAffinity"));
    if class.old.is_some_and(|old| !old.is_null()) && !class.is_given() {
        class.forbidden("update from non-nil value to nil is forbidden");
    }
    let of = schema::shape::named("core.v1.VolumeNodeAffinity");
    let is_same = |old: &Value| {
        let new = affinity.value;
        affinity.is_given() && schema::shape::same_fields(&with_stable_labels(old.clone(), new), new, of, &[])
    };
    if affinity.old.is_some_and(|old| !old.is_null() && !is_same(old)) {
        let print = |affinity: At| machinery::types::internal_json(affinity.value, "core.VolumeNodeAffinity");
        let shown = if affinity.is_given() { print(affinity) } else { "null".to_owned() };
        let why = "field is immutable, except for updating from beta label to GA";
        let path = FieldPath::new("nodeAffinity");
        affinity.with_path(&path).in_stage(CheckStage::Change).shown_verbatim(&shown).invalid(why);
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
    let new_terms = new.items_at(&terms);
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
fn capacity_amount(at: At) {
    let amount = if at.is_given() { Quantity::of(at.value) } else { Ok(Quantity::from_int(0)) };
    let Ok(amount) = amount else { return };
    basic_amount(at);
    if amount.signum() <= 0 {
        at.shown_as_text(&amount.to_string()).invalid("must be greater than zero");
    }
}

/// The inline volume of an attachment must be a CSI volume, without the fields that bind a PersistentVolume to a claim.
pub fn inline(spec: At) {
    let forbid = |name: &str, why: &str| {
        spec.field(name).forbidden(format!("{why} in the context of inline volumes"));
    };
    for name in ["claimRef", "nodeAffinity"].into_iter().filter(|name| spec.has(name)) {
        forbid(name, "may not be specified");
    }
    if spec.entries_of("capacity").next().is_some() {
        forbid("capacity", "may not be specified");
    }
    if !["", "Retain"].contains(&spec.text("persistentVolumeReclaimPolicy")) {
        forbid("persistentVolumeReclaimPolicy", "may only be Retain");
    }
    if !spec.text("storageClassName").is_empty() {
        forbid("storageClassName", "may not be specified");
    }
    if spec.has("volumeMode") && spec.text("volumeMode") != "Filesystem" {
        forbid("volumeMode", "may not specify volumeMode other than Filesystem");
    }
    spec.field("csi").require("has to be specified in the context of inline volumes");
    volume_sources::source("", spec);
    let mut rest = spec.value.clone();
    ["claimRef", "nodeAffinity", "persistentVolumeReclaimPolicy", "storageClassName", "volumeMode"]
        .iter()
        .for_each(|name| drop(rest.remove_at(&[name])));
    rest.set_at(&["capacity"], json!({"storage": "1"}));
    spec.showing(&rest, |at| at.check_type("core.v1.PersistentVolumeSpec"));
}

pub fn validate_volume(volume: At) {
    let spec = volume.field("spec");
    let capacity = spec.field("capacity");
    if !capacity.has("storage") || capacity.value.as_object().is_some_and(|capacity| capacity.len() > 1) {
        capacity.unsupported(&["storage"]);
    }
    spec.entries_of("capacity").for_each(|(_, amount)| capacity_amount(amount));
    podspec::node_selector(spec.field("nodeAffinity.required"));
    volume_sources::source(volume.text("metadata.name"), spec);
    if let Some(old) = spec.old {
        volume_changes(spec, old);
        mode_change(spec);
    }
}

/// Warns about CSI drivers that receive ServiceAccount tokens in volume attributes rather than in Secrets.
pub fn driver_warnings(driver: At) {
    let requests = driver.field("spec.tokenRequests");
    let is_unchanged = requests.old == Some(requests.value);
    if !is_unchanged && requests.items().len() > 0 && !driver.has("spec.serviceAccountTokenInSecrets") {
        driver.warn_text("spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes");
    }
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
