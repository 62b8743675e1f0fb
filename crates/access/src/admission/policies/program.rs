//! The expressions of a policy, compiled.
//!
//! Compiling never fails: an expression that is wrong reports its error when it is evaluated.

use cel::{Activation, Environment, Type, VariableNames};
use kinds::Scope;
use machinery::status::Reason;
use machinery::{Text, Value};

use crate::admission::expressions::{Expression, compile};

pub struct Validation {
    pub expression: Expression,
    pub message: Text,
    pub message_expression: Option<Expression>,
    pub reason: Reason,
}

/// `patchType`: what the expression of a mutation evaluates to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    ApplyConfiguration,
    JsonPatch,
}

pub struct Mutation {
    pub patch_type: PatchType,
    pub expression: Expression,
}

/// All expressions of a policy. They can use `object`, `oldObject`, `namespaceObject`, `request`, `params` (if the policy
/// has parameters), `authorizer`, `authorizer.requestResource`, and the variables of the policy as `variables.NAME`.
pub struct Programs {
    /// The names of all variables that the expressions can use.
    pub names: VariableNames,
    /// The policy's own variables in the order of their declaration, each under the name `variables.NAME`.
    pub variables: Vec<(Text, Expression)>,
    /// The value of `variables` itself: an object whose fields are the policy's variables, all null, since each has its
    /// value under its own name.
    pub variable_names: Value,
    pub conditions: Vec<Expression>,
    pub validations: Vec<Validation>,
    /// The audit annotations: keys, and expressions of their values.
    pub annotations: Vec<(Text, Expression)>,
    pub mutations: Vec<Mutation>,
}

impl Programs {
    pub fn compile(spec: &Value) -> Programs {
        let takes_params = spec.get("paramKind").is_some();
        let mut types: Vec<(Text, Type)> = vec![];
        let mut variables = vec![];
        let scope = Scope { params: takes_params, authorizer: true, variables: None, mutations: false };
        // a variable can use only those that are declared before it
        for variable in spec.items_at(&["variables"]) {
            let env = Scope { variables: Some(&types), ..scope }.environment();
            let (expression, variable_type) = compile(variable.str_at(&["expression"]), &env);
            let name = Text::from(variable.str_at(&["name"]));
            variables.push((Text::from(format!("variables.{name}")), expression));
            types.push((name, variable_type));
        }
        let env = Scope { variables: Some(&types), ..scope }.environment();
        let mut variable_names = machinery::Map::new();
        types.iter().for_each(|(name, _)| drop(variable_names.insert(name.clone(), Value::Null)));
        let annotation = |annotation: &Value| {
            let key = Text::from(annotation.str_at(&["key"]));
            (key, compile(annotation.str_at(&["valueExpression"]), &env).0)
        };
        let mutation_env = Scope { variables: Some(&types), mutations: true, ..scope }.environment();
        let condition = |condition: &Value| compile(condition.str_at(&["expression"]), &env).0;
        Programs {
            names: env.variable_names(),
            variables,
            variable_names: Value::Object(variable_names),
            conditions: spec.items_at(&["matchConditions"]).iter().map(condition).collect(),
            validations: spec
                .items_at(&["validations"])
                .iter()
                .map(|validation| Validation::compile(validation, &env))
                .collect(),
            mutations: spec
                .items_at(&["mutations"])
                .iter()
                .map(|mutation| Mutation::compile(mutation, &mutation_env))
                .collect(),
            annotations: spec.items_at(&["auditAnnotations"]).iter().map(annotation).collect(),
        }
    }

    /// Records, for coverage, what the variables evaluated to. Those that no expression has used were not evaluated.
    pub fn note_variables(&self, activation: &Activation<'_>) {
        self.variables.iter().for_each(|(name, expression)| expression.note_variable(activation, name));
    }

    /// All expressions, each with its place in the policy's `spec`, such as `validations[0].messageExpression`.
    pub fn all(&self) -> impl Iterator<Item = (String, &Expression)> {
        let numbered = |list: &'static str| move |index: usize| format!("{list}[{index}]");
        let conditions = self.conditions.iter().enumerate();
        let variables = self.variables.iter().map(|(name, expression)| (name.to_string(), expression));
        let validations = self.validations.iter().enumerate().flat_map(move |(index, validation)| {
            let place = numbered("validations")(index);
            let message = validation.message_expression.iter().map({
                let place = place.clone();
                move |expression| (format!("{place}.messageExpression"), expression)
            });
            std::iter::once((place, &validation.expression)).chain(message)
        });
        let annotations =
            self.annotations.iter().map(|(key, expression)| (format!("auditAnnotations[{key}]"), expression));
        let mutations = self.mutations.iter().enumerate();
        conditions
            .map(move |(index, expression)| (numbered("matchConditions")(index), expression))
            .chain(variables)
            .chain(validations)
            .chain(annotations)
            .chain(mutations.map(move |(index, mutation)| (numbered("mutations")(index), &mutation.expression)))
    }
}

impl Mutation {
    fn compile(mutation: &Value, env: &Environment) -> Mutation {
        let (patch_type, field) = match mutation.str_at(&["patchType"]) {
            "JSONPatch" => (PatchType::JsonPatch, "jsonPatch"),
            _ => (PatchType::ApplyConfiguration, "applyConfiguration"),
        };
        Mutation { patch_type, expression: compile(mutation.str_at(&[field, "expression"]), env).0 }
    }
}

impl Validation {
    fn compile(validation: &Value, env: &Environment) -> Validation {
        let message = validation.str_at(&["messageExpression"]);
        Validation {
            expression: compile(validation.str_at(&["expression"]), env).0,
            message: validation.str_at(&["message"]).trim().into(),
            message_expression: (!message.is_empty()).then(|| compile(message, env).0),
            reason: match validation.str_at(&["reason"]) {
                "Forbidden" => Reason::Forbidden,
                "RequestEntityTooLarge" => Reason::RequestEntityTooLarge,
                _ => Reason::Invalid,
            },
        }
    }
}
