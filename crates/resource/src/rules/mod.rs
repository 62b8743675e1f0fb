//! What the row of a kind may say about its metadata, its deletion and its endpoints.

mod deletion;
pub mod metadata;

pub use deletion::{Deletion, Dependents, Preconditions, Propagation, is_deleting, set_deletion_time};
pub use metadata::{MetadataRules, OnCreate, OnUpdate, label_name};

/// The part of an object that a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    None,
    Status,
    Scale,
    /// `namespaces/finalize`.
    Finalize,
    /// `serviceaccounts/token`.
    Token,
}

impl Subresource {
    pub fn as_str(self) -> &'static str {
        match self {
            Subresource::None => "",
            Subresource::Status => "status",
            Subresource::Scale => "scale",
            Subresource::Finalize => "finalize",
            Subresource::Token => "token",
        }
    }
}
