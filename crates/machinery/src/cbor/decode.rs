//! The decoder: CBOR bytes to values.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use minicbor::Decoder;
use minicbor::data::Type;
use std::borrow::Cow;

use super::error::{CborError, CborProblem};
use super::{Bounds, from_half};
use crate::time;
use crate::value::{Map, Text, Value, quote};

type Read<T> = Result<T, CborError>;

/// The encoding by which a byte string becomes text in JSON (RFC 8949, section 3.4.5.2).
#[derive(Clone, Copy)]
enum StringEncoding {
    Utf8,
    Base64Url,
    Base64,
    Base16,
}

/// Decodes one document within the bounds that kube-apiserver sets for requests.
pub fn decode(bytes: &[u8]) -> Read<Value> {
    decode_within(bytes, Bounds::REQUEST)
}

/// Decodes one document from a store: values may nest as deep as in JSON, and collections may be of any length.
pub fn decode_stored(bytes: &[u8]) -> Read<Value> {
    decode_within(bytes, Bounds::STORED)
}

fn decode_within(bytes: &[u8], bounds: Bounds) -> Read<Value> {
    if bytes.is_empty() {
        return Err(CborError { offset: 0, problem: CborProblem::Empty });
    }
    let mut input = Decoder::new(bytes);
    let value = value(&mut input, ValuePlace { depth: 0, bounds, encoding: StringEncoding::Utf8 })?;
    let (at, length) = (input.position(), bytes.len());
    if at < length {
        let why = format!("{} bytes of extraneous data starting at index {at}", length - at);
        return Err(error(&input, why));
    }
    Ok(value)
}

fn failed(error: minicbor::decode::Error) -> CborError {
    let offset = error.position().unwrap_or_default();
    match error.is_end_of_input() {
        true => CborError { offset, problem: CborProblem::UnexpectedEnd },
        false => CborError { offset, problem: CborProblem::Invalid(error.to_string().into()) },
    }
}

fn error(input: &Decoder<'_>, why: impl Into<Cow<'static, str>>) -> CborError {
    CborError { offset: input.position(), problem: CborProblem::Invalid(why.into()) }
}

/// The position of a value.
#[derive(Clone, Copy)]
struct ValuePlace {
    depth: usize,
    bounds: Bounds,
    encoding: StringEncoding,
}

impl ValuePlace {
    fn below(self) -> ValuePlace {
        ValuePlace { depth: self.depth + 1, ..self }
    }

    fn with_encoding(self, encoding: StringEncoding) -> ValuePlace {
        ValuePlace { encoding, ..self.below() }
    }
}

fn value(input: &mut Decoder<'_>, place: ValuePlace) -> Read<Value> {
    if place.depth > place.bounds.depth {
        return Err(error(input, format!("exceeded max nested level {}", place.bounds.depth)));
    }
    match input.datatype().map_err(failed)? {
        Type::Null => input.null().map(|()| Value::Null).map_err(failed),
        Type::Bool => input.bool().map(Value::Bool).map_err(failed),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int => {
            let given = input.int().map_err(failed)?;
            let whole = i64::try_from(given).map(Value::Int);
            whole.map_err(|_| error(input, format!("cannot unmarshal {given} into Go value of type int64")))
        }
        Type::F16 => half(input),
        Type::F32 => input.f32().map_err(failed).and_then(|value| finite(input, value.into())),
        Type::F64 => input.f64().map_err(failed).and_then(|value| finite(input, value)),
        Type::Bytes | Type::BytesIndef => string(input, place.encoding).map(Value::String),
        Type::String | Type::StringIndef => text(input).map(Value::String),
        Type::Array | Type::ArrayIndef => array(input, place),
        Type::Map | Type::MapIndef => map(input, place),
        Type::Tag => tagged(input, place),
        other => Err(error(input, format!("{other} is not supported"))),
    }
}

