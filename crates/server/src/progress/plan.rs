//! A Progress, compiled.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{clock, task};
use cel::{Activation, Decl, Environment, Program, Type, Val, VariableNames, from_json};
use machinery::selector::LabelSelector;
use machinery::{Text, Value};

use super::outcome::Effects;
use crate::limits;

/// A kind in a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindName {
    pub group: Text,
    pub version: Text,
    pub kind: Text,
}

impl KindName {
    /// The kind of an object, or of a reference with `apiVersion` and `kind`.
    pub fn of(value: &Value) -> KindName {
        let api_version = value.str_at(&["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        KindName { group: group.into(), version: version.into(), kind: value.str_at(&["kind"]).into() }
    }
}

impl std::fmt::Display for KindName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let separator = if self.group.is_empty() { "" } else { "/" };
        write!(f, "{} of {}{separator}{}", self.kind, self.group, self.version)
    }
}

/// How the related objects of a list are found.
pub enum Relation {
    /// Their owner references name the object.
    Owned,
    Chosen(Box<RelatedSelection>),
}

/// Related objects by their namespace, and their name or labels, as expressions over the object.
pub struct RelatedSelection {
    namespace: Option<Program>,
    name: Option<Program>,
    selector: Option<Program>,
}

/// A list of related objects.
pub struct Binding {
    pub name: Text,
    pub kind: KindName,
    pub relation: Relation,
}

/// The related objects that an object has asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct RelatedChoice {
    /// `None` for all namespaces.
    pub namespace: Option<Text>,
    pub name: Option<Text>,
    pub labels: Option<LabelSelector>,
}

impl RelatedChoice {
    /// Whether it selects nothing: no object has the empty name.
    pub fn is_empty(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.is_empty())
    }

    pub fn has(&self, name: &str, labels: &[(Text, Text)]) -> bool {
        self.name.as_ref().is_none_or(|wanted| wanted == name)
            && self.labels.as_ref().is_none_or(|selector| selector.selects(labels))
    }
}

/// When a rule that applies acts.
pub struct RuleWait {
    pub after: Delay,
    pub since: Option<Program>,
    pub jitter_micros: u64,
}

pub enum Delay {
    Micros(i64),
    Computed(Box<Program>),
}

/// An Event about the object.
pub struct Report {
    pub kind: Text,
    pub reason: Text,
    pub message: Program,
}

