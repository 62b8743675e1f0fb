//! The check of one document.

use std::collections::HashMap;
use std::sync::Arc;

use machinery::{Release, Status, Value};

use super::index::Counterpart;
use super::previous::Previous;
use super::{Done, Number, decoding, removed};
use crate::engine::{self, Content, Engine, FieldValidation, RequestOptions, Target, Verdict};
use crate::findings::{self, Checked, Finding, Severity};
use crate::limits;
use sources::{Document, Object, RepeatedKey};

/// Checks documents. It is shared by all tasks.
pub struct Checker {
    pub engines: Vec<Engine>,
    /// The findings of objects that other objects depend on, by their document and the index in its list.
    pub defined: HashMap<(Number, Option<usize>), Vec<Finding>>,
    pub previous: Previous,
    pub ignores_missing: bool,
    /// In lower case.
    pub skipped_kinds: Vec<String>,
}

impl Checker {
    pub async fn document(&self, number: Number, document: &Document, done: &mut Vec<Done>) {
        let (objects, duplicates) = match document.objects() {
            Ok(found) => found,
            Err(problem) => {
                let finding = findings::of_line(document, "NotAnObject", problem.line, &problem.why);
                return done.push(Done::Checked(Checked::without_object(document.file.clone(), finding)));
            }
        };
        let mut repeated = repeated_keys(document, &objects, &duplicates).into_iter();
        for object in &objects {
            let mut findings = repeated.next().unwrap_or_default();
            let found = match self.defined.get(&(number, object.item)) {
                _ if self.skips(&object.value) => None,
                Some(findings) => Some(findings.clone()),
                None => self.object(number.0, document, object).await,
            };
            let (file, name) = (document.file.clone(), name_of(&object.value));
            let Some(found) = found else {
                done.push(Done::LeftOut(file, name));
                continue;
            };
            findings.extend(found);
            done.push(Done::Checked(Checked { file, object: name, findings }));
        }
    }

    /// Whether objects of this kind are left out. A kind may be followed by its group.
    fn skips(&self, object: &Value) -> bool {
        if self.skipped_kinds.is_empty() {
            return false;
        }
        let group = object.str_at(&["apiVersion"]).split_once('/').map_or("", |(group, _)| group).to_lowercase();
        let kind = object.str_at(&["kind"]).to_lowercase();
        self.skipped_kinds.iter().any(|skipped| *skipped == kind || *skipped == format!("{kind}.{group}"))
    }

    /// The findings of an object; `None` if it is left out.
    async fn object(&self, input: usize, document: &Document, object: &Object) -> Option<Vec<Finding>> {
        if let Some(finding) = without_kind(document, object) {
            return Some(vec![finding]);
        }
        let mut all = vec![];
        for engine in &self.engines {
            let found = match engine.target(&object.value) {
                Some(target) => engine::reproducibly(self.verdict(engine, &target, input, (document, object))).await,
                None if self.ignores_missing => continue,
                None => vec![missing(document, object)],
            };
            all.push((engine.release(), found));
        }
        (!all.is_empty()).then(|| merged(all, self.engines.len()))
    }

    async fn verdict(
        &self,
        engine: &Engine,
        target: &Target,
        input: usize,
        (document, object): (&Document, &Object),
    ) -> Vec<Finding> {
        let value = &object.value;
        let old = match self.previous.of(engine, target, Some(input), value).await {
            Ok(Counterpart::None) => None,
            Ok(Counterpart::One(old)) => Some(old),
            Ok(Counterpart::Ambiguous(files)) => return vec![ambiguous(document, object, &files)],
            Err(why) => return findings::of_verdict(document, object, &Status::internal(why.to_string())),
        };
        let ask = async |options: &RequestOptions| match &old {
            Some(old) if self.previous.is_live() => engine.apply_to(target, old, value, options).await,
            Some(old) => engine.update_of(target, (old, Previous::origin(old)), value, options).await,
            None => engine.create(target, Content::of(object), options).await,
        };
        let verdict = ask(&RequestOptions::verdict()).await;
        if let Some(found) = decoding::findings(engine, target, (document, object), &verdict).await {
            return found;
        }
        let mut found = of(document, object, &verdict);
        if found.iter().any(|finding| finding.reason == findings::UNKNOWN_FIELD) {
            // the server stops at unknown fields; what else it says is found without the check for them
            let lenient = RequestOptions { fields: FieldValidation::Ignore, ..RequestOptions::verdict() };
            let more = of(document, object, &ask(&lenient).await);
            found.extend(more.into_iter().filter(|finding| !verdict.warnings.contains(&finding.message)));
        }
        found
    }
}

