//! The protobuf encoding of Kubernetes: the envelope (`runtime.Unknown`), `Status`, and the messages of built-in kinds.
//!
//! As in kube-apiserver's generated code, scalars that are not pointers are written even when they are zero.

mod codec;
mod error;
mod table;

pub use codec::{decode, decode_as, encode, encode_list_frame, encode_list_item, watch_event};
pub use error::{Flaw, ProtobufError};

use crate::status::{Cause, Details, Status};

/// The magic number of enveloped messages.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// Declares the messages of a protocol with their fields: name, type, number, and the kind of encoding in prost's words. For crates
/// that depend on prost.
#[macro_export]
macro_rules! messages {
    ($($(#[$doc:meta])* $message:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $number:tt ($($kind:tt)*)),* $(,)?
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub struct $message {
            $($(#[$field_doc])* #[prost($($kind)*, tag = $number)] pub $field: $type,)*
        }
    )*};
}

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

    /// Appends what precedes a field of `length` bytes. The caller appends the field itself.
    pub fn header(&mut self, number: u32, length: usize) {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(length as u64);
    }

    /// Appends a field of bytes, which may be text or a message.
    pub fn bytes(&mut self, number: u32, value: &[u8]) -> &mut Writer {
        self.header(number, value.len());
        self.bytes.extend_from_slice(value);
        self
    }

    /// Appends a string field.
    pub fn text(&mut self, number: u32, value: &str) -> &mut Writer {
        self.bytes(number, value.as_bytes())
    }

    /// Appends a 64-bit float.
    pub fn double(&mut self, number: u32, value: f64) -> &mut Writer {
        self.varint(u64::from(number) << 3 | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends an integer. Negative ones take ten bytes.
    pub fn int(&mut self, number: u32, value: i64) -> &mut Writer {
        self.varint(u64::from(number) << 3);
        self.varint(value as u64);
        self
    }

    /// Appends an embedded message that `fill` writes.
    pub fn message(&mut self, number: u32, fill: impl FnOnce(&mut Writer)) -> &mut Writer {
        let mut inner = Writer::default();
        fill(&mut inner);
        self.bytes(number, &inner.bytes)
    }

    /// The encoded message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Wraps a message in an envelope.
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

/// The bytes of an envelope before and after the part of its message that the caller sends itself. The message begins
/// with `start`, and `rest` more bytes follow.
fn envelope_around(api_version: &str, kind: &str, start: &[u8], rest: u64) -> (Vec<u8>, Vec<u8>) {
    let mut head = Writer { bytes: MAGIC.to_vec() };
    head.message(1, |meta| {
        meta.text(1, api_version).text(2, kind);
    });
    head.varint(2 << 3 | 2);
    head.varint(start.len() as u64 + rest);
    head.bytes.extend_from_slice(start);
    let mut tail = Writer::default();
    tail.text(3, "").text(4, "");
    (head.into_bytes(), tail.into_bytes())
}

/// A `Status` in an envelope.
pub fn status(status: &Status) -> Vec<u8> {
    let mut raw = Writer::default();
    raw.message(1, |meta| {
        meta.text(1, "").text(2, "").text(3, &status.continue_token);
    });
    raw.text(2, "Failure").text(3, &status.message).text(4, status.reason_text());
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

/// One field of a message: its number and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    /// A varint: the field number and the value.
    Int(u32, u64),
    /// A 64-bit float: the field number and the value.
    Double(u32, f64),
    /// Bytes, a string or a message: the field number and the bytes.
    Bytes(u32, &'a [u8]),
    /// A number of four bytes, which no field of Kubernetes is: the field number.
    Half(u32),
}

impl Field<'_> {
    /// The number of the field, and the type of its encoding.
    fn tag(&self) -> (u32, u8) {
        match *self {
            Field::Int(number, _) => (number, 0),
            Field::Double(number, _) => (number, 1),
            Field::Bytes(number, _) => (number, 2),
            Field::Half(number) => (number, 5),
        }
    }
}

fn read_varint(bytes: &mut &[u8]) -> Result<u64, Flaw> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(Flaw::Truncated)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Flaw::Overflow)
}

/// Takes the next field of a message of the Go type `message`.
fn next_field<'a>(bytes: &mut &'a [u8], message: &'static str) -> Result<Field<'a>, Flaw> {
    let tag = read_varint(bytes)?;
    let (number, wire_type) = ((tag >> 3) as i32, (tag & 7) as u8);
    if wire_type == 4 {
        return Err(Flaw::EndGroup { message });
    }
    let Some(number) = u32::try_from(number).ok().filter(|number| *number > 0) else {
        return Err(Flaw::Tag { message, number, wire_type });
    };
    match wire_type {
        0 => Ok(Field::Int(number, read_varint(bytes)?)),
        1 => {
            let (value, rest) = bytes.split_first_chunk::<8>().ok_or(Flaw::Truncated)?;
            *bytes = rest;
            Ok(Field::Double(number, f64::from_le_bytes(*value)))
        }
        2 => {
            let length = isize::try_from(read_varint(bytes)?).map_err(|_| Flaw::Length)?;
            let (value, rest) = bytes.split_at_checked(length.unsigned_abs()).ok_or(Flaw::Truncated)?;
            *bytes = rest;
            Ok(Field::Bytes(number, value))
        }
        5 => {
            *bytes = bytes.get(4..).ok_or(Flaw::Truncated)?;
            Ok(Field::Half(number))
        }
        _ => Err(Flaw::WireType(wire_type)),
    }
}

/// The fields of a message of the Go type `message`, up to the first flaw.
fn fields_of<'a>(mut bytes: &'a [u8], message: &'static str) -> impl Iterator<Item = Result<Field<'a>, Flaw>> {
    std::iter::from_fn(move || (!bytes.is_empty()).then(|| next_field(&mut bytes, message))).fuse()
}

/// The fields of a message; `None` if it is malformed.
pub fn fields(bytes: &[u8]) -> Option<Vec<Field<'_>>> {
    fields_of(bytes, "").collect::<Result<_, _>>().ok()
}

/// The content of an envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The group and version, such as `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The encoded object.
    pub raw: &'a [u8],
}

/// The number and the bytes of a field of an envelope, whose fields with these names, from 1 on, are all bytes. Others are
/// ignored.
fn contained<'a>(field: Field<'a>, names: &[&str]) -> Result<(u32, &'a [u8]), Flaw> {
    let (number, wire_type) = field.tag();
    match (field, names.get(number as usize - 1)) {
        (Field::Bytes(_, bytes), _) => Ok((number, bytes)),
        (_, Some(name)) => Err(Flaw::WrongWireType { field: (*name).to_owned(), wire_type }),
        (_, None) => Ok((number, &[])),
    }
}

/// Opens an envelope.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    if bytes.is_empty() {
        return Err(ProtobufError::Empty);
    }
    let Some(message) = bytes.strip_prefix(&MAGIC) else {
        return Err(ProtobufError::MissingPrefix);
    };
    let mut envelope = Envelope::default();
    for field in fields_of(message, "Unknown") {
        match contained(field?, &["TypeMeta", "Raw", "ContentEncoding", "ContentType"])? {
            (1, meta) => {
                for field in fields_of(meta, "TypeMeta") {
                    match contained(field?, &["APIVersion", "Kind"])? {
                        (1, text) => envelope.api_version = String::from_utf8_lossy(text).into_owned(),
                        (2, text) => envelope.kind = String::from_utf8_lossy(text).into_owned(),
                        _ => {}
                    }
                }
            }
            (2, raw) => envelope.raw = raw,
            _ => {}
        }
    }
    Ok(envelope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_enveloped() {
        let bytes = status(&Status::bad_request("no"));
        let want = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x24\x0a\x06\x0a\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x02no\x22\x0aBadRequest\x30\x90\x03\x1a\x00\x22\x00";
        assert_eq!(bytes, want);
    }
}
