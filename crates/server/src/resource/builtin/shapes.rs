//! The Go shapes of shipped kinds, and the types that server-side apply sees in them.

use machinery::{Value, json};
use schema::definition::{ApiVersion, decode};
use schema::shape::{self, OBJECT_META, Shape, Struct, TEXT, given, non_empty};

use super::Shaped;

fn shaped(value: &Value, shape: &'static Struct) -> Shaped {
    let read = shape::read(value, shape);
    Shaped { value: read.value, unknown: read.unknown, error: read.error }
}

static BYTES: Shape = Shape::Bytes;

static CONFIG_MAP: Struct = Struct {
    name: "ConfigMap",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("binaryData", Shape::Map("map[string][]uint8", &BYTES)),
        non_empty("data", Shape::Map("map[string]string", &TEXT)),
        given("immutable", Shape::Bool),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
    ],
};

static SECRET: Struct = Struct {
    name: "Secret",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("data", Shape::Map("map[string][]uint8", &BYTES)),
        given("immutable", Shape::Bool),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        non_empty("stringData", Shape::Map("map[string]string", &TEXT)),
        non_empty("type", Shape::Text("v1.SecretType")),
    ],
};

static FINALIZER: Shape = Shape::Text("v1.FinalizerName");

static NAMESPACE_SPEC: Struct =
    Struct { name: "NamespaceSpec", fields: &[non_empty("finalizers", Shape::List("[]v1.FinalizerName", &FINALIZER))] };

static NAMESPACE_CONDITION: Struct = Struct {
    name: "NamespaceCondition",
    fields: &[
        given("lastTransitionTime", Shape::Time),
        non_empty("message", TEXT),
        non_empty("reason", TEXT),
        shape::always("status", Shape::Text("v1.ConditionStatus")),
        shape::always("type", Shape::Text("v1.NamespaceConditionType")),
    ],
};

static NAMESPACE_CONDITION_SHAPE: Shape = Shape::Struct(&NAMESPACE_CONDITION);

static NAMESPACE_STATUS: Struct = Struct {
    name: "NamespaceStatus",
    fields: &[
        non_empty("conditions", Shape::List("[]v1.NamespaceCondition", &NAMESPACE_CONDITION_SHAPE)),
        non_empty("phase", Shape::Text("v1.NamespacePhase")),
    ],
};

static NAMESPACE: Struct = Struct {
    name: "Namespace",
    fields: &[
        non_empty("apiVersion", TEXT),
        non_empty("kind", TEXT),
        given("metadata", Shape::Struct(&OBJECT_META)),
        shape::always("spec", Shape::Struct(&NAMESPACE_SPEC)),
        shape::always("status", Shape::Struct(&NAMESPACE_STATUS)),
    ],
};

static SELF_SUBJECT_REVIEW: Struct = Struct {
    name: "SelfSubjectReview",
    fields: &[non_empty("apiVersion", TEXT), non_empty("kind", TEXT), given("metadata", Shape::Struct(&OBJECT_META))],
};

pub fn self_subject_review(value: &Value) -> Shaped {
    shaped(value, &SELF_SUBJECT_REVIEW)
}

pub fn config_map(value: &Value) -> Shaped {
    shaped(value, &CONFIG_MAP)
}

pub fn secret(value: &Value) -> Shaped {
    shaped(value, &SECRET)
}

pub fn namespace(value: &Value) -> Shaped {
    shaped(value, &NAMESPACE)
}

pub fn definition(value: &Value) -> Shaped {
    match decode(value, ApiVersion::V1) {
        Ok(decoded) => Shaped { value: decoded.definition, unknown: decoded.unknown, error: None },
        Err(error) => Shaped { value: Value::object(), unknown: vec![], error: Some(error) },
    }
}

/// A definition before anything is set.
pub fn zero_definition() -> Value {
    schema::definition::to_stored(&Value::object())
}

/// The schema of a kind as far as merging needs it: list types, map types, patch strategies.
pub fn type_schema(kind: &str) -> Value {
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "object", "additionalProperties": {"type": "string"}});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let list = || json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}});
    match kind {
        "ConfigMap" => object(json!({"data": (texts()), "binaryData": (texts()), "immutable": {"type": "boolean"}})),
        "Secret" => object(json!({
            "data": (texts()), "stringData": (texts()), "immutable": {"type": "boolean"}, "type": (text())
        })),
        "Namespace" => {
            let conditions = json!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "type",
                "items": (condition())
            });
            object(json!({
                "spec": (object(json!({"finalizers": (list())}))),
                "status": (object(json!({"phase": (text()), "conditions": conditions})))
            }))
        }
        "CustomResourceDefinition" => definition_schema(),
        _ => Value::Null,
    }
}

fn condition() -> Value {
    let text = || json!({"type": "string"});
    json!({"type": "object", "properties": {
        "type": (text()), "status": (text()), "reason": (text()), "message": (text()), "lastTransitionTime": (text()),
        "observedGeneration": {"type": "integer"}
    }})
}

fn definition_schema() -> Value {
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
