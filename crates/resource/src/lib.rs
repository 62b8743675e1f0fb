//! The model of a served resource, shared by custom resources and built-in kinds.
//!
//! Invariants: this crate handles the bodies of requests, but neither users nor HTTP. A [`Resource`] is immutable;
//! a change of its CRD creates a new one and retires the old, which ends its watches. Programs are compiled on
//! first use and live as long as a version with that schema.

mod body;
pub mod builtin;
mod codec;
mod conversion;
mod definition;
pub mod limits;
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
pub mod strategy;
mod unreadable;
mod version;

pub use body::{Document, Format, Strict, type_meta_error, type_text, typed_version};
pub use codec::{Codec, Patched, TypeMeta, Unpatched, timestamps};
pub use conversion::{Conversion, ReviewType};
pub use definition::{Outline, from_definition, from_stored, with_empty_schemas};
pub use model::Resource;

pub use registry::{Defined, Registry, Snapshot};
pub use row::from_row;
pub use rules::Subresource;
pub use scheme::{group_version, unknown_kind};
pub use serving::{Serving, no_such_method};
pub use strategy::Strategy;
pub use version::{Column, ScalePaths, Version};
