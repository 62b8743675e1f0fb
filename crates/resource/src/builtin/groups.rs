//! The groups of built-in kinds, and the priorities that their APIServices declare.

use super::{DEFINITION_GROUP, FLOW_GROUP, MIGRATION_GROUP, REGISTRATION_GROUP, foreign, kinds};

/// Whether a group is one of built-in kinds.
pub fn is_built_in_group(group: &str) -> bool {
    group == MIGRATION_GROUP || kinds().any(|built_in| built_in.group == group)
}

/// Whether a group is kube-apiserver's own: no custom resource is served in it.
pub fn is_reserved_group(group: &str) -> bool {
    is_built_in_group(group) || foreign::is_group(group)
}

/// `groupPriorityMinimum`: groups of higher priority come first in discovery.
pub fn group_priority(group: &str) -> u32 {
    match group {
        // no APIService says so: this group is there before them
        REGISTRATION_GROUP => 20_001,
        "" => 18_000,
        "extensions" => 17_900,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "apps" => 17_800,
        "autoscaling" => 17_500,
        "batch" => 17_400,
        "certificates.k8s.io" => 17_300,
        "networking.k8s.io" => 17_200,
        "policy" => 17_100,
        "rbac.authorization.k8s.io" => 17_000,
        "storage.k8s.io" => 16_800,
        "apiextensions.k8s.io" | "admissionregistration.k8s.io" => 16_700,
        "scheduling.k8s.io" => 16_600,
        "coordination.k8s.io" => 16_500,
        "node.k8s.io" => 16_300,
        "discovery.k8s.io" | "resource.k8s.io" => 16_200,
        FLOW_GROUP => 16_100,
        "internal.apiserver.k8s.io" => 16_000,
        MIGRATION_GROUP => 15_800,
        "lifecycle.k8s.io" => 15_700,
        _ => 1_000,
    }
}

/// `versionPriority` of a version in its group: the highest is preferred.
pub fn version_priority(group: &str, version: &str) -> i64 {
    match (group, version) {
        ("" | "extensions" | "lifecycle.k8s.io", _) => 1,
        (FLOW_GROUP, _) | ("resource.k8s.io", "v1") => 21,
        ("autoscaling", "v2") => 30,
        ("resource.k8s.io", "v1beta2") => 15,
        ("resource.k8s.io", "v1alpha3") => 1,
        ("coordination.k8s.io", "v1beta1") => 13,
        ("scheduling.k8s.io", "v1alpha3") => 3,
        ("resource.k8s.io" | "scheduling.k8s.io" | "certificates.k8s.io", "v1beta1")
        | ("internal.apiserver.k8s.io" | "admissionregistration.k8s.io", "v1alpha1") => 9,
        (MIGRATION_GROUP, "v1beta1") => 9,
        (MIGRATION_GROUP, _) => 15,
        (group, _) if !is_built_in_group(group) => 100,
        (_, "v1") => 15,
        (DEFINITION_GROUP, _) => 9,
        _ => 12,
    }
}
