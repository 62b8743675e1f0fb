//! Expressions about a write: compilation, variables and cost limits.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};

use cel::{Activation, Decl, Environment, LazyValue, Program, Type, Val, VariableNames, from_json};
use machinery::{Status, Text, Value};
use objects::Stored;
use resource::Version;

use super::Attributes;
use super::authorizer::{ExpressionAuthorizer, RequestResource};
use super::patched::refusal;
use crate::limits;

/// A compiled expression, or its error; expressions are checked when their object is written.
pub struct Expression {
    pub text: Text,
    program: Result<Program, String>,
    pub outcomes: Outcomes,
}

/// The results of an expression's evaluations, for the coverage of tests. An evaluation that waits for an
/// authorization webhook and is repeated counts each time.
#[derive(Debug, Default)]
pub struct Outcomes(AtomicU8);

impl Outcomes {
    const TRUE: u8 = 1;
    const FALSE: u8 = 2;
    const OTHER: u8 = 4;

    fn note(&self, result: Result<&Val<'_>, &cel::Error>) {
        let bit = match result {
            Ok(Val::Bool(true)) => Outcomes::TRUE,
            Ok(Val::Bool(false)) | Err(_) => Outcomes::FALSE,
            Ok(_) => Outcomes::OTHER,
        };
        // most results have been noted before, and a write would take the cache line from other cores
        if self.0.load(Ordering::Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether an evaluation was true, or had a value that is not a boolean.
    pub fn was_true(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (Outcomes::TRUE | Outcomes::OTHER) != 0
    }

    /// Whether an evaluation was false, failed, or had a value that is not a boolean.
    pub fn was_false(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (Outcomes::FALSE | Outcomes::OTHER) != 0
    }
}

/// Compiles an expression; returns its type as well.
pub fn compile(text: &str, env: &Environment) -> (Expression, Type) {
    let checked = env.check(text).map_err(|error| format!("compilation error: compilation failed: {error}"));
    let of = checked.as_ref().map_or(Type::Dyn, |checked| checked.output_type().clone());
    let program = checked.and_then(|checked| {
        Program::new(env, &checked).map_err(|error| format!("compilation error: program instantiation failed: {error}"))
    });
    (Expression { text: text.into(), program, outcomes: Outcomes::default() }, of)
}

/// The remaining cost budget.
pub struct Budget(pub u64);

/// Why the evaluation of an expression failed.
pub enum EvaluationError {
    /// The shared budget is exhausted, so no further expression is evaluated.
    OutOfBudget(String),
    /// Only this expression failed.
    Expression(String),
}

impl Expression {
    /// Evaluates within the budget.
    pub fn evaluate<'p>(
        &'p self,
        activation: &mut Activation<'p>,
        budget: &mut Budget,
    ) -> Result<Val<'p>, EvaluationError> {
        let program = self.program.as_ref().map_err(|error| EvaluationError::Expression(error.clone()))?;
        let outcome = program.eval_in(activation, cel::rules::CALL_COST_MAX);
        self.outcomes.note(outcome.result.as_ref());
        let Some(left) = budget.0.checked_sub(outcome.cost) else {
            let why = "validation failed due to running out of cost budget, no further validation rules will be run";
            return Err(EvaluationError::OutOfBudget(why.to_owned()));
        };
        budget.0 = left;
        let failed =
            |error| EvaluationError::Expression(format!("expression '{}' resulted in error: {error}", self.text));
        outcome.result.map_err(failed)
    }

    /// Notes the value of a variable that the expression computes, if it has been needed.
    pub fn note_variable(&self, activation: &Activation<'_>, name: &str) {
        if let Some(result) = activation.known(name) {
            self.outcomes.note(result);
        }
    }

    /// Sets a variable to the value of the expression, which is computed at its first use.
    pub fn compose<'p>(&'p self, activation: &mut Activation<'p>, name: &'p str) {
        if let Ok(program) = &self.program {
            activation.compose(name, program);
        }
    }
}

/// Whether all match conditions are true; a false one takes precedence over errors of others.
pub fn all_hold<'p>(conditions: &'p [Expression], activation: &mut Activation<'p>) -> Result<bool, String> {
    let mut budget = Budget(limits::MATCH_CONDITIONS_COST_MAX);
    let mut errors = vec![];
    for condition in conditions {
        match condition.evaluate(activation, &mut budget) {
            Ok(Val::Bool(true)) => {}
            Ok(_) => return Ok(false),
            Err(EvaluationError::Expression(why)) => errors.push(why),
            Err(EvaluationError::OutOfBudget(why)) => return Err(why),
        }
    }
    if errors.is_empty() { Ok(true) } else { Err(machinery::status::aggregate(&errors)) }
}

/// The objects of a write in one version, for expressions and webhooks.
#[derive(Clone)]
pub struct VersionedObjects<'a> {
    /// Null for a deletion.
    pub object: Cow<'a, Value>,
    /// Null for a creation.
    pub old: Cow<'a, Value>,
}