/// A rule whose expressions are right.
pub struct ProgressRule {
    pub name: Text,
    when: Option<Program>,
    pub wait: Option<RuleWait>,
    percent: f64,
    seed: i64,
    pub owned: bool,
    pub grace_seconds: Option<i64>,
    pub finalizers: Vec<Text>,
    /// The expressions of what the rule writes, by field.
    writes: Vec<(&'static str, Program)>,
    event: Option<Report>,
}

/// A compiled Progress.
pub struct Plan {
    pub name: Text,
    pub uid: Text,
    pub generation: i64,
    pub target: KindName,
    pub selector: Option<LabelSelector>,
    pub namespaces: Vec<Text>,
    pub bindings: Vec<Binding>,
    names: VariableNames,
    variables: Vec<(Text, Program)>,
    /// Each with its name, and why it cannot be used if its expressions are wrong.
    pub rules: Vec<(Text, Result<ProgressRule, String>)>,
    /// Why no rule can be used.
    pub problem: Option<String>,
    /// Whether an expression has cost more than a worker of requests may be held for.
    is_costly: AtomicBool,
}

/// The fields of a rule that say what it writes.
const WRITES: [&str; 6] = ["create", "apply", "patch", "merge", "status", "delete"];

fn program(env: &Environment, text: &str) -> Result<Program, String> {
    let checked = env.check(text).map_err(|error| error.to_string())?;
    Program::new(env, &checked).map_err(|error| error.to_string())
}

/// The program of an expression that has to be true or false.
fn condition(env: &Environment, text: &str) -> Result<Program, String> {
    let checked = env.check(text).map_err(|error| error.to_string())?;
    if !matches!(checked.output_type(), Type::Bool | Type::Dyn) {
        return Err("must evaluate to bool".to_owned());
    }
    Program::new(env, &checked).map_err(|error| error.to_string())
}

/// The program of a field, if the field is given. The error names the field.
fn field(env: &Environment, value: &Value, name: &str) -> Result<Option<Program>, String> {
    match value.get(name).and_then(Value::as_str) {
        Some(text) => program(env, text).map(Some).map_err(|why| format!("{name}: {why}")),
        None => Ok(None),
    }
}

fn micros(text: &str) -> Option<i64> {
    let duration = machinery::time::parse_duration(text).ok()?;
    i64::try_from(duration.as_micros()).ok()
}

impl Binding {
    fn read(env: &Environment, name: &Text, value: &Value) -> Result<Binding, String> {
        let expression = |name| field(env, value, name);
        let relation = match value.get("owned").and_then(Value::as_bool) {
            Some(true) => Relation::Owned,
            _ => Relation::Chosen(Box::new(RelatedSelection {
                namespace: expression("namespace")?,
                name: expression("name")?,
                selector: expression("selector")?,
            })),
        };
        Ok(Binding { name: name.clone(), kind: KindName::of(value), relation })
    }
}

impl ProgressRule {
    fn read(env: &Environment, value: &Value) -> Result<ProgressRule, String> {
        let expression = |name| field(env, value, name);
        let mut writes = vec![];
        for name in WRITES {
            writes.extend(expression(name)?.map(|program| (name, program)));
        }
        let wait = match value.get("after").and_then(Value::as_str) {
            None => None,
            Some(text) => Some(RuleWait {
                after: match micros(text) {
                    Some(micros) => Delay::Micros(micros),
                    None => Delay::Computed(Box::new(program(env, text).map_err(|why| format!("after: {why}"))?)),
                },
                since: expression("since")?,
                jitter_micros: match value.get("jitter").and_then(Value::as_str) {
                    Some(text) => micros(text)
                        .and_then(|jitter| u64::try_from(jitter).ok())
                        .ok_or_else(|| format!("jitter: {text} is not a duration"))?,
                    None => 0,
                },
            }),
        };
        let event = match value.get("event") {
            None => None,
            Some(event) => Some(Report {
                kind: event.str_at(&["type"]).into(),
                reason: event.str_at(&["reason"]).into(),
                message: field(env, event, "message")?.ok_or("event: the message is missing")?,
            }),
        };
        Ok(ProgressRule {
            name: value.str_at(&["name"]).into(),
            when: match value.get("when").and_then(Value::as_str) {
                Some(text) => Some(condition(env, text).map_err(|why| format!("when: {why}"))?),
                None => None,
            },
            wait,
            percent: value.get("percent").and_then(Value::as_float).unwrap_or(100.0),
            seed: value.get("seed").and_then(Value::as_int).unwrap_or_default(),
            owned: value.get("owned").and_then(Value::as_bool).unwrap_or(true),
            grace_seconds: value.get("gracePeriodSeconds").and_then(Value::as_int),
            finalizers: value.text_list_at(&["removeFinalizers"]),
            writes,
            event,
        })
    }

