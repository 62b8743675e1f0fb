//! Label and field selectors: parsed from query text, matched against metadata.

pub mod field;
pub mod label;

pub use field::{FieldRequirement, FieldSelector};
pub use label::LabelSelector;
