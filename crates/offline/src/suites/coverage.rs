//! Which expressions were true, which were false, and which were never evaluated in the cases of suites.
//!
//! Cases run once more on an engine whose definition has no rules, so that it returns the objects that rules see. Each rule
//! and its negation are then evaluated on them, with messages that say which of the two failed. Policies only warn there, so that each
//! sees every write; the server itself keeps what their expressions result in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cel::SchemaOf;
use cel::rules::{Rules, Validation};
use machinery::{Release, Value};

use super::definitions::TestedDefinition;
use super::run::{Job, RulesOf, Run};
use super::setup::{create, given, without_rules};
use super::{Task, format::Case};
use crate::engine::{Engine, PolicyExpression};

const VALIDATIONS: &str = "x-kubernetes-validations";
/// The beginning of messages about failed expressions.
const MARK: &str = "pintle-coverage";

/// An expression, and the values that it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredExpression {
    /// The file of the definition or the policy.
    pub file: PathBuf,
    /// The version and the path of the field for a rule; the name of a policy, and the field of its specification.
    pub place: String,
    pub expression: String,
    /// Whether the expression was true, or had a value that is not a boolean.
    pub was_true: bool,
    /// Whether the expression was false, failed, or had a value that is not a boolean.
    pub was_false: bool,
}

impl CoveredExpression {
    /// What was not seen, in words.
    pub fn missing(&self) -> Option<&'static str> {
        match (self.was_true, self.was_false) {
            (false, false) => Some("never reached"),
            (false, true) => Some("never true"),
            (true, false) => Some("never false"),
            (true, true) => None,
        }
    }
}

/// Adds what another job has seen. Suites with objects of their own run apart from the others of their definition.
pub fn add(all: &mut Vec<CoveredExpression>, more: Vec<CoveredExpression>) {
    for covered in more {
        let same = |known: &&mut CoveredExpression| {
            (&known.file, &known.place, &known.expression) == (&covered.file, &covered.place, &covered.expression)
        };
        match all.iter_mut().find(same) {
            Some(known) => {
                known.was_true |= covered.was_true;
                known.was_false |= covered.was_false;
            }
            None => all.push(covered),
        }
    }
}

/// The coverage of the expressions of a job. If the engine does not start, which the results of the cases report, no expression
/// is covered.
pub async fn of(job: &Job<'_>, task: &Task) -> Vec<CoveredExpression> {
    let mut probes = Probes::of(job);
    let mut plain = job.definition.clone();
    without_rules(&mut plain.value);
    let Ok(engine) = Engine::start(&task.options).await else { return probes.covered };
    if !plain.is_none() && create(&engine, &plain.value).await.is_err() {
        return probes.covered;
    }
    for object in &job.given {
        let _ = given(&engine, &only_warning(object)).await;
    }
    probes.policies(&engine);
    for (_, suite) in &job.suites {
        for case in &suite.cases {
            observe(&engine, &plain, case, &mut probes).await;
        }
    }
    probes.covered
}

async fn observe(engine: &Engine, definition: &TestedDefinition, case: &Case, probes: &mut Probes) {
    let mut temporary = vec![];
    for object in &case.given {
        temporary.extend(given(engine, &only_warning(object)).await);
    }
    let run = Run::new(engine, definition, case, RulesOf::None);
    run.observe(&mut |write| probes.rules(write.object, write.old)).await;
    probes.policies(engine);
    for target in temporary.iter().rev() {
        engine.delete(target).await;
    }
}

/// The expressions with what was seen, and the rules of each version.
struct Probes {
    file: PathBuf,
    suite: PathBuf,
    /// The files of policies, by kind and name.
    files: BTreeMap<String, PathBuf>,
    covered: Vec<CoveredExpression>,
    versions: Vec<(String, Rules)>,
}

