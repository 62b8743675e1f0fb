//! Errors of the protobuf decoder, in the words of kube-apiserver's.

/// Why bytes could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The input is empty.
    #[error("empty data")]
    Empty,
    /// The bytes do not begin with [`super::MAGIC`].
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    MissingPrefix,
    /// A message is not well-formed, or nests too deeply.
    #[error("proto: illegal wireType")]
    Malformed,
    /// The envelope names a kind whose protobuf message this program does not know.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\"")]
    UnknownKind {
        /// The group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}
