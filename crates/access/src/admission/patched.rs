//! Objects after a patch: their decoding, and their conversion to the version of the request.

use base::wording;
use machinery::{Status, Value};
use resource::{Version, group_version, type_meta_error};

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
    let Value::Object(fields) = &object else {
        return Err(wording::not_an_object(if object.is_null() { "number" } else { object.json_type() }));
    };
    type_meta_error(fields).map_or(Ok(()), Err)?;
    let built_in = version.built_in.filter(|_| attributes.is_versioned());
    if built_in.is_some() {
        for key in ["apiVersion", "kind"] {
            if object.get(key).is_none_or(|value| value.as_str() == Some("") || value.is_null()) {
                object.set_at(&[key], Value::from(before.str_at(&[key])));
            }
        }
    }
    if object.str_at(&["kind"]).is_empty() {
        return Err(format!("Object 'Kind' is missing in '{}'", object.to_json()));
    }
    let Some(shaped) = built_in.map(|built_in| built_in.shape(&object)) else { return Ok(object) };
    shaped.error.map_or(Ok(()), Err)?;
    if unknown == Unknown::Dropped || shaped.unknown.is_empty() {
        return Ok(object);
    }
    let unknown: Vec<String> = shaped.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    Err(format!("strict decoding error: {}", unknown.join(", ")))
}

/// Converts an object that plugins have changed in the version `from` to the version of the request. That of a custom resource is
/// converted from the version that it has now, which they may have changed as well. As in kube-apiserver, what its schema does not
/// declare is pruned later, and counts for the generation.
pub async fn in_request_version(
    attributes: &Attributes<'_>,
    object: Value,
    from: &Version,
) -> Result<Value, ConversionError> {
    let (resource, to) = (attributes.resource, attributes.version);
    if !attributes.is_versioned() {
        return Ok(object);
    }
    if !resource.is_custom() {
        return resource.convert(object, from, to).await.map_err(ConversionError::Failed);
    }
    refusal(attributes, &object).map_or(Ok(()), |why| Err(ConversionError::Refused(why)))?;
    resource.convert_unpruned(object, to).await.map_err(ConversionError::Failed)
}

/// Why an object is not converted.
pub enum ConversionError {
    /// It does not have a version of its resource.
    Refused(String),
    Failed(Status),
}

impl From<ConversionError> for Status {
    fn from(error: ConversionError) -> Status {
        match error {
            ConversionError::Refused(why) => Status::untyped(500, why),
            ConversionError::Failed(status) => status,
        }
    }
}

/// The error of a custom resource whose `apiVersion` is not a version of its resource.
pub fn refusal(attributes: &Attributes<'_>, object: &Value) -> Option<String> {
    let resource = attributes.resource;
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if resource.group != group {
        let wanted = group_version(&resource.group, &attributes.version.name);
        return Some(format!(
            "{group}/{version}, Kind={kind} is unstructured and is not suitable for converting to \"{wanted}\""
        ));
    }
    let is_known = resource.version(version).is_some();
    (!is_known).then(|| format!("request to convert CR from an invalid group/version: {api_version}"))
}
