//! ResourceQuota as an object.

use machinery::field::{FieldError, FieldErrors, FieldPath};
use machinery::quantity::Quantity;
use machinery::value::PATHS_BYTES_MAX;
use machinery::{Release, Value, names};

use super::checks::{OBJECT_COUNTS, entries, invalid_each, list, text};

const COMPUTE: [&str; 10] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
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

fn amounts<'a>(object: &'a Value, part: &str, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = entries(object, &[part, name]);
    map.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn amount_errors(object: &Value, part: &str, name: &str, errors: &mut Vec<FieldError>) {
    for (resource, amount) in amounts(object, part, name) {
        let path = FieldPath::new(part).child(name).key(resource);
        let messages = names::qualified_name(resource);
        let qualified = resource.contains('/');
        let named = messages.is_empty();
        invalid_each(&path, resource, messages, errors);
        if !qualified && !is_standard(resource) {
            let why = ["must be a standard resource type or fully qualified", "must be a standard resource for quota"];
            // `storage` is a resource, but not a quota resource
            let why = why[usize::from(!named || resource == "storage")..].iter().map(|why| (*why).to_owned()).collect();
            invalid_each(&path, resource, why, errors);
        }
        let Ok(quantity) = Quantity::parse(amount) else { continue };
        let extended = named && qualified && !resource.contains("kubernetes.io/") && !resource.starts_with("requests.");
        let whole = OBJECT_COUNTS.contains(&resource) || extended;
        if quantity.signum() < 0 {
            invalid_each(&path, amount, vec!["must be greater than or equal to 0".to_owned()], errors);
        }
        if whole && !quantity.is_whole() {
            invalid_each(&path, amount, vec!["must be an integer".to_owned()], errors);
        }
    }
}

pub fn validate(new: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    amount_errors(new, "spec", "hard", &mut errors);
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let scopes = list(spec, "scopes");
    let (path, shown) = (FieldPath::new("spec.scopes"), Value::Array(scopes.to_vec()));
    let names: Vec<&str> = scopes.iter().filter_map(Value::as_str).collect();
    let invalid = |why: &str| FieldError::invalid(&path, &shown, why);
    let mut of_scopes = FieldErrors::default();
    for scope in &names {
        match SCOPES.iter().find(|(name, _)| name == scope) {
            None => push_repeated(&mut of_scopes, 1, || invalid("unsupported scope")),
            Some((_, fits)) => push_repeated(&mut of_scopes, misfits(new, *fits), || invalid(MISFIT)),
        }
        if of_scopes.is_full() {
            break;
        }
    }
    errors.extend(of_scopes.into_list());
    errors.extend(conflicts(&names).into_iter().map(&invalid));
    if let Some(selector) = spec.get("scopeSelector") {
        selector_errors(new, selector, &mut errors);
    }
    if let Some(old) = old {
        let sorted = |object: &Value| {
            let scopes = object.at(&["spec", "scopes"]).and_then(Value::as_array).unwrap_or_default();
            let mut names: Vec<String> = scopes.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            names.sort();
            names.dedup();
            names
        };
        if sorted(new) != sorted(old) {
            let shown = if spec.get("scopes").is_some_and(|scopes| !scopes.is_null()) { &shown } else { &Value::Null };
            errors.push(FieldError::invalid(&path, shown, "field is immutable"));
        }
    }
    errors
}

const MISFIT: &str = "unsupported scope applied to resource";

/// How many of the limited resources a scope does not support.
fn misfits(quota: &Value, fits: Fits) -> usize {
    amounts(quota, "spec", "hard").filter(|(name, _)| is_standard(name) && !fits(name)).count()
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

fn conflicts(names: &[&str]) -> Vec<&'static str> {
    let both = CONFLICTS.iter().filter(|(a, b)| names.contains(a) && names.contains(b));
    both.map(|_| "conflicting scopes").collect()
}

/// `Invalid value` with a selector as Go prints it.
fn invalid_selector(path: &FieldPath, selector: &Value, why: &str) -> FieldError {
    let requirement = |r: &Value| {
        let (scope, operator) = (Value::from(text(r, "scopeName")), Value::from(text(r, "operator")));
        let values = r.get("values").cloned().unwrap_or_default();
        let (scope, operator, values) = (scope.to_json(), operator.to_json(), values.to_json());
        format!("{{\"ScopeName\":{scope},\"Operator\":{operator},\"Values\":{values}}}")
    };
    let all: Vec<String> = list(selector, "matchExpressions").iter().map(requirement).collect();
    let value = format!("{{\"MatchExpressions\":[{}]}}", all.join(","));
    FieldError { value, ..FieldError::invalid(path, &Value::Null, why) }
}

fn selector_errors(quota: &Value, selector: &Value, errors: &mut Vec<FieldError>) {
    const ONLY_EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    let path = FieldPath::new("spec.scopeSelector.matchExpressions");
    let invalid = |why: &str| invalid_selector(&path, selector, why);
    let mut shown_bytes = 0;
    for requirement in list(selector, "matchExpressions") {
        let (scope, operator) = (text(requirement, "scopeName"), text(requirement, "operator"));
        let values = list(requirement, "values");
        match SCOPES.iter().find(|(name, _)| *name == scope) {
            None => invalid_each(&path.child("scopeName"), scope, vec!["unsupported scope".to_owned()], errors),
            Some((_, fits)) => {
                // each error shows the whole selector
                for _ in 0..misfits(quota, *fits) {
                    if shown_bytes > PATHS_BYTES_MAX {
                        break;
                    }
                    let error = invalid(MISFIT);
                    shown_bytes += error.value.len();
                    errors.push(error);
                }
                if operator != "Exists" && !matches!(scope, "PriorityClass" | "VolumeAttributesClass") {
                    invalid_each(&path.child("operator"), operator, vec![ONLY_EXISTS.to_owned()], errors);
                }
            }
        }
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(&path.child("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(FieldError::invalid(&path.child("values"), &Value::Array(values.to_vec()), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let why = "not a valid selector operator".to_owned();
                invalid_each(&path.child("operator"), other, vec![why], errors);
            }
        }
    }
    let names: Vec<&str> = list(selector, "matchExpressions").iter().map(|r| text(r, "scopeName")).collect();
    errors.extend(conflicts(&names).into_iter().map(&invalid));
}

pub fn validate_status(new: &Value, _old: &Value, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    amount_errors(new, "status", "hard", &mut errors);
    amount_errors(new, "status", "used", &mut errors);
    errors
}
