//! Pods with scheduling gates: until the last gate is removed, updates may add node selectors and node affinities.

use machinery::Value;
use machinery::field::{FieldError, FieldPath};

use super::checks::{invalid_internal, invalid_shown, list};
use super::defaults::restore;

const AFFINITY: [&str; 2] = ["affinity", "nodeAffinity"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const TERMS: &str = "nodeSelectorTerms";

/// Checks that the spec `new` of a Pod that had gates only adds to where the Pod may run, and sets these fields back to
/// those of `old`. A Pod without gates stays as it is.
pub fn take_additions(new: &mut Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if list(old, "schedulingGates").is_empty() {
        return;
    }
    added_selectors(new, old, &path.child("nodeSelector"), errors);
    restore(new, old, &["nodeSelector"]);
    if new.at(&AFFINITY) == old.at(&AFFINITY) {
        return;
    }
    added_terms(new, old, &path.child("affinity").child("nodeAffinity"), errors);
    restore(new, old, &AFFINITY);
    let is_bare = new.get("affinity").and_then(Value::as_object).is_some_and(|affinity| affinity.is_empty());
    if is_bare && old.get("affinity").is_none() {
        new.remove_at(&["affinity"]);
    }
}

fn added_selectors(new: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let selectors = |spec: &Value| spec.get("nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default();
    let (now, before) = (selectors(new), selectors(old));
    if before.iter().any(|(key, value)| now.get(key) != Some(value)) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        let shown = new.get("nodeSelector").map_or_else(|| "null".to_owned(), Value::to_json);
        errors.push(invalid_shown(path, shown, why));
    }
}

/// Required terms may only gain requirements, and only at the end.
fn added_terms(new: &Value, old: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let terms = |spec: &Value| spec.at(&[AFFINITY[0], AFFINITY[1], REQUIRED]).cloned().unwrap_or_default();
    let (now, before) = (terms(new), terms(old));
    let is_given = now.get(TERMS).is_some_and(|terms| !terms.is_null());
    let (now, before) = (list(&now, TERMS), list(&before, TERMS));
    let path = path.child(REQUIRED).child(TERMS);
    if !before.is_empty() && before.len() != now.len() {
        let print = |term| machinery::types::internal_json(term, "core.NodeSelectorTerm", false);
        let shown: Vec<String> = now.iter().map(print).collect();
        let shown = if !is_given { "null".to_owned() } else { format!("[{}]", shown.join(",")) };
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return errors.push(invalid_shown(&path, shown, why));
    }
    for (index, (term, before)) in now.iter().zip(before).enumerate() {
        if !only_adds(term, before) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(invalid_internal(&path.index(index), term, "core.NodeSelectorTerm", why));
        }
    }
}

/// Whether a term has all requirements of the old term, and perhaps more. A term without requirements must not get any.
fn only_adds(term: &Value, before: &Value) -> bool {
    let kinds = ["matchExpressions", "matchFields"];
    if kinds.iter().all(|kind| list(before, kind).is_empty()) {
        return kinds.iter().all(|kind| list(term, kind).is_empty());
    }
    kinds.iter().all(|kind| list(term, kind).starts_with(list(before, kind)))
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    /// A term that wants one of the zones.
    fn zones(zones: &[&str]) -> Value {
        let expressions = zones.iter().map(|zone| json!({"key": "zone", "operator": "In", "values": [(*zone)]}));
        json!({"matchExpressions": (expressions.collect::<Value>())})
    }

    fn required(terms: Vec<Value>) -> Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": (Value::Array(terms))
        }}}})
    }

    fn with_gate(mut spec: Value) -> Value {
        spec.set_at(&["schedulingGates"], json!([{"name": "wait"}]));
        spec
    }

    #[test]
    fn gated_pods_only_add() {
        let one = json!({"nodeSelector": {"a": "1"}});
        let two = json!({"nodeSelector": {"a": "1", "b": "2"}});
        let anti = json!({"affinity": {"podAntiAffinity": {}, "nodeAffinity": {}}});
        let cases = [
            (json!({}), one.clone(), true, ""),
            (one.clone(), two.clone(), true, ""),
            (
                two,
                one.clone(),
                true,
                "spec.nodeSelector: Invalid value: {\"a\":\"1\"}: only additions to spec.nodeSelector",
            ),
            (one, json!({}), true, "spec.nodeSelector: Invalid value: null: only additions to spec.nodeSelector"),
            (json!({}), required(vec![zones(&["x"])]), true, ""),
            (json!({}), anti, false, ""),
            (required(vec![]), required(vec![zones(&["x"]), zones(&["y"])]), true, ""),
            (required(vec![zones(&["x"])]), required(vec![zones(&["x", "y"])]), true, ""),
            (
                required(vec![zones(&["x"])]),
                required(vec![zones(&["y", "x"])]),
                true,
                "nodeSelectorTerms[0]: Invalid value: {",
            ),
            (required(vec![zones(&[])]), required(vec![zones(&["x"])]), true, "nodeSelectorTerms[0]: Invalid value: {"),
            (required(vec![zones(&["x"])]), json!({}), true, "nodeSelectorTerms: Invalid value: null: no additions"),
        ];
        for (old, spec, equal, want) in cases {
            let (mut new, old, mut errors) = (with_gate(spec), with_gate(old), vec![]);
            take_additions(&mut new, &old, &FieldPath::new("spec"), &mut errors);
            assert_eq!(new == old, equal, "{new:?} {old:?}");
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found.len(), usize::from(!want.is_empty()), "{found:?}");
            assert!(found.iter().all(|error| error.contains(want)), "{found:?}");
        }
    }

    #[test]
    fn pods_without_gates_stay() {
        let (old, spec) = (json!({}), json!({"nodeSelector": {"a": "1"}}));
        let (mut new, mut errors) = (spec.clone(), vec![]);
        take_additions(&mut new, &old, &FieldPath::new("spec"), &mut errors);
        assert_eq!((new, errors.len()), (spec, 0));
    }
}
