//! Reviews: objects that are not stored. The response to a POST is the object with its status.

mod access;
mod budgets;
mod pods;
mod rules;
mod tokens;

use ::access::admission::Operation;
use base::clock;
use base::request::WriteOptions;
use machinery::{Result, Text, Value};
use resource::builtin::Review;

use super::admit::{self, Admit};
use super::context::Context;
use super::meta;
use super::outcome::{Effect, Outcome};
use super::request::Request;
use super::response::ResponseObject;

/// Responds to a POST of a review. Admission webhooks apply as to any other object; admission policies apply only to
/// TokenRequests.
pub async fn respond(
    context: &Context,
    request: &Request,
    review: Review,
    mut object: Value,
    options: &WriteOptions,
) -> Result<Outcome> {
    let for_token = review == Review::TokenRequest;
    let for_pod = matches!(review, Review::Binding | Review::Eviction);
    if for_token || for_pod {
        // the object may name its account
        meta::place_in(&mut object, request.namespace())?;
    } else {
        meta::wipe_system_fields(request, &mut object)?;
    }
    request.track_update(None, &mut object, &request.manager(&options.field_manager)).await;
    let name = if request.name().is_empty() {
        Text::from(object.str_at(&["metadata", "name"]))
    } else {
        request.name().clone()
    };
    let (shown_options, dry_run) = (admit::write_options("CreateOptions", options), options.dry_run);
    let admit = Admit { context, request, operation: Operation::Create, name: &name, options: &shown_options, dry_run };
    if for_token || for_pod {
        admit.check_namespace(&object, &name)?;
    }
    let object = admit.mutate(Some(object), None).await?.unwrap_or_default();
    let reviewed = match review {
        Review::Binding => return Ok(Outcome::Success(Effect::Created, pods::bind(&admit, object).await?)),
        Review::Eviction => return Ok(Outcome::Success(Effect::Created, pods::evict(&admit, object).await?)),
        Review::SelfSubject => self_subject(&admit, object).await?,
        Review::Access => access::review(&admit, object, None).await?,
        Review::SelfAccess => access::review(&admit, object, Some(request.authorized.user.clone())).await?,
        Review::SelfRules => rules::review(&admit, &object).await?,
        Review::Token => tokens::review(&admit, object).await?,
        Review::TokenRequest => tokens::issue(&admit, object).await?,
    };
    let printed = request.strategy.codec().printed(&reviewed);
    Ok(Outcome::Object(Effect::Created, ResponseObject::Tree(printed.unwrap_or(reviewed))))
}

async fn self_subject(admit: &Admit<'_>, mut object: Value) -> Result<Value> {
    admit.validate(Some(&object), None).await?;
    object.set_at(&["metadata"], [("creationTimestamp", Value::from(clock::now_rfc3339()))].into());
    object.set_at(&["status"], [("userInfo", admit.request.authorized.user.to_value("username"))].into());
    Ok(object)
}
