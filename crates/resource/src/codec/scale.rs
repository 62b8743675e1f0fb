//! `autoscaling/v1` Scale, the objects of the subresource `scale`.

use base::request::FieldValidation;
use machinery::value::Decoded;
use machinery::{FieldError, Status, Text, Value};
use schema::shape;

use super::{Codec, TypeMeta, Unpatched, Warn, report};
use crate::body::{Document, Format, Strict};
use crate::{Registry, unknown_kind};

pub const SCALE_VERSION: &str = "autoscaling/v1";

/// The codec of Scales.
pub struct ScaleCodec;

impl Codec for ScaleCodec {
    fn api_version(&self) -> Text {
        Text::new_static(SCALE_VERSION)
    }

    fn kind(&self) -> &str {
        "Scale"
    }

    /// Decodes a Scale. Any decoding error is reported with the same Status.
    fn decode(&self, document: &Document, validation: FieldValidation, warn: Warn<'_>) -> Result<Value, Status> {
        let unregistered = || {
            Status::bad_request("no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"")
        };
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

    fn decode_patched(&self, scale: &mut Value, strict: &mut Strict, _strategic: bool) -> Result<(), Unpatched> {
        normalize(scale, strict)?;
        keep_seen(strict);
        Ok(())
    }

    fn normalize_applied(&self, _scale: &mut Value, _: &Value, _live: Option<&Value>) -> Result<bool, Status> {
        Ok(false)
    }

    fn invalid(&self, submitted: &TypeMeta, name: &str, errors: &[FieldError]) -> Status {
        Status::invalid("autoscaling", &submitted.kind, name, errors)
    }

    fn check_admitted(&self, _scale: &Value, _is_new: bool, _: &Registry) -> Result<(), Status> {
        Ok(())
    }

    fn normalize_admitted(&self, _scale: &mut Value) -> Result<(), Status> {
        Ok(())
    }
}

/// Gives a Scale its `kind` and `apiVersion`.
pub fn set_type(scale: &mut Value) {
    scale.set_at(&["kind"], Value::from("Scale"));
    scale.set_at(&["apiVersion"], Value::from(SCALE_VERSION));
}

/// Decodes a body as a Scale. The error is Go's text.
fn normalize(scale: &mut Value, strict: &mut Strict) -> Result<(), String> {
    let given = |key: &str, default: &str| match scale.str_at(&[key]) {
        "" => default.to_owned(),
        given => given.to_owned(),
    };
    let (kind, version) = (given("kind", "Scale"), given("apiVersion", SCALE_VERSION));
    if kind != "Scale" || version != SCALE_VERSION {
        return Err(unknown_kind(&kind, &version));
    }
    let read = shape::read(scale, &shape::SCALE);
    strict.unknown.extend(read.unknown);
    *scale = read.value;
    read.error.map_or(Ok(()), Err)
}

/// Keeps the duplicate fields that typed decoding of JSON notices.
fn keep_seen(strict: &mut Strict) {
    strict.duplicates.retain(|path| shape::sees_duplicate(path, &shape::SCALE));
}
