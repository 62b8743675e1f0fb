//! Kinds whose versions are switched one by one, by `--runtime-config` and by feature gates; most of them are off by default.

use machinery::Release;

use super::{
    BASE, BuiltIn, Form, StoredAs, evictions, in_version, lease_candidates, migrations, mutations, pool_requests,
    storage_versions, tables, workload_groups,
};
use crate::rules::{Deletion, MetadataRules};

static LEASE_CANDIDATES: [BuiltIn; 2] = [
    LEASE_CANDIDATE,
    BuiltIn {
        version: "v1alpha2",
        form: Form::Named("coordination.v1alpha2.LeaseCandidate"),
        deprecation: "coordination.k8s.io/v1alpha2 LeaseCandidate is deprecated in v1.35+, unavailable in v1.38+",
        removed_release: "1.38",
        stored_as: Some(&StoredAs {
            group: "coordination.k8s.io",
            to_stored: |shown| in_version(shown, "coordination.k8s.io/v1beta1"),
            to_shown: |stored| in_version(stored, "coordination.k8s.io/v1alpha2"),
        }),
        ..LEASE_CANDIDATE
    },
];

const LEASE_CANDIDATE: BuiltIn = BuiltIn {
    group: "coordination.k8s.io",
    version: "v1beta1",
    kind: "LeaseCandidate",
    plural: "leasecandidates",
    singular: "leasecandidate",
    form: Form::Named("coordination.v1beta1.LeaseCandidate"),
    deprecation: "coordination.k8s.io/v1beta1 LeaseCandidate is deprecated in v1.36+, unavailable in v1.39+",
    removed_release: "1.39",
    metadata: MetadataRules { name: |name, _| super::config::data_key(name), ..MetadataRules::BUILT_IN },
    unconditional_update: false,
    create_on_update: true,
    validate: lease_candidates::validate,
    columns: tables::LEASE_CANDIDATE,
    ..BASE
};

static STORAGE_VERSIONS: [BuiltIn; 1] = [BuiltIn {
    group: "internal.apiserver.k8s.io",
    version: "v1alpha1",
    kind: "StorageVersion",
    plural: "storageversions",
    singular: "storageversion",
    namespaced: false,
    status: true,
    fresh_status: true,
    form: Form::Named("apiserverinternal.v1alpha1.StorageVersion"),
    metadata: MetadataRules {
        name: |name, _| storage_versions::name_problems(name),
        on_update: &[],
        on_status: &[],
        ..MetadataRules::BUILT_IN
    },
    unconditional_update: false,
    validate_status: storage_versions::validate_status,
    columns: tables::STORAGE_VERSION,
    ..BASE
}];

static POOL_REQUESTS: [BuiltIn; 1] = [BuiltIn {
    group: "resource.k8s.io",
    version: "v1alpha3",
    kind: "ResourcePoolStatusRequest",
    plural: "resourcepoolstatusrequests",
    since: Release::V1_36,
    singular: "resourcepoolstatusrequest",
    namespaced: false,
    status: true,
    fresh_status: true,
    form: Form::Named("resource.v1alpha3.ResourcePoolStatusRequest"),
    deprecation: "resource.k8s.io/v1alpha3 ResourcePoolStatusRequest is deprecated in v1.39+, unavailable in v1.42+",
    removed_release: "1.42",
    deletion: Deletion { returns_object: true, ..Deletion::DEFAULT },
    unconditional_update: false,
    validate_status: pool_requests::validate_status,
    columns: tables::POOL_REQUEST,
    ..BASE
}];

/// The versions of each kind, in their order in discovery.
static KINDS: [&[BuiltIn]; 11] = [
    &mutations::POLICIES,
    &mutations::BINDINGS,
    &migrations::VERSIONS,
    &LEASE_CANDIDATES,
    &POOL_REQUESTS,
    &STORAGE_VERSIONS,
    &workload_groups::WORKLOADS,
    &workload_groups::POD_GROUPS,
    &workload_groups::COMPOSITE_POD_GROUPS,
    &evictions::EVICTIONS,
    &evictions::REQUESTS,
];

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static BuiltIn> + Clone {
    KINDS.iter().flat_map(|rows| *rows)
}

/// The versions of each kind.
pub fn kinds() -> impl Iterator<Item = &'static [BuiltIn]> {
    KINDS.iter().copied()
}
