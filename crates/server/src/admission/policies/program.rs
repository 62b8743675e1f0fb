//! The expressions of a policy, compiled.

use cel::Environment;
use cel::types::Type;
use machinery::status::Reason;
use machinery::{Text, Value};

use crate::admission::expressions::{Expression, compile};
use crate::resource::builtin::Scope;

pub struct Validation {
    pub expression: Expression,
    pub message: Text,
    pub message_expression: Option<Expression>,
    pub reason: Reason,
}

/// All expressions of a policy. Each sees the variables `object`, `oldObject`, `namespaceObject`, `request`, `params` (if
/// there are such), `authorizer`, `authorizer.requestResource`, `variables` and each of the policy's own, in this order.
pub struct Programs {
    pub takes_params: bool,
    /// With their names: `variables.NAME`.
    pub variables: Vec<(Text, Expression)>,
    /// `variables` as a whole: which there are.
    pub variable_names: Value,
    pub conditions: Vec<Expression>,
    pub validations: Vec<Validation>,
}

fn list<'a>(spec: &'a Value, key: &str) -> &'a [Value] {
    spec.get(key).and_then(Value::as_array).unwrap_or_default()
}

impl Programs {
    pub fn compile(spec: &Value) -> Programs {
        let takes_params = spec.get("paramKind").is_some();
        let mut types: Vec<(Text, Type)> = vec![];
        let mut variables = vec![];
        let scope = Scope { params: takes_params, authorizer: true, variables: None };
        for variable in list(spec, "variables") {
            let env = Scope { variables: Some(&types), ..scope }.environment();
            let (expression, of) = compile(variable.str_at(&["expression"]), &env);
            let name = Text::from(variable.str_at(&["name"]));
            variables.push((Text::from(format!("variables.{name}")), expression));
            types.push((name, of));
        }
        let env = Scope { variables: Some(&types), ..scope }.environment();
        let mut variable_names = machinery::Map::new();
        types.iter().for_each(|(name, _)| drop(variable_names.insert(name.clone(), Value::Null)));
        let condition = |condition: &Value| compile(condition.str_at(&["expression"]), &env).0;
        Programs {
            takes_params,
            variables,
            variable_names: Value::Object(variable_names),
            conditions: list(spec, "matchConditions").iter().map(condition).collect(),
            validations: list(spec, "validations").iter().map(|v| Validation::compile(v, &env)).collect(),
        }
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
