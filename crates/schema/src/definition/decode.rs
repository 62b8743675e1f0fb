//! Reads request bodies as typed definitions.

use machinery::Value;

use super::beta;
use super::body::default;
use crate::shape::{self, Keys, Struct, TypeError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVersion {
    V1,
    V1Beta1,
}

impl ApiVersion {
    pub fn go_type(self) -> &'static str {
        match self {
            ApiVersion::V1 => "apiextensions.v1.CustomResourceDefinition",
            ApiVersion::V1Beta1 => "apiextensions.v1beta1.CustomResourceDefinition",
        }
    }

    /// The shape of definitions in the version.
    pub fn structure(self) -> &'static Struct {
        shape::named(self.go_type())
    }
}

/// Lists and maps that are dropped if they are empty.
const HIDDEN_IF_EMPTY: [&[&str]; 6] = [
    &["metadata", "annotations"],
    &["metadata", "finalizers"],
    &["metadata", "labels"],
    &["metadata", "ownerReferences"],
    &["spec", "names", "categories"],
    &["spec", "names", "shortNames"],
];

/// A definition in the shape of its version, and the paths of fields that its type does not have.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    pub definition: Value,
    pub unknown: Vec<String>,
}

/// Reads a body as a definition in the form of `version`, with that version's defaults. An error's text is what follows
/// `… cannot be handled as a CustomResourceDefinition: ` in the response 400; which of several is reported depends on
/// their order in the document ([`shape::first_error`]).
///
/// Keeps what validation sees although no encoded definition has it, such as empty lists;
/// [`to_stored`](super::to_stored) drops it.
pub fn decode(body: &Value, version: ApiVersion) -> Result<Decoded, Vec<TypeError>> {
    decode_as(body, version, Keys::Included)
}

/// As [`decode`], with or without the keys of maps in the paths of unknown fields.
pub fn decode_as(body: &Value, version: ApiVersion, keys: Keys) -> Result<Decoded, Vec<TypeError>> {
    let read = shape::read_request_as(body, version.structure(), keys);
    if !read.errors.is_empty() {
        return Err(match version {
            ApiVersion::V1 => read.errors,
            ApiVersion::V1Beta1 => read.errors.into_iter().map(|error| error.in_package("v1beta1")).collect(),
        });
    }
    let mut definition = read.value;
    // validation has nothing to find in them, and they must not get an owner, since responses do not have them
    for field in HIDDEN_IF_EMPTY {
        if definition.at(field).is_some_and(Value::is_empty_container) {
            definition.remove_at(field);
        }
    }
    match version {
        ApiVersion::V1 => default(&mut definition),
        ApiVersion::V1Beta1 => beta::default(&mut definition),
    }
    Ok(Decoded { definition, unknown: read.unknown })
}
