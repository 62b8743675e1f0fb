//! Responses without what differs between two correct servers.

use machinery::{Map, Value};

use super::names::Placeholders;

/// Lists whose order does not matter.
const UNORDERED: [&str; 8] =
    ["causes", "conditions", "managedFields", "resources", "groups", "verbs", "shortNames", "categories"];
/// Length of a uid.
pub const UID_BYTES: usize = 36;

/// Sorts the lists whose order does not matter.
pub fn sort_unordered(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| sort_unordered(field, name)),
        Value::Array(items) => {
            items.iter_mut().for_each(|item| sort_unordered(item, key));
            if UNORDERED.contains(&key) {
                items.sort_by_cached_key(Value::to_json);
            }
        }
        _ => {}
    }
}

/// A value, found under `key`: with placeholders for uids, resourceVersions, times, continue tokens and
/// generated names.
pub fn normalized(value: &Value, names: &mut Placeholders, key: &str) -> Value {
    match value {
        Value::Object(fields) => object(fields, names),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| normalized(item, names, key)).collect();
            if UNORDERED.contains(&key) {
                items.sort_by_cached_key(Value::to_json);
            }
            Value::Array(items)
        }
        Value::String(text) if is_time(text) => Value::from("<time>"),
        Value::String(text) => {
            let text = without_uids(&without_etcd_revisions(&without_echoes(text)), names);
            Value::from(names.without_generated(text))
        }
        other => other.clone(),
    }
}

fn object(fields: &Map, names: &mut Placeholders) -> Value {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let (prefix, name) = (text("generateName"), text("name"));
    let is_generated = !prefix.is_empty() && name.starts_with(prefix);
    if is_generated && name.len() > prefix.len() {
        names.generated(prefix, name);
    }
    let mut out: Map = fields.iter().map(|(name, value)| (name.clone(), field(name, value, names))).collect();
    if is_generated {
        out.insert("name", Value::from(format!("{prefix}<generated>")));
    }
    let causes = fields.get("details").map_or(0, |details| details.items_at(&["causes"]).len());
    if causes > 1 && fields.get("message").is_some() {
        // the message of a Status joins its causes in their order
        out.insert("message", Value::from(sorted_words(text("message"))));
    }
    out.into()
}

/// The sorted words of a message, as the transcripts have them: a separator at the beginning or the end adds an empty word.
fn sorted_words(message: &str) -> String {
    let separators = [' ', ',', '[', ']'];
    let mut words: Vec<&str> = message.split(separators).filter(|word| !word.is_empty()).collect();
    let outer = [message.starts_with(separators), message.ends_with(separators)];
    words.extend(outer.iter().filter(|is_separated| **is_separated).map(|_| ""));
    words.sort_unstable();
    words.join(" ")
}

fn field(name: &str, value: &Value, names: &mut Placeholders) -> Value {
    match (name, value) {
        ("storageVersionHash", _) => Value::from("<hash>"),
        ("time", Value::String(_)) => Value::from("<time>"),
        ("resourceVersion", Value::String(version)) => Value::from(names.version(version)),
        ("continue", Value::String(token)) if !token.is_empty() => Value::from("<continue>"),
        _ => normalized(value, names, name),
    }
}

fn is_time(text: &str) -> bool {
    text.ends_with('Z') && machinery::time::parse_rfc3339(text).is_some()
}

pub fn is_uid(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == UID_BYTES
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => is_digit(byte),
        })
}

fn without_uids(text: &str, names: &mut Placeholders) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest.get(..UID_BYTES).filter(|part| is_uid(part)) {
            Some(uid) => {
                out.push_str(&names.uid(uid));
                rest = &rest[UID_BYTES..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// The text with placeholders for the times and resourceVersions of JSON in it, which annotations and messages repeat.
fn without_echoes(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("\":") {
        let name_end = at + 2;
        let name = rest[..at].trim_end_matches('\\').rsplit(['"', '\\']).next().unwrap_or_default();
        let after = &rest[name_end..];
        let quote = after.len() - after.trim_start_matches('\\').len();
        let is_varying =
            name == "time" || ["resourceVersion", "Timestamp", "Time"].iter().any(|end| name.ends_with(end));
        let value = after[quote..].strip_prefix('"').filter(|_| is_varying);
        let end = value.and_then(|value| value.find(['"', '\\']));
        match value.zip(end).filter(|(value, end)| is_varying_value(&value[..*end])) {
            Some((value, end)) => {
                out.push_str(&rest[..name_end + quote + 1]);
                out.push_str("<echoed>");
                rest = &value[end..];
            }
            None => {
                out.push_str(&rest[..name_end]);
                rest = after;
            }
        }
    }
    out + rest
}

/// Replaces the revisions of etcd in a text: errors of requests for old versions name them.
fn without_etcd_revisions(text: &str) -> String {
    let mut parts = text.split("revision=");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| match part.trim_start_matches(|digit: char| digit.is_ascii_digit()) {
        rest if rest.len() < part.len() => out + "revision=<n>" + rest,
        _ => out + "revision=" + part,
    })
}

fn is_varying_value(text: &str) -> bool {
    is_time(text) || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The value with a placeholder for each description that is not a part of `sent`: the server's own may be worded otherwise.
pub fn without_descriptions(value: &Value, sent: &str, key: &str) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), without_descriptions(field, sent, name)))
            .collect::<Map>()
            .into(),
        Value::Array(items) => items.iter().map(|item| without_descriptions(item, sent, "")).collect(),
        Value::String(text) if key == "description" && !text.is_empty() => {
            let quoted = value.to_json();
            let is_sent = sent.contains(text.as_str()) || sent.contains(&quoted[1..quoted.len() - 1]);
            if is_sent { value.clone() } else { Value::from("<text>") }
        }
        other => other.clone(),
    }
}

