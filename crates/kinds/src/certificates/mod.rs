//! Requests of certificates, and bundles of trusted ones.

pub mod pem;
pub mod pod_certificates;
pub mod pod_keys;
pub mod request_pem;
pub mod requests;

use crate::names::any_name;
use resource::builtin::{Behaviour, Hooks, Part, StoredAs};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("certificates.k8s.io/CertificateSigningRequest")
        .prepare(requests::prepare)
        .validate(requests::validate)
        .name(any_name)
        .status(
            Part::PLAIN
                .prepare(requests::prepare_status)
                .validate(requests::validate_status)
                .reset(requests::status_resets),
        )
        .parts(&[("approval", requests::APPROVAL)])
        .hooks(Hooks::CertificateRequest)
        .resets(requests::resets),
    Behaviour::of("certificates.k8s.io/ClusterTrustBundle").validate(requests::validate_bundle).name(any_name),
    Behaviour::of("certificates.k8s.io/PodCertificateRequest")
        .validate(pod_certificates::validate)
        .status(Part::PLAIN.validate(pod_certificates::validate_status))
        .conversion(StoredAs::new(pod_certificates::to_stored, pod_certificates::to_shown))
        .hooks(Hooks::PodCertificateRequest),
];
