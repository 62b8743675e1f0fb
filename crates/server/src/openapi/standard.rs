//! The schemas and parameters that all documents share, stored in `data/`. Names, types and structure are those that
//! kube-apiserver 1.37 publishes; the descriptions are our own.

use std::sync::OnceLock;

use machinery::types::{self, Container, GoBase, GoField};
use machinery::{Map, Release, Text, Value, json};

use super::Dialect;

pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
pub const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
/// Published since 1.36.
const SHARD_INFO: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ShardInfo";
/// A parameter of lists since 1.36.
pub const SHARD_SELECTOR: &str = "shardSelector";
pub const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
pub const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
/// The v3 documents that do not depend on what is served.
pub const FIXED: [&str; 5] = [".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version"];
/// The path parameter of proxies.
pub const PATH: &str = "path";

/// Description of `metadata` in objects and lists.
pub const METADATA: &str = "Metadata that every object of the API has.";

/// The description of the property `apiVersion`.
pub fn api_version_text() -> Value {
    text_of("apiVersion")
}

/// The description of the property `kind`.
pub fn kind_text() -> Value {
    text_of("kind")
}

fn text_of(property: &str) -> Value {
    let path = [STATUS, "properties", property, "description"];
    schemas_v3().at(&path).cloned().unwrap_or_default()
}

/// A reference to a schema.
pub fn reference(dialect: Dialect, name: &str) -> Value {
    [("$ref", Value::from(format!("{}{name}", dialect.prefix())))].into()
}

/// A reference with a description. In v3, `$ref` allows no siblings, so the reference is wrapped in `allOf`.
pub fn described_reference(dialect: Dialect, name: &str, description: &str) -> Value {
    let mut node = match dialect {
        Dialect::V2 => reference(dialect, name),
        Dialect::V3 => [("allOf", Value::Array(vec![reference(dialect, name)]))].into(),
    };
    node.set_at(&["description"], Value::from(description));
    node
}

fn load(text: &str) -> Value {
    machinery::value::decode(text.as_bytes()).unwrap_or_default()
}

fn schemas_v3() -> &'static Value {
    static SCHEMAS: OnceLock<Value> = OnceLock::new();
    SCHEMAS.get_or_init(|| load(include_str!("data/schemas.json")))
}

/// The shared schemas as a release publishes them.
fn schemas_of(release: Release) -> &'static Value {
    static FORMER: [OnceLock<Value>; Release::ALL.len()] = [const { OnceLock::new() }; Release::ALL.len()];
    match release {
        Release::NEWEST => schemas_v3(),
        _ => FORMER[release as usize].get_or_init(|| former_schemas(release)),
    }
}

fn former_schemas(release: Release) -> Value {
    let mut schemas = schemas_v3().clone();
    if release == Release::V1_35 {
        schemas.remove_at(&[LIST_META, "properties", "shardInfo"]);
        schemas.remove_at(&[SHARD_INFO]);
    }
    restore_former_kinds(&mut schemas, release);
    restore_item_defaults(&mut schemas);
    schemas
}

/// The group versions with DeleteOptions that came with 1.37.
const NEW_VERSIONS: [(&str, &str); 3] =
    [("lifecycle.k8s.io", "v1alpha1"), ("scheduling.k8s.io", "v1alpha3"), ("storagemigration.k8s.io", "v1")];

/// The group versions with DeleteOptions that a release has and 1.37 does not.
fn former_versions(release: Release) -> &'static [(&'static str, &'static str)] {
    match release {
        Release::V1_35 => &[("autoscaling", "v2beta1"), ("autoscaling", "v2beta2"), ("scheduling.k8s.io", "v1alpha1")],
        Release::V1_36 => &[("scheduling.k8s.io", "v1alpha2")],
        Release::V1_37 => &[],
    }
}

