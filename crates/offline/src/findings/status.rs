//! The findings of a verdict: one for each cause of an error, each unknown field, and each warning.

use machinery::yaml::FieldStep;
use machinery::{Status, Value};

use super::{Finding, Place, Severity, caret, path};
use crate::engine::{self, Refusal};
use sources::{Document, Object, RepeatedKey, RepeatedPlace};

/// The reason of unknown and duplicate fields.
pub const UNKNOWN_FIELD: &str = "UnknownField";

/// The reason of keys that an object has more than once.
const DUPLICATE_KEY: &str = "DuplicateKey";

/// A finding about a field, or about the whole object if `field` is empty.
pub fn at_field(
    document: &Document,
    object: &Object,
    severity: Severity,
    reason: &str,
    field: &str,
    message: &str,
) -> Finding {
    Finding {
        severity,
        reason: reason.to_owned(),
        message: message.to_owned(),
        field: field.to_owned(),
        place: place_of(document, object, reason, field),
        releases: vec![],
    }
}

/// The findings of an error.
pub fn of_verdict(document: &Document, object: &Object, status: &Status) -> Vec<Finding> {
    let error =
        |reason: &str, field: &str, message: &str| at_field(document, object, Severity::Error, reason, field, message);
    if let Refusal::Strict(unknown) = Refusal::of(status) {
        return unknown.iter().map(|(field, text)| error(UNKNOWN_FIELD, field, text)).collect();
    }
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes: Vec<_> = causes.filter(|cause| !cause.field.is_empty()).collect();
    if causes.is_empty() {
        let field = mistyped(&status.message, object.value.str_at(&["kind"]));
        let mut whole = error(status.reason_text(), &field, &stable(&status.message, &object.value, status));
        // the message names the field already
        whole.field.clear();
        return vec![whole];
    }
    // Go's name for the object itself
    let field = |field: &str| if field == "<nil>" { String::new() } else { field.to_owned() };
    let field = |given: &str| of_first_version(&object.value, &field(given));
    let finding = |cause: &machinery::status::Cause| {
        let found = error(&cause.reason, &field(&cause.field), &cause.message);
        // the server stops early; what it says about that is no error of its own
        Finding { severity: if engine::is_unfinished(cause) { Severity::Info } else { found.severity }, ..found }
    };
    causes.into_iter().map(finding).collect()
}

/// The field of a definition in the form of the v1 API. Where all versions have the same schema, columns and subresources, the
/// server names the fields of its internal form, which has them once.
fn of_first_version(object: &Value, field: &str) -> String {
    if object.str_at(&["kind"]) != "CustomResourceDefinition"
        || object.str_at(&["apiVersion"]) != "apiextensions.k8s.io/v1"
    {
        return field.to_owned();
    }
    const HOISTED: [(&str, &str); 4] = [
        ("spec.validation", "schema"),
        ("spec.subresources", "subresources"),
        ("spec.additionalPrinterColumns", "additionalPrinterColumns"),
        ("spec.selectableFields", "selectableFields"),
    ];
    let hoisted = HOISTED.iter().find_map(|(prefix, name)| {
        let rest = field.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))?;
        Some(format!("spec.versions[0].{name}{rest}"))
    });
    hoisted.unwrap_or_else(|| field.to_owned())
}

/// The finding of a warning of the server, at the field that it names.
pub fn of_warning(document: &Document, object: &Object, text: &str) -> Finding {
    let quoted = || text.split_once("field \"").and_then(|(_, rest)| rest.split_once('"')).map(|(field, _)| field);
    let before = text.split_once(": ").map(|(field, _)| field).filter(|field| !field.contains(' '));
    let field = of_first_version(&object.value, quoted().or(before).unwrap_or_default());
    let mut finding = at_field(document, object, Severity::Warning, "Warning", &field, text);
    // the text names the field already
    finding.field.clear();
    finding
}

/// The finding of a document without objects.
pub fn of_line(document: &Document, reason: &str, line: usize, message: &str) -> Finding {
    let source = document.line(line).unwrap_or_default();
    Finding {
        severity: Severity::Error,
        reason: reason.to_owned(),
        message: message.to_owned(),
        field: String::new(),
        place: caret::whole_line(line, source),
        releases: vec![],
    }
}

/// The finding of a repeated key, in the words of the server for a body of the same format.
pub fn of_repeated_key(document: &Document, object: &Object, key: &RepeatedKey) -> Finding {
    match &key.place {
        RepeatedPlace::Line(line, text) => of_line(document, DUPLICATE_KEY, *line, text),
        RepeatedPlace::Path(path) => {
            at_field(document, object, Severity::Error, DUPLICATE_KEY, path, "duplicate field")
        }
    }
}

/// The message with `generateName` in place of the generated name, which differs from run to run.
fn stable(message: &str, object: &Value, status: &Status) -> String {
    let prefix = object.str_at(&["metadata", "generateName"]);
    let generated = status.details.as_ref().map_or("", |details| details.name.as_str());
    if !object.str_at(&["metadata", "name"]).is_empty() || prefix.is_empty() || !generated.starts_with(prefix) {
        return message.to_owned();
    }
    message.replace(generated, prefix)
}

/// The path of the field in Go's error about a value of the wrong type; empty if it has none. Go names the type
/// around the field, so the path is known only for fields of the object itself and of its metadata.
fn mistyped(message: &str, kind: &str) -> String {
    let named = message.split_once("into Go struct field ").and_then(|(_, rest)| rest.split_once(" of type "));
    match named.and_then(|(named, _)| named.split_once('.')) {
        Some(("ObjectMeta", field)) => format!("metadata.{field}"),
        Some((of, field)) if of == kind => field.to_owned(),
        _ => String::new(),
    }
}

/// The place of a field, or of the nearest field around it. The whole object is at its name. A field that should not be there
/// is at its key.
fn place_of(document: &Document, object: &Object, reason: &str, field: &str) -> Place {
    let named = |name: &str| FieldStep::Field(name.to_owned());
    let outer = object.item.map_or_else(Vec::new, |item| vec![named("items"), FieldStep::Item(item)]);
    let at = |below: Vec<FieldStep>| {
        let steps = [outer.clone(), below].concat();
        document.locate(&steps).map(|located| (located, steps.len()))
    };
    let found = at(path::steps_in(&object.value, field)).filter(|(located, _)| located.depth > outer.len());
    let Some((located, wanted)) = found.or_else(|| at(vec![named("metadata"), named("name")])) else {
        return Place::default();
    };
    let is_value = located.depth == wanted && ![UNKNOWN_FIELD, DUPLICATE_KEY].contains(&reason);
    caret::place(&located, is_value, |line| document.line(line).unwrap_or_default())
}
