//! How the objects of an endpoint are decoded, normalized, compared and named in errors: one codec for custom
//! resources, one for the table of built-in kinds, one for Scale.

mod builtin;
mod custom;
mod scale;
pub mod timestamps;

use std::borrow::Cow;
use std::sync::Arc;

use base::request::FieldValidation;
use base::wording;
use machinery::patch::RawKind;
use machinery::patch::strategic_merge::PatchMeta;
use machinery::protobuf::ProtobufError;
use machinery::value::{Decoded, JsonProblem, quote};
use machinery::{DecodeError, FieldError, Result, Status, Text, Value};
use objects::Key;
use schema::apply::ConvertError;
use timestamps::Uncoerced;

use super::body::{Document, Format, Strict, excerpt};
use super::model::Resource;
use super::registry::Registry;
use super::version::Version;

pub use builtin::BuiltInCodec;
pub use custom::CustomCodec;
pub use scale::{SCALE_VERSION, ScaleCodec, set_type as set_scale_type};

/// A resource in one of its versions.
#[derive(Clone)]
pub struct Endpoint {
    pub resource: Arc<Resource>,
    pub version: Arc<Version>,
}

/// The form that the result of a patch has when kube-apiserver decodes it.
#[derive(Clone, Copy)]
pub enum Patched<'a> {
    /// Maps, which are converted to Go structs. A strategic merge patch has this result.
    Maps,
    /// JSON text. A JSON patch or a merge patch has this result.
    Text(&'a dyn Fn() -> String),
}

/// Why the result of a patch is not an object of the endpoint.
pub enum Unpatched {
    /// Reported as an error of the patch, with this message.
    Invalid(String),
    Failed(Status),
}

impl From<String> for Unpatched {
    fn from(why: String) -> Unpatched {
        Unpatched::Invalid(why)
    }
}

/// Receives the warnings of a decode.
pub type Warn<'a> = &'a (dyn Fn(String) + Sync);

/// Decodes and normalizes the objects of an endpoint.
pub trait Codec: Send + Sync {
    /// `group/version` of the objects.
    fn api_version(&self) -> Text;

    fn kind(&self) -> &str;

    /// Decodes the body of a create or an update: checks its type, drops or rejects unknown and duplicate fields
    /// according to `validation`, and sets defaults.
    fn decode(&self, document: &Document, validation: FieldValidation, warn: Warn<'_>) -> Result<Value>;

    /// Decodes the result of a patch in place. `strict` holds the duplicate fields of the patch on entry, and all
    /// fields to be reported on return.
    fn decode_patched(&self, object: &mut Value, strict: &mut Strict, from: Patched<'_>) -> Result<(), Unpatched>;

    /// The merge keys and strategies for strategic merge patches.
    fn patch_meta(&self) -> PatchMeta {
        PatchMeta::of_type("meta.v1.PartialObjectMetadata")
    }

    /// How errors of patches print the objects, as Go does.
    fn printed_as(&self) -> RawKind {
        RawKind::Custom
    }

    /// Decodes and defaults the result of an apply to `live`. Returns what counts as changed even if the object stays
    /// equal, see [`timestamps`].
    fn normalize_applied(&self, object: &mut Value, configuration: &Value, live: Option<&Value>) -> Result<Uncoerced>;

    /// Checks that mutating admission has kept the type of an object.
    fn check_admitted(&self, _object: &Value, _registry: &Registry) -> Result<()> {
        Ok(())
    }

    /// As [`Codec::check_admitted`], for an object that is being created.
    fn check_created(&self, object: &Value, registry: &Registry) -> Result<()> {
        self.check_admitted(object, registry)
    }

    /// Decodes and defaults an object that mutating admission has changed. Nulls and undeclared fields stay until the
    /// object is validated and stored.
    fn normalize_admitted(&self, object: &mut Value) -> Result<()>;

    /// The object as audit events show it.
    fn audited<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        Cow::Borrowed(object)
    }

    /// The object as JSON shows it, if validation sees more than JSON shows.
    fn printed(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// The zero value of the Go type, if that type always has some fields.
    fn zero(&self) -> Option<Value> {
        None
    }

    /// The field manager's error for a version in managedFields that the resource no longer has.
    fn unknown_version(&self, _api_version: &str) -> ConvertError {
        ConvertError::MissingVersion
    }

    /// The Status of an invalid object. `submitted` is its type as sent by the client.
    fn invalid(&self, submitted: &TypeMeta, name: &str, errors: &[FieldError]) -> Status;

    /// The key of an object as errors show it.
    fn shown_key(&self, key: &Key) -> String {
        String::from_utf8_lossy(&key.to_bytes()).into_owned()
    }

    /// Whether two objects have the same stored form.
    fn is_equal(&self, a: &Value, b: &Value) -> bool {
        a == b
    }

    /// Whether clients receive the stored form of an object unchanged.
    fn is_shown_as_stored(&self, _stored: &Value) -> bool {
        false
    }
}

/// `apiVersion` and `kind` of an object.
pub struct TypeMeta {
    pub api_version: Text,
    pub kind: Text,
}

impl TypeMeta {
    pub fn of(object: &Value) -> TypeMeta {
        let text = |key: &str| match object.get(key) {
            Some(Value::String(text)) => text.clone(),
            _ => Text::default(),
        };
        TypeMeta { api_version: text("apiVersion"), kind: text("kind") }
    }
}

/// Splits an `apiVersion` into group and version.
fn split_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

impl Endpoint {
    pub fn api_version(&self) -> Text {
        self.resource.api_version(&self.version)
    }

    /// The type that bodies of the endpoint have.
    fn body_type(&self) -> BodyType<'_> {
        BodyType { kind: &self.resource.kind, api_version: self.api_version() }
    }
}

/// The type that a body is decoded as, for errors.
struct BodyType<'a> {
    kind: &'a str,
    api_version: Text,
}

