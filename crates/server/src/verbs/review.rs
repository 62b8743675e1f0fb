//! Reviews: questions that are answered and not stored.

use machinery::{Status, Text, Value};

use super::body::Document;
use super::{Outcome, Request, Shown};
use crate::clock;
use crate::request::{User, WriteOptions};

/// Answers a POST of a review.
pub fn answer(request: &Request, document: &Document) -> Result<Outcome, Status> {
    let options = WriteOptions::parse(request.query(), "CreateOptions", false)?;
    let mut object = request.decode_object(document, options.field_validation)?;
    object.set_at(&["metadata", "creationTimestamp"], Value::from(clock::now_rfc3339()));
    object.set_at(&["status"], [("userInfo", user_info(&request.authorized.user))].into());
    Ok(Outcome::Object(201, Shown::Tree(object)))
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
