//! `autoscaling/v1` Scale, the objects of the subresource `scale`.

use base::request::FieldValidation;
use machinery::patch::RawKind;
use machinery::value::{Decoded, decode_every};
use machinery::{FieldError, Result, Status, Text, Value};
use schema::shape;

use super::timestamps::Uncoerced;
use super::{BodyType, Codec, Patched, TypeMeta, Unpatched, Warn, report, split_version};
use crate::body::{Document, Format, Strict, type_error};
use crate::builtin::{Catalogue, is_unversioned, meta_shape, type_version};
use crate::scheme::unknown_kind;

pub const SCALE_VERSION: &str = "autoscaling/v1";

const KIND: &str = "Scale";
const GO_TYPE: &str = "autoscaling.v1.Scale";
/// These versions had a Scale of their own, which is decoded before it is refused.
const FORMER_VERSIONS: [&str; 3] = ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"];

pub enum ScaleCodec {
    /// For built-in kinds: a decoding error names what is wrong with the body.
    BuiltIn(&'static Catalogue),
    /// For custom resources: all decoding errors are reported with the same Status, since their scheme has no Scale.
    Custom,
}

impl Codec for ScaleCodec {
    fn api_version(&self) -> Text {
        Text::new_static(SCALE_VERSION)
    }

    fn kind(&self) -> &str {
        KIND
    }

    fn decode(&self, document: &Document, validation: FieldValidation, warn: Warn<'_>) -> Result<Value> {
        match self {
            ScaleCodec::BuiltIn(kinds) => decode(kinds, document, validation, warn),
            ScaleCodec::Custom => decode_unregistered(document, validation, warn),
        }
    }

    fn decode_patched(&self, scale: &mut Value, strict: &mut Strict, from: Patched<'_>) -> Result<(), Unpatched> {
        if matches!(from, Patched::Maps) {
            shape::convert_numbers(scale, shape::named(GO_TYPE));
            strict.omit_keys();
            let errors = shape::read(scale, shape::named(GO_TYPE)).errors;
            if let Some(why) = shape::first_conversion_error(&errors, scale, GO_TYPE) {
                return Err(Unpatched::Invalid(why));
            }
        }
        if let Some(why) = type_error(scale).or_else(|| self.patched_type_error(scale)) {
            return Err(Unpatched::Invalid(why));
        }
        read(scale, strict, None)?;
        keep_seen(strict);
        set_type(scale);
        Ok(())
    }

    fn printed_as(&self) -> RawKind {
        RawKind::BuiltIn
    }

    fn normalize_applied(&self, _scale: &mut Value, _: &Value, _live: Option<&Value>) -> Result<Uncoerced> {
        Ok(Uncoerced::Same)
    }

    fn invalid(&self, submitted: &TypeMeta, name: &str, errors: &[FieldError]) -> Status {
        Status::invalid("autoscaling", &submitted.kind, name, errors)
    }

    fn normalize_admitted(&self, _scale: &mut Value) -> Result<()> {
        Ok(())
    }
}

impl ScaleCodec {
    /// Refuses a patched Scale of another type, in other words if the scheme does not have that type.
    fn patched_type_error(&self, scale: &Value) -> Option<String> {
        let (kind, api_version) = type_of(scale);
        if kind == KIND && api_version == SCALE_VERSION {
            return None;
        }
        let is_former = kind == KIND && FORMER_VERSIONS.contains(&api_version.as_str());
        // in former versions, the selector was a map
        if is_former && !scale.str_at(&["status", "selector"]).is_empty() {
            let why = "json: cannot unmarshal string into Go struct field ScaleStatus.status.selector of type map[string]string";
            return Some(why.to_owned());
        }
        let (version, to) = (type_version(&api_version, &kind), if self.is_custom() { "v1" } else { "autoscaling" });
        let unconverted = || format!("converting ({version}.{kind}) to ({to}.{KIND}): unknown conversion");
        let shaped = match self {
            ScaleCodec::BuiltIn(_) if is_former => return None,
            ScaleCodec::BuiltIn(kinds) if kinds.is_known(&api_version, &kind) => {
                kinds.shape_of(&api_version, &kind, scale)
            }
            ScaleCodec::Custom if is_former => None,
            ScaleCodec::Custom if is_unversioned(&kind) => meta_shape(&kind, scale),
            _ => return Some(unknown_kind(&kind, &api_version)),
        };
        Some(shaped.and_then(|shaped| shaped.error).unwrap_or_else(unconverted))
    }

