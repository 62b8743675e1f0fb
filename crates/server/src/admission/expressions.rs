//! Expressions about a write: how they are compiled, what they see, what they may cost (api-machinery 26.1).

use cel::types::Type;
use cel::value::{Val, from_json};
use cel::{Activation, Environment, Program, decl};
use machinery::{Status, Text, Value};

use super::authorizer::Authorizer;
use super::{Attributes, World};
use crate::limits;
use crate::resource::Version;

/// A compiled expression, or what is wrong with it: texts are checked when their object is written.
pub struct Expression {
    pub text: Text,
    program: Result<Program, String>,
}

/// Compiles an expression; answers its type too.
pub fn compile(text: &str, env: &Environment) -> (Expression, Type) {
    let checked = env.check(text).map_err(|error| format!("compilation error: compilation failed: {error}"));
    let of = checked.as_ref().map_or(Type::Dyn, |checked| checked.output_type().clone());
    let program = checked.and_then(|checked| {
        Program::new(env, &checked).map_err(|error| format!("compilation error: program instantiation failed: {error}"))
    });
    (Expression { text: text.into(), program }, of)
}

/// What evaluations may still cost.
pub struct Budget(pub u64);

/// The failure of an expression: the budget of all is used up, or only this one failed.
pub enum Failed {
    All(String),
    One(String),
}

impl Expression {
    /// Evaluates within a budget.
    pub fn evaluate<'p>(&'p self, activation: &mut Activation<'p>, budget: &mut Budget) -> Result<Val<'p>, Failed> {
        let program = self.program.as_ref().map_err(|error| Failed::One(error.clone()))?;
        let outcome = program.eval_in(activation, cel::rules::CALL_COST_MAX);
        let Some(left) = budget.0.checked_sub(outcome.cost) else {
            let why = "validation failed due to running out of cost budget, no further validation rules will be run";
            return Err(Failed::All(why.to_owned()));
        };
        budget.0 = left;
        let told = |error| Failed::One(format!("expression '{}' resulted in error: {error}", self.text));
        outcome.result.map_err(told)
    }

    /// Makes the expression the next variable, under a name.
    pub fn compose<'p>(&'p self, activation: &mut Activation<'p>, name: &'p str) {
        match &self.program {
            Ok(program) => activation.compose(program, name),
            Err(_) => activation.absent(),
        }
    }
}

/// Whether all match conditions hold; one that doesn't outweighs errors of others.
pub fn all_hold<'p>(conditions: &'p [Expression], activation: &mut Activation<'p>) -> Result<bool, String> {
    let mut budget = Budget(limits::MATCH_CONDITIONS_COST_MAX);
    let mut errors = vec![];
    for condition in conditions {
        match condition.evaluate(activation, &mut budget) {
            Ok(Val::Bool(true)) => {}
            Ok(_) => return Ok(false),
            Err(Failed::One(why)) => errors.push(why),
            Err(Failed::All(why)) => return Err(why),
        }
    }
    if errors.is_empty() { Ok(true) } else { Err(machinery::status::aggregate(&errors)) }
}

/// The objects of a write in one version: what expressions and webhooks are shown.
pub struct Shown {
    /// Null for a deletion.
    pub object: Value,
    /// Null for a creation.
    pub old: Value,
}

impl Shown {
    /// The objects in a version of their resource.
    pub async fn new(attributes: &Attributes<'_>, version: &Version) -> Result<Shown, Status> {
        Ok(Shown {
            object: shown(attributes, attributes.object, version).await?,
            old: shown(attributes, attributes.old, version).await?,
        })
    }
}

/// An object in a version; null if there is none.
async fn shown(attributes: &Attributes<'_>, object: Option<&Value>, version: &Version) -> Result<Value, Status> {
    match object {
        None => Ok(Value::Null),
        Some(object) if !attributes.is_versioned() => Ok(object.clone()),
        Some(object) => attributes.resource.convert(object.clone(), attributes.version, version).await,
    }
}

/// A write as expressions see it.
pub struct Subject<'a> {
    attributes: &'a Attributes<'a>,
    authorizer: Authorizer<'a>,
    shown: &'a Shown,
    namespace: Value,
    request: Value,
}

impl<'a> Subject<'a> {
    pub fn new(
        world: &World<'a>,
        attributes: &'a Attributes<'a>,
        version: &Version,
        shown: &'a Shown,
    ) -> Result<Subject<'a>, Status> {
        Ok(Subject {
            attributes,
            authorizer: Authorizer::new(world.authorizer, attributes),
            shown,
            namespace: namespace_object(world, attributes)?,
            request: attributes.request(version),
        })
    }

    /// The values of `object`, `oldObject`, `namespaceObject` and `request`, then what is given, then those of
    /// `authorizer` and `authorizer.requestResource`, which messages don't have.
    pub fn values<'p>(&'p self, more: Option<Val<'p>>, authorizer: bool) -> Vec<Option<Val<'p>>> {
        let known = [&self.shown.object, &self.shown.old, &self.namespace, &self.request];
        let mut values: Vec<Option<Val<'p>>> = known.into_iter().map(value).collect();
        values.extend(more.map(Some));
        values.extend(if authorizer { self.authorizer.variables(self.attributes) } else { [None, None] });
        values
    }
}

/// JSON as expressions have it.
pub fn value(json: &Value) -> Option<Val<'_>> {
    from_json(json, decl::json()).ok()
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
