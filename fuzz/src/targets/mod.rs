//! The targets of random input.

mod cbor;
mod cel;
mod definitions;
mod fields;
mod json;
mod patches;
mod protobuf;
mod schemas;
mod selectors;
mod yaml;

/// A property that holds for all input.
pub struct Target {
    pub name: &'static str,
    /// The inputs that are mutated.
    pub seeds: &'static [&'static [u8]],
    /// Panics if the property does not hold.
    pub check: fn(&[u8]),
}

pub const ALL: &[Target] = &[
    cbor::TARGET,
    cel::TARGET,
    definitions::TARGET,
    fields::TARGET,
    json::TARGET,
    patches::JSON,
    patches::MERGE,
    protobuf::TARGET,
    schemas::TARGET,
    selectors::TARGET,
    yaml::TARGET,
];
