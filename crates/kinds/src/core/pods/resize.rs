//! The subresource `resize` of Pods: it changes the amounts of cpu and memory, and nothing else.

use machinery::field::FieldPath;
use machinery::{Release, Value};
use schema::shape::{named, same_fields};

use crate::core::pods::keep_all_but;
use crate::core::pods::pod_annotations::is_mirror;
use crate::core::podspec::{self, validate_spec};
use resource::builtin::checks::{list, text};
use resource::builtin::defaults::restore;
use schema::at::At;

const LISTS: [&str; 2] = ["containers", "initContainers"];

const AMOUNTS: [&str; 2] = ["requests", "limits"];

const RESIZABLE: [&str; 2] = ["cpu", "memory"];

fn containers<'v>(pod: &'v Value, kind: &str) -> &'v [Value] {
    pod.get("spec").map(|spec| list(spec, kind)).unwrap_or_default()
}

/// Keeps the stored Pod except for resources and their policies. A Pod with other containers stays as requested, and
/// validation rejects it.
pub fn prepare(pod: &mut Value, old: &Value) {
    let count = |pod: &Value| LISTS.map(|kind| containers(pod, kind).len());
    if count(pod) != count(old) {
        return;
    }
    keep_all_but(pod, old, |pod, new| {
        for kind in LISTS {
            let given = containers(new, kind);
            let Some(kept) = pod.get_mut("spec").and_then(|spec| spec.get_mut(kind)).and_then(Value::as_array_mut)
            else {
                continue;
            };
            if kept.iter().zip(given).any(|(kept, given)| text(kept, "name") != text(given, "name")) {
                given.clone_into(kept);
                continue;
            }
            for (container, given) in kept.iter_mut().zip(given) {
                for field in ["resources", "resizePolicy"] {
                    restore(container, given, &[field]);
                }
            }
        }
        if new.at(&["spec", "resources"]).is_some_and(|resources| !resources.is_null()) {
            restore(pod, new, &["spec", "resources"]);
        }
        if let Some(spec) = pod.get_mut("spec") {
            podspec::complete(spec);
        }
    });
}

