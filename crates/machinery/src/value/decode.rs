//! JSON decoding with the number rules, the leniencies and the limits of kube-apiserver.
//!
//! Duplicate keys are allowed, and the last one wins; [`decode_strict`] reports them by path. Bytes that are not UTF-8
//! and lone surrogates become U+FFFD. [`DEPTH_MAX`] bounds the depth.

use super::error::{JsonError, JsonProblem, quote_byte};
use super::keys::{KeyOrder, Trace};
use super::scan::{below, equal, skip, unmarked};
use super::{Map, Text, Value};
pub use crate::limits::JSON_DEPTH_MAX as DEPTH_MAX;
use std::borrow::Cow;

/// A value, and the paths of keys that occur more than once in an object, such as `spec.list[0].a`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The value; of duplicate keys, the last one counts.
    pub value: Value,
    /// The paths of duplicate keys.
    pub duplicates: Vec<String>,
}

/// Decodes one JSON document.
pub fn decode(bytes: &[u8]) -> Result<Value, JsonError> {
    decode_strict(bytes).map(|decoded| decoded.value)
}

/// Decodes one JSON document and reports each duplicate key once. [`super::STRICT_ERRORS_MAX`] and
/// [`super::PATHS_BYTES_MAX`] bound how many are reported.
pub fn decode_strict(bytes: &[u8]) -> Result<Decoded, JsonError> {
    let mut decoder = Decoder::new(bytes);
    let value = decoder.document()?;
    let duplicates = if decoder.duplicated { trace(bytes, None).into_duplicates() } else { vec![] };
    Ok(Decoded { value, duplicates })
}

/// Decodes a document with all its fields in their order, duplicates included; null if it is not JSON. The maps violate
/// the invariant of [`Map`], and may only be iterated, not searched.
pub fn decode_every(bytes: &[u8]) -> Value {
    let mut decoder = Decoder { every: true, ..Decoder::new(bytes) };
    decoder.document().unwrap_or_default()
}

/// Decodes an object that this server has encoded. `fieldsV1` of its managedFields becomes [`Value::Encoded`].
pub fn decode_managed(bytes: &[u8]) -> Result<Value, JsonError> {
    Decoder { encoded: &FIELDS, ..Decoder::new(bytes) }.document()
}

/// The path to `fieldsV1`: the depth of each object on it, and the field that it goes on with.
const FIELDS: [(usize, &str); 3] = [(1, "metadata"), (2, "managedFields"), (4, "fieldsV1")];

/// The order of all keys of a document, up to the first syntax error.
pub fn key_order(bytes: &[u8]) -> KeyOrder {
    trace(bytes, Some(KeyOrder::default())).order.unwrap_or_default()
}

