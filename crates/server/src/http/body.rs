//! Bodies of answers: nothing, bytes, or a stream that is pulled.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::connections::Active;
use bytes::Bytes;
use http_body::Frame;
use hyper::body::Incoming;

/// What makes the next piece of a stream, and itself again; `None` at the end.
pub type NextPiece = Pin<Box<dyn Future<Output = Option<(Bytes, Box<dyn Pieces>)>> + Send>>;

/// A source of pieces. It is asked for the next one only when the last has gone to the connection, so nothing queues
/// for a slow reader.
pub trait Pieces: Send {
    fn next(self: Box<Self>) -> NextPiece;
}

/// The body of an answer.
pub enum Body {
    Empty,
    Full(Bytes),
    Stream(NextPiece),
    /// That of another server's answer. It breaks off where that does.
    Relayed(Incoming),
}

impl Body {
    pub fn stream(pieces: Box<dyn Pieces>) -> Body {
        Body::Stream(pieces.next())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let piece = match &mut *self {
            Body::Empty => return Poll::Ready(None),
            Body::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Body::Empty;
                return Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))));
            }
            Body::Relayed(body) => return Pin::new(body).poll_frame(context),
            Body::Stream(next) => match next.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(piece) => piece,
            },
        };
        match piece {
            Some((bytes, pieces)) => {
                *self = Body::stream(pieces);
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            None => {
                *self = Body::Empty;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Empty => true,
            Body::Relayed(body) => body.is_end_stream(),
            Body::Full(_) | Body::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Body::Empty => http_body::SizeHint::with_exact(0),
            Body::Full(bytes) => http_body::SizeHint::with_exact(bytes.len() as u64),
            Body::Stream(_) => http_body::SizeHint::default(),
            Body::Relayed(body) => body.size_hint(),
        }
    }
}

/// The body of a response of a connection; the request runs until it has been sent.
pub struct Tracked {
    body: Body,
    _active: Active,
}

impl Tracked {
    pub fn new(body: Body, active: Active) -> Tracked {
        Tracked { body, _active: active }
    }
}

impl http_body::Body for Tracked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
