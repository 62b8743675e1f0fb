//! The rules for `spec.versions`.

use std::collections::{HashMap, HashSet};

use cel::rules::{Notation, resolve_field_path};
use machinery::Value;
use machinery::types::internal_json;

use super::hoist::Hoisted;
use super::openapi::{flag, text};
use super::options::Options;
use super::{names, schema, structural, subresources};
use crate::at::At;

pub(super) fn validate<'v>(at: At<'_, 'v>, spec: &Hoisted<'v>, context: &schema::ValidationContext<'_>) {
    let versions = at.field("versions");
    // upstream finds a version by its name, which another one may share
    let mut with_status = HashMap::new();
    for version in spec.versions {
        with_status.entry(text(version, "name")).or_insert(version.at(&["subresources", "status"]).is_some());
    }
    for version in versions.items() {
        names::validate_label(version.field_or_empty("name"));
        let name = version.text("name");
        let of = schema::SchemaVersion { name, has_status: with_status.get(name).is_some_and(|status| *status) };
        validate_version(version, spec, of, context);
    }
    let beta = context.options.beta.as_ref();
    versions.extend(beta.map(|beta| beta.errors.clone()).unwrap_or_default());
    let names: Vec<&str> = at.texts("versions", "name");
    let refuse = |why: &str| versions.shown_verbatim(&printed(spec)).invalid(why);
    if names.iter().collect::<HashSet<_>>().len() < names.len() {
        refuse("must contain unique version names");
    }
    if spec.versions.iter().filter(|v| flag(v, "storage")).count() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
    let first = names.first().copied().unwrap_or_default();
    let given = beta.map_or(first, |beta| &beta.version);
    if given.is_empty() {
        return;
    }
    at.field("version").showing(&Value::from(given), |version| {
        names::validate_label(version);
        let is_other = given != first && !names.is_empty();
        version.invalid_if(is_other, "must match the first version in spec.versions");
    });
}

/// The whole list, as upstream's internal version prints it.
fn printed(spec: &Hoisted<'_>) -> String {
    if spec.spec.get("versions").is_none_or(Value::is_null) {
        return "null".to_owned();
    }
    let versions = spec.versions.iter().map(|version| spec.rest_of(version)).collect();
    internal_json(&versions, "[]apiextensions.CustomResourceDefinitionVersion")
}

fn validate_version<'v>(
    version: At<'_, 'v>,
    spec: &Hoisted<'v>,
    of: schema::SchemaVersion<'_>,
    context: &schema::ValidationContext<'_>,
) {
    deprecation(version);
    let own = |key| version.field(key).with_value(spec.own(version.value, key).unwrap_or(&Value::Null));
    schema::validate_version(own("schema"), of, context);
    subresources::validate(own("subresources"));
    own("additionalPrinterColumns").items().for_each(|column| subresources::validate_column(column));
    let absent = "may only be set when `version.schema.openAPIV3Schema` is not included";
    selectable(own("selectableFields"), own("schema"), absent, context.options, of.name);
}

fn deprecation(version: At) {
    let Some(warning) = version.field_if_given("deprecationWarning") else { return };
    // upstream passes a pointer, which is printed as JSON
    let (text, warning) = (warning.as_text(), warning.shown_as_json());
    if !version.is_true("deprecated") {
        return warning.invalid("can only be set for deprecated versions");
    }
    warning.invalid_if(text.len() > 256, "must be <= 256 characters long");
    warning.invalid_if(text.is_empty(), "must not be an empty string");
    let printable = |c: char| {
        let quoted = machinery::value::quote(&c.to_string());
        !quoted.starts_with("\"\\") || matches!(c, '"' | '\\')
    };
    if let Some((i, _)) = text.char_indices().find(|(_, c)| !printable(*c)) {
        let why = format!("must only contain printable UTF-8 characters; non-printable character found at index {i}");
        warning.invalid(why);
    }
}

/// The rules for selectable fields. Their schema is in the field `openAPIV3Schema` of `validation`; `absent` is the error if there is
/// none.
pub(super) fn selectable(fields: At, validation: At, absent: &str, options: &Options, version: &str) {
    if fields.items().len() == 0 {
        return;
    }
    let Some(schema) = validation.field_if_given("openAPIV3Schema") else {
        return fields.shown_as_text("").invalid(absent);
    };
    if let Some(problem) = structural::unsupported(schema.value) {
        schema.shown_as_text("").invalid(problem);
    }
    let mut unique: HashSet<String> = HashSet::new();
    for field in fields.items() {
        let path = field.field("jsonPath");
        if path.as_text().is_empty() {
            path.required("");
            continue;
        }
        let (found, node) = match resolve_field_path(path.as_text(), schema.value, Notation::DotsOnly) {
            Ok(found) => found,
            Err(problem) => {
                path.invalid(format!("is an invalid path: {problem}"));
                continue;
            }
        };
        let found = found.as_str();
        let is_meta = found == "metadata" || found.starts_with("metadata.") || found.starts_with("metadata[");
        path.invalid_if(is_meta, "must not point to fields in metadata");
        let is_simple = node.is_some_and(|n| matches!(text(n, "type"), "string" | "boolean" | "integer"));
        let detail = "must point to a field of type string, boolean or integer. \
                      Enum string fields and strings with formats are allowed.";
        path.invalid_if(!is_simple, detail);
        if !unique.insert(found.to_owned()) {
            path.duplicate();
        }
    }
    let max = super::SELECTABLE_FIELDS_MAX;
    if unique.len() > max && !options.too_many_selectable_fields.contains(version) {
        fields.too_many(unique.len(), max);
    }
}
