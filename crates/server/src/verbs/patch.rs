//! Patches: their media types, the decoding of their bodies, and their application to objects.

use base::request::FieldValidation;
use base::wording::{decode_error, patch as wording, yaml_error};
use bytes::Bytes;
use machinery::patch::{ObjectPatch, Raw, RawKind, Unknown, gotext, json_patch, merge_patch, strategic_merge};
use machinery::value::{Decoded, JsonProblem};
use machinery::yaml::{self, YamlProblem};
use machinery::{FieldError, FieldPath, Release, Result, Status, Value};
use resource::{Document, Format, Patched, Strict, Unpatched};

use super::meta;
use super::request::Request;

/// The media types of PATCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    /// The kind and the encoding that a `Content-Type` stands for. Its parameters are ignored.
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

/// A decoded patch.
pub enum Patch {
    /// A JSON patch, and the body that it was decoded from.
    Json(json_patch::JsonPatch, Bytes),
    Merge(ObjectPatch),
    Strategic(ObjectPatch),
}

/// The duplicate keys of a configuration, one line for each.
#[derive(Debug)]
pub struct RepeatedKeys {
    lines: Vec<String>,
    validation: FieldValidation,
}

/// Fails if a body cannot be recorded as JSON in the audit log: kube-apiserver 1.37 reports that before any other
/// error of a patch. A body that can be decoded can also be recorded, so only other bodies have to be checked.
pub fn check_encoding(kind: PatchKind, document: &Document) -> Result<()> {
    let bytes = document.bytes();
    match (kind, document.format) {
        (PatchKind::Apply, Format::Cbor) => document
            .decode()
            .map(drop)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {}", decode_error(&error)))),
        // a body that looks like JSON is recorded as it is
        (PatchKind::Apply, _) if bytes.trim_ascii_start().starts_with(b"{") => Ok(()),
        (PatchKind::Apply, _) => match yaml::decode(bytes) {
            Err(error) if !matches!(error.problem, YamlProblem::TooDeep(_)) => {
                Err(Status::bad_request(format!("error encoding patch: {}", yaml_error(&error))))
            }
            _ => Ok(()),
        },
        _ => match machinery::value::decode(bytes) {
            Err(error) if !matches!(error.problem, JsonProblem::NumberOutOfRange { .. }) => {
                Err(Status::bad_request("invalid JSON patch"))
            }
            _ => Ok(()),
        },
    }
}

/// Decodes the body of an apply to a configuration and the keys that it repeats.
pub fn decode_configuration(
    document: &Document,
    validation: FieldValidation,
    release: Release,
) -> Result<(Value, RepeatedKeys)> {
    let body = body_of(release);
    let decoded = match document.format {
        Format::Cbor => document.decode().map_err(|error| decode_error(&error)),
        _ => decode_yaml(document.bytes()),
    };
    let decoded = decoded.map_err(|error| Status::bad_request(format!("error decoding {body}: {error}")))?;
    if !matches!(decoded.value, Value::Object(_) | Value::Null) {
        return Err(Status::bad_request(format!(
            "error decoding {body}: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            decoded.value.json_type()
        )));
    }
    Ok((decoded.value, RepeatedKeys { lines: decoded.duplicates, validation }))
}

/// How errors call the body of an apply.
fn body_of(release: Release) -> &'static str {
    if release >= Release::V1_37 { "patch" } else { "YAML" }
}

/// Decodes an applied configuration. It is YAML even if it looks like JSON, but the JSON decoder is used where it
/// gives the same result: for all JSON except floats without a fraction.
fn decode_yaml(bytes: &[u8]) -> Result<Decoded, String> {
    if yaml::is_plain_json(bytes)
        && let Ok(mut decoded) = machinery::value::decode_strict(bytes)
        && decoded.duplicates.is_empty()
    {
        yaml::reread(&mut decoded.value);
        return Ok(decoded);
    }
    yaml::decode(bytes).map_err(|error| {
        let text = yaml_error(&error);
        match error.problem {
            YamlProblem::TooDeep(_) => format!("error unmarshaling JSON: while decoding JSON: {text}"),
            _ => format!("error converting YAML to JSON: {text}"),
        }
    })
}

