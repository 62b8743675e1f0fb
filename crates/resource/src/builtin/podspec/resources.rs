//! The resources of containers and of whole Pods.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};

use machinery::field::{FieldError, FieldPath};
use machinery::quantity::Quantity;
use machinery::{Value, names};

use super::Errors;
use crate::builtin::checks::{OBJECT_COUNTS, entries, invalid_each, items, list, named, text};
use crate::limits::REPEATED_BYTES_MAX;

/// The resources without a domain that containers may have.
const STANDARD: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

/// Reports the errors in the name of a resource.
type NameCheck = fn(&str, &FieldPath, &mut Errors);

/// Validates the resources of a container.
pub(super) fn resources(container: &Value, path: &FieldPath, claims: &Claims<'_>, errors: &mut Errors) {
    let Some(resources) = container.get("resources") else { return };
    let path = path.child("resources");
    claim_errors(resources, &path, claims, errors);
    amounts(resources, &path, container_resource, errors);
}

/// Validates the resources of a Pod as a whole.
pub(super) fn of_pod(spec: &Value, path: &FieldPath, claims: &Claims<'_>, errors: &mut Errors) {
    let Some(resources) = spec.get("resources").filter(|resources| !resources.is_null()) else { return };
    let path = path.child("resources");
    if spec.str_at(&["os", "name"]) == "windows" {
        return errors.push(FieldError::forbidden(&path, "may not be set for a windows pod"));
    }
    if resources.get("claims").is_some_and(|claims| !claims.is_null()) {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.child("claims"), why));
    }
    amounts(resources, &path, pod_resource, errors);
    claim_errors(resources, &path, claims, errors);
    covered(spec, resources, &path, errors);
}

