//! Looks into compact JSON that this server has encoded, without decoding all of it.
//!
//! Everything here answers `None` for what it doesn't expect, such as white space between tokens or deep nesting; then
//! the document is to be decoded whole.

use std::ops::Range;

use super::{Map, Value, decode};

/// Values nest this deep at most where they are walked through.
const DEPTH_MAX: usize = 64;

/// One member of an object: where its key (behind the quote) and its value stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// As it is written, between the quotes.
    pub key: &'a [u8],
    /// Where the quote before the key stands.
    pub at: usize,
    pub value: Range<usize>,
}

/// The members of the object that begins at `at`, in their order.
pub fn members(bytes: &[u8], at: usize) -> Option<Vec<Member<'_>>> {
    let mut out = vec![];
    let mut at = at;
    if *bytes.get(at)? != b'{' {
        return None;
    }
    at += 1;
    if bytes.get(at) == Some(&b'}') {
        return Some(out);
    }
    loop {
        let quote = at;
        let end = skip_string(bytes, at)?;
        let key = &bytes[quote + 1..end - 1];
        if bytes.get(end) != Some(&b':') {
            return None;
        }
        let value = end + 1..skip(bytes, end + 1)?;
        at = value.end;
        out.push(Member { key, at: quote, value });
        match bytes.get(at)? {
            b',' => at += 1,
            b'}' => return Some(out),
            _ => return None,
        }
    }
}

/// Where the items of the array that begins at `at` stand.
fn items(bytes: &[u8], at: usize) -> Option<Vec<Range<usize>>> {
    let mut out = vec![];
    let mut at = at + 1;
    if bytes.get(at) == Some(&b']') {
        return Some(out);
    }
    loop {
        let end = skip(bytes, at)?;
        out.push(at..end);
        match bytes.get(end)? {
            b',' => at = end + 1,
            b']' => return Some(out),
            _ => return None,
        }
    }
}

/// The place behind the value that begins at `at`.
fn skip(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => skip_string(bytes, at),
        b'{' | b'[' => skip_container(bytes, at),
        _ => {
            let length = bytes[at..].iter().position(|b| matches!(b, b',' | b'}' | b']')).unwrap_or(bytes.len() - at);
            (length > 0).then_some(at + length)
        }
    }
}

/// Brackets are counted; that they fit each other has been seen to when the document was encoded.
fn skip_container(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = at;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = skip_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The place behind the string that begins at `at`.
fn skip_string(bytes: &[u8], at: usize) -> Option<usize> {
    if *bytes.get(at)? != b'"' {
        return None;
    }
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// What an outline leaves out, by the names of members, wherever they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Omitted<'a> {
    /// Its values become their numbers in the list of places.
    pub placed: &'a str,
    /// Its values become null.
    pub dropped: &'a str,
}

/// The document without some values, and where the placed ones stand.
pub fn outline(bytes: &[u8], omitted: Omitted<'_>) -> Option<(Value, Vec<Range<usize>>)> {
    let mut places = vec![];
    let end = skip(bytes, 0)?;
    let value = partial(bytes, 0..end, omitted, &mut places, DEPTH_MAX)?;
    (end == bytes.len()).then_some((value, places))
}

fn partial(
    bytes: &[u8],
    place: Range<usize>,
    omitted: Omitted<'_>,
    places: &mut Vec<Range<usize>>,
    depth: usize,
) -> Option<Value> {
    let deeper = depth.checked_sub(1)?;
    match bytes.get(place.start)? {
        b'{' => {
            let mut map = Map::new();
            for member in members(bytes, place.start)? {
                let value = if omitted.placed.as_bytes() == member.key {
                    places.push(member.value);
                    Value::Int(places.len() as i64 - 1)
                } else if omitted.dropped.as_bytes() == member.key {
                    Value::Null
                } else {
                    partial(bytes, member.value, omitted, places, deeper)?
                };
                map.insert(std::str::from_utf8(member.key).ok().filter(|key| !key.contains('\\'))?, value);
            }
            Some(Value::Object(map))
        }
        b'[' => {
            let items = items(bytes, place.start)?;
            let items: Option<Vec<Value>> =
                items.into_iter().map(|place| partial(bytes, place, omitted, places, deeper)).collect();
            items.map(Value::Array)
        }
        _ => decode(&bytes[place]).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn members_stand_where_they_are_said_to() {
        let bytes = br#"{"a":{"b":[1,"}"]},"c\"":"\\","d":null}"#;
        let found = members(bytes, 0).unwrap();
        let shown: Vec<(&str, &str)> = found
            .iter()
            .map(|m| (std::str::from_utf8(m.key).unwrap(), std::str::from_utf8(&bytes[m.value.clone()]).unwrap()))
            .collect();
        assert_eq!(shown, [("a", r#"{"b":[1,"}"]}"#), (r#"c\""#, r#""\\""#), ("d", "null")]);
        assert!(found.iter().all(|member| bytes[member.at] == b'"'));
        assert_eq!(members(b"{}", 0), Some(vec![]));
    }

    #[test]
    fn what_is_not_expected_is_left_to_the_decoder() {
        for odd in ["", "{", "{\"a\" :1}", "{\"a\":1", "{\"a\":}", "{\"a\":1,}", "[1", "{a:1}", "{\"a\"}", "{}x"] {
            assert!(outline(odd.as_bytes(), Omitted::default()).is_none(), "{odd}");
        }
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(outline(deep.as_bytes(), Omitted::default()).is_none());
    }

    #[test]
    fn outlines_leave_out_what_is_named() {
        let whole = json!({"a": {"big": {"x": [1, 2]}}, "c": {"d": 1}, "list": [{"big": "text", "y": 1.5}, "é\n"]});
        let bytes = whole.to_json();
        assert_eq!(outline(bytes.as_bytes(), Omitted::default()), Some((whole, vec![])));
        let (found, places) = outline(bytes.as_bytes(), Omitted { placed: "big", dropped: "c" }).unwrap();
        assert_eq!(found, json!({"a": {"big": 0}, "c": null, "list": [{"big": 1, "y": 1.5}, "é\n"]}));
        let left: Vec<&str> = places.into_iter().map(|place| &bytes[place]).collect();
        assert_eq!(left, [r#"{"x":[1,2]}"#, r#""text""#]);
    }
}
