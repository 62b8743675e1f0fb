//! The conditions, named by the table, under which fields are not checked because kube-apiserver has already rejected
//! the whole value.

use machinery::{Map, Value};

use super::super::checks::is_usable_selector;

/// Whether fields of a value are not checked. The first argument is the struct that has the value as a field or as an
/// item of a list.
pub type Condition = fn(&Map, &Value) -> bool;

/// A condition by its name.
pub fn named(name: &str) -> Option<Condition> {
    Some(match name {
        "always" => |_, _| true,
        "no-own-nodes" => |slice, _| slice.get("perDeviceNodeSelection").and_then(Value::as_bool) != Some(true),
        "no-selector" => {
            |_, spec| spec.get("selector").is_some_and(|selector| !selector.is_null() && !is_usable_selector(selector))
        }
        "no-sidecar" => |_, container| container.str_at(&["restartPolicy"]) != "Always",
        _ => return None,
    })
}
