//! The kinds of access control: reviews, roles, certificates, admission, flow control.

use super::super::behaviour::{Behaviour, Further, Hooks, Part, Review, StoredAs};
use super::super::{certificates, flow, mutations, pod_certificates, policies, rbac, reviews, webhooks};

const NONE: Behaviour = Behaviour::NONE;

const MUTATING_BINDING: Behaviour = Behaviour {
    of: "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding",
    validate: mutations::validate_binding,
    ..NONE
};

pub static KINDS: &[Behaviour] = &[
    Behaviour { of: "authentication.k8s.io/SelfSubjectReview", review: Some(Review::SelfSubject), ..NONE },
    Behaviour { of: "authentication.k8s.io/TokenReview", review: Some(Review::Token), ..NONE },
    Behaviour {
        of: "authorization.k8s.io/LocalSubjectAccessReview",
        validate: reviews::validate_local,
        review: Some(Review::Access),
        ..NONE
    },
    Behaviour {
        of: "authorization.k8s.io/SelfSubjectAccessReview",
        validate: |at| reviews::validate(at, reviews::Subject::Requester),
        review: Some(Review::SelfAccess),
        ..NONE
    },
    Behaviour { of: "authorization.k8s.io/SelfSubjectRulesReview", review: Some(Review::SelfRules), ..NONE },
    Behaviour {
        of: "authorization.k8s.io/SubjectAccessReview",
        validate: |at| reviews::validate(at, reviews::Subject::Named),
        review: Some(Review::Access),
        ..NONE
    },
    Behaviour {
        of: "certificates.k8s.io/CertificateSigningRequest",
        prepare: certificates::prepare,
        validate: certificates::validate,
        name: super::any_name,
        status: Part {
            prepare: certificates::prepare_status,
            validate: certificates::validate_status,
            reset: Some(certificates::status_resets),
            ..Part::PLAIN
        },
        parts: &[("approval", certificates::APPROVAL)],
        hooks: Hooks::CertificateRequest,
        further: Further { resets: Some(certificates::resets), ..Further::NONE },
        ..NONE
    },
    Behaviour {
        of: "certificates.k8s.io/ClusterTrustBundle",
        validate: certificates::validate_bundle,
        name: super::any_name,
        ..NONE
    },
    Behaviour {
        of: "certificates.k8s.io/PodCertificateRequest",
        validate: pod_certificates::validate,
        status: Part { validate: pod_certificates::validate_status, ..Part::PLAIN },
        conversion: Some(StoredAs::new(pod_certificates::to_stored, pod_certificates::to_shown)),
        hooks: Hooks::PodCertificateRequest,
        ..NONE
    },
    Behaviour {
        of: "rbac.authorization.k8s.io/ClusterRoleBinding",
        validate: |at| rbac::validate_binding(at, rbac::RoleScope::Cluster),
        name: super::path_segment,
        hooks: Hooks::RoleBinding,
        ..NONE
    },
    Behaviour {
        of: "rbac.authorization.k8s.io/ClusterRole",
        validate: rbac::validate_cluster_role,
        name: super::path_segment,
        hooks: Hooks::Role,
        ..NONE
    },
    Behaviour {
        of: "rbac.authorization.k8s.io/RoleBinding",
        validate: |at| rbac::validate_binding(at, rbac::RoleScope::Namespace),
        name: super::path_segment,
        hooks: Hooks::RoleBinding,
        ..NONE
    },
    Behaviour {
        of: "rbac.authorization.k8s.io/Role",
        validate: |at| rbac::validate_rules(at, rbac::RoleScope::Namespace),
        name: super::path_segment,
        hooks: Hooks::Role,
        ..NONE
    },
    Behaviour {
        of: "admissionregistration.k8s.io/MutatingAdmissionPolicy",
        validate: mutations::validate_policy,
        ..NONE
    },
    MUTATING_BINDING,
    Behaviour {
        of: "admissionregistration.k8s.io/v1alpha1/MutatingAdmissionPolicyBinding",
        default: mutations::default_alpha_binding,
        ..MUTATING_BINDING
    },
    Behaviour {
        of: "admissionregistration.k8s.io/MutatingWebhookConfiguration",
        validate: webhooks::validate,
        warnings: webhooks::warnings,
        ..NONE
    },
    Behaviour {
        of: "admissionregistration.k8s.io/ValidatingAdmissionPolicy",
        prepare: policies::prepare_policy,
        validate: policies::validate_policy,
        status: Part { validate: policies::validate_status, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding",
        validate: policies::validate_binding,
        ..NONE
    },
    Behaviour {
        of: "admissionregistration.k8s.io/ValidatingWebhookConfiguration",
        validate: webhooks::validate,
        warnings: webhooks::warnings,
        ..NONE
    },
    Behaviour {
        of: "flowcontrol.apiserver.k8s.io/FlowSchema",
        validate: flow::validate_schema,
        status: Part { validate: flow::validate_states, ..Part::PLAIN },
        ..NONE
    },
    Behaviour {
        of: "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration",
        validate: flow::validate_level,
        status: Part { validate: flow::validate_states, ..Part::PLAIN },
        ..NONE
    },
];
