//! Recorded requests as steps of a transcript, whose format is in docs/src/reference/recordings.md.

use base::request::Verb;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::{Value, json, value};

use super::Recorded;
use super::redact::{Redacted, Redaction};
use super::transcode::{self, media_types};

/// The headers of responses that replays compare.
pub const COMPARED_HEADERS: [&str; 6] = ["content-type", "warning", "retry-after", "location", "allow", "accept-patch"];

/// The step of a request; `None` if there is no response, or if its secret values cannot be replaced.
pub fn step(index: usize, recorded: &Recorded, redacted: &mut Redacted) -> Option<Value> {
    if recorded.code == 0 {
        return None;
    }
    let redaction = redacted.redaction(&recorded.info);
    let verb = if recorded.is_watch() { Verb::Watch } else { recorded.info.verb };
    let mut step = json!({"id": (format!("{}-{}-{}", index + 1, verb.as_str(), recorded.info.resource))});
    if recorded.is_watch() {
        step.set_at(&["watch"], Value::from(format!("watch-{}", index + 1)));
    } else {
        step.set_at(&["method"], Value::from(recorded.method.as_str()));
    }
    step.set_at(&["path"], Value::from(recorded.target.as_str()));
    let accept = if is_json(&recorded.response) { recorded.accept.clone() } else { media_types(&recorded.accept) };
    // Go clients send the type also without a body
    let is_json_body = recorded.body.is_empty() || transcode::object(&recorded.body).is_some();
    let content_type = if is_json_body { media_types(&recorded.content_type) } else { recorded.content_type.clone() };
    let headers = [("Accept", accept), ("Content-Type", content_type), ("User-Agent", recorded.agent.clone())];
    for (name, text) in headers {
        step.put_text(&["headers", name], text.as_str());
    }
    if !recorded.body.is_empty() {
        let (field, body) = request_body(&recorded.body, recorded.code, redaction, redacted)?;
        step.set_at(&[field], body);
    }
    if recorded.is_watch() {
        step.set_at(&["answer"], events(&recorded.response, redaction, redacted)?);
        return Some(step);
    }
    step.set_at(&["answer"], json!({"status": (i64::from(recorded.code)), "headers": (response_headers(recorded))}));
    step.set_at(&["answer", "body"], response_body(&recorded.response, redaction, redacted)?);
    let is_transcoded = transcode::object(&recorded.response).is_some();
    if is_transcoded && let Some(kind) = step.at(&["answer", "headers", "content-type"]).and_then(Value::as_str) {
        let kind = media_types(kind);
        step.set_at(&["answer", "headers", "content-type"], Value::from(kind));
    } else if recorded.response.starts_with(b"k8s\0") {
        // of a type that only its client knows
        step.set_at(&["protobuf"], Value::Bool(true));
    }
    Some(step)
}

/// Whether a response is no protobuf that is recorded as JSON.
fn is_json(response: &[u8]) -> bool {
    transcode::object(response).is_none() && transcode::events(response).is_none()
}

/// The field for the body of a request, and its value. A text keeps the order and the repetitions of fields, which
/// errors depend on.
fn request_body(
    bytes: &[u8],
    code: u16,
    redaction: Redaction,
    redacted: &mut Redacted,
) -> Option<(&'static str, Value)> {
    if let Some(object) = transcode::object(bytes) {
        return Some(("body", redaction.of_request(object, redacted)));
    }
    if let Ok(decoded) = value::decode(bytes)
        && (code < 400 || redaction != Redaction::Nothing)
    {
        return Some(("body", redaction.of_request(decoded, redacted)));
    }
    match (std::str::from_utf8(bytes), redaction) {
        (Ok(text), Redaction::Nothing) => Some(("text", Value::from(text))),
        (Err(_), Redaction::Nothing) => Some(("base64", Value::from(STANDARD.encode(bytes)))),
        // an apply in YAML is recorded as an object
        (Ok(_), _) => {
            let decoded = machinery::yaml::decode(bytes).ok()?;
            Some(("body", redaction.of_request(decoded.value, redacted)))
        }
        // protobuf of a type that only its client knows
        (Err(_), _) => None,
    }
}

fn response_body(bytes: &[u8], redaction: Redaction, redacted: &mut Redacted) -> Option<Value> {
    let decoded = transcode::object(bytes).or_else(|| value::decode(bytes).ok());
    if let Some(decoded) = decoded {
        return Some(redaction.of_response(decoded, redacted));
    }
    match (std::str::from_utf8(bytes), redaction) {
        (Ok(text), Redaction::Nothing) => Some(Value::from(text)),
        (Err(_), Redaction::Nothing) => Some(json!({"base64": (STANDARD.encode(bytes))})),
        // YAML, protobuf, and responses that were cut off for lack of room
        (_, Redaction::Data | Redaction::Token) => None,
    }
}

/// The complete events of a watch.
fn events(bytes: &[u8], redaction: Redaction, redacted: &mut Redacted) -> Option<Value> {
    if let Some(events) = transcode::events(bytes) {
        return Some(events.into_iter().map(|event| redaction.of_response(event, redacted)).collect());
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let events = complete.lines().filter_map(|line| value::decode(line.as_bytes()).ok());
    Some(events.map(|event| redaction.of_response(event, redacted)).collect())
}

/// The headers of the response. A header that occurs several times is a list.
fn response_headers(recorded: &Recorded) -> Value {
    let mut headers = Value::object();
    for name in COMPARED_HEADERS {
        let of_name = recorded.headers.iter().filter(|(known, _)| known == name);
        let mut values: Vec<&str> = of_name.map(|(_, value)| value.as_str()).collect();
        values.sort_unstable();
        match values.as_slice() {
            [] => {}
            [one] => headers.set_at(&[name], Value::from(*one)),
            more => headers.set_at(&[name], more.iter().map(|value| Value::from(*value)).collect()),
        }
    }
    headers
}
