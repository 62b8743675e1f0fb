//! Warnings about Pods and Pod templates: accepted fields that are deprecated or have no effect.

use std::collections::{HashMap, HashSet};

use machinery::{Map, Value, names};

use crate::core::pods::pod_annotations;
use crate::limits::WARNINGS_MAX;
use crate::object_warnings::{self, former_key, former_keys, former_label, former_sources, fraction};
use resource::builtin::checks::{list, text};
use schema::at::At;

/// Resources that are measured in bytes.
const BYTES: [&str; 3] = ["ephemeral-storage", "memory", "storage"];

pub fn of_pod(pod: At) {
    if !pod.is_update() {
        object_warnings::of_name(pod, "the Pod's hostname");
        of_template(pod);
    }
}

/// Warns about the Pod template of a workload if the object is new or its generation has changed.
pub fn of_workload(object: At) {
    let (generation, kind) = (object.field("metadata.generation"), object.text("kind"));
    if !object.is_update() && NAMING.contains(&kind) {
        object_warnings::of_name(object, "Pod names and hostnames");
    }
    if generation.old != Some(generation.value) {
        many_indexes(object.field("spec"));
        many_indexes(object.field("spec.jobTemplate.spec"));
        let own = object.field("spec.template");
        // when a ReplicationController is updated, upstream checks the old template
        let warned = own.old.filter(|_| kind == "ReplicationController").map_or(own, |old| own.with_value(old));
        for template in [object.field("template"), warned, object.field("spec.jobTemplate.spec.template")] {
            if template.is_given() {
                of_template(template);
            }
        }
    }
    for claim in object.items_of("spec.volumeClaimTemplates") {
        // in updates, upstream spells the path's `spec` with a capital; otherwise it leaves `spec` out
        let spec = claim.field("spec");
        match object.is_update() {
            true => object_warnings::claim_fractions(spec.with_name("Spec")),
            false => object_warnings::claim_fractions(claim.with_value(spec.value)),
        }
    }
    if kind == "StatefulSet" && object.int("spec.revisionHistoryLimit").is_some_and(|history| history < 0) {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        object.field("spec.revisionHistoryLimit").warn(why);
    }
}

/// The kinds whose names become part of the names and host names of their Pods.
const NAMING: [&str; 5] = ["CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController"];

/// Warns about an indexed Job whose completions and parallelism are both very high.
fn many_indexes(job: At) {
    const COMPLETIONS_MAX: i64 = 100_000;
    const PARALLELISM_MAX: i64 = 10_000;
    if job.text("completionMode") == "Indexed"
        && job.int("completions") > Some(COMPLETIONS_MAX)
        && job.int("parallelism") > Some(PARALLELISM_MAX)
    {
        job.warn("In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail");
    }
}

fn of_template(pod: At) {
    let spec = pod.field("spec");
    former_labels(spec);
    repeated_names(spec);
    volumes(spec);
    pod_annotations::warnings(pod);
    let kinds = ["initContainers", "containers"];
    kinds.iter().for_each(|kind| spec.items_of(kind).for_each(container));
    ports(spec, kinds);
    if spec.int("terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        spec.field("terminationGracePeriodSeconds").warn(why);
    }
    null_selectors(spec);
}

fn former_labels(spec: At) {
    let selector = spec.field("nodeSelector");
    for (key, _) in spec.entries_of("nodeSelector") {
        former_label(key).into_iter().for_each(|why| selector.entry(key).warn(why));
    }
    let affinity = spec.field("affinity.nodeAffinity");
    affinity
        .field("requiredDuringSchedulingIgnoredDuringExecution")
        .items_of("nodeSelectorTerms")
        .for_each(former_keys);
    for term in affinity.items_of("preferredDuringSchedulingIgnoredDuringExecution") {
        let preference = term.field("preference");
        former_keys(preference);
        // no label can have these values
        for requirement in preference.items_of("matchExpressions") {
            for value in requirement.items_of("values") {
                for why in names::label_value(value.as_text()) {
                    value.warn(format!("{} is invalid, {why}", value.as_text()));
                }
            }
        }
    }
    spec.items_of("topologySpreadConstraints").for_each(|constraint| former_key(constraint.field("topologyKey")));
}

fn repeated_names(spec: At) {
    for (kind, name) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut known = HashSet::new();
        for item in spec.items_of(kind).filter(|item| !known.insert(item.text(name))) {
            item.field(name).warn(format!("duplicate {name} {:?}", item.text(name)));
        }
    }
    for secret in spec.items_of("imagePullSecrets").filter(|secret| secret.text("name").is_empty()) {
        secret.field("name").warn("invalid empty name \"\"");
    }
}

