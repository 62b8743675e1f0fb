//! Field paths and field errors, as `k8s.io/apimachinery/pkg/util/validation/field` has them.

use std::collections::HashSet;

use crate::limits::PATHS_BYTES_MAX;
use crate::value::shortest::float;
use crate::value::{Value, quote};

/// A path such as `spec.list[0].key` or `metadata.annotations[example.com/x]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// The path of the object itself.
    pub fn root() -> FieldPath {
        FieldPath::default()
    }

    /// A path as it is printed, such as `spec.containers`.
    pub fn new(path: impl Into<String>) -> FieldPath {
        FieldPath(path.into())
    }

    /// The path of a field below this one.
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

    /// The path of a list item, printed as `[index]`.
    #[must_use]
    pub fn index(&self, index: usize) -> FieldPath {
        FieldPath(format!("{}[{index}]", self.0))
    }

    /// The path of a map entry or of a keyed list item, printed as `[key]`.
    #[must_use]
    pub fn key(&self, key: &str) -> FieldPath {
        self.with(["[", key, "]"])
    }

    /// The path as it is printed; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

crate::names::text_enum! {
    /// The kind of a field error, with the `reason` of its cause.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FieldErrorKind {
        /// A referenced value does not exist.
        NotFound = "FieldValueNotFound",
        /// A value is missing.
        Required = "FieldValueRequired",
        /// A value occurs twice.
        Duplicate = "FieldValueDuplicate",
        /// A value has the wrong form.
        Invalid = "FieldValueInvalid",
        /// A value is not one of the allowed ones.
        NotSupported = "FieldValueNotSupported",
        /// A field must not be set.
        Forbidden = "FieldValueForbidden",
        /// A value has too many bytes.
        TooLong = "FieldValueTooLong",
        /// A list has too many items.
        TooMany = "FieldValueTooMany",
        /// A list has too few items.
        TooFew = "FieldValueTooFew",
        /// A value has the wrong type.
        TypeInvalid = "FieldValueTypeInvalid",
        /// The value could not be checked.
        Internal = "InternalError",
    }
}

impl FieldErrorKind {
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

/// One error of a field. `value` is already rendered as messages print it; see [`render`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The reason of the error.
    pub kind: FieldErrorKind,
    /// The path of the field.
    pub field: String,
    /// The invalid value as it is printed; empty if it is not shown.
    pub value: String,
    /// The violated rule, or the allowed values.
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

/// If several errors have the same text, keeps the first.
pub fn drop_repetitions(errors: &mut Vec<FieldError>) {
    let mut known = HashSet::new();
    errors.retain(|error| known.insert(error.to_string()));
}

/// The errors of an object, of at most [`PATHS_BYTES_MAX`] bytes together. A walk over an object may find an error at
/// every node, and each error has the whole path of its node. Further errors are dropped.
#[derive(Debug, Default)]
pub struct FieldErrors {
    list: Vec<FieldError>,
    bytes: usize,
}

impl FieldErrors {
    /// Adds an error unless the bound is exceeded.
    pub fn push(&mut self, error: FieldError) {
        if self.is_full() {
            return;
        }
        self.bytes += size_of::<FieldError>() + error.field.len() + error.value.len() + error.detail.len();
        self.list.push(error);
    }

    /// Adds an error unless the bound is exceeded.
    pub fn forbid(&mut self, path: &FieldPath, detail: impl Into<String>) {
        self.push(FieldError::forbidden(path, detail));
    }

    /// As [`FieldErrors::forbid`].
    pub fn require(&mut self, path: &FieldPath, detail: impl Into<String>) {
        self.push(FieldError::required(path, detail));
    }

    /// As [`FieldErrors::forbid`].
    pub fn invalid(&mut self, path: &FieldPath, value: &Value, detail: impl Into<String>) {
        self.push(FieldError::invalid(path, value, detail));
    }

    /// Whether further errors are dropped.
    pub fn is_full(&self) -> bool {
        self.bytes >= PATHS_BYTES_MAX
    }

    /// The errors, in the order in which they were added.
    pub fn into_list(self) -> Vec<FieldError> {
        self.list
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of errors.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

impl FieldError {
    fn new(kind: FieldErrorKind, path: &FieldPath, value: String, detail: impl Into<String>) -> FieldError {
        FieldError { kind, field: path.as_str().to_owned(), value, detail: detail.into() }
    }

    /// The error of a missing value.
    pub fn required(path: &FieldPath, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Required, path, String::new(), detail)
    }

    /// The error of a value of the wrong form, which it shows.
    pub fn invalid(path: &FieldPath, value: &Value, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Invalid, path, render(value), detail)
    }

    /// As [`FieldError::invalid`], with a value that is text to be quoted.
    pub fn invalid_raw(path: &FieldPath, text: String, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Invalid, path, quote(&text), detail)
    }

    /// The error of a value that occurs twice.
    pub fn duplicate(path: &FieldPath, value: &Value) -> FieldError {
        Self::new(FieldErrorKind::Duplicate, path, render(value), "")
    }

    /// The error of a field that must not be set.
    pub fn forbidden(path: &FieldPath, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Forbidden, path, String::new(), detail)
    }

    /// The error of a reference to a value that does not exist.
    pub fn not_found(path: &FieldPath, value: &Value) -> FieldError {
        Self::new(FieldErrorKind::NotFound, path, render(value), "")
    }

    /// The error of a value with more than `bytes_max` bytes.
    pub fn too_long(path: &FieldPath, bytes_max: usize) -> FieldError {
        Self::new(FieldErrorKind::TooLong, path, String::new(), format!("may not be more than {bytes_max} bytes"))
    }

    /// The error of a list that has `count` items although only `items_max` are allowed.
    pub fn too_many(path: &FieldPath, count: usize, items_max: usize) -> FieldError {
        let unit = if items_max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {items_max} {unit}");
        Self::new(FieldErrorKind::TooMany, path, count.to_string(), detail)
    }

    /// The error of a check that could not be completed.
    pub fn internal(path: &FieldPath, detail: impl Into<String>) -> FieldError {
        Self::new(FieldErrorKind::Internal, path, String::new(), detail)
    }

    /// The error of a value that is not one of `supported`, which are quoted and listed in the given order.
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