impl Probes {
    fn of(job: &Job<'_>) -> Probes {
        let definition = &job.definition;
        let (file, files) = (definition.file.clone(), job.files.clone());
        let suite = job.suites.first().map_or_else(|| file.clone(), |(_, suite)| suite.file.clone());
        let mut probes = Probes { file, suite, files, covered: vec![], versions: vec![] };
        for version in definition.value.items_at(&["spec", "versions"]) {
            let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) else { continue };
            let mut schema = schema.clone();
            let name = version.str_at(&["name"]);
            probes.mark(&mut schema, name, "");
            if let Some(rules) = Rules::of(&schema, SchemaOf::Resource, Release::default()) {
                probes.versions.push((name.to_owned(), rules));
            }
        }
        probes
    }

    /// Registers an expression, and returns its number.
    fn register(&mut self, file: &Path, place: String, expression: &str) -> usize {
        let expression = expression.trim().to_owned();
        let known = self.covered.iter().position(|known| known.place == place && known.expression == expression);
        known.unwrap_or_else(|| {
            let file = file.to_owned();
            self.covered.push(CoveredExpression { file, place, expression, was_true: false, was_false: false });
            self.covered.len() - 1
        })
    }

    /// An expression and its negation with messages that name them.
    fn pair(number: usize, expression: &str) -> [(String, String); 2] {
        // the negation is on lines of its own, since an expression may end with a comment
        let negation = format!("!(\n{expression}\n)");
        [(expression.to_owned(), format!("{MARK} {number} false")), (negation, format!("{MARK} {number} true"))]
    }

    /// Adds to each rule of a schema its negation.
    fn mark(&mut self, schema: &mut Value, version: &str, path: &str) {
        let place = if path.is_empty() { version.to_owned() } else { format!("{version} {path}") };
        let rules: Vec<Value> = schema.items_at(&[VALIDATIONS]).to_vec();
        if !rules.is_empty() {
            let mut marked = vec![];
            for rule in rules {
                let text = rule.str_at(&["rule"]);
                let number = self.register(&self.file.clone(), place.clone(), text);
                for (expression, message) in Self::pair(number, text) {
                    let mut rule = rule.clone();
                    for key in ["messageExpression", "reason", "fieldPath"] {
                        rule.remove_at(&[key]);
                    }
                    rule.set_at(&["rule"], Value::from(expression));
                    rule.set_at(&["message"], Value::from(message));
                    marked.push(rule);
                }
            }
            schema.set_at(&[VALIDATIONS], Value::Array(marked));
        }
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            for (name, property) in properties.iter_mut() {
                let below = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
                self.mark(property, version, &below);
            }
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get_mut(key).filter(|inner| inner.as_object().is_some()) {
                self.mark(inner, version, &format!("{path}[*]"));
            }
        }
    }

    /// Adds what the expressions of policies have resulted in since they were created.
    fn policies(&mut self, engine: &Engine) {
        for PolicyExpression { kind, policy, place, expression, was_true, was_false } in engine.policy_expressions() {
            // a policy that no file of the suite has stands in the suite itself
            let file = self.files.get(&format!("{kind} {policy}")).unwrap_or(&self.suite).clone();
            let number = self.register(&file, format!("{kind} {policy} {place}"), &expression);
            if let Some(covered) = self.covered.get_mut(number) {
                covered.was_true |= was_true;
                covered.was_false |= was_false;
            }
        }
    }

    /// Evaluates the rules of the version of an object.
    fn rules(&mut self, object: &Value, old: Option<&Value>) {
        let version = object.str_at(&["apiVersion"]).rsplit('/').next().unwrap_or_default();
        let Some((_, rules)) = self.versions.iter().find(|(name, _)| name == version) else { return };
        // each rule is evaluated twice, for which the budget of a request would not suffice
        let verdict = rules.validate(object, &Validation::of(old).cost_max(u64::MAX >> 1));
        for error in verdict.errors {
            self.failed(&error.to_string());
        }
    }

    /// Notes what a message says about an expression. The failure of an expression to evaluate counts as false.
    fn failed(&mut self, message: &str) {
        let Some((before, mark)) = message.split_once(MARK) else { return };
        let mut words = mark.split_whitespace();
        let number = words.next().and_then(|number| number.parse::<usize>().ok());
        let (Some(covered), Some(value)) = (number.and_then(|number| self.covered.get_mut(number)), words.next())
        else {
            return;
        };
        match value.trim_end_matches(|letter: char| !letter.is_alphanumeric()) {
            _ if before.contains("evaluating rule") => covered.was_false = true,
            "true" => covered.was_true = true,
            _ => covered.was_false = true,
        }
    }
}

/// The object; a binding warns instead of denying.
fn only_warning(object: &Value) -> Value {
    let mut object = object.clone();
    if object.str_at(&["kind"]) == "ValidatingAdmissionPolicyBinding" {
        object.set_at(&["spec", "validationActions"], Value::Array(vec![Value::from("Warn")]));
    }
    object
}
