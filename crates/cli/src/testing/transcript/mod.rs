//! `pintle record` and `pintle replay`: transcripts of the requests and responses of a workspace.

mod file;
mod names;
mod normal;
mod protobuf;
mod record;
mod replay;
mod saving;

pub use record::{RecordTask, run as record};
pub use replay::{ReplayTask, run as replay};
