//! The model of a served resource, shared by custom resources and built-in kinds.
//!
//! Invariants: this crate handles the bodies of requests, but neither users nor HTTP. A [`Resource`] is immutable;
//! a change of its CRD creates a new one and retires the old, which ends its watches. Programs are compiled on
//! first use and live as long as a version with that schema.

mod api_services;
mod body;
pub mod builtin;
mod codec;
mod conversion;
mod definition;
pub mod limits;
mod manifest;
mod model;
mod names;
mod program;
mod read;
mod registry;
mod row;
pub mod rules;
mod scheme;
mod serving;
mod shared;
mod storage;
pub mod strategy;
mod third_party;
mod unreadable;
mod version;

pub use api_services::{built_in_api_services, custom_api_services};
pub use body::{Document, Format, Strict, type_text};
pub use builtin::RuntimeConfig;
pub use codec::{Codec, Patched, TypeMeta, Unpatched, timestamps};
pub use conversion::Conversion;
pub use definition::{Outline, from_definition, with_empty_schemas};
pub use manifest::{ManifestKinds, ManifestObject, manifest_objects};
pub use model::Resource;

pub use registry::{Registry, Snapshot};
pub use row::from_row;
pub use rules::Subresource;
pub use scheme::{group_version, unknown_kind};
pub use serving::{Serving, no_such_method};
pub use storage::{CustomForm, upstream_key, upstream_path, upstream_storage};
pub use strategy::Strategy;
pub use third_party::{defined, defined_by, registrations};
pub use version::{Column, ScalePaths, Version};
