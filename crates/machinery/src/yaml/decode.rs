//! Decoding: the first document, with the scalar rules of YAML 1.1 as Go's yaml.v2 has
//! them (`yes`, `on`, `0b11`, `1_000`, `<<`), turned into the JSON value it stands for (corrections, schema 29).
//!
//! Bounds: nesting [`DEPTH_MAX`], and [`NODES_MAX`] nodes after aliases are expanded.

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::words::{self, fail};
use crate::value::{Decoded, JsonError, Map, Text, Value, quote};

/// Collections may nest this deep.
pub const DEPTH_MAX: usize = 10_000;
/// Nodes that one document may grow to when its aliases are expanded.
pub const NODES_MAX: usize = 4_000_000;

/// Decodes the first document of `text`. Duplicate keys are told as `line 5: key "a" already set in map`.
pub fn decode(text: &[u8]) -> Result<Decoded, JsonError> {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(_) => return Err(fail("yaml: invalid leading UTF-8 octet")),
    };
    words::check(text)?;
    first_document(text, true)
}

/// The first document of a text; what follows its end may be `cut` off, once, if the parser can't go past it.
fn first_document(text: &str, cut: bool) -> Result<Decoded, JsonError> {
    let mut builder = Builder { text, ..Builder::default() };
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(found) => found,
            // only the first document is read
            Err(error) if cut && error.info().contains("document end marker") => {
                return first_document(words::lines_before(text, error.marker().line()), false);
            }
            Err(error) => return Err(words::of_scanner(text, &error)),
        };
        if let Event::Scalar(scalar, ScalarStyle::Plain, ..) = &event
            && !scalar.is_empty()
            && !builder.frames.is_empty()
        {
            words::check_tabs_after(text, &span.end)?;
        }
        if builder.event(event, span.start.line())? {
            break;
        }
    }
    Ok(Decoded { value: builder.root.unwrap_or_default(), duplicates: builder.duplicates })
}

/// A collection that is still open.
enum Frame {
    Sequence {
        anchor: usize,
        items: Vec<Value>,
    },
    Mapping {
        anchor: usize,
        entries: Vec<Entry>,
        key: Option<Key>,
        /// The value under a null key, which JSON cannot have.
        null: Option<String>,
    },
}

/// A member of a mapping.
struct Entry {
    name: Text,
    /// The key as it is told: keys of different types are different, also where JSON has one name for them.
    shown: String,
    value: Value,
}

/// A key read, whose value comes next.
enum Key {
    Plain {
        name: Text,
        shown: String,
    },
    Merge,
    /// Only told when its value is known.
    Null,
}

#[derive(Default)]
struct Builder<'a> {
    text: &'a str,
    frames: Vec<Frame>,
    anchors: std::collections::HashMap<usize, (Value, usize)>,
    duplicates: Vec<String>,
    root: Option<Value>,
    nodes: usize,
}

impl Builder<'_> {
    /// Takes one event; true when the first document is complete.
    fn event(&mut self, event: Event<'_>, line: usize) -> Result<bool, JsonError> {
        match event {
            Event::DocumentEnd => return Ok(true),
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = scalar(&text, style, tag.as_deref())?;
                let plain = style == ScalarStyle::Plain;
                self.node(scalar, anchor, line, plain && text == "<<")?;
            }
            Event::Alias(anchor) => {
                let (value, size) = self.anchors.get(&anchor).cloned().ok_or_else(|| {
                    fail(format!("yaml: anchor '{}' value contains itself", words::alias(self.text, line)))
                })?;
                self.nodes += size;
                self.node(value, 0, line, false)?;
            }
            Event::SequenceStart(anchor, _) => self.open(Frame::Sequence { anchor, items: vec![] })?,
            Event::MappingStart(anchor, _) => {
                self.open(Frame::Mapping { anchor, entries: vec![], key: None, null: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(line)?,
            _ => {}
        }
        Ok(false)
    }

    fn open(&mut self, frame: Frame) -> Result<(), JsonError> {
        if self.frames.len() >= DEPTH_MAX {
            return Err(fail(format!("yaml: exceeded max depth of {DEPTH_MAX}")));
        }
        self.frames.push(frame);
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), JsonError> {
        match self.frames.pop() {
            Some(Frame::Sequence { anchor, items }) => self.node(Value::Array(items), anchor, line, false),
            Some(Frame::Mapping { null: Some(shown), .. }) => {
                Err(fail(format!("unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}")))
            }
            Some(Frame::Mapping { anchor, entries, .. }) => {
                let map: Map = entries.into_iter().map(|entry| (entry.name, entry.value)).collect();
                self.node(Value::Object(map), anchor, line, false)
            }
            None => Ok(()),
        }
    }

    /// Puts a finished node where it belongs.
    fn node(&mut self, value: Value, anchor: usize, line: usize, merge: bool) -> Result<(), JsonError> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(fail("yaml: document contains excessive aliasing"));
        }
        if anchor > 0 {
            let size = count(&value);
            self.anchors.insert(anchor, (value.clone(), size));
        }
        match self.frames.last_mut() {
            None => self.root = Some(value),
            Some(Frame::Sequence { items, .. }) => items.push(value),
            Some(Frame::Mapping { entries, key, null, .. }) => match key.take() {
                None if merge => *key = Some(Key::Merge),
                None if value.is_null() => *key = Some(Key::Null),
                None => {
                    let shown = go_syntax(&value);
                    *key = Some(Key::Plain { name: key_text(value)?, shown });
                }
                Some(Key::Null) => *null = Some(go_syntax(&value)),
                Some(Key::Merge) => {
                    let mut merged = vec![];
                    merge_into(&mut merged, value)?;
                    for (name, value) in merged {
                        let shown = quote(&name);
                        put(entries, Entry { name, shown, value }, line, &mut self.duplicates);
                    }
                }
                Some(Key::Plain { name, shown }) => {
                    put(entries, Entry { name, shown, value }, line, &mut self.duplicates);
                }
            },
        }
        Ok(())
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Adds a member; a later one takes the place of an earlier one, and both are told.
fn put(entries: &mut Vec<Entry>, entry: Entry, line: usize, duplicates: &mut Vec<String>) {
    if entries.iter().any(|known| known.shown == entry.shown) {
        duplicates.push(format!("line {line}: key {} already set in map", entry.shown));
    }
    entries.push(entry);
}

fn merge_into(merged: &mut Vec<(Text, Value)>, value: Value) -> Result<(), JsonError> {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if !merged.iter().any(|(k, _)| *k == key) {
                    merged.push((key, value));
                }
            }
            Ok(())
        }
        Value::Array(items) => items.into_iter().try_for_each(|item| merge_into(merged, item)),
        _ => Err(fail("yaml: map merge requires map or sequence of maps as the value")),
    }
}

