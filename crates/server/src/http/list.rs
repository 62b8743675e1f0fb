//! The encoding of lists, in pieces that are encoded and compressed when the connection can send them.

use std::collections::VecDeque;
use std::sync::Arc;

use base::task;
use bytes::Bytes;
use machinery::{Result, Value, cbor, protobuf, yaml};
use objects::{ProtobufForm, Sink as _};

use super::body::{Broken, NextPiece, PieceSource};
use super::chunks::Chunks;
use super::gzip::Gzip;
use super::negotiate::{Accepted, Media, Shape};
use super::pretty::{indent, pretty as pretty_printed};
use super::table;
use super::window::chunk_bytes;
use crate::limits;
use crate::verbs::{Items, Request, ResponseObject};

/// Converts an item to the value that is encoded.
type ToTree = Box<dyn Fn(&ResponseObject) -> Value + Send>;
type ItemEncoder = Box<dyn Fn(&ResponseObject, &mut Chunks) + Send>;

/// The encoding of a list: the bytes before, between and after its items, and the encoder of an item.
pub struct ListEncoding {
    pub head: Vec<u8>,
    pub separator: &'static [u8],
    pub tail: Vec<u8>,
    pub item: ItemEncoder,
}

/// Placeholder of the items in a list that is encoded to find its head and tail.
const PLACEHOLDER: &str = "pintle:items";

impl ListEncoding {
    /// Compact JSON of whole objects. In `typed` lists, those of built-in kinds, items have no `apiVersion` and `kind`.
    pub fn json(list: &Value, typed: bool) -> Option<ListEncoding> {
        let (head, tail) = around(&line(list), &Value::from(PLACEHOLDER).to_json())?;
        let item: ItemEncoder = if typed {
            Box::new(|shown, out| shown.write_untyped(out))
        } else {
            Box::new(|shown, out| shown.write(out))
        };
        Some(ListEncoding { head, separator: b",", tail, item })
    }

    /// YAML, pretty-printed JSON, or JSON in a shape other than whole objects. `list` has the placeholder as its only
    /// item; `tree` converts an item to the value that is encoded.
    pub fn text(
        list: &Value,
        accepted: &Accepted,
        pretty: bool,
        tree: impl Fn(&ResponseObject) -> Value + Send + 'static,
    ) -> Option<ListEncoding> {
        if accepted.media == Media::Yaml {
            let (head, tail) = around(yaml::encode(list).as_bytes(), &format!("- {PLACEHOLDER}\n"))?;
            let encode = move |shown: &ResponseObject| yaml::encode(&Value::Array(vec![tree(shown)])).into_bytes();
            return Some(ListEncoding { head, separator: b"", tail, item: appended(encode) });
        }
        let placeholder = Value::from(PLACEHOLDER).to_json();
        if pretty {
            let (head, tail) = around(pretty_printed(list).as_bytes(), &placeholder)?;
            let encode = move |shown: &ResponseObject| {
                let mut text = String::new();
                indent(&tree(shown), ITEM_DEPTH, &mut text);
                text.into_bytes()
            };
            return Some(ListEncoding { head, separator: b",\n    ", tail, item: appended(encode) });
        }
        let (head, tail) = around(&line(list), &placeholder)?;
        let encode = move |shown: &ResponseObject| tree(shown).to_json().into_bytes();
        Some(ListEncoding { head, separator: b",", tail, item: appended(encode) })
    }

    /// CBOR, whose head contains the number of items, `count`.
    pub fn cbor(
        list: &Value,
        count: usize,
        tree: impl Fn(&ResponseObject) -> Value + Send + 'static,
    ) -> Option<ListEncoding> {
        let tag = cbor::SELF_DESCRIBED.len();
        let placeholder = cbor::encode(&Value::from(PLACEHOLDER));
        let (mut head, tail) = around_bytes(&cbor::encode(list), &placeholder[tag..])?;
        // replace the head of an array of one item, which is one byte, by the head of an array of `count` items
        head.pop();
        let array = cbor::encode(&Value::Array(vec![Value::Null; count]));
        head.extend_from_slice(&array[tag..array.len() - count]);
        let encode = move |shown: &ResponseObject| cbor::encode(&tree(shown)).split_off(tag);
        Some(ListEncoding { head, separator: b"", tail, item: appended(encode) })
    }

    /// Protobuf, whose envelope contains the encoded length of all items, `items_bytes`; `None` for kinds without a
    /// message.
    pub fn protobuf(version: &str, kind: &str, metadata: &Value, items_bytes: u64) -> Option<ListEncoding> {
        let (head, tail) = protobuf::encode_list_frame(version, kind, metadata, items_bytes)?;
        Some(ListEncoding { head, separator: b"", tail, item: protobuf_item(version, kind) })
    }
}

