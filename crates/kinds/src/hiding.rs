//! Conditions that rows of the table name. Where one holds, kube-apiserver has already rejected the whole value, so
//! its fields are not checked.

use machinery::Value;
use resource::builtin::checks::is_usable_selector;
use resource::builtin::{Condition, Named};

pub const CONDITIONS: Named<Condition> = &[
    ("always", |_, _| true),
    ("no-own-nodes", |slice, _| slice.get("perDeviceNodeSelection").and_then(Value::as_bool) != Some(true)),
    ("no-selector", |_, spec| {
        spec.get("selector").is_some_and(|selector| !selector.is_null() && !is_usable_selector(selector))
    }),
    ("no-sidecar", |_, container| container.str_at(&["restartPolicy"]) != "Always"),
];