/// A key as JSON has it; only scalars can be keys.
fn key_text(value: Value) -> Result<Text, JsonError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(b) => Ok(if b { "true".into() } else { "false".into() }),
        Value::Int(i) => Ok(Text::from(i.to_string())),
        Value::Float(f) => Ok(Text::from(crate::value::float_text(f))),
        Value::Null => Ok("null".into()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            Err(fail(format!("yaml: invalid map key: []interface {{}}{{{}}}", items.join(", "))))
        }
        Value::Object(map) => {
            let items: Vec<String> = map.iter().map(|(k, v)| format!("{}:{}", quote(k), go_syntax(v))).collect();
            Err(fail(format!("yaml: invalid map key: map[interface {{}}]interface {{}}{{{}}}", items.join(", "))))
        }
    }
}

fn go_syntax(value: &Value) -> String {
    match value {
        Value::String(s) => quote(s),
        other => other.to_json(),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, JsonError> {
    let core = tag.filter(|t| t.is_yaml_core_schema()).map(|t| t.suffix.as_str());
    match core {
        Some("str") => Ok(text.into()),
        Some("binary") => {
            use base64::Engine as _;
            let bytes = base64::engine::general_purpose::STANDARD.decode(text.replace(['\n', ' '], ""));
            let bytes = bytes.map_err(|_| fail("yaml: !!binary value contains invalid base64 data"))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned().into())
        }
        Some(tag @ ("null" | "float" | "int" | "bool")) => tagged(text, tag),
        Some(_) => resolve(text),
        None if style == ScalarStyle::Plain && tag.is_none() => resolve(text),
        None => Ok(text.into()),
    }
}

/// A scalar that is to be of a type.
fn tagged(text: &str, tag: &str) -> Result<Value, JsonError> {
    let value = resolve(text)?;
    let found = match &value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        _ => "str",
    };
    match (found, tag) {
        ("int" | "float", "float") => Ok(value.as_float().map_or(value, by_way_of_json)),
        (found, tag) if found == tag => Ok(value),
        _ => Err(fail(format!("yaml: cannot decode !!{found} `{text}` as a !!{tag}"))),
    }
}

/// What an unquoted scalar stands for.
pub(super) fn resolve(text: &str) -> Result<Value, JsonError> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => return Ok(true.into()),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => return Ok(false.into()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Err(fail("json: unsupported value: +Inf")),
        "-.inf" | "-.Inf" | "-.INF" => return Err(fail("json: unsupported value: -Inf")),
        ".nan" | ".NaN" | ".NAN" => return Err(fail("json: unsupported value: NaN")),
        _ => {}
    }
    let first = text.as_bytes().first().copied().unwrap_or_default();
    if first.is_ascii_digit() || b"+-.".contains(&first) {
        Ok(number(text).unwrap_or_else(|| text.into()))
    } else {
        Ok(text.into())
    }
}

