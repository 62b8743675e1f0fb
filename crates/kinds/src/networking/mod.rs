//! Ingresses, NetworkPolicies, ServiceCIDRs and IPAddresses.

pub mod routing;

use crate::{object_warnings, rule_checks};
use resource::builtin::{Behaviour, Part};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("networking.k8s.io/Ingress")
        .validate(routing::validate_ingress)
        .warnings(object_warnings::of_ingress)
        .status(Part::PLAIN.warnings(object_warnings::of_balancers)),
    Behaviour::of("networking.k8s.io/IPAddress").name(|name, _| rule_checks::address_problems(name)),
    Behaviour::of("networking.k8s.io/NetworkPolicy")
        .default(routing::default_network_policy)
        .validate(routing::validate_network_policy)
        .warnings(object_warnings::of_network_policy),
    Behaviour::of("networking.k8s.io/ServiceCIDR").validate(routing::validate_service_cidr),
];
