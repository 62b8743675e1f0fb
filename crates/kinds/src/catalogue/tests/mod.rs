//! Of the tables and what reads them.

mod columns;
mod rules;
mod tables;

use crate::catalogue::CATALOGUE;
use crate::certificates::requests;
use crate::{cells, hiding, rule_checks, stages};
use machinery::{Release, Value};
use resource::builtin::{BuiltIn, Catalogue, GroupSource, Sources};
use schema::at;

/// The row that a test is about.
pub fn row_named(api_version: &str, kind: &str) -> &'static BuiltIn {
    CATALOGUE.row_of(api_version, kind).unwrap_or_else(|| panic!("no row of {api_version} {kind}"))
}

/// The error of a source with these lines after the facts of all kinds.
pub fn problem(source: GroupSource) -> Option<String> {
    catalogue_of(GroupSource { checks: rule_checks::CHECKS, ..source }).check().err()
}

pub fn catalogue_of(source: GroupSource) -> &'static Catalogue {
    let groups = Box::leak(Box::new([source]));
    let sources =
        Sources { groups, scheme: "", stages: stages::ALL, conditions: hiding::CONDITIONS, cells: cells::FUNCTIONS };
    Box::leak(Box::new(Catalogue::new(Box::leak(Box::new(sources)))))
}

#[test]
fn every_kind_has_its_type() {
    for row in CATALOGUE.rows() {
        assert_eq!(row.structure().name(), row.kind, "{}", row.api_version);
        let may_have_status = row.status.is_some() || row.review().is_some();
        assert!(row.zero().get("status").is_none() || may_have_status, "{}", row.kind);
    }
}

#[test]
fn converts_events_between_groups() {
    let event = machinery::json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a", "namespace": "n"},
        "note": "hello", "regarding": {"kind": "Boat"}, "reportingController": "c", "eventTime": null,
        "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null
    });
    let (row, core) = (row_named("events.k8s.io/v1", "Event"), row_named("v1", "Event"));
    let stored = row.to_stored(event.clone());
    assert_eq!(stored.str_at(&["message"]), "hello");
    assert_eq!(stored.str_at(&["involvedObject", "kind"]), "Boat");
    assert_eq!(stored.str_at(&["reportingInstance"]), "");
    assert_eq!(row.to_shown(stored.clone()), event);
    assert_eq!(core.field_text(&stored, "source").as_deref(), Some("c"));
    assert!(row.sibling("v1").is_some_and(|s| s.group.is_empty()));
    assert!(row_named("v1", "ConfigMap").sibling("v1").is_none());
}

/// Errors of immutable fields come after the errors of the new object.
#[test]
fn errors_of_changes_follow_those_of_the_new_object() {
    let pod = |seconds: Value, operator: &str| {
        machinery::json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"},
            "spec": {
                "activeDeadlineSeconds": seconds, "containers": [{"name": "c", "image": "i"}],
                "tolerations": [{"key": "k", "operator": operator}]
            }
        })
    };
    let binding = |role: &str, subject: &str| {
        machinery::json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "a", "namespace": "n"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": subject}]
        })
    };
    let cases = [
        (pod(5.into(), "Exists"), pod(6.into(), "Is"), ["spec.tolerations[0].operator", "spec.activeDeadlineSeconds"]),
        (binding("r", "u"), binding("s", ""), ["subjects[0].name", "roleRef"]),
    ];
    for (old, new, want) in cases {
        let row = row_named(old.str_at(&["apiVersion"]), old.str_at(&["kind"])).checked();
        for release in [Release::V1_36, Release::V1_37] {
            let (new, old) = (row.checked_form(&new), row.checked_form(&old));
            let errors = row.errors(&new, Some(&old), release);
            let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
            let at = want.map(|field| fields.iter().position(|found| *found == field));
            assert!(matches!(at, [Some(first), Some(second)] if first < second), "{fields:?}");
        }
    }
}

/// The errors of a part of an object, as texts.
fn errors_of_part(api_version: &str, kind: &str, part: &str, old: &str, new: &str) -> Vec<String> {
    let row = row_named(api_version, kind);
    let typed = |text: &str| {
        let mut object = machinery::yaml::decode(text.as_bytes()).unwrap().value;
        object.set_at(&["kind"], Value::from(kind));
        object
    };
    let (new, old) = (typed(new), (!old.is_empty()).then(|| typed(old)));
    let (old, release) = (old.as_ref(), Release::NEWEST);
    let found = match part {
        "conditions" => at::errors_of(&new, old, release, |at| requests::conditions(at.field("status"))),
        "status" => row.status_errors(&new, old.unwrap_or(&Value::Null), release),
        _ => row.errors(&new, old, release),
    };
    found.iter().map(ToString::to_string).collect()
}

