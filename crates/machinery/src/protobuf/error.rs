//! Errors of the protobuf decoder.

use std::fmt;

/// Why bytes could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The input is empty.
    Empty,
    /// The bytes do not begin with [`super::MAGIC`].
    MissingPrefix,
    /// A message is not well-formed, or nests too deeply.
    Malformed,
    /// The envelope names a kind whose protobuf message this program does not know.
    UnknownKind {
        /// The group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

impl fmt::Display for ProtobufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtobufError::Empty => f.write_str("there is no protobuf message"),
            ProtobufError::MissingPrefix => f.write_str("the prefix of a Kubernetes protobuf message is missing"),
            ProtobufError::Malformed => f.write_str("the protobuf message is not well-formed"),
            ProtobufError::UnknownKind { api_version, kind } => {
                write!(f, "there is no protobuf message for the kind {kind:?} of {api_version:?}")
            }
        }
    }
}

impl std::error::Error for ProtobufError {}
