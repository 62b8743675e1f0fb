//! Bodies of requests.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;

use crate::limits;

/// The body of a request.
///
/// Invariant: what a handler does not read is read and discarded in the background, within bounds. Otherwise the connection
/// of HTTP/1, or the stream of HTTP/2, would be reset while the client is still sending, and many clients would lose the
/// response.
pub struct RequestBody {
    /// `None` at the end of the body.
    body: Option<Incoming>,
}

impl RequestBody {
    pub fn of(request: Request<Incoming>) -> Request<RequestBody> {
        request.map(|body| RequestBody { body: Some(body) })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take()
            && !body.is_end_stream()
            // when the process exits, there is no runtime left to read the body
            && tokio::runtime::Handle::try_current().is_ok()
        {
            base::task::spawn("discarded body", tokio::time::timeout(limits::BODY_DISCARD, discard(body)));
        }
    }
}

/// Reads up to [`limits::BODY_BYTES_DISCARDED`] bytes of a body.
async fn discard(body: Incoming) {
    let mut rest = Limited::new(body, limits::BODY_BYTES_DISCARDED);
    while let Some(Ok(_)) = rest.frame().await {}
}
