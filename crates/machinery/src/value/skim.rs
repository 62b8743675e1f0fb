//! Partial decoding of compact JSON that this server has encoded.
//!
//! All functions return `None` for input that they do not expect, such as white space between tokens or deep nesting;
//! the caller then decodes the whole document.

use crate::limits::SKIM_DEPTH_MAX;
use std::ops::Range;

use super::scan::{skip, skip_string};
use super::{Map, Text, Value, decode};

/// One field of an object, with the positions of its key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSpan<'a> {
    /// The source text of the key, between the quotes.
    pub key: &'a [u8],
    /// The position of the quote before the key.
    pub at: usize,
    /// The range of the bytes of the value.
    pub value: Range<usize>,
}

/// Iterates over the fields of an object.
struct FieldReader<'a> {
    bytes: &'a [u8],
    /// The start of the next key; none at the end.
    next: Option<usize>,
}

impl<'a> FieldReader<'a> {
    fn of(bytes: &'a [u8], at: usize) -> Option<FieldReader<'a>> {
        let next = match (bytes.get(at)?, bytes.get(at + 1)?) {
            (b'{', b'}') => None,
            (b'{', _) => Some(at + 1),
            _ => return None,
        };
        Some(FieldReader { bytes, next })
    }

    /// The next key, the position of its quote and that of its value; `Some(None)` at the end of the object.
    fn key(&mut self) -> Option<Option<(&'a [u8], usize, usize)>> {
        let Some(quote) = self.next else { return Some(None) };
        let end = skip_string(self.bytes, quote)?;
        let key = &self.bytes[quote + 1..end - 1];
        (self.bytes.get(end) == Some(&b':')).then_some(Some((key, quote, end + 1)))
    }

    /// Continues after the value of the last key, which ends at `end`.
    fn ended(&mut self, end: usize) -> Option<()> {
        self.next = match self.bytes.get(end)? {
            b',' => Some(end + 1),
            b'}' => None,
            _ => return None,
        };
        Some(())
    }
}

/// The fields of the object that begins at `at`, in their order.
pub fn fields(bytes: &[u8], at: usize) -> Option<Vec<FieldSpan<'_>>> {
    let mut out = vec![];
    let mut fields = FieldReader::of(bytes, at)?;
    while let Some((key, at, start)) = fields.key()? {
        let value = start..skip(bytes, start)?;
        fields.ended(value.end)?;
        out.push(FieldSpan { key, at, value });
    }
    Some(out)
}

/// The position of the value of the field `name` of the document; bytes after it are not read.
pub fn find(bytes: &[u8], name: &str) -> Option<usize> {
    let mut fields = FieldReader::of(bytes, 0)?;
    while let Some((key, _, start)) = fields.key()? {
        if key == name.as_bytes() {
            return Some(start);
        }
        fields.ended(skip(bytes, start)?)?;
    }
    None
}

/// A key as text.
fn name(key: &[u8]) -> Option<Text> {
    let written = std::str::from_utf8(key).ok()?;
    if !written.contains('\\') {
        return Some(written.into());
    }
    match decode(format!("\"{written}\"").as_bytes()) {
        Ok(Value::String(name)) => Some(name),
        _ => None,
    }
}

/// The names of fields that an outline omits at any depth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Omitted<'a> {
    /// Each of its values becomes its index in the list of ranges.
    pub placed: &'a str,
    /// Its values become null.
    pub dropped: &'a str,
}

/// The document with some values replaced, and the ranges of the values of [`Omitted::placed`].
pub fn outline(bytes: &[u8], omitted: Omitted<'_>) -> Option<(Value, Vec<Range<usize>>)> {
    let mut walk = Walk { bytes, omitted, places: vec![] };
    let (value, end) = walk.value(0, SKIM_DEPTH_MAX)?;
    (end == bytes.len()).then_some((value, walk.places))
}

/// A pass over the document.
struct Walk<'a> {
    bytes: &'a [u8],
    omitted: Omitted<'a>,
    places: Vec<Range<usize>>,
}

