//! Bodies in protobuf, which Go clients prefer, as the JSON that a client without protobuf would have sent and received.

use kinds::CATALOGUE;
use machinery::protobuf::{self, Field};
use machinery::{Value, json};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";
/// The first bytes of an object in protobuf.
const MAGIC: &[u8] = b"k8s\0";

/// The object of a body in protobuf; `None` if it is none, or of a type that only its client knows.
pub fn object(bytes: &[u8]) -> Option<Value> {
    if !bytes.starts_with(MAGIC) {
        return None;
    }
    let decoded = protobuf::decode(bytes).ok()?;
    // Go writes empty texts that JSON omits; the Go type of the kind knows which
    let shaped = CATALOGUE.shape_of(decoded.str_at(&["apiVersion"]), decoded.str_at(&["kind"]), &decoded);
    Some(shaped.map_or(decoded, |shaped| shaped.value))
}

/// The events of a watch in protobuf, each with its length before it; `None` if they are in JSON.
pub fn events(mut bytes: &[u8]) -> Option<Vec<Value>> {
    if bytes.first() != Some(&0) {
        return None;
    }
    let mut events = vec![];
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        // the last one may be cut off
        let Some((event, rest)) = rest.split_at_checked(length) else { break };
        events.extend(event_of(event));
        bytes = rest;
    }
    Some(events)
}

fn event_of(bytes: &[u8]) -> Option<Value> {
    let (mut kind, mut raw) = ("", None);
    for field in protobuf::fields(bytes)? {
        match field {
            Field::Bytes(1, text) => kind = std::str::from_utf8(text).ok()?,
            // a RawExtension, whose first field has the bytes
            Field::Bytes(2, extension) => {
                raw = protobuf::fields(extension)?.into_iter().find_map(|field| match field {
                    Field::Bytes(1, raw) => Some(raw),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    Some(json!({"type": kind, "object": (object(raw?)?)}))
}

/// A list of media types with JSON in place of protobuf, each once.
pub fn media_types(text: &str) -> String {
    let mut types: Vec<String> = vec![];
    for media in text.split(',').map(|media| media.trim().replace(PROTOBUF, JSON)) {
        if !types.contains(&media) {
            types.push(media);
        }
    }
    types.join(if text.contains(", ") { ", " } else { "," })
}