    /// A number that the seed gives an object: the same in every run.
    fn chance(&self, purpose: &str, object: &Value) -> u64 {
        let place = [object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"])].join("/");
        let of = format!("{}\n{purpose}\n{}\n{place}", self.seed, self.name);
        let digest = base::digest::sha256(of.as_bytes());
        u64::from_be_bytes(std::array::from_fn(|index| digest[index]))
    }

    fn chooses(&self, object: &Value) -> bool {
        if self.percent >= 100.0 {
            return true;
        }
        #[allow(clippy::cast_precision_loss, reason = "10,000 is exact")]
        let share = (self.chance("percent", object) % 10_000) as f64;
        share < self.percent * 100.0
    }
}

impl Plan {
    /// Compiles a Progress. Its errors become a part of the plan.
    pub fn compile(object: &Value) -> Plan {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut env = Environment::progress().declared("object", Decl::json()).declared("now", Decl::json());
        let (mut bindings, mut variables, mut problem) = (vec![], vec![], None);
        for (name, value) in spec.get("with").and_then(Value::as_object).into_iter().flat_map(machinery::Map::iter) {
            match Binding::read(&env, name, value) {
                Ok(binding) => bindings.push(binding),
                Err(why) => problem = problem.or(Some(format!("with.{name}: {why}"))),
            }
        }
        for binding in &bindings {
            env = env.declared(&binding.name, Decl::json());
        }
        for variable in spec.items_at(&["variables"]) {
            let name = Text::from(variable.str_at(&["name"]));
            match program(&env, variable.str_at(&["expression"])) {
                Ok(program) => variables.push((name.clone(), program)),
                Err(why) => problem = problem.or(Some(format!("variable {name}: {why}"))),
            }
            env = env.declared(&name, Decl::json());
        }
        let rule = |value: &Value| (Text::from(value.str_at(&["name"])), ProgressRule::read(&env, value));
        Plan {
            name: object.str_at(&["metadata", "name"]).into(),
            uid: object.str_at(&["metadata", "uid"]).into(),
            generation: object.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default(),
            target: KindName::of(spec.get("for").unwrap_or(&Value::Null)),
            selector: spec.get("selector").and_then(LabelSelector::from_value),
            namespaces: spec.text_list_at(&["namespaces"]),
            bindings,
            names: env.variable_names(),
            variables,
            rules: spec.items_at(&["rules"]).iter().map(rule).collect(),
            problem,
            is_costly: AtomicBool::new(false),
        }
    }

    /// Evaluates rules: beside the workers of requests once an expression has been costly. To move a worker's other tasks to another
    /// thread takes as long as most evaluations.
    pub fn evaluated<T>(&self, evaluate: impl FnOnce() -> T) -> T {
        if self.is_costly.load(Ordering::Relaxed) { task::blocking(evaluate) } else { evaluate() }
    }

    /// Whether the rules are for an object with this metadata.
    pub fn selects(&self, meta: &objects::Meta) -> bool {
        let in_namespace = self.namespaces.is_empty() || self.namespaces.contains(&meta.namespace);
        in_namespace && self.selector.as_ref().is_none_or(|selector| selector.selects(&meta.labels))
    }

    /// The related objects of a list that an object asks for. The error is one line.
    pub fn choose(&self, binding: &Binding, object: &Value) -> Result<Option<RelatedChoice>, String> {
        let Relation::Chosen(selection) = &binding.relation else { return Ok(None) };
        let RelatedSelection { namespace, name, selector } = &**selection;
        let mut activation = Activation::new(&self.names);
        activation.set("object", value(object));
        let now = now();
        activation.set("now", value(&now));
        let own = Some(Text::from(object.str_at(&["metadata", "namespace"]))).filter(|own| !own.is_empty());
        let namespace = text_of(namespace.as_ref(), &mut activation)?.or(own);
        let name = text_of(name.as_ref(), &mut activation)?;
        let labels = match selector {
            None => None,
            Some(program) => Some(match json_of(program, &mut activation)? {
                // selects nothing, as the selector of a Service that has none
                Value::Null => return Ok(Some(RelatedChoice { namespace, name: Some(Text::default()), labels: None })),
                given if given.get("matchLabels").is_some() || given.get("matchExpressions").is_some() => {
                    LabelSelector::from_value(&given).ok_or("the selector is malformed")?
                }
                labels => {
                    let all: Value = [("matchLabels", labels)].into();
                    LabelSelector::from_value(&all).ok_or("the selector is malformed")?
                }
            }),
        };
        Ok(Some(RelatedChoice { namespace, name, labels }))
    }
}

fn value(json: &Value) -> Val<'_> {
    from_json(json, Decl::json()).unwrap_or(Val::Null)
}

/// The time of the workspace as expressions see it, in whole seconds as objects have it.
pub fn now() -> Value {
    Value::from(clock::now_rfc3339())
}

fn json_of<'p>(program: &'p Program, activation: &mut Activation<'p>) -> Result<Value, String> {
    let outcome = program.eval_in(activation, limits::PROGRESS_COST_MAX);
    let value = outcome.result.map_err(|error| error.to_string())?;
    cel::to_json(&value)
}

fn text_of<'p>(program: Option<&'p Program>, activation: &mut Activation<'p>) -> Result<Option<Text>, String> {
    let Some(program) = program else { return Ok(None) };
    Ok(Some(json_of(program, activation)?.as_str().unwrap_or_default().into()))
}

