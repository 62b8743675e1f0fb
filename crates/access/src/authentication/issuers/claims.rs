//! Mapping of the claims of a token to a user, by names of claims with prefixes or by CEL expressions (KEP-3331).

use base::request::User;
use cel::{Decl, Environment, Program, Type, Val, from_json, to_json};
use kinds::{MINOR, user_info_type};
use machinery::{Text, Value, json};

use super::error::ClaimError;

/// The source of a value.
#[derive(Debug)]
pub enum Mapping {
    /// A claim, and the prefix of its values.
    Claim {
        name: Text,
        prefix: Text,
    },
    ClaimExpression(ClaimExpression),
}

/// A compiled expression over `claims`, or over `user`.
pub struct ClaimExpression {
    pub text: Text,
    /// The name of the only variable: `claims` or `user`.
    variable: &'static str,
    program: Program,
}

impl std::fmt::Debug for ClaimExpression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A condition on claims or on a user.
#[derive(Debug)]
pub enum ClaimRule {
    /// A claim has a value.
    Required {
        claim: Text,
        value: Text,
    },
    ClaimExpression {
        expression: ClaimExpression,
        message: Text,
    },
}

/// All of an issuer's mappings and rules.
#[derive(Debug)]
pub struct Claims {
    pub username: Mapping,
    pub groups: Option<Mapping>,
    pub uid: Option<Mapping>,
    pub extra: Vec<(Text, ClaimExpression)>,
    pub claim_rules: Vec<ClaimRule>,
    pub user_rules: Vec<ClaimRule>,
}

/// The variables of expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ClaimScope {
    Claims,
    User,
}

/// The result that an expression must have: a boolean in a rule, any in a mapping.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ExpressionResult {
    Bool,
    Any,
}

impl ClaimExpression {
    /// Compiles an expression. The type of a mapping is checked when it is evaluated.
    pub fn compile(text: &str, scope: ClaimScope, result: ExpressionResult) -> Result<ClaimExpression, String> {
        let (variable, variable_type) = match scope {
            ClaimScope::Claims => ("claims", Type::map(Type::String, Type::Dyn)),
            ClaimScope::User => ("user", user_info_type()),
        };
        let env = Environment::kubernetes(MINOR).variable(variable, variable_type);
        let checked = env.check(text).map_err(|error| format!("compilation failed: {error}"))?;
        if result == ExpressionResult::Bool && *checked.output_type() != Type::Bool {
            return Err("must evaluate to bool".to_owned());
        }
        let program = Program::new(&env, &checked).map_err(|error| format!("program instantiation failed: {error}"))?;
        Ok(ClaimExpression { text: text.into(), variable, program })
    }

    fn evaluate(&self, subject: &Value) -> Result<Value, ClaimError> {
        let value = from_json(subject, Decl::json())?;
        let outcome = self.program.eval(&[(self.variable, value)], cel::rules::CALL_COST_MAX);
        let result = outcome.result;
        let result = result.map_err(|source| ClaimError::Evaluation { expression: self.text.clone(), source })?;
        let json = match &result {
            Val::Optional(None) => Ok(Value::Null),
            Val::Optional(Some(value)) => to_json(value),
            value => to_json(value),
        };
        json.map_err(|why| ClaimError::NotJson { expression: self.text.clone(), why })
    }

    /// The result, which must be a string.
    fn text(&self, subject: &Value) -> Result<Text, ClaimError> {
        match self.evaluate(subject)? {
            Value::String(text) => Ok(text),
            _ => Err(self.has_not("string")),
        }
    }

    /// Makes the error for a result of another type than the wanted one.
    fn has_not(&self, wanted: &'static str) -> ClaimError {
        ClaimError::Type { expression: self.text.clone(), wanted }
    }

    /// The result, which must be a string or a list of strings; null and the empty string yield no strings.
    fn texts(&self, subject: &Value) -> Result<Vec<Text>, ClaimError> {
        let mut texts = match self.evaluate(subject)? {
            Value::Null => vec![],
            value => only_strings(&value).ok_or_else(|| self.has_not("list of string"))?,
        };
        texts.retain(|text| !text.is_empty());
        Ok(texts)
    }
}

