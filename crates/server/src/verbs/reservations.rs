//! What is allocated for the objects of a kind before they are written, and released when they are gone.
//!
//! Services alone get addresses and node ports. A write that is abandoned between [`begin`] and [`finish`] leaves its
//! reservation to the next repair.

use machinery::{Status, Value};

use super::{Context, Request, Subresource};
use crate::allocation::Reservation;
use crate::resource::Resource;

fn allocates(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "services"
}

/// Reserves what an object needs that is to be created or to replace `old`, and fills it in.
pub async fn begin(
    context: &Context,
    request: &Request,
    object: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Option<Reservation>, Status> {
    if !allocates(&request.resource) || request.subresource != Subresource::None {
        return Ok(None);
    }
    context.allocation.begin(&context.objects, object, old, dry_run).await.map(Some)
}

/// Ends a reservation: the object was written, or it was not.
pub async fn finish(context: &Context, reservation: Option<Reservation>, written: bool) {
    if let Some(reservation) = reservation {
        context.allocation.finish(&context.objects, reservation, written).await;
    }
}

/// Releases what an object had that is gone.
pub async fn after_delete(context: &Context, resource: &Resource, object: &Value) {
    if allocates(resource) {
        context.allocation.release_all(&context.objects, object).await;
    }
}
