//! Runs cases on an engine.

use machinery::patch::json_patch;
use machinery::{Value, json};

use super::definitions::TestedDefinition;
use super::format::{Action, Case, Step, Suite, Warnings};
use super::setup::{create, deposit, given, target_of, without_rules};
use super::{Task, expect, wording};
use crate::engine::{Caller, Engine, Patch, Refusal, RequestOptions, Target, Verdict};
use crate::error::Error;

/// Why a case fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// One or more lines: the step, and what happened.
    pub message: String,
    /// The differences from the expected object, as a unified diff; empty if they are not the reason.
    pub differences: String,
}

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { message: error.to_string(), differences: String::new() }
    }
}

/// The result of a case.
#[derive(Clone, Debug)]
pub struct CaseOutcome {
    pub case: usize,
    pub failure: Option<Failure>,
    /// The objects that are stored where others were expected, by the index of the step of a scenario.
    pub stored: Vec<(Option<usize>, Value)>,
}

/// A definition, and the suites that are run on it in one engine.
pub struct Job<'s> {
    pub definition: TestedDefinition,
    pub suites: Vec<(usize, &'s Suite)>,
    /// Objects that exist in every case.
    pub given: Vec<Value>,
    /// The files that they come from, by kind and name; others stand in the suite.
    pub files: std::collections::BTreeMap<String, std::path::PathBuf>,
}

#[derive(Default)]
pub struct JobOutcomes {
    pub outcomes: Vec<(usize, Vec<CaseOutcome>)>,
    /// One line about the definition.
    pub note: Option<String>,
}

pub async fn run(job: &Job<'_>, task: &Task) -> JobOutcomes {
    let mut ran = JobOutcomes::default();
    let engine = match started(job, task, &mut ran).await {
        Ok(engine) => engine,
        Err(failure) => {
            ran.outcomes = job.suites.iter().map(|(at, suite)| (*at, all_failed(suite, &failure))).collect();
            return ran;
        }
    };
    let rules = if task.allows_expensive_rules { RulesOf::EarlierServer } else { RulesOf::Server };
    for (at, suite) in &job.suites {
        let mut of_suite = vec![];
        for (index, case) in suite.cases.iter().enumerate() {
            of_suite.push(Run::new(&engine, &job.definition, case, rules).case(index).await);
        }
        ran.outcomes.push((*at, of_suite));
    }
    ran
}

fn all_failed(suite: &Suite, failure: &Failure) -> Vec<CaseOutcome> {
    let failed = |case| CaseOutcome { case, failure: Some(failure.clone()), stored: vec![] };
    (0..suite.cases.len()).map(failed).collect()
}

async fn started(job: &Job<'_>, task: &Task, ran: &mut JobOutcomes) -> Result<Engine, Failure> {
    let engine = Engine::start(&task.options).await?;
    let file = job.definition.file.display();
    let created = if job.definition.is_none() { Ok(()) } else { create(&engine, &job.definition.value).await };
    match created {
        Ok(()) => {}
        Err(status) if task.allows_expensive_rules && Refusal::of(&status) == Refusal::Costs => {
            let stored = deposit(&engine, &job.definition.value).await;
            stored.map_err(|why| format!("the definition of {file} is refused: {why}"))?;
            ran.note = Some(format!("{file}: the rules cost more than this release allows"));
        }
        Err(status) => {
            return Err(format!("the definition of {file} is refused: {}", status.message).into());
        }
    }
    for object in &job.given {
        given(&engine, object).await?;
    }
    Ok(engine)
}

/// A case that is run.
pub struct Run<'r> {
    engine: &'r Engine,
    definition: &'r TestedDefinition,
    case: &'r Case,
    /// The object of the case, as the last response shows it.
    current: Value,
    target: Option<Target>,
    is_patched: bool,
    rules: RulesOf,
    stored: Vec<(Option<usize>, Value)>,
}

/// A write on an engine without rules.
pub struct Observed<'o> {
    /// The object that rules would see.
    pub object: &'o Value,
    /// The object before an update.
    pub old: Option<&'o Value>,
}

/// The treatment of the rules of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesOf {
    /// They are as the server accepts them.
    Server,
    /// They may cost more than the server accepts.
    EarlierServer,
    /// There are none, so that the objects that rules would see are stored.
    None,
}

