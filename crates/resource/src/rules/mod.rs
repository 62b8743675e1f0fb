//! Settings in the row of a kind for its metadata, its deletion and its endpoints.

mod deletion;
pub mod metadata;

pub use deletion::{
    Deletion, Dependents, Grace, Preconditions, Propagation, grace_seconds, is_deleting, set_deletion_time,
};
pub use metadata::{MetadataRules, OnCreate, OnUpdate, label_name};

/// The part of an object that a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    None,
    Status,
    Scale,
    /// A subresource from the row of the kind, by name.
    Own(&'static str),
}

impl Subresource {
    pub fn as_str(self) -> &'static str {
        match self {
            Subresource::None => "",
            Subresource::Status => "status",
            Subresource::Scale => "scale",
            Subresource::Own(name) => name,
        }
    }
}
