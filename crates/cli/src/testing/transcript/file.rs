//! The file of a transcript: JSON with one step per line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use machinery::Value;

/// The file of a transcript: one step per line.
pub fn text(transcript: &Value) -> String {
    let field = |name: &str| transcript.get(name).map(Value::to_json).unwrap_or_default();
    let (name, about) = (field("name"), field("about"));
    let mut out = format!("{{\"name\": {name}, \"about\": {about}, \"verbatim\": true, \"steps\": [\n");
    let steps = transcript.items_at(&["steps"]);
    for (index, step) in steps.iter().enumerate() {
        let _ = writeln!(out, "  {}{}", line(step), if index + 1 == steps.len() { "" } else { "," });
    }
    out + "]}\n"
}

/// A step, with what it is first and the response last.
fn line(step: &Value) -> String {
    const FIRST: [&str; 5] = ["id", "method", "watch", "collect", "path"];
    let fields = step.as_object();
    let first = FIRST.iter().filter_map(|name| Some((*name, step.get(name)?)));
    let rest = fields.into_iter().flat_map(machinery::Map::iter).map(|(name, value)| (name.as_str(), value));
    let rest = rest.filter(|(name, _)| !FIRST.contains(name) && *name != "answer");
    let last = step.get("answer").map(|response| ("answer", response));
    let texts = first.chain(rest).chain(last).map(|(name, value)| format!("\"{name}\": {}", value.to_json()));
    format!("{{{}}}", texts.collect::<Vec<_>>().join(", "))
}

/// How bodies are sent, which errors may quote.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `verbatim`: as the file has them.
    Verbatim,
    /// `compact`: without blanks, in ASCII.
    Compact,
    /// With blanks behind commas and colons, in ASCII.
    Spaced,
}

impl Layout {
    pub fn of(transcript: &Value) -> Layout {
        match (transcript.get("verbatim"), transcript.get("compact")) {
            (Some(_), _) => Layout::Verbatim,
            (_, Some(_)) => Layout::Compact,
            _ => Layout::Spaced,
        }
    }
}

/// Finds the body of each step, by its id, in a file with one step per line.
pub fn raw_bodies(file: &str, layout: Layout) -> BTreeMap<String, String> {
    let lines = file.lines().map(|line| line.trim().trim_end_matches(','));
    let of_line = |line: &str| {
        let step = machinery::value::decode(line.as_bytes()).ok()?;
        Some((step.str_at(&["id"]).to_owned(), laid_out(raw_field(line, "body")?, layout)))
    };
    lines.filter(|line| line.starts_with('{')).filter_map(of_line).collect()
}

fn laid_out(json: &str, layout: Layout) -> String {
    if layout == Layout::Verbatim {
        return json.to_owned();
    }
    let (mut out, mut in_text, mut is_escaped) = (String::with_capacity(json.len() * 5 / 4), false, false);
    for letter in json.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => in_text = !in_text,
            ' ' if !in_text => continue,
            _ => {}
        }
        match letter.is_ascii() {
            true => out.push(letter),
            false => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
        if !in_text && [',', ':'].contains(&letter) && layout == Layout::Spaced {
            out.push(' ');
        }
    }
    out
}

/// The text of a field of an object of JSON.
fn raw_field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.get(field_range(text, name)?)
}

