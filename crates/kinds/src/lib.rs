//! The built-in kinds, with one room for each API group. The tables in it have the facts of the kinds, the rules of their
//! types, and their columns; its functions are what data cannot express. The crates below know no kinds except
//! CustomResourceDefinitions: they get them as a [`CATALOGUE`].

mod admissionregistration;
mod api_services;
mod apiextensions;
mod apiregistration;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod batch;
mod catalogue;
mod cells;
mod certificates;
mod coordination;
pub mod core;
mod defined;
pub mod devices;
mod discovery;
mod etcd;
mod events;
mod extensions;
mod flowcontrol;
mod hiding;
mod internal;
pub mod ip;
mod lifecycle;
pub mod limits;
mod manifest;
mod meta;
mod names;
mod networking;
mod node;
mod object_warnings;
mod policy;
mod rbac;
mod rule_checks;
mod runtime_config;
mod scheduling;
mod stages;
mod storage;
mod storagemigration;

pub use admissionregistration::expressions::{MINOR, Scope, access_review_type, user_info_type};
pub use api_services::{built_in_api_services, custom_api_services};
pub use apiextensions::definition::{add_cleanup_finalizer, set_terminating};
pub use apiregistration::apiservices::{
    API_SERVICES, MANAGED, MANAGED_ALWAYS, MANAGED_AT_START, REGISTRATION_GROUP, SERVED_HERE,
};
pub use catalogue::CATALOGUE;
pub use cells::annotated_fields;
pub use coordination::leases::is_leases;
pub use core::namespaces::{NAMESPACE_FINALIZER, is_namespaces};
pub use defined::{defined, defined_by, registrations};
pub use etcd::{CustomForm, upstream_key, upstream_path, upstream_storage};
pub use extensions::third_party::{THIRD_PARTY_GROUP, THIRD_PARTY_RESOURCES};
pub use flowcontrol::flow::FLOW_GROUP;
pub use manifest::{ManifestKinds, ManifestObject, manifest_objects};
pub use runtime_config::{RuntimeConfig, served};
pub use storagemigration::migrations::{MIGRATION_GROUP, MIGRATIONS};
