//! Request bodies and stored objects read as typed definitions.

use machinery::{Map, Value};

use crate::shape::{self, DEFINITION, DEFINITION_BETA, TypeError};

/// The versions of the definition API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVersion {
    V1,
    V1Beta1,
}

/// A definition in the shape of its version, and the paths of members that its type doesn't know.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    pub definition: Value,
    pub unknown: Vec<String>,
}

/// Reads a body as a definition in the form of `version`, with that version's defaults. An error's text is what follows
/// `… cannot be handled as a CustomResourceDefinition: ` in the response 400; which of several is reported depends on their order
/// in the document ([`shape::first_error`]).
///
/// What validation sees though no JSON of a definition shows it, such as empty lists, stays visible; [`to_stored`] drops
/// it.
pub fn decode(body: &Value, version: ApiVersion) -> Result<Decoded, Vec<TypeError>> {
    let shape = match version {
        ApiVersion::V1 => &DEFINITION,
        ApiVersion::V1Beta1 => &DEFINITION_BETA,
    };
    let read = shape::read_request(body, shape);
    if !read.errors.is_empty() {
        return Err(match version {
            ApiVersion::V1 => read.errors,
            ApiVersion::V1Beta1 => read.errors.into_iter().map(|error| error.in_package("v1beta1")).collect(),
        });
    }
    let mut definition = read.value;
    // validation finds nothing in empty lists of names, and hidden fields have no owner
    for list in ["shortNames", "categories"] {
        if definition.at(&["spec", "names", list]).and_then(Value::as_array).is_some_and(<[Value]>::is_empty) {
            definition.remove_at(&["spec", "names", list]);
        }
    }
    match version {
        ApiVersion::V1 => default(&mut definition),
        ApiVersion::V1Beta1 => super::beta::default(&mut definition),
    }
    Ok(Decoded { definition, unknown: read.unknown })
}

/// The form in which a valid definition is stored and shown. Upstream's validation has brought the metadata of embedded
/// resources in defaults into shape on its way.
pub fn to_stored(definition: &Value) -> Value {
    let mut stored = shape::read(definition, &DEFINITION).value;
    if let Some(versions) = stored.get_mut("spec").and_then(|s| s.get_mut("versions")).and_then(Value::as_array_mut) {
        let schemas = versions.iter_mut().filter_map(|v| v.get_mut("schema")?.get_mut("openAPIV3Schema"));
        schemas.for_each(super::defaults::coerce_embedded);
    }
    stored
}

/// Sets the defaults of v1.
pub fn default(definition: &mut Value) {
    if let Some(spec) = definition.get_mut("spec") {
        default_names(spec);
        if spec.get("conversion").is_none() {
            spec.set_at(&["conversion"], Value::from([("strategy", Value::from("None"))]));
        }
        let webhook = spec.at(&["conversion", "webhook"]);
        let blank =
            |w: &Value| w.get("clientConfig").is_none() && w.get("conversionReviewVersions").is_none_or(Value::is_null);
        if webhook.is_some_and(blank) {
            spec.remove_at(&["conversion", "webhook"]);
        }
        let service = ["conversion", "webhook", "clientConfig", "service"];
        if spec.at(&service).is_some_and(|s| s.get("port").is_none()) {
            spec.set_at(&["conversion", "webhook", "clientConfig", "service", "port"], Value::Int(443));
        }
    }
    default_stored_versions(definition);
}

pub(super) fn default_names(spec: &mut Value) {
    let kind = spec.str_at(&["names", "kind"]).to_owned();
    if spec.str_at(&["names", "singular"]).is_empty() && !kind.is_empty() {
        spec.set_at(&["names", "singular"], Value::from(kind.to_lowercase()));
    }
    if spec.str_at(&["names", "listKind"]).is_empty() && !kind.is_empty() {
        spec.set_at(&["names", "listKind"], Value::from(format!("{kind}List")));
    }
}

pub(super) fn default_stored_versions(definition: &mut Value) {
    let stored = definition.at(&["status", "storedVersions"]).and_then(Value::as_array).unwrap_or_default();
    if !stored.is_empty() {
        return;
    }
    if let Some(name) = storage_version(definition).map(Value::from) {
        definition.set_at(&["status", "storedVersions"], Value::Array(vec![name]));
    }
}

/// The name of the first version that is marked as storage version.
pub(super) fn storage_version(definition: &Value) -> Option<&str> {
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array)?;
    versions.iter().find(|v| v.get("storage") == Some(&Value::Bool(true))).map(|v| v.str_at(&["name"]))
}

/// The members of an object, or none.
pub(super) fn members(value: &Value) -> Map {
    value.as_object().cloned().unwrap_or_default()
}