impl Walk<'_> {
    /// The value that begins at `at`, and the position after it.
    fn value(&mut self, at: usize, depth: usize) -> Option<(Value, usize)> {
        let deeper = depth.checked_sub(1)?;
        match self.bytes.get(at)? {
            b'{' => self.object(at, deeper),
            b'[' => self.array(at, deeper),
            _ => {
                let end = skip(self.bytes, at)?;
                Some((decode(&self.bytes[at..end]).ok()?, end))
            }
        }
    }

    fn object(&mut self, at: usize, depth: usize) -> Option<(Value, usize)> {
        let mut entries = vec![];
        let mut fields = FieldReader::of(self.bytes, at)?;
        let mut last = at + 1;
        while let Some((key, _, start)) = fields.key()? {
            let (value, end) = if self.omitted.placed.as_bytes() == key {
                let place = start..skip(self.bytes, start)?;
                let end = place.end;
                self.places.push(place);
                (Value::Int(self.places.len() as i64 - 1), end)
            } else if self.omitted.dropped.as_bytes() == key {
                (Value::Null, skip(self.bytes, start)?)
            } else {
                self.value(start, depth)?
            };
            fields.ended(end)?;
            last = end;
            entries.push((name(key)?, value));
        }
        Some((Value::Object(Map::from_entries(entries, |_| {})), last + 1))
    }

    fn array(&mut self, at: usize, depth: usize) -> Option<(Value, usize)> {
        let mut items = vec![];
        let mut at = at + 1;
        if self.bytes.get(at) == Some(&b']') {
            return Some((Value::Array(items), at + 1));
        }
        loop {
            let (item, end) = self.value(at, depth)?;
            items.push(item);
            match self.bytes.get(end)? {
                b',' => at = end + 1,
                b']' => return Some((Value::Array(items), end + 1)),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn field_positions_are_correct() {
        let bytes = br#"{"a":{"b":[1,"}"]},"c\"":"\\","d":null}"#;
        let found = fields(bytes, 0).unwrap();
        let shown: Vec<(&str, &str)> = found
            .iter()
            .map(|m| (std::str::from_utf8(m.key).unwrap(), std::str::from_utf8(&bytes[m.value.clone()]).unwrap()))
            .collect();
        assert_eq!(shown, [("a", r#"{"b":[1,"}"]}"#), (r#"c\""#, r#""\\""#), ("d", "null")]);
        assert!(found.iter().all(|field| bytes[field.at] == b'"'));
        assert_eq!(fields(b"{}", 0), Some(vec![]));
        assert_eq!(find(bytes, "d").map(|at| &bytes[at..]), Some(b"null}".as_slice()));
        assert_eq!(find(bytes, "b"), None);
    }

    #[test]
    fn unexpected_forms_are_left_to_the_decoder() {
        for odd in ["", "{", "{\"a\" :1}", "{\"a\":1", "{\"a\":}", "{\"a\":1,}", "[1", "{a:1}", "{\"a\"}", "{}x"] {
            assert!(outline(odd.as_bytes(), Omitted::default()).is_none(), "{odd}");
        }
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(outline(deep.as_bytes(), Omitted::default()).is_none());
    }

    #[test]
    fn outlines_omit_named_fields() {
        let whole = json!({
            "a": {"big": {"x": [1, 2]}}, "c": {"d": 1}, "k:{\"x\"}": {}, "list": [{"big": "text", "y": 1.5}, "é\n"]
        });
        let bytes = whole.to_json();
        assert_eq!(outline(bytes.as_bytes(), Omitted::default()), Some((whole, vec![])));
        let (found, places) = outline(bytes.as_bytes(), Omitted { placed: "big", dropped: "c" }).unwrap();
        assert_eq!(found, json!({"a": {"big": 0}, "c": null, "k:{\"x\"}": {}, "list": [{"big": 1, "y": 1.5}, "é\n"]}));
        let left: Vec<&str> = places.into_iter().map(|place| &bytes[place]).collect();
        assert_eq!(left, [r#"{"x":[1,2]}"#, r#""text""#]);
    }
}