fn protobuf_item(version: &str, kind: &str) -> ItemEncoder {
    let (version, kind) = (version.to_owned(), kind.to_owned());
    appended(move |shown| protobuf::encode_list_item(&version, &kind, shown.to_value()).unwrap_or_default())
}

/// Appends the encoded bytes of an item. The encoding of a large one leaves the async worker.
fn appended(encode: impl Fn(&ResponseObject) -> Vec<u8> + Send + 'static) -> ItemEncoder {
    Box::new(move |shown, out| {
        let is_large = shown.stored_bytes() > limits::INLINE_BYTES_MAX;
        out.append(if is_large { task::blocking(|| encode(shown)) } else { encode(shown) });
    })
}

/// The length in bytes of all items of a list in protobuf. The length of an item is kept with the object, so that only
/// the first list encodes it twice.
pub async fn protobuf_bytes(
    (version, kind): (&str, &str),
    form: ProtobufForm,
    request: &Request,
    mut items: Items,
) -> Result<u64> {
    let mut bytes = 0;
    while items.len() > 0 {
        for shown in items.next(request).await? {
            let encoded = || protobuf::encode_list_item(version, kind, shown.to_value()).map_or(0, |bytes| bytes.len());
            bytes += shown.protobuf_bytes(form, encoded) as u64;
        }
        tokio::task::yield_now().await;
    }
    Ok(bytes)
}

/// A list whose only item is the placeholder.
pub fn placeholder() -> Value {
    Value::Array(vec![Value::from(PLACEHOLDER)])
}

/// The nesting level of items in a list, for pretty printing.
const ITEM_DEPTH: usize = 2;

fn line(value: &Value) -> Vec<u8> {
    let mut out = value.to_json().into_bytes();
    out.push(b'\n');
    out
}

fn around(text: &[u8], placeholder: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    around_bytes(text, placeholder.as_bytes())
}

/// Splits a text at the last placeholder, which stands for the items: no text that clients choose follows them.
fn around_bytes(text: &[u8], placeholder: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let at = text.windows(placeholder.len()).rposition(|window| window == placeholder)?;
    Some((text[..at].to_vec(), text[at + placeholder.len()..].to_vec()))
}

