//! Objects in protobuf, as far as they can be compared without their types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::protobuf::{Field, MAGIC, Writer, fields};
use machinery::{Value, json};

use super::normal::{UID_BYTES, is_uid};

/// The number of the metadata in all objects.
const METADATA: u32 = 1;

/// The type of an enveloped object, and its fields but the metadata, each in base64, with equal uids and times. `None` if the bytes are
/// something else.
pub fn comparable(bytes: &[u8]) -> Option<Value> {
    let bytes = without_uids_and_times(bytes.strip_prefix(&MAGIC)?);
    let (mut kind, mut object) = (&[][..], &[][..]);
    for field in fields(&bytes)? {
        match field {
            Field::Bytes(1, content) => kind = content,
            Field::Bytes(2, content) => object = content,
            _ => {}
        }
    }
    let own = fields(object)?.into_iter().filter(|field| !matches!(field, Field::Bytes(METADATA, _)));
    let own: Value = own.map(|field| Value::from(STANDARD.encode(encoded(field)))).collect();
    Some(json!({"type": (STANDARD.encode(kind)), "fields": own}))
}

fn encoded(field: Field<'_>) -> Vec<u8> {
    let mut out = Writer::default();
    match field {
        Field::Int(number, value) => out.int(number, value.cast_signed()),
        Field::Double(number, value) => out.double(number, value),
        Field::Bytes(number, content) => out.bytes(number, content),
        Field::Half(_) => &mut out,
    };
    out.into_bytes()
}

/// Replaces uids, and messages of seconds since 1970 without nanoseconds.
fn without_uids_and_times(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for at in 0..out.len() {
        let uid = out.get(at..at + UID_BYTES).and_then(|part| std::str::from_utf8(part).ok());
        if uid.is_some_and(is_uid) {
            out[at..at + UID_BYTES].fill(b'u');
        }
        // five bytes of a varint are the seconds of the years from 2004 to 2106
        if let Some([0x08, 0x08, seconds @ .., 0x10, 0x00]) = out.get_mut(at..at + 9)
            && let [low @ .., high] = seconds
            && low.iter().all(|byte| *byte >= 0x80)
            && (1..0x10).contains(high)
        {
            seconds.copy_from_slice(&[0x80, 0x80, 0x80, 0x80, 0x01]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_and_times_are_equal_and_metadata_is_left_out() {
        let object = |uid: &str, seconds: u8| {
            let mut object = Writer::default();
            object.text(1, "metadata").text(2, uid).int(3, 7);
            object.message(4, |time| {
                time.bytes(1, &[0x08, 0x80, 0x80, 0x80, seconds, 0x06, 0x10, 0x00]);
            });
            let mut envelope = Writer::default();
            envelope.message(1, |meta| {
                meta.text(1, "v1").text(2, "Pod");
            });
            envelope.bytes(2, &object.into_bytes());
            [&MAGIC[..], &envelope.into_bytes()].concat()
        };
        let one = comparable(&object("11111111-2222-3333-4444-555555555555", 0x81)).unwrap();
        let other = comparable(&object("66666666-7777-8888-9999-000000000000", 0x92)).unwrap();
        assert_eq!(one, other);
        assert_eq!(one.items_at(&["fields"]).len(), 3);
        assert_eq!(one.str_at(&["type"]), STANDARD.encode(b"\x0a\x02v1\x12\x03Pod"));
        assert_eq!(comparable(b"{}"), None);
    }
}