impl BodyType<'_> {
    /// The error of a body of type `kind` in `version`.
    fn bad_body(&self, kind: &str, version: &str, why: &str) -> Status {
        let wanted = self.kind;
        Status::bad_request(format!("{kind} in version {} cannot be handled as a {wanted}: {why}", quote(version)))
    }

    /// As [`BodyType::bad_body`], for a body of this type.
    fn bad_own_body(&self, why: &str) -> Status {
        self.bad_body(self.kind, split_version(&self.api_version).1, why)
    }

    fn unrecognized(&self, why: &str, document: &Document) -> Status {
        let kind = self.kind;
        let excerpt = excerpt(document.bytes());
        Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({excerpt})"))
    }

    /// Parses a body after checking that `apiVersion` and `kind` are readable.
    fn parse(&self, document: &Document) -> Result<Decoded> {
        let decoded = document.decode_as(&self.api_version, self.kind);
        if let Err(DecodeError::Protobuf(error)) = &decoded
            && let ProtobufError::UnknownKind { api_version, kind } | ProtobufError::Object { api_version, kind, .. } =
                error
            && !kind.is_empty()
        {
            return Err(self.bad_body(kind, split_version(api_version).1, &error.to_string()));
        }
        if let Err(DecodeError::Json(error)) = &decoded
            && matches!(error.problem, JsonProblem::NumberOutOfRange { .. })
            && document.is_object()
        {
            // the type is readable, but the object is not
            return Err(self.bad_own_body(&wording::json_error(error)));
        }
        if let Some(why) = document.type_error(&decoded) {
            return Err(self.unrecognized(&why, document));
        }
        Ok(decoded.unwrap_or_default())
    }

    /// Rejects a body of another version than that of the path.
    fn check_version(&self, given: &str) -> Result<()> {
        let expected = &self.api_version;
        if given == expected {
            return Ok(());
        }
        // compared as if it had been parsed and printed again, which drops the slash after an empty group
        let given = given.strip_prefix('/').unwrap_or(given);
        Err(Status::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version ({expected})"
        )))
    }
}

/// Warns of unknown and duplicate fields, or rejects them with the Status that `refuse` builds from the message.
fn report(
    strict: &Strict,
    document: &Document,
    validation: FieldValidation,
    warn: Warn<'_>,
    refuse: impl FnOnce(&str) -> Status,
) -> Result<()> {
    match validation {
        // protobuf messages have no unknown fields to report
        _ if document.format == Format::Protobuf => {}
        FieldValidation::Ignore => {}
        FieldValidation::Warn => strict.warnings(document.format).into_iter().for_each(warn),
        FieldValidation::Strict => {
            if let Some(error) = strict.error(document.format) {
                return Err(refuse(&error));
            }
        }
    }
    strict.check_size()
}
