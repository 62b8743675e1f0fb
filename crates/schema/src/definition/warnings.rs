//! Warnings about accepted CRDs: formats that are not enforced, and sets that are not merged.

use std::collections::HashSet;

use machinery::{Release, Value};

use super::hoist::{Hoisted, schema_has};
use super::openapi::{items, text};
use crate::format::Format;

/// Warnings about a new definition, in the order in which upstream finds the formats. Properties are visited by name.
pub fn warnings_on_create(definition: &Value, release: Release) -> Vec<String> {
    let formats = unknown_formats(definition, release).into_iter().map(warning);
    formats.chain(unmerged_sets(definition, release)).collect()
}

/// Warnings about what an update adds.
pub fn warnings_on_update(new: &Value, old: &Value, release: Release) -> Vec<String> {
    let known: HashSet<&str> = unknown_formats(old, release).into_iter().collect();
    let known_sets = unmerged_sets(old, release);
    let formats = unknown_formats(new, release).into_iter().filter(|format| !known.contains(format)).map(warning);
    formats.chain(unmerged_sets(new, release).into_iter().filter(|set| !known_sets.contains(set))).collect()
}

fn warning(format: &str) -> String {
    format!("unrecognized format {}", machinery::value::quote(format))
}

fn unknown_formats(definition: &Value, release: Release) -> Vec<&str> {
    let spec = Hoisted::of(definition.get("spec").unwrap_or(&Value::Null));
    let mut found = vec![];
    let schemas: Vec<&Value> = spec.schemas().collect();
    schemas.into_iter().for_each(|schema| visit(schema, release, &mut found));
    found
}

fn visit<'a>(schema: &'a Value, release: Release, found: &mut Vec<&'a str>) {
    let format = text(schema, "format");
    if !format.is_empty() && !is_recognized(text(schema, "type"), format, release) {
        found.push(format);
    }
    super::hoist::children(schema).for_each(|child| visit(child, release, found));
}

/// Whether a type has this format. Before 1.36, only formats of strings were checked.
fn is_recognized(kind: &str, format: &str, release: Release) -> bool {
    match kind {
        "string" => Format::named(format).is_some(),
        _ if release < Release::V1_36 => true,
        "" => Format::named(format).is_some(),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Warnings about sets of objects or lists, which server-side apply replaces as a whole.
fn unmerged_sets(definition: &Value, release: Release) -> Vec<String> {
    if release < Release::V1_37 {
        return vec![];
    }
    let spec = Hoisted::of(definition.get("spec").unwrap_or(&Value::Null));
    let is_unmerged = |schema: &Value, kind: &str| {
        text(schema, "x-kubernetes-list-type") == "set"
            && items(schema).is_some_and(|items| text(items, "type") == kind)
    };
    let has = |kind: &&str| spec.schemas().any(|schema| schema_has(schema, &|node| is_unmerged(node, kind)));
    let warning = |kind: &str| {
        format!(
            "x-kubernetes-list-type: set for items of type {} is not supported by server-side apply or CEL validation rules",
            machinery::value::quote(kind)
        )
    };
    ["array", "object"].into_iter().filter(has).map(warning).collect()
}
