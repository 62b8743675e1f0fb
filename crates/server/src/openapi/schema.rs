//! The published schemas of custom resources: nearly verbatim in v3, reduced to the keywords that kubectl understands in v2.
//!
//! Invariant: every schema is published. A schema that is not structural is published as a free-form object.

use machinery::{Map, Release, Text, Value, json, types};

use super::Dialect;
use super::index::ServedResource;
use super::standard::{self, LIST_META, METADATA, OBJECT_META, described_reference, reference};

/// A kind in one version.
#[derive(Clone)]
pub struct Kind {
    pub group: String,
    pub version: String,
    pub name: String,
}

pub fn name(served: &ServedResource, kind: &str) -> String {
    let (group, version) = (&served.resource.group, &served.version.name);
    if served.version.built_in.is_some() {
        return built_in_name(group, version, kind);
    }
    let labels: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", labels.join("."))
}

pub fn built_in_name(group: &str, version: &str, kind: &str) -> String {
    let name = format!("{}.{version}.{kind}", types::go_package(group));
    // the table of types does not have the legacy APIs; they use the package of v1
    let of_stable = || {
        let stable = types::openapi_name(&format!("{}.v1.{kind}", types::go_package(group)))?;
        Some(stable.replace(".v1.", &format!(".{version}.")))
    };
    types::openapi_name(&name).or_else(of_stable).unwrap_or_else(|| format!("io.k8s.api.{name}"))
}

/// A kind in the group and version of a resource.
pub fn kind(served: &ServedResource, kind: &str) -> Kind {
    let (group, version) = (served.resource.group.to_string(), served.version.name.to_string());
    Kind { group, version, name: kind.to_owned() }
}

pub fn object(served: &ServedResource, dialect: Dialect) -> Value {
    let version = &served.version;
    let openapi = version.openapi();
    let preserve = version.preserve_unknown_fields || openapi.is_true_at(&[PRESERVE]);
    let is_structural = || openapi.as_object().is_some() && schema::definition::is_structural(&openapi);
    let known = version.built_in.is_some() || is_structural();
    let mut root = if !known || (dialect == Dialect::V2 && preserve) {
        json!({"type": "object"})
    } else {
        typed(&openapi, dialect)
    };
    if served.resource.release == Release::V1_35 {
        drop_documentation(&mut root);
    }
    mark(&mut root, served, &served.resource.kind);
    root
}

/// Removes what 1.35 did not publish.
fn drop_documentation(node: &mut Value) {
    for key in ["externalDocs", "example"] {
        node.remove_at(&[key]);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(key) {
            drop_documentation(child);
        }
    }
    let properties = node.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::iter_mut).for_each(|(_, child)| drop_documentation(child));
}

/// A structural schema with the fields that every object has.
fn typed(openapi: &Value, dialect: Dialect) -> Value {
    let mut root = node(openapi, dialect, Position::Structural);
    let metadata = described_reference(dialect, OBJECT_META, METADATA);
    root.set_at(&["properties", "metadata"], metadata);
    type_meta(&mut root, standard::api_version_text(), standard::kind_text());
    root
}

pub fn list(served: &ServedResource, dialect: Dialect) -> Value {
    let resource = &served.resource;
    let mut root = json!({
        "type": "object",
        "description": (format!("A list of {} objects.", resource.kind)),
        "required": ["items"]
    });
    root.set_at(&["properties", "metadata"], described_reference(dialect, LIST_META, METADATA));
    let items = json!({
        "type": "array",
        "description": (format!("The {} of this page.", resource.plural)),
        "items": (reference(dialect, &name(served, &resource.kind)))
    });
    root.set_at(&["properties", "items"], items);
    type_meta(&mut root, standard::api_version_text(), standard::kind_text());
    mark(&mut root, served, &resource.list_kind);
    root
}

fn type_meta(node: &mut Value, api_version: Value, kind: Value) {
    for (property, description) in [("apiVersion", api_version), ("kind", kind)] {
        node.set_at(&["properties", property], json!({"type": "string", "description": description}));
    }
}

/// Sets the extensions of a kind: its group, version and kind, and its selectable fields.
fn mark(root: &mut Value, served: &ServedResource, kind: &str) {
    let kinds = json!([{"group": (&served.resource.group), "version": (&served.version.name), "kind": kind}]);
    root.set_at(&["x-kubernetes-group-version-kind"], kinds);
    if !served.version.selectable.is_empty() {
        let fields = served.version.selectable.iter().map(|path| json!({"fieldPath": path})).collect();
        root.set_at(&["x-kubernetes-selectable-fields"], fields);
    }
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Whether a node is part of the structural schema, or of a value validation below `allOf`, `anyOf`, `oneOf` or `not`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Structural,
    ValueValidation,
}

