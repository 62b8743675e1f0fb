//! Request bodies read as typed definitions.

use machinery::Value;

use super::beta;
use super::body::default;
use crate::shape::{self, DEFINITION, DEFINITION_BETA, TypeError};

/// The versions of the definition API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVersion {
    V1,
    V1Beta1,
}

/// A definition in the shape of its version, and the paths of fields that its type doesn't know.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    pub definition: Value,
    pub unknown: Vec<String>,
}

/// Reads a body as a definition in the form of `version`, with that version's defaults. An error's text is what follows
/// `… cannot be handled as a CustomResourceDefinition: ` in the response 400; which of several is reported depends on their order
/// in the document ([`shape::first_error`]).
///
/// What validation sees though no JSON of a definition shows it, such as empty lists, stays visible; [`to_stored`](super::to_stored) drops
/// it.
pub fn decode(body: &Value, version: ApiVersion) -> Result<Decoded, Vec<TypeError>> {
    let shape = match version {
        ApiVersion::V1 => &DEFINITION,
        ApiVersion::V1Beta1 => &DEFINITION_BETA,
    };
    let read = shape::read_request(body, shape);
    if !read.errors.is_empty() {
        return Err(match version {
            ApiVersion::V1 => read.errors,
            ApiVersion::V1Beta1 => read.errors.into_iter().map(|error| error.in_package("v1beta1")).collect(),
        });
    }
    let mut definition = read.value;
    // validation finds nothing in empty lists of names, and hidden fields have no owner
    for list in ["shortNames", "categories"] {
        if definition.at(&["spec", "names", list]).and_then(Value::as_array).is_some_and(<[Value]>::is_empty) {
            definition.remove_at(&["spec", "names", list]);
        }
    }
    match version {
        ApiVersion::V1 => default(&mut definition),
        ApiVersion::V1Beta1 => beta::default(&mut definition),
    }
    Ok(Decoded { definition, unknown: read.unknown })
}
