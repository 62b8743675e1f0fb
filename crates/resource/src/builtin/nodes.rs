//! Nodes: their taints, and what updates may change.

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value, names};

use super::checks::{invalid_each, list, text};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The taints of a Node.
pub fn taint_errors(taints: &Value, _path: &FieldPath, errors: &mut Vec<FieldError>) {
    // upstream says that they are in the metadata
    let path = FieldPath::new("metadata").child("taints");
    let mut seen = vec![];
    for (i, taint) in taints.as_array().unwrap_or_default().iter().enumerate() {
        let path = path.index(i);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        invalid_each(&path.child("key"), key, names::qualified_name(key), errors);
        invalid_each(&path.child("value"), value, names::label_value(value), errors);
        effect_errors(effect, &path.child("effect"), errors);
        if seen.contains(&(key, effect)) {
            let mut error = FieldError::duplicate(&path, &Value::Null);
            error.value = shown(taint);
            errors.push(error);
        }
        seen.push((key, effect));
    }
}

/// A taint as Go prints its internal type.
fn shown(taint: &Value) -> String {
    let quoted = |name: &str| machinery::value::quote(text(taint, name));
    format!(
        "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":null}}",
        quoted("key"),
        quoted("value"),
        quoted("effect")
    )
}

fn effect_errors(effect: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if effect.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !EFFECTS.contains(&effect) {
        errors.push(FieldError::not_supported(path, &Value::from(effect), &EFFECTS));
    }
}

pub fn validate(node: &Value, old: Option<&Value>, _release: Release) -> Vec<FieldError> {
    let mut errors = vec![];
    let path = FieldPath::new("spec");
    let ranges = |node: &Value| node.get("spec").map(|spec| list(spec, "podCIDRs").to_vec()).unwrap_or_default();
    if ranges(node).len() > 2 {
        let why = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(&path.child("podCIDRs"), &Value::Array(ranges(node)), why));
    }
    let Some(old) = old else { return errors };
    if !ranges(old).is_empty() && ranges(old) != ranges(node) {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&path.child("podCIDRs"), why));
    }
    let provider = |node: &Value| node.str_at(&["spec", "providerID"]).to_owned();
    if !provider(old).is_empty() && provider(old) != provider(node) {
        let why = if provider(node).is_empty() { "cleared" } else { "modified" };
        let why = format!("field cannot be {why} once set");
        errors.push(FieldError::invalid(&path.child("providerID"), &Value::Null, why));
    }
    errors
}
