//! The core group: Pods, Services, Nodes, Namespaces, volumes, and configuration.

pub mod accounts;
pub mod claims;
pub mod components;
pub mod config;
pub mod downward;
pub mod iscsi;
pub mod key_pair;
pub mod limit_ranges;
pub mod namespaces;
pub mod nodes;
mod pod_volumes;
pub mod pods;
pub mod podspec;
mod projections;
pub mod quotas;
pub mod secrets;
pub mod services;
mod volume_sources;
pub mod volumes;

use crate::core::pods::{pod_annotations, pod_status, pod_warnings, resize};
use crate::{names, object_warnings};
use machinery::Value;
use resource::builtin::at::At;
use resource::builtin::{Behaviour, Check, Further, Hooks, NO_RESETS, Named, Part, Review};
use resource::rules::{Deletion, Preconditions, label_name};

const NONE: Behaviour = Behaviour::NONE;

const fn part(prepare: fn(&mut Value, &Value), validate: fn(At)) -> Part {
    Part { prepare, validate, reset: Some(|| &NO_RESETS), ..Part::PLAIN }
}

pub static KINDS: &[Behaviour] = &[
    Behaviour { of: "v1/Binding", review: Some(Review::Binding), ..NONE },
    Behaviour {
        of: "v1/ComponentStatus",
        further: Further { computed: Some(components::all), ..Further::NONE },
        ..NONE
    },
    Behaviour { of: "v1/ConfigMap", validate: config::validate, ..NONE },
    Behaviour { of: "v1/Endpoints", warnings: object_warnings::of_endpoints, ..NONE },
    Behaviour {
        of: "v1/LimitRange",
        default: limit_ranges::default,
        prepare: limit_ranges::prepare,
        validate: limit_ranges::validate,
        ..NONE
    },
    Behaviour {
        of: "v1/Namespace",
        default: namespaces::default,
        prepare: namespaces::prepare,
        validate: namespaces::validate,
        name: |name, _| label_name(name),
        status: Part { validate: namespaces::validate_status, ..Part::PLAIN },
        parts: &[("finalize", namespaces::FINALIZE)],
        deletion: Deletion {
            preconditions: Preconditions::Storage { small_since: None },
            unreadable: false,
            finalizers: &["spec", "finalizers"],
            begin: namespaces::begin_deletion,
            ..Deletion::DEFAULT
        },
        // the name may have been generated
        further: Further { complete_stored: namespaces::default, ..Further::NONE },
        ..NONE
    },
    Behaviour {
        of: "v1/Node",
        default: nodes::default,
        validate: nodes::validate,
        warnings: nodes::warnings,
        status: Part { validate: nodes::validate_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "v1/PersistentVolumeClaim",
        prepare: volumes::prepare_claim,
        validate: volumes::validate_claim,
        warnings: object_warnings::of_claim,
        status: Part { validate: volumes::validate_claim_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "v1/PersistentVolume",
        default: volumes::default_volume,
        prepare: volumes::prepare_volume,
        validate: volumes::validate_volume,
        warnings: object_warnings::of_volume,
        status: Part { prepare: volumes::prepare_volume_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "v1/Pod",
        default: pods::default,
        prepare: pods::prepare,
        validate: pods::validate,
        warnings: pod_warnings::of_pod,
        status: Part {
            prepare: pod_status::prepare,
            validate: pod_status::validate,
            warnings: object_warnings::of_pod_status,
            ..Part::PLAIN
        },
        // kube-apiserver names no reset fields for these subresources, so managedFields record what a request would
        // have changed
        parts: &[
            ("ephemeralcontainers", part(pods::add_ephemeral, pods::validate_ephemeral)),
            ("resize", part(resize::prepare, resize::validate)),
        ],
        deletion: Deletion { begin: |_, _| {}, grace: Some(pods::grace), ..Deletion::DEFAULT },
        further: Further {
            early_warnings: pod_annotations::early_warnings,
            row_conditions: pod_status::ended,
            ..Further::NONE
        },
        ..NONE
    },
    Behaviour {
        of: "v1/ResourceQuota",
        prepare: quotas::prepare,
        validate: quotas::validate,
        warnings: object_warnings::of_quota,
        status: Part { validate: quotas::validate_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "v1/Secret",
        default: secrets::default,
        validate: secrets::validate,
        warnings: secrets::warnings,
        ..NONE
    },
    Behaviour { of: "v1/ServiceAccount", prepare: accounts::prepare, warnings: accounts::warnings, ..NONE },
    Behaviour {
        of: "v1/Service",
        default: services::default,
        prepare: services::prepare,
        validate: services::validate,
        warnings: services::warnings,
        name: services::name,
        status: Part { validate: services::validate_status, warnings: object_warnings::of_balancers, ..Part::PLAIN },
        hooks: Hooks::Service,
        ..NONE
    },
];

/// The checks that rules name.
pub const CHECKS: Named<Check> = &[
    ("config-key", |at| at.check_text(names::data_key)),
    ("iqn", |at| {
        at.invalid_if(!at.as_text().is_empty() && !iscsi::is_qualified(at.as_text()), "must be valid format");
    }),
    ("taints", nodes::taints),
];
