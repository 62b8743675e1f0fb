//! Objects that must exist before cases run: definitions, and given objects.

use machinery::status::Cause;
use machinery::{Status, Value};

use crate::engine::{Engine, RequestOptions, Target};

/// Creates a definition, whose unknown fields are dropped as Go's types drop them.
pub async fn create(engine: &Engine, definition: &Value) -> Result<(), Status> {
    let target = target_of(engine, definition).map_err(|why| Status::untyped(404, why))?;
    let verdict = engine.create(&target, definition, &RequestOptions::default()).await;
    verdict.outcome.map(drop)
}

/// Whether the server objects only to the estimated costs of rules.
pub fn is_about_costs(status: &Status) -> bool {
    let is_cost =
        |cause: &Cause| cause.reason == "FieldValueForbidden" && cause.message.contains("estimated rule cost");
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    !causes.is_empty() && causes.iter().all(is_cost)
}

/// Stores a definition as an earlier server would have: it is established without its rules first.
pub async fn deposit(engine: &Engine, definition: &Value) -> Result<(), String> {
    let target = target_of(engine, definition)?;
    let mut stored = match engine.get(&target).await.object() {
        Ok(stored) => stored,
        Err(_) => {
            let mut plain = definition.clone();
            without_rules(&mut plain);
            create(engine, &plain).await.map_err(|status| status.message.clone())?;
            engine.get(&target).await.object().map_err(|status| status.message.clone())?
        }
    };
    stored.set_at(&["spec"], definition.get("spec").cloned().unwrap_or_default());
    let verdict = engine.deposit(&target, &stored).await;
    verdict.error().map_or(Ok(()), |(_, message)| Err(message.to_owned()))
}

/// Removes all rules from schemas.
pub fn without_rules(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, value| !(key == "x-kubernetes-validations" && value.as_array().is_some()));
            fields.values_mut().for_each(without_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}

/// Creates a given object, or replaces the object with the same name.
pub async fn given(engine: &Engine, object: &Value) -> Result<Target, String> {
    let target = target_of(engine, object)?;
    match engine.define(&target, object).await.error() {
        None => Ok(target),
        Some((_, message)) => Err(format!("a given object is refused: {message}")),
    }
}

/// The target of requests for an object. The error is that of clients.
pub fn target_of(engine: &Engine, object: &Value) -> Result<Target, String> {
    let (version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    engine.target(object).ok_or_else(|| format!("no matches for kind \"{kind}\" in version \"{version}\""))
}
