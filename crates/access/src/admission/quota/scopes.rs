//! The scopes of a quota, which select the objects that it limits.

use machinery::Value;

/// The scopes of a quota. Those in `scopes` are names only, and mean `Exists`; those of `scopeSelector` have an operator.
pub fn scopes(quota: &Value) -> Vec<Value> {
    let list = |path: &[&str]| quota.items_at(path).to_vec();
    let plain = list(&["spec", "scopes"]).into_iter();
    let plain = plain.map(|name| [("scopeName", name), ("operator", Value::from("Exists"))].into());
    plain.chain(list(&["spec", "scopeSelector", "matchExpressions"])).collect()
}

/// For the kinds without scopes, which are all but Pods and PersistentVolumeClaims: no object is in a scope.
pub const NONE: fn(&Value, &Value) -> bool = |_, _| false;

/// Whether the operator of a scope selects an object that has these names, such as that of its PriorityClass. `NotIn`
/// also selects objects without a name, as it does for labels.
fn selects(scope: &Value, names: &[&str]) -> bool {
    let values = scope.items_at(&["values"]);
    let has = |name: &&str| values.iter().any(|value| value.as_str() == Some(name));
    match scope.str_at(&["operator"]) {
        "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        "In" => names.iter().any(has),
        "NotIn" => names.is_empty() || names.iter().any(|name| !has(name)),
        _ => false,
    }
}

/// Whether a Pod is in a scope. `Terminating` means that it has a deadline, not that it is being deleted.
pub fn of_pod(scope: &Value, pod: &Value) -> bool {
    let has_deadline =
        pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_int).is_some_and(|seconds| seconds >= 0);
    match scope.str_at(&["scopeName"]) {
        "Terminating" => has_deadline,
        "NotTerminating" => !has_deadline,
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = pod.str_at(&["spec", "priorityClassName"]);
            let classes: Vec<&str> = Some(class).filter(|class| !class.is_empty()).into_iter().collect();
            selects(scope, &classes)
        }
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        _ => false,
    }
}

/// Whether neither the Pod nor a container has requests or limits of CPU or memory, other than 0.
fn is_best_effort(pod: &Value) -> bool {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let has_resources = |owner: &Value| {
        ["requests", "limits"].iter().any(|field| {
            ["cpu", "memory"]
                .iter()
                .any(|name| owner.at(&["resources", field, name]).is_some_and(|amount| amount.as_str() != Some("0")))
        })
    };
    let containers = ["containers", "initContainers"].into_iter();
    let mut containers = containers.flat_map(|list| spec.items_at(&[list]));
    !has_resources(spec) && !containers.any(has_resources)
}

/// Whether a term of Pod affinity or anti-affinity selects namespaces.
fn reaches_other_namespaces(pod: &Value) -> bool {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let reaches = |term: &Value| {
        let names = term.items_at(&["namespaces"]);
        !names.is_empty() || term.get("namespaceSelector").is_some()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = |list: &str| pod.items_at(&["spec", "affinity", kind, list]);
        let weighted = terms(PREFERRED).iter().filter_map(|term| term.get("podAffinityTerm"));
        terms(REQUIRED).iter().chain(weighted).any(reaches)
    })
}

/// Whether a PersistentVolumeClaim is in a scope. While its class changes, it is in the scopes of both.
pub fn of_claim(scope: &Value, claim: &Value) -> bool {
    if scope.str_at(&["scopeName"]) != "VolumeAttributesClass" {
        return false;
    }
    let places = [
        &["spec", "volumeAttributesClassName"][..],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    let names = places.iter().map(|path| claim.str_at(path)).filter(|name| !name.is_empty());
    selects(scope, &names.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn pods_are_in_scopes() {
        let plain = json!({"spec": {"containers": [{"name": "a"}]}});
        let busy = json!({"spec": {"activeDeadlineSeconds": 5, "priorityClassName": "high", "containers": [
            {"name": "a", "resources": {"limits": {"cpu": "1"}}}
        ]}});
        let scope = |name: &str| json!({"scopeName": name, "operator": "Exists"});
        let cases = [
            (scope("Terminating"), false, true),
            (scope("NotTerminating"), true, false),
            (scope("BestEffort"), true, false),
            (scope("NotBestEffort"), false, true),
            (scope("PriorityClass"), false, true),
            (json!({"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}), false, false),
            (json!({"scopeName": "PriorityClass", "operator": "NotIn", "values": ["low"]}), true, true),
            (json!({"scopeName": "PriorityClass", "operator": "DoesNotExist"}), true, false),
            (scope("CrossNamespacePodAffinity"), false, false),
        ];
        for (scope, of_plain, of_busy) in cases {
            assert_eq!((of_pod(&scope, &plain), of_pod(&scope, &busy)), (of_plain, of_busy), "{}", scope.to_json());
        }
    }
}
