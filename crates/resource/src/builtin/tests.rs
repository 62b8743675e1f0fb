use super::*;

#[test]
fn every_kind_has_its_type() {
    for row in table::rows() {
        assert_eq!(row.structure().name(), row.kind, "{}", row.api_version);
        let may_have_status = row.status.is_some() || row.behaviour.review.is_some();
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
    assert!(sibling(row, "v1").is_some_and(|s| s.group.is_empty()));
    assert!(sibling(row_named("v1", "ConfigMap"), "v1").is_none());
}

/// What an update may not change is found after all that is wrong with the new object.
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
