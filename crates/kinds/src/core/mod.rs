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
use resource::builtin::{Behaviour, Check, Hooks, NO_RESETS, Named, Part, PartRules, Review};
use resource::rules::{Deletion, Preconditions, Propagation, label_name};
use schema::at::At;

const fn part(prepare: fn(&mut Value, &Value), validate: fn(At)) -> Part {
    Part::PLAIN.prepare(prepare).validate(validate).reset(|| &NO_RESETS).rules(PartRules::Whole)
}

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("v1/Binding").review(Review::Binding),
    Behaviour::of("v1/ComponentStatus").computed(components::all),
    Behaviour::of("v1/ConfigMap").validate(config::validate),
    Behaviour::of("v1/Endpoints").warnings(object_warnings::of_endpoints),
    Behaviour::of("v1/LimitRange")
        .default(limit_ranges::default)
        .prepare(limit_ranges::prepare)
        .validate(limit_ranges::validate),
    Behaviour::of("v1/Namespace")
        .default(namespaces::default)
        .prepare(namespaces::prepare)
        .validate(namespaces::validate)
        .name(|name, _| label_name(name))
        .status(Part::PLAIN.validate(namespaces::validate_status))
        .parts(&[("finalize", namespaces::FINALIZE)])
        .deletion(Deletion {
            unorphaned: Propagation::Foreground,
            preconditions: Preconditions::Storage { small_since: None },
            unreadable: false,
            finalizers: &["spec", "finalizers"],
            begin: namespaces::begin_deletion,
            ..Deletion::DEFAULT
        })
        // the name may have been generated
        .complete_stored(namespaces::default),
    Behaviour::of("v1/Node")
        .default(nodes::default)
        .validate(nodes::validate)
        .warnings(nodes::warnings)
        .status(Part::PLAIN.validate(nodes::validate_status)),
    Behaviour::of("v1/PersistentVolumeClaim")
        .prepare(volumes::prepare_claim)
        .validate(volumes::validate_claim)
        .warnings(object_warnings::of_claim)
        .status(Part::PLAIN.validate(volumes::validate_claim_status)),
    Behaviour::of("v1/PersistentVolume")
        .default(volumes::default_volume)
        .prepare(volumes::prepare_volume)
        .validate(volumes::validate_volume)
        .warnings(object_warnings::of_volume)
        .status(Part::PLAIN.prepare(volumes::prepare_volume_status)),
    Behaviour::of("v1/Pod")
        .default(pods::default)
        .prepare(pods::prepare)
        .validate(pods::validate)
        .warnings(pod_warnings::of_pod)
        .status(
            Part::PLAIN
                .prepare(pod_status::prepare)
                .validate(pod_status::validate)
                .warnings(object_warnings::of_pod_status),
        )
        // kube-apiserver names no reset fields for these subresources, so managedFields record what a request would
        // have changed
        .parts(&[
            ("ephemeralcontainers", part(pods::add_ephemeral, pods::validate_ephemeral)),
            ("resize", part(resize::prepare, resize::validate)),
        ])
        .deletion(Deletion { begin: |_, _| {}, grace: Some(pods::grace), ..Deletion::DEFAULT })
        .early_warnings(pod_annotations::early_warnings)
        .row_conditions(pod_status::ended),
    Behaviour::of("v1/ResourceQuota")
        .prepare(quotas::prepare)
        .validate(quotas::validate)
        .warnings(object_warnings::of_quota)
        .status(Part::PLAIN.validate(quotas::validate_status)),
    Behaviour::of("v1/Secret").default(secrets::default).validate(secrets::validate).warnings(secrets::warnings),
    Behaviour::of("v1/ServiceAccount").prepare(accounts::prepare).warnings(accounts::warnings),
    Behaviour::of("v1/Service")
        .default(services::default)
        .prepare(services::prepare)
        .validate(services::validate)
        .warnings(services::warnings)
        .name(services::name)
        .status(Part::PLAIN.validate(services::validate_status).warnings(object_warnings::of_balancers))
        .hooks(Hooks::Service),
];

pub const CHECKS: Named<Check> = &[
    ("config-key", |at| at.check_text(names::data_key)),
    ("iqn", |at| {
        at.invalid_if(!at.as_text().is_empty() && !iscsi::is_qualified(at.as_text()), "must be valid format");
    }),
    ("taints", nodes::taints),
];