/// The rules of statuses, each with the fields and texts of its errors.
#[test]
fn statuses_have_rules_of_their_own() {
    let long = "m".repeat(1025);
    let metadata = format!("status: {{attachmentMetadata: {{k: {}}}}}", "v".repeat(256 << 10));
    let decrement = |number: i64| format!("status.collisionCount: Invalid value: {number}: cannot be decremented");
    for (api_version, kind, part, old, new, want) in [
        (
            "apps/v1",
            "Deployment",
            "status",
            "status: {collisionCount: 5}",
            "status: {collisionCount: 4}",
            vec![decrement(4)],
        ),
        ("apps/v1", "StatefulSet", "status", "status: {collisionCount: 5}", "status: {}", vec![decrement(0)]),
        (
            "apps/v1",
            "DaemonSet",
            "status",
            "status: {collisionCount: 5}",
            "status: {collisionCount: 0}",
            vec![decrement(0)],
        ),
        ("apps/v1", "DaemonSet", "status", "status: {}", "status: {collisionCount: 0}", vec![]),
        ("apps/v1", "Deployment", "status", "status: {collisionCount: 5}", "status: {collisionCount: 5}", vec![]),
        (
            "storage.k8s.io/v1",
            "VolumeAttachment",
            "status",
            "status: {}",
            &format!("status: {{attachError: {{message: {long}}}, detachError: {{message: {}}}}}", &long[1..]),
            vec!["status.attachError.message: Too long: may not be more than 1024 bytes".to_owned()],
        ),
        (
            "storage.k8s.io/v1",
            "VolumeAttachment",
            "status",
            "status: {}",
            &metadata,
            vec!["status.attachmentMetadata: Too long: may not be more than 262144 bytes".to_owned()],
        ),
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicy",
            "status",
            "status: {}",
            "status: {typeChecking: {expressionWarnings: [{fieldRef: ' ', warning: ''}, {fieldRef: 'spec.validations[0].expression', warning: w}]}}",
            vec![
                "status.typeChecking.expressionWarnings[0].warning: Required value".to_owned(),
                "status.typeChecking.expressionWarnings[0].fieldRef: Required value".to_owned(),
            ],
        ),
    ] {
        assert_eq!(errors_of_part(api_version, kind, part, old, new), want, "{kind}");
    }
}

#[test]
fn decisions_and_classes_do_not_contradict() {
    let both = "status.conditions: Invalid value: \"{conditions[{\\\"type\\\": \\\"Approved\\\"}], conditions[{\\\"type\\\": \\\"Denied\\\"}]}\": must \
                specify at most one of: `conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`";
    let decided = "status: {conditions: [{type: Approved, status: 'True'}, {type: Denied, status: 'True'}]}";
    for (api_version, kind, part, old, new, want) in [
        ("certificates.k8s.io/v1", "CertificateSigningRequest", "conditions", "status: {}", decided, vec![both.to_owned()]),
        ("certificates.k8s.io/v1", "CertificateSigningRequest", "conditions", decided, decided, vec![]),
        (
            "networking.k8s.io/v1",
            "Ingress",
            "",
            "",
            "metadata: {annotations: {kubernetes.io/ingress.class: a}}\nspec: {ingressClassName: b, rules: [{host: h}]}",
            vec!["annotations.kubernetes.io/ingress.class: Invalid value: \"a\": must match `ingressClassName` when both are specified".to_owned()],
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            "",
            "",
            "metadata: {annotations: {kubernetes.io/ingress.class: b}}\nspec: {ingressClassName: b, rules: [{host: h}]}",
            vec![],
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            "",
            "spec: {rules: [{host: h}]}",
            "metadata: {annotations: {kubernetes.io/ingress.class: a}}\nspec: {ingressClassName: b, rules: [{host: h}]}",
            vec![],
        ),
    ] {
        assert_eq!(errors_of_part(api_version, kind, part, old, new), want, "{kind}");
    }
}
