//! `pintle replay`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use client::{Access, Connection, Method, Streamed};
use machinery::{Map, Value, difflines, json, yaml};

use super::super::{TargetWorkspace, block_on};
use super::names::{Bindings, Placeholders};
use super::normal::{normalized, without_descriptions, without_moments};
use super::saving::is_bookmark;
use crate::count::counted;
use crate::{limits, logs};

#[derive(Args)]
pub struct ReplayTask {
    /// Transcript, as pintle record writes it.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// URL of the server, in place of the one in the kubeconfig, whose credentials it gets.
    #[arg(long, value_name = "URL", conflicts_with = "workspace")]
    server: Option<String>,

    #[command(flatten)]
    target: TargetWorkspace,
}

/// Sends the requests of a transcript, and prints how the responses differ. Fails with a one-line message.
pub fn run(task: &ReplayTask) -> Result<ExitCode, String> {
    let name = task.file.display();
    let bytes = std::fs::read(&task.file).map_err(|error| format!("cannot read {name}: {error}"))?;
    let scenario = machinery::value::decode(&bytes).map_err(|error| format!("{name}: {error}"))?;
    let steps = scenario.get("steps").and_then(Value::as_array).ok_or(format!("{name}: it has no steps"))?;
    let (compared, different) = block_on(async {
        let of_kubeconfig = task.target.access()?;
        let access = Access { server: task.server.clone().unwrap_or(of_kubeconfig.server), ..of_kubeconfig };
        let mut replay = Replay::begin(access, &String::from_utf8_lossy(&bytes), steps).await?;
        for step in steps {
            let id = step.str_at(&["id"]);
            replay.perform(step).await.map_err(|why| format!("{name}: step {id:?}: {why}"))?;
        }
        Ok((replay.compared, replay.different))
    })?;
    let responses = counted(compared, "response");
    logs::print(format!("{responses} compared, {different} different\n").as_bytes())?;
    Ok(if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A watch, and the events that have not been compared yet.
struct Events {
    /// Kept open.
    _connection: Connection,
    stream: Streamed,
    received: Vec<u8>,
}

/// A transcript in progress.
struct Replay {
    access: Access,
    connection: Connection,
    saved: BTreeMap<String, String>,
    watches: BTreeMap<String, Events>,
    bindings: Bindings,
    names: Placeholders,
    /// Bodies as the file has them, by step: in errors, the order of fields matters.
    raw_bodies: BTreeMap<String, String>,
    /// Everything that the transcript sends.
    sent: String,
    compared: usize,
    different: usize,
}

impl Replay {
    async fn begin(access: Access, file: &str, steps: &[Value]) -> Result<Replay, String> {
        let text = |step: &Value| match step.get("body") {
            Some(body) => body.to_json(),
            None => step.str_at(&["text"]).to_owned(),
        };
        let sent = steps.iter().map(text).collect::<Vec<_>>().join("\n");
        let connection = client::connect(&access).await?;
        let (saved, watches, bindings) = Default::default();
        let raw_bodies = raw_bodies(file);
        let names = Placeholders::marked();
        Ok(Replay { access, connection, saved, watches, bindings, names, raw_bodies, sent, compared: 0, different: 0 })
    }

    async fn perform(&mut self, step: &Value) -> Result<(), String> {
        if let Some(seconds) = step.get("sleep") {
            tokio::time::sleep(seconds_of(seconds)).await;
            return Ok(());
        }
        let watch = step.str_at(&["watch"]);
        if !watch.is_empty() {
            return self.open(watch, step).await;
        }
        let found = match step.str_at(&["collect"]) {
            "" => self.send(step).await?,
            watch => self.collect(watch, step).await?,
        };
        let of_file = step.get("answer").cloned().unwrap_or_default();
        let mut recorded = without_descriptions(&of_file, &self.sent, "");
        for path in step.items_at(&["ignore"]).iter().filter_map(Value::as_str) {
            remove(if recorded.get("body").is_some() { recorded.get_mut("body") } else { Some(&mut recorded) }, path);
        }
        let mut found = without_descriptions(&found, &self.sent, "");
        [&mut recorded, &mut found].into_iter().for_each(without_moments);
        let found = self.bindings.rename(&recorded, &found);
        self.compared += 1;
        if recorded != found {
            self.different += 1;
            let difference = difflines::unified(&yaml::encode(&recorded), &yaml::encode(&found));
            let id = step.str_at(&["id"]);
            let difference: Vec<&str> = difference.lines().take(limits::REPLAY_DIFFERENCE_LINES).collect();
            let code = |of: &Value| of.get("status").map(|code| format!(" {}", code.to_json())).unwrap_or_default();
            let (before, now) = (code(&recorded), code(&found));
            let head = format!("{id}: recorded{before} (-), this server{now} (+)");
            logs::print(format!("{head}\n{}\n", difference.join("\n")).as_bytes())?;
        }
        Ok(())
    }

    fn substituted(&self, text: &str) -> String {
        let fill = |text: String, (name, saved): (&String, &String)| text.replace(&format!("${{{name}}}"), saved);
        self.saved.iter().fold(text.to_owned(), fill)
    }

    /// The method, the path, the headers and the body of a step.
    fn request(&self, step: &Value) -> Result<client::Request, String> {
        let method = match step.str_at(&["method"]) {
            "" => Method::GET,
            method => method.parse().map_err(|_| format!("{method:?} is not a method"))?,
        };
        let body = match (step.get("body"), step.get("text"), step.get("base64")) {
            (Some(body), _, _) => {
                let sent = self.raw_bodies.get(step.str_at(&["id"])).cloned();
                self.substituted(&sent.unwrap_or_else(|| body.to_json())).into_bytes()
            }
            (_, Some(text), _) => self.substituted(text.as_str().unwrap_or_default()).into_bytes(),
            (_, _, Some(bytes)) => {
                STANDARD.decode(bytes.as_str().unwrap_or_default()).map_err(|error| error.to_string())?
            }
            _ => vec![],
        };
        let default = [("Accept", "application/json"), ("User-Agent", "replay/1")];
        let mut headers: Vec<_> = default.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        if !body.is_empty() {
            let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        for (name, value) in step.get("headers").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            let value = self.substituted(value.as_str().unwrap_or_default());
            if !value.is_empty() {
                headers.push((name.to_string(), value));
            }
        }
        let path = self.substituted(step.str_at(&["path"]));
        Ok(client::Request { method, path, headers, body: body.into() })
    }

    /// The response to a step, which is repeated until it is as the step wants it.
    async fn send(&mut self, step: &Value) -> Result<Value, String> {
        let until = step.get("until").cloned().unwrap_or_default();
        let begun = clock::instant();
        let patience = match (until.get("seconds"), until.is_null()) {
            (Some(seconds), _) => seconds_of(seconds),
            (None, true) => Duration::ZERO,
            (None, false) => limits::REPLAY_UNTIL,
        };
        loop {
            let request = self.request(step)?;
            let mut response = self.connection.exchange(request).await?;
            let bytes = response.rest().await?;
            if response.closes() {
                self.connection = client::connect(&self.access).await?;
            }
            let text = String::from_utf8_lossy(&bytes);
            let is_as_wanted = until.get("status").and_then(Value::as_int).is_none_or(|code| code == response.code())
                && text.contains(until.str_at(&["has"]))
                && until.get("lacks").and_then(Value::as_str).is_none_or(|lacks| !text.contains(lacks));
            if is_as_wanted || begun.elapsed() >= patience {
                return self.response(step, &response, &bytes);
            }
            tokio::time::sleep(limits::REPLAY_LOOK).await;
        }
    }

    fn response(&mut self, step: &Value, response: &Streamed, bytes: &[u8]) -> Result<Value, String> {
        let mut body = decoded(bytes);
        for (variable, path) in step.get("save").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            let path = path.as_str().unwrap_or_default();
            let value = lookup(&body, path).map(|value| value.as_str().map_or_else(|| value.to_json(), str::to_owned));
            // an absent value becomes empty, and shows as a difference from the recorded response
            self.saved.insert(variable.to_string(), value.unwrap_or_default());
        }
        for path in step.items_at(&["ignore"]).iter().filter_map(Value::as_str) {
            remove(Some(&mut body), path);
        }
        if step.get("protobuf").is_some() && bytes.starts_with(b"k8s\0") {
            // fields of types that this command does not know
            body = step.at(&["answer", "body"]).cloned().unwrap_or_default();
        }
        let mut headers = Value::object();
        for name in server::COMPARED_HEADERS {
            let mut values = response.headers(name);
            values.sort_unstable();
            match values.as_slice() {
                [] => {}
                [one] => headers.set_at(&[name], Value::from(one.as_str())),
                more => headers.set_at(&[name], more.iter().map(|value| Value::from(value.as_str())).collect()),
            }
        }
        let body = normalized(&body, &mut self.names, "");
        Ok(json!({"status": (response.code()), "headers": headers, "body": body}))
    }

    async fn open(&mut self, watch: &str, step: &Value) -> Result<(), String> {
        let request = self.request(step)?;
        let mut connection = client::connect(&self.access).await?;
        let stream = connection.exchange(request).await?;
        self.watches.insert(watch.to_owned(), Events { _connection: connection, stream, received: vec![] });
        Ok(())
    }

    /// The next events of a watch: as many as were asked for, or those of the time that is given.
    async fn collect(&mut self, watch: &str, step: &Value) -> Result<Value, String> {
        let events = self.watches.get_mut(watch).ok_or_else(|| format!("there is no watch {watch:?}"))?;
        let wanted = step.get("events").and_then(Value::as_int).and_then(|count| usize::try_from(count).ok());
        let until = clock::instant() + step.get("seconds").map_or(limits::REPLAY_EVENTS, seconds_of);
        let with_bookmarks = step.items_at(&["answer"]).iter().any(is_bookmark);
        let mut found = vec![];
        while wanted.is_none_or(|wanted| found.len() < wanted) {
            let Ok(Some(line)) = tokio::time::timeout_at(until, events.line()).await else { break };
            let event = decoded(&line?);
            if with_bookmarks || !is_bookmark(&event) {
                found.push(event);
            }
        }
        for path in step.items_at(&["ignore"]).iter().filter_map(Value::as_str) {
            found.iter_mut().for_each(|event| remove(Some(event), path.trim_start_matches("*.")));
        }
        Ok(found.iter().map(|event| normalized(event, &mut self.names, "")).collect())
    }
}

impl Events {
    /// The next line; `None` at the end. What was received is kept if this is dropped.
    async fn line(&mut self) -> Option<Result<Vec<u8>, String>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(end + 1);
                return Some(Ok(std::mem::replace(&mut self.received, rest)));
            }
            match self.stream.next().await {
                Ok(Some(bytes)) => self.received.extend_from_slice(&bytes),
                Ok(None) => return None,
                Err(why) => return Some(Err(why)),
            }
        }
    }
}

