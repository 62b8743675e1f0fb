//! JSON decoding with the number rules, the leniencies, the limits and the error texts of the reference server.
//!
//! Duplicate keys are legal, the last one wins; [`decode_strict`] reports them by path. Bytes that are not UTF-8 and
//! lone surrogates become U+FFFD (corrections, schema 21). Depth is bounded by [`DEPTH_MAX`].

use super::keys::{KeyOrder, Trace};
use super::{Map, Text, Value};

/// Containers may nest this deep; the limit of Go's decoder.
pub const DEPTH_MAX: usize = 10_000;

/// Why text is not JSON, in the words of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    pub message: String,
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JsonError {}

/// A value and the paths of the keys that came more than once, such as `spec.list[0].a`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    pub value: Value,
    pub duplicates: Vec<String>,
}

/// Decodes one JSON document.
pub fn decode(bytes: &[u8]) -> Result<Value, JsonError> {
    decode_strict(bytes).map(|decoded| decoded.value)
}

/// Decodes one JSON document and reports duplicate keys: each once, and at most as many as
/// [`super::STRICT_ERRORS_MAX`] and [`super::PATHS_BYTES_MAX`] allow.
pub fn decode_strict(bytes: &[u8]) -> Result<Decoded, JsonError> {
    let mut decoder = Decoder::new(bytes);
    let value = decoder.document()?;
    let duplicates = if decoder.duplicated { trace(bytes, false).into_duplicates() } else { vec![] };
    Ok(Decoded { value, duplicates })
}

/// The document with its members as they stand, those that come again as well: to be gone through, not to be looked up in.
/// Null if it is no JSON.
pub fn decode_every(bytes: &[u8]) -> Value {
    let mut decoder = Decoder { every: true, ..Decoder::new(bytes) };
    decoder.document().unwrap_or_default()
}

/// The order of all keys of a document, as far as it is JSON.
pub fn key_order(bytes: &[u8]) -> KeyOrder {
    trace(bytes, true).order.unwrap_or_default()
}

fn trace(bytes: &[u8], is_ordered: bool) -> Trace {
    let mut decoder = Decoder { trace: Some(Trace::new(is_ordered)), ..Decoder::new(bytes) };
    let _ = decoder.document();
    decoder.trace.unwrap_or_else(|| Trace::new(is_ordered))
}

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// Some object has a key twice.
    duplicated: bool,
    /// The first number that no float can hold: told when the syntax is right.
    overflow: Option<JsonError>,
    /// What is asked for beside the value.
    trace: Option<Trace>,
    /// Members that come again are kept beside those that they replace.
    every: bool,
}

fn error(message: impl Into<String>) -> JsonError {
    JsonError { message: message.into() }
}

fn unexpected(c: u8, context: &str) -> JsonError {
    error(format!("invalid character {} {context}", quote_char(c)))
}

