//! Copies requests and responses to taps.

use std::sync::Arc;

use http::Response;

use super::body::Body;
use super::interceptor::Tap;
use super::request_body::RequestBody;

pub(super) fn copied(body: RequestBody, tap: Option<&Arc<dyn Tap>>) -> RequestBody {
    match tap {
        Some(tap) => body.tapped(tap.clone()),
        None => body,
    }
}

/// The response, whose head and body are copied to the tap if there is one.
pub(super) fn copied_response(response: Response<Body>, tap: Option<Arc<dyn Tap>>) -> Response<Body> {
    let Some(tap) = tap else { return response };
    let (head, body) = response.into_parts();
    tap.responded(&head);
    Response::from_parts(head, body.tapped(tap))
}
