//! The built-in kinds and versions that are served or stored.

use super::row::Availability;
use super::table::rows;
use super::{BuiltIn, DEFINITION_GROUP, RuntimeConfig};

/// The versions that kube-apiserver registers, whether they are served or not.
pub fn registered() -> impl Iterator<Item = &'static BuiltIn> {
    rows().iter().filter(|row| !matches!(row.lifecycle.availability, Availability::Legacy | Availability::Never))
}

/// The version of a kind, served or not.
pub fn row_of(api_version: &str, kind: &str) -> Option<&'static BuiltIn> {
    registered().find(|row| row.kind == kind && row.api_version == api_version)
}

/// The built-in kinds that are served, each with its served versions, in the order of discovery.
pub fn served(config: &RuntimeConfig) -> Vec<Vec<&'static BuiltIn>> {
    let of_kind = |versions: &'static [BuiltIn]| versions.iter().filter(|row| config.serves(row)).collect();
    let all = rows().chunk_by(PartialEq::eq).map(of_kind);
    all.filter(|versions: &Vec<_>| !versions.is_empty()).collect()
}

/// Another version or group of a kind, with the same stored objects, by its `apiVersion`; served or not.
pub fn sibling(built_in: &BuiltIn, api_version: &str) -> Option<&'static BuiltIn> {
    let found = rows().iter().find(|row| row.kind == built_in.kind && row.api_version == api_version)?;
    let is_other = found.api_version != built_in.api_version;
    (is_other && found.storage_group() == built_in.storage_group()).then_some(found)
}

/// CRDs in `v1beta1`, which kube-apiserver may have stored.
pub fn beta_definition() -> &'static BuiltIn {
    let beta = |row: &&BuiltIn| row.group == DEFINITION_GROUP && row.version == "v1beta1";
    rows().iter().find(beta).unwrap_or(&rows()[0])
}

/// The built-in kinds that are stored, each in its own form.
pub fn stored_kinds() -> impl Iterator<Item = &'static BuiltIn> {
    rows().iter().filter(|row| row.is_stored() && row.stored_as.is_none())
}