/// Where the value of a field is in the text of an object of JSON, without blanks around it.
fn field_range(text: &str, name: &str) -> Option<Range<usize>> {
    let (mut depth, mut in_text, mut is_escaped) = (0_i32, false, false);
    // where the last text has begun, and the value of the field
    let (mut text_begins, mut begins) = (0, None);
    for (at, byte) in text.bytes().enumerate() {
        let is_outer = depth == 1 && !in_text;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => {
                in_text = !in_text;
                text_begins = if in_text { at + 1 } else { text_begins };
            }
            _ if in_text => {}
            b':' if is_outer && text[text_begins..at].trim_end().strip_suffix('"') == Some(name) => {
                begins = Some(at + 1)
            }
            b',' | b'}' if is_outer && begins.is_some() => {
                let value = text.get(begins?..at)?;
                let begin = begins? + value.len() - value.trim_start().len();
                return Some(begin..begin + value.trim().len());
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The text of a file with other responses, by the ids of the steps; all else stays as it is.
pub fn with_responses(text: &str, responses: &BTreeMap<String, Value>) -> String {
    let of_line = |line: &str| {
        let step = line.trim().trim_end_matches(',');
        let id = machinery::value::decode(step.as_bytes()).ok()?.str_at(&["id"]).to_owned();
        let response = response_text(responses.get(&id)?);
        let recorded = match field_range(step, "answer") {
            Some(range) => format!("{}{response}{}", &step[..range.start], &step[range.end..]),
            None => format!("{},\"answer\":{response}}}", step.strip_suffix('}')?),
        };
        Some(line.replacen(step, &recorded, 1))
    };
    text.split('\n').map(|line| of_line(line).unwrap_or_else(|| line.to_owned())).collect::<Vec<_>>().join("\n")
}

/// A response as text: the status first, the body last.
fn response_text(response: &Value) -> String {
    let fields = ["status", "headers", "body"].iter().filter_map(|name| Some((name, response.get(name)?)));
    let texts: Vec<String> = fields.map(|(name, value)| format!("\"{name}\":{}", value.to_json())).collect();
    if response.as_array().is_some() { response.to_json() } else { format!("{{{}}}", texts.join(",")) }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn bodies_are_sent_as_the_file_has_them() {
        let line = r#"  {"id": "x", "save": {"body": 1}, "body": {"b":"\"}",  "a": [1.0, {"😀": 1}]}, "answer": {"body": 2}},"#;
        let file = format!("{{\"steps\": [\n{line}\n]}}");
        for (layout, body) in [
            (Layout::Verbatim, r#"{"b":"\"}",  "a": [1.0, {"😀": 1}]}"#),
            (Layout::Compact, r#"{"b":"\"}","a":[1.0,{"\ud83d\ude00":1}]}"#),
            (Layout::Spaced, r#"{"b": "\"}", "a": [1.0, {"\ud83d\ude00": 1}]}"#),
        ] {
            assert_eq!(raw_bodies(&file, layout), BTreeMap::from([("x".to_owned(), body.to_owned())]));
        }
        assert_eq!(raw_field(r#"{"a": "body", "body": 5}"#, "body"), Some("5"));
        assert_eq!(raw_field(r#"{"a": {"body": 5}}"#, "body"), None);
    }

    #[test]
    fn a_step_is_a_line_that_begins_with_its_name() {
        let steps = json!([{"answer": [], "body": {"b": 1}, "id": "x", "method": "POST"}]);
        let written = text(&json!({"name": "n", "about": "a", "steps": (steps)}));
        let wanted = "{\"name\": \"n\", \"about\": \"a\", \"verbatim\": true, \"steps\": [\n  \
                      {\"id\": \"x\", \"method\": \"POST\", \"body\": {\"b\":1}, \"answer\": []}\n]}\n";
        assert_eq!(written, wanted);
        assert!(machinery::value::decode(written.as_bytes()).is_ok());
    }

    #[test]
    fn responses_are_replaced_in_the_text() {
        let file = "{\"name\":\"n\",\"steps\":[\n{\"id\":\"a\",\"x\":1.0},\n{\"id\":\"b\", \"answer\": {\"status\":1} ,\"y\":2}\n]}\n";
        let responses = BTreeMap::from([
            ("a".to_owned(), json!({"body": "x", "status": 200, "headers": {}})),
            ("b".to_owned(), json!([{"type": "ADDED"}])),
        ]);
        let wanted = "{\"name\":\"n\",\"steps\":[\n\
                      {\"id\":\"a\",\"x\":1.0,\"answer\":{\"status\":200,\"headers\":{},\"body\":\"x\"}},\n\
                      {\"id\":\"b\", \"answer\": [{\"type\":\"ADDED\"}] ,\"y\":2}\n]}\n";
        assert_eq!(with_responses(file, &responses), wanted);
    }
}
