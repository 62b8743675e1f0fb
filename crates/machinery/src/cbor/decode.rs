//! From bytes to values.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use minicbor::Decoder;
use minicbor::data::Type;

use super::{Bounds, from_half};
use crate::time;
use crate::value::{Map, Text, Value};

type Read<T> = Result<T, String>;

/// How the bytes of a string are shown as text (RFC 8949 3.4.5.2).
#[derive(Clone, Copy)]
enum Later {
    AsTheyAre,
    Base64Url,
    Base64,
    Base16,
}

/// Reads one document within the bounds that kube-apiserver sets for requests. The error is a line.
pub fn decode(bytes: &[u8]) -> Read<Value> {
    decode_within(bytes, Bounds::REQUEST)
}

/// Reads one document from a store: as deep as JSON may nest, and as long as it is.
pub fn decode_stored(bytes: &[u8]) -> Read<Value> {
    decode_within(bytes, Bounds::STORED)
}

fn decode_within(bytes: &[u8], bounds: Bounds) -> Read<Value> {
    if bytes.is_empty() {
        return Err("EOF".to_owned());
    }
    let mut input = Decoder::new(bytes);
    let value = value(&mut input, Place { depth: 0, bounds, later: Later::AsTheyAre })?;
    let (at, length) = (input.position(), bytes.len());
    if at < length {
        return Err(format!("cbor: {} bytes of extraneous data starting at index {at}", length - at));
    }
    Ok(value)
}

fn failed(error: minicbor::decode::Error) -> String {
    if error.is_end_of_input() { "unexpected EOF".to_owned() } else { format!("cbor: {error}") }
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    bounds: Bounds,
    later: Later,
}

impl Place {
    fn below(self) -> Place {
        Place { depth: self.depth + 1, ..self }
    }

    fn showing(self, later: Later) -> Place {
        Place { later, ..self.below() }
    }
}

fn value(input: &mut Decoder<'_>, place: Place) -> Read<Value> {
    if place.depth > place.bounds.depth {
        return Err(format!("cbor: exceeded max nested level {}", place.bounds.depth));
    }
    match input.datatype().map_err(failed)? {
        Type::Null => input.null().map(|()| Value::Null).map_err(failed),
        Type::Bool => input.bool().map(Value::Bool).map_err(failed),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int => {
            let given = input.int().map_err(failed)?;
            let whole =
                i64::try_from(given).map_err(|_| format!("cbor: cannot unmarshal {given} into Go value of type int64"));
            whole.map(Value::Int)
        }
        Type::F16 => half(input),
        Type::F32 => finite(input.f32().map(f64::from).map_err(failed)?),
        Type::F64 => finite(input.f64().map_err(failed)?),
        Type::Bytes | Type::BytesIndef => string(input, place.later).map(Value::String),
        Type::String | Type::StringIndef => text(input).map(Value::String),
        Type::Array | Type::ArrayIndef => array(input, place),
        Type::Map | Type::MapIndef => map(input, place),
        Type::Tag => tagged(input, place),
        other => Err(format!("cbor: {other} is not supported")),
    }
}

fn half(input: &mut Decoder<'_>) -> Read<Value> {
    let at = input.position();
    let bits = input.input().get(at + 1..at + 3).and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes);
    input.set_position(at + 3);
    finite(from_half(bits.ok_or("unexpected EOF")?))
}

fn finite(value: f64) -> Read<Value> {
    match value.is_finite() {
        true => Ok(Value::Float(value)),
        false => Err("cbor: floating-point NaN and infinity are not supported".to_owned()),
    }
}

/// A byte string. What is no UTF-8 is replaced, as JSON would have it.
fn string(input: &mut Decoder<'_>, later: Later) -> Read<Text> {
    let mut bytes = vec![];
    for part in input.bytes_iter().map_err(failed)? {
        bytes.extend_from_slice(part.map_err(failed)?);
    }
    Ok(match later {
        Later::AsTheyAre => String::from_utf8_lossy(&bytes).into(),
        Later::Base64Url => URL_SAFE_NO_PAD.encode(bytes).into(),
        Later::Base64 => STANDARD.encode(bytes).into(),
        Later::Base16 => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    })
}

fn text(input: &mut Decoder<'_>) -> Read<Text> {
    let mut text = String::new();
    for part in input.str_iter().map_err(failed)? {
        text.push_str(part.map_err(failed)?);
    }
    Ok(text.into())
}

/// Whether another item follows: there are as many as were declared, or the break ends them.
fn more(input: &mut Decoder<'_>, declared: Option<u64>, read: usize, max: usize, what: &str) -> Read<bool> {
    let more = match declared {
        Some(length) => (read as u64) < length,
        None if input.datatype().map_err(failed)? == Type::Break => {
            input.set_position(input.position() + 1);
            false
        }
        None => true,
    };
    match more && (read >= max || declared.is_some_and(|length| length > max as u64)) {
        true => Err(format!("cbor: exceeded max number of {}", what.replace('#', &max.to_string()))),
        false => Ok(more),
    }
}

fn array(input: &mut Decoder<'_>, place: Place) -> Read<Value> {
    let declared = input.array().map_err(failed)?;
    let mut items = vec![];
    while more(input, declared, items.len(), place.bounds.length, "elements # for CBOR array")? {
        items.push(value(input, place.below())?);
    }
    Ok(Value::Array(items))
}

fn map(input: &mut Decoder<'_>, place: Place) -> Read<Value> {
    let declared = input.map().map_err(failed)?;
    let mut members = vec![];
    while more(input, declared, members.len(), place.bounds.length, "key-value pairs # for CBOR map")? {
        let name = match value(input, place.showing(Later::AsTheyAre))? {
            Value::String(name) => name,
            other => return Err(format!("cbor: cannot unmarshal {other} into Go value of type string")),
        };
        members.push((name, value(input, place.below())?));
    }
    let mut twice = None;
    let map = Map::from_entries(members, |name| twice = Some(name.to_owned()));
    match twice {
        Some(name) => Err(format!("cbor: found duplicate map key {}", crate::value::quote(&name))),
        None => Ok(Value::Object(map)),
    }
}

fn tagged(input: &mut Decoder<'_>, place: Place) -> Read<Value> {
    match input.tag().map_err(failed)?.as_u64() {
        0 => match value(input, place.showing(Later::AsTheyAre))? {
            Value::String(text) if time::parse_rfc3339(&text).is_some() => Ok(Value::String(text)),
            other => Err(format!("cbor: cannot set {other} for time.Time")),
        },
        1 => match value(input, place.showing(Later::AsTheyAre))? {
            Value::Int(seconds) => Ok(Value::from(time::rfc3339(seconds))),
            other => Err(format!("cbor: cannot set {other} for time.Time")),
        },
        2 | 3 => Err("cbor: big numbers are not supported".to_owned()),
        number @ 21..=23 => {
            let later = match number {
                21 => Later::Base64Url,
                22 => Later::Base64,
                _ => Later::Base16,
            };
            value(input, place.showing(later))
        }
        _ => value(input, place.below()),
    }
}
