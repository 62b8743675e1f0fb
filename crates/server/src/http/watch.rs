//! Encoding of watch streams: a JSON object per line, length-delimited protobuf messages, or a CBOR sequence.

use std::collections::VecDeque;

use machinery::{Result, Value, cbor, protobuf};
use objects::Sink as _;

use super::body::{NextPiece, PieceSource};
use super::chunks::Chunks;
use super::measure::RunningWatch;
use super::negotiate::{Accepted, Media, Shape};
use super::table::{self, Table};
use super::window::chunk_bytes;
use crate::verbs::{BookmarkKind, ResponseObject, Watch, WatchEvent};

/// A watch that is sent as a response body.
pub struct Stream {
    pub watch: Watch,
    pub accepted: Accepted,
    /// The table whose rows are sent; `None` in other shapes.
    table: Option<Table>,
    has_sent_table: bool,
    pub running: RunningWatch,
    /// Events that are still to be encoded.
    pending: VecDeque<WatchEvent>,
    /// Encoded events that are still to be sent.
    chunks: Chunks,
}

impl PieceSource for Stream {
    fn next(mut self: Box<Self>) -> NextPiece {
        Box::pin(async move {
            loop {
                if let Some(piece) = self.chunks.pop() {
                    return Ok(Some((piece, self as Box<dyn PieceSource>)));
                }
                if self.pending.is_empty() {
                    match self.watch.next().await {
                        Some(events) => self.pending.extend(events),
                        None => return Ok(None),
                    }
                }
                self.write_some();
            }
        })
    }
}

impl Stream {
    /// Fails if a table is accepted and its options are invalid.
    pub fn new(watch: Watch, accepted: Accepted, running: RunningWatch) -> Result<Stream> {
        let table = match accepted.shape {
            Shape::Table => Some(Table::new(&watch.request, &accepted)?),
            _ => None,
        };
        let (pending, chunks) = (VecDeque::new(), Chunks::default());
        Ok(Stream { watch, accepted, table, has_sent_table: false, running, pending, chunks })
    }

    /// Encodes pending events until a chunk is full or none is left.
    fn write_some(&mut self) {
        let wanted = chunk_bytes();
        let mut chunks = std::mem::take(&mut self.chunks);
        while chunks.len() < wanted
            && let Some(event) = self.pending.pop_front()
        {
            let before = chunks.len();
            self.write(&event, &mut chunks);
            self.running.sent(chunks.len() - before);
            if let WatchEvent::Bookmark(_, BookmarkKind::InitialEventsEnd) = event {
                self.running.listed();
            }
        }
        chunks.close();
        self.chunks = chunks;
    }

    fn write(&mut self, event: &WatchEvent, out: &mut Chunks) {
        match self.accepted.media {
            Media::Protobuf => return self.write_protobuf(event, out),
            Media::Cbor => return self.write_cbor(event, out),
            Media::Json | Media::Yaml => {}
        }
        match event {
            WatchEvent::Object(kind, shown) => {
                out.copy(b"{\"type\":\"");
                out.copy(kind.as_bytes());
                out.copy(b"\",\"object\":");
                self.object(shown, out);
                out.copy(b"}\n");
            }
            WatchEvent::Bookmark(revision, kind) => {
                let object = self.watch.bookmark_object(*revision, *kind);
                out.copy(b"{\"type\":\"BOOKMARK\",\"object\":");
                match self.accepted.shape {
                    Shape::Whole => json(&object, out),
                    _ => self.shaped(&object, out),
                }
                out.copy(b"}\n");
            }
            WatchEvent::Error(status) => {
                let event: Value = [("type", Value::from("ERROR")), ("object", status.to_value())].into();
                json(&event, out);
                out.copy(b"\n");
            }
        }
    }

    /// Writes an event as a length-delimited protobuf message; objects without a message are skipped.
    fn write_protobuf(&mut self, event: &WatchEvent, out: &mut Chunks) {
        let (kind, object) = self.kind_and_object(event);
        let bytes = match event {
            WatchEvent::Error(status) => Some(protobuf::status(status)),
            _ => protobuf::encode(&object),
        };
        if let Some(bytes) = bytes {
            out.append(protobuf::watch_event(kind, &bytes));
        }
    }

    fn write_cbor(&self, event: &WatchEvent, out: &mut Chunks) {
        let (kind, object) = self.kind_and_object(event);
        out.append(cbor::watch_event(kind, &object));
    }

    /// The type and the object of an event, for encodings without tables.
    fn kind_and_object(&self, event: &WatchEvent) -> (&'static str, Value) {
        let (kind, object) = match event {
            WatchEvent::Object(kind, shown) => (*kind, shown.to_value()),
            WatchEvent::Bookmark(revision, kind) => ("BOOKMARK", self.watch.bookmark_object(*revision, *kind)),
            WatchEvent::Error(status) => return ("ERROR", status.to_value()),
        };
        match self.accepted.shape {
            Shape::Partial => (kind, table::partial(&object, &self.accepted)),
            _ => (kind, object),
        }
    }

    fn object(&mut self, shown: &ResponseObject, out: &mut Chunks) {
        match self.accepted.shape {
            Shape::Whole => shown.write(out),
            _ => self.shaped(&shown.to_value(), out),
        }
    }

    fn shaped(&mut self, object: &Value, out: &mut Chunks) {
        if let Some(table) = &self.table {
            let is_first = !std::mem::replace(&mut self.has_sent_table, true);
            return json(&table.of_event(object, is_first), out);
        }
        match self.accepted.shape {
            Shape::Partial => json(&table::partial(object, &self.accepted), out),
            _ => json(object, out),
        }
    }
}

/// Appends compact JSON.
fn json(value: &Value, out: &mut Chunks) {
    out.append(value.to_json().into_bytes());
}