fn trace(bytes: &[u8], order: Option<KeyOrder>) -> Trace {
    let mut decoder = Decoder { trace: Some(Trace::new(order)), ..Decoder::new(bytes) };
    let _ = decoder.document();
    decoder.trace.unwrap_or_else(|| Trace::new(None))
}

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// Whether some object has a duplicate key.
    duplicated: bool,
    /// The first number that is too large for a float. It is reported if the document has no syntax error.
    overflow: Option<JsonError>,
    /// Records keys while the document is decoded.
    trace: Option<Trace>,
    /// Whether duplicate fields are kept, see [`decode_every`].
    every: bool,
    /// The rest of the path to values that stay encoded; empty if there are none below.
    encoded: &'static [(usize, &'static str)],
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes, at: 0, depth: 0, duplicated: false, overflow: None, trace: None, every: false, encoded: &[] }
    }

    fn document(&mut self) -> Result<Value, JsonError> {
        let value = self.value()?;
        self.space();
        match self.peek() {
            None => self.overflow.take().map_or(Ok(value), Err),
            Some(c) => {
                self.at += 1;
                Err(self.unexpected(c, "after top-level value"))
            }
        }
    }

    /// The error at the byte that was read last.
    fn unexpected(&self, byte: u8, context: impl Into<Cow<'static, str>>) -> JsonError {
        let context = context.into();
        JsonError { offset: self.at.saturating_sub(1), problem: JsonProblem::Unexpected { byte, context } }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Result<u8, JsonError> {
        let c = self.peek().ok_or(JsonError { offset: self.at, problem: JsonProblem::UnexpectedEnd })?;
        self.at += 1;
        Ok(c)
    }

    /// The next byte within a token; a space at the end of the input, as in Go's scanner.
    fn next_or_space(&mut self) -> u8 {
        let c = self.peek().unwrap_or(b' ');
        self.at += 1;
        c
    }

    fn value(&mut self) -> Result<Value, JsonError> {
        self.space();
        match self.next()? {
            b'{' => self.nested(Decoder::object, b'{'),
            b'[' => self.nested(Decoder::array, b'['),
            b'"' => Ok(Value::String(self.string()?)),
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Null),
            b'-' | b'0'..=b'9' => self.number(),
            c => Err(self.unexpected(c, "looking for beginning of value")),
        }
    }

    fn nested(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Result<Value, JsonError>,
        opening: u8,
    ) -> Result<Value, JsonError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.unexpected(opening, "exceeded max depth"));
        }
        let value = decode(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, JsonError> {
        let mut entries: Vec<(Text, Value)> = vec![];
        let mut seen = std::collections::HashSet::new();
        self.space();
        let mut c = self.next()?;
        while c != b'}' || !entries.is_empty() {
            if c != b'"' {
                return Err(self.unexpected(c, "looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.space();
            match self.next()? {
                b':' => {}
                c => return Err(self.unexpected(c, "after object key")),
            }
            if let Some(trace) = &mut self.trace {
                trace.enter_key(&key);
                if !seen.insert(key.clone()) {
                    trace.report_duplicate();
                }
            }
            let value = self.field(&key)?;
            if let Some(trace) = &mut self.trace {
                trace.leave();
            }
            entries.push((key, value));
            self.space();
            match self.next()? {
                b'}' => break,
                b',' => {}
                c => return Err(self.unexpected(c, "after object key:value pair")),
            }
            self.space();
            c = self.next()?;
        }
        if self.every {
            return Ok(Value::Object(Map::unsorted(entries)));
        }
        let duplicated = &mut self.duplicated;
        Ok(Value::Object(Map::from_entries(entries, |_| *duplicated = true)))
    }

    /// Decodes the value of the field `key`.
    fn field(&mut self, key: &str) -> Result<Value, JsonError> {
        let before = self.encoded;
        let Some(rest) = before.split_first().and_then(|(next, rest)| (*next == (self.depth, key)).then_some(rest))
        else {
            return self.value();
        };
        self.encoded = rest;
        let value = if rest.is_empty() { self.encoded() } else { self.value() };
        self.encoded = before;
        value
    }

    /// Passes over an object.
    fn encoded(&mut self) -> Result<Value, JsonError> {
        let end = if self.peek() == Some(b'{') { skip(self.bytes, self.at) } else { None };
        match end.and_then(|end| std::str::from_utf8(&self.bytes[self.at..end]).ok()) {
            Some(text) => {
                self.at += text.len();
                Ok(Value::Encoded(text.into()))
            }
            None => self.value(),
        }
    }

    fn array(&mut self) -> Result<Value, JsonError> {
        let mut items = vec![];
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            if let Some(trace) = &mut self.trace {
                trace.enter_item(items.len());
            }
            items.push(self.value()?);
            if let Some(trace) = &mut self.trace {
                trace.leave();
            }
            self.space();
            match self.next()? {
                b']' => return Ok(Value::Array(items)),
                b',' => {}
                c => return Err(self.unexpected(c, "after array element")),
            }
        }
    }

    fn literal(&mut self, literal: &'static str, value: Value) -> Result<Value, JsonError> {
        for expected in literal.bytes().skip(1) {
            let c = self.next_or_space();
            if c != expected {
                let context = format!("in literal {literal} (expecting {})", quote_byte(expected));
                return Err(self.unexpected(c, context));
            }
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at - 1;
        let mut c = self.bytes[start];
        if c == b'-' {
            c = self.next_or_space();
            if !c.is_ascii_digit() {
                return Err(self.unexpected(c, "in numeric literal"));
            }
        }
        if c != b'0' {
            self.digits();
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            integer = false;
            self.first_digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            integer = false;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.first_digit("in exponent of numeric literal")?;
            self.digits();
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        if integer && let Ok(i) = text.parse::<i64>() {
            return Ok(Value::Int(i));
        }
        match text.parse::<f64>() {
            Ok(f) if f.is_finite() => Ok(Value::Float(f)),
            _ => {
                let problem = JsonProblem::NumberOutOfRange { literal: text.into() };
                self.overflow.get_or_insert(JsonError { offset: start, problem });
                Ok(Value::Null)
            }
        }
    }

    fn first_digit(&mut self, context: &'static str) -> Result<(), JsonError> {
        let c = self.next_or_space();
        if c.is_ascii_digit() { Ok(()) } else { Err(self.unexpected(c, context)) }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// Decodes a string after its opening quote.
    fn string(&mut self) -> Result<Text, JsonError> {
        let start = self.at;
        self.at += unmarked(&self.bytes[start..], |word| equal(word, b'"') | equal(word, b'\\') | below(word, 0x20));
        match self.next()? {
            b'"' => {
                let raw = &self.bytes[start..self.at - 1];
                Ok(match std::str::from_utf8(raw) {
                    Ok(text) => Text::new(text),
                    Err(_) => Text::from(lossy(raw)),
                })
            }
            b'\\' => self.escaped(start),
            c => Err(self.unexpected(c, "in string literal")),
        }
    }

    /// Decodes a string that starts at `start` and whose first backslash has just been read.
    fn escaped(&mut self, start: usize) -> Result<Text, JsonError> {
        let mut out = self.bytes[start..self.at - 1].to_vec();
        self.at -= 1;
        loop {
            match self.next()? {
                b'"' => {
                    return Ok(match String::from_utf8(out) {
                        Ok(text) => Text::from(text),
                        Err(e) => Text::from(lossy(e.as_bytes())),
                    });
                }
                b'\\' => self.escape(&mut out)?,
                c if c < 0x20 => return Err(self.unexpected(c, "in string literal")),
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        match self.next_or_space() {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            c @ (b'"' | b'\\' | b'/') => out.push(c),
            b'u' => {
                let mut unit = self.hex4()?;
                if (0xd800..0xdc00).contains(&unit) && self.bytes[self.at..].starts_with(b"\\u") {
                    let back = self.at;
                    self.at += 2;
                    let low = self.hex4()?;
                    if (0xdc00..0xe000).contains(&low) {
                        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    } else {
                        self.at = back;
                    }
                }
                let c = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            c => return Err(self.unexpected(c, "in string escape code")),
        }
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let c = self.next_or_space();
            let digit =
                char::from(c).to_digit(16).ok_or_else(|| self.unexpected(c, "in \\u hexadecimal character escape"))?;
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }
}

/// Bytes as text. Each invalid byte becomes one U+FFFD, as in Go.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn documents_round_trip() {
        for text in ["null", "[]", "{}", r#"{"a":[1,-2,1.5,"x",true,null,{"b":{}}]}"#, "\"\\u0001é😀\""] {
            assert_eq!(decode(text.as_bytes()).unwrap().to_json(), text);
        }
        let cases: [(&[u8], &str); 7] = [
            (b"1.0", "1"),
            (b"1e3", "1000"),
            (b"-0", "0"),
            (b"9223372036854775808", "9223372036854776000"),
            (br#""\ud83d\ude00\ud83dx""#, "\"😀\u{fffd}x\""),
            (b"\"a\xff\xfeb\"", "\"a\u{fffd}\u{fffd}b\""),
            (br#" {"b":1,"a":2} "#, r#"{"a":2,"b":1}"#),
        ];
        for (text, want) in cases {
            assert_eq!(decode(text).unwrap().to_json(), want);
        }
    }

    #[test]
    fn only_fields_of_managers_stay_encoded() {
        let entry = r#"{"fieldsV1":{"f:a\"}":{}},"manager":"m","other":{"fieldsV1":{}}}"#;
        let text = format!(
            r#"{{"metadata":{{"managedFields":[{entry}],"x":[{entry}]}},"spec":{{"managedFields":[{entry}]}}}}"#
        );
        let value = decode_managed(text.as_bytes()).unwrap();
        assert_eq!(value.to_json(), text);
        assert_eq!(format!("{value:?}").matches("Encoded").count(), 1);
        let mut whole = decode(text.as_bytes()).unwrap();
        assert_eq!([&value, &whole], [&whole, &value]);
        whole.set_at(&["metadata", "managedFields"], json!([{"fieldsV1": {"f:b": {}}}]));
        assert_ne!(value, whole);
        assert_ne!(whole, value);
        let mut decoded = value.clone();
        decoded.decode_parts();
        assert_eq!(decoded, value);
        assert!(!format!("{decoded:?}").contains("Encoded"));
        for other in [r#"{"metadata":{"managedFields":[{"fieldsV1":null}]}}"#, r#"{"metadata":{"managedFields":{}}}"#] {
            assert_eq!(format!("{:?}", decode_managed(other.as_bytes())), format!("{:?}", decode(other.as_bytes())));
        }
    }

    #[test]
    fn errors_have_positions() {
        let cases: [(&str, usize, Option<&str>); 23] = [
            ("", 0, None),
            ("{", 1, None),
            ("x", 0, Some("looking for beginning of value")),
            ("{a}", 1, Some("looking for beginning of object key string")),
            ("{\"a\":1,}", 7, Some("looking for beginning of object key string")),
            ("{\"a\" 1}", 5, Some("after object key")),
            ("{\"a\":1 2", 7, Some("after object key:value pair")),
            ("[1 2]", 3, Some("after array element")),
            ("[1,]", 3, Some("looking for beginning of value")),
            ("1 2", 2, Some("after top-level value")),
            ("tru3", 3, Some("in literal true (expecting 'e')")),
            ("-x", 1, Some("in numeric literal")),
            ("1.x", 2, Some("after decimal point in numeric literal")),
            ("1e+x", 3, Some("in exponent of numeric literal")),
            ("\"\\q\"", 2, Some("in string escape code")),
            ("\"\\u12x4\"", 5, Some("in \\u hexadecimal character escape")),
            ("\"a\nb\"", 2, Some("in string literal")),
            ("tru", 3, Some("in literal true (expecting 'e')")),
            ("-", 1, Some("in numeric literal")),
            ("[6E", 3, Some("in exponent of numeric literal")),
            ("\"a\\", 3, Some("in string escape code")),
            ("\"a", 2, None),
            ("[1e309x]", 6, Some("after array element")),
        ];
        for (text, offset, context) in cases {
            let error = decode(text.as_bytes()).unwrap_err();
            let found = match error.problem {
                JsonProblem::Unexpected { context, .. } => Some(context),
                _ => None,
            };
            assert_eq!((error.offset, found), (offset, context.map(Into::into)), "{text}");
        }
        let error = decode(b"[1e309]").unwrap_err();
        let problem = JsonProblem::NumberOutOfRange { literal: "1e309".into() };
        assert_eq!(error, JsonError { offset: 1, problem });
    }

    #[test]
    fn depth_is_bounded() {
        let deep = || {
            let open = "[".repeat(DEPTH_MAX + 1);
            let problem = JsonProblem::Unexpected { byte: b'[', context: "exceeded max depth".into() };
            assert_eq!(decode(open.as_bytes()).unwrap_err().problem, problem);
            let most = format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
            assert_eq!(decode(most.as_bytes()).unwrap().to_json(), most);
        };
        std::thread::Builder::new().stack_size(64 << 20).spawn(deep).unwrap().join().unwrap();
    }

    #[test]
    fn duplicates_are_reported_by_path() {
        let decoded = decode_strict(br#"{"spec":{"l":[{"a":1,"a":2}],"b":1,"b":2,"b":3}}"#).unwrap();
        assert_eq!(decoded.duplicates, ["spec.l[0].a", "spec.b"]);
        let every = decode_every(br#"{"b":{"x":1,"x":2},"a":null,"b":3}"#);
        assert_eq!(every.to_json(), r#"{"b":{"x":1,"x":2},"a":null,"b":3}"#);
        assert_eq!(decoded.value.to_json(), r#"{"spec":{"b":3,"l":[{"a":2}]}}"#);
    }
}
