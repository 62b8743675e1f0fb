//! Runs the expressions of a policy on one write.

use cel::Activation;
use cel::value::Val;
use machinery::Value;

use super::Denial;
use super::program::{Programs, Validation};
use crate::admission::expressions::{Budget, Failed, Subject, all_hold, value};

/// The values of all variables; messages have no authorizer.
fn activation<'p>(
    subject: &'p Subject<'_>,
    programs: &'p Programs,
    params: Option<&'p Value>,
    authorizer: bool,
) -> Activation<'p> {
    let params = programs.takes_params.then(|| params.and_then(value).unwrap_or(Val::Null));
    let mut values = subject.values(params, authorizer);
    values.push(value(&programs.variable_names));
    let mut activation = Activation::new(values);
    for (name, expression) in &programs.variables {
        expression.compose(&mut activation, name);
    }
    activation
}

/// What a policy has against a write. What goes wrong is held against it too if the policy `fails`.
pub fn run(subject: &Subject<'_>, programs: &Programs, params: Option<&Value>, fails: bool) -> Vec<Denial> {
    let gone_wrong = |why: String| if fails { vec![Denial::new(why)] } else { vec![] };
    match all_hold(&programs.conditions, &mut activation(subject, programs, params, true)) {
        Ok(true) => {}
        Ok(false) => return vec![],
        Err(why) => return gone_wrong(why),
    }
    let mut budget = Budget(cel::rules::OBJECT_COST_MAX);
    let mut variables = activation(subject, programs, params, true);
    let mut failures = vec![];
    for validation in &programs.validations {
        match validation.expression.evaluate(&mut variables, &mut budget) {
            Ok(Val::Bool(true)) => {}
            Ok(_) => failures.push((validation, None)),
            Err(Failed::One(why)) => failures.push((validation, Some(why))),
            Err(Failed::All(why)) => return gone_wrong(why),
        }
    }
    if failures.is_empty() {
        return vec![];
    }
    let mut variables = activation(subject, programs, params, false);
    let mut denials = vec![];
    for (validation, error) in failures {
        match error {
            None => denials.push(denial(validation, &mut variables, &mut budget)),
            Some(why) => denials.extend(gone_wrong(why)),
        }
    }
    denials
}

/// The denial of a validation that doesn't hold: its message is what its expression says, else what it is given, else
/// the expression itself.
fn denial<'p>(validation: &'p Validation, variables: &mut Activation<'p>, budget: &mut Budget) -> Denial {
    let said = validation.message_expression.as_ref().map(|expression| expression.evaluate(variables, budget));
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
