//! Deletes objects that cannot be read: `ignoreStoreReadErrorWithClusterBreakingPotential` (KEP-3926).

use access::authorization::AccessAttributes;
use base::request::DeleteOptions;
use kinds::upstream_key;
use machinery::{Result, Status, json};

use super::context::Context;
use super::list::catch_up;
use super::outcome::{Effect, Outcome};
use super::request::Request;
use super::stored;

/// The verb that the user needs in addition to `delete`.
const VERB: &str = "unsafe-delete-ignore-read-errors";

/// Deletes an object if it cannot be read, and fails otherwise. Preconditions, finalizers and admission are ignored.
pub async fn delete(context: &Context, request: &Request, options: &DeleteOptions) -> Result<Outcome> {
    let resource = &request.resource;
    request.audit(|audit| audit.annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", ""));
    if !resource.deletion.unreadable {
        let why = "no unsafe deleter provided, can not honor ignoreStoreReadErrorWithClusterBreakingPotential";
        return Err(Status::internal(why));
    }
    authorize(context, request).await?;
    if context.objects.store().is_shared() {
        catch_up(context).await?;
    }
    let place = request.place()?;
    let object = resource.collection.get(&place.path).ok_or_else(|| request.not_found())?;
    if resource.read_converted(&object, &request.version).await.is_ok() {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage",
            upstream_key(&place)
        );
        return Err(Status::conflict(&resource.group, &resource.plural, request.name(), &why));
    }
    if !options.dry_run {
        let removed = stored::remove(context, &place, object.revision).await?;
        removed.ok_or_else(|| resource.modified(request.name()))?;
    }
    Ok(Outcome::Success(
        Effect::Done,
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": (request.name()), "kind": (&resource.kind)},
            "code": 200,
        }),
    ))
}

async fn authorize(context: &Context, request: &Request) -> Result<()> {
    let authorized = &request.authorized;
    let attributes = AccessAttributes::of_resource(&authorized.info, VERB, request.name());
    let decision = context.authorizer.decide(&authorized.user, &attributes).await;
    if decision.allowed() {
        return Ok(());
    }
    let why = format!("not permitted to do \"{VERB}\", reason: {}", decision.reason());
    let resource = &request.resource;
    Err(Status::forbidden(&resource.group, &resource.plural, request.name(), &why))
}