impl RepeatedKeys {
    /// Ignores duplicates, warns about them or fails, depending on `fieldValidation`.
    pub fn report(&self, request: &Request) -> Result<()> {
        match self.validation {
            FieldValidation::Strict if !self.lines.is_empty() => {
                let lines: Vec<String> = self.lines.iter().map(|line| format!("  {line}")).collect();
                Err(Status::bad_request(format!(
                    "error strict decoding {}: error converting YAML to JSON: yaml: unmarshal errors:\n{}",
                    body_of(request.resource.release),
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

impl Patch {
    /// Decodes the body of a patch; `None` if it is an apply.
    pub fn decode(kind: PatchKind, bytes: &Bytes, validation: FieldValidation) -> Result<Option<Patch>> {
        let unknown = match validation {
            FieldValidation::Ignore => Unknown::Ignored,
            _ => Unknown::Reported,
        };
        Ok(Some(match kind {
            PatchKind::Apply => return Ok(None),
            PatchKind::Json => {
                let patch = json_patch::decode_patch(bytes, unknown);
                Patch::Json(patch.map_err(|error| wording::json_patch_error(&error, unknown))?, bytes.clone())
            }
            PatchKind::Merge => {
                let patch = merge_patch::decode_patch(bytes, unknown);
                Patch::Merge(patch.map_err(|error| wording::merge_patch_error(&error, unknown))?)
            }
            PatchKind::Strategic => {
                let patch = strategic_merge::decode_patch(bytes, unknown);
                Patch::Strategic(patch.map_err(|error| wording::strategic_patch_error(&error))?)
            }
        }))
    }

    /// The object that results from applying the patch to `old`.
    pub fn apply_to(&self, request: &Request, old: &Value, validation: FieldValidation) -> Result<Value> {
        let strategy = &request.strategy;
        let mut object = self.merged(request, old)?;
        let invalid = |why: String| {
            let error = FieldError::invalid_raw(&FieldPath::new("patch"), self.printed(request, old), why);
            Status::invalid("", "", "", &[error])
        };
        let mut strict = Strict::of(self.duplicates(old));
        let text = || self.printed(request, old);
        let from = if matches!(self, Patch::Strategic(_)) { Patched::Maps } else { Patched::Text(&text) };
        let decoded = strategy.codec().decode_patched(&mut object, &mut strict, from);
        decoded.map_err(|error| match error {
            Unpatched::Invalid(why) => invalid(why),
            // the warnings of the patch, and the error for a wrong namespace or name, take precedence
            Unpatched::Failed(status) => {
                if validation == FieldValidation::Warn {
                    self.strict_errors().into_iter().for_each(|warning| request.warn(warning));
                }
                let placed = meta::place_in(&mut object, request.scope());
                placed.and_then(|()| meta::check_name(&object, request.name())).err().unwrap_or(status)
            }
        })?;
        strict.check_size()?;
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => {
                let warnings = self.strict_errors().into_iter().chain(strict.warnings(Format::Json));
                warnings.for_each(|warning| request.warn(warning));
            }
            FieldValidation::Strict => {
                let mut errors = self.strict_errors();
                errors.extend(strict.errors_of_patched());
                if !errors.is_empty() {
                    return Err(invalid(format!("strict decoding error: {}", errors.join(", "))));
                }
            }
        }
        Ok(object)
    }

    /// The errors of strict field validation in the patch itself.
    fn strict_errors(&self) -> Vec<String> {
        let (errors, prefix) = match self {
            Patch::Json(patch, _) => (&patch.strict_errors, "json patch "),
            Patch::Merge(patch) => (&patch.strict_errors, ""),
            Patch::Strategic(patch) => (&patch.strict_errors, ""),
        };
        errors.iter().map(|error| format!("{prefix}{}", wording::strict_error(error))).collect()
    }

    /// The patched object before it is decoded and checked.
    fn merged(&self, request: &Request, old: &Value) -> Result<Value> {
        match self {
            Patch::Json(patch, _) => json_patch::apply(old.clone(), patch),
            Patch::Merge(patch) => Ok(merge_patch::apply(old.clone(), patch.value.clone())),
            Patch::Strategic(patch) => {
                strategic_merge::apply(old.clone(), patch.value.clone(), request.strategy.codec().patch_meta())
            }
        }
    }

    /// The text that results from a JSON patch, including the patch's duplicate keys.
    fn raw(&self, old: &Value) -> Option<Raw> {
        let Patch::Json(patch, source) = self else { return None };
        Raw::of(old.clone(), patch, source)
    }

    /// The duplicate keys that a JSON patch adds to an object.
    fn duplicates(&self, old: &Value) -> Vec<String> {
        match self {
            Patch::Json(json, _) if json.strict_errors.iter().any(|error| error.path.contains("].value")) => {
                self.raw(old).map(|raw| raw.duplicates(json)).unwrap_or_default()
            }
            _ => vec![],
        }
    }

    /// The patched object, for error messages. It is computed again, because errors are rare and a copy would cost
    /// every request.
    fn printed(&self, request: &Request, old: &Value) -> String {
        let merged = || self.merged(request, old).unwrap_or_default();
        match (self, request.strategy.codec().printed_as()) {
            (Patch::Strategic(patch), _) => gotext::plain(&strategic_merge::applied(&patch.value, old)),
            (Patch::Merge(patch), RawKind::BuiltIn) => machinery::types::merged_text(&merged(), old, &patch.value),
            (_, kind) => match self.raw(old) {
                Some(raw) => raw.text(kind),
                None => merged().to_json(),
            },
        }
    }
}
