//! The kinds of the core group, of events and of extensions.

use machinery::Value;
use machinery::field::{FieldError, FieldPath};

use super::super::at::At;
use super::super::behaviour::{Behaviour, Further, Hooks, NO_RESETS, Part, Review, StoredAs};
use super::super::{
    accounts, components, config, events, limit_ranges, namespaces, nodes, object_warnings, pod_annotations,
    pod_status, pod_warnings, pods, quotas, resize, reviews, secrets, services, volumes, workloads,
};
use crate::rules::{Deletion, Preconditions, label_name};

const NONE: Behaviour = Behaviour::NONE;

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
        of: "v1/Event",
        validate: |at| events::validate_common(at, "reportingComponent"),
        name: super::any_name,
        ..NONE
    },
    Behaviour {
        of: "events.k8s.io/Event",
        validate: events::validate,
        conversion: Some(StoredAs::new(events::to_core, events::from_core)),
        ..NONE
    },
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
        of: "policy/v1/Eviction",
        review: Some(Review::Eviction),
        further: Further { also_posted_as: &["policy/v1beta1"], ..Further::NONE },
        ..NONE
    },
    Behaviour {
        of: "v1/PodTemplate",
        default: workloads::default_template,
        validate: workloads::validate_pod_template,
        warnings: pod_warnings::of_workload,
        ..NONE
    },
    Behaviour {
        of: "v1/ReplicationController",
        default: workloads::default_controller,
        validate: workloads::validate_controller,
        warnings: pod_warnings::of_workload,
        name: super::declared_name,
        status: Part { validate: workloads::validate_replicas, ..Part::PLAIN },
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
        of: "authentication.k8s.io/v1/TokenRequest",
        validate: reviews::validate_request,
        review: Some(Review::TokenRequest),
        ..NONE
    },
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
    Behaviour {
        of: "extensions/ThirdPartyResource",
        validate: |at| at.extend(schema::definition::validate_third_party(at.value)),
        hooks: Hooks::ThirdPartyResource,
        further: Further {
            check_body: |registration| match registration.str_at(&["metadata", "namespace"]) {
                "" => None,
                _ => Some(FieldError::forbidden(&FieldPath::new("metadata.namespace"), "not allowed on this type")),
            },
            ..Further::NONE
        },
        ..NONE
    },
];

const fn part(prepare: fn(&mut Value, &Value), validate: fn(At)) -> Part {
    Part { prepare, validate, reset: Some(|| &NO_RESETS), ..Part::PLAIN }
}
