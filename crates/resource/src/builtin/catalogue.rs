//! The kinds whose shape is in the table of Go types: a row each, in the order of discovery.

use machinery::{Release, names};

use super::services::PROXY_VERBS;
use super::{
    BASE, BuiltIn, Connect, Form, Hooks, Labels, OwnEndpoint, OwnSubresource, Review, StatusMetadata, autoscaling,
    certificates, claim_templates, columns, components, devices, is_same, job_rules, limit_ranges, nodes,
    object_warnings, pod_annotations, pod_certificates, pod_status, pod_warnings, pods, routing, rule_checks,
    runtime_classes, storage_kinds, tables, track_generation, volumes, workloads,
};
use crate::rules::{Deletion, MetadataRules, OnCreate, OnUpdate, Propagation};

/// A kind without rules of its own. `go` is its Go type.
const fn kind(
    group: &'static str,
    go: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> BuiltIn {
    BuiltIn { group, kind, plural, singular, form: Form::Named(go), namespaced: false, ..BASE }
}

const fn namespaced(
    group: &'static str,
    go: &'static str,
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> BuiltIn {
    BuiltIn { namespaced: true, ..kind(group, go, name, plural, singular) }
}

/// A kind with a status subresource; creates reset the status.
const fn with_status(row: BuiltIn) -> BuiltIn {
    BuiltIn { status: true, fresh_status: true, ..row }
}

const fn with_generation(row: BuiltIn) -> BuiltIn {
    BuiltIn { generation: true, ..row }
}

/// A kind whose spec has a template of Pods.
const fn workload(row: BuiltIn) -> BuiltIn {
    BuiltIn { categories: &["all"], ..with_generation(with_status(row)) }
}

const RETURNED: Deletion = Deletion { returns_object: true, ..Deletion::DEFAULT };
const ORPHANED: Deletion = Deletion { propagation: Some(Propagation::Orphan), ..Deletion::DEFAULT };

const SYSTEM_PRIORITY: &str = "this is a system priority class and cannot be deleted";
/// The warning about a deletion of Jobs without propagation policy.
const CHILDREN: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// A kind whose DELETE responds with the object.
const fn returned(row: BuiltIn) -> BuiltIn {
    BuiltIn { deletion: RETURNED, ..row }
}

/// The name of a StatefulSet, which is part of the host names of its Pods.
fn stateful_set_name(name: &str, release: Release) -> Vec<String> {
    if release >= Release::V1_37 { names::dns1123_label(name) } else { names::dns1123_subdomain(name) }
}

/// A name that declarative validation checks since 1.37, and with it the name alone: `generateName` is not checked.
fn declared_name(name: &str, release: Release) -> Vec<String> {
    if release >= Release::V1_37 { vec![] } else { names::dns1123_subdomain(name) }
}

pub static CATALOGUE: &[BuiltIn] = &[
    BuiltIn { review: Some(Review::Binding), ..namespaced("", "core.v1.Binding", "Binding", "bindings", "binding") },
    BuiltIn {
        computed: Some(components::all),
        columns: tables::COMPONENT,
        deprecation: "v1 ComponentStatus is deprecated in v1.19+",
        short_names: &["cs"],
        ..kind("", "core.v1.ComponentStatus", "ComponentStatus", "componentstatuses", "componentstatus")
    },
    BuiltIn {
        columns: tables::ENDPOINTS,
        metadata: MetadataRules { on_update: &[OnUpdate::Change, OnUpdate::Object], ..MetadataRules::BUILT_IN },
        deprecation: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        short_names: &["ep"],
        create_on_update: true,
        warnings: object_warnings::of_endpoints,
        ..namespaced("", "core.v1.Endpoints", "Endpoints", "endpoints", "endpoints")
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: columns::PLAIN,
        default: limit_ranges::default,
        prepare: limit_ranges::prepare,
        validate: limit_ranges::validate,
        short_names: &["limits"],
        create_on_update: true,
        ..namespaced("", "core.v1.LimitRange", "LimitRange", "limitranges", "limitrange")
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::NODE,
        short_names: &["no"],
        subresources: &[OwnSubresource {
            name: "proxy",
            verbs: PROXY_VERBS,
            endpoint: OwnEndpoint::Connect(Connect::Proxy("NodeProxyOptions")),
        }],
        status: true,
        selectable: &[("spec.unschedulable", &["spec.unschedulable"])],
        default: nodes::default,
        validate: nodes::validate,
        validate_status: nodes::validate_status,
        warnings: nodes::warnings,
        ..kind("", "core.v1.Node", "Node", "nodes", "node")
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::CLAIM,
        short_names: &["pvc"],
        deletion: RETURNED,
        prepare: volumes::prepare_claim,
        validate: volumes::validate_claim,
        warnings: object_warnings::of_claim,
        validate_status: volumes::validate_claim_status,
        ..with_status(namespaced(
            "",
            "core.v1.PersistentVolumeClaim",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            "persistentvolumeclaim",
        ))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::VOLUME,
        short_names: &["pv"],
        deletion: RETURNED,
        default: volumes::default_volume,
        prepare: volumes::prepare_volume,
        prepare_status: volumes::prepare_volume_status,
        validate: volumes::validate_volume,
        warnings: object_warnings::of_volume,
        ..with_status(kind("", "core.v1.PersistentVolume", "PersistentVolume", "persistentvolumes", "persistentvolume"))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::POD,
        row_conditions: tables::ended,
        short_names: &["po"],
        deletion: Deletion { begin: |_, _| {}, grace: Some(pods::grace), ..RETURNED },
        subresources: pods::SUBRESOURCES,
        selectable: pods::SELECTABLE,
        default: pods::default,
        early_warnings: pod_annotations::early_warnings,
        prepare: pods::prepare,
        validate: pods::validate,
        prepare_status: pod_status::prepare,
        validate_status: pod_status::validate,
        warnings: pod_warnings::of_pod,
        status_warnings: object_warnings::of_pod_status,
        ..workload(namespaced("", "core.v1.Pod", "Pod", "pods", "pod"))
    },
    BuiltIn {
        columns: tables::POD_TEMPLATE,
        validate: workloads::validate_pod_template,
        warnings: pod_warnings::of_workload,
        deletion: RETURNED,
        generation: true,
        default: workloads::default_template,
        ..namespaced("", "core.v1.PodTemplate", "PodTemplate", "podtemplates", "podtemplate")
    },
    BuiltIn {
        metadata: MetadataRules { name: declared_name, ..MetadataRules::BUILT_IN },
        columns: tables::REPLICAS,
        validate_status: workloads::validate_replicas,
        deletion: ORPHANED,
        short_names: &["rc"],
        scale: true,
        default: workloads::default_controller,
        selectable: &[("status.replicas", &["status.replicas"])],
        validate: workloads::validate_controller,
        warnings: pod_warnings::of_workload,
        ..workload(namespaced(
            "",
            "core.v1.ReplicationController",
            "ReplicationController",
            "replicationcontrollers",
            "replicationcontroller",
        ))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::REVISION,
        validate: workloads::validate_revision,
        ..namespaced(
            "apps",
            "apps.v1.ControllerRevision",
            "ControllerRevision",
            "controllerrevisions",
            "controllerrevision",
        )
    },
    BuiltIn {
        columns: tables::DAEMON_SET,
        prepare: workloads::prepare_daemon_set,
        short_names: &["ds"],
        default: workloads::default_daemon_set,
        validate: workloads::validate,
        warnings: pod_warnings::of_workload,
        ..workload(namespaced("apps", "apps.v1.DaemonSet", "DaemonSet", "daemonsets", "daemonset"))
    },
    BuiltIn {
        prepare_status: workloads::keep_labels,
        status_resets: Some(workloads::status_resets),
        columns: tables::DEPLOYMENT,
        validate_status: workloads::validate_replicas,
        prepare: workloads::prepare_deployment,
        short_names: &["deploy"],
        scale: true,
        default: workloads::default_deployment,
        validate: workloads::validate,
        warnings: pod_warnings::of_workload,
        ..workload(namespaced("apps", "apps.v1.Deployment", "Deployment", "deployments", "deployment"))
    },
    BuiltIn {
        columns: tables::REPLICAS,
        validate_status: workloads::validate_replicas,
        short_names: &["rs"],
        scale: true,
        default: workloads::default_template,
        validate: workloads::validate,
        warnings: pod_warnings::of_workload,
        ..workload(namespaced("apps", "apps.v1.ReplicaSet", "ReplicaSet", "replicasets", "replicaset"))
    },
    BuiltIn {
        metadata: MetadataRules { name: stateful_set_name, ..MetadataRules::BUILT_IN },
        columns: tables::STATEFUL_SET,
        validate_status: workloads::validate_replicas,
        short_names: &["sts"],
        scale: true,
        default: workloads::default_stateful_set,
        validated: claim_templates::validated,
        validate: workloads::validate,
        warnings: pod_warnings::of_workload,
        ..workload(namespaced("apps", "apps.v1.StatefulSet", "StatefulSet", "statefulsets", "statefulset"))
    },
    BuiltIn {
        columns: tables::AUTOSCALER,
        default: autoscaling::default,
        validate: autoscaling::validate,
        generation: true,
        generation_gate: "HPAGeneration",
        version: "v2",
        short_names: &["hpa"],
        categories: &["all"],
        ..with_status(namespaced(
            "autoscaling",
            "autoscaling.v2.HorizontalPodAutoscaler",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "horizontalpodautoscaler",
        ))
    },
    BuiltIn {
        metadata: MetadataRules { on_status: &[], ..MetadataRules::BUILT_IN },
        columns: tables::CRON_JOB,
        short_names: &["cj"],
        default: workloads::default_cron_job,
        validate: workloads::validate_cron_job,
        warnings: pod_warnings::of_workload,
        ..workload(namespaced("batch", "batch.v1.CronJob", "CronJob", "cronjobs", "cronjob"))
    },
    BuiltIn {
        columns: tables::JOB,
        labels: Labels::OfKind,
        selectable: &[("status.successful", &["status.succeeded", "=0"])],
        deletion: Deletion { advice: CHILDREN, ..ORPHANED },
        default: workloads::default_job,
        complete_stored: workloads::default_labels,
        prepare: workloads::prepare_job,
        validate_status: job_rules::validate_status,
        validate: workloads::validate_job,
        warnings: pod_warnings::of_workload,
        ..workload(namespaced("batch", "batch.v1.Job", "Job", "jobs", "job"))
    },
    BuiltIn {
        columns: tables::SIGNING_REQUEST,
        short_names: &["csr"],
        selectable: &[("spec.signerName", &["spec.signerName"])],
        hooks: Hooks::CertificateRequest,
        metadata: MetadataRules { name: |_, _| vec![], ..MetadataRules::RECHECKED },
        resets: Some(certificates::resets),
        status_resets: Some(certificates::status_resets),
        prepare: certificates::prepare,
        validate: certificates::validate,
        prepare_status: certificates::prepare_status,
        validate_status: certificates::validate_status,
        subresources: certificates::SUBRESOURCES,
        ..with_status(kind(
            "certificates.k8s.io",
            "certificates.v1.CertificateSigningRequest",
            "CertificateSigningRequest",
            "certificatesigningrequests",
            "certificatesigningrequest",
        ))
    },
    BuiltIn {
        columns: tables::TRUST_BUNDLE,
        since: Release::V1_37,
        gate: "ClusterTrustBundle",
        metadata: MetadataRules { name: |_, _| vec![], ..MetadataRules::RECHECKED },
        unconditional_update: false,
        selectable: &[("spec.signerName", &["spec.signerName"])],
        validate: certificates::validate_bundle,
        ..kind(
            "certificates.k8s.io",
            "certificates.v1.ClusterTrustBundle",
            "ClusterTrustBundle",
            "clustertrustbundles",
            "clustertrustbundle",
        )
    },
    BuiltIn {
        columns: tables::POD_CERTIFICATE_REQUEST,
        since: Release::V1_37,
        gate: "PodCertificateRequest",
        unconditional_update: false,
        validate: pod_certificates::validate,
        validate_status: pod_certificates::validate_status,
        status_metadata: StatusMetadata::Reset,
        hooks: Hooks::PodCertificateRequest,
        stored_as: Some(&pod_certificates::STORED),
        selectable: &[
            ("spec.signerName", &["spec.signerName"]),
            ("spec.podName", &["spec.podName"]),
            ("spec.nodeName", &["spec.nodeName"]),
        ],
        ..with_status(namespaced(
            "certificates.k8s.io",
            "certificates.v1.PodCertificateRequest",
            "PodCertificateRequest",
            "podcertificaterequests",
            "podcertificaterequest",
        ))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::SLICE,
        validate: routing::validate_slice,
        warnings: routing::slice_warnings,
        prepare: routing::count_labels,
        counts_gated: true,
        ..with_generation(namespaced(
            "discovery.k8s.io",
            "discovery.v1.EndpointSlice",
            "EndpointSlice",
            "endpointslices",
            "endpointslice",
        ))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::INGRESS_CLASS,
        default_mark: "ingressclass.kubernetes.io/is-default-class",
        validate: routing::validate_ingress_class,
        ..with_generation(kind(
            "networking.k8s.io",
            "networking.v1.IngressClass",
            "IngressClass",
            "ingressclasses",
            "ingressclass",
        ))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::INGRESS,
        validate: routing::validate_ingress,
        warnings: object_warnings::of_ingress,
        status_warnings: object_warnings::of_balancers,
        short_names: &["ing"],
        ..with_generation(with_status(namespaced(
            "networking.k8s.io",
            "networking.v1.Ingress",
            "Ingress",
            "ingresses",
            "ingress",
        )))
    },
    BuiltIn {
        columns: tables::IP_ADDRESS,
        short_names: &["ip"],
        metadata: MetadataRules { name: |name, _| rule_checks::address_problems(name), ..MetadataRules::RECHECKED },
        ..kind("networking.k8s.io", "networking.v1.IPAddress", "IPAddress", "ipaddresses", "ipaddress")
    },
    BuiltIn {
        status_metadata: StatusMetadata::Reset,
        columns: tables::SERVICE_CIDR,
        validate: routing::validate_service_cidr,
        ..with_status(kind(
            "networking.k8s.io",
            "networking.v1.ServiceCIDR",
            "ServiceCIDR",
            "servicecidrs",
            "servicecidr",
        ))
    },
    BuiltIn {
        columns: tables::NETWORK_POLICY,
        validate: routing::validate_network_policy,
        warnings: object_warnings::of_network_policy,
        // kube-apiserver counts lists that become empty
        generation: false,
        prepare: track_generation,
        short_names: &["netpol"],
        default: routing::default_network_policy,
        ..with_generation(namespaced(
            "networking.k8s.io",
            "networking.v1.NetworkPolicy",
            "NetworkPolicy",
            "networkpolicies",
            "networkpolicy",
        ))
    },
    BuiltIn {
        metadata: MetadataRules { standard_finalizers: false, ..MetadataRules::RECHECKED },
        columns: tables::RUNTIME_CLASS,
        validate: runtime_classes::validate,
        warnings: object_warnings::of_runtime_class,
        unconditional_update: false,
        ..kind("node.k8s.io", "node.v1.RuntimeClass", "RuntimeClass", "runtimeclasses", "runtimeclass")
    },
    BuiltIn {
        columns: tables::DISRUPTION_BUDGET,
        metadata: MetadataRules {
            name: |_, _| vec![],
            on_create: OnCreate::Last,
            on_update: &[],
            ..MetadataRules::CUSTOM
        },
        validate: routing::validate_budget,
        validate_status: routing::validate_conditions,
        unconditional_update: false,
        short_names: &["pdb"],
        ..with_generation(with_status(namespaced(
            "policy",
            "policy.v1.PodDisruptionBudget",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            "poddisruptionbudget",
        )))
    },
    BuiltIn {
        metadata: MetadataRules { name: declared_name, ..MetadataRules::BUILT_IN },
        validate: devices::validate_class,
        ..returned(with_generation(kind(
            "resource.k8s.io",
            "resource.v1.DeviceClass",
            "DeviceClass",
            "deviceclasses",
            "deviceclass",
        )))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        status_metadata: StatusMetadata::Reset,
        columns: tables::RESOURCE_CLAIM,
        status_tables: false,
        default: devices::default_resource_claim,
        validate: devices::validate_claim,
        prepare_status: devices::keep_allocated,
        validate_status: devices::validate_status,
        hooks: Hooks::ResourceClaim,
        ..returned(with_status(namespaced(
            "resource.k8s.io",
            "resource.v1.ResourceClaim",
            "ResourceClaim",
            "resourceclaims",
            "resourceclaim",
        )))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        default: devices::default_resource_claim,
        validate: devices::validate_claim_template,
        hooks: Hooks::ResourceClaim,
        ..returned(namespaced(
            "resource.k8s.io",
            "resource.v1.ResourceClaimTemplate",
            "ResourceClaimTemplate",
            "resourceclaimtemplates",
            "resourceclaimtemplate",
        ))
    },
    BuiltIn {
        columns: tables::RESOURCE_SLICE,
        validate: devices::validate_slice,
        default: devices::default_slice,
        prepare: devices::prepare_slice,
        counts_gated: true,
        warnings: devices::slice_warnings,
        labels: Labels::OfVersion,
        selectable: &[
            ("spec.nodeName", &["spec.nodeName"]),
            ("spec.driver", &["spec.driver"]),
            ("spec.pool.name", &["spec.pool.name"]),
        ],
        ..returned(with_generation(kind(
            "resource.k8s.io",
            "resource.v1.ResourceSlice",
            "ResourceSlice",
            "resourceslices",
            "resourceslice",
        )))
    },
    BuiltIn {
        status_metadata: StatusMetadata::Reset,
        columns: tables::TAINT_RULE,
        since: Release::V1_37,
        status_tables: false,
        validate: devices::validate_taint_rule,
        validate_status: routing::validate_conditions,
        unconditional_update: false,
        default: devices::default_taint_rule,
        prepare: devices::prepare_taint_rule,
        ..with_generation(with_status(kind(
            "resource.k8s.io",
            "resource.v1.DeviceTaintRule",
            "DeviceTaintRule",
            "devicetaintrules",
            "devicetaintrule",
        )))
    },
    BuiltIn {
        columns: tables::PRIORITY_CLASS,
        validate: routing::validate_priority_class,
        short_names: &["pc"],
        prepare: routing::prepare_priority_class,
        permanent: &[("system-cluster-critical", SYSTEM_PRIORITY), ("system-node-critical", SYSTEM_PRIORITY)],
        ..kind("scheduling.k8s.io", "scheduling.v1.PriorityClass", "PriorityClass", "priorityclasses", "priorityclass")
    },
    BuiltIn {
        columns: tables::CSI_DRIVER,
        prepare: |driver, old| {
            // a new driver has no generation
            if old.is_some_and(|old| !is_same("storage.v1.CSIDriver", driver, old)) {
                track_generation(driver, old);
            }
        },
        validate: storage_kinds::validate_driver,
        warnings: volumes::driver_warnings,
        unconditional_update: false,
        ..returned(kind("storage.k8s.io", "storage.v1.CSIDriver", "CSIDriver", "csidrivers", "csidriver"))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        status_metadata: StatusMetadata::Reset,
        columns: tables::CSI_NODE,
        status_since: Release::V1_37,
        validate: storage_kinds::validate_node,
        unconditional_update: false,
        ..returned(with_status(kind("storage.k8s.io", "storage.v1.CSINode", "CSINode", "csinodes", "csinode")))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: columns::PLAIN,
        validate: storage_kinds::validate_capacity,
        warnings: object_warnings::of_capacity,
        unconditional_update: false,
        ..namespaced(
            "storage.k8s.io",
            "storage.v1.CSIStorageCapacity",
            "CSIStorageCapacity",
            "csistoragecapacities",
            "csistoragecapacity",
        )
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::STORAGE_CLASS,
        validate: storage_kinds::validate_class,
        warnings: object_warnings::of_class,
        short_names: &["sc"],
        ..returned(kind("storage.k8s.io", "storage.v1.StorageClass", "StorageClass", "storageclasses", "storageclass"))
    },
    BuiltIn {
        metadata: MetadataRules { on_status: &[OnUpdate::Object, OnUpdate::Change], ..MetadataRules::RECHECKED },
        status_metadata: StatusMetadata::Reset,
        columns: tables::ATTACHMENT,
        validate: storage_kinds::validate_attachment,
        unconditional_update: false,
        ..returned(with_status(kind(
            "storage.k8s.io",
            "storage.v1.VolumeAttachment",
            "VolumeAttachment",
            "volumeattachments",
            "volumeattachment",
        )))
    },
    BuiltIn {
        metadata: MetadataRules::RECHECKED,
        columns: tables::ATTRIBUTES_CLASS_ITSELF,
        validate: storage_kinds::validate_attributes,
        deletion: RETURNED,
        short_names: &["vac"],
        ..kind(
            "storage.k8s.io",
            "storage.v1.VolumeAttributesClass",
            "VolumeAttributesClass",
            "volumeattributesclasses",
            "volumeattributesclass",
        )
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The resources of kube-apiserver, by `cargo xtask kinds`.
    const DISCOVERY: &str = include_str!("kinds.txt");

    #[test]
    fn rows_are_as_discovery_lists_them() {
        for row in CATALOGUE {
            let version = crate::group_version(row.group, row.version);
            let scope = if row.namespaced { "namespaced" } else { "cluster" };
            let mut want = format!("{version} {} {} {} {scope}", row.plural, row.kind, row.singular);
            for (name, values) in [("short", row.short_names), ("categories", row.categories)] {
                if !values.is_empty() {
                    want += &format!(" {name}={}", values.join(","));
                }
            }
            match (row.review, row.computed) {
                (Some(_), _) => want += " verbs=create",
                (_, Some(_)) => want += " verbs=get,list",
                _ => {}
            }
            assert!(DISCOVERY.lines().any(|line| line == want), "{want}");
        }
    }

    #[test]
    fn protobuf_forms_are_in_the_table() {
        for row in CATALOGUE {
            assert_eq!(row.structure().name, row.kind);
            assert_eq!(row.zero().get("status").is_some(), row.status, "{}", row.kind);
        }
    }
}
