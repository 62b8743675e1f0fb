//! A stored object: its JSON without resourceVersion, the offset where that is inserted, and decoded metadata.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;
use machinery::value::{decode, decode_managed, skim, write_json, write_json_string};
use machinery::{Map, Text, Value};
use parking_lot::Mutex;
use store::Revision;

use crate::limits;

/// One of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub api_version: Text,
    pub kind: Text,
    pub name: Text,
    pub uid: Text,
    /// `blockOwnerDeletion`: foreground deletion of the owner waits for this object.
    pub blocks: bool,
}

impl Owner {
    fn of(reference: &Value) -> Owner {
        let text = |key: &str| reference.str_at(&[key]).into();
        let blocks = reference.is_true_at(&["blockOwnerDeletion"]);
        Owner { api_version: text("apiVersion"), kind: text("kind"), name: text("name"), uid: text("uid"), blocks }
    }
}

/// The metadata that the server reads without decoding the object.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    pub name: Text,
    pub namespace: Text,
    pub uid: Text,
    pub labels: Vec<(Text, Text)>,
    pub finalizers: bool,
    pub deleting: bool,
    pub owners: Vec<Owner>,
}

impl Meta {
    pub fn of(object: &Value) -> Meta {
        let empty = Value::Null;
        let metadata = object.get("metadata").unwrap_or(&empty);
        let text = |key: &str| match metadata.get(key) {
            Some(Value::String(text)) => text.clone(),
            _ => Text::default(),
        };
        let labels = metadata
            .get("labels")
            .and_then(Value::as_object)
            .map(|labels| labels.iter().filter_map(|(k, v)| Some((k.clone(), Text::from(v.as_str()?)))).collect());
        let owners = metadata.items_at(&["ownerReferences"]);
        Meta {
            owners: owners.iter().map(Owner::of).collect(),
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            labels: labels.unwrap_or_default(),
            finalizers: metadata.get("finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty()),
            deleting: metadata.get("deletionTimestamp").is_some_and(|t| !t.is_null()),
        }
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
}

/// An object in the form in which it will be stored.
pub struct Encoded {
    pub body: Body,
    pub meta: Meta,
    /// The id of the version in which clients see exactly these bytes, if there is one.
    pub shown_in: Option<u64>,
}

impl Encoded {
    pub fn of(object: &Value) -> Encoded {
        Encoded { body: Body::encode(object), meta: Meta::of(object), shown_in: None }
    }
}

/// A destination for encoded objects.
pub trait Sink {
    fn copy(&mut self, bytes: &[u8]);

    /// Writes a part of `bytes`, which may be kept instead of being copied.
    fn share(&mut self, bytes: &Bytes, part: Range<usize>);
}

impl Sink for Vec<u8> {
    fn copy(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn share(&mut self, bytes: &Bytes, part: Range<usize>) {
        self.extend_from_slice(&bytes[part]);
    }
}

/// Encoded JSON without resourceVersion, which is inserted at offset `hole` when the object is sent.
#[derive(Clone, Debug)]
pub struct Body {
    pub bytes: Bytes,
    pub hole: usize,
}

impl Body {
    /// Encodes an object without its resourceVersion.
    pub fn encode(object: &Value) -> Body {
        let mut out = Vec::with_capacity(4096);
        let mut hole = 0;
        match object {
            Value::Object(map) => write_members(map, &mut out, &mut |key, value, out| {
                if key == "metadata"
                    && let Value::Object(metadata) = value
                {
                    hole = write_metadata(metadata, out);
                } else {
                    write_json(value, out);
                }
            }),
            other => write_json(other, &mut out),
        }
        // copied to an allocation of exactly this size, which stays in memory as long as the object
        Body { bytes: Bytes::copy_from_slice(&out), hole }
    }

    /// Appends the object with its resourceVersion.
    pub fn write(&self, revision: Revision, out: &mut impl Sink) {
        self.write_part(0..self.bytes.len(), revision, out);
    }

    /// Appends a part of the object, with the resourceVersion if its place is in that part.
    fn write_part(&self, part: Range<usize>, revision: Revision, out: &mut impl Sink) {
        if revision == 0 || self.hole == 0 || !(part.start..part.end).contains(&self.hole) {
            return out.share(&self.bytes, part);
        }
        let (before, after) = self.bytes.split_at(self.hole);
        out.share(&self.bytes, part.start..self.hole);
        if before.last() != Some(&b'{') && before.last() != Some(&b',') {
            out.copy(b",");
        }
        out.copy(b"\"resourceVersion\":\"");
        out.copy(itoa::Buffer::new().format(revision).as_bytes());
        out.copy(if after.first() == Some(&b'}') { b"\"" } else { b"\"," });
        out.share(&self.bytes, self.hole..part.end);
    }

    /// Appends the object without `apiVersion` and `kind`, like items of typed lists. Returns false if the bytes cannot be skimmed.
    pub fn write_untyped(&self, revision: Revision, out: &mut impl Sink) -> bool {
        let Some(fields) = skim::fields(&self.bytes, 0) else { return false };
        out.copy(b"{");
        let kept = fields.iter().filter(|field| !matches!(field.key, b"apiVersion" | b"kind"));
        for (i, field) in kept.enumerate() {
            if i > 0 {
                out.copy(b",");
            }
            self.write_part(field.at..field.value.end, revision, out);
        }
        out.copy(b"}");
        true
    }

    /// Whether field `outer` of the object has field `inner`, without decoding; only for bytes that were encoded here.
    pub fn has(&self, outer: &str, inner: &str) -> bool {
        let fields = skim::find(&self.bytes, outer).and_then(|start| skim::fields(&self.bytes, start));
        fields.is_some_and(|fields| fields.iter().any(|field| field.key == inner.as_bytes()))
    }

    /// The decoded object, with its resourceVersion.
    pub fn to_value(&self, revision: Revision) -> Value {
        versioned(decode(&self.bytes).unwrap_or_default(), revision)
    }

    /// As [`Body::to_value`], but `fieldsV1` of its managers stays encoded, see [`Value::Encoded`]. For changes, and for readers
    /// of anything else.
    pub fn to_managed_value(&self, revision: Revision) -> Value {
        versioned(decode_managed(&self.bytes).unwrap_or_default(), revision)
    }
}

/// The object with its resourceVersion.
fn versioned(mut value: Value, revision: Revision) -> Value {
    if revision > 0 && value.get("metadata").is_some_and(|m| matches!(m, Value::Object(_))) {
        value.set_at(&["metadata", "resourceVersion"], Value::from(revision.to_string()));
    }
    value
}

fn write_members(map: &Map, out: &mut Vec<u8>, write: &mut dyn FnMut(&str, &Value, &mut Vec<u8>)) {
    out.push(b'{');
    for (i, (key, value)) in map.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_json_string(key, out);
        out.push(b':');
        write(key, value, out);
    }
    out.push(b'}');
}

/// Writes metadata without resourceVersion and returns the offset at which the resourceVersion belongs.
fn write_metadata(metadata: &Map, out: &mut Vec<u8>) -> usize {
    const KEY: &str = "resourceVersion";
    let mut hole = 0;
    out.push(b'{');
    let mut first = true;
    for (key, value) in metadata.iter().filter(|(key, _)| *key != KEY) {
        if !first {
            out.push(b',');
        }
        if hole == 0 && key.as_str() > KEY {
            hole = out.len();
        }
        first = false;
        write_json_string(key, out);
        out.push(b':');
        write_json(value, out);
    }
    if hole == 0 {
        hole = out.len();
    }
    out.push(b'}');
    hole
}

/// Skims the metadata of an object encoded by [`Body::encode`]; `None` if the encoding differs.
fn skimmed(bytes: &Bytes) -> Option<(Meta, Body)> {
    const KEY: &[u8] = b"resourceVersion";
    let start = skim::find(bytes, "metadata")?;
    let fields = skim::fields(bytes, start)?;
    if !fields.windows(2).all(|pair| pair[0].key < pair[1].key) || fields.iter().any(|field| field.key == KEY) {
        return None;
    }
    let hole = fields.iter().find(|field| field.key > KEY).map(|field| field.at);
    let hole = hole.unwrap_or_else(|| fields.last().map_or(start + 1, |last| last.value.end));
    let mut known = Map::new();
    for field in fields.iter().filter(|field| field.key != b"managedFields") {
        known.insert(std::str::from_utf8(field.key).ok()?, decode(&bytes[field.value.clone()]).ok()?);
    }
    let meta = Meta::of(&[("metadata", Value::Object(known))].into());
    Some((meta, Body { bytes: bytes.clone(), hole }))
}

/// Decodes any object, and encodes it again if its encoding differs from [`Body::encode`]'s.
fn decoded(bytes: &Bytes) -> Option<(Meta, Body)> {
    let value = decode(bytes).ok()?;
    let mut body = Body::encode(&value);
    if body.bytes == bytes {
        body.bytes = bytes.clone();
    }
    Some((Meta::of(&value), body))
}

/// The encoding of an object in one version; `None` if it equals the stored bytes.
pub type Rendition = Option<Arc<Body>>;

#[derive(Clone, Copy, Debug)]
pub enum ProtobufForm {
    Whole,
    Metadata,
}

/// An object at one revision. The first fields share a cache line with the counts of the [`Arc`], and a list of a
/// version without conversions reads only those.
#[derive(Debug)]
#[repr(C)]
pub struct Stored {
    pub revision: Revision,
    /// The version program whose rendition is known to equal the stored bytes; 0 if there is none. With it, lists need
    /// not lock `renditions`.
    unchanged_by: AtomicU64,
    pub body: Body,
    pub meta: Meta,
    /// Whether the stored bytes would be encoded differently now, so that a write without changes is still made.
    pub stale: bool,
    /// The mark of the layout when the object was read or written; the object is also stale once the mark differs.
    pub mark: u64,
    /// Size in bytes of the object in each [`ProtobufForm`], as an item of a list; 0 if unknown.
    protobuf_bytes: [AtomicU32; 2],
    renditions: Mutex<Vec<(u64, Rendition)>>,
}

impl Stored {
    pub fn new(revision: Revision, body: Body, meta: Meta) -> Stored {
        let (unchanged_by, protobuf_bytes, renditions) = Default::default();
        Stored { revision, body, meta, stale: false, mark: 0, unchanged_by, protobuf_bytes, renditions }
    }

    /// Decodes the bytes of the store. `None` if they are not an object with metadata.
    pub fn parse(revision: Revision, bytes: &Bytes) -> Option<Stored> {
        let (meta, body) = skimmed(bytes).or_else(|| decoded(bytes))?;
        (!meta.name.is_empty()).then(|| Stored::new(revision, body, meta))
    }

    /// The finalizers, without decoding the object.
    pub fn finalizers(&self) -> Vec<String> {
        if !self.meta.finalizers {
            return vec![];
        }
        let bytes = &self.body.bytes;
        let metadata = skim::find(bytes, "metadata").and_then(|start| skim::fields(bytes, start)).unwrap_or_default();
        let found = metadata.iter().find(|field| field.key == b"finalizers");
        let list = found.and_then(|field| decode(&bytes[field.value.clone()]).ok()).unwrap_or_default();
        list.as_array().unwrap_or_default().iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    /// The same content with a later revision, for DELETED events.
    pub fn at(&self, revision: Revision) -> Stored {
        let renditions = self.renditions.lock().clone();
        let (body, meta) = (self.body.clone(), self.meta.clone());
        let unchanged_by = AtomicU64::new(self.unchanged_by.load(Ordering::Relaxed));
        let protobuf_bytes = Default::default();
        Stored {
            revision,
            body,
            meta,
            stale: self.stale,
            mark: self.mark,
            unchanged_by,
            protobuf_bytes,
            renditions: Mutex::new(renditions),
        }
    }

    /// The length of the stored object in protobuf, in bytes. `measure` computes it on first use.
    pub fn protobuf_bytes(&self, form: ProtobufForm, measure: impl FnOnce() -> usize) -> usize {
        let known = &self.protobuf_bytes[form as usize];
        match known.load(Ordering::Relaxed) {
            0 => {
                let bytes = measure();
                known.store(u32::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
                bytes
            }
            bytes => bytes as usize,
        }
    }

    /// The rendition for the version program `id`, made by `make` on first use.
    pub fn rendition<E>(&self, id: u64, make: impl FnOnce() -> Result<Rendition, E>) -> Result<Rendition, E> {
        if self.unchanged_by.load(Ordering::Relaxed) == id {
            return Ok(None);
        }
        let lock = || self.renditions.lock();
        if let Some((_, rendition)) = lock().iter().find(|(key, _)| *key == id) {
            return Ok(rendition.clone());
        }
        let rendition = make()?;
        self.remember(id, rendition.clone());
        Ok(rendition)
    }

    /// Whether the rendition for a version program is known.
    pub fn remembers(&self, id: u64) -> bool {
        if self.unchanged_by.load(Ordering::Relaxed) == id {
            return true;
        }
        let renditions = self.renditions.lock();
        renditions.iter().any(|(key, _)| *key == id)
    }

    pub fn remember(&self, id: u64, rendition: Rendition) {
        let replaced = match rendition {
            Some(_) => (id, rendition),
            None => match self.unchanged_by.swap(id, Ordering::Relaxed) {
                before if before == 0 || before == id => return,
                before => (before, None),
            },
        };
        let mut renditions = self.renditions.lock();
        if renditions.len() >= limits::RENDITIONS_MAX {
            renditions.remove(0);
        }
        renditions.push(replaced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn encoded_objects_are_read_without_decoding() {
        let cases = [
            json!({"metadata": {"name": "x"}}),
            json!({"kind": "A", "metadata": {"name": "x", "uid": "u", "labels": {"a": "b"}, "finalizers": ["f"]}}),
            json!({"metadata": {"deletionTimestamp": "t", "managedFields": [{"x": {}}], "name": "x", "selfLink": ""}}),
            json!({"metadata": {"name": "é\n\"", "ownerReferences": [{"uid": "o"}]}, "spec": {"metadata": 1}}),
        ];
        for value in cases {
            let bytes = Body::encode(&value).bytes;
            let ((meta, body), (want, whole)) = (skimmed(&bytes).unwrap(), decoded(&bytes).unwrap());
            assert_eq!(format!("{meta:?}"), format!("{want:?}"));
            assert_eq!((body.bytes, body.hole), (whole.bytes, whole.hole), "{}", value.to_json());
        }
        let finalizers = |value: Value| Stored::parse(1, &Body::encode(&value).bytes).unwrap().finalizers();
        assert_eq!(
            finalizers(json!({"data": {"finalizers": ["x"]}, "metadata": {"finalizers": ["a", "b"], "name": "x"}})),
            ["a", "b"]
        );
        assert_eq!(finalizers(json!({"metadata": {"name": "x"}, "finalizers": ["x"]})), [""; 0]);
        for other in [r#"{"metadata":{"name":"x","resourceVersion":"1"}}"#, r#"{"metadata": {"name":"x"}}"#, "{}"] {
            assert!(skimmed(&Bytes::from(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn fields_are_found_without_decoding() {
        let body = Body::encode(&json!({"a": {"service": 1}, "service": {}, "spec": {"x": {"y": 1}, "service": null}}));
        for (outer, inner, want) in [("spec", "service", true), ("spec", "y", false), ("service", "x", false)] {
            assert_eq!(body.has(outer, inner), want, "{outer}.{inner}");
        }
        assert!(!body.has("none", "x") && !Body::encode(&json!([])).has("spec", "x"));
    }

    #[test]
    fn resource_version_is_spliced_in() {
        let cases = [
            (
                json!({"kind": "A", "metadata": {"name": "x", "uid": "u"}}),
                r#"{"kind":"A","metadata":{"name":"x","resourceVersion":"7","uid":"u"}}"#,
            ),
            (
                json!({"metadata": {"name": "x", "resourceVersion": "3"}}),
                r#"{"metadata":{"name":"x","resourceVersion":"7"}}"#,
            ),
            (json!({"metadata": {"uid": "u"}}), r#"{"metadata":{"resourceVersion":"7","uid":"u"}}"#),
            (json!({"metadata": {}}), r#"{"metadata":{"resourceVersion":"7"}}"#),
        ];
        for (value, want) in cases {
            let body = Body::encode(&value);
            let mut out = vec![];
            body.write(7, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want);
            assert_eq!(body.to_value(7).to_json(), want);
        }
    }
}
