//! The rules for embedded resources: they need `apiVersion`, `kind` and valid metadata. These rules are never
//! ratcheted.

use cel::SchemaOf;
use machinery::{FieldError, Map, Release, Value, names};

use crate::at::errors_at;
use crate::metadata;
use crate::path::Path;
use crate::program::Node;

/// Validates all embedded resources in `value`, and `value` itself if it counts as one.
pub(crate) fn validate(
    value: &Value,
    node: &Node,
    schema_of: SchemaOf,
    path: &Path<'_>,
    release: Release,
    errors: &mut Vec<FieldError>,
) {
    if schema_of == SchemaOf::Value && !node.below.embedded {
        return;
    }
    match value {
        Value::Object(map) => {
            if schema_of == SchemaOf::Resource {
                embedded(map, path, release, errors);
            }
            for (key, inner) in map.iter() {
                if let Some(field) = node.field(key) {
                    validate(inner, field, field.schema_of(), &Path::field(path, key), release, errors);
                } else if let Some(field) = node.additional.node() {
                    validate(inner, field, field.schema_of(), &Path::Bracket(path, key), release, errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = &node.items else { return };
            for (i, item) in items.iter().enumerate() {
                validate(item, inner, inner.schema_of(), &Path::Index(path, i), release, errors);
            }
        }
        _ => {}
    }
}

fn embedded(map: &Map, path: &Path<'_>, release: Release, errors: &mut Vec<FieldError>) {
    for key in ["apiVersion", "kind"] {
        let place = Path::Field(path, key).field_path();
        let problem = match map.get(key) {
            None => {
                errors.push(FieldError::required(&place, ""));
                continue;
            }
            Some(Value::String(text)) if text.is_empty() => Some("must not be empty".to_owned()),
            Some(Value::String(text)) if key == "kind" => kind_problem(text),
            Some(Value::String(text)) => metadata::group_version(text).err(),
            Some(_) => Some("must be a string".to_owned()),
        };
        if let (Some(problem), Some(value)) = (problem, map.get(key)) {
            errors.push(FieldError::invalid(&place, value, problem));
        }
    }
    if map.contains_key("metadata") {
        meta(map, path, release, errors);
    }
}

pub(crate) fn kind_problem(kind: &str) -> Option<String> {
    let problems = names::dns1035_label(&kind.to_lowercase());
    (!problems.is_empty()).then(|| format!("may have mixed case, but should otherwise match: {}", problems.join(",")))
}

fn meta(map: &Map, path: &Path<'_>, release: Release, all: &mut Vec<FieldError>) {
    let place = Path::Field(path, "metadata").field_path();
    let mut copy: Map = map.get_key_value("metadata").map(|(k, v)| (k.clone(), v.clone())).into_iter().collect();
    if let Err(error) = metadata::coerce(&mut copy, crate::metadata::Malformed::Refuse) {
        let given = map.get("metadata").cloned().unwrap_or_default();
        all.push(FieldError::invalid(&place, &given, error));
        return;
    }
    let meta = copy.remove("metadata").unwrap_or_default();
    let mut errors = errors_at(&place, &meta, None, release, |meta| {
        meta.field("generateName").check_text(names::path_segment_prefix);
        meta.field("name").check_text_unless_empty(names::path_segment);
        meta.field("namespace").check_text_unless_empty(names::dns1123_label);
        metadata::validate_common(meta);
    });
    if release >= Release::V1_37 {
        machinery::field::drop_repetitions(&mut errors);
    }
    all.append(&mut errors);
}