/// An object with its related ones, as rules see it.
pub struct Snapshot {
    pub object: Value,
    pub related: HashMap<Text, Value>,
}

/// Whether a rule acts on an object now.
pub enum RuleVerdict {
    /// It does not apply.
    Rest,
    /// It applies from this time on, in microseconds since 1970. `since` is when its wait has begun.
    Later {
        since: Option<i64>,
        due: i64,
    },
    Act(Box<Effects>),
}

/// The evaluation of rules for one state of an object.
pub struct Evaluation<'a> {
    plan: &'a Plan,
    object: &'a Value,
    activation: Activation<'a>,
    now_micros: i64,
}

impl<'a> Evaluation<'a> {
    pub fn new(plan: &'a Plan, snapshot: &'a Snapshot, now: &'a Value, now_micros: i64) -> Evaluation<'a> {
        let mut activation = Activation::new(&plan.names);
        activation.set("object", value(&snapshot.object));
        activation.set("now", value(now));
        for (name, related) in &snapshot.related {
            activation.set(name, value(related));
        }
        for (name, program) in &plan.variables {
            activation.compose(name, program);
        }
        Evaluation { plan, object: &snapshot.object, activation, now_micros }
    }

    fn json(&mut self, program: &'a Program) -> Result<Value, String> {
        let outcome = program.eval_in(&mut self.activation, limits::PROGRESS_COST_MAX);
        if outcome.cost > limits::PROGRESS_INLINE_COST {
            self.plan.is_costly.store(true, Ordering::Relaxed);
        }
        cel::to_json(&outcome.result.map_err(|error| error.to_string())?)
    }

    /// The verdict of a rule. `seen` is when it was first seen to apply, if it has been waiting. The error is one line.
    pub fn judge(&mut self, rule: &'a ProgressRule, seen: Option<i64>) -> Result<RuleVerdict, String> {
        let applies = match &rule.when {
            Some(when) => self.json(when).map_err(|why| format!("when: {why}"))? == Value::Bool(true),
            None => true,
        };
        if !applies || !rule.chooses(self.object) {
            return Ok(RuleVerdict::Rest);
        }
        if let Some(wait) = &rule.wait {
            let after = match &wait.after {
                Delay::Micros(micros) => *micros,
                Delay::Computed(program) => {
                    let given = self.json(program).map_err(|why| format!("after: {why}"))?;
                    match given.as_str().and_then(micros) {
                        Some(micros) => micros,
                        None => return Err(format!("after: {} is not a duration", given.to_json())),
                    }
                }
            };
            let jitter = match wait.jitter_micros {
                0 => 0,
                most => i64::try_from(rule.chance("jitter", self.object) % most).unwrap_or_default(),
            };
            let since = match &wait.since {
                None => None,
                Some(program) => {
                    let given = self.json(program).map_err(|why| format!("since: {why}"))?;
                    let time = given.as_str().and_then(machinery::time::parse_rfc3339);
                    let (seconds, nanos) = time.ok_or_else(|| format!("since: {} is not a time", given.to_json()))?;
                    Some(seconds.saturating_mul(1_000_000).saturating_add(i64::from(nanos / 1000)))
                }
            };
            let began = since.or(seen).unwrap_or(self.now_micros);
            let due = began.saturating_add(after).saturating_add(jitter);
            if due > self.now_micros {
                return Ok(RuleVerdict::Later { since: since.is_none().then_some(began), due });
            }
        }
        let mut effects = Effects::default();
        for (name, program) in &rule.writes {
            let given = self.json(program).map_err(|why| format!("{name}: {why}"))?;
            effects.add(name, given).map_err(|why| format!("{name}: {why}"))?;
        }
        if let Some(event) = &rule.event {
            let message = self.json(&event.message).map_err(|why| format!("event: {why}"))?;
            effects.event =
                Some((event.kind.clone(), event.reason.clone(), message.as_str().unwrap_or_default().into()));
        }
        Ok(RuleVerdict::Act(Box::new(effects)))
    }

    pub fn rule(&self, index: usize) -> Option<&'a ProgressRule> {
        self.plan.rules.get(index).and_then(|(_, rule)| rule.as_ref().ok())
    }
}
