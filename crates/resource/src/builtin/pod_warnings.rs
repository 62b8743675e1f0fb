//! Warnings about Pods and Pod templates: accepted fields that are deprecated or have no effect.

use std::collections::{HashMap, HashSet};

use machinery::field::FieldPath;
use machinery::quantity::Quantity;
use machinery::{Map, Release, Value, names};

use super::checks::{entries, items, list, text};
use super::object_warnings::{self, former_keys, former_label, former_sources};
use super::pod_annotations;
use crate::limits::WARNINGS_MAX;

/// Resources that are measured in bytes.
const BYTES: [&str; 3] = ["ephemeral-storage", "memory", "storage"];

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

pub fn of_pod(pod: &Value, old: Option<&Value>, _release: Release) -> Vec<String> {
    if old.is_some() {
        return vec![];
    }
    let name = object_warnings::of_name(pod, "the Pod's hostname");
    name.into_iter().chain(of_spec(pod, &FieldPath::root())).collect()
}

/// Warns about the Pod template of a workload if the object is new or its generation has changed.
pub fn of_workload(object: &Value, old: Option<&Value>, _release: Release) -> Vec<String> {
    let generation = |object: &Value| object.at(&["metadata", "generation"]).cloned();
    let is_counted = old.is_none_or(|old| generation(old) != generation(object));
    // when a ReplicationController is updated, upstream checks the old template
    let warned = old.filter(|_| object.str_at(&["kind"]) == "ReplicationController").unwrap_or(object);
    let spec = FieldPath::new("spec");
    let mut warnings = vec![];
    if old.is_none() && NAMING.contains(&object.str_at(&["kind"])) {
        warnings.extend(object_warnings::of_name(object, "Pod names and hostnames"));
    }
    if is_counted {
        for (job, path) in [
            (object.get("spec"), spec.clone()),
            (object.at(&["spec", "jobTemplate", "spec"]), spec.child("jobTemplate").child("spec")),
        ] {
            warnings.extend(job.and_then(|job| many_indexes(job, &path)));
        }
    }
    for (template, path) in [
        (object.get("template"), FieldPath::new("template")),
        (warned.at(&["spec", "template"]), spec.child("template")),
        (
            object.at(&["spec", "jobTemplate", "spec", "template"]),
            spec.child("jobTemplate").child("spec").child("template"),
        ),
    ] {
        if let Some(template) = template.filter(|template| is_counted && !template.is_null()) {
            warnings.extend(of_spec(template, &path));
        }
    }
    for (path, claim) in items(object.get("spec").unwrap_or(&Value::Null), "volumeClaimTemplates", &spec) {
        // in updates, upstream spells the path's `spec` with a capital; otherwise it leaves `spec` out
        let path = if old.is_none() { path } else { path.child("Spec") };
        let claim = claim.get("spec").unwrap_or(&Value::Null);
        object_warnings::claim_fractions(claim, &path, &mut warnings);
    }
    let history = object.at(&["spec", "revisionHistoryLimit"]).and_then(Value::as_int);
    if object.str_at(&["kind"]) == "StatefulSet" && history.is_some_and(|history| history < 0) {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .to_owned(),
        );
    }
    warnings
}

/// The kinds whose names become part of the names and host names of their Pods.
const NAMING: [&str; 5] = ["CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController"];

/// Warns about an indexed Job whose completions and parallelism are both very high.
fn many_indexes(job: &Value, path: &FieldPath) -> Option<String> {
    const COMPLETIONS_MAX: i64 = 100_000;
    const PARALLELISM_MAX: i64 = 10_000;
    let number = |name: &str| job.get(name).and_then(Value::as_int).unwrap_or_default();
    let is_many = text(job, "completionMode") == "Indexed"
        && number("completions") > COMPLETIONS_MAX
        && number("parallelism") > PARALLELISM_MAX;
    const WHY: &str = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
    is_many.then(|| format!("{path}: {WHY}"))
}

