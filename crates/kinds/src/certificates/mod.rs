//! Requests of certificates, and bundles of trusted ones.

pub mod pem;
pub mod pod_certificates;
pub mod pod_keys;
pub mod request_pem;
pub mod requests;

use crate::names::any_name;
use resource::builtin::{Behaviour, Further, Hooks, Part, StoredAs};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[
    Behaviour {
        of: "certificates.k8s.io/CertificateSigningRequest",
        prepare: requests::prepare,
        validate: requests::validate,
        name: any_name,
        status: Part {
            prepare: requests::prepare_status,
            validate: requests::validate_status,
            reset: Some(requests::status_resets),
            ..Part::PLAIN
        },
        parts: &[("approval", requests::APPROVAL)],
        hooks: Hooks::CertificateRequest,
        further: Further { resets: Some(requests::resets), ..Further::NONE },
        ..NONE
    },
    Behaviour {
        of: "certificates.k8s.io/ClusterTrustBundle",
        validate: requests::validate_bundle,
        name: any_name,
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
];