/// The strings of a string or of a list of strings; `None` for any other value.
fn only_strings(value: &Value) -> Option<Vec<Text>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(Text::from)).collect(),
        _ => None,
    }
}

impl Mapping {
    fn texts(&self, claims: &Value, field: &'static str) -> Result<Vec<Text>, ClaimError> {
        match self {
            Mapping::ClaimExpression(expression) => expression.texts(claims),
            Mapping::Claim { name, prefix } => {
                let Some(value) = claims.get(name) else { return Ok(vec![]) };
                let texts = only_strings(value).ok_or_else(|| ClaimError::NotText { field, name: name.clone() })?;
                Ok(texts.iter().map(|text| Text::from(format!("{prefix}{text}"))).collect())
            }
        }
    }

    fn text(&self, claims: &Value, field: &'static str) -> Result<Text, ClaimError> {
        match self {
            Mapping::ClaimExpression(expression) => expression.text(claims),
            Mapping::Claim { name, prefix } => match claims.get(name) {
                Some(Value::String(text)) => Ok(Text::from(format!("{prefix}{text}"))),
                Some(_) => Err(ClaimError::NotText { field, name: name.clone() }),
                None => Err(ClaimError::Absent { field, name: name.clone() }),
            },
        }
    }
}

impl ClaimRule {
    fn check(&self, subject: &Value) -> Result<(), ClaimError> {
        match self {
            ClaimRule::Required { claim, value } => match claims_text(subject, claim)? {
                found if found == value => Ok(()),
                found => Err(ClaimError::Mismatch { claim: claim.clone(), got: found.clone(), want: value.clone() }),
            },
            ClaimRule::ClaimExpression { expression, message } => match expression.evaluate(subject)? {
                Value::Bool(true) => Ok(()),
                _ => Err(ClaimError::NotHeld { expression: expression.text.clone(), message: message.clone() }),
            },
        }
    }
}

fn claims_text<'a>(claims: &'a Value, name: &Text) -> Result<&'a Text, ClaimError> {
    match claims.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(ClaimError::RequiredNotText(name.clone())),
        None => Err(ClaimError::RequiredAbsent(name.clone())),
    }
}

impl Claims {
    pub fn user(&self, claims: &Value) -> Result<User, ClaimError> {
        if let Mapping::Claim { name, .. } = &self.username
            && name == "email"
            && let Some(verified) = claims.get("email_verified")
            && *verified != Value::Bool(true)
        {
            return Err(ClaimError::Email);
        }
        check_all(&self.claim_rules, "claim", claims)?;
        let name = self.username.text(claims, "username")?;
        let groups = self.groups.as_ref().map(|mapping| mapping.texts(claims, "groups")).transpose()?;
        let uid = self.uid.as_ref().map(|mapping| mapping.text(claims, "uid")).transpose()?;
        let mut extra = vec![];
        if let Some(id) = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty()) {
            extra.push(("authentication.kubernetes.io/credential-id".into(), vec![Text::from(format!("JTI={id}"))]));
        }
        for (key, expression) in &self.extra {
            let values = expression.texts(claims)?;
            if !values.is_empty() {
                extra.push((key.clone(), values));
            }
        }
        let user = User { name, uid: uid.unwrap_or_default(), groups: groups.unwrap_or_default(), extra };
        check_all(&self.user_rules, "user info", &user_variable_of(&user))?;
        Ok(user.authenticated())
    }
}

/// `name` is that of the rules in errors.
fn check_all(rules: &[ClaimRule], name: &'static str, subject: &Value) -> Result<(), ClaimError> {
    let failed = |source| ClaimError::Rule { rules: name, source: Box::new(source) };
    rules.iter().try_for_each(|rule| rule.check(subject)).map_err(failed)
}

fn user_variable_of(user: &User) -> Value {
    let list = |texts: &[Text]| -> Value { texts.iter().map(Value::from).collect() };
    let mut extra = Value::object();
    for (key, values) in &user.extra {
        extra.set_at(&[key], list(values));
    }
    json!({"username": (user.name.clone()), "uid": (user.uid.clone()), "groups": (list(&user.groups)), "extra": extra})
}
