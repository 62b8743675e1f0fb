//! Tolerations, affinities, Node selectors and topology spread constraints.

use std::collections::{HashMap, HashSet};

use machinery::{Value, json, names};

use resource::builtin::checks::{list, operator, selector_operators};
use resource::builtin::defaults::at_mut;
use resource::rules::label_name;
use schema::at::{At, CheckStage};

/// Validates a toleration of a Pod or of a RuntimeClass.
pub fn toleration(at: At) {
    let (operator, value, effect) = (at.field_or_empty("operator"), at.text("value"), at.field_or_empty("effect"));
    if at.text("key").is_empty() && operator.as_text() != "Exists" {
        operator.invalid("operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
    }
    if at.has("tolerationSeconds") && effect.as_text() != "NoExecute" {
        effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    match operator.as_text() {
        "Equal" | "" => {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                operator.shown_as_text(value).invalid(problems.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            operator.shown_as_text(value).invalid("value must be empty when `operator` is 'Exists'");
        }
        "Exists" => {}
        _ => operator.unsupported(&["Equal", "Exists"]),
    }
    if !effect.as_text().is_empty() {
        effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn affinity(affinity: At) {
    let node = affinity.field("nodeAffinity");
    node_selector(node.field(REQUIRED));
    for term in node.items_of(PREFERRED) {
        selector_term(term.field("preference"), Values::Any);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = affinity.field(kind);
        terms.items_of(REQUIRED).for_each(pod_term);
        for weighted in terms.items_of(PREFERRED) {
            weighted.field_if_given("podAffinityTerm").into_iter().for_each(pod_term);
        }
    }
}

fn pod_term(term: At) {
    selector_operators(term.field("labelSelector"));
    selector_operators(term.field("namespaceSelector"));
    let namespaces = term.field("namespaces").with_name("namespace");
    namespaces.items().for_each(|name| namespaces.with_value(name.value).check_text(label_name));
    label_keys(term);
}

pub fn node_selector(selector: At) {
    selector.items_of("nodeSelectorTerms").for_each(|term| selector_term(term, Values::OfLabels));
}

/// Whether the values in the expressions of a term must be valid label values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    OfLabels,
    Any,
}

fn selector_term(term: At, known: Values) {
    for requirement in term.items_of("matchExpressions") {
        match requirement.text("operator") {
            "Gt" | "Lt" if requirement.list("values").len() != 1 => {
                requirement.field("values").required("must be specified single value when `operator` is 'Lt' or 'Gt'")
            }
            "Gt" | "Lt" => {}
            _ => operator(requirement),
        }
        if known == Values::OfLabels {
            requirement.items_of("values").for_each(|value| value.check_text(names::label_value));
        }
    }
    for requirement in term.items_of("matchFields") {
        match requirement.text("operator") {
            "In" | "NotIn" if requirement.list("values").len() != 1 => requirement
                .field("values")
                .required("must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
            "In" | "NotIn" => {}
            _ => requirement.field_or_empty("operator").shown_as_json().invalid("not a valid selector operator"),
        }
        if requirement.text("key") == "metadata.name" {
            requirement.items_of("values").for_each(|value| value.check_text(names::dns1123_subdomain));
        } else {
            requirement.field_or_empty("key").invalid("not a valid field selector key");
        }
    }
}

pub(super) fn spread(spec: At) {
    let mut left: HashMap<(&str, &str), usize> = HashMap::new();
    for constraint in spec.items_of("topologySpreadConstraints") {
        *left.entry((constraint.text("topologyKey"), constraint.text("whenUnsatisfiable"))).or_default() += 1;
    }
    for constraint in spec.items_of("topologySpreadConstraints") {
        let (key, unsatisfiable) = (constraint.text("topologyKey"), constraint.text("whenUnsatisfiable"));
        let equal_ones = left.entry((key, unsatisfiable)).or_default();
        *equal_ones = equal_ones.saturating_sub(1);
        constraint.field_or_empty("whenUnsatisfiable").one_of(&["DoNotSchedule", "ScheduleAnyway"]);
        let domains = constraint.field("minDomains");
        if domains.is_given() && unsatisfiable != "DoNotSchedule" {
            let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}");
            domains.in_stage(CheckStage::Across).invalid(why);
        }
        // of several equal constraints, all but the last are reported
        if *equal_ones > 0 {
            let shown = format!("{{{key}, {unsatisfiable}}}");
            constraint.field_with_dots("{topologyKey, whenUnsatisfiable}").shown_as_text(&shown).duplicate();
        }
        label_keys(constraint);
        selector_operators(constraint.field("labelSelector"));
    }
}

/// Validates the label keys whose values are copied from the Pod into the selector of a term or a constraint.
fn label_keys(term: At) {
    let selector = term.field("labelSelector");
    let (matched, mismatched) = (term.field("matchLabelKeys"), term.field("mismatchLabelKeys"));
    for keys in [matched, mismatched] {
        if !selector.is_given() && keys.items().len() > 0 {
            keys.forbidden("must not be specified when labelSelector is not set");
            continue;
        }
        keys.items().for_each(|key| key.check_text(names::qualified_name));
    }
    let mut given: HashSet<&str> = selector.entries_of("matchLabels").map(|(key, _)| key).collect();
    // in order: `take_label_keys` has appended the requirements for the keys after the given ones
    for requirement in selector.items_of("matchExpressions") {
        let key = requirement.text("key");
        let place = matched.items().rposition(|known| known.as_text() == key);
        if let Some(place) = place.filter(|_| given.contains(key)) {
            // a quirk of upstream: the path lacks the name of the list
            term.item(place).shown_as_text(key).invalid("exists in both matchLabelKeys and labelSelector");
        }
        given.insert(key);
    }
    let others: HashSet<&str> = mismatched.items().map(|key| key.as_text()).collect();
    for key in matched.items().filter(|key| others.contains(key.as_text())) {
        key.invalid("exists in both matchLabelKeys and mismatchLabelKeys");
    }
}

/// Adds a requirement for each of `matchLabelKeys` and `mismatchLabelKeys` of a new Pod to the selector beside them,
/// with the Pod's own value of that label.
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
    use machinery::Release;
    use machinery::field::FieldPath;

    use super::*;
    use schema::at::errors_at;

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
            let errors = errors_at(&FieldPath::new("spec"), &term, None, Release::NEWEST, label_keys);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found.len(), usize::from(!want.is_empty()), "{found:?}");
            assert!(found.iter().all(|error| error.starts_with(want)), "{found:?}");
        }
    }
}
