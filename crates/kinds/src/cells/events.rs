//! The cells of Events, whichever API group they are read through.

use machinery::Value;

/// A field of an Event that has one name in the core group and another in events.k8s.io.
fn either<'a>(event: &'a Value, core: &str, new: &str) -> &'a Value {
    event.get(core).or_else(|| event.get(new)).unwrap_or(&Value::Null)
}

pub fn first_seen(event: &Value) -> &str {
    let first = either(event, "firstTimestamp", "deprecatedFirstTimestamp").as_str();
    first.unwrap_or_else(|| event.str_at(&["eventTime"]))
}

pub fn last_seen(event: &Value) -> &str {
    if event.get("series").is_some() {
        return event.str_at(&["series", "lastObservedTime"]);
    }
    let last = either(event, "lastTimestamp", "deprecatedLastTimestamp").as_str();
    last.unwrap_or_else(|| first_seen(event))
}

/// How often the event has happened: at least once.
pub fn count(event: &Value) -> i64 {
    let counted = event.at(&["series", "count"]).unwrap_or_else(|| either(event, "count", "deprecatedCount"));
    counted.as_int().filter(|count| *count != 0).unwrap_or(1)
}

pub fn object(event: &Value) -> String {
    let object = either(event, "involvedObject", "regarding");
    let (kind, name) = (object.str_at(&["kind"]).to_lowercase(), object.str_at(&["name"]));
    if name.is_empty() { kind } else { format!("{kind}/{name}") }
}

/// The component that reported the event, and the host or instance it ran on.
pub fn source(event: &Value) -> String {
    let source = either(event, "source", "deprecatedSource");
    let controller = either(event, "reportingComponent", "reportingController").as_str().unwrap_or_default();
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let component = or(source.str_at(&["component"]), controller);
    let instance = or(source.str_at(&["host"]), event.str_at(&["reportingInstance"]));
    if instance.is_empty() { component } else { format!("{component}, {instance}") }
}
