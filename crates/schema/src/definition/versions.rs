//! The rules for `spec.versions`.

use std::collections::{HashMap, HashSet};

use machinery::field::FieldErrorKind;
use machinery::{FieldError, FieldPath, Map, Value};

use super::fieldpath::{self, Notation};
use super::hoist::Hoisted;
use super::openapi::{flag, list, text};
use super::options::Options;
use super::{internal, names, schema, structural, subresources};

pub(super) fn validate(
    spec: &Hoisted<'_>,
    context: &schema::ValidationContext<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    // upstream finds a version by its name, which another one may share
    let mut with_status = HashMap::new();
    for version in spec.versions {
        with_status.entry(text(version, "name")).or_insert(version.at(&["subresources", "status"]).is_some());
    }
    for (i, version) in spec.versions.iter().enumerate() {
        let name = version.get("name").cloned().unwrap_or_else(|| Value::from(""));
        names::validate_label(&name, &path.index(i).child("name"), errors);
        let name = text(version, "name");
        let of = schema::SchemaVersion { name, has_status: with_status.get(name).is_some_and(|status| *status) };
        validate_version(spec, version, of, context, &path.index(i), errors);
    }
    let beta = context.options.beta.as_ref();
    errors.extend(beta.map(|beta| beta.errors.clone()).unwrap_or_default());
    let names: Vec<&str> = spec.versions.iter().map(|v| text(v, "name")).collect();
    if names.iter().collect::<HashSet<_>>().len() < names.len() {
        errors.push(whole(spec, path, "must contain unique version names"));
    }
    if spec.versions.iter().filter(|v| flag(v, "storage")).count() != 1 {
        errors.push(whole(spec, path, "must have exactly one version marked as storage version"));
    }
    let first = names.first().copied().unwrap_or_default();
    let (given, path) = (beta.map_or(first, |beta| &beta.version), FieldPath::new("spec.version"));
    if given.is_empty() {
        return;
    }
    names::validate_label(&Value::from(given), &path, errors);
    if given != first && !names.is_empty() {
        let detail = "must match the first version in spec.versions";
        errors.push(FieldError::invalid(&path, &Value::from(given), detail));
    }
}

/// An error about the whole list, which it shows as upstream's internal version prints it.
fn whole(spec: &Hoisted<'_>, path: &FieldPath, detail: &str) -> FieldError {
    let list: Vec<String> =
        spec.versions.iter().map(|version| internal::version(version, |key| spec.own(version, key))).collect();
    let value = if spec.spec.get("versions").is_none_or(Value::is_null) {
        "null".to_owned()
    } else {
        format!("[{}]", list.join(","))
    };
    let field = path.as_str().to_owned();
    FieldError { kind: FieldErrorKind::Invalid, field, value, detail: detail.to_owned() }
}

fn validate_version(
    spec: &Hoisted<'_>,
    version: &Value,
    of: schema::SchemaVersion<'_>,
    context: &schema::ValidationContext<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    deprecation(version, &path.child("deprecationWarning"), errors);
    let own = |key: &str| if spec.is_shared(key) { None } else { version.get(key) };
    if let Some(validation) = own("schema") {
        schema::validate_version(validation, of, context, &path.child("schema"), errors);
    }
    if let Some(sub) = own("subresources") {
        subresources::validate(sub, &path.child("subresources"), errors);
    }
    let columns = own("additionalPrinterColumns");
    subresources::validate_columns(columns, &path.child("additionalPrinterColumns"), errors);
    let none = Value::Object(Map::new());
    let fields = if spec.is_shared("selectableFields") { &none } else { version };
    let fields = list(fields, "selectableFields");
    if fields.is_empty() {
        return;
    }
    let place = path.child("selectableFields");
    match own("schema").and_then(|s| s.get("openAPIV3Schema")) {
        None => {
            let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
            errors.push(FieldError::invalid(&place, &Value::from(""), detail));
        }
        Some(schema) => {
            let broken = path.child("schema.openAPIV3Schema");
            selectable(fields, schema, &place, &broken, context.options, of.name, errors);
        }
    }
}

fn deprecation(version: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning") else { return };
    let text = warning.as_str().unwrap_or_default();
    // upstream passes a pointer, which is printed as JSON
    let mut refuse = |detail: String| {
        let field = path.as_str().to_owned();
        errors.push(FieldError { kind: FieldErrorKind::Invalid, field, value: warning.to_json(), detail });
    };
    if !flag(version, "deprecated") {
        return refuse("can only be set for deprecated versions".to_owned());
    }
    if text.len() > 256 {
        refuse("must be <= 256 characters long".to_owned());
    }
    if text.is_empty() {
        refuse("must not be an empty string".to_owned());
    }
    let printable = |c: char| {
        let quoted = machinery::value::quote(&c.to_string());
        !quoted.starts_with("\"\\") || matches!(c, '"' | '\\')
    };
    if let Some((i, _)) = text.char_indices().find(|(_, c)| !printable(*c)) {
        refuse(format!("must only contain printable UTF-8 characters; non-printable character found at index {i}"));
    }
}

/// The rules for selectable fields. A schema without a structural form is reported at `broken`.
pub(super) fn selectable(
    fields: &[Value],
    schema: &Value,
    path: &FieldPath,
    broken: &FieldPath,
    options: &Options,
    version: &str,
    errors: &mut Vec<FieldError>,
) {
    if let Some(problem) = structural::unsupported(schema) {
        errors.push(FieldError::invalid(broken, &Value::from(""), problem));
    }
    let mut unique: HashSet<String> = HashSet::new();
    for (i, field) in fields.iter().enumerate() {
        let place = path.index(i).child("jsonPath");
        let json_path = text(field, "jsonPath");
        let value = Value::from(json_path);
        if json_path.is_empty() {
            errors.push(FieldError::required(&place, ""));
            continue;
        }
        let (found, node) = match fieldpath::resolve(json_path, schema, Notation::DotsOnly) {
            Ok(found) => found,
            Err(problem) => {
                errors.push(FieldError::invalid(&place, &value, format!("is an invalid path: {problem}")));
                continue;
            }
        };
        let found = found.as_str();
        if found == "metadata" || found.starts_with("metadata.") || found.starts_with("metadata[") {
            errors.push(FieldError::invalid(&place, &value, "must not point to fields in metadata"));
        }
        if !node.is_some_and(|n| matches!(text(n, "type"), "string" | "boolean" | "integer")) {
            let detail = "must point to a field of type string, boolean or integer. \
                          Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&place, &value, detail));
        }
        if !unique.insert(found.to_owned()) {
            errors.push(FieldError::duplicate(&place, &value));
        }
    }
    let max = super::SELECTABLE_FIELDS_MAX;
    if unique.len() > max && !options.too_many_selectable_fields.contains(version) {
        errors.push(FieldError::too_many(path, unique.len(), max));
    }
}
