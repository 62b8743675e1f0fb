//! Runs the expressions of a policy on one write.

use cel::value::{Val, from_json};
use cel::{Activation, decl};
use machinery::{Status, Value};

use super::Denial;
use super::program::{Expression, Programs, Validation};
use crate::admission::authorizer::Authorizer;
use crate::admission::{Attributes, World};
use crate::limits;
use crate::resource::Version;

/// A write as the expressions of a policy see it.
pub struct Subject<'a> {
    attributes: &'a Attributes<'a>,
    authorizer: Authorizer<'a>,
    object: Value,
    old: Value,
    namespace: Value,
    request: Value,
}

/// What evaluations may still cost.
struct Budget(u64);

/// The failure of an expression; the budget of all is used up, or only this one failed.
enum Failed {
    All(String),
    One(String),
}

/// Evaluates within a budget.
fn evaluate<'p>(
    expression: &'p Expression,
    activation: &mut Activation<'p>,
    budget: &mut Budget,
) -> Result<Val<'p>, Failed> {
    let program = expression.program.as_ref().map_err(|error| Failed::One(error.clone()))?;
    let outcome = program.eval_in(activation, cel::rules::CALL_COST_MAX);
    match budget.0.checked_sub(outcome.cost) {
        Some(left) => budget.0 = left,
        None => {
            let why = "validation failed due to running out of cost budget, no further validation rules will be run";
            return Err(Failed::All(why.to_owned()));
        }
    }
    outcome.result.map_err(|error| Failed::One(format!("expression '{}' resulted in error: {error}", expression.text)))
}

impl<'a> Subject<'a> {
    /// The objects in the version that the policy names.
    pub fn new(world: &World<'a>, attributes: &'a Attributes<'a>, version: &Version) -> Result<Subject<'a>, Status> {
        let versioned = |object: Option<&Value>| match object {
            None => Ok(Value::Null),
            Some(object) if !attributes.is_versioned() => Ok(object.clone()),
            Some(object) => attributes.resource.convert(object.clone(), attributes.version, version),
        };
        Ok(Subject {
            attributes,
            authorizer: Authorizer::new(world.rbac, attributes),
            object: versioned(attributes.object)?,
            old: versioned(attributes.old)?,
            namespace: namespace_object(world, attributes)?,
            request: attributes.request(version),
        })
    }

    /// The values of all variables; messages have no authorizer.
    fn activation<'p>(&'p self, programs: &'p Programs, params: Option<&'p Value>, authorizer: bool) -> Activation<'p> {
        let known = |value: &'p Value| from_json(value, decl::json()).ok();
        let mut values = vec![known(&self.object), known(&self.old), known(&self.namespace), known(&self.request)];
        if programs.takes_params {
            values.push(params.map_or(Some(Val::Null), known));
        }
        values.extend(if authorizer { self.authorizer.variables(self.attributes) } else { [None, None] });
        values.push(known(&programs.variable_names));
        let mut activation = Activation::new(values);
        for (_, name, expression) in &programs.variables {
            match &expression.program {
                Ok(program) => activation.compose(program, name),
                Err(_) => activation.absent(),
            }
        }
        activation
    }

    /// What the policy has against the write.
    pub fn run(&self, programs: &Programs, params: Option<&Value>, fails: bool) -> Vec<Denial> {
        match self.conditions(programs, params) {
            Ok(true) => {}
            Ok(false) => return vec![],
            Err(why) => return if fails { vec![Denial::new(why)] } else { vec![] },
        }
        let mut budget = Budget(cel::rules::OBJECT_COST_MAX);
        let mut activation = self.activation(programs, params, true);
        let mut failures = vec![];
        for validation in &programs.validations {
            match evaluate(&validation.expression, &mut activation, &mut budget) {
                Ok(Val::Bool(true)) => {}
                Ok(_) => failures.push((validation, None)),
                Err(Failed::One(why)) => failures.push((validation, Some(why))),
                Err(Failed::All(why)) => return if fails { vec![Denial::new(why)] } else { vec![] },
            }
        }
        if failures.is_empty() {
            return vec![];
        }
        let mut messages = self.activation(programs, params, false);
        let mut denials = vec![];
        for (validation, error) in failures {
            match error {
                None => denials.push(denial(validation, &mut messages, &mut budget)),
                Some(why) if fails => denials.push(Denial::new(why)),
                Some(_) => {}
            }
        }
        denials
    }

    /// Whether all match conditions hold; one that doesn't outweighs errors of others.
    fn conditions(&self, programs: &Programs, params: Option<&Value>) -> Result<bool, String> {
        let mut budget = Budget(limits::MATCH_CONDITIONS_COST_MAX);
        let mut activation = self.activation(programs, params, true);
        let mut errors = vec![];
        for condition in &programs.conditions {
            match evaluate(condition, &mut activation, &mut budget) {
                Ok(Val::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(Failed::One(why)) => errors.push(why),
                Err(Failed::All(why)) => return Err(why),
            }
        }
        if errors.is_empty() { Ok(true) } else { Err(crate::authorization::joined(&errors)) }
    }
}

/// The denial of a validation that doesn't hold: its message is what its expression says, else what it is given, else
/// the expression itself.
fn denial<'p>(validation: &'p Validation, activation: &mut Activation<'p>, budget: &mut Budget) -> Denial {
    let said = validation.message_expression.as_ref().map(|expression| evaluate(expression, activation, budget));
    let said = match said {
        Some(Err(Failed::All(why))) => return Denial::new(format!("failed messageExpression: {why}")),
        Some(Ok(Val::String(text))) => text.trim().to_owned(),
        _ => String::new(),
    };
    let usable = !said.is_empty() && said.len() <= cel::rules::MESSAGE_BYTES_MAX && !said.contains('\n');
    let message = match (usable, validation.message.as_str()) {
        (true, _) => said,
        (false, "") => format!("failed expression: {}", validation.expression.text.trim()),
        (false, message) => message.to_owned(),
    };
    Denial { message, reason: validation.reason }
}

/// `namespaceObject`: the parts of the namespace that expressions may see; null for what is in none.
fn namespace_object(world: &World<'_>, attributes: &Attributes<'_>) -> Result<Value, Status> {
    if attributes.namespace.is_empty() || attributes.is_namespace() {
        return Ok(Value::Null);
    }
    let found = world.namespace(attributes.namespace);
    let found = found.ok_or_else(|| Status::not_found("", "namespaces", attributes.namespace))?;
    let mut object = found.body.to_value(found.revision);
    for hidden in ["managedFields", "ownerReferences"] {
        object.remove_at(&["metadata", hidden]);
    }
    Ok(object)
}
