//! The rules for subresources and printer columns.

use crate::at::At;

const TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const FORMATS: &[&str] = &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

pub(super) fn validate(subresources: At) {
    let Some(scale) = subresources.field_if_given("scale") else { return };
    for (key, root) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let path = scale.field(key);
        if path.as_text().is_empty() {
            path.required("");
        } else if simple_path(path) && !below(path, root) {
            path.invalid(format!("should be a json path under {root}"));
        }
    }
    let path = scale.field("labelSelectorPath");
    if !path.as_text().is_empty() && simple_path(path) && !below(path, ".spec") && !below(path, ".status") {
        // upstream passes a pointer, which is printed as JSON
        path.shown_as_json().invalid("should be a json path under either .spec or .status");
    }
}

fn below(path: At, root: &str) -> bool {
    path.as_text().strip_prefix(root).is_some_and(|rest| rest.starts_with('.'))
}

fn simple_path(path: At) -> bool {
    let is_simple = path.as_text().starts_with('.');
    path.invalid_if(!is_simple, "must be a simple json path starting with .");
    is_simple
}

pub(super) fn validate_column(column: At) {
    column.field("name").require_text("");
    let (kind, detail) = (column.field("type"), format!("must be one of {}", TYPES.join(",")));
    if kind.as_text().is_empty() {
        kind.required(detail);
    } else {
        kind.invalid_if(!TYPES.contains(&kind.as_text()), &detail);
    }
    let format = column.field("format");
    if !format.as_text().is_empty() && !FORMATS.contains(&format.as_text()) {
        format.invalid(format!("must be one of {}", FORMATS.join(",")));
    }
    let path = column.field("jsonPath").with_name("JSONPath");
    if path.as_text().is_empty() {
        path.required("");
    } else {
        simple_path(path);
    }
}
