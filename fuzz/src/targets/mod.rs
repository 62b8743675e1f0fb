//! What random input is given to.

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

/// A promise that holds for all input.
pub struct Target {
    pub name: &'static str,
    /// What changed inputs are made from.
    pub seeds: &'static [&'static [u8]],
    /// Panics where the promise is broken.
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
