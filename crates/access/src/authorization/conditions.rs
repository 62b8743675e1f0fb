//! The match conditions of a webhook: CEL over the SubjectAccessReview to be sent.

use cel::{Activation, Decl, Environment, Program, Type, Val, VariableNames, from_json};
use kinds::{MINOR, access_review_type};
use machinery::status::aggregate;
use machinery::{Text, Value};

/// A compiled condition.
pub struct Condition {
    text: Text,
    program: Program,
    variables: VariableNames,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    /// Compiles a condition, which must be a boolean expression.
    pub fn compile(text: &str) -> Result<Condition, String> {
        let env = Environment::kubernetes(MINOR).variable("request", access_review_type());
        let checked = env.check(text).map_err(|error| format!("compilation failed: {error}"))?;
        if *checked.output_type() != Type::Bool {
            return Err(format!("must evaluate to bool but got {}", checked.output_type().format("")));
        }
        let program = Program::new(&env, &checked).map_err(|error| format!("program instantiation failed: {error}"))?;
        Ok(Condition { text: text.into(), program, variables: env.variable_names() })
    }
}

/// Whether all conditions are true for the spec of a review; a false one takes precedence over errors of others.
pub fn all_hold(conditions: &[Condition], spec: &Value) -> Result<bool, String> {
    let Some(first) = conditions.first() else { return Ok(true) };
    let spec = complete(spec);
    let request = from_json(&spec, Decl::json()).map_err(|error| error.to_string())?;
    // all conditions have the same variables
    let mut activation = Activation::new(&first.variables);
    activation.set("request", request);
    let mut errors = vec![];
    for condition in conditions {
        match condition.program.eval_in(&mut activation, cel::rules::CALL_COST_MAX).result {
            Ok(Val::Bool(true)) => {}
            Ok(_) => return Ok(false),
            Err(error) => {
                let text = &condition.text;
                errors.push(format!("cel evaluation error: expression '{text}' resulted in error: {error}"));
            }
        }
    }
    if errors.is_empty() { Ok(true) } else { Err(aggregate(&errors)) }
}

/// The spec with empty values for absent fields, so that expressions need no `has()`.
fn complete(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for name in ["user", "uid"] {
        set_default(&mut spec, &[name], Value::from(""));
    }
    set_default(&mut spec, &["groups"], Value::Array(vec![]));
    set_default(&mut spec, &["extra"], Value::object());
    if spec.get("resourceAttributes").is_some() {
        for name in ["namespace", "verb", "group", "version", "resource", "subresource", "name"] {
            set_default(&mut spec, &["resourceAttributes", name], Value::from(""));
        }
    }
    spec
}

fn set_default(object: &mut Value, path: &[&str], value: Value) {
    if object.at(path).is_none() {
        object.set_at(path, value);
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn all_match_conditions_must_hold() {
        let hold = |texts: &[&str]| {
            let conditions: Vec<Condition> = texts.iter().map(|text| Condition::compile(text).unwrap()).collect();
            all_hold(&conditions, &json!({"user": "ann", "resourceAttributes": {"verb": "list", "namespace": "n"}}))
        };
        assert_eq!(hold(&[]), Ok(true));
        assert_eq!(hold(&["request.user == 'ann'", "request.resourceAttributes.name == ''"]), Ok(true));
        assert_eq!(hold(&["has(request.nonResourceAttributes)"]), Ok(false));
        assert_eq!(hold(&["request.extra['k'][0] == 'v'", "request.user == 'bob'"]), Ok(false));
        let failed = hold(&["request.extra['k'][0] == 'v'"]).unwrap_err();
        assert!(
            failed.starts_with("cel evaluation error: expression 'request.extra['k'][0] == 'v'' resulted in error: ")
        );
        assert!(failed.ends_with("no such key: k"), "{failed}");
    }

    #[test]
    fn conditions_are_checked() {
        assert_eq!(Condition::compile("request.user").unwrap_err(), "must evaluate to bool but got string");
        assert!(Condition::compile("request.users == ''").unwrap_err().starts_with("compilation failed: ERROR: "));
    }
}