pub fn validate(pod: At) {
    let old = pod.old.unwrap_or(&Value::Null);
    // kube-apiserver's ValidatePodResize names a path without a name, which is printed so
    let whole = FieldPath::new("").key("");
    if is_mirror(old) {
        return pod.with_path(&whole).forbidden("static pods cannot be resized");
    }
    if old.str_at(&["spec", "os", "name"]) == "windows" {
        return pod.with_path(&whole).forbidden("windows pods cannot be resized");
    }
    let spec = pod.field("spec");
    validate_spec(spec);
    let class = pod.field("status.qosClass").old_text();
    if podspec::quality_of_service(pod.value) != class {
        spec.shown_as_text(class).invalid("Pod QOS Class may not change as a result of resizing");
    }
    let running = list(old.get("status").unwrap_or(&Value::Null), "containerStatuses").iter();
    let mut running = running.filter(|status| status.at(&["state", "running"]).is_some());
    if running.next().is_some_and(|status| status.get("resources").is_none()) {
        spec.forbidden("Pod running on node without support for resize");
    }
    if !check_whole(pod, old) || !check_order(spec, old) {
        return;
    }
    for kind in ["initContainers", "containers"] {
        for (container, old) in spec.items_of(kind).zip(containers(old, kind)) {
            if kind == "containers" || is_resizable(old, pod.release()) {
                check_removed(container.field("resources"), old.get("resources"), "resource");
            }
        }
    }
    for (container, old) in spec.items_of("containers").zip(containers(old, "containers")) {
        spec.forbidden_if(!is_same(&masked(container.value, old), old), "only cpu and memory resources are mutable");
    }
    for (container, old) in spec.items_of("initContainers").zip(containers(old, "initContainers")) {
        check_init(spec, container, old);
    }
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn is_resizable(container: &Value, release: Release) -> bool {
    is_sidecar(container) || release >= Release::V1_36
}

fn is_same(container: &Value, old: &Value) -> bool {
    same_fields(container, old, named("core.v1.Container"), &[])
}

fn check_init(spec: At, container: At, old: &Value) {
    let is_modified = !is_same(container.value, old);
    if !is_resizable(container.value, spec.release()) {
        spec.forbidden_if(is_modified, "resources for non-sidecar init containers are immutable");
        return;
    }
    if !is_same(&masked(container.value, old), old) {
        container.forbidden("only cpu and memory resources for init or sidecar containers are mutable");
    }
    let restarts = |policy: &Value| text(policy, "restartPolicy") == "RestartContainer";
    if is_modified && !is_sidecar(container.value) {
        for _ in container.list("resizePolicy").iter().filter(|policy| restarts(policy)) {
            container
                .forbidden("non-sidecar init containers with a resize policy of RestartContainer cannot be resized");
        }
    }
}

/// The container with the amounts of cpu and memory that `old` has.
fn masked(container: &Value, old: &Value) -> Value {
    let mut masked = container.clone();
    for kind in AMOUNTS {
        let is_given = |container: &Value| container.at(&["resources", kind]).is_some();
        if !is_given(container) && !is_given(old) {
            continue;
        }
        for name in RESIZABLE {
            masked.put_at(&["resources", kind, name], old.at(&["resources", kind, name]).cloned());
        }
    }
    masked
}

/// Amounts may be changed but not removed.
fn check_removed(resources: At, old: Option<&Value>, what: &str) {
    let Some(old) = old else { return };
    for kind in AMOUNTS {
        if old.fields_at(&[kind]).any(|(name, _)| resources.field(kind).value.get(name).is_none_or(Value::is_null)) {
            resources.field(kind).forbidden(format!("{what} {kind} cannot be removed"));
        }
    }
}

/// Checks the resources of the Pod itself. Returns false if nothing else is checked.
fn check_whole(pod: At, old: &Value) -> bool {
    let is_set = |pod: &Value| AMOUNTS.iter().any(|kind| pod.fields_at(&["spec", "resources", kind]).next().is_some());
    if !is_set(pod.value) && !is_set(old) {
        return true;
    }
    if pod.release() < Release::V1_36 {
        let why = "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled \
                   feature gate is disabled";
        pod.with_path(&FieldPath::new("")).forbidden(why);
        return false;
    }
    let (spec, resources) = (pod.field("spec"), pod.field("spec.resources"));
    check_removed(resources, old.at(&["spec", "resources"]), "pod-level resource");
    let others = |pod: &Value| -> Vec<(String, Value)> {
        let of = |kind: &'static str| pod.fields_at(&["spec", "resources", kind]).map(move |(name, v)| (kind, name, v));
        let all = AMOUNTS.into_iter().flat_map(of).filter(|(_, name, _)| !RESIZABLE.contains(&name.as_str()));
        let mut all: Vec<_> = all.map(|(kind, name, amount)| (format!("{kind}/{name}"), amount.clone())).collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    };
    spec.forbidden_if(others(pod.value) != others(old), "only cpu and memory resources are mutable at pod-level");
    true
}

/// Whether the containers are those of the stored Pod, in the same order.
fn check_order(spec: At, old: &Value) -> bool {
    let before = spec.count();
    for kind in LISTS {
        let (given, old) = (spec.list(kind), containers(old, kind));
        if given.len() != old.len() {
            spec.field(kind).forbidden(format!("{kind} may not be added or removed on resize"));
            continue;
        }
        for (container, _) in
            spec.items_of(kind).zip(old).filter(|(given, old)| given.text("name") != text(old, "name"))
        {
            container.field("name").forbidden(format!("{kind} may not be renamed or reordered on resize"));
        }
    }
    spec.count() == before
}

#[cfg(test)]
mod tests {
    use machinery::yaml;

    use super::*;
    use schema::at::errors_of;

    const POD: &str = "kind: Pod\nmetadata: {generation: 1}\nspec:\n  containers:\n  - {name: c, resizePolicy: [{resourceName: cpu, \
                       restartPolicy: NotRequired}], resources: {requests: {cpu: 100m, memory: 1Mi}, limits: {cpu: 200m, memory: \
                       2Mi}}}\n  - {name: d}\n  initContainers:\n  - {name: n}\n  - {name: s, restartPolicy: Always, resources: \
                       {requests: {cpu: 1m}}}\nstatus: {qosClass: Burstable}\n";

    /// Errors of the resize, without those of the spec as a whole.
    fn errors(from: &str, old: &str, to: &str) -> Vec<String> {
        let value = |text: &str| yaml::decode(text.as_bytes()).unwrap().value;
        assert!(old.contains(from), "{from}");
        let (mut pod, old) = (value(&old.replacen(from, to, 1)), value(old));
        prepare(&mut pod, &old);
        let known = errors_of(&pod, None, Release::NEWEST, |at| validate_spec(at.field("spec")));
        let found = errors_of(&pod, Some(&old), Release::NEWEST, validate);
        found.iter().filter(|error| !known.contains(error)).map(ToString::to_string).collect()
    }

    #[test]
    fn only_amounts_of_cpu_and_memory_change() {
        const MUTABLE: &str = "spec: Forbidden: only cpu and memory resources are mutable";
        for (from, old, to, want) in [
            ("cpu: 100m", POD, "cpu: 150m", vec![]),
            ("memory: 2Mi", POD, "memory: 3Mi", vec![]),
            ("name: d", POD, "name: d, resources: {requests: {cpu: 1m}}", vec![]),
            ("name: d", POD, "name: d, image: other", vec![]),
            (
                "cpu: 100m, ",
                POD,
                "",
                vec!["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
            ),
            (
                ", limits: {cpu: 200m, memory: 2Mi}",
                POD,
                "",
                vec!["spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"],
            ),
            ("memory: 1Mi", POD, "memory: 1Mi, ephemeral-storage: 1Gi", vec![MUTABLE]),
            ("name: d", POD, "name: d, resources: {limits: {nvidia.com/gpu: '1'}}", vec![MUTABLE]),
            (
                "resources: {requests: {cpu: 100m",
                POD,
                "resources: {claims: [{name: x}], requests: {cpu: 100m",
                vec![MUTABLE],
            ),
            ("NotRequired", POD, "RestartContainer", vec![MUTABLE]),
            (
                "- {name: d}",
                POD,
                "- {name: d}\n  - {name: e}",
                vec!["spec.containers: Forbidden: containers may not be added or removed on resize"],
            ),
            (
                "name: d",
                POD,
                "name: e",
                vec!["spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize"],
            ),
            ("name: n", POD, "name: n, resources: {requests: {cpu: 1m}}", vec![]),
        ] {
            assert_eq!(errors(from, old, to), want, "{from} -> {to}");
        }
    }

    #[test]
    fn other_containers_pods_and_nodes_have_rules_of_their_own() {
        let windows = POD.replace("spec:\n", "spec:\n  os: {name: windows}\n");
        let mirrored = POD.replace("generation: 1", "annotations: {kubernetes.io/config.mirror: a}");
        let whole = POD.replace(
            "spec:\n",
            "spec:\n  resources: {requests: {cpu: '1', hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: 2Mi}}\n",
        );
        let running = POD.replace("qosClass", "containerStatuses: [{name: c, state: {running: {}}}], qosClass");
        for (from, old, to, want) in [
            (
                "name: n",
                POD,
                "name: n, resources: {requests: {ephemeral-storage: 1Mi}}",
                vec![
                    "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are mutable",
                ],
            ),
            ("cpu: 1m", POD, "cpu: 2m", vec![]),
            ("cpu: 100m", &windows, "cpu: 150m", vec!["[]: Forbidden: windows pods cannot be resized"]),
            ("cpu: 100m", &mirrored, "cpu: 150m", vec!["[]: Forbidden: static pods cannot be resized"]),
            (
                "cpu: 100m",
                &running,
                "cpu: 150m",
                vec!["spec: Forbidden: Pod running on node without support for resize"],
            ),
            ("cpu: '1'", &whole, "cpu: '2'", vec![]),
            ("cpu: '1', ", &whole, "", vec![]),
            (
                "hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: 2Mi",
                &whole,
                "hugepages-2Mi: 4Mi}, limits: {hugepages-2Mi: 4Mi",
                vec!["spec: Forbidden: only cpu and memory resources are mutable at pod-level"],
            ),
        ] {
            assert_eq!(errors(from, old, to), want, "{from} -> {to}");
        }
    }

    #[test]
    fn resources_of_the_pod_are_changed() {
        let value = |text: &str| yaml::decode(text.as_bytes()).unwrap().value;
        let old = value(&POD.replace("spec:\n", "spec:\n  resources: {requests: {cpu: '1', memory: 1Mi}}\n"));
        let mut pod = value(&POD.replace("spec:\n", "spec:\n  resources: {requests: {cpu: '2'}}\n"));
        prepare(&mut pod, &old);
        assert_eq!(pod.str_at(&["spec", "resources", "requests", "cpu"]), "2");
        assert_eq!(pod.at(&["metadata", "generation"]), Some(&Value::Int(2)));
        let mut unaware = value(POD);
        prepare(&mut unaware, &old);
        assert_eq!(unaware.at(&["spec", "resources"]), old.at(&["spec", "resources"]));
    }
}
