//! A typed, read-only view of a stored definition: what the registry is built from.

use machinery::{Release, Text, Value};

use super::openapi::{flag, list, text};
use crate::{CompileOptions, ScalePaths, Schema};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamesView {
    pub plural: Text,
    pub singular: Text,
    pub short_names: Vec<Text>,
    pub kind: Text,
    pub list_kind: Text,
    pub categories: Vec<Text>,
}

/// One of `additionalPrinterColumns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    pub name: Text,
    pub kind: Text,
    pub format: Text,
    pub description: Text,
    pub priority: i64,
    pub json_path: Text,
}

#[derive(Clone, Debug)]
pub struct VersionView<'a> {
    pub name: Text,
    pub served: bool,
    pub storage: bool,
    pub deprecated: bool,
    pub deprecation_warning: Option<Text>,
    /// The `openAPIV3Schema`, if there is one.
    pub schema: Option<&'a Value>,
    pub columns: Vec<Column>,
    /// JSON paths.
    pub selectable_fields: Vec<Text>,
    /// The status subresource is enabled.
    pub status: bool,
    pub scale: Option<ScalePaths>,
}

/// Where a conversion webhook is called, and which reviews it understands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookView {
    pub url: Option<Text>,
    /// Namespace, name, path and port of a service.
    pub service: Option<(Text, Text, Text, i64)>,
    /// PEM in base64.
    pub ca_bundle: Text,
    pub review_versions: Vec<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversionView {
    None,
    Webhook(WebhookView),
}

/// See the module.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub name: Text,
    pub uid: Text,
    pub group: Text,
    pub names: NamesView,
    pub accepted_names: NamesView,
    pub scope: Scope,
    pub versions: Vec<VersionView<'a>>,
    pub conversion: ConversionView,
    pub preserve_unknown_fields: bool,
    pub stored_versions: Vec<Text>,
    pub names_accepted: bool,
    pub established: bool,
    /// It is being deleted, or says so itself: nothing new is created.
    pub terminating: bool,
}

impl<'a> View<'a> {
    pub fn new(definition: &'a Value) -> View<'a> {
        let spec = definition.get("spec").unwrap_or(&Value::Null);
        let status = definition.get("status").unwrap_or(&Value::Null);
        let holds = |kind| super::is_condition_true(definition, kind);
        View {
            name: definition.str_at(&["metadata", "name"]).into(),
            uid: definition.str_at(&["metadata", "uid"]).into(),
            group: text(spec, "group").into(),
            names: names(spec.get("names")),
            accepted_names: names(status.get("acceptedNames")),
            scope: if text(spec, "scope") == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
            versions: list(spec, "versions").iter().map(version).collect(),
            conversion: conversion(spec.get("conversion")),
            preserve_unknown_fields: flag(spec, "preserveUnknownFields"),
            stored_versions: texts(status, "storedVersions"),
            names_accepted: holds("NamesAccepted"),
            established: holds("Established"),
            terminating: definition.at(&["metadata", "deletionTimestamp"]).is_some() || holds("Terminating"),
        }
    }

    pub fn version(&self, name: &str) -> Option<&VersionView<'a>> {
        self.versions.iter().find(|v| v.name == name)
    }

    pub fn storage_version(&self) -> Option<&VersionView<'a>> {
        self.versions.iter().find(|v| v.storage)
    }
}

impl VersionView<'_> {
    /// The compiled schema of the version, for a definition with the given `preserveUnknownFields`.
    pub fn compile(&self, preserve_unknown_fields: bool, release: Release) -> Schema {
        let options = CompileOptions { preserve_unknown_fields, scale: self.scale.clone(), release };
        Schema::compile(self.schema.unwrap_or(&Value::Null), &options)
    }
}

fn texts(value: &Value, key: &str) -> Vec<Text> {
    list(value, key).iter().filter_map(Value::as_str).map(Text::from).collect()
}

fn names(value: Option<&Value>) -> NamesView {
    let names = value.unwrap_or(&Value::Null);
    NamesView {
        plural: text(names, "plural").into(),
        singular: text(names, "singular").into(),
        short_names: texts(names, "shortNames"),
        kind: text(names, "kind").into(),
        list_kind: text(names, "listKind").into(),
        categories: texts(names, "categories"),
    }
}

fn version(value: &Value) -> VersionView<'_> {
    let optional = |from: &Value, key: &str| from.get(key).and_then(Value::as_str).map(Text::from);
    let scale = value.at(&["subresources", "scale"]).map(|scale| ScalePaths {
        spec_replicas: text(scale, "specReplicasPath").into(),
        status_replicas: text(scale, "statusReplicasPath").into(),
        label_selector: optional(scale, "labelSelectorPath"),
    });
    VersionView {
        name: text(value, "name").into(),
        served: flag(value, "served"),
        storage: flag(value, "storage"),
        deprecated: flag(value, "deprecated"),
        deprecation_warning: optional(value, "deprecationWarning"),
        schema: value.at(&["schema", "openAPIV3Schema"]),
        columns: list(value, "additionalPrinterColumns").iter().map(column).collect(),
        selectable_fields: list(value, "selectableFields").iter().map(|f| text(f, "jsonPath").into()).collect(),
        status: value.at(&["subresources", "status"]).is_some(),
        scale,
    }
}

fn column(value: &Value) -> Column {
    Column {
        name: text(value, "name").into(),
        kind: text(value, "type").into(),
        format: text(value, "format").into(),
        description: text(value, "description").into(),
        priority: value.get("priority").and_then(Value::as_int).unwrap_or_default(),
        json_path: text(value, "jsonPath").into(),
    }
}

fn conversion(value: Option<&Value>) -> ConversionView {
    let Some(conversion) = value.filter(|c| text(c, "strategy") == "Webhook") else { return ConversionView::None };
    let config = conversion.at(&["webhook", "clientConfig"]).unwrap_or(&Value::Null);
    let service = config.get("service").map(|s| {
        let port = s.get("port").and_then(Value::as_int).unwrap_or(443);
        (text(s, "namespace").into(), text(s, "name").into(), text(s, "path").into(), port)
    });
    let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
    ConversionView::Webhook(WebhookView {
        url: config.get("url").and_then(Value::as_str).map(Text::from),
        service,
        ca_bundle: text(config, "caBundle").into(),
        review_versions: texts(webhook, "conversionReviewVersions"),
    })
}
