//! Ingresses, NetworkPolicies, ServiceCIDRs and IPAddresses.

pub mod routing;

use crate::{object_warnings, rule_checks};
use resource::builtin::{Behaviour, Part};

const NONE: Behaviour = Behaviour::NONE;

pub static KINDS: &[Behaviour] = &[
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
];
