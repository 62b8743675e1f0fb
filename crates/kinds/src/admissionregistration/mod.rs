//! Webhooks and policies of admission.

pub mod admission;
pub mod expressions;
pub mod mutations;
pub mod policies;
pub mod webhooks;

use resource::builtin::{Behaviour, Part};

const MUTATING_BINDING: Behaviour =
    Behaviour::of("admissionregistration.k8s.io/MutatingAdmissionPolicyBinding").validate(mutations::validate_binding);

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("admissionregistration.k8s.io/MutatingAdmissionPolicy").validate(mutations::validate_policy),
    MUTATING_BINDING,
    MUTATING_BINDING
        .like("admissionregistration.k8s.io/v1alpha1/MutatingAdmissionPolicyBinding")
        .default(mutations::default_alpha_binding),
    Behaviour::of("admissionregistration.k8s.io/MutatingWebhookConfiguration")
        .validate(webhooks::validate)
        .warnings(webhooks::warnings),
    Behaviour::of("admissionregistration.k8s.io/ValidatingAdmissionPolicy")
        .prepare(policies::prepare_policy)
        .validate(policies::validate_policy)
        .status(Part::PLAIN.validate(policies::validate_status)),
    Behaviour::of("admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding").validate(policies::validate_binding),
    Behaviour::of("admissionregistration.k8s.io/ValidatingWebhookConfiguration")
        .validate(webhooks::validate)
        .warnings(webhooks::warnings),
];
