//! Tolerations, affinities, Node selectors and topology spread constraints.

use std::collections::{HashMap, HashSet};

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, json, names};

use super::Errors;
use crate::builtin::checks::{
    entries, invalid_each, is_set, items, list, named, operator_errors, selector_operators, text,
};
use crate::builtin::defaults::at_mut;
use crate::rules::label_name;

/// Validates a toleration of a Pod or of a RuntimeClass.
pub fn validate_toleration(toleration: &Value, path: &FieldPath, errors: &mut Errors) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
    if key.is_empty() && operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&path.child("operator"), &Value::from(operator), why));
    }
    if is_set(toleration, "tolerationSeconds") && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), &Value::from(effect), why));
    }
    match operator {
        "Equal" | "" => {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                let why = problems.join(";");
                errors.push(FieldError::invalid(&path.child("operator"), &Value::from(value), why));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&path.child("operator"), &Value::from(value), why));
        }
        "Exists" => {}
        other => {
            errors.push(FieldError::not_supported(&path.child("operator"), &Value::from(other), &["Equal", "Exists"]))
        }
    }
    if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.push(FieldError::not_supported(&path.child("effect"), &Value::from(effect), &known));
    }
}

pub(super) fn affinity(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let path = path.child("affinity");
    let affinity = spec.get("affinity").unwrap_or(&Value::Null);
    let (required, preferred) =
        ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
    if let Some(node) = affinity.get("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = node.get(required) {
            node_selector(selector, &path.child(required), errors);
        }
        for (path, term) in items(node, preferred, &path) {
            if let Some(preference) = term.get("preference") {
                selector_term(preference, &path.child("preference"), Values::Any, errors);
            }
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = affinity.get(kind) else { continue };
        let path = path.child(kind);
        let plain = items(terms, required, &path).collect::<Vec<_>>();
        let weighted = items(terms, preferred, &path)
            .filter_map(|(path, term)| Some((path.child("podAffinityTerm"), term.get("podAffinityTerm")?)));
        for (path, term) in plain.into_iter().chain(weighted) {
            for selector in ["labelSelector", "namespaceSelector"] {
                selector_operators(term.get(selector), &path.child(selector), errors);
            }
            for name in list(term, "namespaces").iter().map(|name| name.as_str().unwrap_or_default()) {
                invalid_each(&path.child("namespace"), name, label_name(name), errors);
            }
            label_keys(term, &path, errors);
        }
    }
}

/// A selector of Nodes.
pub fn node_selector(selector: &Value, path: &FieldPath, errors: &mut Errors) {
    for (path, term) in items(selector, "nodeSelectorTerms", path) {
        selector_term(term, &path, Values::OfLabels, errors);
    }
}

/// The values that the expressions of a term may use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    OfLabels,
    Any,
}

fn selector_term(term: &Value, path: &FieldPath, known: Values, errors: &mut Errors) {
    for (path, requirement) in items(term, "matchExpressions", path) {
        match text(requirement, "operator") {
            "Gt" | "Lt" if list(requirement, "values").len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(&path.child("values"), why));
            }
            "Gt" | "Lt" => {}
            _ => operator_errors(requirement, &path, errors),
        }
        for (path, value) in items(requirement, "values", &path).filter(|_| known == Values::OfLabels) {
            let value = value.as_str().unwrap_or_default();
            invalid_each(&path, value, names::label_value(value), errors);
        }
    }
    for (path, requirement) in items(term, "matchFields", path) {
        let (operator, key) = (text(requirement, "operator"), text(requirement, "key"));
        match operator {
            "In" | "NotIn" if list(requirement, "values").len() != 1 => {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(&path.child("values"), why));
            }
            "In" | "NotIn" => {}
            other => {
                let (why, value) = ("not a valid selector operator", Value::from(other));
                errors.push(named(FieldError::invalid(&path.child("operator"), &value, why), &value));
            }
        }
        if key == "metadata.name" {
            for (path, value) in items(requirement, "values", &path) {
                let value = value.as_str().unwrap_or_default();
                invalid_each(&path, value, names::dns1123_subdomain(value), errors);
            }
        } else {
            let why = "not a valid field selector key";
            errors.push(FieldError::invalid(&path.child("key"), &Value::from(key), why));
        }
    }
}

pub(super) fn spread(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let mut left: HashMap<(&str, &str), usize> = HashMap::new();
    for constraint in list(spec, "topologySpreadConstraints") {
        *left.entry((text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"))).or_default() += 1;
    }
    for (path, constraint) in items(spec, "topologySpreadConstraints", path) {
        let (key, unsatisfiable) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        let equal_ones = left.entry((key, unsatisfiable)).or_default();
        *equal_ones = equal_ones.saturating_sub(1);
        let choices = ["DoNotSchedule", "ScheduleAnyway"];
        if !choices.contains(&unsatisfiable) {
            let path = path.child("whenUnsatisfiable");
            errors.push(FieldError::not_supported(&path, &Value::from(unsatisfiable), &choices));
        }
        if is_set(constraint, "minDomains") && unsatisfiable != choices[0] {
            let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}");
            let count = constraint.get("minDomains").unwrap_or(&Value::Null);
            errors.push(FieldError::invalid(&path.child("minDomains"), count, why));
        }
        // of several equal constraints, all but the last are reported
        if *equal_ones > 0 {
            let shown = format!("{{{key}, {unsatisfiable}}}");
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, &Value::from(shown)));
        }
        label_keys(constraint, &path, errors);
        selector_operators(constraint.get("labelSelector"), &path.child("labelSelector"), errors);
    }
}

