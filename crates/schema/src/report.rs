//! Collects the errors of validation by a schema, in the words of upstream's validator.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use machinery::field::FieldErrorKind;
use machinery::value::quote;
use machinery::value::shortest::float;
use machinery::{FieldError, Release, Value};

use crate::limits::ERRORS_BYTES_MAX;
use crate::path::Path;

/// A failed check. `name` is the dotted path relative to the validated value. Errors of junctors (`allOf`, `anyOf`,
/// `oneOf`, `not`) have none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FailedCheck {
    kind: FieldErrorKind,
    name: Option<String>,
    value: String,
    detail: String,
}

/// The errors found so far, and the number of checks that have matched. Of the branches of a junctor, the one with
/// the most matches is reported.
///
/// An error that occurs again is not kept. To bound memory, errors beyond [`ERRORS_BYTES_MAX`] are only counted,
/// although upstream keeps them all.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) release: Release,
    failures: Vec<FailedCheck>,
    /// The hashes of the errors that are kept.
    known: HashSet<u64>,
    /// The bytes of the errors that are kept in this report and those around it.
    bytes: usize,
    /// The number of errors found, including those that are not kept.
    found: usize,
    /// Whether errors are only counted, because nothing but their number and the matches is needed.
    is_counting: bool,
    pub(crate) matches: u64,
}

/// A position in a report, to which it can be reset.
pub(crate) struct Mark {
    failures: usize,
    bytes: usize,
    found: usize,
}

/// A value as field errors print it. Numbers are printed with `%v`.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Float(f) => float(*f),
        other => machinery::field::render(other),
    }
}

/// The error with its value printed again, with `%v` if it is a number.
pub(crate) fn with_value(mut error: FieldError, value: &Value) -> FieldError {
    error.value = shown(value);
    error
}

impl Report {
    pub(crate) fn new(release: Release) -> Report {
        Report { release, ..Report::default() }
    }

    /// A report for a part of the value that `around` is about. It continues the count of bytes, so that nested
    /// reports share one bound.
    pub(crate) fn within(around: &Report) -> Report {
        let Report { release, bytes, is_counting, .. } = *around;
        Report { release, bytes, is_counting, ..Report::default() }
    }

    /// Like [`Report::within`], for a part whose errors are only counted, because they may not be needed.
    pub(crate) fn counting(around: &Report) -> Report {
        Report { is_counting: true, ..Report::within(around) }
    }

    pub(crate) fn is_counting(&self) -> bool {
        self.is_counting
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.found == 0
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { failures: self.failures.len(), bytes: self.bytes, found: self.found }
    }

    pub(crate) fn has_failed_since(&self, mark: &Mark) -> bool {
        self.found > mark.found
    }

    /// Drops the errors since the mark.
    pub(crate) fn restore(&mut self, mark: &Mark) {
        for failure in self.failures.drain(mark.failures..) {
            self.known.remove(&failure.hash());
        }
        (self.bytes, self.found) = (mark.bytes, mark.found);
    }

    /// Adds an error. If no more errors are kept, it is only counted, and `failure` is not called.
    fn add(&mut self, path: &Path<'_>, failure: impl FnOnce(String) -> FailedCheck) {
        if self.is_counting || self.bytes > ERRORS_BYTES_MAX {
            self.found += 1;
        } else {
            self.push(failure(path.text()));
        }
    }

    fn push(&mut self, failure: FailedCheck) {
        let bytes = failure.name.as_ref().map_or(0, String::len) + failure.value.len() + failure.detail.len();
        if self.bytes > ERRORS_BYTES_MAX {
            self.found += 1;
        } else if self.known.insert(failure.hash()) {
            self.found += 1;
            self.bytes += bytes + size_of::<FailedCheck>();
            self.failures.push(failure);
        }
    }

    pub(crate) fn merge(&mut self, other: Report) {
        self.found += other.found - other.failures.len();
        other.failures.into_iter().for_each(|f| self.push(f));
        self.matches += other.matches;
    }

    /// Adds an error with the text `<path> in body <problem>`.
    pub(crate) fn invalid(
        &mut self,
        path: &Path<'_>,
        value: impl FnOnce() -> String,
        problem: impl FnOnce() -> String,
    ) {
        self.invalid_with(path, value, |name| format!("{name} in body {}", problem()));
    }