fn number(text: &str) -> Option<Value> {
    let plain = text.replace('_', "");
    if let Some(value) = integer(&plain) {
        return Some(value);
    }
    let body = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let (mantissa, exponent) = body.split_once(['e', 'E']).unwrap_or((body, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let dots = mantissa.bytes().filter(|b| *b == b'.').count();
    let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let shaped = digits > 0
        && dots <= 1
        && digits + dots == mantissa.len()
        && !exponent_digits.is_empty()
        && exponent_digits.bytes().all(|b| b.is_ascii_digit());
    if !shaped {
        return None;
    }
    plain.parse::<f64>().ok().filter(|f| f.is_finite()).map(by_way_of_json)
}

/// YAML goes by way of JSON, where Go writes a float without a fraction as an integer: `1.0` becomes 1.
fn by_way_of_json(f: f64) -> Value {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f);
    if fits && f.fract() == 0.0 { Value::Int(f as i64) } else { Value::Float(f) }
}

/// Turns the floats of a value that was read from JSON into what they are when it is read as YAML.
pub fn reread(value: &mut Value) {
    match value {
        Value::Float(f) => *value = by_way_of_json(*f),
        Value::Array(items) => items.iter_mut().for_each(reread),
        Value::Object(map) => map.values_mut().for_each(reread),
        _ => {}
    }
}

/// Integers in the notations of Go's `strconv.ParseInt(s, 0, 64)` and of YAML 1.1.
fn integer(plain: &str) -> Option<Value> {
    let (negative, body) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, plain),
    };
    let lower = body.to_ascii_lowercase();
    let (radix, digits) = if let Some(digits) = lower.strip_prefix("0x") {
        (16, digits)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (8, digits)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (2, digits)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    if digits.is_empty() || !digits.bytes().all(|b| char::from(b).is_digit(radix)) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok();
    let signed = magnitude.map(|m| if negative { -m } else { m });
    match signed.and_then(|i| i64::try_from(i).ok()) {
        Some(i) => Some(Value::Int(i)),
        None if radix == 10 => plain.parse::<f64>().ok().map(Value::Float),
        None => signed.and_then(|i| u64::try_from(i).ok()).map(|i| Value::Float(i as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that end in a carriage return are lines to the parser, and none to whoever counts line feeds.
    #[test]
    fn what_follows_a_document_is_cut_off_once() {
        for text in ["a: 1\r... b", "a: 1\r\r... b\r... c", "\r\r\r... b", "... b"] {
            let _ = decode(text.as_bytes());
        }
        assert_eq!(decode(b"a: 1\n... b\n").unwrap().value.to_json(), r#"{"a":1}"#);
    }

    #[test]
    fn documents() {
        let cases = [
            (
                "a: [1, -1, +1, 1.0, 1e3, .5, 5., 0x1F, 0o17, 017, 0b11, 1_000, 1:30, -0, 00]",
                r#"{"a":[1,-1,1,1,1000,0.5,5,31,15,15,3,1000,"1:30",0,0]}"#,
            ),
            (
                "a: [yes, No, on, 'true', ~, none, 2024-01-01]",
                r#"{"a":[true,false,true,"true",null,"none","2024-01-01"]}"#,
            ),
            ("{y: 1, n: 2, 1: 3, 1.5: x}", r#"{"1":3,"1.5":"x","false":2,"true":1}"#),
            ("o: &a {x: 1}\nf: {<<: *a, z: 2}\ng: *a", r#"{"f":{"x":1,"z":2},"g":{"x":1},"o":{"x":1}}"#),
            (
                "a: !!str 5\nb: !!int '7'\nc: !!binary aGVsbG8=\nd: !x {a: 1}",
                r#"{"a":"5","b":7,"c":"hello","d":{"a":1}}"#,
            ),
            ("a: 1\n---\nb: 2", r#"{"a":1}"#),
            ("a: 9223372036854775808", r#"{"a":9223372036854776000}"#),
            ("# nothing\n", "null"),
            ("a: |\n  x\n   y\n", r#"{"a":"x\n y\n"}"#),
        ];
        for (text, want) in cases {
            assert_eq!(decode(text.as_bytes()).unwrap().value.to_json(), want, "{text}");
        }
    }

    #[test]
    fn duplicates_and_errors() {
        let decoded = decode(b"a: 1\na: 2\no:\n  x: 1\n  x: 2\n").unwrap();
        assert_eq!(
            decoded.duplicates,
            ["line 2: key \"a\" already set in map", "line 5: key \"x\" already set in map"]
        );
        let cases = [
            ("a: .inf", "json: unsupported value: +Inf"),
            ("s: *nope", "yaml: unknown anchor 'nope' referenced"),
            ("a: {[1, 2]: a}", "yaml: invalid map key: []interface {}{1, 2}"),
        ];
        for (text, want) in cases {
            assert_eq!(decode(text.as_bytes()).unwrap_err().message, want, "{text}");
        }
        let bomb: String = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(), |s, i| {
            let p = i - 1;
            format!("{s}a{i}: &a{i} [{}]\n", vec![format!("*a{p}"); 9].join(","))
        });
        assert_eq!(decode(bomb.as_bytes()).unwrap_err().message, "yaml: document contains excessive aliasing");
    }
}
