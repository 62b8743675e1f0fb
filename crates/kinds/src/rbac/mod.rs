//! Roles and their bindings.

pub mod roles;

use crate::names::path_segment;
use resource::builtin::{Behaviour, Hooks};

pub static KINDS: &[Behaviour] = &[
    Behaviour::of("rbac.authorization.k8s.io/ClusterRoleBinding")
        .validate(|at| roles::validate_binding(at, roles::RoleScope::Cluster))
        .name(path_segment)
        .hooks(Hooks::RoleBinding),
    Behaviour::of("rbac.authorization.k8s.io/ClusterRole")
        .validate(roles::validate_cluster_role)
        .name(path_segment)
        .hooks(Hooks::Role),
    Behaviour::of("rbac.authorization.k8s.io/RoleBinding")
        .validate(|at| roles::validate_binding(at, roles::RoleScope::Namespace))
        .name(path_segment)
        .hooks(Hooks::RoleBinding),
    Behaviour::of("rbac.authorization.k8s.io/Role")
        .validate(|at| roles::validate_rules(at, roles::RoleScope::Namespace))
        .name(path_segment)
        .hooks(Hooks::Role),
];
