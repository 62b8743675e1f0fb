//! The FlowSchemas and PriorityLevelConfigurations of a new server: mandatory and suggested ones.

use machinery::Value;
use std::sync::LazyLock;

static DEFAULTS: LazyLock<Value> =
    LazyLock::new(|| machinery::value::decode(include_bytes!("defaults.json")).unwrap_or_default());

/// PriorityLevelConfigurations.
pub fn levels() -> Vec<Value> {
    DEFAULTS.items_at(&["levels"]).to_vec()
}

pub fn schemas() -> Vec<Value> {
    DEFAULTS.items_at(&["schemas"]).to_vec()
}