/// Checks that Pods as a whole may have a resource of this name.
fn pod_resource(name: &str, path: &FieldPath, errors: &mut Errors) {
    const KNOWN: [&str; 3] = ["cpu", HUGE_PAGES, "memory"];
    let before = errors.len();
    resource_name(name, path, errors);
    if errors.len() == before && !["cpu", "memory"].contains(&name) && !name.starts_with(HUGE_PAGES) {
        let value = Value::from(name);
        errors.push(named(FieldError::not_supported(path, &value, &KNOWN), &value));
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
fn claim_errors(resources: &Value, path: &FieldPath, claims: &Claims<'_>, errors: &mut Errors) {
    // claims that are used as a whole, the number of used requests of the others, and these requests
    let (mut whole, mut parts, mut requests) = (HashSet::new(), HashMap::<&str, usize>::new(), HashSet::new());
    for (path, claim) in items(resources, "claims", path) {
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let mut duplicate = |key: String| errors.push(FieldError::duplicate(&path, &Value::from(key)));
        if whole.contains(name) {
            duplicate(name.to_owned());
        } else if request.is_empty() {
            (0..parts.get(name).copied().unwrap_or_default()).for_each(|_| duplicate(name.to_owned()));
            whole.insert(name);
        } else {
            let is_new = requests.insert((name, request));
            if is_new {
                *parts.entry(name).or_default() += 1;
            } else {
                duplicate(format!("{name}/{request}"));
            }
            invalid_each(&path.child("request"), request, names::dns1123_label(request), errors);
        }
        if !claims.names.contains(name) {
            let mut error = FieldError::not_found(&path, &Value::from(name));
            error.detail = format!("must be one of the names in pod.spec.resourceClaims{}", claims.shown());
            errors.push(error);
        }
    }
}

pub(super) const HUGE_PAGES: &str = "hugepages-";

/// Requests must not exceed limits. They must equal them if the resource cannot be overcommitted.
pub fn amounts(resources: &Value, path: &FieldPath, check_name: NameCheck, errors: &mut Errors) {
    let amount = |kind: &str, name: &str| Quantity::of(resources.at(&[kind, name])?).ok();
    let given = |kind: &str| entries(resources, &[kind]);
    for kind in ["limits", "requests"] {
        for (name, value) in given(kind) {
            let path = path.child(kind).key(name);
            check_name(name, &path, errors);
            let Ok(amount) = Quantity::of(value) else { continue };
            let shown = Value::from(amount.to_string());
            let mut invalid = |why: String| errors.push(FieldError::invalid(&path, &shown, why));
            if amount.signum() < 0 {
                invalid("must be greater than or equal to 0".to_owned());
            }
            if is_counted(name) && !amount.is_whole() {
                invalid("must be an integer".to_owned());
            }
            if name.strip_prefix(HUGE_PAGES).is_some_and(|size| !is_divisible(&amount, size)) {
                invalid(format!("{amount} is not positive integer multiple of {name}"));
            }
        }
    }
    for (name, _) in given("requests") {
        let (request, limit, is_fixed) = (amount("requests", name), amount("limits", name), !is_overcommitted(name));
        let mut invalid = |request: &Quantity, why: String| {
            errors.push(FieldError::invalid(&path.child("requests"), &Value::from(request.to_string()), why));
        };
        match (request, limit) {
            (Some(request), Some(limit)) if is_fixed && request.compare(&limit).is_ne() => {
                invalid(&request, format!("must be equal to {name} limit of {limit}"));
            }
            (Some(request), Some(limit)) if request.compare(&limit).is_gt() => {
                invalid(&request, format!("must be less than or equal to {name} limit of {limit}"));
            }
            (Some(_), None) if is_fixed => {
                let why = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(&path.child("limits"), why));
            }
            _ => {}
        }
    }
    let has =
        |is_it: fn(&str) -> bool| ["limits", "requests"].iter().any(|kind| given(kind).any(|(name, _)| is_it(name)));
    if has(|name| name.starts_with(HUGE_PAGES)) && !has(|name| ["cpu", "memory"].contains(&name)) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
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

/// Amounts by name of the resource.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// What the containers of a Pod need at most at any time: sidecars keep running, while the other init containers run
/// one after the other.
pub(super) fn needed(spec: &Value, kind: &str) -> Amounts {
    let of = |container: &Value| -> Amounts {
        let amounts = entries(container, &["resources", kind]);
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
fn covered(spec: &Value, resources: &Value, path: &FieldPath, errors: &mut Errors) {
    let of_pod = |kind: &str, name: &str| Quantity::of(resources.at(&[kind, name])?).ok();
    for kind in ["requests", "limits"] {
        for (name, amount) in needed(spec, kind) {
            let is_compared = kind == "requests" || name.starts_with(HUGE_PAGES);
            let Some(own) = of_pod(kind, &name).filter(|own| is_compared && amount.compare(own).is_gt()) else {
                continue;
            };
            let why = format!("must be greater than or equal to aggregate container {kind} of {amount}");
            errors.push(FieldError::invalid(&path.child(kind).key(&name), &Value::from(own.to_string()), why));
        }
    }
    for (path, container) in items(spec, "containers", path) {
        for (name, limit) in entries(container, &["resources", "limits"]) {
            let (Ok(limit), Some(own)) = (Quantity::of(limit), of_pod("limits", name)) else { continue };
            if limit.compare(&own).is_gt() {
                let why = format!("must be less than or equal to pod limits of {own}");
                let path = path.key(name).child("limits");
                errors.push(FieldError::invalid(&path, &Value::from(limit.to_string()), why));
            }
        }
    }
}

/// Resources without a domain that are known but not allowed for containers.
const COUNTED: [&str; 18] = [
    "configmaps",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
    "requests.hugepages-",
];

/// The error of an invalid resource name.
fn invalid_name(name: &str, path: &FieldPath, why: impl Into<String>) -> FieldError {
    let value = Value::from(name);
    named(FieldError::invalid(path, &value, why), &value)
}

/// Whether a name has a domain or is one of the resources of containers.
fn is_container_resource(name: &str) -> bool {
    name.contains('/') || STANDARD.contains(&name) || name.starts_with("hugepages-")
}

/// A resource name must be a standard one or have a domain.
pub fn resource_name(name: &str, path: &FieldPath, errors: &mut Errors) {
    let problems = names::qualified_name(name);
    if problems.is_empty() && !is_container_resource(name) && !COUNTED.contains(&name) {
        errors.push(invalid_name(name, path, "must be a standard resource type or fully qualified"));
    }
    errors.extend(problems.into_iter().map(|why| invalid_name(name, path, why)));
}

/// Whether a resource name with a domain can also be a quota name, behind the prefix `requests.`.
fn is_extended(name: &str) -> bool {
    !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// The name of a resource that a container may have.
pub fn container_resource(name: &str, path: &FieldPath, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !is_container_resource(name) {
        errors.push(invalid_name(name, path, "must be a standard resource for containers"));
    }
    if name.contains('/') && !name.contains("kubernetes.io/") && !is_extended(name) {
        errors.push(invalid_name(name, path, "doesn't follow extended resource name standard"));
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    /// The error of each claim that is missing repeated the names of all others: gigabytes for a megabyte.
    #[test]
    fn errors_of_many_claims_stay_small() {
        let named =
            |prefix: &str| Value::Array((0..3_000).map(|i| json!({"name": (format!("{prefix}{i}"))})).collect());
        let spec = json!({"resourceClaims": (named("a"))});
        let mut errors = vec![];
        let resources = json!({"claims": (named("b"))});
        claim_errors(&resources, &FieldPath::new("resources"), &Claims::of(&spec), &mut errors);
        let bytes: usize = errors.iter().map(|error| error.to_string().len()).sum();
        assert_eq!(errors.len(), 3_000);
        assert!(errors[0].detail.ends_with("a999") && bytes < 2 * REPEATED_BYTES_MAX, "{bytes}");
    }
}
