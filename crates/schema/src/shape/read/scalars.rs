//! Scalars: texts, numbers, bytes, times and quantities.

use super::Reader;
use crate::shape::error::{Conversion, Decoding, TypeProblem};
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
            (Shape::Amount, value) => {
                let rounded = Quantity::of(value).map(Quantity::rounded_to_thousandths);
                self.result(rounded.map(|q| Some(q.to_string())).map_err(str::to_owned))
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

    /// Reads an item of a list of texts inside a type that decodes itself.
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

    /// Reads bytes that are given as a list of numbers, which Go accepts, too.
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
        if let Some(at) = base64_error(text) {
            self.add_error(TypeProblem::InvalidBase64 { at }, Conversion::Decoding, Decoding::Continues);
            return None;
        }
        Some(Value::from(canonical(text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect())))
    }
}

/// Clears the bits that the last base64 characters have beyond the bytes.
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

/// The Go type of a scalar, and its `reflect.Kind`.
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

/// A float after a round trip through JSON.
fn float(f: f64) -> Value {
    if f.fract() == 0.0 && f.abs() < 9e15 && !(f == 0.0 && f.is_sign_negative()) {
        return Value::Int(f as i64);
    }
    Value::Float(f)
}

/// The position at which Go's decoder of padded standard base64 fails. It skips line ends.
fn base64_error(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        for digit in 0..4 {
            at = behind_line_ends(bytes, at);
            match bytes.get(at) {
                // this is the start of the last four digits if there are no line ends
                None => return (digit > 0).then(|| bytes.len() - digit),
                Some(b'=') => return padding_error(bytes, at, digit),
                Some(byte) if byte.is_ascii_alphanumeric() || b"+/".contains(byte) => at += 1,
                Some(_) => return Some(at),
            }
        }
    }
}

/// The same for padding that begins at position `at`, after `digits` of four digits.
fn padding_error(bytes: &[u8], mut at: usize, digits: usize) -> Option<usize> {
    if digits < 2 {
        return Some(at);
    }
    if digits == 2 {
        at = behind_line_ends(bytes, at + 1);
        match bytes.get(at) {
            None => return Some(bytes.len()),
            Some(b'=') => {}
            Some(_) => return Some(at - 1),
        }
    }
    let end = behind_line_ends(bytes, at + 1);
    (end < bytes.len()).then_some(end)
}

fn behind_line_ends(bytes: &[u8], at: usize) -> usize {
    at + bytes.iter().skip(at).take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions are those that kube-apiserver has reported.
    #[test]
    fn base64_fails_where_go_fails() {
        let cases = [
            ("", None),
            ("YQ==", None),
            ("Y\nQ=\n=\r\n", None),
            ("YWI=", None),
            ("YQ", Some(0)),
            ("YWJjYQ", Some(4)),
            ("Y\nQ", Some(1)),
            ("Y===", Some(1)),
            ("=", Some(0)),
            ("_-==", Some(0)),
            ("YQ=", Some(3)),
            ("YQ=\n", Some(4)),
            ("YQ= =", Some(2)),
            ("YQ==x", Some(4)),
            ("YWI=\nx", Some(5)),
        ];
        for (text, want) in cases {
            assert_eq!(base64_error(text), want, "{text:?}");
        }
    }
}
