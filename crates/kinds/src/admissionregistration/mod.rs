//! Webhooks and policies of admission.

pub mod admission;
pub mod expressions;
pub mod mutations;
pub mod policies;
pub mod webhooks;

use resource::builtin::{Behaviour, Part};

const NONE: Behaviour = Behaviour::NONE;

const MUTATING_BINDING: Behaviour = Behaviour {
    of: "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding",
    validate: mutations::validate_binding,
    ..NONE
};

pub static KINDS: &[Behaviour] = &[
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
];
