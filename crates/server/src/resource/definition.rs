//! From a CustomResourceDefinition (v1, as stored) to a [`Resource`].

use std::sync::Arc;

use machinery::{Text, Value};

use super::version::{Column, ScalePaths, Version};
use super::{Conversion, Resource, Rules, kube_aware};
use crate::objects::Objects;

fn text(value: &Value, path: &[&str]) -> Text {
    match value.at(path) {
        Some(Value::String(text)) => text.clone(),
        _ => Text::default(),
    }
}

fn texts(value: &Value, path: &[&str]) -> Vec<Text> {
    let items = value.at(path).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(Text::from).collect()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// Whether a condition of the definition is True.
pub fn condition(definition: &Value, kind: &str) -> bool {
    let conditions = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().any(|c| c.str_at(&["type"]) == kind && c.str_at(&["status"]) == "True")
}

/// The resource that a definition serves; `None` while its names are not accepted.
pub fn from_definition(definition: &Value, objects: &Objects) -> Option<Resource> {
    let established = condition(definition, "Established");
    if !established && !condition(definition, "NamesAccepted") {
        return None;
    }
    let accepted = |key: &str| text(definition, &["status", "acceptedNames", key]);
    let group = text(definition, &["spec", "group"]);
    let plural = text(definition, &["spec", "names", "plural"]);
    let kind = accepted("kind");
    let spec = definition.get("spec")?;
    let preserve = flag(spec, "preserveUnknownFields");
    let listed = spec.get("versions").and_then(Value::as_array)?;
    let storage = listed.iter().position(|v| flag(v, "storage"))?;
    let versions = listed.iter().map(|v| Arc::new(version(v, listed, &group, &kind, preserve))).collect();
    let conversion = match spec.at(&["conversion", "webhook"]) {
        Some(webhook) if spec.str_at(&["conversion", "strategy"]) == "Webhook" => Conversion::Webhook(webhook.clone()),
        _ => Conversion::None,
    };
    let deleting = definition.at(&["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null());
    Some(Resource {
        collection: objects.collection(&group, &plural),
        group,
        plural,
        singular: accepted("singular"),
        kind,
        list_kind: accepted("listKind"),
        short_names: texts(definition, &["status", "acceptedNames", "shortNames"]),
        categories: texts(definition, &["status", "acceptedNames", "categories"]),
        namespaced: spec.str_at(&["scope"]) == "Namespaced",
        versions,
        storage,
        conversion,
        rules: Rules::Custom,
        third_party: false,
        broken: schema::definition::has_bad_bundle(definition),
        established,
        terminating: terminating(definition, deleting),
        fingerprint: fingerprint(definition),
        retired: Arc::new(tokio::sync::watch::Sender::new(false)),
    })
}

/// The parts of a definition that are served: its spec and accepted names, and that it is the same definition.
fn fingerprint(definition: &Value) -> String {
    let part = |path: &[&str]| definition.at(path).map(Value::to_json).unwrap_or_default();
    let (spec, names) = (part(&["spec"]), part(&["status", "acceptedNames"]));
    crate::digest::short(format!("{spec}{names}{}", definition.str_at(&["metadata", "uid"])).as_bytes())
}

/// Creating is refused while instances are to be deleted (corrections crd 9: not any more once they are).
fn terminating(definition: &Value, deleting: bool) -> bool {
    let conditions = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    match conditions.iter().find(|c| c.str_at(&["type"]) == "Terminating") {
        Some(condition) => condition.str_at(&["status"]) == "True",
        None => deleting,
    }
}

fn version(value: &Value, all: &[Value], group: &Text, kind: &Text, preserve: bool) -> Version {
    let openapi = value.at(&["schema", "openAPIV3Schema"]).cloned().unwrap_or_default();
    let mut version = Version::new(text(value, &["name"]), openapi);
    version.served = flag(value, "served");
    version.preserve_unknown_fields = preserve;
    version.deprecation = deprecation(value, all, group, kind);
    version.columns = columns(value);
    let fields = value.get("selectableFields").and_then(Value::as_array).unwrap_or_default();
    let path = |f: &Value| Text::from(f.str_at(&["jsonPath"]).trim_start_matches('.'));
    version.selectable = fields.iter().map(path).collect();
    version.status = value.at(&["subresources", "status"]).is_some_and(|s| !s.is_null());
    version.scale = value.at(&["subresources", "scale"]).filter(|s| !s.is_null()).map(|scale| ScalePaths {
        spec_replicas: text(scale, &["specReplicasPath"]),
        status_replicas: text(scale, &["statusReplicasPath"]),
        label_selector: Some(text(scale, &["labelSelectorPath"])).filter(|path| !path.is_empty()),
    });
    version
}

fn columns(version: &Value) -> Vec<Column> {
    let listed = version.get("additionalPrinterColumns").and_then(Value::as_array).unwrap_or_default();
    let column = |c: &Value| Column {
        name: text(c, &["name"]),
        kind: text(c, &["type"]),
        format: text(c, &["format"]),
        description: text(c, &["description"]),
        priority: c.get("priority").and_then(Value::as_int).unwrap_or_default(),
        json_path: text(c, &["jsonPath"]),
    };
    listed.iter().map(column).collect()
}

/// The warning of a deprecated version (crd.md 17).
fn deprecation(version: &Value, all: &[Value], group: &Text, kind: &Text) -> Option<Text> {
    if !flag(version, "deprecated") {
        return None;
    }
    let name = version.str_at(&["name"]);
    if let Some(given) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(given.into());
    }
    let better = all
        .iter()
        .filter(|v| flag(v, "served") && !flag(v, "deprecated"))
        .map(|v| v.str_at(&["name"]))
        .min_by(|a, b| kube_aware(a, b))
        .filter(|best| kube_aware(best, name).is_lt());
    let better = better.map(|best| format!("; use {group}/{best} {kind}")).unwrap_or_default();
    Some(Text::from(format!("{group}/{name} {kind} is deprecated{better}")))
}