    /// Like [`Report::invalid`], but `detail` makes the whole text from the path.
    pub(crate) fn invalid_with(
        &mut self,
        path: &Path<'_>,
        value: impl FnOnce() -> String,
        detail: impl FnOnce(&str) -> String,
    ) {
        self.add(path, |name| {
            let detail = detail(&name);
            FailedCheck { kind: FieldErrorKind::Invalid, name: Some(name), value: value(), detail }
        });
    }

    pub(crate) fn wrong_type(&mut self, path: &Path<'_>, want: &str, got: &str) {
        self.add(path, |name| {
            let detail = format!("{name} in body must be of type {want}: {}", quote(got));
            FailedCheck { kind: FieldErrorKind::TypeInvalid, name: Some(name), value: quote(got), detail }
        });
    }

    pub(crate) fn required(&mut self, path: &Path<'_>) {
        let kind = FieldErrorKind::Required;
        self.add(path, |name| FailedCheck { kind, name: Some(name), value: String::new(), detail: String::new() });
    }

    pub(crate) fn too_long(&mut self, path: &Path<'_>, max: i64) {
        let detail = match max {
            1 => "may not be more than 1 byte".to_owned(),
            0.. => format!("may not be more than {max} bytes"),
            _ => "value is too long".to_owned(),
        };
        let kind = FieldErrorKind::TooLong;
        self.add(path, |name| FailedCheck { kind, name: Some(name), value: String::new(), detail });
    }

    pub(crate) fn too_many(&mut self, path: &Path<'_>, count: usize, max: i64) {
        let detail = match max {
            1 => "must have at most 1 item".to_owned(),
            0.. => format!("must have at most {max} items"),
            _ => "has too many items".to_owned(),
        };
        let kind = FieldErrorKind::TooMany;
        self.add(path, |name| FailedCheck { kind, name: Some(name), value: count.to_string(), detail });
    }

    pub(crate) fn not_supported(&mut self, path: &Path<'_>, value: &Value, supported: &[Value]) {
        let text = |allowed: &Value| match allowed {
            Value::String(text) => quote(text),
            other => quote(&other.to_json()),
        };
        self.add(path, |name| {
            let list: Vec<String> = supported.iter().map(text).collect();
            let detail = format!("supported values: {}", list.join(", "));
            // kube-apiserver cannot distinguish null from an absent value here
            FailedCheck { kind: FieldErrorKind::NotSupported, name: Some(name), value: shown(value), detail }
        });
    }

    /// Adds the error of a junctor. It belongs to no field; the text quotes the path.
    pub(crate) fn junctor(&mut self, path: &Path<'_>, problem: &str) {
        self.add(path, |name| {
            let detail = format!("{} {problem}", quote(&name));
            FailedCheck { kind: FieldErrorKind::Invalid, name: None, value: quote(""), detail }
        });
    }

    /// Adds the error of a number outside the range of its type. Like the error of a junctor, it belongs to no field.
    pub(crate) fn out_of_range(&mut self, path: &Path<'_>, what: &str, range: &str) {
        self.add(path, |name| {
            let detail = format!("{what} must be of type {range} in {name}");
            FailedCheck { kind: FieldErrorKind::Invalid, name: None, value: quote(""), detail }
        });
    }

    /// Converts the errors to field errors below `prefix`.
    pub(crate) fn into_errors(self, prefix: &str) -> Vec<FieldError> {
        self.failures.into_iter().map(|f| f.into_error(prefix)).collect()
    }
}

impl FailedCheck {
    /// A hash of the parts by which errors count as equal.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.kind as u8, &self.name, &self.detail).hash(&mut hasher);
        hasher.finish()
    }

    fn into_error(self, prefix: &str) -> FieldError {
        let name = self.name.unwrap_or_default();
        let name = match name.as_str() {
            "." => "",
            name => name.strip_prefix('.').unwrap_or(name),
        };
        let field = match (prefix, name) {
            ("", "") => "<nil>".to_owned(),
            ("", name) => name.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, name) => format!("{prefix}.{name}"),
        };
        FieldError { kind: self.kind, field, value: self.value, detail: self.detail }
    }
}
