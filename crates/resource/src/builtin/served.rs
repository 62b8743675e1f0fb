//! The built-in kinds and versions that are served or stored.

use machinery::Release;

use super::{
    BuiltIn, RuntimeConfig, allocations, autoscaling, definition, kinds, migrations, mutations, optional, third_party,
    unstable,
};
use crate::group_version;

/// A kind in its storage version, and the other versions that are served.
type Served = (&'static BuiltIn, &'static [BuiltIn]);

/// The built-in kinds that are served, each with its older versions.
pub fn served(config: RuntimeConfig) -> Vec<Served> {
    static BETA_DEFINITION: [BuiltIn; 1] = [definition::BETA];
    let older: &[BuiltIn] = if config.beta_definitions { &BETA_DEFINITION } else { &[] };
    static THIRD_PARTY: [BuiltIn; 1] = [third_party::THIRD_PARTY_RESOURCE];
    let third_party: &'static [BuiltIn] = if config.third_party_resources { &THIRD_PARTY } else { &[] };
    static BETA: [Served; 2] =
        [(&mutations::BETA_POLICY, &[mutations::POLICY]), (&mutations::BETA_BINDING, &[mutations::BINDING])];
    static STABLE: [Served; 2] = [(&mutations::POLICY, &[]), (&mutations::BINDING, &[])];
    static BOTH: [Served; 2] =
        [(&mutations::POLICY, &[mutations::BETA_POLICY]), (&mutations::BINDING, &[mutations::BETA_BINDING])];
    let mutations: &[Served] = match (config.mutating_policies, config.beta_mutating_policies) {
        (false, _) => &[],
        (true, _) if config.release < Release::V1_36 => &BETA,
        (true, false) => &STABLE,
        (true, true) => &BOTH,
    };
    static BETA_MIGRATION: (&BuiltIn, &[BuiltIn]) = (&migrations::BETA_MIGRATION, &[]);
    static MIGRATION: (&BuiltIn, &[BuiltIn]) = (&migrations::MIGRATION, &[]);
    static BOTH_MIGRATIONS: (&BuiltIn, &[BuiltIn]) = (&migrations::BETA_MIGRATION, &[migrations::MIGRATION]);
    let migrations = match (config.beta_migrations, config.migrations) {
        (false, false) => None,
        (true, false) => Some(BETA_MIGRATION),
        (false, true) => Some(MIGRATION),
        (true, true) => Some(BOTH_MIGRATIONS),
    };
    let autoscaler = std::slice::from_ref(autoscaling::v1());
    let (is_v1_on, is_v2_on) = (config.serves(autoscaling::v1()), is_autoscaler_on(config));
    let older_of = |built_in: &BuiltIn| match built_in.kind {
        "CustomResourceDefinition" => older,
        "HorizontalPodAutoscaler" if is_v1_on => autoscaler,
        _ => unstable::rows_of(built_in, |row| config.enables(row)),
    };
    let on = kinds().filter(|row| config.serves(row));
    // without v2, v1 is served alone
    let alone = autoscaler.iter().filter(|_| is_v1_on && !is_v2_on);
    let all =
        on.chain(third_party).map(|built_in| (built_in, older_of(built_in))).chain(alone.map(|row| (row, &[][..])));
    all.chain(mutations.iter().copied())
        .chain(migrations)
        .chain(optional::served(config.release, move |row| config.enables(row)))
        .collect()
}

/// Whether HorizontalPodAutoscalers are served in their storage version.
fn is_autoscaler_on(config: RuntimeConfig) -> bool {
    kinds().filter(|row| row.kind == autoscaling::v1().kind).all(|row| config.serves(row))
}

/// Another version or group of a kind, with the same stored objects, by its `apiVersion`; served or not.
pub fn sibling(built_in: &BuiltIn, api_version: &str) -> Option<&'static BuiltIn> {
    static BETA_DEFINITION: BuiltIn = definition::BETA;
    static MIGRATIONS: [BuiltIn; 2] = [migrations::BETA_MIGRATION, migrations::MIGRATION];
    let newer = kinds().chain([&BETA_DEFINITION, autoscaling::v1()]).chain(&MIGRATIONS);
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
    static THIRD_PARTY: BuiltIn = third_party::THIRD_PARTY_RESOURCE;
    static MIGRATION: BuiltIn = migrations::BETA_MIGRATION;
    static MUTATIONS: [BuiltIn; 2] = [mutations::BETA_POLICY, mutations::BETA_BINDING];
    static ALLOCATIONS: [BuiltIn; 1] = [allocations::RANGE_ALLOCATION];
    let switched =
        [&THIRD_PARTY, &MIGRATION].into_iter().chain(&MUTATIONS).chain(&ALLOCATIONS).chain(optional::stored());
    kinds().chain(switched).filter(|row| row.review.is_none() && row.computed.is_none() && row.stored_as.is_none())
}
