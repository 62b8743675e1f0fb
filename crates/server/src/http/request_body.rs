//! Bodies of requests.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;

use crate::limits;

/// The body of a request.
///
/// Invariant: what a handler does not read is read and discarded in the background on HTTP/1, within bounds. Otherwise the
/// connection would be reset while the client is still sending, and the client could not read the response. HTTP/2 resets
/// the stream alone.
pub struct RequestBody {
    /// `None` only while the value is dropped.
    body: Option<Incoming>,
    is_discarded: bool,
}

impl RequestBody {
    pub fn of(request: Request<Incoming>) -> Request<RequestBody> {
        let is_discarded = request.version() < Version::HTTP_2;
        request.map(|body| RequestBody { body: Some(body), is_discarded })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
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
            && self.is_discarded
            && !body.is_end_stream()
            // there is none while the server ends
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
