//! Leases and LeaseCandidates.

pub mod lease_candidates;
pub mod leases;

use crate::names;
use resource::builtin::Behaviour;

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("coordination.k8s.io/Lease").prepare(leases::prepare),
    Behaviour::of("coordination.k8s.io/LeaseCandidate")
        .validate(lease_candidates::validate)
        .name(|name, _| names::data_key(name)),
];
