//! The only functions that change API objects in the store; `cargo xtask tidy` refuses other calls.

use machinery::Result;
use objects::{Encoded, Key};
use store::{Refused, Revision};

use super::context::Context;

/// Writes a new object, or replaces the object if it still has the revision `old`. Returns `None` if it has changed,
/// or if the name is taken.
pub async fn put(context: &Context, key: &Key, object: Encoded, old: Option<Revision>) -> Result<Option<Revision>> {
    debug_assert!(!object.meta.name.is_empty(), "an object without a name is stored");
    let written = outcome(context.objects.put(key, object, old).await)?;
    debug_assert!(written.is_none_or(|revision| old.is_none_or(|old| revision > old)), "a write has an older revision");
    Ok(written)
}

/// Removes an object if it still has the revision `old`. Returns `None` if it has changed.
pub async fn remove(context: &Context, key: &Key, old: Revision) -> Result<Option<Revision>> {
    outcome(context.objects.delete(key, old).await)
}

fn outcome(result: Result<Revision, Refused>) -> Result<Option<Revision>> {
    match result {
        Ok(revision) => Ok(Some(revision)),
        Err(Refused::Conflict(_)) => Ok(None),
        Err(Refused::Failed(error)) => Err(objects::failure(&error)),
    }
}
