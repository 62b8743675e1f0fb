//! Field paths and field errors, as `k8s.io/apimachinery/pkg/util/validation/field` has them.

use std::collections::HashSet;

use crate::value::shortest::float;
use crate::value::{Value, quote};

/// A path such as `spec.list[0].key` or `metadata.annotations[example.com/x]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    pub fn root() -> FieldPath {
        FieldPath::default()
    }

    pub fn new(path: impl Into<String>) -> FieldPath {
        FieldPath(path.into())
    }

    #[must_use]
    pub fn child(&self, name: &str) -> FieldPath {
        if self.0.is_empty() { FieldPath(name.to_owned()) } else { self.with([".", name, ""]) }
    }

    fn with(&self, parts: [&str; 3]) -> FieldPath {
        let mut path = String::with_capacity(self.0.len() + parts.iter().map(|part| part.len()).sum::<usize>());
        path.push_str(&self.0);
        parts.iter().for_each(|part| path.push_str(part));
        FieldPath(path)
    }

    #[must_use]
    pub fn index(&self, index: usize) -> FieldPath {
        FieldPath(format!("{}[{index}]", self.0))
    }

    #[must_use]
    pub fn key(&self, key: &str) -> FieldPath {
        self.with(["[", key, "]"])
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of a field error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TooFew,
    TypeInvalid,
    Internal,
}

impl FieldErrorKind {
    /// The `reason` of the cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::Internal | Self::TooFew)
    }
}

/// One error of a field. `value` is already rendered as messages print it, see [`render`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    pub field: String,
    pub value: String,
    pub detail: String,
}

/// A value as error messages print it: strings quoted as by Go's `%q`, numbers as by `%v`, all else as compact JSON.
pub fn render(value: &Value) -> String {
    match value {
        Value::String(s) => quote(s),
        Value::Float(f) => float(*f),
        other => other.to_json(),
    }
}

/// Keeps the first of errors that read the same.
pub fn drop_repetitions(errors: &mut Vec<FieldError>) {
    let mut known = HashSet::new();
    errors.retain(|error| known.insert(error.to_string()));
}

impl FieldError {
    fn new(kind: FieldErrorKind, path: &FieldPath, value: String, detail: impl Into<String>) -> FieldError {
        FieldError { kind, field: path.as_str().to_owned(), value, detail: detail.into() }
    }

    pub fn required(path: &FieldPath, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Required, path, String::new(), detail)
    }

    pub fn invalid(path: &FieldPath, value: &Value, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Invalid, path, render(value), detail)
    }

    /// As [`FieldError::invalid`], with a value that is text to be quoted.
    pub fn invalid_raw(path: &FieldPath, text: String, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Invalid, path, quote(&text), detail)
    }

    /// `Invalid value` with a reason of its own: a value of the wrong type.
    pub fn type_invalid(path: &FieldPath, value: &Value, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::TypeInvalid, path, render(value), detail)
    }

    pub fn duplicate(path: &FieldPath, value: &Value) -> FieldError {
        Self::new(FieldErrorKind::Duplicate, path, render(value), "")
    }

    pub fn forbidden(path: &FieldPath, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Forbidden, path, String::new(), detail)
    }

    pub fn not_found(path: &FieldPath, value: &Value) -> FieldError {
        Self::new(FieldErrorKind::NotFound, path, render(value), "")
    }

    pub fn too_long(path: &FieldPath, bytes_max: usize) -> FieldError {
        Self::new(FieldErrorKind::TooLong, path, String::new(), format!("may not be more than {bytes_max} bytes"))
    }

    pub fn too_many(path: &FieldPath, count: usize, items_max: usize) -> FieldError {
        let unit = if items_max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {items_max} {unit}");
        Self::new(FieldErrorKind::TooMany, path, count.to_string(), detail)
    }

    pub fn internal(path: &FieldPath, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Internal, path, String::new(), detail)
    }

    /// The values are listed in the order given; each is quoted.
    pub fn not_supported(path: &FieldPath, value: &Value, supported: &[&str]) -> FieldError {
        let list: Vec<String> = supported.iter().map(|s| quote(s)).collect();
        let detail = format!("supported values: {}", list.join(", "));
        let detail = if supported.is_empty() { String::new() } else { detail };
        Self::new(FieldErrorKind::NotSupported, path, render(value), detail)
    }

    /// The message of the cause: the error without its path.
    pub fn message(&self) -> String {
        let mut text = self.kind.text().to_owned();
        if self.kind.shows_value() && !self.value.is_empty() {
            text.push_str(": ");
            text.push_str(&self.value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}
