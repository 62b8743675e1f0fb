//! Validates the values at the paths of the scale subresource. Every write is checked, and errors are never ratcheted.

use machinery::field::FieldErrorKind;
use machinery::{FieldError, Value};

use crate::program::ScalePaths;
use crate::report::shown;

pub(crate) fn validate_spec(scale: Option<&ScalePaths>, object: &Value, errors: &mut Vec<FieldError>) {
    if let Some(scale) = scale {
        replicas(&scale.spec_replicas, object, errors);
    }
}

pub(crate) fn validate_status(scale: Option<&ScalePaths>, object: &Value, errors: &mut Vec<FieldError>) {
    let Some(scale) = scale else { return };
    replicas(&scale.status_replicas, object, errors);
    let Some(path) = &scale.label_selector else { return };
    let problem = match find(object, path) {
        Ok(None | Some(Value::String(_))) => return,
        Ok(Some(other)) => wrong_type(path, other, "string"),
        Err(problem) => problem,
    };
    errors.push(invalid(path, "\"\"".to_owned(), problem));
}

fn invalid(path: &str, value: String, detail: String) -> FieldError {
    FieldError { kind: FieldErrorKind::Invalid, field: path.to_owned(), value, detail }
}

/// The Go type of a value, and its text.
fn go(value: &Value) -> (&'static str, String) {
    match value {
        Value::Null => ("<nil>", "<nil>".to_owned()),
        Value::Bool(b) => ("bool", b.to_string()),
        Value::Int(i) => ("int64", i.to_string()),
        Value::Float(_) => ("float64", shown(value)),
        Value::String(s) => ("string", s.to_string()),
        Value::Encoded(text) => go(&Value::of_encoded(text)),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(|v| go(v).1).collect();
            ("[]interface {}", format!("[{}]", texts.join(" ")))
        }
        Value::Object(map) => {
            let texts: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", go(v).1)).collect();
            ("map[string]interface {}", format!("map[{}]", texts.join(" ")))
        }
    }
}

fn wrong_type(path: &str, value: &Value, want: &str) -> String {
    let (kind, text) = go(value);
    format!("{path} accessor error: {text} is of the type {kind}, expected {want}")
}

/// The value at a dotted path. If there is a null on the path, the value is absent. Anything else on the path that is
/// not an object is an error.
fn find<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let names = path.strip_prefix('.').unwrap_or(path);
    let mut value = object;
    let mut walked = String::new();
    for name in names.split('.') {
        match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(name) {
                Some(inner) => value = inner,
                None => return Ok(None),
            },
            other => {
                walked.push('.');
                walked.push_str(name);
                return Err(wrong_type(&walked, other, "map[string]interface{}"));
            }
        }
        walked.push('.');
        walked.push_str(name);
    }
    Ok(Some(value))
}

fn replicas(path: &str, object: &Value, errors: &mut Vec<FieldError>) {
    let (value, detail) = match find(object, path) {
        Ok(None) => return,
        Ok(Some(Value::Int(i))) if *i < 0 => (*i, "should be a non-negative integer".to_owned()),
        Ok(Some(Value::Int(i))) if *i > i64::from(i32::MAX) => {
            (*i, format!("should be less than or equal to {}", i32::MAX))
        }
        Ok(Some(Value::Int(_))) => return,
        Ok(Some(other)) => (0, wrong_type(path, other, "int64")),
        Err(problem) => (0, problem),
    };
    errors.push(invalid(path, value.to_string(), detail));
}
