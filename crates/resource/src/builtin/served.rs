//! The built-in kinds and versions that are served or stored.

use super::{BuiltIn, RuntimeConfig, allocations, autoscaling, definition, kinds, optional, third_party, unstable};
use crate::group_version;

/// The built-in kinds that are served, each with all its versions that are, in their order in discovery. Their objects are
/// stored as each row says.
pub fn served(config: &RuntimeConfig) -> Vec<Vec<&'static BuiltIn>> {
    static THIRD_PARTY: BuiltIn = third_party::THIRD_PARTY_RESOURCE;
    let of_kind = |row: &'static BuiltIn| -> Vec<&'static BuiltIn> {
        let newest = Some(row).filter(|row| config.serves(row));
        let older: Vec<&BuiltIn> = match row.kind {
            "CustomResourceDefinition" => config.beta_definitions.then(beta_definition).into_iter().collect(),
            "HorizontalPodAutoscaler" => vec![autoscaling::v1()].into_iter().filter(|v1| config.serves(v1)).collect(),
            _ => unstable::rows_of(row).filter(|row| config.enables(row)).collect(),
        };
        newest.into_iter().chain(older).collect()
    };
    let of_optional = |rows: &'static [BuiltIn]| rows.iter().filter(|row| config.enables(row)).collect();
    let third_party = config.third_party_resources.then(|| vec![&THIRD_PARTY]);
    let all = kinds().map(of_kind).chain(third_party).chain(optional::kinds().map(of_optional));
    all.filter(|versions| !versions.is_empty()).collect()
}

/// Another version or group of a kind, with the same stored objects, by its `apiVersion`; served or not.
pub fn sibling(built_in: &BuiltIn, api_version: &str) -> Option<&'static BuiltIn> {
    let newer = kinds().chain([beta_definition(), autoscaling::v1()]);
    let mut all = newer.chain(unstable::rows()).chain(optional::rows());
    let found = all.find(|s| s.kind == built_in.kind && group_version(s.group, s.version) == api_version)?;
    let is_other = (found.group, found.version) != (built_in.group, built_in.version);
    (is_other && found.storage_group() == built_in.storage_group()).then_some(found)
}

/// CRDs in `v1beta1`, which kube-apiserver may have stored.
pub fn beta_definition() -> &'static BuiltIn {
    static BETA: BuiltIn = definition::BETA;
    &BETA
}

/// The built-in kinds that are stored, each in its own form.
pub fn stored_kinds() -> impl Iterator<Item = &'static BuiltIn> {
    static OTHERS: [BuiltIn; 2] = [third_party::THIRD_PARTY_RESOURCE, allocations::RANGE_ALLOCATION];
    let all = kinds().chain(unstable::rows()).chain(&OTHERS).chain(optional::rows());
    all.filter(|row| row.review.is_none() && row.computed.is_none() && row.stored_as.is_none())
}