fn volumes(spec: At) {
    for volume in spec.items_of("volumes") {
        former_sources(volume);
        fractions(volume.field("ephemeral.volumeClaimTemplate.spec.resources"), "requests");
    }
    for volume in spec.items_of("volumes") {
        let is_empty = |part: &At| part.value.as_object().is_some_and(Map::is_empty);
        for _ in volume.items_of("projected.sources").filter(is_empty).take(WARNINGS_MAX) {
            volume.warn_text(format!("volume {:?} (Projected) has no sources provided", volume.text("name")));
        }
        overlaps(volume);
    }
}

/// The file sources of a volume, or of a part of a projected one: the name of each in warnings, and its paths.
fn file_sources(volume: &Value) -> Vec<(String, Vec<&str>)> {
    let given = |name: &str| volume.get(name).filter(|source| !source.is_null());
    let paths = |source| -> Vec<&str> { list(source, "items").iter().map(|item| text(item, "path")).collect() };
    let mut found = vec![];
    if let Some(source) = given("configMap") {
        found.push((format!("(ConfigMap {:?})", text(source, "name")), paths(source)));
    }
    if let Some(source) = given("secret") {
        let name = [text(source, "secretName"), text(source, "name")].concat();
        found.push((format!("(Secret {name:?})"), paths(source)));
    }
    if let Some(source) = given("downwardAPI") {
        found.push(("(DownwardAPI)".to_owned(), paths(source)));
    }
    if let Some(source) = given("serviceAccountToken") {
        found.push(("(ServiceAccountToken)".to_owned(), vec![text(source, "path")]));
    }
    if let Some(source) = given("clusterTrustBundle") {
        let name = if source.get("name").is_some() { text(source, "name") } else { text(source, "signerName") };
        found.push((format!("(ClusterTrustBundle {name:?})"), vec![text(source, "path")]));
    }
    if let Some(source) = given("podCertificate") {
        let files =
            [("certificateChainPath", "chain"), ("keyPath", "key"), ("credentialBundlePath", "credential bundle")];
        for (name, what) in files.iter().filter(|(name, _)| !text(source, name).is_empty()) {
            found.push((format!("(PodCertificate {what})"), vec![text(source, name)]));
        }
    }
    found
}

