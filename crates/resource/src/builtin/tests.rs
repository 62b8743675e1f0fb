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
