//! PriorityClasses.

use machinery::Value;

use schema::at::At;

/// Very high values, and names with the prefix of the system's own classes, are reserved for the system.
fn reserved_priority(class: At) {
    const PREFIX: &str = "system-";
    const KNOWN: [(&str, i64); 2] =
        [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
    const OWN_MAX: i64 = 1_000_000_000;
    let (name, value) = (class.text("metadata.name"), class.int("value").unwrap_or_default());
    if !name.starts_with(PREFIX) {
        if value > OWN_MAX {
            class.field("value").forbidden(format!("maximum allowed value of a user defined priority is {OWN_MAX}"));
        }
        return;
    }
    let why = match KNOWN.iter().find(|(known, _)| *known == name) {
        None => format!("{name} is not a known system priority class"),
        Some((_, wanted)) if *wanted != value => format!("value of {name} PriorityClass must be {wanted}"),
        Some(_) if class.is_true("globalDefault") => format!("globalDefault of {name} PriorityClass must be false"),
        Some(_) => return,
    };
    let why = format!("priority class names with '{PREFIX}' prefix are reserved for system use only. error: {why}");
    class.field("metadata.name").forbidden(why);
}

/// The value of a PriorityClass is immutable.
pub fn validate_priority_class(at: At) {
    let (value, policy) = (at.field("value"), at.field("preemptionPolicy"));
    match value.old {
        Some(old) if old != value.value => value.forbidden("may not be changed in an update."),
        Some(_) => {}
        None => {
            reserved_priority(at);
            policy.require_one_of(&["PreemptLowerPriority", "Never"]);
        }
    }
}

/// The generation of a PriorityClass is always 1.
pub fn prepare_priority_class(object: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        object.set_at(&["metadata", "generation"], Value::Int(1));
    }
}
