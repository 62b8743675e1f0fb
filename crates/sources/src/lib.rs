//! Sources of objects: files, directories, commits, archives, captures of clusters, and a server.
//!
//! Start with [`Inputs::of`], which finds the texts that an argument names; [`Input::documents`] reads the objects in them.

mod archive;
mod archived;
mod capture;
pub mod cluster;
mod document;
mod error;
mod etcd;
mod inputs;
mod layouts;
mod limits;
mod live;
mod packed;
mod plan;
mod problems;
mod split;
mod spool;

pub use archived::{Secrets, write};
pub use capture::{Capture, Captured, CapturedLog, LogKey, Run};
pub use document::{Document, Documents, Object, RepeatedKey, RepeatedPlace, TextPlace, Undecodable};
pub use error::{ClusterError, Error, GitError};
pub use inputs::{Input, InputPlace, Inputs, Neighbours, Patterns, Revision, manifests};
pub use limits::DOCUMENT_BYTES_MAX;
pub use packed::PackedObject;
pub use plan::{INFERRED, Known, KnownKind, Origin, Plan, Planned, plan};
pub use problems::Problems;
pub use spool::{Part, Writer};
