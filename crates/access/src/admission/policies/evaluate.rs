//! Evaluation of a validating policy on one write.

use cel::{Activation, Val};
use machinery::{Text, Value};

use super::Denial;
use super::program::{Programs, Validation};
use crate::admission::expressions::{Budget, EvaluationError, WriteVariables, all_hold, value};
use crate::admission::matching::FailurePolicy;

/// The denials of a policy, and its audit annotations.
#[derive(Default)]
pub struct Evaluation {
    pub denials: Vec<Denial>,
    /// Errors of audit annotations, which reject the write whatever the actions of the binding are.
    pub faults: Vec<Denial>,
    pub annotations: Vec<(Text, String)>,
}

/// The programs of a policy, with what their variables stand for.
pub struct PolicyRun<'p, 'w> {
    pub subject: &'p WriteVariables<'w>,
    pub programs: &'p Programs,
    pub params: Option<&'p Value>,
}

impl<'p> PolicyRun<'p, '_> {
    pub fn activation(&self) -> Activation<'p> {
        self.with_programs(self.subject.activation(&self.programs.names))
    }

    fn with_programs(&self, mut activation: Activation<'p>) -> Activation<'p> {
        activation.set("params", self.params.map_or(Val::Null, value));
        activation.set("variables", value(&self.programs.variable_names));
        for (name, expression) in &self.programs.variables {
            expression.compose(&mut activation, name);
        }
        activation
    }

    pub fn conditions_hold(&self) -> Result<bool, String> {
        let mut variables = self.with_programs(self.subject.condition_activation(&self.programs.names));
        let hold = all_hold(&self.programs.conditions, &mut variables);
        self.programs.note_variables(&variables);
        hold
    }

    /// Evaluates a validating policy. Errors are denials too, unless they are ignored.
    pub fn validate(&self, on_failure: FailurePolicy) -> Evaluation {
        if !self.programs.conditions.is_empty() {
            match self.conditions_hold() {
                Ok(true) => {}
                Ok(false) => return Evaluation::default(),
                Err(why) => return Evaluation { denials: failure(on_failure, why), ..Evaluation::default() },
            }
        }
        self.evaluated(on_failure)
    }

    /// Evaluates the validations and the audit annotations.
    fn evaluated(&self, on_failure: FailurePolicy) -> Evaluation {
        let programs = self.programs;
        let failure = |why| failure(on_failure, why);
        let exhausted = |why| Evaluation { denials: failure(why), ..Evaluation::default() };
        let mut budget = Budget(cel::rules::OBJECT_COST_MAX);
        let mut variables = self.activation();
        let mut failures = vec![];
        for (index, validation) in programs.validations.iter().enumerate() {
            match validation.expression.evaluate(&mut variables, &mut budget) {
                Ok(Val::Bool(true)) => {}
                Ok(_) => failures.push((index, validation, None)),
                Err(EvaluationError::Expression(why)) => failures.push((index, validation, Some(why))),
                Err(EvaluationError::OutOfBudget(why)) => return exhausted(why),
            }
        }
        let mut evaluation = Evaluation::default();
        let mut annotations_budget = Budget(cel::rules::OBJECT_COST_MAX);
        for (key, expression) in &programs.annotations {
            match expression.evaluate(&mut variables, &mut annotations_budget) {
                Ok(Val::String(text)) if !text.trim().is_empty() => {
                    evaluation.annotations.push((key.clone(), text.trim().to_owned()));
                }
                Ok(_) => {}
                Err(EvaluationError::Expression(why)) => evaluation.faults.extend(failure(why)),
                Err(EvaluationError::OutOfBudget(why)) => return exhausted(why),
            }
        }
        programs.note_variables(&variables);
        if failures.is_empty() {
            return evaluation;
        }
        let mut variables = self.with_programs(self.subject.message_activation(&programs.names));
        for (index, validation, error) in failures {
            let failed = match error {
                None => vec![denial(validation, &mut variables, &mut budget)],
                Some(why) => failure(why),
            };
            evaluation.denials.extend(failed.into_iter().map(|denial| Denial { index, ..denial }));
        }
        evaluation
    }
}

fn failure(on_failure: FailurePolicy, why: String) -> Vec<Denial> {
    match on_failure {
        FailurePolicy::Fail => vec![Denial::new(why)],
        FailurePolicy::Ignore => vec![],
    }
}

/// The denial of a validation that does not hold. The message is the result of its message expression, else its message,
/// else the expression itself.
fn denial<'p>(validation: &'p Validation, variables: &mut Activation<'p>, budget: &mut Budget) -> Denial {
    let evaluated = validation.message_expression.as_ref().map(|expression| expression.evaluate(variables, budget));
    let computed = match evaluated {
        Some(Err(EvaluationError::OutOfBudget(why))) => return Denial::new(format!("failed messageExpression: {why}")),
        Some(Ok(Val::String(text))) => text.trim().to_owned(),
        _ => String::new(),
    };
    let is_usable = !computed.is_empty() && computed.len() <= cel::rules::MESSAGE_BYTES_MAX && !computed.contains('\n');
    let message = if is_usable {
        computed
    } else if validation.message.is_empty() {
        format!("failed expression: {}", validation.expression.text.trim())
    } else {
        validation.message.to_string()
    };
    Denial { message, reason: validation.reason, index: 0 }
}
