//! The schemas and parameters that every document shares. Their wording is what kube-apiserver 1.35 answers with: it is
//! recorded output, kept as data in `data/`.

use std::sync::OnceLock;

use base64::Engine as _;
use machinery::{Map, Value, json};

use super::Dialect;

pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
pub const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

const CONVENTIONS: &str = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// Standard texts of properties.
pub fn api_version_text() -> Value {
    text_of("apiVersion")
}

pub fn kind_text() -> Value {
    text_of("kind")
}

fn text_of(property: &str) -> Value {
    let path = [STATUS, "properties", property, "description"];
    schemas_v3().at(&path).cloned().unwrap_or_default()
}

/// A text that ends in a pointer to the API conventions.
pub fn see(text: &str, anchor: &str) -> Value {
    Value::from(format!("{text} More info: {CONVENTIONS}{anchor}"))
}

/// A reference to a schema.
pub fn reference(dialect: Dialect, name: &str) -> Value {
    let place = match dialect {
        Dialect::V2 => "#/definitions/",
        Dialect::V3 => "#/components/schemas/",
    };
    [("$ref", Value::from(format!("{place}{name}")))].into()
}

/// A reference with a description: v3 has no room for it beside `$ref`.
pub fn described_reference(dialect: Dialect, name: &str, description: Value) -> Value {
    let mut node = match dialect {
        Dialect::V2 => reference(dialect, name),
        Dialect::V3 => [("allOf", Value::Array(vec![reference(dialect, name)]))].into(),
    };
    node.set_at(&["description"], description);
    node
}

fn load(text: &str) -> Value {
    machinery::value::decode(text.as_bytes()).unwrap_or_default()
}

fn schemas_v3() -> &'static Value {
    static SCHEMAS: OnceLock<Value> = OnceLock::new();
    SCHEMAS.get_or_init(|| load(include_str!("data/schemas.json")))
}

fn schemas_v2() -> &'static Value {
    static SCHEMAS: OnceLock<Value> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let schemas = schemas_v3().as_object().into_iter().flat_map(Map::iter);
        Value::Object(schemas.map(|(name, schema)| (name.clone(), downgraded(schema))).collect())
    })
}

/// Shared schemas by name; those of scales only where they are needed.
pub fn schemas(dialect: Dialect, scales: bool) -> impl Iterator<Item = (&'static str, &'static Value)> {
    let all = match dialect {
        Dialect::V2 => schemas_v2(),
        Dialect::V3 => schemas_v3(),
    };
    let entries = all.as_object().into_iter().flat_map(Map::iter).map(|(name, schema)| (name.as_str(), schema));
    entries.filter(move |(name, _)| scales || !name.starts_with(SCALE))
}

/// One of our own v3 schemas as v2 has it: references stand beside descriptions, and there are no defaults.
fn downgraded(node: &Value) -> Value {
    let Value::Object(members) = node else {
        return match node {
            Value::Array(items) => items.iter().map(downgraded).collect(),
            Value::String(text) => Value::from(text.replace("#/components/schemas/", "#/definitions/")),
            other => other.clone(),
        };
    };
    let mut out = Map::new();
    for (key, value) in members.iter().filter(|(key, _)| *key != "default") {
        match (key.as_str(), value) {
            ("allOf", Value::Array(items)) => {
                let references = items.iter().map(downgraded).filter_map(|item| item.get("$ref").cloned());
                references.for_each(|reference| drop(out.insert("$ref", reference)));
            }
            _ => drop(out.insert(key.clone(), downgraded(value))),
        }
    }
    Value::Object(out)
}

fn parameter_data() -> &'static Value {
    static PARAMETERS: OnceLock<Value> = OnceLock::new();
    PARAMETERS.get_or_init(|| load(include_str!("data/parameters.json")))
}

/// A parameter as documents have it: v2 documents share most of them. `fieldManager-patch` is the manager of patches.
pub fn parameter(dialect: Dialect, key: &str) -> Value {
    let parameter = parameter_in(dialect, parameter_data().get(key).cloned().unwrap_or_default());
    match dialect {
        Dialect::V2 if !NOT_SHARED.contains(&key) => shared(&parameter),
        _ => parameter,
    }
}

/// Parameters that v2 documents repeat.
const NOT_SHARED: [&str; 2] = ["dryRun", "fieldValidation"];

/// The parameter for a body of the named type.
pub fn body_parameter(name: &str) -> Value {
    let body = body(name);
    if SHARED_BODIES.contains(&name) { shared(&body) } else { body }
}

const SHARED_BODIES: [&str; 2] = [DELETE_OPTIONS, PATCH];

