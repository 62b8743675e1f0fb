//! Bodies of requests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use machinery::status::Reason;
use machinery::{Result, Status};
use resource::Document;

use super::interceptor::Tap;
use crate::limits;

/// The body of a request.
///
/// Invariant: what a handler does not read is read and discarded in the background, within bounds. Otherwise the connection
/// of HTTP/1, or the stream of HTTP/2, would be reset while the client is still sending, and many clients would lose the
/// response.
pub struct RequestBody(Source);

enum Source {
    /// The body of a request that arrives over a connection.
    Received(Incoming),
    /// The body of a request from this process.
    Own(Full<Bytes>),
    /// A body from this process that has been decoded.
    Decoded(Document),
    /// A body that is made of another one.
    Made(Box<MadeBody>),
    /// A body that is also copied to a tap.
    Tapped(Box<RequestBody>, Arc<dyn Tap>),
    End,
}

/// Makes the body that is handled from the one that was sent, or refuses it.
type Making = Box<dyn FnOnce(&[u8]) -> Result<Bytes> + Send>;
type Error = Box<dyn std::error::Error + Send + Sync>;

/// A body that is made once the one that was sent is whole.
struct MadeBody {
    sent: RequestBody,
    read: Vec<u8>,
    bytes_max: usize,
    make: Option<Making>,
}

impl MadeBody {
    /// Reads what was sent, and returns what is made of it.
    fn poll_made(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Error>> {
        loop {
            let Poll::Ready(frame) = Pin::new(&mut self.sent).poll_frame(context) else { return Poll::Pending };
            match frame {
                Some(Ok(frame)) => self.read.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => break,
            }
            if self.read.len() > self.bytes_max {
                let message = format!("Request entity too large: limit is {}", self.bytes_max);
                return Poll::Ready(Err(Status::new(Reason::RequestEntityTooLarge, message).into()));
            }
        }
        let made = self.make.take().map_or_else(|| Ok(Bytes::new()), |make| make(&self.read));
        Poll::Ready(made.map_err(Error::from))
    }
}

impl RequestBody {
    pub fn of(request: Request<Incoming>) -> Request<RequestBody> {
        request.map(|body| RequestBody(Source::Received(body)))
    }

    /// The body of a request that did not arrive over a connection.
    pub fn own(bytes: Bytes) -> RequestBody {
        RequestBody(Source::Own(Full::new(bytes)))
    }

    /// As [`RequestBody::own`], for a body that has been decoded.
    pub fn of_document(document: Document) -> RequestBody {
        RequestBody(Source::Decoded(document))
    }

    /// The same body, copied to `tap` as it is read.
    pub fn tapped(self, tap: Arc<dyn Tap>) -> RequestBody {
        RequestBody(Source::Tapped(Box::new(self), tap))
    }

    /// A body that is made of this one, of at most `bytes_max` bytes. This one is read when the handler reads its body: after
    /// authorization, with a seat and within the deadline. An error of `make` is the response.
    pub fn made(self, bytes_max: usize, make: impl FnOnce(&[u8]) -> Result<Bytes> + Send + 'static) -> RequestBody {
        let made = MadeBody { sent: self, read: vec![], bytes_max, make: Some(Box::new(make)) };
        RequestBody(Source::Made(Box::new(made)))
    }

    pub fn decoded(&self) -> Option<Document> {
        if let Source::Decoded(document) = &self.0 { Some(document.clone()) } else { None }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Source::Decoded(document) = &self.0 {
            self.0 = Source::Own(Full::new(document.bytes().clone()));
        }
        if let Source::Made(made) = &mut self.0 {
            let Poll::Ready(made) = made.poll_made(context) else { return Poll::Pending };
            match made {
                Ok(bytes) => self.0 = Source::Own(Full::new(bytes)),
                Err(error) => {
                    self.0 = Source::End;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        let polled = match &mut self.0 {
            Source::Received(body) => Pin::new(body).poll_frame(context).map_err(Error::from),
            Source::Own(body) => {
                Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(|never| match never {})))
            }
            Source::Tapped(body, tap) => {
                let polled = Pin::new(&mut **body).poll_frame(context);
                if let Poll::Ready(Some(Ok(frame))) = &polled
                    && let Some(bytes) = frame.data_ref()
                {
                    tap.sent(bytes);
                }
                polled
            }
            Source::Decoded(_) | Source::Made(_) | Source::End => return Poll::Ready(None),
        };
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = Source::End;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Received(body) => body.is_end_stream(),
            Source::Own(body) => body.is_end_stream(),
            Source::Tapped(body, _) => body.is_end_stream(),
            Source::Decoded(_) | Source::Made(_) => false,
            Source::End => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Received(body) => body.size_hint(),
            Source::Own(body) => body.size_hint(),
            Source::Tapped(body, _) => body.size_hint(),
            Source::Decoded(_) | Source::Made(_) | Source::End => SizeHint::default(),
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Source::Received(body) = std::mem::replace(&mut self.0, Source::End)
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
