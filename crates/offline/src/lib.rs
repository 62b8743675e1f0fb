//! The verdicts of the API server on files, without a server: `pintle validate` and its relatives.
//!
//! Start with [`engine::Engine`]: a whole server in this process, without connections and without a disk. Everything else
//! reads files for it, or prints what it says.

pub mod commands;
pub mod engine;
mod error;
pub mod findings;
mod limits;
pub mod suites;
pub mod trial;
pub mod validate;

pub use error::Error;