/// Warns about files of a volume whose paths are equal, or one of which is below the other.
fn overlaps(volume: At) {
    let (sources, is_projected) = match volume.field("projected.sources").value.as_array() {
        Some(parts) => (parts.iter().flat_map(file_sources).collect(), true),
        None => (file_sources(volume.value), false),
    };
    let Some((first, _)) = sources.first() else { return };
    let of_volume = if is_projected { "(Projected)" } else { first };
    let head = format!("volume {:?} {of_volume}: overlapping paths:", volume.text("name"));
    let mut files: Vec<(&str, String)> = vec![];
    for (source, paths) in &sources {
        let shown = |path: &str| if is_projected { format!("{path:?} {source}") } else { format!("{path:?}") };
        files.extend(paths.iter().map(|path| (*path, shown(path))));
    }
    files.sort();
    files.dedup_by(|next, last| is_projected && next == last);
    let (mut above, mut known): (Vec<&(&str, String)>, HashSet<String>) = (vec![], HashSet::new());
    for file in &files {
        above.retain(|(outer, _)| {
            file.0.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        for (_, outer) in &above {
            if volume.count_warnings() > WARNINGS_MAX {
                return;
            }
            let warning = format!("{head} {} with {outer}", file.1);
            if known.insert(warning.clone()) {
                volume.warn_text(warning);
            }
        }
        if above.last().is_none_or(|last| *last != file) {
            above.push(file);
        }
    }
}

/// Warns about fractions of bytes.
fn fractions(resources: At, kind: &str) {
    resources.entries_of(kind).filter(|(name, _)| BYTES.contains(name)).for_each(|(_, amount)| fraction(amount));
}

fn container(container: At) {
    fractions(container.field("resources"), "limits");
    fractions(container.field("resources"), "requests");
    let mut known = HashSet::new();
    for variable in container.items_of("env") {
        let (name, value) = (variable.text("name"), variable.text("value"));
        // a value that extends the earlier one, such as `$(PATH):/bin`, repeats the name on purpose
        let reference = format!("$({name})");
        let extends = value.contains(&reference) && value != reference && !variable.has("valueFrom");
        if !known.insert(name) && !extends {
            variable.warn(format!("hides previous definition of {name:?}, which may be dropped when using apply"));
        }
    }
}

/// The parts of a port that warnings compare.
struct Port<'a> {
    path: String,
    host: i64,
    address: &'a str,
}

/// Warns about ports of containers that conflict.
fn ports(spec: At, kinds: [&str; 2]) {
    let mut known: HashMap<(i64, &str), Vec<Port<'_>>> = HashMap::new();
    let (mut names, mut repeated): (HashMap<&str, String>, Vec<String>) = (HashMap::new(), vec![]);
    for container in kinds.iter().flat_map(|kind| spec.items_of(kind)) {
        let mut own = vec![];
        for at in container.items_of("ports") {
            let (protocol, address, name) = (at.text("protocol"), at.text("hostIP"), at.text("name"));
            let [number, host] = ["containerPort", "hostPort"].map(|name| at.int(name).unwrap_or_default());
            if spec.count_warnings() + repeated.len() > WARNINGS_MAX {
                break;
            }
            let port = Port { path: at.path().to_string(), host, address };
            if host == 0 && !address.is_empty() {
                at.warn(format!("hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{address}}}"));
            }
            let same_number = known.entry((number, protocol)).or_default();
            for other in same_number.iter().take(WARNINGS_MAX) {
                if let Some(word) = overlap(&port, other) {
                    at.warn(format!("{word} port definition with {}", other.path));
                }
            }
            match names.get(name).filter(|_| !name.is_empty()) {
                Some(first) => repeated.push(format!("{}: duplicate port name {name:?} with {first}, services and probes that select ports by name will use {first}", port.path)),
                None => own.push((name, port.path.clone())),
            }
            same_number.push(port);
        }
        for (name, path) in own {
            names.entry(name).or_insert(path);
        }
    }
    repeated.into_iter().for_each(|warning| spec.warn_text(warning));
}

/// Warns about two ports that have the same container port and conflict.
fn overlap(port: &Port<'_>, other: &Port<'_>) -> Option<&'static str> {
    let is_everywhere = |port: &Port<'_>| port.address.is_empty();
    if port.host == other.host && port.address == other.address {
        Some("duplicate")
    } else if port.host == other.host && (is_everywhere(port) || is_everywhere(other)) {
        Some("dangerously ambiguous")
    } else if port.host == 0 || other.host == 0 {
        Some("overlapping")
    } else {
        None
    }
}

fn null_selectors(spec: At) {
    let check = |term: At| {
        if !term.has("labelSelector") {
            term.field("labelSelector").warn("a null labelSelector results in matching no pod");
        }
    };
    spec.items_of("topologySpreadConstraints").for_each(check);
    for kind in ["affinity.podAffinity", "affinity.podAntiAffinity"] {
        let terms = spec.field(kind);
        terms.items_of("requiredDuringSchedulingIgnoredDuringExecution").for_each(check);
        let weighted = terms.items_of("preferredDuringSchedulingIgnoredDuringExecution");
        weighted.for_each(|term| check(term.field("podAffinityTerm")));
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Release, json};

    use super::*;
    use schema::at::warnings_of;

    #[test]
    fn variables_that_extend_the_former_hide_nothing() {
        let hides = |second: Value| {
            let env = json!([{"name": "A", "value": "1"}, (second)]);
            !warnings_of(&json!({"env": (env)}), None, Release::NEWEST, container).is_empty()
        };
        assert!(!hides(json!({"name": "A", "value": "$(A)2"})) && !hides(json!({"name": "B", "value": "2"})));
        assert!(hides(json!({"name": "A", "value": "$(A)"})) && hides(json!({"name": "A", "value": "2"})));
        let both = json!({"name": "A", "value": "$(A)2", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
        assert!(hides(both) && hides(json!({"name": "A"})));
    }

    #[test]
    fn equal_ports_and_nested_paths_are_compared_up_to_a_bound() {
        let ports: Vec<Value> = (0..20_000).map(|_| json!({"containerPort": 80, "protocol": "TCP"})).collect();
        let files: Vec<Value> = (0..20_000).map(|_| json!({"path": "a"})).collect();
        let sources = json!([{"configMap": {"name": "c", "items": files}}]);
        let pod = json!({"spec": {
            "containers": [{"name": "c", "ports": ports}],
            "volumes": [{"name": "v", "projected": {"sources": sources}}]
        }});
        assert!(warnings_of(&pod, None, Release::NEWEST, of_pod).len() < 3 * WARNINGS_MAX);
    }
}
