//! The rules of declarative validation (KEP-5073) that 1.37 enforces: those that its types mark as beta.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath, drop_repetitions};
use machinery::{Release, Value};

use super::BuiltIn;
use super::checks::{items, text};

/// The first release that enforces them.
const SINCE: Release = Release::V1_37;

impl BuiltIn {
    /// What declarative validation makes of the errors of the other rules: those that were found twice are dropped, and
    /// those that it finds itself come after all others, without a detail. It is about objects in their own version, while the
    /// other rules may be about their stored form.
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
        let declared = self.declarative.map_or_else(Vec::new, |rules| rules(object, old));
        let checked = |field: &str| self.checked_path.map_or_else(|| field.to_owned(), |path| path(field));
        if !self.keeps_written {
            let replaced: HashSet<(&str, String)> =
                declared.iter().map(|error| (error.kind.reason(), checked(&error.field))).collect();
            errors.retain(|error| !replaced.contains(&(error.kind.reason(), error.field.to_string())));
        }
        drop_repetitions(&mut errors);
        errors.extend(declared);
        errors
    }
}

/// A kind whose rules are not enforced yet.
pub fn none(_object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    vec![]
}

fn required(at: &Value, name: &str, path: &FieldPath) -> Option<FieldError> {
    let is_missing = match at.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    is_missing.then(|| FieldError::required(&path.child(name), ""))
}

/// Roles and ClusterRoles.
pub fn of_role(role: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    items(role, "rules", &FieldPath::root()).filter_map(|(path, rule)| required(rule, "verbs", &path)).collect()
}

/// RoleBindings and ClusterRoleBindings.
pub fn of_role_binding(binding: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let root = FieldPath::root();
    let subjects = items(binding, "subjects", &root).filter_map(|(path, subject)| required(subject, "name", &path));
    let reference = binding.get("roleRef").unwrap_or(&Value::Null);
    subjects.chain(required(reference, "name", &root.child("roleRef"))).collect()
}

/// ValidatingAdmissionPolicyBindings.
pub fn of_policy_binding(binding: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), binding.get("spec").unwrap_or(&Value::Null));
    ["policyName", "validationActions"].into_iter().filter_map(|name| required(spec, name, &path)).collect()
}

/// A field that exists if and only if a discriminator has one value.
fn of_union(at: &Value, name: &str, kind: &str, is_required: bool, path: &FieldPath) -> Option<FieldError> {
    match (text(at, "type") == kind, at.get(name).is_some_and(|field| !field.is_null())) {
        (false, true) => Some(FieldError::forbidden(&path.child(name), "")),
        (true, false) if is_required => Some(FieldError::required(&path.child(name), "")),
        _ => None,
    }
}

/// PriorityLevelConfigurations.
pub fn of_priority_level(level: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let (path, spec) = (FieldPath::new("spec"), level.get("spec").unwrap_or(&Value::Null));
    let mut errors: Vec<FieldError> = of_union(spec, "exempt", "Exempt", false, &path).into_iter().collect();
    errors.extend(of_union(spec, "limited", "Limited", true, &path));
    errors.extend(required(spec, "type", &path));
    if let Some(response) = spec.at(&["limited", "limitResponse"]) {
        let path = path.child("limited").child("limitResponse");
        errors.extend(of_union(response, "queuing", "Queue", true, &path));
        errors.extend(required(response, "type", &path));
    }
    errors
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::super::rbac;
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
            rbac::ROLE.declared_errors(&role, None, written(), release).iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts(Release::V1_36).len(), 3);
        let want = ["rules[0].resources: Required value: needed", "rules[0].verbs: Required value"];
        assert_eq!(texts(Release::V1_37), want);
    }
}