fn half(input: &mut Decoder<'_>) -> Read<Value> {
    let at = input.position();
    let bits = input.input().get(at + 1..at + 3).and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes);
    input.set_position(at + 3);
    let bits = bits.ok_or_else(|| CborError { offset: input.position(), problem: CborProblem::UnexpectedEnd })?;
    finite(input, from_half(bits))
}

fn finite(input: &Decoder<'_>, value: f64) -> Read<Value> {
    match value.is_finite() {
        true => Ok(Value::Float(value)),
        false => Err(error(input, "floating-point NaN and infinity are not supported")),
    }
}

/// A byte string as text in `encoding`. Bytes that are not UTF-8 become U+FFFD, as Go's JSON encoder writes them.
fn string(input: &mut Decoder<'_>, encoding: StringEncoding) -> Read<Text> {
    let mut bytes = vec![];
    for part in input.bytes_iter().map_err(failed)? {
        bytes.extend_from_slice(part.map_err(failed)?);
    }
    Ok(match encoding {
        StringEncoding::Utf8 => String::from_utf8_lossy(&bytes).into(),
        StringEncoding::Base64Url => URL_SAFE_NO_PAD.encode(bytes).into(),
        StringEncoding::Base64 => STANDARD.encode(bytes).into(),
        StringEncoding::Base16 => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    })
}

fn text(input: &mut Decoder<'_>) -> Read<Text> {
    let mut text = String::new();
    for part in input.str_iter().map_err(failed)? {
        text.push_str(part.map_err(failed)?);
    }
    Ok(text.into())
}

/// Whether another item follows the `read` ones: fewer than `declared` were read, or, without a declared length, the
/// next code is not a break. A break is consumed. Fails if there are more than `max`.
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
        true => Err(error(input, format!("exceeded max number of {}", what.replace('#', &max.to_string())))),
        false => Ok(more),
    }
}

fn array(input: &mut Decoder<'_>, place: ValuePlace) -> Read<Value> {
    let declared = input.array().map_err(failed)?;
    let mut items = vec![];
    let max = place.bounds.length;
    while more(input, declared, items.len(), max, "elements # for CBOR array")? {
        items.push(value(input, place.below())?);
    }
    Ok(Value::Array(items))
}

fn map(input: &mut Decoder<'_>, place: ValuePlace) -> Read<Value> {
    let declared = input.map().map_err(failed)?;
    let mut fields = vec![];
    let max = place.bounds.length;
    while more(input, declared, fields.len(), max, "key-value pairs # for CBOR map")? {
        let name = match value(input, place.with_encoding(StringEncoding::Utf8))? {
            Value::String(name) => name,
            other => return Err(error(input, format!("cannot unmarshal {other} into Go value of type string"))),
        };
        fields.push((name, value(input, place.below())?));
    }
    let mut twice = None;
    let map = Map::from_entries(fields, |name| twice = Some(name.to_owned()));
    match twice {
        Some(name) => Err(error(input, format!("found duplicate map key {}", quote(&name)))),
        None => Ok(Value::Object(map)),
    }
}

fn tagged(input: &mut Decoder<'_>, place: ValuePlace) -> Read<Value> {
    match input.tag().map_err(failed)?.as_u64() {
        0 => match value(input, place.with_encoding(StringEncoding::Utf8))? {
            Value::String(text) if time::parse_rfc3339(&text).is_some() => Ok(Value::String(text)),
            other => Err(error(input, format!("cannot set {other} for time.Time"))),
        },
        1 => match value(input, place.with_encoding(StringEncoding::Utf8))? {
            Value::Int(seconds) => Ok(Value::from(time::rfc3339(seconds))),
            other => Err(error(input, format!("cannot set {other} for time.Time"))),
        },
        2 | 3 => Err(error(input, "big numbers are not supported")),
        number @ 21..=23 => {
            let encoding = match number {
                21 => StringEncoding::Base64Url,
                22 => StringEncoding::Base64,
                _ => StringEncoding::Base16,
            };
            value(input, place.with_encoding(encoding))
        }
        _ => value(input, place.below()),
    }
}
