//! What a write does to the current object: replace it, patch it, apply to it.

use machinery::patch::{Raw, RawKind, Unknown, gotext, json_patch, merge_patch, strategic_merge};
use machinery::yaml::YamlProblem;
use machinery::{FieldError, FieldPath, Status, Value};

use super::body::{Document, Format, Strict, no_text, type_error};
use super::{Request, Subresource};
use crate::request::{FieldValidation, WriteOptions};
use crate::wording;

/// The media types of PATCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    /// What a `Content-Type` says up to its parameters, to the letter, and how the body is encoded.
    pub fn of(content_type: &str) -> Option<(PatchKind, Format)> {
        match content_type.split(';').next().unwrap_or_default() {
            "application/json-patch+json" => Some((PatchKind::Json, Format::Json)),
            "application/merge-patch+json" => Some((PatchKind::Merge, Format::Json)),
            "application/strategic-merge-patch+json" => Some((PatchKind::Strategic, Format::Json)),
            "application/apply-patch+yaml" => Some((PatchKind::Apply, Format::Yaml)),
            "application/apply-patch+cbor" => Some((PatchKind::Apply, Format::Cbor)),
            _ => None,
        }
    }
}

/// The keys of a configuration that come twice, as lines.
#[derive(Debug)]
pub struct Repeated {
    lines: Vec<String>,
    validation: FieldValidation,
}

/// A change that can be tried again on a newer object.
pub enum Change {
    Replace(Value),
    Patch(Patch),
    /// `repeated` is what is told of keys that come twice, after the configuration has been merged.
    Apply {
        configuration: Value,
        force: bool,
        repeated: Repeated,
    },
}

/// A decoded patch.
pub enum Patch {
    /// With its body.
    Json(json_patch::Patch, bytes::Bytes),
    Merge(merge_patch::Patch),
    Strategic(strategic_merge::Patch),
}

/// Decodes the body of a patch.
pub fn decode(kind: PatchKind, document: &Document, options: &WriteOptions) -> Result<Change, Status> {
    let unknown = match options.field_validation {
        FieldValidation::Ignore => Unknown::Ignored,
        _ => Unknown::Reported,
    };
    match kind {
        PatchKind::Apply => decode_apply(document, options),
        PatchKind::Json => {
            let patch = json_patch::decode_patch(&document.bytes, unknown);
            let patch = patch.map_err(|error| wording::patch::json_patch_error(&error, unknown))?;
            Ok(Change::Patch(Patch::Json(patch, document.bytes.clone())))
        }
        PatchKind::Merge => {
            let patch = merge_patch::decode_patch(&document.bytes, unknown);
            let patch = patch.map_err(|error| wording::patch::merge_patch_error(&error, unknown))?;
            Ok(Change::Patch(Patch::Merge(patch)))
        }
        PatchKind::Strategic => {
            let patch = strategic_merge::decode_patch(&document.bytes, unknown);
            let patch = patch.map_err(|error| wording::patch::strategic_patch_error(&error))?;
            Ok(Change::Patch(Patch::Strategic(patch)))
        }
    }
}

fn decode_apply(document: &Document, options: &WriteOptions) -> Result<Change, Status> {
    let decoded = match document.format {
        Format::Cbor => document.decode().map_err(|error| wording::decode_error(&error)),
        _ => decode_yaml(document),
    };
    let decoded = decoded.map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    if !matches!(decoded.value, Value::Object(_) | Value::Null) {
        return Err(Status::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            decoded.value.json_type()
        )));
    }
    let repeated = Repeated { lines: decoded.duplicates, validation: options.field_validation };
    Ok(Change::Apply { configuration: decoded.value, force: options.force, repeated })
}

