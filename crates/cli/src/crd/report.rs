//! The report of `pintle crd diff`, in each of its forms.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use clap::ValueEnum;
use client::Result;
use machinery::{Value, json};
use offline::findings::{self, Checked, Finding, Form, Place, Report};
use schema::diff::{Change, Severity};
use sources::{Document, Object};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffForm {
    Text,
    Json,
    /// JUnit XML, with a test case for each definition.
    Junit,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of a workflow of GitHub.
    Github,
}

/// The changes of definitions, by the name of the definition.
#[derive(Default)]
pub struct DiffReport {
    changes: Vec<(String, Change)>,
    /// The manifests of the definitions after the change.
    pub sources: BTreeMap<String, (Document, Object)>,
}

impl DiffReport {
    pub fn of(&mut self, name: &str, changes: Vec<Change>) {
        self.changes.extend(changes.into_iter().map(|change| (name.to_owned(), change)));
    }

    pub fn worst(&self) -> Option<Severity> {
        self.changes.iter().map(|(_, change)| change.severity).max()
    }

    /// The report as a text. Changes that are in no manifest, such as the removal of a definition,
    /// are attributed to the file `input`.
    pub fn text(&self, form: DiffForm, input: &str) -> Result<String> {
        match form {
            DiffForm::Text => Ok(self.changes.iter().map(|(name, change)| text(name, change)).collect()),
            DiffForm::Json => {
                let rows: Vec<Value> = self.changes.iter().map(|(name, change)| row(name, change)).collect();
                Ok(Value::Array(rows).to_json() + "\n")
            }
            DiffForm::Junit => self.printed(Form::Junit, input),
            DiffForm::Sarif => self.printed(Form::Sarif, input),
            DiffForm::Github if self.changes.is_empty() => Ok(String::new()),
            DiffForm::Github => self.printed(Form::Github, input),
        }
    }

    fn printed(&self, form: Form, input: &str) -> Result<String> {
        let mut by_name: BTreeMap<&str, Vec<Finding>> =
            self.sources.keys().map(|name| (name.as_str(), vec![])).collect();
        for (name, change) in &self.changes {
            by_name.entry(name).or_default().push(self.finding(name, change));
        }
        let mut out = vec![];
        let mut report = Report::begin(form.into(), &mut out)?;
        let mut files = std::collections::BTreeSet::new();
        for (name, findings) in by_name {
            let file: Arc<str> =
                self.sources.get(name).map_or_else(|| input.into(), |(document, _)| document.file.clone());
            files.insert(file.clone());
            report.checked(&Checked { file, object: format!("CustomResourceDefinition {name}"), findings })?;
        }
        files.iter().for_each(|_| report.file());
        report.end()?;
        Ok(String::from_utf8(out)?)
    }

    fn finding(&self, name: &str, change: &Change) -> Finding {
        let severity = match change.severity {
            Severity::Breaking => findings::Severity::Error,
            Severity::Warning => findings::Severity::Warning,
            Severity::Info => findings::Severity::Info,
        };
        let (reason, message) = (change.check.name, change.reason.trim());
        let place = self.sources.get(name).map_or_else(Place::default, |(document, object)| {
            let path = path_in_definition(&object.value, change);
            findings::at_field(document, object, severity, reason, &path, message).place
        });
        let (reason, message) = (reason.to_owned(), message.to_owned());
        Finding { severity, reason, message, field: field_of(change), place, releases: vec![] }
    }
}

/// The path in a definition of the field of a change: the schema of the field, or as much of it as can be found.
fn path_in_definition(definition: &Value, change: &Change) -> String {
    let Some(version) = change.version.split_whitespace().last() else { return change.path.clone() };
    let versions = definition.items_at(&["spec", "versions"]);
    let Some(index) = versions.iter().position(|found| found.str_at(&["name"]) == version) else {
        return "spec".to_owned();
    };
    let mut path = format!("spec.versions[{index}]");
    let Some(mut schema) = versions[index].at(&["schema", "openAPIV3Schema"]).filter(|_| !change.path.is_empty())
    else {
        return path;
    };
    path.push_str(".schema.openAPIV3Schema");
    for part in change.path.split('.') {
        let name = part.trim_end_matches("[*]");
        let items = (part.len() - name.len()) / "[*]".len();
        if !name.is_empty() {
            let _ = write!(path, ".properties.{name}");
            schema = schema.at(&["properties", name]).unwrap_or(&Value::Null);
        }
        for _ in 0..items {
            let key = if schema.get("items").is_some() { "items" } else { "additionalProperties" };
            let _ = write!(path, ".{key}");
            schema = schema.get(key).unwrap_or(&Value::Null);
        }
    }
    path
}

/// The version and the path of a change; empty for the definition.
fn field_of(change: &Change) -> String {
    let path = match change.path.as_str() {
        "" if change.version.is_empty() => "",
        "" => "(the version)",
        path => path,
    };
    let parts = [change.version.as_str(), path];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn affected(change: &Change) -> Vec<&'static str> {
    change.check.affects.iter().map(|affected| affected.as_str()).collect()
}

fn text(name: &str, change: &Change) -> String {
    let (severity, check) = (change.severity.as_str(), change.check.name);
    let field = field_of(change);
    let place = if field.is_empty() { name.to_owned() } else { format!("{name} {field}") };
    let reason = change.reason.trim().replace('\n', "\n    ");
    let mut out = format!("{severity}: {place}: {reason} [{check}]\n");
    if !change.check.affects.is_empty() {
        let _ = writeln!(out, "    affects {}", affected(change).join(", "));
    }
    if !change.check.advice.is_empty() {
        let _ = writeln!(out, "    advice: {}", change.check.advice);
    }
    out
}

fn row(name: &str, change: &Change) -> Value {
    let affects: Value = affected(change).into_iter().map(Value::from).collect();
    json!({
        "definition": name, "version": (change.version.as_str()), "path": (change.path.as_str()),
        "severity": (change.severity.as_str()), "check": (change.check.name), "affects": affects,
        "reason": (change.reason.as_str()), "advice": (change.check.advice)
    })
}

#[cfg(test)]
mod tests {
    use schema::diff::checks;

    use super::*;

    #[test]
    fn changes_are_placed_in_the_definition() {
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {"type": "object"}},
            "map": {"type": "object", "additionalProperties": {"type": "array", "items": {}}}}});
        let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
        let definition = json!({"spec": {"versions": [{"name": "v0"}, version]}});
        for (version, path, want) in [
            ("", "spec.names.plural", "spec.names.plural"),
            ("v1", "", "spec.versions[1]"),
            ("v2", "a", "spec"),
            ("v0", "a", "spec.versions[0]"),
            ("v0 -> v1", "list", "spec.versions[1].schema.openAPIV3Schema.properties.list"),
            ("v1", "list[*].a", "spec.versions[1].schema.openAPIV3Schema.properties.list.items.properties.a"),
            ("v1", "map[*][*]", "spec.versions[1].schema.openAPIV3Schema.properties.map.additionalProperties.items"),
        ] {
            let (check, severity) = (&checks::BOUND_ADDED, Severity::Breaking);
            let (version, path) = (version.to_owned(), path.to_owned());
            let change = Change { check, severity, version, path, reason: String::new() };
            assert_eq!(path_in_definition(&definition, &change), want);
        }
    }
}
