//! The encoder: values to CBOR bytes.

use minicbor::data::Tag;
use minicbor::encode::Error;
use minicbor::encode::write::Write as _;

use super::{SELF_DESCRIBED, to_half};
use crate::value::Value;

type Encoder<'b> = minicbor::Encoder<&'b mut Vec<u8>>;
type Written = Result<(), Error<std::convert::Infallible>>;

/// Encodes a document. Values hold no infinite floats and no NaN; the encoder would write null for them.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = SELF_DESCRIBED.to_vec();
    // writing to memory does not fail
    let _ = write(value, &mut Encoder::new(&mut out));
    out
}

/// Encodes a watch event as a document with the fields `type` and `object`. The latter is itself a self-described
/// document.
pub fn watch_event(kind: &str, object: &Value) -> Vec<u8> {
    let mut out = SELF_DESCRIBED.to_vec();
    let mut encoder = Encoder::new(&mut out);
    let _ = event(kind, object, &mut encoder);
    out
}

fn event(kind: &str, object: &Value, out: &mut Encoder<'_>) -> Written {
    out.map(2)?.bytes(b"type")?.bytes(kind.as_bytes())?;
    out.bytes(b"object")?.tag(Tag::new(55_799))?;
    write(object, out)
}

fn write(value: &Value, out: &mut Encoder<'_>) -> Written {
    match value {
        Value::Null => out.null()?,
        Value::Bool(value) => out.bool(*value)?,
        Value::Int(value) => out.i64(*value)?,
        Value::Float(value) => return float(*value, out),
        Value::String(text) => out.bytes(text.as_bytes())?,
        Value::Array(items) => {
            out.array(items.len() as u64)?;
            return items.iter().try_for_each(|item| write(item, out));
        }
        Value::Encoded(text) => return write(&Value::of_encoded(text), out),
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            // sorted by length, since the encoded form of a shorter name begins with a smaller byte
            fields.sort_by_key(|(name, _)| name.len());
            out.map(fields.len() as u64)?;
            return fields.into_iter().try_for_each(|(name, value)| {
                out.bytes(name.as_bytes())?;
                write(value, out)
            });
        }
    };
    Ok(())
}

fn float(value: f64, out: &mut Encoder<'_>) -> Written {
    if !value.is_finite() {
        out.null()?;
    } else if let Some(half) = to_half(value) {
        let [high, low] = half.to_be_bytes();
        out.writer_mut().write_all(&[0xf9, high, low]).map_err(Error::write)?;
    } else if f64::from(value as f32) == value {
        out.f32(value as f32)?;
    } else {
        out.f64(value)?;
    }
    Ok(())
}
