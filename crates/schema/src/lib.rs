//! Structural schemas compiled to programs: prune, default, validate, apply; and the CustomResourceDefinition rules.
//!
//! Invariants: synchronous and deterministic, no I/O, no clock, no randomness, no logging. A [`Schema`] is compiled
//! once for a version of a definition and then only run; cloning it is cheap. Values of any shape return a value or
//! with errors, never with a panic. Start reading at `program.rs` and `compile.rs`, then `prune.rs`, `default.rs`,
//! `validate/`.

pub mod apply;
pub mod at;
mod coerce;
mod compile;
mod default;
pub mod definition;
pub mod diff;
mod embedded;
pub mod format;
mod limits;
mod lists;
pub mod metadata;
mod openapi;
mod path;
mod program;
mod prune;
mod ratchet;
mod report;
mod rules;
pub mod shape;
mod structural;
mod validate;

pub use default::{DEFAULTED_BYTES_MAX, DefaultsTooLarge};
pub use metadata::Malformed;
pub use program::{CompileOptions, ScalePaths, Schema};
pub use validate::{Outcome, Prior, type_meta_errors};