/// Replaces the ages in the cells of Tables, which depend on when a response was sent.
pub fn without_ages(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let rows = fields.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten();
            let cells = rows.filter_map(|row| row.get_mut("cells")?.as_array_mut()).flatten();
            cells.filter(|cell| cell.as_str().is_some_and(is_age)).for_each(|cell| *cell = Value::from("<age>"));
            fields.iter_mut().for_each(|(_, field)| without_ages(field));
        }
        Value::Array(items) => items.iter_mut().for_each(without_ages),
        _ => {}
    }
}

/// Replaces the resourceVersions of lists and bookmarks, which are those of the whole API and change with writes of other clients.
pub fn without_list_versions(value: &mut Value) {
    const PLACEHOLDER: &str = "<version>";
    let is_bookmark = value.str_at(&["type"]) == "BOOKMARK";
    match value {
        Value::Object(fields) => {
            let is_list =
                ["items", "rows"].iter().any(|list| fields.get(list).is_some_and(|list| list.as_array().is_some()));
            let of_api = if is_bookmark {
                fields.get_mut("object").and_then(|object| object.get_mut("metadata"))
            } else {
                fields.get_mut("metadata")
            };
            let version =
                of_api.filter(|_| is_list || is_bookmark).and_then(|metadata| metadata.get_mut("resourceVersion"));
            version.into_iter().for_each(|version| *version = Value::from(PLACEHOLDER));
            fields.iter_mut().for_each(|(_, field)| without_list_versions(field));
        }
        Value::Array(items) => items.iter_mut().for_each(without_list_versions),
        _ => {}
    }
}

/// Whether a text is an age as kubectl prints it, such as `5s` or `3d2h`.
fn is_age(text: &str) -> bool {
    let ends_in_unit = text.ends_with(['s', 'm', 'h', 'd', 'y']);
    ends_in_unit
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|letter| letter.is_ascii_digit() || "smhdy".contains(letter))
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    const UID: &str = "3f6d1c1a-9d6a-4d0e-8f3e-0123456789ab";

    #[test]
    fn what_varies_has_placeholders() {
        for (given, wanted) in [
            (
                json!({"uid": UID, "b": "of 3f6d1c1a-9d6a-4d0e-8f3e-0123456789ab!"}),
                r#"{"b":"of <uid:1>!","uid":"<uid:1>"}"#,
            ),
            (
                json!({"resourceVersion": "7", "continue": "x"}),
                r#"{"continue":"<continue>","resourceVersion":"<rv:1>"}"#,
            ),
            (json!({"at": "2026-01-02T03:04:05.6Z", "time": "then"}), r#"{"at":"<time>","time":"<time>"}"#),
            (json!(["at revision=17 of etcd"]), r#"["at revision=<n> of etcd"]"#),
            (json!({"generateName": "a-", "name": "a-x7k2p"}), r#"{"generateName":"a-","name":"a-<generated>"}"#),
            (
                json!([{"generateName": "a-", "name": "a-x7k2p"}, {"message": "no a-x7k2p"}]),
                r#"[{"generateName":"a-","name":"a-<generated>"},{"message":"no a-<generated>"}]"#,
            ),
            (json!({"verbs": ["b", "a"], "other": ["b", "a"]}), r#"{"other":["b","a"],"verbs":["a","b"]}"#),
            (
                json!({"text": r#"{"resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z","time":"no"}"#}),
                r#"{"text":"{\"resourceVersion\":\"<echoed>\",\"creationTimestamp\":\"<echoed>\",\"time\":\"no\"}"}"#,
            ),
            (
                json!({"text": r#"a \"lastTransitionTime\":\"2026-01-02T03:04:05Z\" b"#}),
                r#"{"text":"a \\\"lastTransitionTime\\\":\\\"<echoed>\\\" b"}"#,
            ),
            (
                json!({"message": "[b, a]", "details": {"causes": [{"field": "b"}, {"field": "a"}]}}),
                r#"{"details":{"causes":[{"field":"a"},{"field":"b"}]},"message":"  a b"}"#,
            ),
        ] {
            let wanted = machinery::value::decode(wanted.as_bytes()).unwrap();
            assert_eq!(normalized(&given, &mut Placeholders::numbered(), "").to_json(), wanted.to_json());
        }
    }

    #[test]
    fn versions_of_lists_and_ages_vary() {
        let mut list =
            json!({"items": [{"metadata": {"resourceVersion": "<rv:1>"}}], "metadata": {"resourceVersion": "<rv:2>"}});
        without_list_versions(&mut list);
        let wanted = json!({"items": [{"metadata": {"resourceVersion": "<rv:1>"}}], "metadata": {"resourceVersion": "<version>"}});
        assert_eq!(list, wanted);
        let mut event =
            json!({"object": {"kind": "Table", "rows": [{"cells": ["5s", "3d2h", "days", 5, "v1"]}]}, "age": "5s"});
        without_ages(&mut event);
        let wanted =
            json!({"object": {"kind": "Table", "rows": [{"cells": ["<age>", "<age>", "days", 5, "v1"]}]}, "age": "5s"});
        assert_eq!(event, wanted);
    }

    #[test]
    fn descriptions_of_the_client_count() {
        let given = json!({"description": "mine", "more": [{"description": "the server's"}]});
        let compared = without_descriptions(&given, r#"{"description": "mine"}"#, "");
        assert_eq!(compared, json!({"description": "mine", "more": [{"description": "<text>"}]}));
    }
}
