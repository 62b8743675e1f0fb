//! Pods, and the templates of Pods in other kinds.

mod container_statuses;
pub mod pod_annotations;
mod pod_gates;
pub mod pod_status;
pub mod pod_warnings;
pub mod resize;

use std::collections::{HashMap, HashSet};

use machinery::field::FieldPath;
use machinery::{Map, Value, json};
use schema::shape::same_fields;

use crate::core::pod_volumes;
pub use crate::core::podspec::validate_spec;
use crate::core::podspec::{self, take_label_keys};
use crate::stages;
use pod_gates::take_additions;
use resource::builtin::checks::{difference, list, text};
use resource::builtin::defaults::restore;
use schema::at::At;

/// The lists of containers in a Pod's spec.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Replaces the Pod by the stored one, except for the part that `take` copies from the request.
pub(super) fn keep_all_but(pod: &mut Value, old: &Value, take: impl FnOnce(&mut Value, &Value)) {
    let new = std::mem::replace(pod, old.clone());
    for name in ["deletionGracePeriodSeconds", "generateName", "managedFields", "resourceVersion"] {
        restore(pod, &new, &["metadata", name]);
    }
    // another uid is an error
    if !new.str_at(&["metadata", "uid"]).is_empty() {
        restore(pod, &new, &["metadata", "uid"]);
    }
    take(pod, &new);
    if !resource::builtin::is_same("core.v1.Pod", pod, old) {
        resource::builtin::track_generation(pod, Some(old));
    }
}

/// The subresource `ephemeralcontainers` writes only the list of ephemeral containers.
pub fn add_ephemeral(pod: &mut Value, old: &Value) {
    let is_empty = |list: &Value| list.as_array().is_none_or(<[Value]>::is_empty);
    keep_all_but(pod, old, |pod, new| match new.at(&["spec", "ephemeralContainers"]) {
        Some(list) if !is_empty(list) => pod.set_at(&["spec", "ephemeralContainers"], list.clone()),
        _ => drop(pod.remove_at(&["spec", "ephemeralContainers"])),
    });
}

/// Ephemeral containers can be added, but neither changed nor removed.
pub fn validate_ephemeral(pod: At) {
    if pod_annotations::is_mirror(pod.old.unwrap_or(&Value::Null)) {
        // kube-apiserver names a path without a name, which is printed so
        return pod.with_path(&FieldPath::new("").key("")).forbidden("static pods do not support ephemeral containers");
    }
    let spec = pod.field("spec");
    validate_spec(spec);
    let containers = spec.field("ephemeralContainers");
    let mut by_name = HashMap::new();
    for container in containers.items() {
        by_name.entry(container.text("name")).or_insert(container.value);
    }
    for former in containers.old_items() {
        let name = text(former, "name");
        match by_name.get(name).copied() {
            None => {
                containers.forbidden(format!("existing ephemeral containers {name:?} may not be removed\n"));
            }
            Some(container) if container != former => {
                let difference = difference(former, container, "core.EphemeralContainer");
                let why = format!("existing ephemeral containers {name:?} may not be changed\n{difference}");
                containers.forbidden(why);
            }
            Some(_) => {}
        }
    }
}

/// The grace period for deleting a Pod, in seconds; 0 if the Pod is not assigned to a Node or has ended.
pub fn grace(pod: &Value, given: Option<i64>) -> i64 {
    let own = || pod.int_at(&["spec", "terminationGracePeriodSeconds"]);
    let unassigned = pod.str_at(&["spec", "nodeName"]).is_empty();
    match given.unwrap_or_else(own) {
        _ if unassigned || ["Failed", "Succeeded"].contains(&pod.str_at(&["status", "phase"])) => 0,
        ..0 => 1,
        seconds => seconds,
    }
}

pub fn default(pod: &mut Value) {
    crate::core::pods::pod_status::default(pod);
    let Some(spec) = pod.get_mut("spec") else { return };
    default_spec(spec);
    if spec.is_true_at(&["hostNetwork"]) {
        default_host_ports(spec);
    }
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_int).is_some_and(|seconds| seconds < 0) {
        spec.set_at(&["terminationGracePeriodSeconds"], Value::Int(1));
    }
    if spec.get("enableServiceLinks").is_none() {
        spec.set_at(&["enableServiceLinks"], Value::Bool(true));
    }
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            default_requests(container);
        }
    }
}

/// Requests default to the limits.
fn default_requests(container: &mut Value) {
    let limits = container.at(&["resources", "limits"]).and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, limit) in limits.iter() {
        let request = ["resources", "requests", name.as_str()];
        if container.at(&request).is_none() {
            container.set_at(&request, limit.clone());
        }
    }
}

