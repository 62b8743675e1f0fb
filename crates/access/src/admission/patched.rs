//! Decoding of objects after a patch.

use base::wording;
use machinery::Value;
use resource::{Version, group_version};

use super::Attributes;

/// Whether a typed object may have unknown fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Dropped,
    Refused,
}

/// Decodes a patched object; a typed object without apiVersion and kind keeps its own. Fails with a one-line message.
pub fn decoded(
    attributes: &Attributes<'_>,
    version: &Version,
    before: &Value,
    mut object: Value,
    unknown: Unknown,
) -> Result<Value, String> {
    if !matches!(object, Value::Object(_)) {
        return Err(wording::not_an_object(if object.is_null() { "number" } else { object.json_type() }));
    }
    let built_in = version.built_in.filter(|_| attributes.is_versioned());
    if built_in.is_some() {
        for key in ["apiVersion", "kind"] {
            if object.get(key).is_none_or(|value| value.as_str() == Some("") || value.is_null()) {
                object.set_at(&[key], Value::from(before.str_at(&[key])));
            }
        }
    }
    type_error(&object).map_or(Ok(()), Err)?;
    let Some(shaped) = built_in.map(|built_in| built_in.shape(&object)) else { return Ok(object) };
    shaped.error.map_or(Ok(()), Err)?;
    if unknown == Unknown::Dropped || shaped.unknown.is_empty() {
        return Ok(object);
    }
    let unknown: Vec<String> = shaped.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    Err(format!("strict decoding error: {}", unknown.join(", ")))
}

fn type_error(object: &Value) -> Option<String> {
    for key in ["apiVersion", "kind"] {
        if let Some(other) = object.get(key).filter(|found| !matches!(found, Value::String(_) | Value::Null)) {
            let found = other.json_type();
            return Some(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field .{key} of type string"
            ));
        }
    }
    object.str_at(&["kind"]).is_empty().then(|| format!("Object 'Kind' is missing in '{}'", object.to_json()))
}

/// The error of a custom resource whose apiVersion or kind a patch has changed.
pub fn conversion_error(attributes: &Attributes<'_>, object: &Value) -> Option<String> {
    let resource = attributes.resource;
    let wanted = group_version(&resource.group, &attributes.version.name);
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    if !resource.is_custom() || !attributes.is_versioned() || api_version == wanted {
        return None;
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(format!("{group}/{version}, Kind={kind} is unstructured and is not suitable for converting to \"{wanted}\""))
}