fn repeated_keys(document: &Document, objects: &[Object], repeated: &[RepeatedKey]) -> Vec<Vec<Finding>> {
    let mut found = vec![vec![]; objects.len()];
    for key in repeated {
        let index = objects.iter().position(|object| object.item == key.item).unwrap_or_default();
        let (Some(object), Some(found)) = (objects.get(index), found.get_mut(index)) else { continue };
        found.push(findings::of_repeated_key(document, object, key));
    }
    found
}

/// The finding of an object whose former state is in several files.
fn ambiguous(document: &Document, object: &Object, files: &[Arc<str>]) -> Finding {
    let shown: Vec<&str> = files.iter().map(|file| &**file).take(limits::AMBIGUOUS_FILES_SHOWN).collect();
    let more = match files.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "not checked: --old has this object in several files: {}{more}; pass the manifests of one environment, or --old with a path",
        shown.join(", ")
    );
    findings::at_field(document, object, Severity::Error, "AmbiguousOld", "metadata.name", &message)
}

pub fn of(document: &Document, object: &Object, verdict: &Verdict) -> Vec<Finding> {
    let errors = verdict.outcome.as_ref().err().map(|status| findings::of_verdict(document, object, status));
    let warnings = verdict.warnings.iter().map(|text| findings::of_warning(document, object, text));
    errors.into_iter().flatten().chain(warnings).collect()
}

/// The findings of several releases; each finding has the releases that have it, unless all do.
pub fn merged(all: Vec<(Release, Vec<Finding>)>, releases: usize) -> Vec<Finding> {
    let mut merged: Vec<Finding> = vec![];
    for (release, findings) in all {
        for finding in findings {
            let same = |known: &&mut Finding| {
                (known.severity, &known.field, &known.message) == (finding.severity, &finding.field, &finding.message)
            };
            match merged.iter_mut().find(same) {
                Some(known) if known.releases.last() != Some(&release) => known.releases.push(release),
                Some(_) => {}
                None => merged.push(Finding { releases: vec![release], ..finding }),
            }
        }
    }
    for finding in &mut merged {
        if finding.releases.len() == releases {
            finding.releases.clear();
        }
    }
    merged
}

/// The kind, namespace and name of an object, such as `Boat n/a`.
pub fn name_of(object: &Value) -> String {
    let kind = match object.str_at(&["kind"]) {
        "" => "object without a kind",
        kind => kind,
    };
    let name = match object.str_at(&["metadata", "name"]) {
        "" => object.str_at(&["metadata", "generateName"]),
        name => name,
    };
    match object.str_at(&["metadata", "namespace"]) {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

fn without_kind(document: &Document, object: &Object) -> Option<Finding> {
    let missing: Vec<&str> =
        ["apiVersion", "kind"].into_iter().filter(|field| object.value.str_at(&[field]).is_empty()).collect();
    if missing.is_empty() {
        return None;
    }
    let message = format!("this is not a Kubernetes object: it has no {}", missing.join(" and no "));
    let status = Status::bad_request(message);
    findings::of_verdict(document, object, &status)
        .pop()
        .map(|finding| Finding { reason: "NotAnObject".to_owned(), ..finding })
}

/// The finding of an object whose kind is not served, in the words of kubectl.
pub fn missing(document: &Document, object: &Object) -> Finding {
    let (version, kind) = (object.value.str_at(&["apiVersion"]), object.value.str_at(&["kind"]));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let hint = match removed::hint(version, kind) {
        Some(hint) => format!("; {hint}"),
        None if group.ends_with(".k8s.io") || !group.contains('.') => String::new(),
        None => "; give its CustomResourceDefinition with --crds, or leave out such objects with --ignore-missing"
            .to_owned(),
    };
    findings::at_field(
        document,
        object,
        Severity::Error,
        "NoDefinition",
        "kind",
        &format!("no matches for kind {kind:?} in version {version:?}{hint}"),
    )
}
