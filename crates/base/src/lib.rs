//! The common basis of the rooms of the API server.
//!
//! `configuration`, `digest`, `limits`, `metrics` and `wording` import none of the others, `clock` hashes with `digest`, and tasks have
//! clocks; `deadline`, `notice`, `request`, `trace` and `webhook` import those.

pub mod clock;
pub mod configuration;
pub mod deadline;
pub mod digest;
pub mod limits;
pub mod metrics;
pub mod notice;
pub mod request;
pub mod task;
pub mod trace;
pub mod webhook;
pub mod wording;
