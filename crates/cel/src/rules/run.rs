//! Evaluation of rules on an object.
//!
//! The walk evaluates the rules of a node, then those of its children. When the cost budget is used up, no further rule is
//! evaluated.

use super::{
    CALL_COST_MAX, MESSAGE_BYTES_MAX, OBJECT_COST_MAX, Reason, Rule, RuleNode, SchemaNode, Validation, Verdict,
};
use crate::limits::OBJECT_WORK_UNITS;
use crate::value::{Val, from_json};
use crate::{Activation, Error, Outcome, Program, work};
use machinery::field::{FieldErrorKind, render};
use machinery::value::quote;
use machinery::{FieldError, FieldPath, Text, Value};

/// A value and the one before an update.
#[derive(Clone, Copy)]
struct Pair<'a> {
    new: &'a Value,
    old: &'a Value,
    place: &'a dyn SchemaNode,
}

/// The relation of a value to the one before an update, for ratcheting.
#[derive(Clone, Copy)]
enum Correlation<'a> {
    /// There is no ratcheting.
    Off,
    /// The value has an old value.
    Here(Pair<'a>),
    /// The value cannot be correlated. These are the values of its nearest ancestor that can.
    Above(Pair<'a>),
}

/// A value with rules, and its place.
#[derive(Clone, Copy)]
struct Ruled<'a> {
    node: &'a RuleNode,
    path: &'a FieldPath,
    value: &'a Value,
    old: Option<&'a Value>,
    correlation: Correlation<'a>,
}

struct RuleWalk {
    verdict: Verdict,
    budget: i64,
    /// The remaining units of work, see [`crate::work`].
    work: u64,
}

pub(super) fn validate(root: &RuleNode, object: &Value, validation: &Validation<'_>) -> Verdict {
    let budget = i64::try_from(validation.cost_max.unwrap_or(OBJECT_COST_MAX)).unwrap_or(i64::MAX);
    let mut walk = RuleWalk { verdict: Verdict::default(), budget, work: OBJECT_WORK_UNITS };
    let correlation = match (validation.old, validation.ratcheting) {
        (Some(old), Some(place)) => Correlation::Here(Pair { new: object, old, place }),
        _ => Correlation::Off,
    };
    let path = validation.path.cloned().unwrap_or_else(FieldPath::root);
    walk.node(Ruled { node: root, path: &path, value: object, old: validation.old, correlation });
    walk.verdict
}

impl<'a> Correlation<'a> {
    fn unchanged(self) -> bool {
        match self {
            Correlation::Off => false,
            Correlation::Here(pair) | Correlation::Above(pair) => pair.place.unchanged(pair.new, pair.old),
        }
    }

    /// The old value of a field with a new value.
    fn field(self, name: &str, new: &'a Value) -> Correlation<'a> {
        let Correlation::Here(pair) = self else { return self };
        match (pair.place.field(name), pair.old.get(name)) {
            (Some(place), Some(old)) => Correlation::Here(Pair { new, old, place }),
            _ => Correlation::Above(pair),
        }
    }

    /// The old value of a list item, found by its keys.
    fn item(self, new: &'a Value, old: Option<&'a Value>) -> Correlation<'a> {
        let Correlation::Here(pair) = self else { return self };
        match (pair.place.items(), old) {
            (Some(place), Some(old)) => Correlation::Here(Pair { new, old, place }),
            _ => Correlation::Above(pair),
        }
    }
}

fn field(path: &FieldPath) -> String {
    if path.as_str().is_empty() { "<nil>".to_owned() } else { path.as_str().to_owned() }
}

fn invalid(path: &FieldPath, node: &RuleNode, detail: String) -> FieldError {
    FieldError { kind: FieldErrorKind::Invalid, field: field(path), value: quote(&node.schema_type), detail }
}

/// The key of an item of a map list, as text that is equal for equal keys.
fn item_key(item: &Value, keys: &[Text]) -> Option<String> {
    let mut out = String::new();
    for key in keys {
        let value = item.get(key)?;
        if matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
            return None;
        }
        out.push('\0');
        out.push_str(&value.to_json());
    }
    Some(out)
}

impl RuleWalk {
    /// Returns whether to continue.
    fn node(&mut self, at: Ruled<'_>) -> bool {
        if at.value.is_null() {
            return true;
        }
        let at = Ruled { old: at.old.filter(|old| !old.is_null()), ..at };
        if !self.rules(at) {
            return false;
        }
        match at.value {
            Value::Array(items) => self.items(at, items),
            Value::Object(fields) => self.fields(at, fields),
            _ => true,
        }
    }

