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
    /// The envelope is not well-formed.
    #[error(transparent)]
    Envelope(#[from] Flaw),
    /// The envelope names a kind, whose message is not well-formed.
    #[error("{flaw}")]
    Object {
        /// The group and version.
        api_version: String,
        /// The kind.
        kind: String,
        /// The error in it.
        flaw: Flaw,
    },
    /// The envelope names a kind whose protobuf message this program does not know.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\"")]
    UnknownKind {
        /// The group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

/// An error in the encoding of a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// It ends inside a field.
    #[error("unexpected EOF")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length that does not fit into memory.
    #[error("proto: negative length found during unmarshaling")]
    Length,
    /// A group ends that has not begun.
    #[error("proto: {message}: wiretype end group for non-group")]
    EndGroup {
        /// The Go type of the message.
        message: &'static str,
    },
    /// A field has no valid number.
    #[error("proto: {message}: illegal tag {number} (wire type {wire_type})")]
    Tag {
        /// The Go type of the message.
        message: &'static str,
        /// The number of the field.
        number: i32,
        /// The type of its encoding.
        wire_type: u8,
    },
    /// An unknown field has no valid encoding.
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    /// A field has the encoding of another type.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType {
        /// The name of the field in Go.
        field: String,
        /// The type of its encoding.
        wire_type: u8,
    },
    /// Messages nest too deeply, for which Go has no bound.
    #[error("proto: exceeded maximum recursion depth")]
    Depth,
}
