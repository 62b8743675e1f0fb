//! What a scenario has recorded: requests as they were sent, and responses, in which placeholders such as `<uid:1>` stand for what
//! differs from run to run. `tests/harness/replay.py` has the format.

use machinery::Value;

/// The parts of responses whose order means nothing.
const UNORDERED: [&str; 8] =
    ["causes", "conditions", "managedFields", "resources", "groups", "verbs", "shortNames", "categories"];

/// The kinds of placeholders.
const PLACEHOLDERS: [&str; 6] = ["uid:", "rv:", "time>", "hash>", "generated>", "echoed>"];

/// A recorded response.
pub struct Response<'s> {
    value: &'s Value,
    /// The paths of the body that are not compared.
    ignored: Vec<&'s str>,
}

impl<'s> Response<'s> {
    pub fn of(step: &'s Value) -> Response<'s> {
        let ignored = step.items_at(&["ignore"]).iter().filter_map(Value::as_str).collect();
        Response { value: step.get("answer").unwrap_or(&Value::Null), ignored }
    }

    pub fn code(&self) -> i64 {
        self.value.int_at(&["status"])
    }

    pub fn message(&self) -> &str {
        self.value.str_at(&["body", "message"])
    }

    /// The texts of the warnings, sorted.
    pub fn warnings(&self) -> Vec<String> {
        let headers = self.value.at(&["headers", "warning"]);
        let headers = match headers {
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            _ => vec![],
        };
        // recorded headers have a letter for each byte
        let decoded = |header: &str| {
            let bytes: Option<Vec<u8>> = header.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect();
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| header.to_owned())
        };
        let mut texts: Vec<String> =
            headers.into_iter().filter_map(|header| offline::engine::warning_text(&decoded(header))).collect();
        texts.sort();
        texts
    }

    /// Whether the body is an object, but for what differs from run to run.
    pub fn is_object(&self, found: &Value) -> bool {
        let (mut recorded, mut found) = (self.value.get("body").cloned().unwrap_or_default(), found.clone());
        // a dry run has no revision of its own
        for path in self.ignored.iter().chain(&["metadata.resourceVersion"]) {
            let steps: Vec<&str> = path.split('.').collect();
            drop_at(&mut recorded, &steps);
            drop_at(&mut found, &steps);
        }
        is_same(&recorded, &found, "")
    }

    /// The body, for the report of a difference.
    pub fn body(&self) -> String {
        self.value.get("body").map(Value::to_json).unwrap_or_default()
    }

    /// Whether a request was refused because its namespace does not exist. To the engine, every namespace that is named exists.
    pub fn is_missing_namespace(&self) -> bool {
        self.message().starts_with("namespaces \"") && self.message().ends_with("\" not found")
    }
}

/// Removes the values at a path, in which `*` stands for every field and item.
fn drop_at(value: &mut Value, path: &[&str]) {
    let Some((step, rest)) = path.split_first() else { return };
    match value {
        Value::Object(fields) if rest.is_empty() && *step != "*" => drop(fields.remove(step)),
        Value::Object(fields) => {
            let steps = fields.iter_mut().filter(|(name, _)| *step == "*" || name.as_str() == *step);
            steps.for_each(|(_, field)| drop_at(field, rest));
        }
        Value::Array(items) if *step == "*" => items.iter_mut().for_each(|item| drop_at(item, rest)),
        _ => {}
    }
}

fn is_same(recorded: &Value, found: &Value, field: &str) -> bool {
    match (recorded, found) {
        (Value::Object(recorded), Value::Object(found)) => {
            let has = |name: &str, value: &Value| found.get(name).is_some_and(|found| is_same(value, found, name));
            recorded.len() == found.len() && recorded.iter().all(|(name, value)| has(name, value))
        }
        (Value::Array(recorded), Value::Array(found)) if UNORDERED.contains(&field) => {
            let mut left: Vec<&Value> = found.iter().collect();
            let mut take = |item: &Value| left.iter().position(|one| is_same(item, one, "")).map(|at| left.remove(at));
            recorded.len() == found.len() && recorded.iter().all(|item| take(item).is_some())
        }
        (Value::Array(recorded), Value::Array(found)) => {
            recorded.len() == found.len() && recorded.iter().zip(found).all(|(a, b)| is_same(a, b, field))
        }
        (Value::String(recorded), Value::String(found)) => is_filled(recorded, found),
        _ => recorded == found,
    }
}

/// Whether a text is a recorded one with its placeholders filled in.
fn is_filled(recorded: &str, found: &str) -> bool {
    let placeholder = recorded.match_indices('<').find_map(|(at, _)| {
        let rest = &recorded[at + 1..];
        let is_known = PLACEHOLDERS.iter().any(|kind| rest.starts_with(kind));
        is_known.then(|| Some((at, at + 2 + rest.find('>')?))).flatten()
    });
    let Some((start, end)) = placeholder else { return recorded == found };
    let Some(filled) = found.strip_prefix(&recorded[..start]) else { return false };
    let letters = filled.char_indices().map(|(at, _)| at).chain([filled.len()]);
    letters.into_iter().any(|at| is_filled(&recorded[end..], &filled[at..]))
}

/// A header that a step sends; empty if it does not.
pub fn header<'a>(step: &'a Value, name: &str) -> &'a str {
    let headers = step.fields_at(&["headers"]);
    let mut found = headers.filter(|(key, _)| key.eq_ignore_ascii_case(name)).filter_map(|(_, value)| value.as_str());
    found.next().unwrap_or_default()
}

/// The body of a step as it was sent, with its numbers and the order of its fields.
pub fn body(line: &str) -> &str {
    let Some((_, text)) = line.split_once("\"body\":") else { return "" };
    let text = text.trim_start();
    let (mut depth, mut in_string, mut is_escaped) = (0_i32, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 && !in_string && (byte == b'}' || byte == b']' || text[at + 1..].starts_with([',', '}'])) {
            return &text[..=at];
        }
    }
    text
}

/// A JSON text whose letters beyond ASCII are escapes, as the requests were sent.
pub fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter.is_ascii() {
            true => text.push(letter),
            false => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    text
}

/// The words of a message, whose causes may be in another order.
pub fn comparable(message: &str) -> Vec<String> {
    let mut words: Vec<String> =
        message.split([' ', ',', '[', ']']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.sort();
    words
}

#[test]
fn placeholders_are_filled_in() {
    for (recorded, found, want) in [
        ("plain", "plain", true),
        ("<a>", "<a>", true),
        ("<a>", "b", false),
        ("<time>", "2026-01-01T00:00:00Z", true),
        ("x-<generated>", "x-abcde", true),
        ("<uid:1> and <rv:22>.", "0-0 and 7.", true),
        ("<uid:1> and <rv:22>.", "0-0 and 7", false),
        ("before <uid:1>", "after 0-0", false),
    ] {
        assert_eq!(is_filled(recorded, found), want, "{recorded} {found}");
    }
}
