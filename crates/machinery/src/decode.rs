//! The errors of all decoders as one type.

use crate::cbor::CborError;
use crate::protobuf::ProtobufError;
use crate::value::JsonError;
use crate::yaml::YamlError;

/// Why bytes in one of the encodings could not be decoded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The bytes are not YAML.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// The bytes are not CBOR.
    #[error(transparent)]
    Cbor(#[from] CborError),
    /// The bytes are not protobuf of a known kind.
    #[error(transparent)]
    Protobuf(#[from] ProtobufError),
}
