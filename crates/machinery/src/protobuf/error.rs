//! Errors of the protobuf decoder.

/// Why bytes could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The input is empty.
    #[error("there is no protobuf message")]
    Empty,
    /// The bytes do not begin with [`super::MAGIC`].
    #[error("the prefix of a Kubernetes protobuf message is missing")]
    MissingPrefix,
    /// A message is not well-formed, or nests too deeply.
    #[error("the protobuf message is not well-formed")]
    Malformed,
    /// The envelope names a kind whose protobuf message this program does not know.
    #[error("there is no protobuf message for the kind {kind:?} of {api_version:?}")]
    UnknownKind {
        /// The group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}
