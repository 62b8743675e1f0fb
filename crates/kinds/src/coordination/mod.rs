//! Leases and LeaseCandidates.

pub mod lease_candidates;
pub mod leases;

use crate::names;
use resource::builtin::Behaviour;

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[
    Behaviour { of: "coordination.k8s.io/Lease", prepare: leases::prepare, validate: leases::validate, ..NONE },
    Behaviour {
        of: "coordination.k8s.io/LeaseCandidate",
        validate: lease_candidates::validate,
        name: |name, _| names::data_key(name),
        ..NONE
    },
];