/// Converts a node and its descendants to their published form.
fn node(schema: &Value, dialect: Dialect, position: Position) -> Value {
    let Some(keywords) = schema.as_object() else { return Value::object() };
    let mut out = Map::new();
    for (key, value) in keywords.iter().filter(|(_, value)| !value.is_null()) {
        if let Some(value) = keyword(key, value, dialect, position) {
            out.insert(key.clone(), value);
        }
    }
    if dialect == Dialect::V2 {
        downgrade(schema, &mut out);
    } else if position == Position::Structural && schema.is_true_at(&[INT_OR_STRING]) {
        expand_int_or_string(&mut out);
    }
    let mut out = Value::Object(out);
    let bare = dialect == Dialect::V2 && schema.is_true_at(&[PRESERVE]);
    if position == Position::Structural && schema.is_true_at(&[EMBEDDED]) && !bare {
        add_embedded_fields(&mut out, dialect);
    }
    out
}

/// Converts one keyword to its published form; `None` if it is not published.
fn keyword(key: &str, value: &Value, dialect: Dialect, position: Position) -> Option<Value> {
    match key {
        "properties" => {
            let properties = value.as_object().filter(|map| !map.is_empty())?;
            Some(Value::Object(properties.iter().map(|(k, v)| (k.clone(), node(v, dialect, position))).collect()))
        }
        "items" | "not" | "additionalProperties" if value.as_object().is_some() => {
            let position = if key == "not" { Position::ValueValidation } else { position };
            (key != "not" || dialect == Dialect::V3).then(|| node(value, dialect, position))
        }
        "additionalProperties" => value.as_bool().map(Value::Bool),
        "allOf" | "anyOf" | "oneOf" => {
            let branches = value.as_array().filter(|list| !list.is_empty() && dialect == Dialect::V3)?;
            Some(branches.iter().map(|branch| node(branch, dialect, Position::ValueValidation)).collect())
        }
        "default" => (dialect == Dialect::V3).then(|| value.clone()),
        "externalDocs" => (position == Position::Structural).then(|| documentation(value)),
        "example" => (position == Position::Structural).then(|| value.clone()),
        "type" | "title" | "description" | "format" | "pattern" => {
            value.as_str().filter(|text| !text.is_empty()).map(Value::from)
        }
        "enum" | "required" => value.as_array().filter(|list| !list.is_empty()).map(|_| value.clone()),
        "nullable" | "exclusiveMaximum" | "exclusiveMinimum" | "uniqueItems" => {
            value.as_bool().filter(|set| *set).map(Value::Bool)
        }
        "maximum" | "minimum" | "multipleOf" | "maxLength" | "minLength" | "maxItems" | "minItems"
        | "maxProperties" | "minProperties" => value.as_float().map(|_| value.clone()),
        _ if key.starts_with("x-kubernetes-") => {
            let empty = *value == Value::Bool(false) || value.as_array().is_some_and(<[Value]>::is_empty);
            (!empty).then(|| value.clone())
        }
        _ => None,
    }
}

/// The non-empty fields of `externalDocs`.
fn documentation(value: &Value) -> Value {
    let entry = |key| Some((key, value.get(key).filter(|text| text.as_str() != Some(""))?.clone()));
    Value::Object(["description", "url"].into_iter().filter_map(entry).map(|(key, text)| (key.into(), text)).collect())
}

/// Reduces a node to the keywords that v2 and kubectl support. `schema` is the original node.
fn downgrade(schema: &Value, out: &mut Map) {
    let nullable = |child: &Value| child.is_true_at(&["nullable"]);
    let properties = schema.get("properties").and_then(Value::as_object);
    let keeps = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        !properties.and_then(|p| p.get(name)).is_some_and(nullable)
    };
    if let Some(Value::Array(required)) = out.get_mut("required") {
        required.retain(keeps);
        if required.is_empty() || schema.get("additionalProperties").is_some_and(nullable) {
            out.remove("required");
        }
    }
    if out.remove("nullable").is_some() {
        ["type", "items", "properties"].iter().for_each(|key| drop(out.remove(key)));
    }
    if schema.is_true_at(&[PRESERVE]) {
        ["items", "properties"].iter().for_each(|key| drop(out.remove(key)));
        if out.get("type").and_then(Value::as_str) == Some("object") {
            out.remove("type");
        }
    }
    if out.get("type").and_then(Value::as_str) == Some("array") && !out.contains_key("items") {
        out.remove("type");
    }
}

