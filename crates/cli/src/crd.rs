//! `pintle crd diff`: what a change of CustomResourceDefinitions breaks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use machinery::{Value, json};
use offline::engine;
use offline::findings::escapes;
use offline::sources::cluster::{self, Cluster};
use offline::trial;
use schema::definition::{self, ApiVersion};
use schema::diff::{self, Change, Severity};
use tokio::runtime::Runtime;

use crate::{logs, manifests};

#[derive(Subcommand)]
pub enum Crd {
    /// DiffReport what a change of CustomResourceDefinitions breaks, for stored objects, for writers and for readers.
    ///
    /// Compares versions, schemas, CEL rules with their estimated costs, defaults, columns, subresources and conversion.
    /// Equal definitions print nothing. The exit status is 1 if a change is breaking, and 2 if the definitions cannot be
    /// compared.
    Diff(Diff),
}

#[derive(Args)]
pub struct Diff {
    /// The definitions before the change: a file of YAML or JSON, a directory with everything below it, a glob, - for stdin,
    /// git:REF:PATH, or those of a server: kubeconfig for the current context, or kubeconfig:FILE.
    #[arg(value_name = "OLD")]
    pub old: String,

    /// The definitions after the change.
    #[arg(value_name = "NEW")]
    pub new: String,

    /// Objects to try the change on, as for OLD: each is updated, with ratcheting, and created anew, without being changed.
    #[arg(long, value_name = "OBJECTS")]
    pub objects: Option<String>,

    /// Let warnings fail as well.
    #[arg(long)]
    pub strict: bool,

    /// The form of the report; github for annotations of a workflow.
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: DiffForm,
}

/// The forms of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffForm {
    Text,
    Json,
    Github,
}

/// Runs the command. What could not be done is printed to stderr.
pub fn run(task: &Crd) -> ExitCode {
    let Crd::Diff(task) = task;
    let compared = compared(task).and_then(|report| {
        logs::print(report.text(task.output, &task.new).as_bytes())?;
        Ok(report.worst())
    });
    match compared {
        Ok(Some(Severity::Breaking)) => ExitCode::from(1),
        Ok(Some(Severity::Warning)) if task.strict => ExitCode::from(1),
        Ok(_) => ExitCode::SUCCESS,
        Err(message) => {
            logs::print_error(&format!("pintle: {message}"));
            ExitCode::from(2)
        }
    }
}

/// The changes of the definitions, by name, and what they do to objects.
fn compared(task: &Diff) -> Result<DiffReport, String> {
    let runtime = engine::runtime()?;
    let (mut old, mut new) = (normal(&runtime, &task.old)?, normal(&runtime, &task.new)?);
    // a server has definitions of others, which are not removed
    let names = |definitions: &[Named]| definitions.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<String>>();
    let is_server = |argument: &str| cluster::kubeconfigs(argument).is_some();
    match (is_server(&task.old), is_server(&task.new)) {
        (true, false) => old.retain(|(name, _)| names(&new).contains(name)),
        (false, true) => new.retain(|(name, _)| names(&old).contains(name)),
        _ => {}
    }
    let mut report = DiffReport::default();
    if let ([(_, before)], [(name, after)]) = (old.as_slice(), new.as_slice()) {
        report.of(name, diff::compare(before, after));
    } else {
        let before: BTreeMap<&String, &Value> = old.iter().map(|(name, value)| (name, value)).collect();
        let after: BTreeMap<&String, &Value> = new.iter().map(|(name, value)| (name, value)).collect();
        for name in before.keys().chain(after.keys()).copied().collect::<BTreeSet<&String>>() {
            match (before.get(name), after.get(name)) {
                (Some(before), Some(after)) => report.of(name, diff::compare(before, after)),
                (Some(_), None) => report.of(name, vec![diff::removed()]),
                (None, _) => report.of(name, vec![diff::added()]),
            }
        }
    }
    if let Some(argument) = &task.objects {
        for (name, definition) in &new {
            let former = old.iter().find(|(former, _)| former == name).map_or(definition, |(_, former)| former);
            let objects = objects(&runtime, argument, former)?;
            let tried = runtime.block_on(trial::on_objects(definition, &objects));
            report.of(name, tried.unwrap_or_else(|why| vec![diff::refused(&why)]));
        }
    }
    Ok(report)
}