/// The warnings about a Pod or a Pod template.
fn of_spec(pod: &Value, root: &FieldPath) -> Vec<String> {
    let mut warnings = vec![];
    let (spec, path) = (pod.get("spec").unwrap_or(&Value::Null), root.child("spec"));
    former_labels(spec, &path, &mut warnings);
    repeated_names(spec, &path, &mut warnings);
    volumes(spec, &path, &mut warnings);
    pod_annotations::warnings(pod, root, &mut warnings);
    let containers = ["initContainers", "containers"].into_iter().flat_map(|kind| items(spec, kind, &path));
    let containers: Vec<(FieldPath, &Value)> = containers.collect();
    containers.iter().for_each(|(path, inner)| container(inner, path, &mut warnings));
    ports(&containers, &mut warnings);
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_int).is_some_and(|seconds| seconds < 0) {
        let path = path.child("terminationGracePeriodSeconds");
        warnings.push(format!("{path}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    null_selectors(spec, &path, &mut warnings);
    warnings
}

/// Warns about values in the expressions of a preferred term that no label can have.
fn odd_values(term: &Value, path: &FieldPath, warnings: &mut Vec<String>) {
    for (path, requirement) in items(term, "matchExpressions", path) {
        for (path, value) in items(requirement, "values", &path) {
            let value = value.as_str().unwrap_or_default();
            let problems = names::label_value(value).into_iter();
            warnings.extend(problems.map(|why| format!("{path}: {value} is invalid, {why}")));
        }
    }
}

fn former_labels(spec: &Value, path: &FieldPath, warnings: &mut Vec<String>) {
    for (key, _) in entries(spec, &["nodeSelector"]) {
        if let Some(why) = former_label(key) {
            warnings.push(format!("{}: {why}", path.child("nodeSelector").key(key)));
        }
    }
    let path_of_affinity = path.child("affinity").child("nodeAffinity");
    let affinity = spec.at(&["affinity", "nodeAffinity"]).unwrap_or(&Value::Null);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    if let Some(selector) = affinity.get(required) {
        let path = path_of_affinity.child(required);
        items(selector, "nodeSelectorTerms", &path).for_each(|(path, term)| warnings.extend(former_keys(term, &path)));
    }
    for (path, term) in items(affinity, "preferredDuringSchedulingIgnoredDuringExecution", &path_of_affinity) {
        let (term, path) = (term.get("preference").unwrap_or(&Value::Null), path.child("preference"));
        warnings.extend(former_keys(term, &path));
        odd_values(term, &path, warnings);
    }
    for (path, constraint) in items(spec, "topologySpreadConstraints", path) {
        let key = text(constraint, "topologyKey");
        if let Some(why) = former_label(key) {
            warnings.push(format!("{}: {key} is {why}", path.child("topologyKey")));
        }
    }
}

fn repeated_names(spec: &Value, path: &FieldPath, warnings: &mut Vec<String>) {
    for (kind, name) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut known = HashSet::new();
        for (path, item) in items(spec, kind, path) {
            let given = text(item, name);
            if !known.insert(given) {
                warnings.push(format!("{}: duplicate {name} {given:?}", path.child(name)));
            }
        }
    }
    for (path, _) in items(spec, "imagePullSecrets", path).filter(|(_, secret)| text(secret, "name").is_empty()) {
        warnings.push(format!("{}: invalid empty name \"\"", path.child("name")));
    }
}

fn volumes(spec: &Value, path: &FieldPath, warnings: &mut Vec<String>) {
    for (path, volume) in items(spec, "volumes", path) {
        warnings.extend(former_sources(volume, &path));
        let template = ["ephemeral", "volumeClaimTemplate", "spec", "resources"];
        let (resources, last) = (volume.at(&template), template.iter().fold(path, |path, name| path.child(name)));
        fractions(resources, "requests", &last, warnings);
    }
    for volume in list(spec, "volumes") {
        let parts = volume.at(&["projected", "sources"]).and_then(Value::as_array).unwrap_or_default();
        let is_empty = |part: &&Value| part.as_object().is_some_and(Map::is_empty);
        for _ in parts.iter().filter(is_empty).take(WARNINGS_MAX) {
            warnings.push(format!("volume {:?} (Projected) has no sources provided", text(volume, "name")));
        }
        overlaps(volume, warnings);
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
fn overlaps(volume: &Value, warnings: &mut Vec<String>) {
    let (sources, is_projected) = match volume.at(&["projected", "sources"]).and_then(Value::as_array) {
        Some(parts) => (parts.iter().flat_map(file_sources).collect(), true),
        None => (file_sources(volume), false),
    };
    let Some((first, _)) = sources.first() else { return };
    let of_volume = if is_projected { "(Projected)" } else { first };
    let head = format!("volume {:?} {of_volume}: overlapping paths:", text(volume, "name"));
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
            if warnings.len() > WARNINGS_MAX {
                return;
            }
            let warning = format!("{head} {} with {outer}", file.1);
            if known.insert(warning.clone()) {
                warnings.push(warning);
            }
        }
        if above.last().is_none_or(|last| *last != file) {
            above.push(file);
        }
    }
}

/// Warns about fractions of bytes.
fn fractions(resources: Option<&Value>, kind: &str, path: &FieldPath, warnings: &mut Vec<String>) {
    let amounts = resources.and_then(|resources| resources.get(kind)).and_then(Value::as_object);
    for (name, amount) in amounts.into_iter().flat_map(Map::iter).filter(|(name, _)| BYTES.contains(&name.as_str())) {
        if let Ok(amount) = Quantity::of(amount)
            && !amount.is_whole()
        {
            let path = path.child(kind).key(name);
            let shown = amount.rounded_to_thousandths();
            warnings.push(format!("{path}: fractional byte value \"{shown}\" is invalid, must be an integer"));
        }
    }
}

fn container(container: &Value, path: &FieldPath, warnings: &mut Vec<String>) {
    for kind in ["limits", "requests"] {
        fractions(container.get("resources"), kind, &path.child("resources"), warnings);
    }
    let mut known = HashSet::new();
    for (path, variable) in items(container, "env", path) {
        let name = text(variable, "name");
        // a value that extends the earlier one, such as `$(PATH):/bin`, repeats the name on purpose
        let reference = format!("$({name})");
        let value = text(variable, "value");
        let extends = value.contains(&reference) && value != reference && variable.get("valueFrom").is_none();
        if !known.insert(name) && !extends {
            warnings
                .push(format!("{path}: hides previous definition of {name:?}, which may be dropped when using apply"));
        }
    }
}

/// The parts of a port that warnings compare.
struct Port<'a> {
    path: FieldPath,
    host: i64,
    address: &'a str,
}

