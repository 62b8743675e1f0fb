//! Reviews: questions that are answered and not stored.

mod access;
mod rules;
mod tokens;

use machinery::{Status, Text, Value};

use super::admit::{self, Write};
use super::body::Document;
use super::{Context, Outcome, Request, Shown, Subresource, meta};
use crate::admission::Operation;
use crate::clock;
use crate::request::WriteOptions;

const BOUND: [&str; 2] = ["spec", "boundObjectRef"];

/// Answers a POST of a review: webhooks may change it and refuse it like any other object. So may policies a request for
/// a token; nothing that is built in asks them about the other reviews.
pub async fn answer(context: &Context, request: &Request, document: &Document) -> Result<Outcome, Status> {
    let options = WriteOptions::parse(request.query(), "CreateOptions", false)?;
    let mut object = request.decode_object(document, options.field_validation)?;
    match request.subresource {
        // it may say of which account it is
        Subresource::Token => meta::place_in(&mut object, request.namespace())?,
        _ => meta::wipe_system_fields(request, &mut object)?,
    }
    request.track_update(None, &mut object, &request.manager(&options.field_manager)).await;
    if request.subresource == Subresource::Token && object.at(&BOUND).is_none() {
        object.set_at(&BOUND, Value::Null);
    }
    let name = match request.name().is_empty() {
        true => Text::from(object.str_at(&["metadata", "name"])),
        false => request.name().clone(),
    };
    let (shown_options, dry_run) = (admit::write_options("CreateOptions", &options), options.dry_run);
    let write = Write { context, request, operation: Operation::Create, name: &name, options: &shown_options, dry_run };
    if request.subresource == Subresource::Token {
        write.check_namespace(&object, &name)?;
    }
    let object = write.mutate(Some(object), None).await?.unwrap_or_default();
    let answered = match request.resource.kind.as_str() {
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access::answer(&write, object).await?
        }
        "SelfSubjectRulesReview" => rules::answer(&write, &object).await?,
        "TokenReview" => tokens::review(&write, object).await?,
        "TokenRequest" => tokens::issue(&write, object).await?,
        _ => who_am_i(&write, object).await?,
    };
    Ok(Outcome::Object(201, Shown::Tree(answered)))
}

async fn who_am_i(write: &Write<'_>, mut object: Value) -> Result<Value, Status> {
    write.validate(Some(&object), None).await?;
    object.set_at(&["metadata"], [("creationTimestamp", Value::from(clock::now_rfc3339()))].into());
    object.set_at(&["status"], [("userInfo", write.request.authorized.user.to_value("username"))].into());
    Ok(object)
}
