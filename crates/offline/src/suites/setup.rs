//! Objects that must exist before cases run: definitions, and given objects.

use machinery::{Status, Value};

use crate::engine::{Engine, RequestOptions, Target};
use crate::error::Error;

/// Creates a definition, whose unknown fields are dropped as Go's types drop them.
pub async fn create(engine: &Engine, definition: &Value) -> Result<(), Status> {
    let target = target_of(engine, definition)?;
    let verdict = engine.create(&target, definition, &RequestOptions::default()).await;
    verdict.outcome.map(drop)
}

/// Stores a definition as an earlier server would have: it is established without its rules first.
pub async fn deposit(engine: &Engine, definition: &Value) -> Result<(), Error> {
    let target = target_of(engine, definition)?;
    let mut stored = match engine.get(&target).await.object() {
        Ok(stored) => stored,
        Err(_) => {
            let mut plain = definition.clone();
            without_rules(&mut plain);
            create(engine, &plain).await?;
            engine.get(&target).await.object()?
        }
    };
    stored.set_at(&["spec"], definition.get("spec").cloned().unwrap_or_default());
    engine.deposit(&target, &stored).await.outcome?;
    Ok(())
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
pub async fn given(engine: &Engine, object: &Value) -> Result<Target, Error> {
    let target = target_of(engine, object)?;
    match engine.define(&target, object).await.error() {
        None => Ok(target),
        Some((_, message)) => Err(format!("a given object is refused: {message}").into()),
    }
}

/// The target of requests for an object. The error is that of clients.
pub fn target_of(engine: &Engine, object: &Value) -> Result<Target, Status> {
    let (version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let unknown = || Status::untyped(404, format!("no matches for kind \"{kind}\" in version \"{version}\""));
    engine.target(object).ok_or_else(unknown)
}
