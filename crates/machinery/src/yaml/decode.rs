//! Decoding: the first document, with the scalar rules of YAML 1.1 as Go's yaml.v2 has
//! them (`yes`, `on`, `0b11`, `1_000`, `<<`), turned into the JSON value it stands for (corrections, schema 29).
//!
//! Bounds: nesting [`DEPTH_MAX`], and [`NODES_MAX`] nodes after aliases are expanded.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};

use crate::value::{Decoded, JsonError, Map, Text, Value, quote};

/// Collections may nest this deep.
pub const DEPTH_MAX: usize = 1_000;
/// Nodes that one document may grow to when its aliases are expanded.
pub const NODES_MAX: usize = 4_000_000;

/// Decodes the first document of `text`. Duplicate keys are told as `line 5: key "a" already set in map`.
pub fn decode(text: &[u8]) -> Result<Decoded, JsonError> {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(_) => return Err(fail("yaml: invalid leading UTF-8 octet")),
    };
    if text.contains('"') && text.contains("\\/") {
        return Err(fail("yaml: found unknown escape character"));
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| scan_error(text, &e))?;
        if builder.event(event, span.start.line())? {
            break;
        }
    }
    Ok(Decoded { value: builder.root.unwrap_or_default(), duplicates: builder.duplicates })
}

fn fail(message: impl Into<String>) -> JsonError {
    JsonError { message: message.into() }
}

/// The scanner's error in the words of the reference library, as far as the two can be matched.
fn scan_error(text: &str, error: &ScanError) -> JsonError {
    let info = error.info();
    let line = error.marker().line();
    let last = text.lines().count();
    let table = [
        ("unknown anchor", "unknown anchor"),
        ("invalid Unicode character escape", "found invalid Unicode character escape code"),
        ("unknown escape character", "found unknown escape character"),
        ("invalid escape", "found unknown escape character"),
        ("unicode escape", "found invalid Unicode character escape code"),
    ];
    if info.contains("unknown anchor") {
        let name = text.lines().nth(line.saturating_sub(1)).and_then(|l| l.split('*').nth(1)).unwrap_or_default();
        let name: String = name.chars().take_while(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).collect();
        return fail(format!("yaml: unknown anchor '{name}' referenced"));
    }
    for (part, words) in table {
        if info.contains(part) {
            return fail(format!("yaml: {words}"));
        }
    }
    if info.contains("mapping values") {
        return fail("yaml: mapping values are not allowed in this context");
    }
    let (line, words) = if info.contains("tab") {
        (line, "found character that cannot start any token")
    } else if info.contains("',' or '}'") || info.contains("',' or ']'") || info.contains("flow") {
        let close = if info.contains(']') { "']'" } else { "'}'" };
        return fail(format!("yaml: line {}: did not find expected ',' or {close}", line.min(last)));
    } else if info.contains("end of stream") || info.contains("unexpected EOF") || info.contains("quoted") {
        (last + 1, "found unexpected end of stream")
    } else {
        (line.saturating_sub(1), "did not find expected key")
    };
    fail(format!("yaml: line {line}: {words}"))
}

/// A collection that is still open.
enum Frame {
    Sequence {
        anchor: usize,
        items: Vec<Value>,
    },
    Mapping {
        anchor: usize,
        entries: Vec<(Text, Value)>,
        merged: Vec<(Text, Value)>,
        key: Option<Key>,
        /// The value under a null key, which JSON cannot have.
        null: Option<String>,
    },
}

/// A key read, whose value comes next.
enum Key {
    Plain(Text),
    Merge,
    /// Only told when its value is known.
    Null,
}

#[derive(Default)]
struct Builder {
    frames: Vec<Frame>,
    anchors: std::collections::HashMap<usize, (Value, usize)>,
    duplicates: Vec<String>,
    root: Option<Value>,
    nodes: usize,
}

impl Builder {
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
                let (value, size) =
                    self.anchors.get(&anchor).cloned().ok_or_else(|| fail("yaml: unknown anchor referenced"))?;
                self.nodes += size;
                self.node(value, 0, line, false)?;
            }
            Event::SequenceStart(anchor, _) => self.open(Frame::Sequence { anchor, items: vec![] })?,
            Event::MappingStart(anchor, _) => {
                self.open(Frame::Mapping { anchor, entries: vec![], merged: vec![], key: None, null: None })?;
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
            Some(Frame::Mapping { anchor, entries, merged, .. }) => {
                let mut map: Map = merged.into_iter().collect();
                for (key, value) in entries {
                    map.insert(key, value);
                }
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
            Some(Frame::Mapping { entries, merged, key, null, .. }) => match key.take() {
                None if merge => *key = Some(Key::Merge),
                None if value.is_null() => *key = Some(Key::Null),
                None => *key = Some(Key::Plain(key_text(value)?)),
                Some(Key::Null) => *null = Some(go_syntax(&value)),
                Some(Key::Merge) => merge_into(merged, value)?,
                Some(Key::Plain(name)) => {
                    if entries.iter().any(|(k, _)| *k == name) || merged.iter().any(|(k, _)| *k == name) {
                        let shown =
                            if matches!(name.as_str(), "true" | "false") { name.to_string() } else { quote(&name) };
                        self.duplicates.push(format!("line {line}: key {shown} already set in map"));
                    }
                    entries.push((name, value));
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
        Some("null") => Ok(Value::Null),
        Some("float") => resolve(text).map(|v| v.as_float().map_or(v, Value::Float)),
        Some(_) => resolve(text),
        None if style == ScalarStyle::Plain && tag.is_none() => resolve(text),
        None => Ok(text.into()),
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
    plain.parse::<f64>().ok().filter(|f| f.is_finite()).map(Value::Float)
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
        None => signed.map(|i| Value::Float(i as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
