//! Lookups and validation that several kinds share.

use std::collections::HashSet;

use machinery::types::internal_lines;
use machinery::{Release, Value, names};

use schema::at::{At, errors_of};
pub use schema::metadata::labels;

/// The items of a list; none if it is absent.
pub fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.items_at(&[name])
}

pub fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.str_at(&[name])
}

/// Whether a field has a value.
pub fn is_set(object: &Value, name: &str) -> bool {
    object.get(name).is_some_and(|value| !value.is_null())
}

/// A struct as Go prints it, with its fields in the given order.
pub fn go_struct(fields: &[(&str, Value)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{}", value.to_json())).collect();
    format!("{{{}}}", fields.join(","))
}

/// The lines in which two values differ, as kube-apiserver prints them in their internal type.
pub fn difference(old: &Value, new: &Value, go: &str) -> String {
    machinery::difflines::unified(&internal_lines(old, go), &internal_lines(new, go))
}

pub fn go_conditions(status: At) -> String {
    const ORDER: [&str; 6] = ["type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"];
    let shown = |condition: &Value| {
        go_struct(&ORDER.into_iter().filter_map(|name| Some((name, condition.get(name)?.clone()))).collect::<Vec<_>>())
    };
    format!("[{}]", status.list("conditions").iter().map(shown).collect::<Vec<_>>().join(","))
}

/// Validates the conditions (`metav1.Condition`) of a status.
pub fn conditions(status: At) {
    let mut known = HashSet::new();
    for condition in status.items_of("conditions") {
        let kind = condition.text("type");
        if !known.insert(kind) {
            let path =
                if status.release() >= Release::V1_37 { condition.path() } else { condition.field("type").path() };
            status.push(machinery::FieldError::duplicate(&path, &Value::from(kind)));
        }
        one_condition(condition);
    }
}

/// Validates a status that has no rules besides those for conditions.
pub fn validate_conditions(at: At) {
    conditions(at.field("status"));
}

fn one_condition(condition: At) {
    const REASON_BYTES_MAX: usize = 1024;
    const MESSAGE_BYTES_MAX: usize = 32 * 1024;
    const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
    let is_required = condition.release() >= Release::V1_37;
    let (kind, state) = (condition.field("type"), condition.field("status"));
    match kind.as_text().is_empty() && is_required {
        true => kind.required("is required"),
        false => kind.check_text(names::qualified_name),
    }
    match state.as_text().is_empty() && is_required {
        true => state.required(""),
        false => state.shown_as_json().one_of(&["False", "True", "Unknown"]),
    }
    condition.field("observedGeneration").at_least(0, "must be greater than or equal to zero");
    condition.field("lastTransitionTime").require("");
    let reason = condition.field("reason");
    match reason.as_text() {
        "" => reason.required(""),
        text if !is_reason(text) => reason.invalid(REASON),
        _ => {}
    }
    reason.max_bytes(REASON_BYTES_MAX);
    condition.field("message").max_bytes(MESSAGE_BYTES_MAX);
}

fn is_reason(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().copied().is_some_and(word)
        && bytes.iter().all(|byte| word(*byte) || matches!(byte, b',' | b':'))
}

pub fn label_selector(selector: At) {
    labels(selector.field("matchLabels"));
    for requirement in selector.items_of("matchExpressions") {
        operator(requirement);
        requirement.field("key").check_text(names::qualified_name);
        requirement.items_of("values").for_each(|value| value.check_text(names::label_value));
    }
}

/// Validates the operator of a requirement of a label selector, and the number of its values.
pub fn operator(requirement: At) {
    let values = requirement.field("values");
    let is_empty = requirement.list("values").is_empty();
    match requirement.text("operator") {
        "In" | "NotIn" if is_empty => values.required("must be specified when `operator` is 'In' or 'NotIn'"),
        "Exists" | "DoesNotExist" if !is_empty => {
            values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => requirement.field_or_empty("operator").shown_as_json().invalid("not a valid selector operator"),
    }
}

/// Validates the operators of a label selector and their values.
pub fn selector_operators(selector: At) {
    for requirement in selector.items_of("matchExpressions") {
        operator(requirement);
        requirement.items_of("values").for_each(|value| value.check_text(names::label_value));
    }
}

/// Whether a selector can be used, since its labels and expressions are valid.
pub fn is_usable_selector(selector: &Value) -> bool {
    errors_of(selector, None, Release::NEWEST, label_selector).is_empty()
}
