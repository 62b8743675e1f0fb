//! Decoding of objects after a patch.

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
        return Err(format!("couldn't get version/kind; json parse error: {}", not_an_object(&object)));
    }
    let built_in = version.built_in.filter(|_| attributes.is_versioned());
    if built_in.is_some() {
        for key in ["apiVersion", "kind"] {
            if object.get(key).is_none_or(|value| value.as_str() == Some("") || value.is_null()) {
                object.set_at(&[key], Value::from(before.str_at(&[key])));
            }
        }
    }
    if let Some(why) = type_error(&object) {
        return Err(why);
    }
    let Some(shaped) = built_in.map(|built_in| built_in.shape(&object)) else { return Ok(object) };
    let unknown_fields: Vec<String> = shaped.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    if let Some(why) = shaped.error {
        return Err(why);
    }
    if unknown == Unknown::Refused && !unknown_fields.is_empty() {
        return Err(format!("strict decoding error: {}", unknown_fields.join(", ")));
    }
    Ok(object)
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

/// Go's error for a document that is not an object.
fn not_an_object(value: &Value) -> String {
    let kind = match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        _ => "number",
    };
    format!(
        "json: cannot unmarshal {kind} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
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