/// Sets the defaults that depend on other fields of the spec of a Pod.
pub fn default_spec(spec: &mut Value) {
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            default_container(container);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        let has_none = volume
            .as_object()
            .is_some_and(|fields| Map::iter(fields).all(|(name, value)| name.as_str() == "name" || value.is_null()));
        if has_none {
            volume.set_at(&["emptyDir"], Value::object());
        }
        if let Some(image) = volume.get_mut("image").filter(|image| text(image, "pullPolicy").is_empty()) {
            let policy = if is_latest(text(image, "reference")) { "Always" } else { "IfNotPresent" };
            image.set_at(&["pullPolicy"], Value::from(policy));
        }
    }
    // `serviceAccount` is the deprecated name of `serviceAccountName`
    let account = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    }
    .to_owned();
    if !account.is_empty() {
        spec.set_at(&["serviceAccountName"], Value::from(account.as_str()));
        spec.set_at(&["serviceAccount"], Value::from(account));
    }
}

fn default_container(container: &mut Value) {
    if text(container, "imagePullPolicy").is_empty() {
        let policy = if is_latest(text(container, "image")) { "Always" } else { "IfNotPresent" };
        container.set_at(&["imagePullPolicy"], Value::from(policy));
    }
}

/// Whether the tag of an image is `latest`, which is also that of an image with neither tag nor digest.
fn is_latest(image: &str) -> bool {
    if !is_reference(image) {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    match (name.contains('@'), name.split_once(':')) {
        (true, _) => false,
        (false, None) => true,
        (false, Some((_, tag))) => tag == "latest",
    }
}

/// Whether an image is a valid reference: `[DOMAIN/]PATH[:TAG][@DIGEST]`.
fn is_reference(image: &str) -> bool {
    const NAME_BYTES_MAX: usize = 255;
    const TAG_BYTES_MAX: usize = 128;
    const IDENTIFIER_BYTES: usize = 64;
    let is_hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if image.len() == IDENTIFIER_BYTES && image.bytes().all(is_hexadecimal) {
        // a bare image identifier is not a name
        return false;
    }
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    let is_tag = |tag: &str| {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        tag.starts_with(word) && tag.len() <= TAG_BYTES_MAX && tag.chars().all(|c| word(c) || matches!(c, '.' | '-'))
    };
    let is_domain = |part: &str| part.contains(['.', ':']) || part == "localhost";
    let (path, added) = match name.split_once('/') {
        Some((domain, path)) if is_domain(domain) => (path, domain.len() + 1),
        Some(_) => (name, "docker.io/".len()),
        None => (name, "docker.io/library/".len()),
    };
    path.len() + added <= NAME_BYTES_MAX && path.split('/').all(is_path_part) && tag.is_none_or(is_tag)
}

/// Lowercase words that are separated by a dot, by one or two underscores, or by hyphens.
fn is_path_part(part: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator = |run: &str| matches!(run, "" | "." | "_" | "__") || run.chars().all(|c| c == '-');
    part.starts_with(word) && part.ends_with(word) && part.split(word).all(is_separator)
}

/// On the network of the host, the host port of a container defaults to its container port. This applies to new Pods,
/// not to templates.
fn default_host_ports(spec: &mut Value) {
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                if let (None, Some(number)) = (port.get("hostPort"), port.get("containerPort").cloned()) {
                    port.set_at(&["hostPort"], number);
                }
            }
        }
    }
}

/// An update without Pod-level resources keeps the stored ones, since its client may not know the field.
fn keep_resources(pod: &mut Value, old: Option<&Value>) {
    const FIELD: [&str; 2] = ["spec", "resources"];
    if let Some(resources) = old.and_then(|old| old.at(&FIELD)).filter(|_| pod.at(&FIELD).is_none()) {
        pod.set_at(&FIELD, resources.clone());
    }
}

/// A new Pod is Pending and gets its quality-of-service class.
pub fn prepare(pod: &mut Value, old: Option<&Value>) {
    keep_resources(pod, old);
    if old.is_none() {
        if let Some(spec) = pod.get_mut("spec") {
            podspec::complete(spec);
        }
        let class = podspec::quality_of_service(pod);
        pod.set_at(&["status"], json!({"phase": "Pending", "qosClass": class}));
        take_label_keys(pod);
        pod_annotations::set_profiles(pod);
        if !list(pod.get("spec").unwrap_or(&Value::Null), "schedulingGates").is_empty() {
            let since = base::clock::now_rfc3339();
            let gated = json!({
                "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": since,
                "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"
            });
            pod.set_at(&["status", "conditions"], Value::Array(vec![gated]));
        }
    }
}

