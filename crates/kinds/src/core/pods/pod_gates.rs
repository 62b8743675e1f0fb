//! Pods with scheduling gates: until the last gate is removed, updates may add node selectors and node affinities.

use machinery::Value;

use resource::builtin::checks::list;
use resource::builtin::defaults::restore;
use schema::at::At;

const AFFINITY: [&str; 2] = ["affinity", "nodeAffinity"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const TERMS: &str = "nodeSelectorTerms";

/// Checks that the `spec` of a Pod that had gates only adds to where the Pod may run, and sets these fields back to
/// those of `old` in `new`, a copy. A Pod without gates stays as it is.
pub fn take_additions(new: &mut Value, old: &Value, spec: At) {
    if list(old, "schedulingGates").is_empty() {
        return;
    }
    added_selectors(spec.field("nodeSelector"));
    restore(new, old, &["nodeSelector"]);
    let affinity = spec.field("affinity.nodeAffinity");
    if affinity.old == Some(affinity.value) {
        return;
    }
    added_terms(affinity);
    restore(new, old, &AFFINITY);
    let is_bare = new.get("affinity").and_then(Value::as_object).is_some_and(|affinity| affinity.is_empty());
    if is_bare && old.get("affinity").is_none() {
        new.remove_at(&["affinity"]);
    }
}

fn added_selectors(at: At) {
    let before = at.old.and_then(Value::as_object).into_iter().flat_map(machinery::Map::iter);
    if before.into_iter().any(|(key, value)| at.value.get(key) != Some(value)) {
        at.shown_verbatim(&at.value.to_json())
            .invalid("only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    }
}

/// Required terms may only gain requirements, and only at the end.
fn added_terms(affinity: At) {
    let required = affinity.field(REQUIRED);
    let (terms, now) = (required.field(TERMS), required.list(TERMS));
    let before = terms.old_items();
    if !before.is_empty() && before.len() != now.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return terms.shown_verbatim(&terms.printed_items("core.NodeSelectorTerm")).invalid(why);
    }
    for (term, _) in terms.items().zip(before).filter(|(term, before)| !only_adds(term.value, before)) {
        term.shown_as_go("core.NodeSelectorTerm").invalid("only additions are allowed (no mutations or deletions)");
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
    use machinery::field::FieldPath;
    use machinery::{Release, json};

    use super::*;
    use schema::at::{errors_at, errors_of};

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
            let (spec, old) = (with_gate(spec), with_gate(old));
            let mut new = spec.clone();
            let check = |at: At| take_additions(&mut new, &old, at);
            let errors = errors_at(&FieldPath::new("spec"), &spec, Some(&old), Release::NEWEST, check);
            assert_eq!(new == old, equal, "{new:?} {old:?}");
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found.len(), usize::from(!want.is_empty()), "{found:?}");
            assert!(found.iter().all(|error| error.contains(want)), "{found:?}");
        }
    }

    #[test]
    fn pods_without_gates_stay() {
        let (old, spec) = (json!({}), json!({"nodeSelector": {"a": "1"}}));
        let mut new = spec.clone();
        let errors = errors_of(&spec, Some(&old), Release::NEWEST, |at| take_additions(&mut new, &old, at));
        assert_eq!((new, errors.len()), (spec, 0));
    }
}