fn seconds_of(value: &Value) -> Duration {
    let seconds = value.to_json().parse::<f64>().unwrap_or_default();
    Duration::try_from_secs_f64(seconds).unwrap_or_default().min(limits::REPLAY_SLEEP)
}

/// A body: JSON, else text, else base64.
fn decoded(bytes: &[u8]) -> Value {
    machinery::value::decode(bytes).unwrap_or_else(|_| match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({"base64": (STANDARD.encode(bytes))}),
    })
}

/// The bodies of the steps of a file that has one step per line, by the ids of the steps.
fn raw_bodies(file: &str) -> BTreeMap<String, String> {
    let lines = file.lines().map(|line| line.trim().trim_end_matches(','));
    let of_line = |line: &str| {
        let step = machinery::value::decode(line.as_bytes()).ok()?;
        Some((step.str_at(&["id"]).to_owned(), raw_field(line, "body")?.to_owned()))
    };
    lines.filter(|line| line.starts_with('{')).filter_map(of_line).collect()
}

/// The text of a field of an object of JSON.
fn raw_field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
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
            b',' | b'}' if is_outer && begins.is_some() => return text.get(begins?..at).map(str::trim),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The value at a path with dots.
fn lookup<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    })
}

/// Removes the value at a path with dots, in which `*` is every item or field. An item that has a number becomes null.
fn remove(value: Option<&mut Value>, path: &str) {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    match value {
        Some(Value::Array(items)) if head == "*" => items.iter_mut().for_each(|item| remove(Some(item), rest)),
        Some(Value::Array(items)) => match head.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
            Some(item) if rest.is_empty() => *item = Value::Null,
            item => remove(item, rest),
        },
        Some(Value::Object(fields)) if head == "*" && !rest.is_empty() => {
            fields.iter_mut().for_each(|(_, field)| remove(Some(field), rest));
        }
        Some(Value::Object(fields)) if rest.is_empty() => drop(fields.remove(head)),
        Some(Value::Object(fields)) => remove(fields.get_mut(head), rest),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_sent_as_the_file_has_them() {
        let line =
            r#"  {"id": "x", "save": {"body": 1}, "body": {"b": "\"}", "a": [1.0, {}]}, "answer": {"body": 2}},"#;
        let file = format!("{{\"steps\": [\n{line}\n]}}");
        assert_eq!(raw_bodies(&file), BTreeMap::from([("x".to_owned(), r#"{"b": "\"}", "a": [1.0, {}]}"#.to_owned())]));
        assert_eq!(raw_field(r#"{"a": "body", "body": 5}"#, "body"), Some("5"));
        assert_eq!(raw_field(r#"{"a": {"body": 5}}"#, "body"), None);
    }

    #[test]
    fn paths_name_values() {
        let value = json!({"a": [{"b": 1, "c": 2}, {"b": 3}]});
        assert_eq!(lookup(&value, "a.1.b"), Some(&Value::Int(3)));
        assert_eq!(lookup(&value, "a.2.b"), None);
        for (path, wanted) in [
            ("a.*.b", r#"{"a":[{"c":2},{}]}"#),
            ("a.0", r#"{"a":[null,{"b":3}]}"#),
            ("a", "{}"),
            ("x.y", r#"{"a":[{"b":1,"c":2},{"b":3}]}"#),
        ] {
            let mut value = value.clone();
            remove(Some(&mut value), path);
            assert_eq!(value.to_json(), wanted, "{path}");
        }
    }
}
