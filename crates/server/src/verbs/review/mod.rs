//! Reviews: questions that are answered and not stored.

mod access;
mod rules;
mod tokens;

use machinery::{Status, Value};

use super::body::Document;
use super::{Context, Outcome, Request, Shown, meta};
use crate::clock;
use crate::request::WriteOptions;

/// Answers a POST of a review.
pub async fn answer(context: &Context, request: &Request, document: &Document) -> Result<Outcome, Status> {
    let options = WriteOptions::parse(request.query(), "CreateOptions", false)?;
    let mut object = request.decode_object(document, options.field_validation)?;
    meta::place_in(&mut object, request.namespace())?;
    let answered = match request.resource.kind.as_str() {
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access::answer(context, request, object, &options).await?
        }
        "SelfSubjectRulesReview" => rules::answer(context, request, &object)?,
        "TokenReview" => tokens::review(context, request, object, &options).await?,
        "TokenRequest" => tokens::issue(context, request, object, &options).await?,
        _ => who_am_i(request, object),
    };
    Ok(Outcome::Object(201, Shown::Tree(answered)))
}

fn who_am_i(request: &Request, mut object: Value) -> Value {
    object.set_at(&["metadata"], [("creationTimestamp", Value::from(clock::now_rfc3339()))].into());
    object.set_at(&["status"], [("userInfo", request.authorized.user.to_value("username"))].into());
    object
}