    fn fields<'a>(&mut self, at: Ruled<'a>, fields: &'a machinery::Map) -> bool {
        let Ruled { node, path, old, correlation, .. } = at;
        let old = old.filter(|_| node.correlatable_map);
        let is_root = path.as_str().is_empty();
        let below = |name: &str, field: &'a Value| match name {
            "apiVersion" | "kind" if is_root => Correlation::Off,
            name => correlation.field(name, field),
        };
        if let Some(additional) = &node.additional {
            for (name, field) in fields.iter() {
                let (old, path) = (old.and_then(|old| old.get(name)), &path.key(name));
                let correlation = below(name, field);
                if !self.node(Ruled { node: additional, path, value: field, old, correlation }) {
                    return false;
                }
            }
        }
        for (name, property) in &node.properties {
            let Some(field) = fields.get(name) else { continue };
            let old = old.and_then(|old| old.get(name));
            let path = &if name.is_empty() { path.key(name) } else { path.child(name) };
            let correlation = below(name, field);
            if !self.node(Ruled { node: property, path, value: field, old, correlation }) {
                return false;
            }
        }
        true
    }

    fn items<'a>(&mut self, at: Ruled<'a>, items: &'a [Value]) -> bool {
        let Ruled { node, path, old, correlation, .. } = at;
        let Some(item_node) = &node.items else { return true };
        let keys = node.list_keys.as_deref();
        let keyed = |old: Option<&'_ Value>| -> std::collections::BTreeMap<String, usize> {
            let items = old.and_then(Value::as_array).unwrap_or_default();
            let Some(keys) = keys else { return Default::default() };
            let pairs = items.iter().enumerate().rev();
            pairs.filter_map(|(i, item)| Some((item_key(item, keys)?, i))).collect()
        };
        let old_items = old.and_then(Value::as_array).unwrap_or_default();
        let places = keyed(old);
        let find = |item: &Value| places.get(&item_key(item, keys?)?).and_then(|i| old_items.get(*i));
        for (i, value) in items.iter().enumerate() {
            let old = find(value);
            let correlation = correlation.item(value, old);
            if !self.node(Ruled { node: item_node, path: &path.index(i), value, old, correlation }) {
                return false;
            }
        }
        true
    }

    fn rules(&mut self, at: Ruled<'_>) -> bool {
        let Ruled { node, path, value, old, .. } = at;
        if let Some(broken) = &node.broken {
            let detail = format!("rule compiler initialization error: {broken}");
            self.verdict.errors.push(invalid(path, node, detail));
            return true;
        }
        if node.rules.is_empty() {
            return true;
        }
        if self.budget <= 0 {
            self.out_of_budget(at);
            return false;
        }
        let this = from_json(value, &node.decl);
        // message expressions have the old value only if the rule uses it
        let looks_back = node.rules.iter().any(|rule| rule.uses_old_self);
        let before = old.filter(|_| looks_back).map(|old| from_json(old, &node.decl));
        for rule in node.rules.iter() {
            let variables = Variables { this: &this, before: before.as_ref() };
            if !self.rule(rule, at, &variables) {
                return false;
            }
        }
        true
    }

    fn out_of_budget(&mut self, at: Ruled<'_>) {
        let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
        self.verdict.errors.push(invalid(at.path, at.node, detail.to_owned()));
    }

    fn evaluate<'a>(&mut self, program: &'a Program, values: [Option<Val<'a>>; 2]) -> Outcome<'a> {
        let units = self.work.min(work::EVALUATION_UNITS);
        let outcome = program.eval_within(&mut Activation::of_values(values), CALL_COST_MAX, units);
        self.work -= units - work::left().min(units);
        outcome
    }

    /// The outcome of an expression whose variables have no values because of `error`. The error is the result only if
    /// the expression depends on the variables, and does not end where cel-go panics.
    fn evaluate_without<'a>(&mut self, program: &'a Program, error: Error) -> Outcome<'a> {
        let outcome = self.evaluate(program, [None, None]);
        match &outcome.result {
            Ok(_) => outcome,
            Err(found) if found.is_fatal() && !found.is_cancelled() => outcome,
            Err(_) => Outcome { result: Err(error), cost: 1 },
        }
    }

    fn spend(&mut self, cost: u64) -> bool {
        self.verdict.cost = self.verdict.cost.saturating_add(cost);
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                true
            }
            _ => false,
        }
    }

    fn rule<'a>(&mut self, rule: &'a Rule, at: Ruled<'a>, variables: &Variables<'_, 'a>) -> bool {
        let program = match &rule.program {
            Ok(program) => program,
            Err(error) => {
                let detail = format!("rule compile error: {error}");
                self.verdict.errors.push(invalid(at.path, at.node, detail));
                return true;
            }
        };
        if rule.uses_old_self && variables.before.is_none() && !rule.optional_old_self {
            return true;
        }
        let values = if rule.optional_old_self { variables.with_optional_old_self() } else { variables.values() };
        let outcome = match values {
            Ok(values) => self.evaluate(program, values),
            Err(error) => self.evaluate_without(program, error),
        };
        if !self.spend(outcome.cost) {
            self.out_of_budget(at);
            return false;
        }
        let detail = match &outcome.result {
            Ok(Val::Bool(true)) => return true,
            Ok(_) => return self.failed(rule, at, variables),
            Err(error) if error.is_overload() => format!(
                "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                rule.name
            ),
            Err(error) if error.is_cancelled() => format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                rule.name
            ),
            Err(error) => format!("{error} evaluating rule: {}", rule.name),
        };
        self.verdict.errors.push(invalid(at.path, at.node, detail));
        !matches!(&outcome.result, Err(error) if error.is_cancelled())
    }

    fn failed<'a>(&mut self, rule: &'a Rule, at: Ruled<'a>, variables: &Variables<'_, 'a>) -> bool {
        let Ruled { node, path, value, correlation, .. } = at;
        let path = if rule.field_path.is_empty() { path.clone() } else { path.child(&rule.field_path) };
        let ratcheted = !rule.uses_old_self && correlation.unchanged();
        let (error, goes_on) = match self.message(rule, variables) {
            Ok(message) => {
                let message = message.or_else(|| rule.message.clone());
                let detail = message.unwrap_or_else(|| format!("failed rule: {}", rule.name));
                (failure(node, rule, &path, value, detail), true)
            }
            Err(detail) => (invalid(&path, node, detail), false),
        };
        if ratcheted {
            self.verdict.warnings.push(error.to_string());
        } else {
            self.verdict.errors.push(error);
        }
        goes_on
    }

    /// The message of the message expression, if it yields a valid one. An error ends the validation.
    fn message<'a>(&mut self, rule: &'a Rule, variables: &Variables<'_, 'a>) -> Result<Option<String>, String> {
        let Some(program) = &rule.message_program else { return Ok(None) };
        let Ok(values) = variables.values() else { return Ok(None) };
        let outcome = self.evaluate(program, values);
        if !self.spend(outcome.cost) {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no further validation \
                        rules will be run"
                    .to_owned(),
            );
        }
        match outcome.result {
            Err(error) if error.is_cancelled() => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                quote(&rule.message_expression)
            )),
            Ok(Val::String(text)) => {
                let text = text.trim();
                let good = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
                Ok(good.then(|| text.to_owned()))
            }
            _ => Ok(None),
        }
    }
}

