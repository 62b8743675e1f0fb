//! What is done around writes of some kinds, beyond what their strategies do: one named function per kind and moment.

use machinery::{Status, Value};
use objects::Stored;
use resource::Subresource;
use resource::builtin::Hooks;

use super::change::Write;
use super::{Context, naming, rbac, third_party};
use crate::allocation::Reservation;

/// Refuses a write by which its author would give away more than they have. `old` is the object before.
pub async fn authorize(write: &Write<'_>, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    match write.request.resource.hooks {
        Hooks::Role => rbac::check_role(write.context, write.request, new, old).await,
        Hooks::RoleBinding => rbac::check_binding(write.context, write.request, new, old).await,
        Hooks::None | Hooks::Service | Hooks::Definition | Hooks::ThirdPartyResource | Hooks::CertificateRequest => {
            Ok(())
        }
    }
}

/// Reserves what an object needs that is to be created or to replace `old`, and fills it in. A write that is abandoned
/// before [`finish_reservation`] leaves its reservation to the next repair.
pub async fn reserve(
    write: &Write<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<Option<Reservation>, Status> {
    let Write { context, request, options, .. } = write;
    match (request.resource.hooks, request.subresource) {
        (Hooks::Service, Subresource::None) => context
            .allocation
            .begin(&context.objects, object, old, options.dry_run, context.registry.release())
            .await
            .map(Some),
        (Hooks::CertificateRequest, Subresource::None) if old.is_none() => {
            record_user(&request.authorized.user.to_value("username"), object);
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// Records in the spec of a certificate request who makes it.
fn record_user(user: &Value, object: &mut Value) {
    for field in ["username", "uid", "groups", "extra"] {
        let path = ["spec", field];
        match user.get(field) {
            Some(value) => object.set_at(&path, value.clone()),
            None => drop(object.remove_at(&path)),
        }
    }
}

/// Keeps a reservation if the object was written, and releases it otherwise.
pub async fn finish_reservation(context: &Context, reservation: Option<Reservation>, written: bool) {
    if let Some(reservation) = reservation {
        context.allocation.finish(&context.objects, reservation, written).await;
    }
}

/// Refuses to create a valid object, before validating admission is asked.
pub async fn check_create(write: &Write<'_>, object: &Value) -> Result<(), Status> {
    if write.request.resource.hooks == Hooks::ThirdPartyResource {
        third_party::check_names(write.context, write.request, object)?;
    }
    rbac::require_create(write.context, write.request, object.str_at(&["metadata", "name"])).await
}

/// Prepares the deletion of an object that has been marked for it.
pub async fn before_deletion(write: &Write<'_>, current: &Stored, marked: &mut Value) -> Result<(), Status> {
    match write.request.resource.hooks {
        Hooks::ThirdPartyResource if !current.meta.deleting => {
            third_party::before_deletion(write.context, write.options.dry_run, marked).await
        }
        _ => Ok(()),
    }
}

/// The consequences of a write.
pub async fn after_write(write: &Write<'_>, stored: &Stored) {
    if write.request.resource.hooks == Hooks::Definition {
        naming::after_write(write.context, &stored.meta.name).await;
    }
}

/// The consequences of the removal of an object.
pub async fn after_delete(write: &Write<'_>, object: &Value) {
    match write.request.resource.hooks {
        Hooks::Service => write.context.allocation.release_all(&write.context.objects, object).await,
        Hooks::Definition | Hooks::ThirdPartyResource => {
            naming::after_delete(write.context, object.str_at(&["metadata", "name"])).await;
        }
        Hooks::None | Hooks::Role | Hooks::RoleBinding | Hooks::CertificateRequest => {}
    }
}
