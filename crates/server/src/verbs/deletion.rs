//! Deletion in the write pipeline: preconditions, admission, deletion timestamp, removal.

use access::admission::Operation;
use base::clock;
use base::request::DeleteOptions;
use machinery::{Result, Status, Value, json};
use objects::Stored;
use resource::rules::{Deletion, Grace, Preconditions, Propagation};

use super::admit::{self, Admit};
use super::change::{Live, Write};
use super::hooks;
use super::outcome::{Effect, Outcome};
use super::request::Request;
use super::response::ResponseObject;

impl Write<'_> {
    /// Makes one attempt to delete an object. Returns `None` if the stored object has changed.
    pub async fn delete(&self, options: &DeleteOptions, mut live: Live) -> Result<Option<Outcome>> {
        let (request, deletion) = (self.request, self.request.resource.deletion);
        let (current, old) = (live.stored.clone(), &live.object);
        check_preconditions(request, options, old)?;
        if current.meta.deleting && deletion.is_held_by_own_finalizers(old) {
            return Ok(Some(Outcome::Object(Effect::Done, request.show(current).await?)));
        }
        let grace = deletion.grace_of(old, options.grace_period_seconds);
        if grace == Grace::Pending {
            // nothing changes, so kube-apiserver asks no admission
            return Ok(Some(Outcome::Object(effect_of(options), request.show(current).await?)));
        }
        let mut shown_options = admit::delete_options(options);
        if let Grace::Seconds(seconds) = grace {
            shown_options.set_at(&["gracePeriodSeconds"], Value::Int(seconds));
        }
        if matches!(deletion.preconditions, Preconditions::Storage { .. }) && !request.name().is_empty() {
            shown_options.set_at(&["preconditions", "uid"], Value::from(&current.meta.uid));
        }
        let admit = Admit { options: &shown_options, ..self.admit(Operation::Delete) };
        admit.check_protected(&current.meta.name)?;
        hooks::check_deletion(self, &current.meta.name)?;
        admit.mutate(None, Some(old)).await?;
        admit.validate(None, Some(old)).await?;
        let mut object = std::mem::take(&mut live.object);
        deletion.mark(&mut object, propagation(options, deletion), &clock::now_rfc3339());
        deletion.mark_gracefully(&mut object, grace, clock::now_seconds());
        hooks::before_deletion(self, &current, &mut object).await?;
        if deletion.is_held(&object) || matches!(grace, Grace::Seconds(1..)) {
            return self.mark(options, object, &live).await;
        }
        if options.dry_run && grace == Grace::Seconds(0) && deletion.returns_object {
            return Ok(Some(Outcome::Object(Effect::Done, ResponseObject::Tree(object))));
        }
        let (mut current, mut revision) = (current.clone(), current.revision);
        if !options.dry_run {
            if grace == Grace::Seconds(0) {
                // watches get the object with its deletion timestamp before it is removed
                let Some(marked) = self.put(object.clone(), Some(&live)).await? else { return Ok(None) };
                current = marked;
            }
            let Some(removed) = self.remove(&object, &current).await? else { return Ok(None) };
            revision = removed;
        }
        if deletion.returns_object {
            let shown = request.show(current).await?;
            return Ok(Some(Outcome::Object(Effect::Done, ResponseObject::Tree(shown.at_revision(revision)))));
        }
        Ok(Some(Outcome::Success(Effect::Done, success(request, &current))))
    }

    /// Stores an object with its deletion timestamp.
    async fn mark(&self, options: &DeleteOptions, object: Value, live: &Live) -> Result<Option<Outcome>> {
        let effect = effect_of(options);
        if options.dry_run {
            return Ok(Some(Outcome::Object(effect, ResponseObject::Tree(object))));
        }
        match self.put(object, Some(live)).await? {
            Some(stored) => self.written(stored, effect).await.map(Some),
            None => Ok(None),
        }
    }
}

/// A deletion that leaves the object gets 200; only the deprecated `orphanDependents: false` gets 202.
fn effect_of(options: &DeleteOptions) -> Effect {
    if options.orphan_dependents == Some(false) { Effect::Begun } else { Effect::Done }
}

fn propagation(options: &DeleteOptions, deletion: &Deletion) -> Option<Propagation> {
    match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(true), _) | (_, Some("Orphan")) => Some(Propagation::Orphan),
        (_, Some("Foreground")) => Some(Propagation::Foreground),
        (Some(false), _) => Some(deletion.unorphaned),
        (_, Some("Background")) => Some(Propagation::Background),
        _ => deletion.propagation,
    }
}

fn success(request: &Request, deleted: &Stored) -> Value {
    let resource = &request.resource;
    let mut details = json!({"name": (&deleted.meta.name), "kind": (&resource.plural), "uid": (&deleted.meta.uid)});
    details.put_text(&["group"], resource.group.as_str());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Fails unless the object has the uid and the resourceVersion of the preconditions.
pub fn check_preconditions(request: &Request, options: &DeleteOptions, old: &Value) -> Result<()> {
    let text = |key: &str| old.str_at(&["metadata", key]);
    let (uid, version) = (text("uid"), text("resourceVersion"));
    let (what, wanted, found, happened) = match (&options.uid, &options.resource_version) {
        (Some(wanted), _) if *wanted != uid => ("UID", wanted, uid, "deleted and then recreated"),
        (_, Some(wanted)) if *wanted != version => ("ResourceVersion", wanted, version, "modified"),
        _ => return Ok(()),
    };
    let resource = &request.resource;
    Err(match resource.deletion.preconditions {
        Preconditions::Storage { small_since } => {
            let first = if small_since.is_some_and(|since| resource.release >= since) { 'p' } else { 'P' };
            let why =
                format!("{first}recondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
            Status::conflict(&resource.group, &resource.plural, request.name(), &why)
        }
        Preconditions::Registry => {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been {happened}"
            );
            Status::conflict(&resource.storage_group(), &resource.kind, text("name"), &why)
        }
    })
}
