//! The protobuf envelope and the messages that every endpoint can answer with (api-machinery 3.4).
//!
//! As in the reference server's generated code, scalars that are no pointers are written even when they are zero.

use crate::status::{Cause, Details, Status};

/// What every message starts with.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// Appends fields of one message.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push((value as u8) | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A field of bytes: text, or a message.
    pub fn bytes(&mut self, number: u32, value: &[u8]) -> &mut Writer {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    pub fn text(&mut self, number: u32, value: &str) -> &mut Writer {
        self.bytes(number, value.as_bytes())
    }

    /// An integer; negative ones take ten bytes.
    pub fn int(&mut self, number: u32, value: i64) -> &mut Writer {
        self.varint(u64::from(number) << 3);
        self.varint(value as u64);
        self
    }

    pub fn message(&mut self, number: u32, fill: impl FnOnce(&mut Writer)) -> &mut Writer {
        let mut inner = Writer::default();
        fill(&mut inner);
        self.bytes(number, &inner.bytes)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A message in its envelope.
pub fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut unknown = Writer::default();
    unknown
        .message(1, |meta| {
            meta.text(1, api_version).text(2, kind);
        })
        .bytes(2, raw)
        .text(3, "")
        .text(4, "");
    let mut out = MAGIC.to_vec();
    out.extend(unknown.into_bytes());
    out
}

/// A failure as an enveloped `Status`.
pub fn status(status: &Status) -> Vec<u8> {
    let mut raw = Writer::default();
    raw.message(1, |meta| {
        meta.text(1, "").text(2, "").text(3, &status.continue_token);
    });
    raw.text(2, "Failure").text(3, &status.message).text(4, status.reason.as_str());
    if let Some(details) = &status.details {
        raw.message(5, |out| write_details(details, out));
    }
    raw.int(6, i64::from(status.code));
    envelope("v1", "Status", &raw.into_bytes())
}

fn write_details(details: &Details, out: &mut Writer) {
    out.text(1, &details.name).text(2, &details.group).text(3, &details.kind);
    for Cause { reason, message, field } in &details.causes {
        out.message(4, |cause| {
            cause.text(1, reason).text(2, message).text(3, field);
        });
    }
    out.int(5, i64::from(details.retry_after_seconds)).text(6, &details.uid);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_enveloped() {
        let bytes = status(&Status::bad_request("no"));
        let want = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x27\x0a\x06\x0a\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x02no\x22\x0aBadRequest\x30\x90\x03\x1a\x00\x22\x00";
        assert_eq!(bytes, want);
    }
}
