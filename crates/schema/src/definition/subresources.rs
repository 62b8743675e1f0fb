//! The rules for subresources and printer columns.

use machinery::field::FieldErrorKind;
use machinery::{FieldError, FieldPath, Value};

use super::openapi::text;

const TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const FORMATS: &[&str] = &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

pub(super) fn validate(subresources: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(scale) = subresources.get("scale") else { return };
    let required = [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")];
    for (key, root) in required {
        let place = path.child("scale").child(key);
        let value = text(scale, key);
        if value.is_empty() {
            errors.push(FieldError::required(&place, ""));
        } else if simple_path(value, &place, errors) && !below(value, root) {
            let detail = format!("should be a json path under {root}");
            errors.push(FieldError::invalid(&place, &Value::from(value), detail));
        }
    }
    let value = text(scale, "labelSelectorPath");
    let place = path.child("scale").child("labelSelectorPath");
    if !value.is_empty() && simple_path(value, &place, errors) && !below(value, ".spec") && !below(value, ".status") {
        // upstream passes a pointer, which is printed as JSON
        let detail = "should be a json path under either .spec or .status".to_owned();
        let (kind, value) = (FieldErrorKind::Invalid, Value::from(value).to_json());
        errors.push(FieldError { kind, field: place.as_str().to_owned(), value, detail });
    }
}

fn below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'))
}

fn simple_path(value: &str, path: &FieldPath, errors: &mut Vec<FieldError>) -> bool {
    if !value.starts_with('.') {
        let detail = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(path, &Value::from(value), detail));
    }
    value.starts_with('.')
}

pub(super) fn validate_columns(columns: Option<&Value>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (i, column) in columns.and_then(Value::as_array).unwrap_or_default().iter().enumerate() {
        validate_column(column, &path.index(i), errors);
    }
}

fn validate_column(column: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if text(column, "name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let (kind, place) = (text(column, "type"), path.child("type"));
    let detail = format!("must be one of {}", TYPES.join(","));
    if kind.is_empty() {
        errors.push(FieldError::required(&place, detail));
    } else if !TYPES.contains(&kind) {
        errors.push(FieldError::invalid(&place, &Value::from(kind), detail));
    }
    let format = text(column, "format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(&path.child("format"), &Value::from(format), detail));
    }
    let (json_path, place) = (text(column, "jsonPath"), path.child("JSONPath"));
    if json_path.is_empty() {
        errors.push(FieldError::required(&place, ""));
    } else {
        simple_path(json_path, &place, errors);
    }
}
