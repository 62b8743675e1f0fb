//! The foundation of every room of the API server.
//!
//! Modules import only from earlier lines: `configuration`, `digest`, `limits`, `metrics`, `wording`; then `clock`; then `task`; then
//! `deadline`, `notice`, `request`, `trace` and `webhook`.

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
