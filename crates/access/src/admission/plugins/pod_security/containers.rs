//! Accessors for the containers of a Pod, shared by the checks.

use machinery::Value;

use crate::admission::plugins::pod_resources::CONTAINERS;

/// Every container of a spec, in the order in which errors name them.
pub fn all_containers(spec: &Value) -> impl Iterator<Item = &Value> {
    CONTAINERS.iter().flat_map(|list| spec.items_at(&[list]))
}

pub fn name(container: &Value) -> &str {
    container.str_at(&["name"])
}

pub fn container_names<'p>(spec: &'p Value, predicate: impl Fn(&'p Value) -> bool) -> Vec<&'p str> {
    all_containers(spec).filter(|container| predicate(container)).map(name).collect()
}

/// A field of a security context; `None` if the context or the field is missing.
pub fn security<'a>(owner: &'a Value, field: &str) -> Option<&'a Value> {
    owner.at(&["securityContext", field]).filter(|value| !value.is_null())
}

/// Whether an update of a Pod has to be checked: it changes an image or the number of (init) containers, or adds an
/// ephemeral container.
pub fn images_differ(pod: &Value, old: &Value) -> bool {
    for list in ["containers", "initContainers"] {
        let (new, old) = (pod.items_at(&["spec", list]), old.items_at(&["spec", list]));
        let changed = |(new, old): (&Value, &Value)| new.get("image") != old.get("image");
        if new.len() != old.len() || new.iter().zip(old).any(changed) {
            return true;
        }
    }
    let ephemeral = ["spec", "ephemeralContainers"];
    let old = old.items_at(&ephemeral);
    pod.items_at(&ephemeral).iter().any(|container| {
        let before = old.iter().find(|old| name(old) == name(container));
        before.is_none_or(|before| before.get("image") != container.get("image"))
    })
}
