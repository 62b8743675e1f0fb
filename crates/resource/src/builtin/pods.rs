//! Pods, and the templates of Pods in other kinds.

use std::collections::{HashMap, HashSet};

use machinery::field::{FieldError, FieldPath};
use machinery::{Map, Release, Value, json};
use schema::shape::same_fields;

use super::checks::{items, list, text};
use super::defaults::restore;
use super::pod_gates::take_additions;
use super::podspec::{self, image_errors, take_label_keys};
pub use super::podspec::{selector_operators, validate_spec};
use super::{pod_annotations, pod_volumes};

/// The lists of containers in a Pod's spec.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Replaces the Pod by the stored one, except for the part that `take` copies from the request.
fn keep_all_but(pod: &mut Value, old: &Value, take: impl FnOnce(&mut Value, &Value)) {
    let new = std::mem::replace(pod, old.clone());
    for name in ["generateName", "managedFields", "resourceVersion"] {
        restore(pod, &new, &["metadata", name]);
    }
    take(pod, &new);
    if !super::is_same("core.v1.Pod", pod, old) {
        super::track_generation(pod, Some(old));
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
pub fn validate_ephemeral(pod: &Value, old: &Value, _release: Release) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let mut errors = vec![];
    let (spec, old) = (pod.get("spec").unwrap_or(&Value::Null), old.get("spec").unwrap_or(&Value::Null));
    validate_spec(spec, &path, &mut errors);
    let list_path = path.child("ephemeralContainers");
    let mut by_name = HashMap::new();
    for container in list(spec, "ephemeralContainers") {
        by_name.entry(text(container, "name")).or_insert(container);
    }
    for former in list(old, "ephemeralContainers") {
        let name = text(former, "name");
        match by_name.get(name).copied() {
            None => errors.push(FieldError::forbidden(
                &list_path,
                format!("existing ephemeral containers {name:?} may not be removed\n"),
            )),
            Some(container) if container != former => {
                let print = |container| machinery::types::internal_json(container, "core.EphemeralContainer", true);
                let difference = machinery::difflines::unified(&print(former), &print(container));
                let why = format!("existing ephemeral containers {name:?} may not be changed\n{difference}");
                errors.push(FieldError::forbidden(&list_path, why));
            }
            Some(_) => {}
        }
    }
    errors
}

/// The subresource `resize` writes only the resources of containers.
pub fn resize(pod: &mut Value, old: &Value) {
    let new = pod.clone();
    keep_all_but(pod, old, |pod, _| {
        for kind in ["containers", "initContainers"] {
            let given = list(new.get("spec").unwrap_or(&Value::Null), kind).to_vec();
            let kept = pod.get_mut("spec").and_then(|spec| spec.get_mut(kind)).and_then(Value::as_array_mut);
            let Some(kept) = kept.filter(|kept| kept.len() == given.len()) else { continue };
            for (container, given) in kept.iter_mut().zip(&given) {
                if text(container, "name") != text(given, "name") {
                    continue;
                }
                for field in ["resources", "resizePolicy"] {
                    restore(container, given, &[field]);
                }
            }
        }
    });
}

pub fn validate_resize(pod: &Value, old: &Value, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    validate_spec(pod.get("spec").unwrap_or(&Value::Null), &path, &mut errors);
    let class = old.str_at(&["status", "qosClass"]);
    if podspec::quality_of_service(pod) != class {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&path, &Value::from(class), why));
    }
    errors
}

/// The grace period for deleting a Pod, in seconds; 0 if the Pod is not assigned to a Node or has ended.
pub fn grace(pod: &Value, given: Option<i64>) -> i64 {
    let own = || pod.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_int).unwrap_or_default();
    let unassigned = pod.str_at(&["spec", "nodeName"]).is_empty();
    match given.unwrap_or_else(own) {
        _ if unassigned || ["Failed", "Succeeded"].contains(&pod.str_at(&["status", "phase"])) => 0,
        ..0 => 1,
        seconds => seconds,
    }
}