impl<'a> VersionedObjects<'a> {
    /// The objects in a version of their resource.
    pub async fn new(attributes: &Attributes<'a>, version: &Version) -> Result<VersionedObjects<'a>, Status> {
        Ok(VersionedObjects {
            object: in_version(attributes, attributes.object, version).await?,
            old: in_version(attributes, attributes.old, version).await?,
        })
    }
}

/// An object in a version; null if it does not exist.
async fn in_version<'a>(
    attributes: &Attributes<'a>,
    object: Option<&'a Value>,
    version: &Version,
) -> Result<Cow<'a, Value>, Status> {
    let Some(object) = object else { return Ok(Cow::Owned(Value::Null)) };
    let (resource, own) = (attributes.resource, attributes.version);
    if !attributes.is_versioned() || resource.is_same_form(own, version) {
        return Ok(Cow::Borrowed(object));
    }
    if version.built_in.is_some() {
        return resource.convert(object.clone(), own, version).await.map(Cow::Owned);
    }
    // a webhook before may have changed the version; kube-apiserver wraps this error twice
    if let Some(why) = refusal(attributes, object) {
        return Err(Status::internal(format!("Internal error occurred: {why}")));
    }
    resource.convert_unpruned(object.clone(), version).await.map(Cow::Owned)
}

/// A variable that is built on first use.
struct Lazy<'a>(LazyLock<Value, Box<dyn FnOnce() -> Value + Send + 'a>>);

impl<'a> Lazy<'a> {
    fn new(build: impl FnOnce() -> Value + Send + 'a) -> Lazy<'a> {
        Lazy(LazyLock::new(Box::new(build)))
    }
}

impl std::fmt::Debug for Lazy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a variable")
    }
}

impl LazyValue for Lazy<'_> {
    fn value(&self) -> Val<'_> {
        value(&self.0)
    }
}

pub struct WriteVariables<'a> {
    objects: &'a VersionedObjects<'a>,
    namespace: Lazy<'a>,
    request: Lazy<'a>,
    authorizer: Arc<ExpressionAuthorizer<'a>>,
    request_resource: RequestResource<'a>,
}

impl<'a> WriteVariables<'a> {
    pub fn new(
        attributes: &'a Attributes<'a>,
        version: &'a Version,
        objects: &'a VersionedObjects<'a>,
    ) -> WriteVariables<'a> {
        let authorizer = Arc::new(ExpressionAuthorizer::new(attributes.cluster.authorizer, attributes));
        // NamespaceLifecycle has checked that the namespace exists
        let namespace = move || {
            let name = Some(attributes.namespace).filter(|name| !name.is_empty() && !attributes.is_namespace());
            let stored = name.and_then(|name| attributes.cluster.namespace(name));
            stored.as_deref().map(namespace_object).unwrap_or_default()
        };
        WriteVariables {
            objects,
            namespace: Lazy::new(namespace),
            request: Lazy::new(move || attributes.request(version)),
            request_resource: RequestResource { authorizer: authorizer.clone(), attributes },
            authorizer,
        }
    }

    /// Evaluates expressions about the write; see [`ExpressionAuthorizer::evaluate`].
    pub async fn evaluate<T>(&self, evaluate: impl FnMut() -> T) -> T {
        self.authorizer.evaluate(evaluate).await
    }

    /// The values of `object`, `oldObject`, `namespaceObject`, `request`, `authorizer` and `authorizer.requestResource`.
    pub fn activation<'p>(&'p self, variables: &VariableNames) -> Activation<'p> {
        let mut activation = self.message_activation(variables);
        activation.supply("authorizer", &*self.authorizer);
        activation.supply("authorizer.requestResource", &self.request_resource);
        activation
    }

    /// The values of the variables of match conditions. As in kube-apiserver, `namespaceObject` is null in them.
    pub fn condition_activation<'p>(&'p self, variables: &VariableNames) -> Activation<'p> {
        let mut activation = self.activation(variables);
        activation.set("namespaceObject", Val::Null);
        activation
    }

    /// The values of the variables of message expressions, which have no authorizer.
    pub fn message_activation<'p>(&'p self, variables: &VariableNames) -> Activation<'p> {
        let mut activation = Activation::new(variables);
        activation.set("object", value(&self.objects.object));
        activation.set("oldObject", value(&self.objects.old));
        activation.supply("namespaceObject", &self.namespace);
        activation.supply("request", &self.request);
        activation
    }
}

pub fn value(json: &Value) -> Val<'_> {
    from_json(json, Decl::json()).unwrap_or(Val::Null)
}

/// `namespaceObject`: the fields of the namespace that expressions may read.
fn namespace_object(stored: &Stored) -> Value {
    let mut object = stored.body.to_value(stored.revision);
    for hidden in ["managedFields", "ownerReferences"] {
        object.remove_at(&["metadata", hidden]);
    }
    object
}
