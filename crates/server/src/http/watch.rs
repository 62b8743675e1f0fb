//! Watch streams as bytes: a JSON object per line.

use bytes::Bytes;
use machinery::value::write_json;
use machinery::{Value, cbor, protobuf};

use super::body::{NextPiece, Pieces};
use super::measure::Running;
use super::negotiate::{Accepted, Media, Shape};
use super::table;
use crate::verbs::{Shown, Watch, WatchEvent};

/// A watch that is sent as a body.
pub struct Stream {
    pub watch: Watch,
    pub accepted: Accepted,
    pub first: bool,
    pub running: Running,
}

impl Pieces for Stream {
    fn next(mut self: Box<Self>) -> NextPiece {
        Box::pin(async move {
            loop {
                let events = self.watch.next().await?;
                let mut out = Vec::with_capacity(1024 * events.len().max(1));
                for event in &events {
                    let before = out.len();
                    self.write(event, &mut out);
                    self.running.sent(out.len() - before);
                    if let WatchEvent::Bookmark(_, true) = event {
                        self.running.listed();
                    }
                }
                if !out.is_empty() {
                    return Some((Bytes::from(out), self as Box<dyn Pieces>));
                }
            }
        })
    }
}

impl Stream {
    fn write(&mut self, event: &WatchEvent, out: &mut Vec<u8>) {
        match self.accepted.media {
            Media::Protobuf => return self.write_protobuf(event, out),
            Media::Cbor => return self.write_cbor(event, out),
            Media::Json | Media::Yaml => {}
        }
        match event {
            WatchEvent::Object(kind, shown) => {
                out.extend_from_slice(b"{\"type\":\"");
                out.extend_from_slice(kind.as_bytes());
                out.extend_from_slice(b"\",\"object\":");
                self.object(shown, out);
                out.extend_from_slice(b"}\n");
            }
            WatchEvent::Bookmark(revision, end) => {
                let object = self.watch.bookmark_object(*revision, *end);
                out.extend_from_slice(b"{\"type\":\"BOOKMARK\",\"object\":");
                match self.accepted.shape {
                    Shape::Whole => write_json(&object, out),
                    _ => self.shaped(&object, out),
                }
                out.extend_from_slice(b"}\n");
            }
            WatchEvent::Error(status) => {
                let event: Value = [("type", Value::from("ERROR")), ("object", status.to_value())].into();
                write_json(&event, out);
                out.push(b'\n');
            }
        }
    }

    /// The same as a message with its length in front.
    fn write_protobuf(&mut self, event: &WatchEvent, out: &mut Vec<u8>) {
        let (kind, object) = self.kind_and_object(event);
        let bytes = match event {
            WatchEvent::Error(status) => Some(protobuf::status(status)),
            _ => protobuf::encode(&object),
        };
        if let Some(bytes) = bytes {
            out.extend(protobuf::watch_event(kind, &bytes));
        }
    }

    fn write_cbor(&self, event: &WatchEvent, out: &mut Vec<u8>) {
        let (kind, object) = self.kind_and_object(event);
        out.extend(cbor::watch_event(kind, &object));
    }

    /// An event for encodings that have no tables.
    fn kind_and_object(&self, event: &WatchEvent) -> (&'static str, Value) {
        let (kind, object) = match event {
            WatchEvent::Object(kind, shown) => (*kind, shown.to_value()),
            WatchEvent::Bookmark(revision, end) => ("BOOKMARK", self.watch.bookmark_object(*revision, *end)),
            WatchEvent::Error(status) => return ("ERROR", status.to_value()),
        };
        match self.accepted.shape {
            Shape::Partial => (kind, table::partial(&object, &self.accepted)),
            _ => (kind, object),
        }
    }

    fn object(&mut self, shown: &Shown, out: &mut Vec<u8>) {
        match self.accepted.shape {
            Shape::Whole => shown.write(out),
            _ => self.shaped(&shown.to_value(), out),
        }
    }

    fn shaped(&mut self, object: &Value, out: &mut Vec<u8>) {
        match self.accepted.shape {
            Shape::Partial => write_json(&table::partial(object, &self.accepted), out),
            Shape::Table => {
                let first = std::mem::take(&mut self.first);
                match table::Table::new(&self.watch.request, &self.accepted) {
                    Ok(table) => write_json(&table.of_event(object, first), out),
                    Err(status) => write_json(&status.to_value(), out),
                }
            }
            _ => write_json(object, out),
        }
    }
}