pub fn default(pod: &mut Value) {
    super::pod_status::default(pod);
    let Some(spec) = pod.get_mut("spec") else { return };
    default_spec(spec);
    if spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or_default() {
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
fn tokens_without_account(spec: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (path, volume) in items(spec, "volumes", path) {
        let Some(volume) = volume.get("projected") else { continue };
        for (path, source) in items(volume, "sources", &path.child("projected")) {
            if source.get("serviceAccountToken").is_some() {
                let why = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&path.child("serviceAccountToken"), why));
            }
        }
    }
}

pub fn validate(pod: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    pod_volumes::claim_names(pod, &path, &mut errors);
    validate_spec(spec, &path, &mut errors);
    for name in ["containers", "initContainers"] {
        items(spec, name, &path).for_each(|(path, container)| image_errors(container, &path, &mut errors));
    }
    if old.is_none() && !list(spec, "ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(&path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if old.is_none() && !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), why));
    }
    if text(spec, "serviceAccountName").is_empty() {
        tokens_without_account(spec, &path, &mut errors);
    }
    let annotations = FieldPath::new("metadata").child("annotations");
    pod_annotations::errors(pod, old, &annotations, &mut errors);
    match old {
        None => pod_annotations::mismatches(pod, &path, &mut errors),
        Some(old) => pod_annotations::change_errors(pod, old, &annotations, &mut errors),
    }
    if let Some(old) = old.and_then(|old| old.get("spec")) {
        validate_change(spec, old, &path, &mut errors);
    }
    errors
}

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

const SECONDS_MAX: i64 = i32::MAX as i64;

fn validate_change(spec: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for kind in ["containers", "initContainers"] {
        if list(spec, kind).len() != list(old, kind).len() {
            errors.push(FieldError::forbidden(&path.child(kind), "pod updates may not add or remove containers"));
            return;
        }
    }
    let seconds = |spec: &Value| spec.get("activeDeadlineSeconds").and_then(Value::as_int);
    match (seconds(spec), seconds(old)) {
        (Some(new), _) if !(0..=SECONDS_MAX).contains(&new) => {
            let why = format!("must be between 0 and {SECONDS_MAX}, inclusive");
            return errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), &Value::Int(new), why));
        }
        (Some(new), Some(old)) if new > old => {
            let why = "must be less than or equal to previous value";
            return errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), &Value::Int(new), why));
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), &Value::Null, why));
        }
        _ => {}
    }
    added_tolerations(spec, old, path, errors);
    removed_gates(spec, old, path, errors);
    let mut new = with_changeable(spec, old);
    take_additions(&mut new, old, path, errors);
    if !same_fields(&new, old, schema::shape::named("core.v1.PodSpec"), &[]) {
        let print = |spec: &Value| machinery::types::internal_json(spec, "core.PodSpec", true);
        let difference = machinery::difflines::unified(&print(old), &print(&new));
        errors.push(FieldError::forbidden(path, format!("{CHANGEABLE}\n{difference}")));
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
fn added_tolerations(spec: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let untimed = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.remove_at(&["tolerationSeconds"]);
        toleration
    };
    let kept: HashSet<String> =
        list(spec, "tolerations").iter().map(|toleration| untimed(toleration).to_json()).collect();
    let is_changed = |toleration: &Value| !kept.contains(&untimed(toleration).to_json());
    if list(old, "tolerations").iter().any(is_changed) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&path.child("tolerations"), why));
    }
}

/// Scheduling gates can only be removed. If a new gate occurs twice, upstream reports the last occurrence.
fn removed_gates(spec: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut known: HashSet<&str> = list(old, "schedulingGates").iter().map(|gate| text(gate, "name")).collect();
    let (path, start) = (path.child("schedulingGates"), errors.len());
    for (i, gate) in list(spec, "schedulingGates").iter().enumerate().rev() {
        let name = text(gate, "name");
        if known.insert(name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(&path.index(i).child("name"), why));
        }
    }
    errors[start..].reverse();
}

/// The labels of a template of Pods.
pub fn template_labels(template: &Value) -> Option<&Map> {
    template.at(&["metadata", "labels"]).and_then(Value::as_object)
}