/// The group versions with DeleteOptions that kube-apiserver knows and client libraries do not.
pub const SERVER_VERSIONS: [(&str, &str); 7] = [
    ("admission.k8s.io", "v1"),
    ("admission.k8s.io", "v1beta1"),
    ("apiextensions.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1beta1"),
    ("apiregistration.k8s.io", "v1"),
    ("apiregistration.k8s.io", "v1beta1"),
    ("imagepolicy.k8s.io", "v1alpha1"),
];

fn restore_former_kinds(schemas: &mut Value, release: Release) {
    let path = [DELETE_OPTIONS, "x-kubernetes-group-version-kind"];
    let Some(kinds) = schemas.at(&path).and_then(Value::as_array) else { return };
    let names = |kind: &Value| (kind.str_at(&["group"]).to_owned(), kind.str_at(&["version"]).to_owned());
    let is = |kind: &Value, (group, version): (&str, &str)| {
        (kind.str_at(&["group"]), kind.str_at(&["version"])) == (group, version)
    };
    let is_new = |kind: &Value| NEW_VERSIONS.iter().any(|new| is(kind, *new));
    let mut kinds: Vec<Value> = kinds.iter().filter(|kind| !is_new(kind)).cloned().collect();
    let former = former_versions(release).iter();
    kinds.extend(former.map(|&(group, version)| json!({"group": group, "kind": "DeleteOptions", "version": version})));
    kinds.sort_by_key(names);
    schemas.set_at(&path, Value::Array(kinds));
}

/// Before 1.37, items of lists and maps have the default of their type.
fn restore_item_defaults(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(restore_item_defaults),
        Value::Object(keywords) => {
            for (key, value) in keywords.iter_mut() {
                if matches!(key.as_str(), "items" | "additionalProperties") {
                    match value.remove_at(&["$ref"]) {
                        Some(name) => *value = json!({"allOf": [{"$ref": name}], "default": {}}),
                        None if value.str_at(&["type"]) == "string" => value.set_at(&["default"], Value::from("")),
                        None => {}
                    }
                }
                restore_item_defaults(value);
            }
        }
        _ => {}
    }
}

fn schemas_v2(release: Release) -> &'static Value {
    static BY_RELEASE: [OnceLock<Value>; Release::ALL.len()] = [const { OnceLock::new() }; Release::ALL.len()];
    BY_RELEASE[release as usize].get_or_init(|| all_to_v2(schemas_of(release)))
}

fn all_to_v2(schemas: &Value) -> Value {
    let schemas = schemas.fields();
    Value::Object(schemas.map(|(name, schema)| (name.clone(), to_v2(schema))).collect())
}

pub fn schema(dialect: Dialect, release: Release, name: &str) -> Option<&'static Value> {
    let all = match dialect {
        Dialect::V2 => schemas_v2(release),
        Dialect::V3 => schemas_of(release),
    };
    all.get(name)
}

/// Converts a v3 schema to v2: a reference has its description as a sibling, defaults are dropped, and a value of
/// several types becomes a string.
pub fn to_v2(schema: &Value) -> Value {
    let mut out = Map::new();
    for (key, value) in schema.fields() {
        match (key.as_str(), value) {
            ("default", _) => {}
            ("oneOf", _) => drop(out.insert("type", Value::from("string"))),
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, property)| (name.clone(), to_v2(property)));
                out.insert("properties", Value::Object(properties.collect()));
            }
            ("items" | "additionalProperties", child) => drop(out.insert(key.clone(), to_v2(child))),
            ("allOf", Value::Array(items)) => {
                let references = items.iter().map(to_v2).filter_map(|item| item.get("$ref").cloned());
                references.for_each(|reference| drop(out.insert("$ref", reference)));
            }
            ("$ref", Value::String(to)) => {
                let to = to.replace(Dialect::V3.prefix(), Dialect::V2.prefix());
                out.insert("$ref", Value::from(to));
            }
            _ => drop(out.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(out)
}

fn parameter_data() -> &'static Value {
    static PARAMETERS: OnceLock<Value> = OnceLock::new();
    PARAMETERS.get_or_init(|| load(include_str!("data/parameters.json")))
}

