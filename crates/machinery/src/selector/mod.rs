//! Label and field selectors: parsed from query text, matched against metadata (api-machinery 12).

pub mod field;
pub mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;