/// One byte as Go's decoder quotes it.
fn quote_char(c: u8) -> String {
    match c {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = super::quote(&char::from(c).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes, at: 0, depth: 0, duplicated: false, overflow: None, trace: None, every: false }
    }

    fn document(&mut self) -> Result<Value, JsonError> {
        let value = self.value()?;
        self.space();
        match self.peek() {
            None => self.overflow.take().map_or(Ok(value), Err),
            Some(c) => Err(unexpected(c, "after top-level value")),
        }
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
        let c = self.peek().ok_or_else(|| error("unexpected end of JSON input"))?;
        self.at += 1;
        Ok(c)
    }

    /// The next byte of what can't end here: at the end Go's scanner sees a space.
    fn next_or_space(&mut self) -> u8 {
        self.next().unwrap_or(b' ')
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
            c => Err(unexpected(c, "looking for beginning of value")),
        }
    }

    fn nested(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Result<Value, JsonError>,
        opening: u8,
    ) -> Result<Value, JsonError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(unexpected(opening, "exceeded max depth"));
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
                return Err(unexpected(c, "looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.space();
            match self.next()? {
                b':' => {}
                c => return Err(unexpected(c, "after object key")),
            }
            if let Some(trace) = &mut self.trace {
                trace.enter_key(&key, !seen.insert(key.clone()));
            }
            let value = self.value()?;
            if let Some(trace) = &mut self.trace {
                trace.leave();
            }
            entries.push((key, value));
            self.space();
            match self.next()? {
                b'}' => break,
                b',' => {}
                c => return Err(unexpected(c, "after object key:value pair")),
            }
            self.space();
            c = self.next()?;
        }
        if self.every {
            return Ok(Value::Object(Map::as_they_stand(entries)));
        }
        let duplicated = &mut self.duplicated;
        Ok(Value::Object(Map::from_entries(entries, |_| *duplicated = true)))
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
                c => return Err(unexpected(c, "after array element")),
            }
        }
    }

    fn literal(&mut self, text: &str, value: Value) -> Result<Value, JsonError> {
        for want in text.bytes().skip(1) {
            let c = self.next_or_space();
            if c != want {
                return Err(unexpected(c, &format!("in literal {text} (expecting {})", quote_char(want))));
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
                return Err(unexpected(c, "in numeric literal"));
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
                let why = format!("json: cannot unmarshal number {text} into Go value of type float64");
                self.overflow.get_or_insert(error(why));
                Ok(Value::Null)
            }
        }
    }

    fn first_digit(&mut self, context: &str) -> Result<(), JsonError> {
        let c = self.next_or_space();
        if c.is_ascii_digit() { Ok(()) } else { Err(unexpected(c, context)) }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// The rest of a string whose opening quote has been read.
    fn string(&mut self) -> Result<Text, JsonError> {
        let start = self.at;
        loop {
            match self.next()? {
                b'"' => {
                    let raw = &self.bytes[start..self.at - 1];
                    return Ok(match std::str::from_utf8(raw) {
                        Ok(text) => Text::new(text),
                        Err(_) => Text::from(lossy(raw)),
                    });
                }
                b'\\' => return self.escaped(start),
                c if c < 0x20 => return Err(unexpected(c, "in string literal")),
                _ => {}
            }
        }
    }

    /// A string with escapes; the decoder stands behind the first backslash.
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
                c if c < 0x20 => return Err(unexpected(c, "in string literal")),
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
            c => return Err(unexpected(c, "in string escape code")),
        }
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let c = self.next_or_space();
            let digit =
                char::from(c).to_digit(16).ok_or_else(|| unexpected(c, "in \\u hexadecimal character escape"))?;
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }
}

/// UTF-8 with every byte that does not belong replaced by U+FFFD, one for each byte as in Go.
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
    fn errors_are_told_in_gos_words() {
        let cases = [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{a}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("1 2", "invalid character '2' after top-level value"),
            ("tru3", "invalid character '3' in literal true (expecting 'e')"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e+x", "invalid character 'x' in exponent of numeric literal"),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            ("\"\\u12x4\"", "invalid character 'x' in \\u hexadecimal character escape"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("-", "invalid character ' ' in numeric literal"),
            ("[6E", "invalid character ' ' in exponent of numeric literal"),
            ("\"a\\", "invalid character ' ' in string escape code"),
            ("\"a", "unexpected end of JSON input"),
            ("[1e309x]", "invalid character 'x' after array element"),
            ("1e309", "json: cannot unmarshal number 1e309 into Go value of type float64"),
        ];
        for (text, want) in cases {
            assert_eq!(decode(text.as_bytes()).unwrap_err().message, want, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = || {
            let open = "[".repeat(DEPTH_MAX + 1);
            assert_eq!(decode(open.as_bytes()).unwrap_err().message, "invalid character '[' exceeded max depth");
            let most = format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
            assert_eq!(decode(most.as_bytes()).unwrap().to_json(), most);
        };
        std::thread::Builder::new().stack_size(64 << 20).spawn(deep).unwrap().join().unwrap();
    }

    #[test]
    fn duplicates_are_told_by_path() {
        let decoded = decode_strict(br#"{"spec":{"l":[{"a":1,"a":2}],"b":1,"b":2,"b":3}}"#).unwrap();
        assert_eq!(decoded.duplicates, ["spec.l[0].a", "spec.b"]);
        let every = decode_every(br#"{"b":{"x":1,"x":2},"a":null,"b":3}"#);
        assert_eq!(every.to_json(), r#"{"b":{"x":1,"x":2},"a":null,"b":3}"#);
        assert_eq!(decoded.value.to_json(), r#"{"spec":{"b":3,"l":[{"a":2}]}}"#);
    }
}
