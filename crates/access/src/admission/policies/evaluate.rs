//! Evaluation of a validating policy on one write.

use cel::{Activation, Val};
use machinery::{Text, Value};

use super::Denial;
use super::program::{Programs, Validation};
use crate::admission::expressions::{Budget, Failed, WriteVariables, all_hold, value};

/// The values of all variables; messages have no authorizer.
pub fn activation<'p>(
    subject: &'p WriteVariables<'_>,
    programs: &'p Programs,
    params: Option<&'p Value>,
    authorizer: bool,
) -> Activation<'p> {
    let mut activation = subject.activation(&programs.names, authorizer);
    activation.set("params", params.map_or(Val::Null, value));
    activation.set("variables", value(&programs.variable_names));
    for (name, expression) in &programs.variables {
        expression.compose(&mut activation, name);
    }
    activation
}

/// Evaluates a policy. Returns its denials and its audit annotations; if the policy `fails` (`failurePolicy: Fail`), errors
/// are denials too.
pub fn run(
    subject: &WriteVariables<'_>,
    programs: &Programs,
    params: Option<&Value>,
    fails: bool,
) -> (Vec<Denial>, Vec<(Text, String)>) {
    let mut recorded = vec![];
    let held = match programs.conditions.is_empty() {
        true => Ok(true),
        false => all_hold(&programs.conditions, &mut activation(subject, programs, params, true)),
    };
    let denials = match held {
        Ok(true) => denials(subject, programs, params, fails, &mut recorded),
        Ok(false) => vec![],
        Err(why) => failure(fails, why),
    };
    (denials, recorded)
}

fn failure(fails: bool, why: String) -> Vec<Denial> {
    if fails { vec![Denial::new(why)] } else { vec![] }
}

fn denials(
    subject: &WriteVariables<'_>,
    programs: &Programs,
    params: Option<&Value>,
    fails: bool,
    recorded: &mut Vec<(Text, String)>,
) -> Vec<Denial> {
    let failure = |why| failure(fails, why);
    let mut budget = Budget(cel::rules::OBJECT_COST_MAX);
    let mut variables = activation(subject, programs, params, true);
    let mut failures = vec![];
    for (index, validation) in programs.validations.iter().enumerate() {
        match validation.expression.evaluate(&mut variables, &mut budget) {
            Ok(Val::Bool(true)) => {}
            Ok(_) => failures.push((index, validation, None)),
            Err(Failed::One(why)) => failures.push((index, validation, Some(why))),
            Err(Failed::All(why)) => return failure(why),
        }
    }
    let mut unrecorded = vec![];
    for (key, expression) in &programs.annotations {
        match expression.evaluate(&mut variables, &mut budget) {
            Ok(Val::String(text)) if !text.trim().is_empty() => recorded.push((key.clone(), text.trim().to_owned())),
            Ok(_) => {}
            Err(Failed::One(why) | Failed::All(why)) => {
                unrecorded.extend(failure(why.replacen("expression", "valueExpression", 1)))
            }
        }
    }
    if failures.is_empty() {
        return unrecorded;
    }
    let mut variables = activation(subject, programs, params, false);
    let mut denials = vec![];
    for (index, validation, error) in failures {
        let found = match error {
            None => vec![denial(validation, &mut variables, &mut budget)],
            Some(why) => failure(why),
        };
        denials.extend(found.into_iter().map(|denial| Denial { index, ..denial }));
    }
    denials.extend(unrecorded);
    denials
}

/// The denial of a validation that does not hold. The message is the result of its message expression, else its message,
/// else the expression itself.
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
    Denial { message, reason: validation.reason, index: 0 }
}
