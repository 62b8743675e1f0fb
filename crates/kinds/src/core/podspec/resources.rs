//! The resources of containers and of whole Pods.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};

use machinery::field::FieldError;
use machinery::quantity::Quantity;
use machinery::{Value, names};

use crate::core::quotas::OBJECT_COUNTS;
use crate::limits::REPEATED_BYTES_MAX;
use resource::builtin::checks::{list, text};
use schema::at::{At, json_text};

/// The resources without a domain that containers may have.
const STANDARD: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

/// Reports the errors of the name of a resource.
type NameCheck = fn(&str, At);

pub(super) fn resources(container: At, of_pod: &Claims<'_>) {
    claims(container.field("resources"), of_pod);
    amounts(container.field("resources"), container_resource);
}

/// Validates the resources of a Pod as a whole.
pub(super) fn of_pod(spec: At, of_pod: &Claims<'_>) {
    let Some(resources) = spec.field_if_given("resources") else { return };
    if spec.text("os.name") == "windows" {
        return resources.forbidden("may not be set for a windows pod");
    }
    resources.field("claims").forbid("claims may not be set for Resources at pod-level");
    amounts(resources, pod_resource);
    claims(resources, of_pod);
    covered(spec, resources);
}

/// Checks that Pods as a whole may have a resource of this name.
fn pod_resource(name: &str, at: At) {
    const KNOWN: [&str; 3] = ["cpu", HUGE_PAGES, "memory"];
    let before = at.count();
    resource_name(name, at);
    if at.count() == before && !["cpu", "memory"].contains(&name) && !name.starts_with(HUGE_PAGES) {
        at.shown_verbatim(&json_text(name)).unsupported(&KNOWN);
    }
}

/// The names of the claims of a Pod, which its containers refer to.
pub(super) struct Claims<'a> {
    names: HashSet<&'a str>,
    /// The sorted names, as errors show them.
    list: String,
    /// How many bytes of the list further errors may show.
    bytes_left: Cell<usize>,
}