/// A Pod without a ServiceAccount cannot have ServiceAccount tokens in its volumes.
fn tokens_without_account(spec: At) {
    for volume in spec.items_of("volumes") {
        for source in volume.items_of("projected.sources").filter(|source| source.has("serviceAccountToken")) {
            let why = "must not be specified when serviceAccountName is not set";
            source.field("serviceAccountToken").forbidden(why);
        }
    }
}

pub fn validate(pod: At) {
    let (spec, whole) = (pod.field("spec"), pod.in_stage(stages::WHOLE));
    pod_volumes::claim_names(pod);
    validate_spec(spec);
    ["containers", "initContainers"].iter().for_each(|kind| spec.items_of(kind).for_each(podspec::image));
    if !pod.is_update() && !spec.list("ephemeralContainers").is_empty() {
        whole.field("spec.ephemeralContainers").forbidden("cannot be set on create");
    }
    if !pod.is_update() && !spec.text("nodeName").is_empty() && !spec.list("schedulingGates").is_empty() {
        spec.field("nodeName").forbidden("cannot be set until all schedulingGates have been cleared");
    }
    if spec.text("serviceAccountName").is_empty() {
        tokens_without_account(whole.field("spec"));
    }
    pod_annotations::check(pod);
    match spec.old {
        None => pod_annotations::mismatches(pod),
        Some(old) => {
            pod_annotations::changes(pod);
            validate_change(spec.in_stage(stages::UPDATE), old);
        }
    }
}

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

const SECONDS_MAX: i64 = i32::MAX as i64;

fn validate_change(spec: At, old: &Value) {
    for kind in ["containers", "initContainers"] {
        if spec.list(kind).len() != list(old, kind).len() {
            return spec.field(kind).forbidden("pod updates may not add or remove containers");
        }
    }
    let seconds = spec.field("activeDeadlineSeconds");
    match (seconds.value.as_int(), seconds.old.and_then(Value::as_int)) {
        (Some(new), _) if !(0..=SECONDS_MAX).contains(&new) => return seconds.within(0..=SECONDS_MAX),
        (Some(new), Some(old)) if new > old => {
            return seconds.invalid("must be less than or equal to previous value");
        }
        (None, Some(_)) => seconds.invalid("must not update from a positive integer to nil value"),
        _ => {}
    }
    added_tolerations(spec, old);
    removed_gates(spec, old);
    let mut new = with_changeable(spec.value, old);
    take_additions(&mut new, old, spec);
    if !same_fields(&new, old, schema::shape::named("core.v1.PodSpec"), &[]) {
        spec.forbidden(format!("{CHANGEABLE}\n{}", difference(old, &new, "core.PodSpec")));
    }
}

/// The new spec with its mutable fields set back to those of `old`, so that the rest can be compared.
fn with_changeable(spec: &Value, old: &Value) -> Value {
    let mut new = spec.clone();
    for kind in ["containers", "initContainers"] {
        let before = list(old, kind);
        let containers = new.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in containers.zip(before) {
            container.set_at(&["image"], Value::from(text(before, "image")));
        }
    }
    for name in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        restore(&mut new, old, &[name]);
    }
    new
}

/// Tolerations can be added. Existing ones can only change `tolerationSeconds`.
fn added_tolerations(spec: At, old: &Value) {
    let untimed = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.remove_at(&["tolerationSeconds"]);
        toleration.to_json()
    };
    let kept: HashSet<String> = spec.list("tolerations").iter().map(untimed).collect();
    if list(old, "tolerations").iter().any(|toleration| !kept.contains(&untimed(toleration))) {
        spec.field("tolerations").forbidden("existing toleration can not be modified except its tolerationSeconds");
    }
}

/// Scheduling gates can only be removed. If a new gate occurs twice, upstream reports the last occurrence.
fn removed_gates(spec: At, old: &Value) {
    let mut known: HashSet<&str> = list(old, "schedulingGates").iter().map(|gate| text(gate, "name")).collect();
    let mut added: Vec<At> =
        spec.items_of("schedulingGates").rev().filter(|gate| known.insert(gate.text("name"))).collect();
    added.reverse();
    for gate in added {
        let why = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.text("name"));
        gate.field("name").forbidden(why);
    }
}

pub fn template_labels(template: &Value) -> Option<&Map> {
    template.at(&["metadata", "labels"]).and_then(Value::as_object)
}
