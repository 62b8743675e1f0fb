//! Actions before and after writes of certain kinds, in addition to their strategies.

use access::authorization::may_use_signer;
use kinds::devices;
use machinery::{FieldError, FieldPath, Result, Status, Text, Value};
use objects::Stored;
use resource::builtin::Hooks;
use resource::{Subresource, TypeMeta};

use super::change::Write;
use super::context::Context;
use super::outcome::Outcome;
use super::{naming, rbac, third_party};
use crate::allocation::Reservation;

/// Fails if a write would grant permissions that its user does not have. `old` is the stored object.
pub async fn authorize(write: &Write<'_>, new: &Value, old: Option<&Value>) -> Result<()> {
    match write.request.resource.hooks {
        Hooks::Role => rbac::check_role(write.context, write.request, new, old).await,
        Hooks::RoleBinding => rbac::check_binding(write.context, write.request, new, old).await,
        _ => rbac::check_rule(write.context, write.request, new, old).await,
    }
}

/// Applies the rules of a higher layer to an object that is about to be created.
pub fn prepare_for_create(write: &Write<'_>, object: &mut Value) {
    if let Some(rules) = write.context.write_rules.get() {
        (rules.prepare)(&write.request.resource, object);
    }
}

/// Reserves addresses and ports for an object that is about to be created or to replace `old`, and sets them in it.
/// If the write is abandoned before [`finish_reservation`], the next repair releases the reservation.
pub async fn reserve(write: &Write<'_>, object: &mut Value, old: Option<&Value>) -> Result<Option<Reservation>> {
    let Write { context, request, options, .. } = write;
    match (request.resource.hooks, request.subresource) {
        (Hooks::Service, Subresource::None) => {
            context.allocation.begin(*context, object, old, options.dry_run, context.registry.release()).await.map(Some)
        }
        (Hooks::CertificateRequest, Subresource::None) if old.is_none() => {
            record_user(&request.authorized.user.to_value("username"), object);
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// Validation errors that depend on other objects. They precede the errors of the strategy.
pub fn errors(write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let resource = &write.request.resource;
    let place = match (resource.hooks, write.request.subresource, old) {
        (Hooks::ResourceClaim, Subresource::None, None) => devices::admin_access(object),
        (Hooks::ResourceClaim, Subresource::Status, Some(old)) => devices::admin_results(object, old),
        _ => None,
    };
    let Some(path) = place else { return vec![] };
    let namespaces = write.context.objects.collection(&Text::default(), &Text::new_static("namespaces"));
    let namespace = namespaces.get(object.str_at(&["metadata", "namespace"]));
    let namespace = namespace.map(|stored| stored.body.to_value(stored.revision));
    devices::admin_access_error(&path, namespace.as_ref()).into_iter().collect()
}

/// Sets the user of a request in the spec of a CertificateSigningRequest.
fn record_user(user: &Value, object: &mut Value) {
    for field in ["username", "uid", "groups", "extra"] {
        let path = ["spec", field];
        object.put_at(&path, user.get(field).cloned());
    }
}

/// Completes a reservation if the object was written, and cancels it otherwise.
pub async fn finish_reservation(
    context: &Context,
    reservation: Option<Reservation>,
    written: &Result<Option<Outcome>>,
) {
    let Some(reservation) = reservation else { return };
    match written {
        Ok(Some(_)) => context.allocation.complete(context, reservation).await,
        Ok(None) | Err(_) => context.allocation.cancel(context, reservation).await,
    }
}

/// Checks a valid object that is about to be created, before validating admission.
pub async fn check_create(write: &Write<'_>, object: &Value) -> Result<()> {
    if write.request.resource.hooks == Hooks::ThirdPartyResource {
        third_party::check_names(write.context, write.request, object)?;
    }
    rbac::require_create(write.context, write.request, object.str_at(&["metadata", "name"])).await
}

/// Checks a valid object that is about to replace `old`, before validating admission: to change the status of a
/// PodCertificateRequest, the user needs a permission for its signer.
pub async fn check_update(write: &Write<'_>, object: &Value, old: &Value) -> Result<()> {
    let Write { context, request, .. } = write;
    let is_signed =
        (request.resource.hooks, request.subresource) == (Hooks::PodCertificateRequest, Subresource::Status);
    if !is_signed || object.get("status") == old.get("status") {
        return Ok(());
    }
    let (user, signer) = (&request.authorized.user, old.str_at(&["spec", "signerName"]));
    if may_use_signer(&context.authorizer, user, "sign", signer).await {
        return Ok(());
    }
    let why = format!("User {:?} is not permitted to \"sign\" for signer {signer:?}", user.name);
    let error = FieldError::forbidden(&FieldPath::new("spec.signerName"), why);
    Err(request.strategy.invalid(&TypeMeta::of(object), object.str_at(&["metadata", "name"]), &[error]))
}

/// Fails if a higher layer protects the object with this name from deletion.
pub fn check_deletion(write: &Write<'_>, name: &str) -> Result<()> {
    let resource = &write.request.resource;
    let protection = write.context.write_rules.get().and_then(|rules| (rules.protection)(resource, name));
    protection.map_or(Ok(()), |why| Err(Status::forbidden(&resource.group, &resource.plural, name, why)))
}

/// Prepares the deletion of an object. May change `marked`, the object with its deletion timestamp.
pub async fn before_deletion(write: &Write<'_>, current: &Stored, marked: &mut Value) -> Result<()> {
    match write.request.resource.hooks {
        Hooks::ThirdPartyResource if !current.meta.deleting => {
            third_party::before_deletion(write.context, write.options.dry_run, marked).await
        }
        _ => Ok(()),
    }
}

/// Carries out the consequences of a write.
pub async fn after_write(write: &Write<'_>, stored: &Stored) {
    if write.request.resource.hooks == Hooks::Definition {
        naming::after_write(write.context, &stored.meta.name).await;
    }
}

/// Carries out the consequences of the removal of an object.
pub async fn after_delete(write: &Write<'_>, object: &Value) {
    match write.request.resource.hooks {
        Hooks::Service => write.context.allocation.release_all(write.context, object).await,
        Hooks::Definition | Hooks::ThirdPartyResource => {
            naming::after_delete(write.context, object.str_at(&["metadata", "name"])).await;
        }
        _ => {}
    }
}