/// The parameter `key` of an operation: in v2, a reference to a shared parameter if there is one. `fieldManager-patch`
/// is the `fieldManager` of PATCH.
pub fn parameter(dialect: Dialect, key: &str) -> Value {
    match SHARED.iter().find(|(shared, _)| *shared == key) {
        Some((_, name)) if dialect == Dialect::V2 => reference_to(name),
        _ => parameter_of(dialect, key),
    }
}

fn parameter_of(dialect: Dialect, key: &str) -> Value {
    parameter_in(dialect, parameter_data().get(key).cloned().unwrap_or_default())
}

/// The v2 parameter for a request body of the named schema.
pub fn body_parameter(name: &str) -> Value {
    SHARED_BODIES.iter().find(|(body, _)| *body == name).map_or_else(|| body(name), |(_, shared)| reference_to(shared))
}

fn body(name: &str) -> Value {
    let mut body = json!({"in": "body", "name": "body", "schema": (reference(Dialect::V2, name))});
    if name != DELETE_OPTIONS {
        body.set_at(&["required"], Value::Bool(true));
    }
    body
}

/// A query parameter that is a field of options; in v2, a reference to a shared parameter if there is one.
pub fn option_parameter(dialect: Dialect, name: &str, kind: &str, shared: Option<&str>) -> Value {
    match (dialect, shared) {
        (Dialect::V2, Some(shared)) => reference_to(shared),
        _ => parameter_in(dialect, json!({"in": "query", "name": name, "type": kind})),
    }
}

fn reference_to(shared: &str) -> Value {
    [("$ref", Value::from(format!("#/parameters/{shared}")))].into()
}

/// The shared request bodies of v2 documents: schema and parameter name.
const SHARED_BODIES: [(&str, &str); 2] = [(DELETE_OPTIONS, "body-2Y1dVQaQ"), (PATCH, "body-78PwaGsr")];

/// The shared parameters of v2 documents: key and name. kube-apiserver derives the suffix of a name from a hash of the
/// parameter.
const SHARED: [(&str, &str); 21] = [
    ("allowWatchBookmarks", "allowWatchBookmarks-HC2hJt-J"),
    ("continue", "continue-QfD61s0i"),
    ("fieldManager", "fieldManager-Qy4HdaTW"),
    ("fieldManager-patch", "fieldManager-7c6nTn1T"),
    ("fieldSelector", "fieldSelector-xIcQKXFG"),
    ("force", "force-tOGGb0Yi"),
    ("gracePeriodSeconds", "gracePeriodSeconds--K5HaBOS"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "ignoreStoreReadErrorWithClusterBreakingPotential-QbNkfIqj"),
    ("labelSelector", "labelSelector-5Zw57w4C"),
    ("limit", "limit-1NfNmdNH"),
    ("namespace", "namespace-vgWSWtn3"),
    ("orphanDependents", "orphanDependents-uRB25kX5"),
    (PATH, "path-z6Ciiujn"),
    ("pretty", "pretty-tJGM1-ng"),
    ("propagationPolicy", "propagationPolicy-6jk3prlO"),
    ("resourceVersion", "resourceVersion-5WAnf1kx"),
    ("resourceVersionMatch", "resourceVersionMatch-t8XhRHeC"),
    ("sendInitialEvents", "sendInitialEvents-rLXlEK_k"),
    (SHARD_SELECTOR, "shardSelector-Kgyki_3_"),
    ("timeoutSeconds", "timeoutSeconds-yvYezaOC"),
    ("watch", "watch-XNNPZGbK"),
];

/// The options of subresources, whose fields are query parameters.
const OPTIONS: [&str; 7] = [
    "core.v1.NodeProxyOptions",
    "core.v1.PodAttachOptions",
    "core.v1.PodExecOptions",
    "core.v1.PodLogOptions",
    "core.v1.PodPortForwardOptions",
    "core.v1.PodProxyOptions",
    "core.v1.ServiceProxyOptions",
];