impl<'r> Run<'r> {
    pub fn new(engine: &'r Engine, definition: &'r TestedDefinition, case: &'r Case, rules: RulesOf) -> Run<'r> {
        let (current, target) = (Value::Null, None);
        Run { engine, definition, case, current, target, is_patched: false, rules, stored: vec![] }
    }

    /// Performs the steps without comparing anything, on an engine without rules, and visits each write. Writes that are expected
    /// to fail are dry runs.
    pub async fn observe(mut self, visit: &mut dyn FnMut(Observed<'_>)) {
        for step in self.case.steps.as_deref().unwrap_or_default() {
            if let Action::Define(patch) = &step.action {
                let _ = self.define(patch).await;
                continue;
            }
            let is_dry = step.error.is_some();
            let options = RequestOptions { dry_run: is_dry, ..self.options(step) };
            let is_read = matches!(step.action, Action::Read(_) | Action::Delete);
            if let Ok(verdict) = self.request(step, options).await
                && !is_read
                && let Ok(object) = verdict.object()
            {
                let old =
                    (!matches!(step.action, Action::Create(_)) && !self.current.is_null()).then_some(&self.current);
                visit(Observed { object: &object, old });
                if !is_dry {
                    self.target = self.engine.target(&object);
                    self.current = object;
                }
            }
            if step.ends {
                break;
            }
        }
        if let Some(target) = &self.target {
            self.delete(target).await;
        }
        if self.is_patched {
            let _ = self.define(&json_patch::JsonPatch::default()).await;
        }
    }

    async fn case(mut self, index: usize) -> CaseOutcome {
        let mut temporary = vec![];
        let failure = self.steps(&mut temporary).await.err();
        // objects of the next case may have the same name
        if let Some(target) = &self.target {
            self.delete(target).await;
        }
        let mut restored = Ok(());
        if self.is_patched {
            restored = self.define(&json_patch::JsonPatch::default()).await;
        }
        for target in temporary.iter().rev() {
            self.delete(target).await;
        }
        let failure = restored.err().map(Failure::from).or(failure);
        CaseOutcome { case: index, failure, stored: self.stored }
    }

    async fn delete(&self, target: &Target) {
        if self.current.at(&["metadata", "finalizers"]).is_some() {
            let none = json!({"metadata": {"finalizers": null}});
            self.engine.patch(target, "", Patch::Merge, &none, &RequestOptions::default()).await;
        }
        self.engine.delete(target).await;
    }

    async fn steps(&mut self, temporary: &mut Vec<Target>) -> Result<(), Failure> {
        let steps = self.case.steps.as_ref()?;
        for object in &self.case.given {
            temporary.push(given(self.engine, object).await?);
        }
        for step in steps {
            if self.step(step).await.map_err(|failure| at_step(step, failure))? {
                break;
            }
        }
        Ok(())
    }

    /// Performs a step; returns whether it ends the case.
    async fn step(&mut self, step: &Step) -> Result<bool, Failure> {
        if let Action::Define(patch) = &step.action {
            self.define(patch).await?;
            return Ok(false);
        }
        let verdict = self.request(step, self.options(step)).await;
        let message = match &verdict {
            Ok(verdict) => verdict.error().map(|(_, message)| message.to_owned()),
            Err(why) => Some(why.to_string()),
        };
        match (&step.error, message) {
            (Some(wanted), Some(message)) if wording::contains(&message, wanted) => return Ok(step.ends),
            (Some(wanted), Some(message)) => {
                return Err(format!("expected the error\n  {wanted}\nbut got\n  {message}").into());
            }
            (Some(wanted), None) => return Err(format!("expected the error\n  {wanted}\nbut got none").into()),
            (None, Some(message)) => return Err(format!("unexpected error: {message}").into()),
            (None, None) => {}
        }
        let verdict = verdict?;
        self.accept(step, &verdict)?;
        self.expected(step).await?;
        Ok(false)
    }

    /// Keeps the object of a response, and compares its warnings.
    fn accept(&mut self, step: &Step, verdict: &Verdict) -> Result<(), Failure> {
        if let Some(wanted) = &step.warnings {
            check_warnings(wanted, &verdict.warnings)?;
        }
        if !matches!(step.action, Action::Delete) {
            self.current = verdict.object().map_err(Error::from)?;
            self.target = self.engine.target(&self.current);
        }
        Ok(())
    }

    async fn expected(&mut self, step: &Step) -> Result<(), Failure> {
        let Some(expected) = &step.expected else { return Ok(()) };
        let target = self.target.clone().ok_or("there is no object")?;
        let stored = match &step.action {
            Action::Read(_) => self.current.clone(),
            _ => self.engine.get(&target).await.object().map_err(Error::from)?,
        };
        if expected.is_null() {
            self.stored.push((step.index, expect::expectation(&stored)));
            return Err("neither expected nor expectedError is given; --update writes it".into());
        }
        if let Some(differences) = expect::differences(expected, &stored) {
            self.stored.push((step.index, expect::expectation(&stored)));
            return Err(Failure { message: "another object than expected is stored".to_owned(), differences });
        }
        Ok(())
    }

    fn options(&self, step: &Step) -> RequestOptions {
        RequestOptions { caller: step.user.clone().map(Caller::new), ..RequestOptions::default() }
    }

    async fn request(&self, step: &Step, options: RequestOptions) -> Result<Verdict, Error> {
        let engine = self.engine;
        Ok(match &step.action {
            Action::Create(object) => {
                let object = self.placed(object);
                engine.create(&target_of(engine, &object)?, &object, &options).await
            }
            Action::Update(object) => {
                let object = self.successor(object);
                engine.update(&target_of(engine, &object)?, "", &object, &options).await
            }
            Action::UpdateStatus(status) => {
                let mut object = self.current.clone();
                object.set_at(&["status"], status.clone());
                engine.update(self.target()?, "status", &object, &options).await
            }
            Action::Patch(patch) => engine.patch(self.target()?, "", Patch::Merge, patch, &options).await,
            Action::Apply { object, manager, force } => {
                let mut object = self.placed(object);
                if let Some(name) = self.current.at(&["metadata", "name"]) {
                    object.set_at(&["metadata", "name"], name.clone());
                }
                object.remove_at(&["metadata", "generateName"]);
                let options = RequestOptions { field_manager: manager.clone(), force: *force, ..options };
                engine.patch(&target_of(engine, &object)?, "", Patch::Apply, &object, &options).await
            }
            Action::Delete => engine.delete(self.target()?).await,
            Action::Read(version) => {
                let mut object = self.current.clone();
                if !version.is_empty() {
                    let api_version = object.str_at(&["apiVersion"]);
                    let group = api_version.split_once('/').map(|(group, _)| format!("{group}/")).unwrap_or_default();
                    object.set_at(&["apiVersion"], Value::from(format!("{group}{version}")));
                }
                engine.get(&target_of(engine, &object)?).await
            }
            Action::Define(_) => return Err("a definition is not an object of the case".into()),
        })
    }

    fn target(&self) -> Result<&Target, Error> {
        self.target.as_ref().ok_or_else(|| "no step before this one has created an object".into())
    }

    /// An object with a generated name, unless it has one, in the namespace of the case.
    fn placed(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let namespace = if self.case.namespace.is_empty() { "default" } else { &self.case.namespace };
        object.set_at(&["metadata", "generateName"], Value::from("test-"));
        object.set_at(&["metadata", "namespace"], Value::from(namespace));
        object
    }

    /// An object in place of the current one.
    fn successor(&self, object: &Value) -> Value {
        let mut object = self.placed(object);
        for field in ["name", "namespace", "resourceVersion"] {
            object.put_at(&["metadata", field], self.current.at(&["metadata", field]).cloned());
        }
        object
    }

    /// Replaces the definition by a patched one; without operations, by that of the suite.
    async fn define(&mut self, patch: &json_patch::JsonPatch) -> Result<(), Error> {
        if self.definition.is_none() {
            return Err("the suite has no definition".into());
        }
        let mut wanted = match patch.operations.is_empty() {
            true => self.definition.value.clone(),
            false => json_patch::apply_or_report(self.definition.original.clone(), patch)
                .map_err(|why| format!("the definition cannot be patched: {why}"))?,
        };
        if self.rules == RulesOf::None {
            without_rules(&mut wanted);
        }
        self.is_patched = !patch.operations.is_empty();
        let target = target_of(self.engine, &wanted)?;
        let mut stored = self.engine.get(&target).await.object()?;
        stored.set_at(&["spec"], wanted.get("spec").cloned().unwrap_or_default());
        let verdict = self.engine.update(&target, "", &stored, &RequestOptions::default()).await;
        match verdict.outcome {
            Ok(_) => Ok(()),
            Err(status) if self.rules == RulesOf::EarlierServer && Refusal::of(&status) == Refusal::Costs => {
                deposit(self.engine, &wanted).await
            }
            Err(status) => Err(format!("the changed definition is refused: {}", status.message).into()),
        }
    }
}

/// Compares the warnings of a response with those that are expected.
fn check_warnings(wanted: &Warnings, found: &[String]) -> Result<(), Failure> {
    let is_right = match wanted {
        Warnings::All(wanted) => wanted == found,
        Warnings::NoneOfPolicies => !found.iter().any(|text| text.starts_with(OF_POLICIES)),
        Warnings::Containing(text) => found.iter().any(|found| found.contains(text)),
    };
    if is_right {
        return Ok(());
    }
    Err(match wanted {
        Warnings::All(wanted) => {
            let differences = unified_lists(wanted, found);
            Failure { message: "other warnings than expected".to_owned(), differences }
        }
        Warnings::NoneOfPolicies => Failure::from(format!("unexpected warning: {}", found.join("; "))),
        Warnings::Containing(text) if found.is_empty() => {
            Failure::from(format!("expected the warning\n  {text}\nbut got none"))
        }
        Warnings::Containing(text) => {
            Failure::from(format!("expected the warning\n  {text}\nbut got\n  {}", found.join("\n  ")))
        }
    })
}

/// The beginning of the warnings of policies.
const OF_POLICIES: &str = "Validation failed for ValidatingAdmissionPolicy";

fn at_step(step: &Step, failure: Failure) -> Failure {
    let what = match &step.action {
        Action::Create(_) => "create",
        Action::Update(_) => "update",
        Action::UpdateStatus(_) => "update of the status",
        Action::Patch(_) => "patch",
        Action::Apply { .. } => "apply",
        Action::Delete => "delete",
        Action::Read(_) => "read",
        Action::Define(_) => "change of the definition",
    };
    let place = step.index.map(|index| format!("steps[{index}], ")).unwrap_or_default();
    Failure { message: format!("{place}{what}: {}", failure.message), ..failure }
}

fn unified_lists(wanted: &[String], found: &[String]) -> String {
    machinery::difflines::unified(&wanted.join("\n"), &found.join("\n"))
}
