//! Warnings about accepted CRDs: formats that are not enforced.

use machinery::Value;

use super::hoist::Hoisted;
use super::openapi::text;
use crate::format::Format;

/// Warnings for a new definition, in the order in which upstream meets the formats, properties by name.
pub fn warnings_on_create(definition: &Value) -> Vec<String> {
    unknown_formats(definition).into_iter().map(warning).collect()
}

/// Warnings for what an update adds.
pub fn warnings_on_update(new: &Value, old: &Value) -> Vec<String> {
    let known = unknown_formats(old);
    unknown_formats(new).into_iter().filter(|f| !known.contains(f)).map(warning).collect()
}

fn warning(format: &str) -> String {
    format!("unrecognized format {}", machinery::value::quote(format))
}

fn unknown_formats(definition: &Value) -> Vec<&str> {
    let spec = Hoisted::of(definition.get("spec").unwrap_or(&Value::Null));
    let mut found = vec![];
    let schemas: Vec<&Value> = spec.schemas().collect();
    schemas.into_iter().for_each(|schema| visit(schema, &mut found));
    found
}

fn visit<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    let format = text(schema, "format");
    if !format.is_empty() && text(schema, "type") == "string" && Format::named(format).is_none() {
        found.push(format);
    }
    super::hoist::children(schema).for_each(|child| visit(child, found));
}
