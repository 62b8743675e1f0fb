//! Scalars: texts, numbers, bytes, times and quantities.

use super::Reader;
use crate::shape::error::{Conversion, TypeProblem};
use crate::shape::{Shape, normal_micro_time, normal_time};
use base64::Engine as _;
use machinery::quantity::Quantity;
use machinery::{Text, Value};

impl Reader {
    pub(super) fn scalar(&mut self, value: &Value, shape: &Shape) -> Option<Value> {
        match (shape, value) {
            (Shape::Text(_), Value::String(_)) | (Shape::Bool, Value::Bool(_)) | (Shape::Int64, Value::Int(_)) => {
                Some(value.clone())
            }
            (Shape::Int32, Value::Int(i)) if i32::try_from(*i).is_ok() => Some(value.clone()),
            (Shape::Float, Value::Int(i)) => Some(float(*i as f64)),
            (Shape::Float, Value::Float(f)) => Some(float(*f)),
            (Shape::Bytes, Value::String(text)) => self.bytes(text),
            (Shape::Bytes, Value::Array(items)) => self.byte_list(items),
            (Shape::Time, Value::String(text)) => self.result(normal_time(text)),
            (Shape::MicroTime, Value::String(text)) => self.result(normal_micro_time(text)),
            (Shape::Quantity, value) => {
                self.result(Quantity::of(value).map(|q| Some(q.to_string())).map_err(str::to_owned))
            }
            (Shape::Time | Shape::MicroTime, other) => {
                self.own_mismatch(other, "string");
                None
            }
            (shape, other) => {
                let (go, kind) = go_type(shape);
                self.mismatch(other, go, kind);
                None
            }
        }
    }

    fn result(&mut self, read: Result<Option<String>, String>) -> Option<Value> {
        match read {
            Ok(text) => text.map(Value::from),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// An item of a list of texts inside of something that decodes itself.
    pub(super) fn text(&mut self, item: &Value) -> Value {
        match item {
            Value::String(_) => item.clone(),
            Value::Null => Value::from(""),
            other => {
                self.own_mismatch(other, "string");
                Value::Null
            }
        }
    }

    /// Bytes may be given as a list of numbers too.
    fn byte_list(&mut self, items: &[Value]) -> Option<Value> {
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::Null => bytes.push(0),
                Value::Int(i) if u8::try_from(*i).is_ok() => bytes.push(*i as u8),
                other => self.mismatch(other, "uint8", "uint8"),
            }
        }
        Some(Value::from(base64::engine::general_purpose::STANDARD.encode(bytes)))
    }

    fn bytes(&mut self, text: &Text) -> Option<Value> {
        let clean: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
        match base64_error(&clean) {
            None => Some(Value::from(canonical(clean))),
            Some(at) => {
                let at = in_original(text, &clean, at);
                self.add_error(TypeProblem::InvalidBase64 { at }, Conversion::Decoding, false);
                None
            }
        }
    }
}

/// Base64 whose last characters have no bits beyond its bytes.
fn canonical(mut text: String) -> String {
    use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    if text.ends_with('=') {
        let last = text.split_off(text.len().saturating_sub(4));
        text.push_str(&LENIENT.decode(&last).map_or(last, |bytes| STANDARD.encode(bytes)));
    }
    text
}

/// The position in a text with line ends of an error in the same text without them. An end that comes too early is behind all of
/// them.
fn in_original(text: &str, clean: &str, at: usize) -> usize {
    let is_end = |byte: u8| matches!(byte, b'\n' | b'\r');
    let is_early = clean.as_bytes().get(at).is_none_or(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte));
    if is_early {
        return at + text.bytes().filter(|byte| is_end(*byte)).count();
    }
    let mut kept = text.bytes().enumerate().filter(|(_, byte)| !is_end(*byte));
    kept.nth(at).map_or(at, |(position, _)| position)
}

/// The Go type of a scalar, and of which kind that is.
fn go_type(shape: &Shape) -> (&'static str, &'static str) {
    match shape {
        Shape::Text(go) => (go, "string"),
        Shape::Bool => ("bool", "bool"),
        Shape::Int32 => ("int32", "int32"),
        Shape::Int64 => ("int64", "int64"),
        Shape::Float => ("float64", "float64"),
        Shape::Bytes => ("[]uint8", "slice"),
        _ => ("string", "string"),
    }
}

/// A float as it is after a round trip through JSON.
fn float(f: f64) -> Value {
    if f.fract() == 0.0 && f.abs() < 9e15 && !(f == 0.0 && f.is_sign_negative()) {
        return Value::Int(f as i64);
    }
    Value::Float(f)
}

/// Where standard base64 with padding breaks, as Go's decoder counts.
fn base64_error(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    let data = bytes.iter().take_while(|b| valid(**b)).count();
    let padding = &bytes[data..];
    let want: &[u8] = match data % 4 {
        0 => b"",
        2 => b"==",
        3 => b"=",
        _ => return Some(if padding.is_empty() { data - data % 4 } else { data }),
    };
    if padding == want {
        return None;
    }
    if padding.is_empty() {
        return Some(data - data % 4);
    }
    let same = padding.iter().zip(want).take_while(|(a, b)| a == b).count();
    Some(data + same)
}
