//! APIs that Kubernetes no longer serves, with what has replaced them.

/// API version, kinds (all if there are none), the release that removed them, and the successor if there is one.
const REMOVED: &[(&str, &[&str], &str, &str)] = &[
    (
        "admissionregistration.k8s.io/v1beta1",
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
        "1.22",
        "admissionregistration.k8s.io/v1",
    ),
    ("apiextensions.k8s.io/v1beta1", &[], "1.22", "apiextensions.k8s.io/v1"),
    ("apiregistration.k8s.io/v1beta1", &[], "1.22", "apiregistration.k8s.io/v1"),
    ("apps/v1beta1", &[], "1.16", "apps/v1"),
    ("apps/v1beta2", &[], "1.16", "apps/v1"),
    ("authentication.k8s.io/v1beta1", &["TokenReview"], "1.22", "authentication.k8s.io/v1"),
    ("authorization.k8s.io/v1beta1", &[], "1.22", "authorization.k8s.io/v1"),
    ("autoscaling/v2beta1", &[], "1.25", "autoscaling/v2"),
    ("autoscaling/v2beta2", &[], "1.26", "autoscaling/v2"),
    ("batch/v1beta1", &["CronJob"], "1.25", "batch/v1"),
    ("certificates.k8s.io/v1beta1", &["CertificateSigningRequest"], "1.22", "certificates.k8s.io/v1"),
    ("coordination.k8s.io/v1beta1", &["Lease"], "1.22", "coordination.k8s.io/v1"),
    ("discovery.k8s.io/v1beta1", &[], "1.25", "discovery.k8s.io/v1"),
    ("events.k8s.io/v1beta1", &[], "1.25", "events.k8s.io/v1"),
    ("extensions/v1beta1", &["DaemonSet", "Deployment", "ReplicaSet"], "1.16", "apps/v1"),
    ("extensions/v1beta1", &["NetworkPolicy"], "1.16", "networking.k8s.io/v1"),
    ("extensions/v1beta1", &["PodSecurityPolicy"], "1.16", ""),
    ("extensions/v1beta1", &["Ingress"], "1.22", "networking.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", &[], "1.26", "flowcontrol.apiserver.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io/v1beta2", &[], "1.29", "flowcontrol.apiserver.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io/v1beta3", &[], "1.32", "flowcontrol.apiserver.k8s.io/v1"),
    ("networking.k8s.io/v1beta1", &["Ingress", "IngressClass"], "1.22", "networking.k8s.io/v1"),
    ("node.k8s.io/v1beta1", &[], "1.25", "node.k8s.io/v1"),
    ("policy/v1beta1", &["PodDisruptionBudget"], "1.25", "policy/v1"),
    ("policy/v1beta1", &["PodSecurityPolicy"], "1.25", ""),
    ("rbac.authorization.k8s.io/v1alpha1", &[], "1.23", "rbac.authorization.k8s.io/v1"),
    ("rbac.authorization.k8s.io/v1beta1", &[], "1.22", "rbac.authorization.k8s.io/v1"),
    ("scheduling.k8s.io/v1beta1", &["PriorityClass"], "1.22", "scheduling.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", &["CSIStorageCapacity"], "1.27", "storage.k8s.io/v1"),
    (
        "storage.k8s.io/v1beta1",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
        "1.22",
        "storage.k8s.io/v1",
    ),
];

/// What to say about an API that has been removed.
pub fn hint(api_version: &str, kind: &str) -> Option<String> {
    let is_it = |(version, kinds, ..): &&(&str, &[&str], &str, &str)| {
        *version == api_version && (kinds.is_empty() || kinds.contains(&kind))
    };
    let (_, _, release, successor) = REMOVED.iter().find(is_it)?;
    Some(match *successor {
        "" => format!("Kubernetes {release} removed it without a successor"),
        successor => format!("Kubernetes {release} removed it; use {successor}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Options};

    #[tokio::test]
    async fn successors_are_served_and_removed_versions_are_not() {
        let engine = Engine::start(&Options::default()).await.unwrap();
        for (version, kinds, _, successor) in REMOVED {
            for kind in *kinds {
                assert!(engine.mapping(version, kind).is_none(), "{version} {kind}");
                assert!(successor.is_empty() || engine.mapping(successor, kind).is_some(), "{successor} {kind}");
            }
        }
        assert_eq!(
            hint("policy/v1beta1", "PodSecurityPolicy").as_deref(),
            Some("Kubernetes 1.25 removed it without a successor")
        );
        assert_eq!(hint("apps/v1beta1", "Deployment").as_deref(), Some("Kubernetes 1.16 removed it; use apps/v1"));
        assert_eq!(hint("apps/v1", "Deployment"), None);
    }
}