impl<'a> Claims<'a> {
    pub(super) fn of(spec: &'a Value) -> Claims<'a> {
        let names = list(spec, "resourceClaims").iter().map(|claim| text(claim, "name"));
        let names: HashSet<&str> = names.filter(|name| !name.is_empty()).collect();
        let mut sorted: Vec<&str> = names.iter().copied().collect();
        sorted.sort_unstable();
        let list = if sorted.is_empty() { " which is empty".to_owned() } else { format!(": {}", sorted.join(", ")) };
        Claims { names, list, bytes_left: Cell::new(REPEATED_BYTES_MAX) }
    }

    /// The names to show in one error; empty once earlier errors have shown too many bytes of them.
    fn shown(&self) -> &str {
        match self.bytes_left.get().checked_sub(self.list.len()) {
            Some(left) => {
                self.bytes_left.set(left);
                &self.list
            }
            None => "",
        }
    }
}

/// Validates the claims of a container. Each must be a claim of the Pod or one request of such a claim, and none may be
/// repeated.
fn claims(resources: At, of_pod: &Claims<'_>) {
    // claims that are used as a whole, the number of used requests of the others, and these requests
    let (mut whole, mut parts, mut requests) = (HashSet::new(), HashMap::<&str, usize>::new(), HashSet::new());
    for claim in resources.items_of("claims") {
        let (name, request) = (claim.text("name"), claim.text("request"));
        if name.is_empty() {
            claim.required("");
            continue;
        }
        if whole.contains(name) {
            claim.shown_as_text(name).duplicate();
        } else if request.is_empty() {
            (0..parts.get(name).copied().unwrap_or_default()).for_each(|_| claim.shown_as_text(name).duplicate());
            whole.insert(name);
        } else {
            match requests.insert((name, request)) {
                true => *parts.entry(name).or_default() += 1,
                false => claim.shown_as_text(&format!("{name}/{request}")).duplicate(),
            }
            claim.field("request").check_text(names::dns1123_label);
        }
        if !of_pod.names.contains(name) {
            let detail = format!("must be one of the names in pod.spec.resourceClaims{}", of_pod.shown());
            claim.push(FieldError { detail, ..FieldError::not_found(&claim.path(), &Value::from(name)) });
        }
    }
}

pub(super) const HUGE_PAGES: &str = "hugepages-";

fn amount_of(resources: At, kind: &str, name: &str) -> Option<Quantity> {
    Quantity::of(resources.value.at(&[kind, name])?).ok()
}

/// Requests must not exceed limits. They must equal them if the resource cannot be overcommitted.
pub fn amounts(resources: At, check_name: NameCheck) {
    for kind in ["limits", "requests"] {
        for (name, at) in resources.entries_of(kind) {
            check_name(name, at);
            let Ok(amount) = Quantity::of(at.value) else { continue };
            let invalid = |why: &str| at.shown_as_text(&amount.to_string()).invalid(why);
            if amount.signum() < 0 {
                invalid("must be greater than or equal to 0");
            }
            if is_counted(name) && !amount.is_whole() {
                invalid("must be an integer");
            }
            if name.strip_prefix(HUGE_PAGES).is_some_and(|size| !is_divisible(&amount, size)) {
                invalid(&format!("{amount} is not positive integer multiple of {name}"));
            }
        }
    }
    for (name, _) in resources.entries_of("requests") {
        let is_fixed = !is_overcommitted(name);
        let requests = resources.field("requests");
        match (amount_of(resources, "requests", name), amount_of(resources, "limits", name)) {
            (Some(request), Some(limit)) if is_fixed && request.compare(&limit).is_ne() => {
                requests
                    .shown_as_text(&request.to_string())
                    .invalid(format!("must be equal to {name} limit of {limit}"));
            }
            (Some(request), Some(limit)) if request.compare(&limit).is_gt() => {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                requests.shown_as_text(&request.to_string()).invalid(why);
            }
            (Some(_), None) if is_fixed => {
                resources.field("limits").required("Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
    }
    let has = |is_it: fn(&str) -> bool| {
        ["limits", "requests"].iter().any(|kind| resources.entries_of(kind).any(|(name, _)| is_it(name)))
    };
    if has(|name| name.starts_with(HUGE_PAGES)) && !has(|name| ["cpu", "memory"].contains(&name)) {
        resources.forbidden("HugePages require cpu or memory");
    }
}

/// Whether a resource is counted in whole numbers.
fn is_counted(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    OBJECT_COUNTS.contains(&name) || !is_native && is_extended(name)
}

/// Whether more of a resource may be requested than there is.
pub fn is_overcommitted(name: &str) -> bool {
    (!name.contains('/') || name.contains("kubernetes.io/")) && !name.starts_with(HUGE_PAGES)
}

/// Whether an amount is a multiple of a page size.
fn is_divisible(amount: &Quantity, size: &str) -> bool {
    Quantity::parse(size).is_ok_and(|size| size.signum() > 0 && size.is_whole() && amount.is_multiple_of(&size))
}

pub(super) type Amounts = BTreeMap<String, Quantity>;

/// The maximum that the containers of a Pod need at a time: sidecars keep running, while the other init containers run
/// one after the other.
pub(super) fn needed(spec: &Value, kind: &str) -> Amounts {
    let of = |container: &Value| -> Amounts {
        let amounts = container.fields_at(&["resources", kind]);
        amounts.filter_map(|(name, amount)| Some((name.as_str().to_owned(), Quantity::of(amount).ok()?))).collect()
    };
    let add = |sum: &mut Amounts, more: &Amounts| {
        for (name, amount) in more {
            let before = sum.remove(name).unwrap_or_else(|| Quantity::from_int(0));
            sum.insert(name.clone(), before.plus(amount));
        }
    };
    let (mut sum, mut sidecars, mut most) = (Amounts::new(), Amounts::new(), vec![]);
    list(spec, "containers").iter().for_each(|container| add(&mut sum, &of(container)));
    for container in list(spec, "initContainers") {
        let mut own = of(container);
        if text(container, "restartPolicy") == "Always" {
            add(&mut sum, &own);
            add(&mut sidecars, &own);
            own = sidecars.clone();
        } else {
            add(&mut own, &sidecars);
        }
        most.push(own);
    }
    for (name, amount) in most.into_iter().flatten() {
        if sum.get(&name).is_none_or(|before| amount.compare(before).is_gt()) {
            sum.insert(name, amount);
        }
    }
    sum
}

/// The resources of a Pod must cover what its containers need.
fn covered(spec: At, resources: At) {
    for kind in ["requests", "limits"] {
        for (name, amount) in needed(spec.value, kind) {
            let is_compared = kind == "requests" || name.starts_with(HUGE_PAGES);
            let own = amount_of(resources, kind, &name).filter(|own| is_compared && amount.compare(own).is_gt());
            if let Some(own) = own {
                let why = format!("must be greater than or equal to aggregate container {kind} of {amount}");
                resources.field(kind).entry(&name).shown_as_text(&own.to_string()).invalid(why);
            }
        }
    }
    for (i, container) in spec.items_of("containers").enumerate() {
        for (name, limit) in container.entries_of("resources.limits") {
            let (Ok(limit), Some(own)) = (Quantity::of(limit.value), amount_of(resources, "limits", name)) else {
                continue;
            };
            if limit.compare(&own).is_gt() {
                let why = format!("must be less than or equal to pod limits of {own}");
                resources
                    .field("containers")
                    .item(i)
                    .entry(name)
                    .field("limits")
                    .shown_as_text(&limit.to_string())
                    .invalid(why);
            }
        }
    }
}

/// Resources without a domain that are known but not allowed for containers.
const COUNTED: [&str; 18] = [
    "configmaps", "limits.cpu", "limits.ephemeral-storage", "limits.memory", "persistentvolumeclaims", "pods",
    "replicationcontrollers", "requests.cpu", "requests.ephemeral-storage", "requests.memory", "requests.storage",
    "resourcequotas", "secrets", "services", "services.loadbalancers", "services.nodeports", "storage",
    "requests.hugepages-",
];

/// Whether a name has a domain or is one of the resources of containers.
fn is_container_resource(name: &str) -> bool {
    name.contains('/') || STANDARD.contains(&name) || name.starts_with("hugepages-")
}

/// A resource name must be a standard one or have a domain.
pub fn resource_name(name: &str, at: At) {
    let (problems, shown) = (names::qualified_name(name), json_text(name));
    if problems.is_empty() && !is_container_resource(name) && !COUNTED.contains(&name) {
        at.shown_verbatim(&shown).invalid("must be a standard resource type or fully qualified");
    }
    at.shown_verbatim(&shown).invalid_each(problems);
}

/// Whether a resource name with a domain can also be a quota name, behind the prefix `requests.`.
fn is_extended(name: &str) -> bool {
    !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// The name of a resource that a container may have.
pub fn container_resource(name: &str, at: At) {
    resource_name(name, at);
    if !is_container_resource(name) {
        at.shown_verbatim(&json_text(name)).invalid("must be a standard resource for containers");
    }
    if name.contains('/') && !name.contains("kubernetes.io/") && !is_extended(name) {
        at.shown_verbatim(&json_text(name)).invalid("doesn't follow extended resource name standard");
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Release, json};

    use super::*;
    use schema::at::errors_of;

    /// The error of each claim that is missing repeated the names of all others: gigabytes for a megabyte.
    #[test]
    fn errors_of_many_claims_stay_small() {
        let named =
            |prefix: &str| Value::Array((0..3_000).map(|i| json!({"name": (format!("{prefix}{i}"))})).collect());
        let spec = json!({"resourceClaims": (named("a"))});
        let resources = json!({"claims": (named("b"))});
        let errors = errors_of(&resources, None, Release::NEWEST, |at| claims(at, &Claims::of(&spec)));
        let bytes: usize = errors.iter().map(|error| error.to_string().len()).sum();
        assert_eq!(errors.len(), 3_000);
        assert!(errors[0].detail.ends_with("a999") && bytes < 2 * REPEATED_BYTES_MAX, "{bytes}");
    }
}
