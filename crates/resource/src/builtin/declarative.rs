//! Declarative validation (KEP-5073): the rules that 1.37 enforces, which its types mark as beta.

use std::collections::HashSet;

use machinery::field::{FieldError, drop_repetitions};
use machinery::{Release, Value};

use super::BuiltIn;
use super::rules::{self, Pass};
use schema::at::errors_of;

/// The first release that enforces the rules.
const SINCE: Release = Release::V1_37;

impl BuiltIn {
    /// Merges the errors of hand-written validation with those of declarative validation. Of an error that both
    /// report, the declarative one stays; declarative errors come last. Declarative rules check objects in their
    /// own version, hand-written ones may check the stored form.
    pub fn declared_errors(
        &self,
        object: &Value,
        old: Option<&Value>,
        mut errors: Vec<FieldError>,
        release: Release,
    ) -> Vec<FieldError> {
        if release < SINCE || self.has_own_server {
            return errors;
        }
        let declared = errors_of(object, old, release, |at| rules::check(Pass::Declared, at, self.ruled()));
        if !self.keeps_written {
            let replaced: HashSet<(&str, String)> =
                declared.iter().map(|error| (error.kind.as_str(), self.checked_path(&error.field))).collect();
            errors.retain(|error| !replaced.contains(&(error.kind.as_str(), error.field.to_string())));
        }
        drop_repetitions(&mut errors);
        errors.extend(declared);
        errors
    }
}
