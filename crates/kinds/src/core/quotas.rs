//! The validation of ResourceQuotas.

use std::collections::BTreeSet;

use machinery::field::{FieldError, FieldErrors};
use machinery::quantity::Quantity;
use machinery::value::PATHS_BYTES_MAX;
use machinery::{Map, Value, names};

use schema::at::At;

/// The quota resources that count objects, whose amounts must be whole numbers.
pub const OBJECT_COUNTS: [&str; 9] = [
    "configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services",
    "services.loadbalancers", "services.nodeports",
];

const COMPUTE: [&str; 10] = [
    "cpu", "ephemeral-storage", "limits.cpu", "limits.ephemeral-storage", "limits.memory", "memory", "requests.cpu",
    "requests.ephemeral-storage", "requests.memory", "requests.storage",
];

/// Whether a resource may be limited in a scope.
type Fits = fn(&str) -> bool;

/// The scopes, and the resources that each can limit.
const SCOPES: [(&str, Fits); 7] = [
    ("Terminating", of_pods),
    ("NotTerminating", of_pods),
    ("BestEffort", |name| name == "pods"),
    ("NotBestEffort", of_pods),
    ("PriorityClass", of_pods),
    ("CrossNamespacePodAffinity", of_pods),
    ("VolumeAttributesClass", |name| matches!(name, "persistentvolumeclaims" | "requests.storage")),
];

const CONFLICTS: [(&str, &str); 2] = [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")];

fn of_pods(name: &str) -> bool {
    name == "pods" || (COMPUTE.contains(&name) && !name.ends_with("storage"))
}

fn is_standard(name: &str) -> bool {
    let huge = name.strip_prefix("requests.").unwrap_or(name).starts_with("hugepages-");
    OBJECT_COUNTS.contains(&name) || COMPUTE.contains(&name) || huge
}

pub fn prepare(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["status"], Value::object());
    }
}

fn amounts(map: At) {
    for (resource, value) in map.value.fields() {
        let (at, amount) = (map.entry(resource), value.as_str().unwrap_or_default());
        let problems = names::qualified_name(resource);
        let (qualified, named) = (resource.contains('/'), problems.is_empty());
        at.shown_as_text(resource).invalid_each(problems);
        if !qualified && !is_standard(resource) {
            // `storage` is a resource, but not a quota resource
            if named && resource != "storage" {
                at.shown_as_text(resource).invalid("must be a standard resource type or fully qualified");
            }
            at.shown_as_text(resource).invalid("must be a standard resource for quota");
        }
        let Ok(quantity) = Quantity::parse(amount) else { continue };
        let extended = named && qualified && !resource.contains("kubernetes.io/") && !resource.starts_with("requests.");
        at.shown_as_text(amount).invalid_if(quantity.signum() < 0, "must be greater than or equal to 0");
        if (extended || OBJECT_COUNTS.contains(&resource.as_str())) && !quantity.is_whole() {
            at.shown_as_text(amount).invalid("must be an integer");
        }
    }
}

pub fn validate(at: At) {
    let (hard, scopes) = (at.field("spec.hard"), at.field("spec.scopes"));
    amounts(hard);
    let names: Vec<&str> = scopes.items().map(|scope| scope.as_text()).collect();
    let invalid = |why: &str| FieldError::invalid(&scopes.path(), scopes.value, why);
    let mut of_scopes = FieldErrors::default();
    for scope in &names {
        match SCOPES.iter().find(|(name, _)| name == scope) {
            None => push_repeated(&mut of_scopes, 1, || invalid("unsupported scope")),
            Some((_, fits)) => push_repeated(&mut of_scopes, misfits(hard, *fits), || invalid(MISFIT)),
        }
        if of_scopes.is_full() {
            break;
        }
    }
    at.extend(of_scopes.into_list());
    conflicts(&names).for_each(|why| at.push(invalid(why)));
    selector(at.field("spec.scopeSelector"), hard, scopes);
    if let Some(old) = scopes.old {
        let sorted = |scopes: &Value| {
            let scopes = scopes.as_array().unwrap_or_default().iter();
            scopes.filter_map(Value::as_str).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        scopes.invalid_if(sorted(scopes.value) != sorted(old), "field is immutable");
    }
}

const MISFIT: &str = "unsupported scope applied to resource";

/// How many of the limited resources a scope does not support.
fn misfits(hard: At, fits: Fits) -> usize {
    let names = hard.value.as_object().into_iter().flat_map(Map::keys);
    names.filter(|name| is_standard(name) && !fits(name)).count()
}

/// Adds an error `count` times, up to a bound on their total size, since each shows the whole list.
fn push_repeated(errors: &mut FieldErrors, count: usize, error: impl Fn() -> FieldError) {
    for _ in 0..count {
        if errors.is_full() {
            return;
        }
        errors.push(error());
    }
}

fn conflicts(names: &[&str]) -> impl Iterator<Item = &'static str> {
    CONFLICTS.iter().filter(|(a, b)| names.contains(a) && names.contains(b)).map(|_| "conflicting scopes")
}

/// A selector as Go prints it.
fn shown(selector: At) -> String {
    let requirement = |r: At| {
        let [scope, operator] = ["scopeName", "operator"].map(|name| r.field_or_empty(name).value.to_json());
        let values = r.field("values").value.to_json();
        format!("{{\"ScopeName\":{scope},\"Operator\":{operator},\"Values\":{values}}}")
    };
    let all: Vec<String> = selector.items_of("matchExpressions").map(requirement).collect();
    format!("{{\"MatchExpressions\":[{}]}}", all.join(","))
}

fn selector(selector: At, hard: At, scopes: At) {
    const ONLY_EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    let all = selector.field("matchExpressions");
    let mut shown_bytes = 0;
    // upstream leaves out the index
    for requirement in all.items().map(|requirement| all.with_value(requirement.value)) {
        let (scope, operator) = (requirement.field_or_empty("scopeName"), requirement.field_or_empty("operator"));
        match SCOPES.iter().find(|(name, _)| *name == scope.as_text()) {
            None => scope.invalid("unsupported scope"),
            Some((name, fits)) => {
                // each error shows the whole selector
                for _ in 0..misfits(hard, *fits) {
                    if shown_bytes > PATHS_BYTES_MAX {
                        break;
                    }
                    let shown = shown(selector);
                    shown_bytes += shown.len();
                    all.shown_verbatim(&shown).invalid(MISFIT);
                }
                if operator.as_text() != "Exists" && !matches!(*name, "PriorityClass" | "VolumeAttributesClass") {
                    operator.invalid(ONLY_EXISTS);
                }
            }
        }
        let (values, is_empty) = (requirement.field("values"), requirement.list("values").is_empty());
        match operator.as_text() {
            "In" | "NotIn" if is_empty => {
                values.required("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
            }
            "Exists" | "DoesNotExist" if !is_empty => {
                values.invalid("must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => operator.invalid("not a valid selector operator"),
        }
    }
    let names: Vec<&str> = selector.texts("matchExpressions", "scopeName");
    // kube-apiserver shows the scopes of the spec here
    conflicts(&names).for_each(|why| all.push(FieldError::invalid(&all.path(), scopes.value, why)));
}

pub fn validate_status(at: At) {
    amounts(at.field("status.hard"));
    amounts(at.field("status.used"));
}
