//! The table columns of the kinds in the catalogue.

mod certificates;
mod network;
mod optional;
mod pod_cells;
mod pods;
mod storage;
mod workloads;

pub use certificates::*;
pub use network::*;
pub use optional::*;
pub use pods::*;
pub use storage::*;
pub use workloads::*;

use machinery::{Map, Value};

use super::BuiltInColumn;
use super::autoscaling_versions::FIELDS_OF_V2;
use super::checks::{list, text};
use super::workloads::TEMPLATE_GENERATION;

/// The annotations that stand for fields which a version of a kind does not have. kube-apiserver makes tables and
/// `PartialObjectMetadata` from its internal form, in which they are fields.
pub fn annotated_fields(api_version: &str, kind: &str) -> &'static [&'static str] {
    match (api_version, kind) {
        ("apps/v1", "DaemonSet") => &[TEMPLATE_GENERATION],
        ("autoscaling/v1", "HorizontalPodAutoscaler") => &FIELDS_OF_V2,
        _ => &[],
    }
}

type Cell = fn(&Value, i64) -> Value;

const fn text_column(name: &'static str, description: &'static str, cell: Cell) -> BuiltInColumn {
    BuiltInColumn { name, kind: "string", format: "", description, priority: 0, cell }
}

const fn integer(name: &'static str, description: &'static str, cell: Cell) -> BuiltInColumn {
    BuiltInColumn { kind: "integer", ..text_column(name, description, cell) }
}

const fn boolean(name: &'static str, description: &'static str, cell: Cell) -> BuiltInColumn {
    BuiltInColumn { kind: "boolean", ..text_column(name, description, cell) }
}

const fn wide(column: BuiltInColumn) -> BuiltInColumn {
    BuiltInColumn { priority: 1, ..column }
}

const NONE: &str = "<none>";

/// The text at a path, or `absent`.
fn text_or(object: &Value, path: &[&str], absent: &str) -> Value {
    match object.str_at(path) {
        "" => Value::from(absent),
        text => Value::from(text),
    }
}

fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or_default()
}

fn int(object: &Value, path: &[&str]) -> Value {
    Value::Int(number(object, path))
}

fn flag(object: &Value, path: &[&str]) -> Value {
    Value::Bool(object.at(path).and_then(Value::as_bool).unwrap_or_default())
}

fn size(items: &[Value]) -> Value {
    Value::Int(i64::try_from(items.len()).unwrap_or(i64::MAX))
}

fn at<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// The texts of a field of each item, separated by commas.
fn joined(items: &[Value], field: &str) -> Value {
    Value::from(items.iter().map(|item| text(item, field)).collect::<Vec<_>>().join(","))
}

/// The text of a selector: a LabelSelector, or the labels themselves.
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
    // by key alone: requirements of one key keep their order
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

fn selector_at(object: &Value, path: &[&str]) -> Value {
    let found = object.at(path).and_then(Value::as_object).map(selector_text).unwrap_or_default();
    Value::from(if found.is_empty() { NONE } else { &found })
}

/// The first three texts, and how many more there are.
fn shortened(texts: Vec<String>, none: &str) -> Value {
    Value::from(match texts.len() {
        0 => none.to_owned(),
        1..=3 => texts.join(","),
        all => format!("{} + {} more...", texts[..3].join(","), all - 3),
    })
}
