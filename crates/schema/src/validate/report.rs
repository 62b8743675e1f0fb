//! Collected schema errors, as the reference engine words them.

use machinery::field::FieldErrorKind;
use machinery::value::quote;
use machinery::value::shortest::float;
use machinery::{FieldError, Value};

use crate::path::Path;

/// One failed check. `name` is the dotted path relative to the validated value; junctor errors have none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    kind: FieldErrorKind,
    name: Option<String>,
    value: String,
    detail: String,
}

/// The errors found so far, and how many checks matched: that decides which branch of a junctor is shown.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) failures: Vec<Failure>,
    pub(crate) matches: u64,
}

/// A value as field errors print it: numbers by `%v`.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Float(f) => float(*f),
        other => machinery::field::render(other),
    }
}

/// The error with its value printed by `%v`, if it is a number.
pub(crate) fn with_value(mut error: FieldError, value: &Value) -> FieldError {
    error.value = shown(value);
    error
}

impl Report {
    pub(crate) fn is_valid(&self) -> bool {
        self.failures.is_empty()
    }

    fn push(&mut self, failure: Failure) {
        let known = |f: &Failure| (f.kind, &f.name, &f.detail) == (failure.kind, &failure.name, &failure.detail);
        if !self.failures.iter().any(known) {
            self.failures.push(failure);
        }
    }

    pub(crate) fn merge(&mut self, other: Report) {
        other.failures.into_iter().for_each(|f| self.push(f));
        self.matches += other.matches;
    }

    /// A check of a value by its text: `<path> in body <problem>`.
    pub(crate) fn invalid(&mut self, path: &Path<'_>, value: String, problem: &str) {
        let name = path.text();
        let detail = format!("{name} in body {problem}");
        self.push(Failure { kind: FieldErrorKind::Invalid, name: Some(name), value, detail });
    }

    /// `detail` makes from the path the whole text.
    pub(crate) fn invalid_with(&mut self, path: &Path<'_>, value: String, detail: impl FnOnce(&str) -> String) {
        let name = path.text();
        let detail = detail(&name);
        self.push(Failure { kind: FieldErrorKind::Invalid, name: Some(name), value, detail });
    }

    pub(crate) fn wrong_type(&mut self, path: &Path<'_>, want: &str, got: &str) {
        let name = path.text();
        let detail = format!("{name} in body must be of type {want}: {}", quote(got));
        self.push(Failure { kind: FieldErrorKind::TypeInvalid, name: Some(name), value: quote(got), detail });
    }

    pub(crate) fn required(&mut self, path: &Path<'_>) {
        let (name, kind) = (Some(path.text()), FieldErrorKind::Required);
        self.push(Failure { kind, name, value: String::new(), detail: String::new() });
    }

    pub(crate) fn too_long(&mut self, path: &Path<'_>, max: i64) {
        let detail = match max {
            1 => "may not be more than 1 byte".to_owned(),
            0.. => format!("may not be more than {max} bytes"),
            _ => "value is too long".to_owned(),
        };
        let (name, kind) = (Some(path.text()), FieldErrorKind::TooLong);
        self.push(Failure { kind, name, value: String::new(), detail });
    }

    pub(crate) fn too_many(&mut self, path: &Path<'_>, count: usize, max: i64) {
        let detail = match max {
            1 => "must have at most 1 item".to_owned(),
            0.. => format!("must have at most {max} items"),
            _ => "has too many items".to_owned(),
        };
        let (name, kind) = (Some(path.text()), FieldErrorKind::TooMany);
        self.push(Failure { kind, name, value: count.to_string(), detail });
    }

    pub(crate) fn not_supported(&mut self, path: &Path<'_>, value: &Value, supported: &[Value]) {
        let list: Vec<String> = supported
            .iter()
            .map(|v| match v {
                Value::String(s) => quote(s),
                other => quote(&other.to_json()),
            })
            .collect();
        let detail = format!("supported values: {}", list.join(", "));
        // The reference engine has no way to tell null from no value in this one place.
        let (name, kind) = (Some(path.text()), FieldErrorKind::NotSupported);
        self.push(Failure { kind, name, value: shown(value), detail });
    }

    /// A failed junctor: it belongs to no field, the path is quoted in the text.
    pub(crate) fn junctor(&mut self, path: &Path<'_>, problem: &str) {
        let detail = format!("{} {problem}", quote(&path.text()));
        self.push(Failure { kind: FieldErrorKind::Invalid, name: None, value: quote(""), detail });
    }

    /// As field errors, below `prefix`.
    pub(crate) fn into_errors(self, prefix: &str) -> Vec<FieldError> {
        self.failures.into_iter().map(|f| f.into_error(prefix)).collect()
    }
}

impl Failure {
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