fn body(name: &str) -> Value {
    let mut body = json!({"in": "body", "name": "body", "schema": (reference(Dialect::V2, name))});
    if name != DELETE_OPTIONS {
        body.set_at(&["required"], Value::Bool(true));
    }
    body
}

fn shared(parameter: &Value) -> Value {
    [("$ref", Value::from(format!("#/parameters/{}", shared_name(parameter))))].into()
}

/// The name under which a v2 document keeps a parameter: its own and the FNV-1 hash of its JSON, whose members stand in the
/// order of Go's types.
fn shared_name(parameter: &Value) -> String {
    let members = ["uniqueItems", "type", "description", "name", "in", "required", "schema"];
    let given = members.iter().filter_map(|name| Some((*name, parameter.get(name)?)));
    let json: Vec<String> = given.map(|(name, value)| format!("\"{name}\":{}", value.to_json())).collect();
    let hash = format!("{{{}}}", json.join(","))
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte));
    let [hash @ .., _, _] = hash.to_be_bytes();
    format!("{}-{}", parameter.str_at(&["name"]), base64::engine::general_purpose::URL_SAFE.encode(hash))
}

/// The parameters that v2 documents share.
pub fn parameters() -> &'static Value {
    static PARAMETERS: OnceLock<Value> = OnceLock::new();
    PARAMETERS.get_or_init(|| {
        let data = parameter_data().as_object().into_iter().flat_map(Map::iter);
        let data = data.filter(|(key, _)| !NOT_SHARED.contains(&key.as_str()));
        let data = data.map(|(_, parameter)| parameter_in(Dialect::V2, parameter.clone()));
        let all = data.chain(SHARED_BODIES.map(body));
        Value::Object(all.map(|parameter| (shared_name(&parameter).into(), parameter)).collect())
    })
}

/// The path parameter with the name of an object.
pub fn name_parameter(dialect: Dialect, kind: &str) -> Value {
    let parameter: Value = [
        ("description", Value::from(format!("name of the {kind}"))),
        ("in", Value::from("path")),
        ("name", Value::from("name")),
        ("required", Value::Bool(true)),
        ("type", Value::from("string")),
    ]
    .into();
    parameter_in(dialect, parameter)
}

fn parameter_in(dialect: Dialect, mut parameter: Value) -> Value {
    match dialect {
        Dialect::V2 => parameter.set_at(&["uniqueItems"], Value::Bool(true)),
        Dialect::V3 => {
            let kind = parameter.remove_at(&["type"]).unwrap_or_default();
            parameter.set_at(&["schema"], [("type", kind), ("uniqueItems", Value::Bool(true))].into());
        }
    }
    parameter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v2_has_neither_defaults_nor_components() {
        let text = schemas_v2().to_json();
        assert!(!text.contains("components/schemas") && !text.contains("\"default\":") && !text.contains("allOf"));
        let status = schemas_v2().at(&[STATUS, "properties", "metadata"]).unwrap();
        assert_eq!(status.str_at(&["$ref"]), format!("#/definitions/{LIST_META}"));
        assert!(status.get("description").is_some());
    }

    #[test]
    fn scales_stand_where_they_are_used() {
        assert_eq!(schemas(Dialect::V3, false).count() + 3, schemas(Dialect::V3, true).count());
        assert!(api_version_text().as_str().is_some_and(|text| text.starts_with("APIVersion defines")));
    }

    #[test]
    fn parameters_are_in_both_dialects() {
        let v3 = parameter(Dialect::V3, "limit");
        assert_eq!(v3.get("schema").unwrap().to_json(), r#"{"type":"integer","uniqueItems":true}"#);
        assert_eq!(parameters().str_at(&["limit-1NfNmdNH", "type"]), "integer");
        // as a kube-apiserver 1.35.3 names them
        for (key, name) in [
            ("limit", "limit-1NfNmdNH"),
            ("pretty", "pretty-tJGM1-ng"),
            ("namespace", "namespace-vgWSWtn3"),
            ("fieldManager", "fieldManager-Qy4HdaTW"),
            ("fieldManager-patch", "fieldManager-7c6nTn1T"),
        ] {
            assert_eq!(parameter(Dialect::V2, key).str_at(&["$ref"]), format!("#/parameters/{name}"), "{key}");
        }
        assert_eq!(parameter(Dialect::V2, "dryRun").str_at(&["name"]), "dryRun");
        assert_eq!(body_parameter(DELETE_OPTIONS).str_at(&["$ref"]), "#/parameters/body-2Y1dVQaQ");
        assert_eq!(body_parameter(PATCH).str_at(&["$ref"]), "#/parameters/body-78PwaGsr");
    }
}