    fn is_custom(&self) -> bool {
        matches!(self, ScaleCodec::Custom)
    }
}

/// Gives a Scale its `kind` and `apiVersion`.
pub fn set_type(scale: &mut Value) {
    scale.set_at(&["kind"], Value::from(KIND));
    scale.set_at(&["apiVersion"], Value::from(SCALE_VERSION));
}

fn decode(
    kinds: &'static Catalogue,
    document: &Document,
    validation: FieldValidation,
    warn: Warn<'_>,
) -> Result<Value> {
    let body_type = BodyType { kind: KIND, api_version: Text::new_static(SCALE_VERSION) };
    let Decoded { value: mut scale, duplicates } = body_type.parse(document)?;
    if document.format == Format::Json && !duplicates.is_empty() {
        scale = shape::joined(&decode_every(document.bytes()), shape::named(GO_TYPE));
    }
    let (kind, api_version) = type_of(&scale);
    let bad_body = |why: &str| body_type.bad_body(&kind, split_version(&api_version).1, why);
    check_type(kinds, &scale, &kind, &api_version, document).map_err(|why| bad_body(&why))?;
    let mut strict = Strict::of(duplicates);
    read(&mut scale, &mut strict, Some(document)).map_err(|why| bad_body(&why))?;
    if document.format == Format::Json {
        keep_seen(&mut strict);
    }
    report(&strict.in_order(document), document, validation, warn, bad_body)?;
    body_type.check_version(&api_version)?;
    set_type(&mut scale);
    Ok(scale)
}

fn decode_unregistered(document: &Document, validation: FieldValidation, warn: Warn<'_>) -> Result<Value> {
    let unregistered =
        || Status::bad_request("no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"");
    let decoded = document.decode();
    if document.type_error(&decoded).is_some() {
        return Err(unregistered());
    }
    let Decoded { value: mut scale, duplicates } = decoded.unwrap_or_default();
    let mut strict = Strict::of(duplicates);
    if document.format == Format::Json {
        keep_seen(&mut strict);
    }
    normalize(&mut scale, &mut strict).map_err(|_| unregistered())?;
    report(&strict.in_order(document), document, validation, warn, |_| unregistered())?;
    set_type(&mut scale);
    Ok(scale)
}

/// The kind and the version of a body, which may omit both.
fn type_of(scale: &Value) -> (String, String) {
    let given = |key: &str, default: &str| match scale.str_at(&[key]) {
        "" => default.to_owned(),
        given => given.to_owned(),
    };
    (given("kind", KIND), given("apiVersion", SCALE_VERSION))
}

/// Fails unless the type of a body is that of Scales. The error is Go's text.
fn check_type(
    kinds: &'static Catalogue,
    scale: &Value,
    kind: &str,
    api_version: &str,
    document: &Document,
) -> Result<(), String> {
    if kind == KIND && (api_version == SCALE_VERSION || FORMER_VERSIONS.contains(&api_version)) {
        return Ok(());
    }
    if !kinds.is_known(api_version, kind) {
        return Err(unknown_kind(kind, api_version));
    }
    let version = type_version(api_version, kind);
    let unknown = || format!("converting ({version}.{kind}) to (autoscaling.{KIND}): unknown conversion");
    let shaped = kinds.shape_of(api_version, kind, scale);
    let error = shaped.and_then(|shaped| shaped.error_in(&document.json_text()));
    Err(error.unwrap_or_else(unknown))
}

/// Decodes a body as a Scale. The error is Go's text.
fn normalize(scale: &mut Value, strict: &mut Strict) -> Result<(), String> {
    let (kind, api_version) = type_of(scale);
    if kind != KIND || api_version != SCALE_VERSION {
        return Err(unknown_kind(&kind, &api_version));
    }
    read(scale, strict, None)
}

/// Reads a body in the form of a Scale. The error is Go's text.
fn read(scale: &mut Value, strict: &mut Strict, document: Option<&Document>) -> Result<(), String> {
    let read = shape::read(scale, shape::named(GO_TYPE));
    strict.extend_typed(read.unknown);
    *scale = read.value;
    let first = document.and_then(|document| shape::first_error_in(&read.errors, &document.json_text()));
    first.or(read.error).map_or(Ok(()), Err)
}

/// Keeps the duplicate fields that typed decoding of JSON notices.
fn keep_seen(strict: &mut Strict) {
    strict.duplicates.retain(|path| shape::sees_duplicate(path, shape::named(GO_TYPE)));
}