/// The error of a failed rule, of the kind of its reason.
fn failure(node: &RuleNode, rule: &Rule, path: &FieldPath, value: &Value, detail: String) -> FieldError {
    let field = field(path);
    let shown = !matches!(node.schema_type.as_str(), "object" | "array");
    let rendered = if shown { render(value) } else { String::new() };
    match rule.reason {
        Reason::Forbidden => FieldError { kind: FieldErrorKind::Forbidden, field, value: String::new(), detail },
        Reason::Required => FieldError { kind: FieldErrorKind::Required, field, value: String::new(), detail },
        Reason::Duplicate => {
            FieldError { kind: FieldErrorKind::Duplicate, field, value: rendered, detail: String::new() }
        }
        // without a value to show, the detail takes the place of the value
        Reason::Invalid if !shown => {
            FieldError { kind: FieldErrorKind::Invalid, field, value: detail, detail: String::new() }
        }
        Reason::Invalid => FieldError { kind: FieldErrorKind::Invalid, field, value: rendered, detail },
    }
}

/// `self` and `oldSelf`.
struct Variables<'v, 'a> {
    this: &'v crate::value::Result<Val<'a>>,
    before: Option<&'v crate::value::Result<Val<'a>>>,
}

impl<'a> Variables<'_, 'a> {
    fn values(&self) -> crate::value::Result<[Option<Val<'a>>; 2]> {
        Ok([Some(self.this.clone()?), self.before.cloned().transpose()?])
    }

    fn with_optional_old_self(&self) -> crate::value::Result<[Option<Val<'a>>; 2]> {
        let [this, before] = self.values()?;
        Ok([this, Some(before.map_or(Val::Optional(None), Val::some))])
    }
}
