//! Lists as bytes: encoded and compressed in pieces, as the connection takes them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use machinery::{Status, Value, cbor, protobuf, yaml};

use super::body::{Broken, NextPiece, Pieces};
use super::chunks::Chunks;
use super::gzip::Gzip;
use super::negotiate::{Accepted, Media, Shape};
use super::respond::indent;
use super::table;
use crate::limits;
use crate::objects::Sink as _;
use crate::verbs::{Items, Request, Shown};

/// Writes one item.
type Item = Box<dyn Fn(&Shown, &mut Chunks) + Send>;

/// How a list is written: what stands before, between and behind its items.
pub struct Encoding {
    pub head: Vec<u8>,
    pub separator: &'static [u8],
    pub tail: Vec<u8>,
    pub item: Item,
}

/// Stands for the items where a list is encoded without them.
const PLACEHOLDER: &str = "pintle:items";

impl Encoding {
    /// Compact JSON of whole objects; items of typed lists have no `apiVersion` and `kind`.
    pub fn json(list: &Value, typed: bool) -> Option<Encoding> {
        let (head, tail) = around(&line(list), &Value::from(PLACEHOLDER).to_json())?;
        let item: Item = match typed {
            true => Box::new(|shown, out| shown.write_untyped(out)),
            false => Box::new(|shown, out| shown.write(out)),
        };
        Some(Encoding { head, separator: b",", tail, item })
    }

    /// Any text encoding. `list` has the placeholder as its only item; `tree` makes what is written of an item, in an array
    /// `depth` levels deep.
    pub fn text(
        list: &Value,
        accepted: &Accepted,
        pretty: bool,
        tree: impl Fn(&Shown) -> Value + Send + 'static,
    ) -> Option<Encoding> {
        if accepted.media == Media::Yaml {
            let (head, tail) = around(yaml::encode(list).as_bytes(), &format!("- {PLACEHOLDER}\n"))?;
            let item = move |shown: &Shown, out: &mut Chunks| {
                out.share(yaml::encode(&Value::Array(vec![tree(shown)])).into_bytes().into());
            };
            return Some(Encoding { head, separator: b"", tail, item: Box::new(item) });
        }
        let placeholder = Value::from(PLACEHOLDER).to_json();
        if pretty {
            let (head, tail) = around(super::respond::pretty(list).as_bytes(), &placeholder)?;
            let item = move |shown: &Shown, out: &mut Chunks| {
                let mut text = String::new();
                indent(&tree(shown), ITEM_DEPTH, &mut text);
                out.share(text.into_bytes().into());
            };
            return Some(Encoding { head, separator: b",\n    ", tail, item: Box::new(item) });
        }
        let (head, tail) = around(&line(list), &placeholder)?;
        let item = move |shown: &Shown, out: &mut Chunks| out.share(tree(shown).to_json().into_bytes().into());
        Some(Encoding { head, separator: b",", tail, item: Box::new(item) })
    }

    /// CBOR, which tells the number of items in advance.
    pub fn cbor(list: &Value, count: usize, tree: impl Fn(&Shown) -> Value + Send + 'static) -> Option<Encoding> {
        let tag = cbor::SELF_DESCRIBED.len();
        let placeholder = cbor::encode(&Value::from(PLACEHOLDER));
        let (mut head, tail) = around_bytes(&cbor::encode(list), &placeholder[tag..])?;
        // the head of an array of one
        head.pop();
        let of_many = cbor::encode(&Value::Array(vec![Value::Null; count]));
        head.extend_from_slice(&of_many[tag..of_many.len() - count]);
        let item = move |shown: &Shown, out: &mut Chunks| out.copy(&cbor::encode(&tree(shown))[tag..]);
        Some(Encoding { head, separator: b"", tail, item: Box::new(item) })
    }

    /// Protobuf, whose envelope tells the length of the items in advance; `None` for kinds that have no message.
    pub fn protobuf(version: &str, kind: &str, metadata: &Value, items_bytes: u64) -> Option<Encoding> {
        let (head, tail) = protobuf::encode_list_frame(version, kind, metadata, items_bytes)?;
        Some(Encoding { head, separator: b"", tail, item: protobuf_item(version, kind) })
    }
}

fn protobuf_item(version: &str, kind: &str) -> Item {
    let (version, kind) = (version.to_owned(), kind.to_owned());
    Box::new(move |shown, out| {
        let bytes = protobuf::encode_list_item(&version, &kind, shown.to_value());
        out.share(bytes.unwrap_or_default().into());
    })
}

