//! StorageVersionMigration (KEP-4192): a request to rewrite all objects of a resource. Objects are stored in
//! v1beta1, which 1.35 can read.

use machinery::{Release, Value, names};

use resource::builtin::checks::{conditions, go_conditions, go_struct, list, text};
use schema::at::At;

pub const MIGRATION_GROUP: &str = "storagemigration.k8s.io";
/// Their plural.
pub const MIGRATIONS: &str = "storageversionmigrations";

pub fn validate(at: At) {
    let (spec, resource) = (at.field("spec"), at.field("spec.resource"));
    let named = |at: At, problems: Vec<String>| {
        if !problems.is_empty() {
            at.invalid(problems.join(","));
        }
    };
    let (group, plural) = (resource.field("group"), resource.field("resource"));
    match plural.as_text() {
        "" => plural.required("resource is required to be set"),
        name => named(plural, names::dns1035_label(name)),
    }
    if !group.as_text().is_empty() {
        named(group, names::dns1123_subdomain(group.as_text()));
    }
    if spec.old.is_some_and(|old| old != spec.value) {
        spec.shown_verbatim(&go_struct(&[("Resource", resource.value.clone())])).invalid("field is immutable");
    }
}

pub fn validate_status(at: At) {
    let status = at.field("status");
    let version = status.field_or_empty("resourceVersion");
    // since 1.37 the version may be absent, and a migration may run and have ended
    let strict = at.release() < Release::V1_37;
    if !is_version(version.as_text()) && (strict || !version.as_text().is_empty()) {
        version.invalid(format!("resource version is not well formed: {}", version.as_text()));
    }
    conditions(status);
    let known = version.old_text();
    version.invalid_if(!known.is_empty() && known != version.as_text(), "field is immutable");
    let (new, old) = (status.value, status.old.unwrap_or(&Value::Null));
    let impossible = [
        (
            is(new, "Succeeded") && is(new, "Failed"),
            "Both success and failed conditions cannot be true at the same time",
        ),
        (
            strict && is(new, "Succeeded") && is(new, "Running"),
            "Running condition cannot be true when success condition is true",
        ),
        (
            strict && is(new, "Failed") && is(new, "Running"),
            "Running condition cannot be true when failed condition is true",
        ),
        (is(old, "Succeeded") && !is(new, "Succeeded"), "Success condition cannot be set to false once it is true"),
        (is(old, "Failed") && !is(new, "Failed"), "Failed condition cannot be set to false once it is true"),
    ];
    for (_, why) in impossible.into_iter().filter(|(found, _)| *found) {
        status.field("conditions").shown_verbatim(&go_conditions(status)).invalid(why);
    }
}

/// Whether a text is a positive decimal number of any length, without leading zeros.
fn is_version(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a condition is `True`.
fn is(status: &Value, kind: &str) -> bool {
    let found = list(status, "conditions").iter().find(|condition| text(condition, "type") == kind);
    found.is_some_and(|condition| text(condition, "status") == "True")
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use schema::at::errors_of;

    fn condition(kind: &str, status: &str) -> Value {
        json!({"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"})
    }

    #[test]
    fn rejects_reverted_conditions() {
        let status = |version: &str, conditions: &[(&str, &str)]| {
            let conditions: Value = conditions.iter().map(|(kind, status)| condition(kind, status)).collect();
            json!({"status": {"resourceVersion": version, "conditions": conditions}})
        };
        let empty = || json!({"status": {}});
        let (running, done) = (("Running", "True"), ("Succeeded", "True"));
        let cases = [
            (empty(), status("7", &[]), vec![]),
            (empty(), status("7", &[running]), vec![]),
            (status("7", &[running]), status("7", &[("Running", "False"), done]), vec![]),
            (empty(), empty(), vec!["resource version is not well formed: "]),
            (empty(), status("07", &[]), vec!["resource version is not well formed: 07"]),
            (status("7", &[]), status("8", &[]), vec!["field is immutable"]),
            (
                empty(),
                status("7", &[running, done]),
                vec!["Running condition cannot be true when success condition is true"],
            ),
            (
                status("7", &[done]),
                status("7", &[("Succeeded", "False"), ("Failed", "Unknown")]),
                vec!["Success condition cannot be set to false once it is true"],
            ),
            (
                status("7", &[("Failed", "True")]),
                status("7", &[done, running]),
                vec![
                    "Running condition cannot be true when success condition is true",
                    "Failed condition cannot be set to false once it is true",
                ],
            ),
        ];
        for (old, new, want) in cases {
            let found: Vec<String> = errors_of(&new, Some(&old), Release::V1_35, validate_status)
                .into_iter()
                .map(|error| error.detail)
                .collect();
            assert_eq!(found, want, "{new}");
        }
    }

    #[test]
    fn validates_the_resource_and_rejects_its_change() {
        let of = |group: &str, plural: &str| json!({"spec": {"resource": {"group": group, "resource": plural}}});
        let found = |new: &Value, old: Option<&Value>| -> Vec<String> {
            errors_of(new, old, Release::NEWEST, validate).iter().map(|error| error.field.clone()).collect()
        };
        assert!(
            found(&of("", "configmaps"), None).is_empty() && found(&of("a.b", "cs"), Some(&of("a.b", "cs"))).is_empty()
        );
        assert_eq!(found(&json!({"spec": {}}), None), ["spec.resource.resource"]);
        assert_eq!(found(&of("A", "b/c"), None), ["spec.resource.resource", "spec.resource.group"]);
        assert_eq!(found(&of("", "b"), Some(&of("", "c"))), ["spec"]);
    }
}