/// The conversion of an item to a row, a PartialObjectMetadata or a whole object.
pub fn tree_of(request: &Request, accepted: Accepted) -> Result<ToTree> {
    Ok(match accepted.shape {
        Shape::Table => {
            let table = table::Table::new(request, &accepted)?;
            Box::new(move |shown| table.row(&shown.to_value()))
        }
        Shape::PartialList => Box::new(move |shown| table::partial(&shown.to_value(), &accepted)),
        _ if request.resource.serving.unstructured => Box::new(ResponseObject::to_value),
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
    encoding: ListEncoding,
    /// Items that were read and are still to be encoded.
    pending: VecDeque<ResponseObject>,
    chunks: Chunks,
    has_items: bool,
    ended: bool,
    gzip: Option<Gzip>,
}

impl ListBody {
    pub fn new(request: Arc<Request>, items: Items, encoding: ListEncoding) -> ListBody {
        let mut chunks = Chunks::default();
        chunks.copy(&encoding.head);
        let pending = VecDeque::new();
        ListBody { request, items, encoding, pending, chunks, has_items: false, ended: false, gzip: None }
    }

    /// Encodes items until `bytes` bytes are waiting to be sent. Returns whether the whole list has been encoded.
    pub async fn fill(&mut self, bytes: usize) -> Result<bool> {
        while self.chunks.len() < bytes && !self.ended {
            if let Some(shown) = self.pending.pop_front() {
                if std::mem::replace(&mut self.has_items, true) {
                    self.chunks.copy(self.encoding.separator);
                }
                (self.encoding.item)(&shown, &mut self.chunks);
                continue;
            }
            self.pending = self.items.next(&self.request).await?.into();
            if self.pending.is_empty() {
                self.chunks.copy(&self.encoding.tail);
                self.ended = true;
            }
        }
        Ok(self.ended)
    }

    /// The number of bytes that are waiting to be sent.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// The bytes of a list that has been encoded completely.
    pub fn into_bytes(self) -> Bytes {
        self.chunks.into_bytes()
    }

    /// The pieces of a list that has been encoded completely.
    pub fn into_pieces(self) -> VecDeque<Bytes> {
        self.chunks.into_pieces()
    }

    /// The same list, compressed with gzip.
    pub fn compressed(self) -> ListBody {
        ListBody { gzip: Some(Gzip::default()), ..self }
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>> {
        if self.gzip.is_some() {
            return self.next_compressed_piece().await;
        }
        if let Some(piece) = self.chunks.pop() {
            return Ok(Some(piece));
        }
        self.fill(chunk_bytes()).await?;
        if let Some(piece) = self.chunks.pop() {
            // the bytes after this piece become part of the next one
            return Ok(Some(piece));
        }
        self.chunks.close();
        Ok(self.chunks.pop())
    }

    async fn next_compressed_piece(&mut self) -> Result<Option<Bytes>> {
        let was_ended = self.ended;
        let ended = self.fill(limits::PIECE_BYTES_MAX).await?;
        self.chunks.close();
        if was_ended && self.chunks.len() == 0 {
            return Ok(None);
        }
        let chunks = &mut self.chunks;
        let Some(gzip) = &mut self.gzip else { return Ok(None) };
        Ok(Some(gzip.part(std::iter::from_fn(|| chunks.pop()), ended).into()))
    }
}

impl PieceSource for ListBody {
    fn next(mut self: Box<Self>) -> NextPiece {
        Box::pin(async move {
            let piece = self.next_piece().await.map_err(|status| Broken(status.message.clone()))?;
            Ok(piece.map(|piece| (piece, self as Box<dyn PieceSource>)))
        })
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn frame(items: Value) -> Value {
        let metadata = json!({"continue": "", "resourceVersion": "7"});
        [
            ("apiVersion", Value::from("g/v1")),
            ("items", items),
            ("kind", Value::from("ThingList")),
            ("metadata", metadata),
        ]
        .into()
    }

    /// The bytes that are sent for a list of these items.
    fn sent(encoding: &ListEncoding, items: &[Value]) -> Vec<u8> {
        let mut chunks = Chunks::default();
        chunks.copy(&encoding.head);
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                chunks.copy(encoding.separator);
            }
            (encoding.item)(&ResponseObject::Tree(item.clone()), &mut chunks);
        }
        chunks.copy(&encoding.tail);
        chunks.into_bytes().to_vec()
    }

    #[test]
    fn items_make_the_same_bytes_as_the_whole_list() {
        let all = [
            json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"text": "pintle:items", "n": [1, 2.5]}}),
            json!({"metadata": {"name": "b", "annotations": {"x": "one\ntwo: \"three\"", "y": "- pintle:items\n"}}, "e": {}, "l": []}),
            json!({"list": [[1], {"a": [{"b": null}]}], "long": ("word ".repeat(100))}),
        ];
        let accepted = |media| Accepted { media, shape: Shape::Whole, ..Accepted::JSON };
        for count in 1..=all.len() {
            let items = &all[..count];
            let (whole, empty) = (frame(Value::Array(items.to_vec())), frame(placeholder()));
            let text =
                |media, pretty| ListEncoding::text(&empty, &accepted(media), pretty, ResponseObject::to_value).unwrap();
            assert_eq!(sent(&ListEncoding::json(&empty, false).unwrap(), items), line(&whole));
            assert_eq!(sent(&text(Media::Json, false), items), line(&whole));
            assert_eq!(sent(&text(Media::Json, true), items), super::super::pretty::pretty(&whole).into_bytes());
            assert_eq!(sent(&text(Media::Yaml, false), items), yaml::encode(&whole).into_bytes());
            let cbor = ListEncoding::cbor(&empty, count, ResponseObject::to_value).unwrap();
            assert_eq!(sent(&cbor, items), cbor::encode(&whole));
        }
        let many: Vec<Value> = (0..300).map(Value::Int).collect();
        let cbor = ListEncoding::cbor(&frame(placeholder()), many.len(), ResponseObject::to_value).unwrap();
        assert_eq!(sent(&cbor, &many), cbor::encode(&frame(Value::Array(many))));
    }

    #[test]
    fn protobuf_list_envelope_has_length_of_its_items() {
        let map = |name: &str| json!({"metadata": {"name": (name.to_owned())}, "data": {"a": ("x".repeat(300))}});
        let (items, metadata) = ([map("a"), map("b")], json!({"resourceVersion": "7"}));
        let bytes: usize = items
            .iter()
            .map(|item| {
                let mut chunks = Chunks::default();
                protobuf_item("v1", "ConfigMapList")(&ResponseObject::Tree(item.clone()), &mut chunks);
                chunks.len()
            })
            .sum();
        let encoding = ListEncoding::protobuf("v1", "ConfigMapList", &metadata, bytes as u64).unwrap();
        let list: Value = [
            ("apiVersion", Value::from("v1")),
            ("kind", Value::from("ConfigMapList")),
            ("metadata", metadata),
            ("items", Value::Array(items.to_vec())),
        ]
        .into();
        assert_eq!(Some(sent(&encoding, &items)), protobuf::encode(&list));
    }
}