/// The length of the items of a list as protobuf.
pub fn protobuf_bytes(version: &str, kind: &str, request: &Request, mut items: Items) -> Result<u64, Status> {
    let item = protobuf_item(version, kind);
    let mut bytes = 0;
    while items.len() > 0 {
        for shown in items.next(request)? {
            let mut out = Chunks::default();
            item(&shown, &mut out);
            bytes += out.len() as u64;
        }
    }
    Ok(bytes)
}

/// A list whose only item is the placeholder.
pub fn placeholder() -> Value {
    Value::Array(vec![Value::from(PLACEHOLDER)])
}

/// How deep the items of a list stand.
const ITEM_DEPTH: usize = 2;

fn line(value: &Value) -> Vec<u8> {
    let mut out = value.to_json().into_bytes();
    out.push(b'\n');
    out
}

fn around(text: &[u8], placeholder: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    around_bytes(text, placeholder.as_bytes())
}

/// What stands before and behind the last placeholder: nothing that others have chosen stands behind the items.
fn around_bytes(text: &[u8], placeholder: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let at = text.windows(placeholder.len()).rposition(|window| window == placeholder)?;
    Some((text[..at].to_vec(), text[at + placeholder.len()..].to_vec()))
}

/// Makes an item of a list from an object.
pub type ItemOf = Box<dyn Fn(&Shown) -> Value + Send>;

/// The items of a table or of a list of metadata, as they stand in it.
pub fn tree_of(request: &Request, accepted: Accepted) -> Result<ItemOf, Status> {
    Ok(match accepted.shape {
        Shape::Table => {
            let table = table::Table::new(request, &accepted)?;
            Box::new(move |shown| table.row(&shown.to_value()))
        }
        Shape::PartialList => Box::new(move |shown| table::partial(&shown.to_value(), &accepted)),
        _ if request.resource.is_custom() => Box::new(Shown::to_value),
        _ => Box::new(|shown| {
            let mut value = shown.to_value();
            value.remove_at(&["kind"]);
            value.remove_at(&["apiVersion"]);
            value
        }),
    })
}

/// A list that is being sent.
pub struct ListBody {
    request: Arc<Request>,
    items: Items,
    encoding: Encoding,
    /// Items that were read and are still to be written.
    pending: VecDeque<Shown>,
    chunks: Chunks,
    any: bool,
    ended: bool,
    gzip: Option<Gzip>,
}

impl ListBody {
    pub fn new(request: Arc<Request>, items: Items, encoding: Encoding) -> ListBody {
        let mut chunks = Chunks::default();
        chunks.copy(&encoding.head);
        let pending = VecDeque::new();
        ListBody { request, items, encoding, pending, chunks, any: false, ended: false, gzip: None }
    }

    /// Writes until `bytes` wait to be sent, or to the end. Returns whether that is all of the list.
    pub fn fill(&mut self, bytes: usize) -> Result<bool, Status> {
        while self.chunks.len() < bytes && !self.ended {
            if let Some(shown) = self.pending.pop_front() {
                if std::mem::replace(&mut self.any, true) {
                    self.chunks.copy(self.encoding.separator);
                }
                (self.encoding.item)(&shown, &mut self.chunks);
                continue;
            }
            self.pending = self.items.next(&self.request)?.into();
            if self.pending.is_empty() {
                self.chunks.copy(&self.encoding.tail);
                self.ended = true;
            }
        }
        Ok(self.ended)
    }

    /// Bytes that wait to be sent.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// What waits to be sent, which is all of the list.
    pub fn into_bytes(self) -> Bytes {
        self.chunks.into_bytes()
    }

    /// The same, compressed.
    pub fn compressed(self) -> ListBody {
        ListBody { gzip: Some(Gzip::default()), ..self }
    }

    fn next_piece(&mut self) -> Result<Option<Bytes>, Status> {
        if self.gzip.is_none()
            && let Some(piece) = self.chunks.pop()
        {
            return Ok(Some(piece));
        }
        let wanted = if self.gzip.is_some() { limits::PIECE_BYTES_MAX } else { limits::CHUNK_BYTES };
        let was_ended = self.ended;
        let ended = self.fill(wanted)?;
        self.chunks.close();
        let Some(gzip) = &mut self.gzip else { return Ok(self.chunks.pop()) };
        if was_ended && self.chunks.len() == 0 {
            return Ok(None);
        }
        let chunks = &mut self.chunks;
        Ok(Some(gzip.part(std::iter::from_fn(|| chunks.pop()), ended).into()))
    }
}

impl Pieces for ListBody {
    fn next(mut self: Box<Self>) -> NextPiece {
        Box::pin(async move {
            let piece = self.next_piece().map_err(|status| Broken(status.message.clone()))?;
            Ok(piece.map(|piece| (piece, self as Box<dyn Pieces>)))
        })
    }
}