/// Validates the label keys whose values are copied from the Pod into the selector of a term or a constraint.
fn label_keys(term: &Value, path: &FieldPath, errors: &mut Errors) {
    let keys = |name: &str| list(term, name).iter().filter_map(Value::as_str);
    let selector = term.get("labelSelector").filter(|selector| !selector.is_null());
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        let path = path.child(name);
        if selector.is_none() && !list(term, name).is_empty() {
            errors.push(FieldError::forbidden(&path, "must not be specified when labelSelector is not set"));
            continue;
        }
        for (i, key) in keys(name).enumerate() {
            invalid_each(&path.index(i), key, names::qualified_name(key), errors);
        }
    }
    let mut given: HashSet<&str> = HashSet::new();
    let labels = selector.and_then(|selector| selector.get("matchLabels")).unwrap_or(&Value::Null);
    given.extend(entries(labels, &[]).map(|(key, _)| key.as_str()));
    // the requirements that were added for the keys come last
    for requirement in selector.map(|selector| list(selector, "matchExpressions")).unwrap_or_default() {
        let key = text(requirement, "key");
        let at = list(term, "matchLabelKeys").iter().rposition(|known| known.as_str() == Some(key));
        if let Some(at) = at.filter(|_| given.contains(key)) {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(&path.index(at), &Value::from(key), why));
        }
        given.insert(key);
    }
    let others: HashSet<&str> = keys("mismatchLabelKeys").collect();
    for (i, key) in keys("matchLabelKeys").enumerate().filter(|(_, key)| others.contains(key)) {
        let path = path.child("matchLabelKeys").index(i);
        let why = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(FieldError::invalid(&path, &Value::from(key), why));
    }
}

/// Affinities and constraints of a new Pod may name label keys. Adds the labels that the Pod has for these keys to
/// their selectors.
pub fn take_label_keys(pod: &mut Value) {
    let labels = pod.at(&["metadata", "labels"]).cloned().unwrap_or_default();
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = at_mut(pod, &["spec", "affinity", kind, required]).and_then(Value::as_array_mut);
        terms.into_iter().flatten().for_each(|term| take_keys(term, &labels));
        let weighted = at_mut(pod, &["spec", "affinity", kind, preferred]).and_then(Value::as_array_mut);
        let terms = weighted.into_iter().flatten().filter_map(|term| term.get_mut("podAffinityTerm"));
        terms.for_each(|term| take_keys(term, &labels));
    }
    let constraints = at_mut(pod, &["spec", "topologySpreadConstraints"]).and_then(Value::as_array_mut);
    constraints.into_iter().flatten().for_each(|constraint| take_keys(constraint, &labels));
}

fn take_keys(term: &mut Value, labels: &Value) {
    let taken: Vec<Value> = [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]
        .into_iter()
        .flat_map(|(name, operator)| list(term, name).iter().map(move |key| (key, operator)))
        .filter_map(|(key, operator)| {
            let value = labels.get(key.as_str()?)?.clone();
            Some(json!({"key": (key.clone()), "operator": (operator), "values": [(value)]}))
        })
        .collect();
    let Some(selector) = term.get_mut("labelSelector").filter(|selector| !selector.is_null()) else { return };
    if taken.is_empty() {
        return;
    }
    let mut requirements = list(selector, "matchExpressions").to_vec();
    requirements.extend(taken);
    selector.set_at(&["matchExpressions"], Value::Array(requirements));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys_are_taken_into_selectors() {
        let mut pod = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}},
            "spec": {"topologySpreadConstraints": [
                {"matchLabelKeys": ["a", "c"], "labelSelector": {}},
                {"matchLabelKeys": ["a"]},
            ], "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"mismatchLabelKeys": ["b"], "labelSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
            ]}}}
        });
        take_label_keys(&mut pod);
        let constraints = pod.at(&["spec", "topologySpreadConstraints"]).unwrap().to_json();
        assert_eq!(
            constraints,
            r#"[{"labelSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["1"]}]},"matchLabelKeys":["a","c"]},{"matchLabelKeys":["a"]}]"#
        );
        let affinity = pod.at(&["spec", "affinity"]).unwrap().to_json();
        assert!(affinity.contains(r#"{"key":"b","operator":"NotIn","values":["2"]}"#), "{affinity}");
    }

    #[test]
    fn label_keys_come_once() {
        let requirement = |key: &str| json!({"key": (key), "operator": "Exists"});
        let cases = [
            (json!({"matchLabelKeys": ["a"]}), "spec.matchLabelKeys: Forbidden: must not be specified when"),
            (json!({"matchLabelKeys": ["a"], "labelSelector": {"matchExpressions": [(requirement("a"))]}}), ""),
            (
                json!({"matchLabelKeys": ["a"], "labelSelector": {"matchExpressions": [(requirement("a")), (requirement("a"))]}}),
                "spec[0]: Invalid value: \"a\": exists in both matchLabelKeys and labelSelector",
            ),
            (
                json!({"matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"], "labelSelector": {}}),
                "spec.matchLabelKeys[0]: Invalid value: \"a\": exists in both matchLabelKeys and mismatchLabelKeys",
            ),
        ];
        for (term, want) in cases {
            let mut errors = vec![];
            label_keys(&term, &FieldPath::new("spec"), &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found.len(), usize::from(!want.is_empty()), "{found:?}");
            assert!(found.iter().all(|error| error.starts_with(want)), "{found:?}");
        }
    }
}