fn ports(containers: &[(FieldPath, &Value)], warnings: &mut Vec<String>) {
    let number = |port: &Value, name: &str| port.get(name).and_then(Value::as_int).unwrap_or_default();
    let mut known: HashMap<(i64, &str), Vec<Port<'_>>> = HashMap::new();
    let (mut names, mut repeated): (HashMap<&str, FieldPath>, Vec<String>) = (HashMap::new(), vec![]);
    for (path, container) in containers {
        let mut own = vec![];
        for (path, value) in items(container, "ports", path) {
            let (protocol, address, name) = (text(value, "protocol"), text(value, "hostIP"), text(value, "name"));
            let (number, host) = (number(value, "containerPort"), number(value, "hostPort"));
            if warnings.len() + repeated.len() > WARNINGS_MAX {
                break;
            }
            let port = Port { path, host, address };
            let path = &port.path;
            if host == 0 && !address.is_empty() {
                warnings.push(format!("{path}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{address}}}"));
            }
            let same_number = known.entry((number, protocol)).or_default();
            for other in same_number.iter().take(WARNINGS_MAX) {
                if let Some(word) = overlap(&port, other) {
                    warnings.push(format!("{path}: {word} port definition with {}", other.path));
                }
            }
            match names.get(name).filter(|_| !name.is_empty()) {
                Some(first) => repeated.push(format!("{path}: duplicate port name {name:?} with {first}, services and probes that select ports by name will use {first}")),
                None => own.push((name, path.clone())),
            }
            same_number.push(port);
        }
        for (name, path) in own {
            names.entry(name).or_insert(path);
        }
    }
    warnings.extend(repeated);
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

fn null_selectors(spec: &Value, path: &FieldPath, warnings: &mut Vec<String>) {
    let is_null = |term: &Value| term.get("labelSelector").is_none_or(Value::is_null);
    let mut warn = |path: FieldPath| warnings.push(format!("{}: {NO_SELECTOR}", path.child("labelSelector")));
    items(spec, "topologySpreadConstraints", path).filter(|(_, item)| is_null(item)).for_each(|(path, _)| warn(path));
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (terms, path) = (spec.at(&["affinity", kind]).unwrap_or(&Value::Null), path.child("affinity").child(kind));
        let required = items(terms, "requiredDuringSchedulingIgnoredDuringExecution", &path);
        required.filter(|(_, term)| is_null(term)).for_each(|(path, _)| warn(path));
        for (path, term) in items(terms, "preferredDuringSchedulingIgnoredDuringExecution", &path) {
            if term.get("podAffinityTerm").is_none_or(is_null) {
                warn(path.child("podAffinityTerm"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn variables_that_extend_the_former_hide_nothing() {
        let hides = |second: Value| {
            let mut warnings = vec![];
            let env = json!([{"name": "A", "value": "1"}, (second)]);
            container(&json!({"env": (env)}), &FieldPath::new("c"), &mut warnings);
            !warnings.is_empty()
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
        assert!(of_pod(&pod, None, Release::default()).len() < 3 * WARNINGS_MAX);
    }
}