impl Repeated {
    /// Warns or refuses, as the request wants it.
    pub fn tell(&self, request: &Request) -> Result<(), Status> {
        match self.validation {
            FieldValidation::Strict if !self.lines.is_empty() => {
                let lines: Vec<String> = self.lines.iter().map(|line| format!("  {line}")).collect();
                Err(Status::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n{}",
                    lines.join("\n")
                )))
            }
            FieldValidation::Warn => {
                self.lines.iter().for_each(|line| request.warn(line.clone()));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Applied configurations are YAML even when they look like JSON; plain JSON is decoded as such, which is the same but for
/// floats without a fraction.
fn decode_yaml(document: &Document) -> Result<machinery::value::Decoded, String> {
    let bytes = &document.bytes;
    if machinery::yaml::is_plain_json(bytes)
        && let Ok(mut decoded) = machinery::value::decode_strict(bytes)
        && decoded.duplicates.is_empty()
    {
        machinery::yaml::reread(&mut decoded.value);
        return Ok(decoded);
    }
    machinery::yaml::decode(bytes).map_err(|error| {
        let text = wording::yaml_error(&error);
        match error.problem {
            YamlProblem::TooDeep(_) => format!("error unmarshaling JSON: while decoding JSON: {text}"),
            _ => format!("error converting YAML to JSON: {text}"),
        }
    })
}

impl Change {
    /// The object as this change wants it, in the version of the request.
    pub fn apply_to(&self, request: &Request, old: &Value, options: &WriteOptions) -> Result<Value, Status> {
        match self {
            Change::Replace(object) => Ok(object.clone()),
            Change::Patch(patch) => patched(request, patch, old, options),
            Change::Apply { .. } => Ok(old.clone()),
        }
    }

    pub fn is_patch(&self) -> bool {
        !matches!(self, Change::Replace(_))
    }
}

/// The object with the patch in it, as it is.
fn patched_only(request: &Request, patch: &Patch, old: &Value) -> Result<Value, Status> {
    match patch {
        Patch::Json(patch, _) => json_patch::apply(old.clone(), patch),
        Patch::Merge(patch) => Ok(merge_patch::apply(old.clone(), patch.value.clone())),
        Patch::Strategic(patch) => {
            let metadata = crate::resource::builtin::patch_metadata(request.shipped());
            strategic_merge::apply(old.clone(), patch.value.clone(), &metadata)
        }
    }
}

/// The object with a JSON patch in it, as it is written.
fn written(patch: &Patch, old: &Value) -> Option<Raw> {
    let Patch::Json(patch, source) = patch else { return None };
    Raw::of(old.clone(), patch, source)
}

/// The duplicate keys that a JSON patch has brought into the object.
fn brought(patch: &Patch, old: &Value) -> Vec<String> {
    match patch {
        Patch::Json(json, _) if json.strict_errors.iter().any(|error| error.path.contains("].value")) => {
            written(patch, old).map(|written| written.duplicates(json)).unwrap_or_default()
        }
        _ => vec![],
    }
}

/// The patched object as errors show it. It is made again for them: errors are rare, copies of whole objects are not cheap.
fn shown(request: &Request, patch: &Patch, old: &Value) -> String {
    let custom = request.resource.is_custom();
    let object = || patched_only(request, patch, old).unwrap_or_default();
    match patch {
        Patch::Strategic(patch) => gotext::plain(&strategic_merge::applied(&patch.value, old)),
        Patch::Merge(merged) if !custom => machinery::protobuf::merged_text(&object(), &merged.value),
        _ => match written(patch, old) {
            Some(written) => written.text(if custom { RawKind::Custom } else { RawKind::BuiltIn }),
            None => object().to_json(),
        },
    }
}

/// What strict field validation reports of a patch.
fn strict_texts(patch: &Patch) -> Vec<String> {
    let (errors, prefix) = match patch {
        Patch::Json(patch, _) => (&patch.strict_errors, "json patch "),
        Patch::Merge(patch) => (&patch.strict_errors, ""),
        Patch::Strategic(patch) => (&patch.strict_errors, ""),
    };
    errors.iter().map(|error| format!("{prefix}{}", wording::patch::strict_error(error))).collect()
}

fn patched(request: &Request, patch: &Patch, old: &Value, options: &WriteOptions) -> Result<Value, Status> {
    let mut strict = Strict::default();
    let mut texts = strict_texts(patch);
    let mut object = patched_only(request, patch, old)?;
    let invalid = |why: String| {
        let error = FieldError::invalid_raw(&FieldPath::new("patch"), shown(request, patch, old), why);
        Status::invalid("", "", "", &[error])
    };
    let strategic = matches!(patch, Patch::Strategic(_));
    let is_scale = request.subresource == Subresource::Scale;
    if is_scale {
        // it says its own type
    } else if request.resource.is_custom() {
        if let Some(why) = type_error(&object) {
            return Err(invalid(why));
        }
        if object.str_at(&["kind"]).is_empty() {
            return Err(invalid(format!("Object 'Kind' is missing in '{}'", object.to_json())));
        }
        if object.get("apiVersion").is_none() {
            return Err(Status::internal("Object 'apiVersion' is missing in 'object has no apiVersion field'"));
        }
    } else {
        match object.as_object().and_then(no_text).filter(|_| strategic) {
            Some(why) => return Err(invalid(request.conversion_error(&object).unwrap_or(why))),
            None if strategic => {}
            None => request.patched_type(&mut object, &mut strict).map_err(invalid)?,
        }
        object.set_at(&["kind"], Value::String(request.resource.kind.clone()));
        object.set_at(&["apiVersion"], Value::String(request.api_version()));
    }
    if let Some(shipped) = request.shipped().filter(|_| strategic) {
        schema::shape::convert_numbers(&mut object, shipped.structure());
    }
    let normalised = match is_scale {
        true => super::scale::normalise(&mut object, &mut strict),
        false => request.normalise(&mut object, &mut strict),
    };
    let converted = |why| request.conversion_error(&object).filter(|_| strategic).unwrap_or(why);
    normalised.map_err(|why| invalid(converted(why)))?;
    strict.duplicates = brought(patch, old);
    if is_scale {
        super::scale::keep_seen(&mut strict);
    } else {
        request.keep_seen(&mut strict, &object);
    }
    strict.check_size()?;
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            texts.into_iter().for_each(|text| request.warn(text));
            strict.warn(Format::Json, request);
        }
        FieldValidation::Strict => {
            texts.extend(strict.duplicates.iter().map(|path| format!("duplicate field \"{path}\"")));
            texts.extend(strict.unknown.iter().map(|path| format!("unknown field \"{path}\"")));
            if !texts.is_empty() {
                return Err(invalid(format!("strict decoding error: {}", texts.join(", "))));
            }
        }
    }
    Ok(object)
}
