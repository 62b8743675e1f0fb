//! Reviews: questions that are answered and not stored.

mod access;
mod rules;

use machinery::{Status, Text, Value};

use super::body::Document;
use super::{Context, Outcome, Request, Shown};
use crate::clock;
use crate::request::{User, WriteOptions};

/// Answers a POST of a review.
pub fn answer(context: &Context, request: &Request, document: &Document) -> Result<Outcome, Status> {
    let options = WriteOptions::parse(request.query(), "CreateOptions", false)?;
    let object = request.decode_object(document, options.field_validation)?;
    let answered = match request.resource.kind.as_str() {
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access::answer(context, request, object, &options)?
        }
        "SelfSubjectRulesReview" => rules::answer(context, request, &object)?,
        "TokenReview" => token(context, request, object, &options)?,
        _ => who_am_i(request, object),
    };
    Ok(Outcome::Object(201, Shown::Tree(answered)))
}

fn who_am_i(request: &Request, mut object: Value) -> Value {
    object.set_at(&["metadata"], [("creationTimestamp", Value::from(clock::now_rfc3339()))].into());
    object.set_at(&["status"], [("userInfo", user_info(&request.authorized.user))].into());
    object
}

/// Whose token it is; tokens of a file are for this server and no other audience.
fn token(context: &Context, request: &Request, mut object: Value, options: &WriteOptions) -> Result<Value, Status> {
    request.track_update(None, &mut object, &request.manager(&options.field_manager));
    let token = object.str_at(&["spec", "token"]);
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = object.at(&["spec", "audiences"]).and_then(Value::as_array).unwrap_or_default();
    let status: Value = match context.authentication.token(token) {
        Some(user) if audiences.is_empty() => [("authenticated", Value::Bool(true)), ("user", user_info(user))].into(),
        Some(_) => [("user", Value::object())].into(),
        None => [("error", Value::from("invalid bearer token")), ("user", Value::object())].into(),
    };
    object.set_at(&["status"], status);
    Ok(object)
}

/// A user as reviews show it; what is empty is left out.
fn user_info(user: &User) -> Value {
    let mut info = Value::object();
    let texts = |list: &[Text]| -> Value { list.iter().map(Value::from).collect() };
    for (key, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            info.set_at(&[key], Value::from(text));
        }
    }
    if !user.groups.is_empty() {
        info.set_at(&["groups"], texts(&user.groups));
    }
    for (key, values) in &user.extra {
        info.set_at(&["extra", key], texts(values));
    }
    info
}
