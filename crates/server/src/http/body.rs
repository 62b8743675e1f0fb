//! Response bodies: empty, a buffer, or a stream that the connection pulls.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use hyper::body::Incoming;
use prometheus_client::metrics::histogram::Histogram;

use super::connections::Active;
use super::interceptor::Tap;
use super::window::{UnsentBytes, Window};

/// Error that aborts a response body. The client detects it: the connection or the HTTP/2 stream ends before the body
/// does.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The next piece of a stream and the source of the pieces after it; `None` at the end of the stream.
pub type Piece = Result<Option<(Bytes, Box<dyn PieceSource>)>, Broken>;
pub type NextPiece = Pin<Box<dyn Future<Output = Piece> + Send>>;

/// A source of pieces. It is polled only while the connection has room for another piece, so that nothing queues up for
/// a slow reader.
pub trait PieceSource: Send {
    fn next(self: Box<Self>) -> NextPiece;
}

/// The body of a response.
pub enum Body {
    Empty,
    Full(Bytes),
    /// A list that is encoded completely before it is sent.
    Parts {
        parts: VecDeque<Bytes>,
        /// Counts all parts as unsent until the body is dropped.
        _held: UnsentBytes,
    },
    /// A watch. Its size is not observed.
    Stream(NextPiece),
    /// A document that is encoded while it is sent.
    Document(NextPiece, Size),
    /// The body of an aggregated API server's response. It is aborted when that body is.
    Relayed(Incoming),
}

/// Counts the bytes of a document as they are sent.
#[derive(Default)]
pub struct Size {
    bytes: usize,
    /// Observes the size in bytes once the whole document has been sent.
    pub histogram: Option<Histogram>,
}

impl Body {
    pub fn stream(pieces: Box<dyn PieceSource>) -> Body {
        Body::Stream(pieces.next())
    }

    pub fn document(pieces: Box<dyn PieceSource>) -> Body {
        Body::Document(pieces.next(), Size::default())
    }

    pub fn parts(parts: VecDeque<Bytes>) -> Body {
        Body::Parts { _held: UnsentBytes::new(parts.iter().map(Bytes::len).sum()), parts }
    }

    /// Keeps `guard` until a streamed body ([`Body::Stream`], [`Body::Document`]) is sent or dropped. For all others, which need nothing
    /// more of the server, `guard` is dropped at once.
    pub fn guarded(self, guard: Box<dyn Send>) -> Body {
        self.followed(guard, |_, _| {})
    }

    /// Passes the bytes of the body to `tap`: those of a complete body now, those of a stream as they are sent. A relayed body is not
    /// tapped.
    pub fn tapped(self, tap: Arc<dyn Tap>) -> Body {
        match &self {
            Body::Full(bytes) => tap.received(bytes),
            Body::Parts { parts, .. } => parts.iter().for_each(|part| tap.received(part)),
            _ => {}
        }
        self.followed(tap, |tap, bytes| tap.received(bytes))
    }

    /// Calls `follow` with `follower` and each piece of a stream. `follower` lives as long as the stream; for other bodies it is dropped
    /// at once.
    fn followed<T: Send + 'static>(self, follower: T, follow: fn(&T, &Bytes)) -> Body {
        match self {
            Body::Stream(piece) => Body::Stream(followed(piece, follower, follow)),
            Body::Document(piece, size) => Body::Document(followed(piece, follower, follow), size),
            body => body,
        }
    }

    /// Whether the body is polled only while its connection has room. A `Full` body is one buffer, which is in memory anyway.
    fn is_streamed(&self) -> bool {
        matches!(self, Body::Parts { .. } | Body::Stream(_) | Body::Document(..) | Body::Relayed(_))
    }
}

/// A source whose pieces are passed to a function.
struct FollowedPieces<T> {
    source: Box<dyn PieceSource>,
    follower: T,
    follow: fn(&T, &Bytes),
}

impl<T: Send + 'static> PieceSource for FollowedPieces<T> {
    fn next(self: Box<Self>) -> NextPiece {
        followed(self.source.next(), self.follower, self.follow)
    }
}

fn followed<T: Send + 'static>(piece: NextPiece, follower: T, follow: fn(&T, &Bytes)) -> NextPiece {
    Box::pin(async move {
        let next = piece.await?;
        Ok(next.map(|(bytes, source)| {
            follow(&follower, &bytes);
            (bytes, Box::new(FollowedPieces { source, follower, follow }) as Box<dyn PieceSource>)
        }))
    })
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let next = match &mut *self {
            Body::Empty => return Poll::Ready(None),
            Body::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Body::Empty;
                return Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))));
            }
            Body::Parts { parts, .. } => return Poll::Ready(parts.pop_front().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Relayed(body) => return Pin::new(body).poll_frame(context).map_err(Error::from),
            Body::Stream(next) | Body::Document(next, _) => next,
        };
        let Poll::Ready(piece) = next.as_mut().poll(context) else { return Poll::Pending };
        let body = std::mem::replace(&mut *self, Body::Empty);
        Poll::Ready(match (piece, body) {
            (Ok(Some((bytes, pieces))), Body::Document(_, mut size)) => {
                size.bytes += bytes.len();
                *self = Body::Document(pieces.next(), size);
                Some(Ok(Frame::data(bytes)))
            }
            (Ok(Some((bytes, pieces))), _) => {
                *self = Body::stream(pieces);
                Some(Ok(Frame::data(bytes)))
            }
            (Ok(None), Body::Document(_, Size { bytes, histogram })) => {
                histogram.iter().for_each(|histogram| histogram.observe(bytes as f64));
                None
            }
            (Ok(None), _) => None,
            (Err(broken), _) => {
                tracing::error!(%broken, "response body aborted");
                Some(Err(broken.into()))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Empty => true,
            Body::Parts { parts, .. } => parts.is_empty(),
            Body::Relayed(body) => body.is_end_stream(),
            Body::Full(_) | Body::Stream(_) | Body::Document(..) => false,
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Body::Empty => http_body::SizeHint::with_exact(0),
            Body::Full(bytes) => http_body::SizeHint::with_exact(bytes.len() as u64),
            Body::Parts { parts, .. } => {
                http_body::SizeHint::with_exact(parts.iter().map(|part| part.len() as u64).sum())
            }
            Body::Stream(_) | Body::Document(..) => http_body::SizeHint::default(),
            Body::Relayed(body) => body.size_hint(),
        }
    }
}

/// A response body on its connection. The request counts as active until the body has been sent, and a stream is polled
/// only while its [`Window`] has room.
pub struct TrackedBody {
    body: Body,
    window: Option<Arc<Window>>,
    _active: Active,
}

impl TrackedBody {
    pub fn new(body: Body, active: Active) -> TrackedBody {
        let window = if body.is_streamed() { Window::current() } else { None };
        TrackedBody { body, window, _active: active }
    }
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.window.as_ref().is_some_and(|window| window.poll_room(context).is_pending()) {
            return Poll::Pending;
        }
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else { return Poll::Pending };
        let counted = |frame: Frame<Bytes>| match &self.window {
            Some(window) => frame.map_data(|bytes| window.hand_over(bytes)),
            None => frame,
        };
        Poll::Ready(frame.map(|frame| frame.map(counted)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
