use super::*;
use schema::shape::Shape;

/// Fields are found by binary search.
fn check_sorted(shape: &Struct) {
    assert!(shape.fields.is_sorted_by(|a, b| a.name < b.name), "{}", shape.name);
    for field in shape.fields {
        match &field.shape {
            Shape::Struct(inner) | Shape::List(_, Shape::Struct(inner)) => check_sorted(inner),
            _ => {}
        }
    }
}

#[test]
fn fields_of_shapes_are_sorted() {
    for built_in in kinds() {
        if let Form::Typed(shape) = built_in.form {
            check_sorted(shape);
        }
    }
}

#[test]
fn converts_events_between_groups() {
    let event = machinery::json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a", "namespace": "n"},
        "note": "hello", "regarding": {"kind": "Boat"}, "reportingController": "c", "eventTime": null,
        "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null
    });
    let stored = events::EVENT.to_stored(event.clone());
    assert_eq!(stored.str_at(&["message"]), "hello");
    assert_eq!(stored.str_at(&["involvedObject", "kind"]), "Boat");
    assert_eq!(stored.str_at(&["reportingInstance"]), "");
    assert_eq!(events::EVENT.to_shown(stored.clone()), event);
    assert_eq!(events::CORE_EVENT.field_text(&stored, "source").as_deref(), Some("c"));
    assert!(sibling(&events::EVENT, "v1").is_some_and(|s| s.group.is_empty()));
    assert!(sibling(&config::CONFIG_MAP, "v1").is_none());
}
