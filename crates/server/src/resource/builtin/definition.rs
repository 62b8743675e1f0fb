//! CustomResourceDefinition.

use machinery::field::FieldError;
use machinery::{Value, json};
use schema::definition::{ApiVersion, decode};

use super::{BASE, DEFINITION_GROUP, DEFINITIONS, Form, Shaped, Shipped, columns};

pub const DEFINITION: Shipped = Shipped {
    group: DEFINITION_GROUP,
    kind: "CustomResourceDefinition",
    plural: DEFINITIONS,
    singular: "customresourcedefinition",
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    namespaced: false,
    status: true,
    unconditional_update: false,
    generation: true,
    form: Form::Definition,
    prepare,
    validate,
    validate_status: schema::definition::validate_status_update,
    warnings,
    columns: &[columns::CREATED_AT],
    ..BASE
};

/// A body read as a definition.
pub fn shape(value: &Value) -> Shaped {
    match decode(value, ApiVersion::V1) {
        Ok(decoded) => Shaped { value: decoded.definition, unknown: decoded.unknown, error: None },
        Err(error) => Shaped { value: Value::object(), unknown: vec![], error: Some(error) },
    }
}

/// What a definition is before it is validated: status of its own, generation by its spec.
fn prepare(object: &mut Value, old: Option<&Value>) {
    match old {
        None => schema::definition::prepare_for_create(object),
        Some(old) => schema::definition::prepare_for_update(object, old),
    }
}

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match old {
        None => schema::definition::validate_create(new),
        Some(old) => schema::definition::validate_update(new, old),
    }
}

/// Formats that are not enforced, told once when they appear.
fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    match old {
        None => schema::definition::warnings_on_create(new),
        Some(old) => schema::definition::warnings_on_update(new, old),
    }
}

fn condition() -> Value {
    let text = || json!({"type": "string"});
    json!({"type": "object", "properties": {
        "type": (text()), "status": (text()), "reason": (text()), "message": (text()), "lastTransitionTime": (text()),
        "observedGeneration": {"type": "integer"}
    }})
}

/// What merging needs to know of definitions.
pub fn type_schema() -> Value {
    let text = || json!({"type": "string"});
    let list = || json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}});
    let names = || {
        json!({"type": "object", "properties": {
            "plural": (text()), "singular": (text()), "kind": (text()), "listKind": (text()),
            "shortNames": (list()), "categories": (list())
        }})
    };
    let service = json!({"type": "object", "properties": {
        "namespace": (text()), "name": (text()), "path": (text()), "port": {"type": "integer"}
    }});
    let client = json!({"type": "object", "properties": {"url": (text()), "caBundle": (text()), "service": service}});
    let webhook = json!({"type": "object", "properties": {
        "clientConfig": client, "conversionReviewVersions": (list())
    }});
    let conversion = json!({"type": "object", "properties": {"strategy": (text()), "webhook": webhook}});
    let versions = json!({
        "type": "array", "x-kubernetes-list-type": "atomic",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
    });
    let spec = json!({"type": "object", "properties": {
        "group": (text()), "names": (names()), "scope": (text()), "versions": versions, "conversion": conversion,
        "preserveUnknownFields": {"type": "boolean"}
    }});
    let conditions = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": (condition())
    });
    let status = json!({"type": "object", "properties": {
        "conditions": conditions, "acceptedNames": (names()), "storedVersions": (list()),
        "observedGeneration": {"type": "integer"}
    }});
    json!({"type": "object", "properties": {"spec": spec, "status": status}})
}
