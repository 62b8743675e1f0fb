//! `pintle crd diff`: what a change of CustomResourceDefinitions breaks.

mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use client::{Result, fail};
use machinery::Value;
use offline::{engine, trial};
use schema::definition::{self, ApiVersion};
use schema::diff::{self, Severity};
use sources::cluster::{self, Cluster};
use sources::{ClusterError, Document, Inputs, Object};
use tokio::runtime::Runtime;

use crate::logs;
use crate::manifests;
use report::{DiffForm, DiffReport};

#[derive(Subcommand)]
pub enum Crd {
    /// Report what a change of CustomResourceDefinitions breaks, for stored objects, for writers and for readers.
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

    /// Objects to try the change on, given like OLD: each is updated, with ratcheting, and created as if it were new.
    #[arg(long, value_name = "OBJECTS")]
    pub objects: Option<String>,

    /// Let warnings fail as well.
    #[arg(long)]
    pub strict: bool,

    /// The form of the report.
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: DiffForm,
}

/// Runs the command. It fails if the definitions cannot be compared.
pub fn run(task: &Crd) -> Result<ExitCode> {
    let Crd::Diff(task) = task;
    let report = compared(task)?;
    logs::print(report.text(task.output, &task.new)?.as_bytes())?;
    Ok(match report.worst() {
        Some(Severity::Breaking) => ExitCode::from(1),
        Some(Severity::Warning) if task.strict => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

/// The changes of the definitions, by name, and what they do to objects.
fn compared(task: &Diff) -> Result<DiffReport> {
    let runtime = engine::runtime()?;
    let (mut old, mut new) = (normal(&runtime, &task.old)?, normal(&runtime, &task.new)?);
    // definitions that only a server has are not compared: they belong to other programs
    let names = |definitions: &[NormalizedDefinition]| {
        definitions.iter().map(|found| found.name.clone()).collect::<BTreeSet<String>>()
    };
    let is_server = |argument: &str| cluster::kubeconfigs(argument).is_some();
    match (is_server(&task.old), is_server(&task.new)) {
        (true, false) => old.retain(|found| names(&new).contains(&found.name)),
        (false, true) => new.retain(|found| names(&old).contains(&found.name)),
        _ => {}
    }
    let mut report = DiffReport::default();
    if let ([before], [after]) = (old.as_slice(), new.as_slice()) {
        report.of(&after.name, diff::compare(&before.value, &after.value));
    } else {
        let by_name =
            |all: &[NormalizedDefinition]| all.iter().map(|one| (one.name.clone(), one.value.clone())).collect();
        let (before, after): (BTreeMap<String, Value>, BTreeMap<String, Value>) = (by_name(&old), by_name(&new));
        for name in before.keys().chain(after.keys()).collect::<BTreeSet<&String>>() {
            match (before.get(name), after.get(name)) {
                (Some(before), Some(after)) => report.of(name, diff::compare(before, after)),
                (Some(_), None) => report.of(name, vec![diff::removed()]),
                (None, _) => report.of(name, vec![diff::added()]),
            }
        }
    }
    if let Some(argument) = &task.objects {
        for NormalizedDefinition { name, value, .. } in &new {
            let former = old.iter().find(|former| former.name == *name).map_or(value, |former| &former.value);
            let objects = objects(&runtime, argument, former)?;
            let tried = runtime.block_on(trial::on_objects(value, &objects));
            report.of(name, tried.unwrap_or_else(|error| vec![diff::refused(&error.to_string())]));
        }
    }
    report.sources = new.into_iter().filter_map(|found| Some((found.name, found.source?))).collect();
    Ok(report)
}

/// A definition in the form in which a server shows it.
struct NormalizedDefinition {
    name: String,
    value: Value,
    /// The manifest that has it, unless it is that of a server.
    source: Option<(Document, Object)>,
}

/// The objects of a definition: those on a server, or all objects in files, of which the trial takes those of the
/// kind.
fn objects(runtime: &Runtime, argument: &str, definition: &Value) -> Result<Vec<Value>> {
    match cluster::kubeconfigs(argument) {
        Some(kubeconfigs) => Ok(listed(runtime, &kubeconfigs, &trial::path_of(definition))?),
        None => manifests::objects(argument),
    }
}

fn listed(runtime: &Runtime, kubeconfigs: &[PathBuf], path: &str) -> Result<Vec<Value>, ClusterError> {
    runtime.block_on(async { Cluster::connect(kubeconfigs).await?.list(path).await })
}

/// The definitions of an argument. Fails with a one-line message.
fn normal(runtime: &Runtime, argument: &str) -> Result<Vec<NormalizedDefinition>> {
    let found: Vec<(Value, Option<(Document, Object)>)> = match cluster::kubeconfigs(argument) {
        Some(kubeconfigs) => {
            listed(runtime, &kubeconfigs, trial::DEFINITIONS)?.into_iter().map(|value| (value, None)).collect()
        }
        None => {
            let objects = Inputs::of(&[argument.to_owned()]).objects()?.into_iter();
            objects.map(|(document, object)| ((*object.value).clone(), Some((document, object)))).collect()
        }
    };
    let definitions = found.into_iter().filter(|(value, _)| value.str_at(&["kind"]) == "CustomResourceDefinition");
    let of = |(value, source)| {
        let (name, value) = normalized(argument, &value)?;
        Ok(NormalizedDefinition { name, value, source })
    };
    let definitions: Vec<NormalizedDefinition> = definitions.map(of).collect::<Result<_>>()?;
    match definitions.is_empty() {
        true => fail(format!("{argument}: there is no CustomResourceDefinition")),
        false => Ok(definitions),
    }
}

/// The name of a definition, and its stored form.
fn normalized(argument: &str, manifest: &Value) -> Result<(String, Value)> {
    let name = manifest.str_at(&["metadata", "name"]).to_owned();
    let version = match manifest.str_at(&["apiVersion"]) {
        "apiextensions.k8s.io/v1beta1" => ApiVersion::V1Beta1,
        _ => ApiVersion::V1,
    };
    let decoded = definition::decode(manifest, version).map_err(|errors| {
        let text = schema::shape::first_error(&errors, None).unwrap_or_default();
        match name.as_str() {
            "" => format!("{argument}: a CustomResourceDefinition without a name: {text}"),
            _ => format!("{argument}: {name}: {text}"),
        }
    })?;
    let form = match version {
        ApiVersion::V1 => decoded.definition,
        ApiVersion::V1Beta1 => definition::from_beta(&decoded.definition),
    };
    Ok((name, definition::to_stored(&form)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOATS: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boats.example.com}\n\
                         spec: {group: example.com, scope: Namespaced, names: {plural: boats, kind: Boat}, versions: [{name: v1, \
                         served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {f: {type: string}}}}}]}\n";

    fn report(old: &str, new: &str) -> Result<DiffReport> {
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
            report.text(DiffForm::Text, "new.yaml").unwrap().lines().take(2).collect::<Vec<_>>(),
            [
                "breaking: boats.example.com v1 f: maxLength 5 is added [bound-added]",
                "    affects stored objects, writers"
            ]
        );
        let rows = machinery::value::decode(report.text(DiffForm::Json, "").unwrap().as_bytes()).unwrap();
        assert_eq!(rows.as_array().unwrap()[0].str_at(&["check"]), "bound-added");
    }

    #[test]
    fn findings_have_the_lines_of_the_new_definition() {
        let two = format!("{BOATS}---\n{}", BOATS.replace("boats", "ships").replace("Boat", "Ship"));
        let tighter = two.replacen("f: {type: string}", "\n  f: {type: string, maxLength: 5}", 1);
        let report = report(&two, &tighter).unwrap();
        let file = report.sources["boats.example.com"].0.file.replace('\\', "/");
        let text = |form| report.text(form, "new.yaml").unwrap();
        assert_eq!(
            text(DiffForm::Github),
            format!(
                "::error file={file},line=5,col=3,endColumn=4,title=CustomResourceDefinition boats.example.com::v1 f: maxLength 5 is \
                 added\n1 file, 2 objects: 1 error, 0 warnings\n"
            )
        );
        let junit = text(DiffForm::Junit);
        assert!(
            junit.contains("tests=\"2\" failures=\"1\"") && junit.contains("<failure type=\"bound-added\""),
            "{junit}"
        );
        let sarif = machinery::value::decode(text(DiffForm::Sarif).as_bytes()).unwrap();
        let runs = sarif.items_at(&["runs"]);
        let result = &runs[0].items_at(&["results"])[0];
        assert_eq!((result.str_at(&["ruleId"]), result.str_at(&["level"])), ("bound-added", "error"));
    }

    #[test]
    fn what_breaks_nothing_is_a_note() {
        let report =
            report(BOATS, &BOATS.replace("f: {type: string}", "f: {type: string}, g: {type: string}")).unwrap();
        assert_eq!(report.worst(), Some(Severity::Info));
        let text = |form| report.text(form, "new.yaml").unwrap();
        assert!(text(DiffForm::Github).starts_with("::notice "), "{}", text(DiffForm::Github));
        assert!(text(DiffForm::Sarif).contains("\"level\":\"note\""));
        assert!(
            text(DiffForm::Junit).contains("failures=\"0\"") && text(DiffForm::Junit).contains("<system-out>info: ")
        );
    }

    #[test]
    fn equal_definitions_have_no_changes() {
        for (output, want) in [(DiffForm::Text, ""), (DiffForm::Json, "[]\n"), (DiffForm::Github, "")] {
            assert_eq!(report(BOATS, BOATS).unwrap().text(output, "new.yaml").unwrap(), want);
        }
    }

    #[test]
    fn definitions_are_matched_by_name() {
        let two = format!("{BOATS}---\n{}", BOATS.replace("boats", "ships").replace("Boat", "Ship"));
        let shown = |old: &str, new: &str| report(old, new).unwrap().text(DiffForm::Text, "").unwrap();
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
            let error = report(text, BOATS).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(wanted) && !error.contains('\n'), "{error}");
        }
    }
}