/// Expresses `x-kubernetes-int-or-string` as `anyOf` of both types, unless the schema already does.
fn expand_int_or_string(out: &mut Map) {
    let either = || json!([{"type": "integer"}, {"type": "string"}]);
    let is_expanded = |node: &Map| node.get("anyOf").is_some_and(is_either);
    let first = out.get("allOf").and_then(Value::as_array).and_then(<[Value]>::first).and_then(Value::as_object);
    if is_expanded(out) || first.is_some_and(is_expanded) {
        return;
    }
    if !out.contains_key("anyOf") {
        out.insert("anyOf", either());
        return;
    }
    let mut all = vec![json!({"anyOf": (either())})];
    if let Some(Value::Array(rest)) = out.remove("allOf") {
        all.extend(rest);
    }
    out.insert("allOf", Value::Array(all));
}

fn is_either(branches: &Value) -> bool {
    let kinds: Vec<&str> = branches.as_array().unwrap_or_default().iter().map(|b| b.str_at(&["type"])).collect();
    kinds == ["integer", "string"]
}

/// Adds the fields that every embedded object has.
fn add_embedded_fields(node: &mut Value, dialect: Dialect) {
    type_meta(node, standard::api_version_text(), standard::kind_text());
    node.set_at(&["properties", "metadata"], described_reference(dialect, OBJECT_META, METADATA));
    let required = node.items_at(&["required"]);
    let mut required = required.to_vec();
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|known| known.as_str() == Some(name)) {
            required.push(Value::String(Text::new_static(name)));
        }
    }
    node.set_at(&["required"], Value::Array(required));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(text: &str, dialect: Dialect) -> String {
        node(&machinery::value::decode(text.as_bytes()).unwrap(), dialect, Position::Structural).to_json()
    }

    #[test]
    fn v3_schema_is_nearly_verbatim() {
        let cases = [
            (
                r#"{"type":"string","example":"x","externalDocs":{"url":"u","description":""},"default":"d"}"#,
                r#"{"default":"d","example":"x","externalDocs":{"url":"u"},"type":"string"}"#,
            ),
            (
                r#"{"x-kubernetes-int-or-string":true}"#,
                r#"{"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true}"#,
            ),
            (
                r#"{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"minimum":0}]}"#,
                r#"{"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"minimum":0}],"x-kubernetes-int-or-string":true}"#,
            ),
            (
                r#"{"x-kubernetes-int-or-string":true,"anyOf":[{"minimum":0}]}"#,
                r#"{"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]}],"anyOf":[{"minimum":0}],"x-kubernetes-int-or-string":true}"#,
            ),
            (
                r#"{"type":"object","nullable":false,"required":[],"minProperties":0}"#,
                r#"{"minProperties":0,"type":"object"}"#,
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(published(schema, Dialect::V3), expected);
        }
    }

    #[test]
    fn v2_is_reduced() {
        let cases = [
            (r#"{"type":"object","nullable":true,"description":"d","properties":{"a":{}}}"#, r#"{"description":"d"}"#),
            (
                r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{}}}"#,
                r#"{"x-kubernetes-preserve-unknown-fields":true}"#,
            ),
            (
                r#"{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}"#,
                r#"{"x-kubernetes-int-or-string":true}"#,
            ),
            (
                r#"{"type":"string","x-kubernetes-int-or-string":true}"#,
                r#"{"type":"string","x-kubernetes-int-or-string":true}"#,
            ),
            (r#"{"type":"array"}"#, "{}"),
            (
                r#"{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","nullable":true},"b":{"type":"string","default":"x","pattern":"x"}}}"#,
                r#"{"properties":{"a":{},"b":{"pattern":"x","type":"string"}},"required":["b"],"type":"object"}"#,
            ),
            (
                r#"{"type":"object","required":["a"],"additionalProperties":{"type":"string","nullable":true}}"#,
                r#"{"additionalProperties":{},"type":"object"}"#,
            ),
            (r#"{"type":"string","oneOf":[{"pattern":"x"}],"not":{"enum":["y"]}}"#, r#"{"type":"string"}"#),
            (
                r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}"#,
                r#"{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}"#,
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(published(schema, Dialect::V2), expected);
        }
    }

    #[test]
    fn embedded_resources_have_type_and_metadata() {
        let text =
            published(r#"{"type":"object","x-kubernetes-embedded-resource":true,"required":["kind"]}"#, Dialect::V3);
        assert!(text.contains(r#""required":["kind","apiVersion"]"#) && text.contains("meta.v1.ObjectMeta"), "{text}");
    }
}
