//! Declarative validation (KEP-5073): the rules that 1.37 enforces, which its types mark as beta.

use std::collections::HashSet;

use machinery::field::{FieldError, drop_repetitions};
use machinery::{Release, Value};

use super::BuiltIn;
use super::at::errors_of;
use super::rules::{self, Pass};

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
        if release < SINCE || self.has_own_server() {
            return errors;
        }
        let declared = errors_of(object, old, release, |at| rules::check(Pass::Declared, at, self.ruled()));
        if !self.keeps_written {
            let replaced: HashSet<(&str, String)> =
                declared.iter().map(|error| (error.kind.reason(), self.checked_path(&error.field))).collect();
            errors.retain(|error| !replaced.contains(&(error.kind.reason(), error.field.to_string())));
        }
        drop_repetitions(&mut errors);
        errors.extend(declared);
        errors
    }
}

#[cfg(test)]
mod tests {
    use machinery::{FieldPath, json};

    use super::*;

    #[test]
    fn declared_errors_replace_and_follow_the_others() {
        let role = json!({"rules": [{"apiGroups": [""]}]});
        let written = || {
            let at = |name: &str| FieldPath::new(format!("rules[0].{name}"));
            let resources = FieldError::required(&at("resources"), "needed");
            vec![FieldError::required(&at("verbs"), "needed"), resources.clone(), resources]
        };
        let texts = |release| -> Vec<String> {
            super::super::row_named("rbac.authorization.k8s.io/v1", "Role")
                .declared_errors(&role, None, written(), release)
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(texts(Release::V1_36).len(), 3);
        let want = ["rules[0].resources: Required value: needed", "rules[0].verbs: Required value"];
        assert_eq!(texts(Release::V1_37), want);
    }
}
