//! The kinds of networks, storage, devices and nodes, and those of the server itself.

use machinery::Release;

use super::super::behaviour::{Behaviour, Hooks, Part, StoredAs};
use super::super::devices::{self, flat};
use super::super::{
    apiservices, config, definition, lease_candidates, leases, migrations, object_warnings, pool_requests, routing,
    rule_checks, runtime_classes, storage_kinds, storage_versions, volumes,
};
use crate::rules::{Deletion, Dependents, Preconditions};

const NONE: Behaviour = Behaviour::NONE;

/// `resource.k8s.io/v1beta1` has a form of its own; its objects are prepared and validated in the form of v1.
const FLAT: Option<StoredAs> = Some(StoredAs {
    is_canonical: true,
    checked_path: Some(flat::stable_path),
    ..StoredAs::new(flat::to_stable, flat::to_flat)
});

const DEFINITION: Behaviour = Behaviour {
    of: "apiextensions.k8s.io/CustomResourceDefinition",
    prepare: definition::prepare,
    validate: definition::validate,
    warnings: definition::warnings,
    status: Part {
        prepare: schema::definition::prepare_for_status_update,
        validate: definition::validate_status,
        ..Part::PLAIN
    },
    deletion: Deletion {
        dependents: Dependents::CollectedOnceDeleting,
        preconditions: Preconditions::Storage { small_since: Some(Release::V1_37) },
        begin: definition::begin_deletion,
        ..Deletion::DEFAULT
    },
    hooks: Hooks::Definition,
    ..NONE
};

const RESOURCE_CLAIM: Behaviour = Behaviour {
    of: "resource.k8s.io/ResourceClaim",
    validate: devices::validate_claim,
    status: Part { prepare: devices::keep_allocated, validate: devices::validate_status, ..Part::PLAIN },
    hooks: Hooks::ResourceClaim,
    ..NONE
};

const RESOURCE_SLICE: Behaviour = Behaviour {
    of: "resource.k8s.io/ResourceSlice",
    prepare: devices::prepare_slice,
    validate: devices::validate_slice,
    warnings: devices::slice_warnings,
    ..NONE
};

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "apiregistration.k8s.io/APIService",
        prepare: apiservices::prepare,
        validate: apiservices::validate,
        name: super::path_segment,
        status: Part { validate: apiservices::validate_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour { of: "networking.k8s.io/IngressClass", validate: routing::validate_ingress_class, ..NONE },
    Behaviour {
        of: "networking.k8s.io/Ingress",
        validate: routing::validate_ingress,
        warnings: object_warnings::of_ingress,
        status: Part { warnings: object_warnings::of_balancers, ..Part::PLAIN },
        ..NONE
    },
    Behaviour { of: "networking.k8s.io/IPAddress", name: |name, _| rule_checks::address_problems(name), ..NONE },
    Behaviour {
        of: "networking.k8s.io/NetworkPolicy",
        default: routing::default_network_policy,
        validate: routing::validate_network_policy,
        warnings: object_warnings::of_network_policy,
        ..NONE
    },
    Behaviour { of: "networking.k8s.io/ServiceCIDR", validate: routing::validate_service_cidr, ..NONE },
    Behaviour {
        of: "storage.k8s.io/CSIDriver",
        validate: storage_kinds::validate_driver,
        warnings: volumes::driver_warnings,
        ..NONE
    },
    Behaviour { of: "storage.k8s.io/CSINode", validate: storage_kinds::validate_node, ..NONE },
    Behaviour {
        of: "storage.k8s.io/CSIStorageCapacity",
        validate: storage_kinds::validate_capacity,
        warnings: object_warnings::of_capacity,
        ..NONE
    },
    Behaviour {
        of: "storage.k8s.io/StorageClass",
        validate: storage_kinds::validate_class,
        warnings: object_warnings::of_class,
        ..NONE
    },
    Behaviour {
        of: "storage.k8s.io/VolumeAttachment",
        validate: storage_kinds::validate_attachment,
        status: Part { validate: storage_kinds::validate_attachment_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour { of: "storage.k8s.io/VolumeAttributesClass", validate: storage_kinds::validate_attributes, ..NONE },
    DEFINITION,
    Behaviour {
        of: "apiextensions.k8s.io/v1beta1/CustomResourceDefinition",
        prepare: definition::prepare_beta,
        validate: definition::validate_beta,
        warnings: definition::beta_warnings,
        conversion: Some(StoredAs::new(definition::beta_to_stored, definition::to_beta)),
        ..DEFINITION
    },
    Behaviour { of: "coordination.k8s.io/Lease", prepare: leases::prepare, validate: leases::validate, ..NONE },
    Behaviour {
        of: "coordination.k8s.io/LeaseCandidate",
        validate: lease_candidates::validate,
        name: |name, _| config::data_key(name),
        ..NONE
    },
    Behaviour {
        of: "node.k8s.io/RuntimeClass",
        validate: runtime_classes::validate,
        warnings: object_warnings::of_runtime_class,
        ..NONE
    },
    Behaviour {
        of: "discovery.k8s.io/EndpointSlice",
        prepare: routing::count_labels,
        validate: routing::validate_slice,
        warnings: routing::slice_warnings,
        ..NONE
    },
    Behaviour {
        of: "resource.k8s.io/DeviceClass",
        validate: devices::validate_class,
        name: super::declared_name,
        ..NONE
    },
    Behaviour { of: "resource.k8s.io/v1beta1/DeviceClass", conversion: FLAT, ..NONE },
    Behaviour {
        of: "resource.k8s.io/DeviceTaintRule",
        prepare: devices::prepare_taint_rule,
        validate: devices::validate_taint_rule,
        status: Part { validate: routing::validate_conditions, ..Part::PLAIN },
        ..NONE
    },
    RESOURCE_CLAIM,
    Behaviour {
        of: "resource.k8s.io/v1beta1/ResourceClaim",
        default: flat::default,
        conversion: FLAT,
        ..RESOURCE_CLAIM
    },
    Behaviour {
        of: "resource.k8s.io/ResourceClaimTemplate",
        validate: devices::validate_claim_template,
        hooks: Hooks::ResourceClaim,
        ..NONE
    },
    Behaviour {
        of: "resource.k8s.io/v1beta1/ResourceClaimTemplate",
        default: flat::default,
        conversion: FLAT,
        hooks: Hooks::ResourceClaim,
        ..NONE
    },
    RESOURCE_SLICE,
    Behaviour { of: "resource.k8s.io/v1beta1/ResourceSlice", conversion: FLAT, ..RESOURCE_SLICE },
    Behaviour {
        of: "resource.k8s.io/ResourcePoolStatusRequest",
        status: Part { validate: pool_requests::validate_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "internal.apiserver.k8s.io/StorageVersion",
        name: |name, _| storage_versions::name_problems(name),
        status: Part { validate: storage_versions::validate_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "storagemigration.k8s.io/StorageVersionMigration",
        validate: migrations::validate,
        status: Part { validate: migrations::validate_status, ..Part::PLAIN },
        ..NONE
    },
];