/// A definition with its name.
type Named = (String, Value);

/// The objects of a definition: those of a server, or those in files, where others do not matter.
fn objects(runtime: &Runtime, argument: &str, definition: &Value) -> Result<Vec<Value>, String> {
    match cluster::kubeconfigs(argument) {
        Some(kubeconfigs) => listed(runtime, &kubeconfigs, &trial::path_of(definition)),
        None => manifests::objects(argument),
    }
}

fn listed(runtime: &Runtime, kubeconfigs: &[PathBuf], path: &str) -> Result<Vec<Value>, String> {
    runtime.block_on(async { Cluster::connect(kubeconfigs).await?.list(path).await })
}

/// The definitions of an argument with their names, in the form in which a server shows them.
fn normal(runtime: &Runtime, argument: &str) -> Result<Vec<Named>, String> {
    let found = match cluster::kubeconfigs(argument) {
        Some(kubeconfigs) => listed(runtime, &kubeconfigs, trial::DEFINITIONS)?,
        None => manifests::objects(argument)?,
    };
    let of = |manifest: &Value| {
        let name = manifest.str_at(&["metadata", "name"]).to_owned();
        let version = match manifest.str_at(&["apiVersion"]) {
            "apiextensions.k8s.io/v1beta1" => ApiVersion::V1Beta1,
            _ => ApiVersion::V1,
        };
        let decoded = definition::decode(manifest, version).map_err(|errors| {
            let text = schema::shape::first_error(&errors, None).unwrap_or_default();
            format!("{argument}: {name}: {text}")
        })?;
        let form = match version {
            ApiVersion::V1 => decoded.definition,
            ApiVersion::V1Beta1 => definition::from_beta(&decoded.definition),
        };
        Ok((name, definition::to_stored(&form)))
    };
    let definitions = found.iter().filter(|object| object.str_at(&["kind"]) == "CustomResourceDefinition");
    let definitions: Vec<Named> = definitions.map(of).collect::<Result<_, String>>()?;
    match definitions.is_empty() {
        true => Err(format!("{argument}: there is no CustomResourceDefinition")),
        false => Ok(definitions),
    }
}

#[derive(Default)]
struct DiffReport {
    changes: Vec<(String, Change)>,
}

impl DiffReport {
    fn of(&mut self, name: &str, changes: Vec<Change>) {
        self.changes.extend(changes.into_iter().map(|change| (name.to_owned(), change)));
    }

    fn worst(&self) -> Option<Severity> {
        self.changes.iter().map(|(_, change)| change.severity).max()
    }

    fn text(&self, output: DiffForm, file: &str) -> String {
        match output {
            DiffForm::Text => self.changes.iter().map(|(name, change)| text(name, change)).collect(),
            DiffForm::Json => {
                let rows: Vec<Value> = self.changes.iter().map(|(name, change)| row(name, change)).collect();
                if rows.is_empty() { String::new() } else { Value::Array(rows).to_json() + "\n" }
            }
            DiffForm::Github => self.changes.iter().map(|(name, change)| annotation(file, name, change)).collect(),
        }
    }
}

fn place(change: &Change) -> String {
    let path = match change.path.as_str() {
        "" if change.version.is_empty() => "",
        "" => "(the version)",
        path => path,
    };
    let parts = [change.version.as_str(), path];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn affected(change: &Change) -> Vec<&'static str> {
    change.check.affects.iter().map(|affected| affected.name()).collect()
}

