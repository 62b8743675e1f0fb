//! The errors of all decoders as one type.

use crate::cbor::CborError;
use crate::protobuf::ProtobufError;
use crate::value::JsonError;
use crate::yaml::YamlError;
use std::fmt;

/// Why bytes in one of the encodings could not be decoded.
#[derive(Clone, Debug, PartialEq)]
pub enum DecodeError {
    /// The bytes are not JSON.
    Json(JsonError),
    /// The bytes are not YAML.
    Yaml(YamlError),
    /// The bytes are not CBOR.
    Cbor(CborError),
    /// The bytes are not protobuf of a known kind.
    Protobuf(ProtobufError),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Json(error) => error.fmt(f),
            DecodeError::Yaml(error) => error.fmt(f),
            DecodeError::Cbor(error) => error.fmt(f),
            DecodeError::Protobuf(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}

macro_rules! from {
    ($($variant:ident($error:ty)),*) => {
        $(impl From<$error> for DecodeError {
            fn from(error: $error) -> DecodeError { DecodeError::$variant(error) }
        })*
    };
}
from!(Json(JsonError), Yaml(YamlError), Cbor(CborError), Protobuf(ProtobufError));
