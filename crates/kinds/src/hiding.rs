//! The conditions, named by the table, under which fields are not checked because kube-apiserver has already rejected
//! the whole value.

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
