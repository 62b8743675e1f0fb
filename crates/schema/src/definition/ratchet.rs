//! Ratcheting: an update must follow those rules that the stored definition already follows.

use std::collections::HashMap;

use machinery::{Release, Value};

use super::beta::beta_errors;
use super::hoist::{Hoisted, schema_has};
use super::openapi::{flag, list, text};
use super::options::Options;
use super::{conversion, is_condition_true, schema, structural};

impl Options {
    pub(super) fn for_update(new: &Value, old: &Value, release: Release) -> Options {
        let null = Value::Null;
        let (new_spec, old_spec) =
            (Hoisted::of(new.get("spec").unwrap_or(&null)), Hoisted::of(old.get("spec").unwrap_or(&null)));
        let established = is_condition_true(old, "Established");
        let any = |holds: &dyn Fn(&Value) -> bool| old_spec.schemas().any(|s| schema_has(s, holds));
        let mut options = Options {
            require_recognized_review_version: conversion::has_recognized_version_or_none(&old_spec),
            require_immutable_names: established,
            require_schema: old_spec.versions.iter().all(|v| v.at(&["schema", "openAPIV3Schema"]).is_some()),
            require_valid_types: !any(&|s| schema::has_unknown_type(s)),
            require_structural: old_spec.schemas().all(structural::is_structural),
            require_pruned_defaults: !old_spec.schemas().any(super::defaults::has_unpruned),
            require_atomic_sets: !any(&schema::has_non_atomic_set),
            require_map_list_keys: !any(&|s| schema::breaks_map_list_rules(s)),
            allow_invalid_ca_bundle: !established || conversion::has_invalid_ca_bundle(&old_spec),
            ..Options::for_create(release)
        };
        options.remember_versions(&new_spec, &old_spec);
        options.remember_expressions(&old_spec);
        options
    }

    /// The rules for a v1beta1 request.
    pub(super) fn of_beta(self, beta: &Value, old: Option<&Value>) -> Options {
        let stored = old.map(|old| Hoisted::of(old.get("spec").unwrap_or(&Value::Null)));
        Options {
            require_schema: false,
            require_valid_types: false,
            require_structural: false,
            allow_defaults: stored.is_some_and(|spec| spec.has_defaults()),
            beta: Some(beta_errors(beta)),
            ..self
        }
    }

    fn remember_versions(&mut self, new: &Hoisted<'_>, old: &Hoisted<'_>) {
        let too_many = |fields: Option<&Value>| {
            fields.and_then(Value::as_array).is_some_and(|f| f.len() > super::SELECTABLE_FIELDS_MAX)
        };
        let (new_top, old_top) = (new.top("selectableFields"), old.top("selectableFields"));
        if too_many(old_top) && new_top == old_top {
            self.too_many_selectable_fields.insert(String::new());
        }
        let mut old_versions = HashMap::new();
        for version in old.versions {
            old_versions.entry(version.str_at(&["name"])).or_insert(version);
        }
        for version in new.versions {
            let name = version.str_at(&["name"]);
            let Some(before) = old_versions.get(name) else { continue };
            let (fields, old_fields) = (new.own(version, "selectableFields"), old.own(before, "selectableFields"));
            if too_many(old_fields) && fields == old_fields {
                self.too_many_selectable_fields.insert(name.to_owned());
            }
            if version.get("schema") == before.get("schema") {
                self.unchanged_versions.insert(name.to_owned());
            }
        }
    }

    fn remember_expressions(&mut self, old: &Hoisted<'_>) {
        for schema in old.schemas() {
            let mut rules = vec![];
            collect_rules(schema, &mut rules);
            for rule in rules {
                self.known_rules.insert(text(rule, "rule").to_owned());
                self.known_messages.insert(text(rule, "messageExpression").to_owned());
            }
        }
    }
}

fn collect_rules<'a>(schema: &'a Value, out: &mut Vec<&'a Value>) {
    match schema {
        Value::Object(map) => {
            out.extend(list(schema, "x-kubernetes-validations"));
            map.iter()
                .filter(|(key, _)| !matches!(key.as_str(), "default" | "example" | "enum"))
                .for_each(|(_, inner)| collect_rules(inner, out));
        }
        Value::Array(inner) => inner.iter().for_each(|i| collect_rules(i, out)),
        _ => {}
    }
}

/// Whether a schema uses anything that requires it to be structural.
pub(super) fn has_extensions(schema: &Value) -> bool {
    ["x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"].iter().any(|key| flag(schema, key))
        || ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type"].iter().any(|k| schema.get(k).is_some())
        || ["x-kubernetes-list-map-keys", "x-kubernetes-validations"].iter().any(|k| !list(schema, k).is_empty())
}