/// The type in JSON of a field of options; `None` for objects, which cannot be query parameters.
pub fn option_type(field: &GoField) -> Option<&'static str> {
    match (field.go_type.base, field.go_type.container) {
        (_, Container::Map | Container::MapOfLists | Container::Embedded) | (GoBase::Struct(_), _) => None,
        (GoBase::Bool, _) => Some("boolean"),
        (GoBase::Int32 | GoBase::Int64, _) => Some("integer"),
        (GoBase::Double, _) => Some("number"),
        (GoBase::Text | GoBase::Bytes, _) => Some("string"),
    }
}

/// The shared parameters of v2 documents by name.
pub fn parameters(release: Release) -> &'static Value {
    static PARAMETERS: OnceLock<Value> = OnceLock::new();
    static FORMER: OnceLock<Value> = OnceLock::new();
    let of_release = if release == Release::V1_35 { &FORMER } else { &PARAMETERS };
    of_release.get_or_init(|| {
        let is_published = |(key, _): &&(&str, &str)| *key != SHARD_SELECTOR || release > Release::V1_35;
        let parameters = SHARED
            .iter()
            .filter(is_published)
            .map(|(key, name)| (Text::new_static(name), parameter_of(Dialect::V2, key)));
        let options = OPTIONS.iter().flat_map(|name| types::go_struct(name)).flat_map(|go| &go.fields);
        let options = options.filter_map(|field| {
            let parameter = option_parameter(Dialect::V2, field.name, option_type(field)?, None);
            Some((Text::new_static(field.parameter?), parameter))
        });
        let bodies = SHARED_BODIES.iter().map(|(key, name)| (Text::new_static(name), body(key)));
        Value::Object(parameters.chain(options).chain(bodies).collect())
    })
}

/// The path parameter with the name of an object.
pub fn name_parameter(dialect: Dialect, kind: &str) -> Value {
    let description = format!("name of the {kind}");
    let parameter =
        json!({"description": description, "in": "path", "name": "name", "required": true, "type": "string"});
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
        let text = schemas_v2(Release::NEWEST).to_json();
        assert!(!text.contains("components/schemas") && !text.contains("\"default\":") && !text.contains("allOf"));
        let status = schemas_v2(Release::NEWEST).at(&[STATUS, "properties", "metadata"]).unwrap();
        assert_eq!(status.str_at(&["$ref"]), format!("#/definitions/{LIST_META}"));
        assert!(status.get("description").is_some());
    }

    #[test]
    fn schemas_have_our_descriptions() {
        assert!(schema(Dialect::V3, Release::NEWEST, SCALE).is_some());
        assert!(schema(Dialect::V3, Release::NEWEST, WATCH_EVENT).is_none());
        assert!(api_version_text().as_str().is_some_and(|text| text.starts_with("Group and version")));
    }

    #[test]
    fn parameters_exist_in_both_versions() {
        let v3 = parameter(Dialect::V3, "limit");
        assert_eq!(v3.get("schema").unwrap().to_json(), r#"{"type":"integer","uniqueItems":true}"#);
        assert_eq!(parameters(Release::NEWEST).str_at(&["limit-1NfNmdNH", "type"]), "integer");
        assert_eq!(parameters(Release::NEWEST).str_at(&["stdin-PSzNhyUC", "name"]), "stdin");
        assert_eq!(parameter(Dialect::V2, "limit").str_at(&["$ref"]), "#/parameters/limit-1NfNmdNH");
        assert_eq!(parameter(Dialect::V2, "dryRun").str_at(&["name"]), "dryRun");
        assert_eq!(parameter_data().as_object().unwrap().len(), SHARED.len() + 2, "all but dryRun and fieldValidation");
        assert_eq!(body_parameter(DELETE_OPTIONS).str_at(&["$ref"]), "#/parameters/body-2Y1dVQaQ");
        assert_eq!(body_parameter(PATCH).str_at(&["$ref"]), "#/parameters/body-78PwaGsr");
    }
}