fn text(name: &str, change: &Change) -> String {
    let (severity, check) = (change.severity.name(), change.check.name);
    let place = place(change);
    let place = if place.is_empty() { name.to_owned() } else { format!("{name} {place}") };
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
        "severity": (change.severity.name()), "check": (change.check.name), "affects": affects,
        "reason": (change.reason.as_str()), "advice": (change.check.advice)
    })
}

/// A workflow command of GitHub Actions.
fn annotation(file: &str, name: &str, change: &Change) -> String {
    let level = match change.severity {
        Severity::Breaking => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let title = format!("{name} {}", place(change));
    let (title, file) = (escapes::property(title.trim()), escapes::property(file));
    let check = change.check.name;
    format!("::{level} file={file},title={title}::{} [{check}]\n", escapes::message(&change.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOATS: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boats.example.com}\n\
                         spec: {group: example.com, scope: Namespaced, names: {plural: boats, kind: Boat}, versions: [{name: v1, \
                         served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {f: {type: string}}}}}]}\n";

    fn report(old: &str, new: &str) -> Result<DiffReport, String> {
        let directory = tempfile::tempdir().unwrap();
        let at = |file: &str| directory.path().join(file).to_string_lossy().into_owned();
        std::fs::write(at("old.yaml"), old).unwrap();
        std::fs::write(at("new.yaml"), new).unwrap();
        let (old, new) = (at("old.yaml"), at("new.yaml"));
        compared(&Diff { old, new, objects: None, strict: false, output: DiffForm::Text })
    }

    #[test]
    fn changes_are_reported_in_every_form() {
        let tighter = BOATS.replace("f: {type: string}", "f: {type: string, maxLength: 5}");
        let report = report(BOATS, &tighter).unwrap();
        assert_eq!(report.worst(), Some(Severity::Breaking));
        assert_eq!(
            report.text(DiffForm::Text, "new.yaml").lines().take(2).collect::<Vec<_>>(),
            [
                "breaking: boats.example.com v1 f: maxLength 5 is added [bound-added]",
                "    affects stored objects, writers"
            ]
        );
        assert_eq!(
            report.text(DiffForm::Github, "a:b.yaml"),
            "::error file=a%3Ab.yaml,title=boats.example.com v1 f::maxLength 5 is added [bound-added]\n"
        );
        let rows = machinery::value::decode(report.text(DiffForm::Json, "").as_bytes()).unwrap();
        assert_eq!(rows.as_array().unwrap()[0].str_at(&["check"]), "bound-added");
    }

    #[test]
    fn equal_definitions_print_nothing() {
        for output in [DiffForm::Text, DiffForm::Json, DiffForm::Github] {
            assert_eq!(report(BOATS, BOATS).unwrap().text(output, "new.yaml"), "");
        }
    }

    #[test]
    fn definitions_are_matched_by_name() {
        let two = format!("{BOATS}---\n{}", BOATS.replace("boats", "ships").replace("Boat", "Ship"));
        let shown = |old: &str, new: &str| report(old, new).unwrap().text(DiffForm::Text, "");
        assert!(shown(&two, BOATS).starts_with("breaking: ships.example.com: the definition is removed"));
        assert!(shown(BOATS, &two).starts_with("info: ships.example.com: the definition is new"));
        // a definition that is alone may have been renamed
        let renamed = shown(BOATS, &BOATS.replace("boats", "ships"));
        assert!(renamed.starts_with("breaking: ships.example.com spec.names.plural"), "{renamed}");
    }

    #[test]
    fn bad_input_is_one_line() {
        for (text, wanted) in [
            ("a: [", "old.yaml:1: this is not YAML: "),
            ("kind: ConfigMap\n", "old.yaml: there is no CustomResourceDefinition"),
            ("kind: CustomResourceDefinition\nspec: {versions: 1}\n", "cannot unmarshal number"),
        ] {
            let error = report(text, BOATS).map(|_| ()).unwrap_err();
            assert!(error.contains(wanted) && !error.contains('\n'), "{error}");
        }
    }
}
