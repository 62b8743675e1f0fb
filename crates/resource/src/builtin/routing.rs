//! Ingresses, NetworkPolicies, disruption budgets and PriorityClasses: rules of several fields.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

use super::checks::{items, list, text};
use super::podspec;

/// An Ingress has a backend for what it routes.
pub fn validate_ingress(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    let spec = object.get("spec").unwrap_or(&empty);
    let default = spec.get("defaultBackend").filter(|backend| !backend.is_null());
    if list(spec, "rules").is_empty() && default.is_none() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&path, &Value::Null, why));
    }
    if let Some(backend) = default {
        backend_errors(backend, &path.child("defaultBackend"), &mut errors);
    }
    for (path, rule) in items(spec, "rules", &path) {
        let http = rule.get("http").unwrap_or(&empty);
        for (path, one) in items(http, "paths", &path.child("http")) {
            let (kind, given) = (text(one, "pathType"), text(one, "path"));
            if matches!(kind, "Exact" | "Prefix") && !given.starts_with('/') {
                errors.push(FieldError::invalid(&path.child("path"), &Value::from(given), "must be an absolute path"));
            }
            backend_errors(one.get("backend").unwrap_or(&empty), &path.child("backend"), &mut errors);
        }
    }
    errors
}

fn backend_errors(backend: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let is_set = |name: &str| backend.get(name).is_some_and(|value| !value.is_null());
    let mut invalid = |why: &str| errors.push(FieldError::invalid(path, &Value::from(""), why));
    match (is_set("service"), is_set("resource")) {
        (true, true) => return invalid("cannot set both resource and service backends"),
        (false, false) => return invalid("resource or service backend is required"),
        (false, true) => return,
        (true, false) => {}
    }
    let number = backend.at(&["service", "port", "number"]).and_then(Value::as_int).unwrap_or_default();
    match (backend.str_at(&["service", "port", "name"]), number) {
        ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
        (name, number) if !name.is_empty() && number != 0 => {
            invalid("cannot set both port name & port number");
        }
        _ => {}
    }
}

/// A NetworkPolicy.
pub fn validate_network_policy(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let (path, empty) = (FieldPath::new("spec"), Value::object());
    let spec = object.get("spec").unwrap_or(&empty);
    podspec::selector_operators(spec.get("podSelector"), &path.child("podSelector"), &mut errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (path, rule) in items(spec, direction, &path) {
            for (path, port) in items(rule, "ports", &path) {
                port_range(port, &path, &mut errors);
            }
            for (path, peer) in items(rule, peers, &path) {
                peer_errors(peer, &path, &mut errors);
            }
        }
    }
    if list(spec, "policyTypes").len() > 2 {
        let why = "may not specify more than two policyTypes";
        let given = spec.get("policyTypes").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child("policyTypes"), &given, why));
    }
    errors
}

fn port_range(port: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(end) = port.get("endPort").filter(|end| !end.is_null()) else { return };
    let mut invalid = |why: &str| errors.push(FieldError::invalid(&path.child("endPort"), end, why));
    match port.get("port").filter(|port| !port.is_null()) {
        None => invalid("may not be specified when `port` is not specified"),
        Some(Value::String(_)) => invalid("may not be specified when `port` is non-numeric"),
        Some(start) if end.as_int() < start.as_int() => invalid("must be greater than or equal to `port`"),
        Some(_) => {}
    }
}

fn peer_errors(peer: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let is_set = |name: &str| peer.get(name).is_some_and(|value| !value.is_null());
    let selects = ["podSelector", "namespaceSelector"].into_iter().filter(|name| is_set(name));
    for name in selects.clone() {
        podspec::selector_operators(peer.get(name), &path.child(name), errors);
    }
    match (selects.count(), is_set("ipBlock")) {
        (0, false) => errors.push(FieldError::required(path, "must specify a peer")),
        (1.., true) => errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer")),
        _ => {}
    }
}

/// A PodDisruptionBudget.
pub fn validate_budget(object: &Value, _old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    const SHARE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let selector = object.at(&["spec", "selector"]).filter(|selector| !selector.is_null());
    podspec::selector_operators(selector, &path.child("selector"), &mut errors);
    for name in ["minAvailable", "maxUnavailable"] {
        let why = match object.at(&["spec", name]) {
            Some(Value::Int(number)) if *number < 0 => "must be greater than or equal to 0",
            Some(Value::String(share)) if !is_share(share) => SHARE,
            _ => continue,
        };
        let given = object.at(&["spec", name]).cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child(name), &given, why));
    }
    errors
}

fn is_share(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// The value of a PriorityClass never changes.
pub fn validate_priority_class(object: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    match old {
        Some(old) if old.get("value") != object.get("value") => {
            vec![FieldError::forbidden(&FieldPath::new("value"), "may not be changed in an update.")]
        }
        _ => vec![],
    }
}
