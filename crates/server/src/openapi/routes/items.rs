//! Path items in the form of a version of OpenAPI.

use std::collections::BTreeMap;

use machinery::{Map, Release, Text, Value, json};

use super::super::Dialect;
use super::super::standard::{self, DELETE_OPTIONS, reference};
use super::{Content, Kind, Parameter, PathOperation};

/// The path items of routes, by path. A parameter that all operations of a path have is listed once, for the path.
pub fn items(routes: &[PathOperation], dialect: Dialect, release: Release) -> Vec<(&str, Value)> {
    let mut paths: BTreeMap<&str, Vec<&PathOperation>> = BTreeMap::new();
    for route in routes {
        paths.entry(&route.path).or_default().push(route);
    }
    paths.into_iter().map(|(path, routes)| (path, item(&routes, dialect, release))).collect()
}

fn item(routes: &[&PathOperation], dialect: Dialect, release: Release) -> Value {
    let is_common = |parameter: &Parameter| routes.iter().all(|route| route.parameters.contains(parameter));
    let mut out = Value::object();
    for route in routes {
        let own = route.parameters.iter().filter(|parameter| !is_common(parameter));
        out.set_at(&[route.method], operation(route, list(own, dialect, release), dialect));
    }
    let shared = routes.iter().take(1).flat_map(|route| &route.parameters).filter(|parameter| is_common(parameter));
    let shared = list(shared, dialect, release);
    if !shared.is_empty() {
        out.set_at(&["parameters"], Value::Array(shared));
    }
    out
}

/// The parameters that the release has, by name.
fn list<'a>(parameters: impl Iterator<Item = &'a Parameter>, dialect: Dialect, release: Release) -> Vec<Value> {
    let shards = Parameter::Named(standard::SHARD_SELECTOR);
    let published = parameters.filter(|parameter| release > Release::V1_35 || **parameter != shards);
    let mut published: Vec<&Parameter> = published.collect();
    published.sort_by_key(|parameter| order(parameter));
    published.into_iter().map(|parameter| value(parameter, dialect)).collect()
}

/// Parameters are sorted by name; those of the path precede those of the query.
fn order(parameter: &Parameter) -> (&str, bool) {
    match parameter {
        Parameter::Named(standard::PATH) => ("path", false),
        Parameter::Named(key) => (key, false),
        Parameter::Name(_) => ("name", false),
        Parameter::Option(name, ..) => (name, true),
    }
}

fn value(parameter: &Parameter, dialect: Dialect) -> Value {
    match parameter {
        Parameter::Named(key) => standard::parameter(dialect, key),
        Parameter::Name(kind) => standard::name_parameter(dialect, kind),
        Parameter::Option(name, kind, shared) => standard::option_parameter(dialect, name, kind, *shared),
    }
}

fn operation(route: &PathOperation, parameters: Vec<Value>, dialect: Dialect) -> Value {
    let mut out = json!({"operationId": (route.id.as_str()), "tags": [(route.tag.as_str())]});
    out.put_text(&["description"], route.description.as_str());
    if let Some((action, Kind { group, version, name })) = &route.action {
        out.set_at(&["x-kubernetes-action"], Value::from(*action));
        let kind = json!({"group": (group.as_str()), "version": (version.as_str()), "kind": (name.as_str())});
        out.set_at(&["x-kubernetes-group-version-kind"], kind);
    }
    match dialect {
        Dialect::V2 => fill_v2(&mut out, route, parameters),
        Dialect::V3 => fill_v3(&mut out, route, parameters),
    }
    out.set_at(&["responses", "401"], json!({"description": "Unauthorized"}));
    out
}

fn fill_v2(out: &mut Value, route: &PathOperation, mut parameters: Vec<Value>) {
    out.set_at(&["schemes"], json!(["https"]));
    for (key, media) in [("consumes", &route.consumes), ("produces", &route.produces)] {
        if !media.is_empty() {
            out.set_at(&[key], media.iter().map(|text| Value::String(Text::new_static(text))).collect());
        }
    }
    if let Some(body) = &route.body {
        parameters.insert(0, standard::body_parameter(body));
    }
    set_parameters(out, parameters);
    let Some(content) = &route.response else { return };
    for (code, text) in route.codes {
        let response = json!({"description": (*text), "schema": (schema(content, Dialect::V2))});
        out.set_at(&["responses", code], response);
    }
}

fn fill_v3(out: &mut Value, route: &PathOperation, parameters: Vec<Value>) {
    let of = |media: &[&'static str], schema: Value| {
        let schema = json!({"schema": schema});
        Value::Object(media.iter().map(|m| (Text::new_static(m), schema.clone())).collect::<Map>())
    };
    if let Some(body) = &route.body {
        let mut request = json!({"content": (of(&route.consumes, reference(Dialect::V3, body)))});
        if body != DELETE_OPTIONS {
            request.set_at(&["required"], Value::Bool(true));
        }
        out.set_at(&["requestBody"], request);
    }
    set_parameters(out, parameters);
    let Some(content) = &route.response else { return };
    for (code, text) in route.codes {
        let content = of(&route.produces, schema(content, Dialect::V3));
        out.set_at(&["responses", code], json!({"description": (*text), "content": content}));
    }
}

fn set_parameters(out: &mut Value, parameters: Vec<Value>) {
    if !parameters.is_empty() {
        out.set_at(&["parameters"], Value::Array(parameters));
    }
}

fn schema(content: &Content, dialect: Dialect) -> Value {
    match content {
        Content::Schema(name) => reference(dialect, name),
        Content::Text => json!({"type": "string"}),
    }
}
