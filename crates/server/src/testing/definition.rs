//! The kinds of `testing.pintle.dev`.

use machinery::Value;

pub const GROUP: &str = "testing.pintle.dev";
pub const FAULTS: &str = "faults";
pub const GATES: &str = "gates";
pub const CLOCKS: &str = "clocks";
pub const SETTLES: &str = "settles";
pub const REPORTS: &str = "reports";
pub const RECORDINGS: &str = "recordings";
/// Resources whose objects are completed and returned, and not stored.
pub const REVIEWS: [&str; 3] = [SETTLES, REPORTS, RECORDINGS];

/// The CustomResourceDefinitions.
pub fn definitions() -> Result<Vec<Value>, String> {
    let decoded = machinery::yaml::decode(include_bytes!("testing.yaml")).map_err(|error| error.to_string())?;
    Ok(decoded.value.items_at(&["items"]).to_vec())
}
