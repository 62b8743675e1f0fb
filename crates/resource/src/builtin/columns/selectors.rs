//! Selectors as printer columns show them.

use machinery::{Map, Value};

use crate::builtin::checks::{list, text};

/// The text of a LabelSelector, or of a map of labels, such as a `nodeSelector`.
pub fn selector_text(selector: &Map) -> String {
    let labels = |map: &Map| -> Vec<String> {
        map.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect()
    };
    let of_labels = selector.get("matchLabels").and_then(Value::as_object).map(labels);
    let parts = match (selector.get("matchLabels"), selector.get("matchExpressions")) {
        (None, None) => labels(selector),
        _ => of_labels.unwrap_or_default(),
    };
    let key = |part: &str| part.split('=').next().unwrap_or_default().to_owned();
    let mut keyed: Vec<(String, String)> = parts.into_iter().map(|part| (key(&part), part)).collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default();
    keyed.extend(expressions.iter().map(|one| (text(one, "key").to_owned(), expression_text(one))));
    // by key alone, so that requirements of one key keep their order
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    keyed.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

fn expression_text(expression: &Value) -> String {
    let key = text(expression, "key");
    let mut values: Vec<&str> = list(expression, "values").iter().filter_map(Value::as_str).collect();
    values.sort_unstable();
    let values = values.join(",");
    match text(expression, "operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    }
}

/// A LabelSelector as the `String` method of Go's generated protobuf code prints it.
pub fn go_selector_text(selector: &Value) -> String {
    let labels = selector.fields_at(&["matchLabels"]);
    let labels: String = labels.map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default())).collect();
    let requirement = |it: &Value| {
        let values = list(it, "values").iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
        let (key, operator) = (it.str_at(&["key"]), it.str_at(&["operator"]));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    };
    let expressions: String = list(selector, "matchExpressions").iter().map(requirement).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
