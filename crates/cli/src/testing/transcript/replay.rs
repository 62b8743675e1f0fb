//! `pintle replay`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use client::{Access, Connection, Context as _, Method, Result, Streamed};
use machinery::{Value, difflines, json, yaml};

use super::super::TargetWorkspace;
use super::names::{Bindings, Placeholders};
use super::normal::{normalized, sort_unordered, without_ages, without_descriptions, without_list_versions};
use super::saving::is_bookmark;
use super::{file, protobuf};
use crate::count::counted;
use crate::runtime::block_on;
use crate::values::TextOrJson;
use crate::{limits, logs};

#[derive(Args)]
pub struct ReplayTask {
    /// Transcripts, as pintle record writes them.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// URL of the server, in place of the one in the kubeconfig, whose credentials it gets.
    #[arg(long, value_name = "URL", conflicts_with = "workspace")]
    server: Option<String>,

    /// Also compare what depends on other clients, which are versions of lists and bookmarks, and the fields of bodies in protobuf.
    #[arg(long)]
    exact: bool,

    /// Skip the pauses, and wait neither for more events than were recorded nor for a response that was not. kube-apiserver needs the
    /// time, Pintle does not.
    #[arg(long)]
    fast: bool,

    /// Write the responses into the files instead of comparing them.
    #[arg(long, conflicts_with = "fast")]
    record: bool,

    /// Output format. JSON has an object for each file, one per line: its steps, and those that differ.
    #[arg(short, long, value_enum, default_value_t = TextOrJson::Text)]
    output: TextOrJson,

    #[command(flatten)]
    target: TargetWorkspace,
}

/// Sends the requests of transcripts, and prints how the responses differ. Fails with a one-line message.
pub fn run(task: &ReplayTask) -> Result<ExitCode> {
    let of_kubeconfig = task.target.access()?;
    let access = Access { server: task.server.clone().unwrap_or(of_kubeconfig.server), ..of_kubeconfig };
    let (mut compared, mut different) = (0, 0);
    for file in &task.files {
        let outcome = block_on(replayed(task, &access, file))?;
        compared += outcome.compared;
        different += outcome.different.len();
        if task.output == TextOrJson::Json {
            let line = json!({"file": (file.display().to_string()), "steps": (outcome.compared),
                "different": (Value::Array(outcome.different))});
            logs::print(format!("{}\n", line.to_json()).as_bytes())?;
        }
    }
    if task.output == TextOrJson::Text {
        let responses = counted(usize::try_from(compared).unwrap_or_default(), "response");
        let end = if task.record {
            format!("{responses} recorded")
        } else {
            format!("{responses} compared, {different} different")
        };
        logs::print(format!("{end}\n").as_bytes())?;
    }
    Ok(if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Counts the steps of a transcript, and lists those that differ.
struct Outcome {
    compared: i64,
    /// Those that differ: their ids and requests, and the differences as text.
    different: Vec<Value>,
}

async fn replayed(task: &ReplayTask, access: &Access, path: &Path) -> Result<Outcome> {
    let name = path.display();
    let bytes = std::fs::read(path).context(format_args!("cannot read {name}"))?;
    let scenario = machinery::value::decode(&bytes).context(&name)?;
    let steps = scenario.get("steps").and_then(Value::as_array).ok_or(format!("{name}: it has no steps"))?;
    let text = String::from_utf8_lossy(&bytes);
    let bodies = file::raw_bodies(&text, file::Layout::of(&scenario));
    let mut replay = Replay::begin(task, access, bodies, steps).await?;
    for step in steps {
        let id = step.str_at(&["id"]);
        replay.perform(step).await.context(format_args!("{name}: step {id:?}"))?;
    }
    if task.record {
        let written = file::with_responses(&text, &replay.recorded);
        std::fs::write(path, written).context(format_args!("cannot write {name}"))?;
    }
    Ok(replay.outcome)
}

/// A watch, and the events that have not been compared yet.
struct Events {
    /// Kept open.
    _connection: Connection,
    stream: Streamed,
    received: Vec<u8>,
    /// Whether the end of the watch has been compared.
    has_ended: bool,
}

/// A transcript in progress.
struct Replay<'t> {
    task: &'t ReplayTask,
    access: Access,
    connection: Connection,
    saved: BTreeMap<String, String>,
    watches: BTreeMap<String, Events>,
    /// Responses to watches that the server refused, until they are compared.
    refused: BTreeMap<String, Value>,
    bindings: Bindings,
    names: Placeholders,
    /// Bodies as the file has them, by step: in errors, the order of fields matters.
    raw_bodies: BTreeMap<String, String>,
    /// Everything that the transcript sends.
    sent: String,
    outcome: Outcome,
    /// With `--record`, the responses by step.
    recorded: BTreeMap<String, Value>,
}

impl Replay<'_> {
    async fn begin<'t>(
        task: &'t ReplayTask,
        access: &Access,
        raw_bodies: BTreeMap<String, String>,
        steps: &[Value],
    ) -> Result<Replay<'t>> {
        let text = |step: &Value| match step.get("body") {
            Some(body) => body.to_json(),
            None => step.str_at(&["text"]).to_owned(),
        };
        let sent = steps.iter().map(text).collect::<Vec<_>>().join("\n");
        Ok(Replay {
            task,
            access: access.clone(),
            connection: client::connect(access).await?,
            saved: BTreeMap::new(),
            watches: BTreeMap::new(),
            refused: BTreeMap::new(),
            bindings: Bindings::default(),
            names: if task.record { Placeholders::numbered() } else { Placeholders::marked() },
            raw_bodies,
            sent,
            outcome: Outcome { compared: 0, different: vec![] },
            recorded: BTreeMap::new(),
        })
    }

    async fn perform(&mut self, step: &Value) -> Result<()> {
        if let Some(seconds) = step.get("sleep") {
            let pause = if self.task.fast { Duration::ZERO } else { seconds_of(seconds) };
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        let watch = step.str_at(&["watch"]);
        if !watch.is_empty() {
            return self.open(watch, step).await;
        }
        let found = match (step.str_at(&["collect"]), self.missing_variable(step)) {
            (_, Some(variable)) => no_response(&variable),
            ("", None) => self.send(step).await?,
            (watch, None) => self.collect(watch, step).await?,
        };
        let mut found = without_descriptions(&found, &self.sent, "");
        self.outcome.compared += 1;
        if self.task.record {
            self.recorded.insert(step.str_at(&["id"]).to_owned(), found);
            return Ok(());
        }
        let of_file = step.get("answer").cloned().unwrap_or_default();
        let mut recorded = without_descriptions(&of_file, &self.sent, "");
        sort_unordered(&mut recorded, "");
        for path in ignored(step) {
            remove(if recorded.get("body").is_some() { recorded.get_mut("body") } else { Some(&mut recorded) }, path);
        }
        for response in [&mut recorded, &mut found] {
            without_ages(response);
            if !self.task.exact {
                without_list_versions(response);
            }
        }
        let found = self.bindings.rename(&recorded, &found);
        let have_none = recorded.get("error").is_some() && found.get("error").is_some();
        if recorded != found && !have_none { self.differs(step, &recorded, &found) } else { Ok(()) }
    }

    /// Notes and prints a difference.
    fn differs(&mut self, step: &Value, recorded: &Value, found: &Value) -> Result<()> {
        let difference = difflines::unified(&yaml::encode(recorded), &yaml::encode(found));
        let difference = difference.lines().take(limits::REPLAY_DIFFERENCE_LINES).collect::<Vec<_>>().join("\n");
        let [id, method, path] = ["id", "method", "path"].map(|field| step.str_at(&[field]));
        if self.task.output == TextOrJson::Text {
            let code = |of: &Value| of.get("status").map(|code| format!(" {}", code.to_json())).unwrap_or_default();
            let (before, now) = (code(recorded), code(found));
            let head = format!("{id}: recorded{before} (-), this server{now} (+)");
            logs::print(format!("{head}\n{difference}\n").as_bytes())?;
        }
        let request = format!("{method} {path}");
        self.outcome.different.push(json!({"id": id, "request": (request.trim()), "difference": difference}));
        Ok(())
    }

    /// Finds a variable of a request that no response had.
    fn missing_variable(&self, step: &Value) -> Option<String> {
        let mut texts = vec![step.str_at(&["path"]).to_owned(), step.str_at(&["text"]).to_owned()];
        texts.extend(["headers", "body"].iter().filter_map(|field| Some(step.get(field)?.to_json())));
        let names = texts.iter().flat_map(|text| text.split("${").skip(1).filter_map(|rest| rest.split_once('}')));
        let mut names = names.map(|(name, _)| name);
        names.find(|name| is_variable(name) && !self.saved.contains_key(*name)).map(str::to_owned)
    }

    fn substituted(&self, text: &str) -> String {
        let fill = |text: String, (name, saved): (&String, &String)| text.replace(&format!("${{{name}}}"), saved);
        self.saved.iter().fold(text.to_owned(), fill)
    }

    /// The method, the path, the headers and the body of a step.
    fn request(&self, step: &Value) -> Result<client::Request> {
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
            (_, _, Some(bytes)) => STANDARD.decode(bytes.as_str().unwrap_or_default())?,
            _ => vec![],
        };
        let default = [("Accept", "application/json"), ("User-Agent", "replay/1")];
        let mut headers: Vec<_> = default.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        if !body.is_empty() {
            let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        let of_step = || step.fields_at(&["headers"]);
        headers.retain(|(default, _)| !of_step().any(|(name, _)| default.eq_ignore_ascii_case(name)));
        // names that differ in case are one header with several values
        for (name, value) in of_step() {
            let value = self.substituted(value.as_str().unwrap_or_default());
            if !(value.is_empty() && name.eq_ignore_ascii_case("content-type")) {
                headers.push((name.to_string(), value));
            }
        }
        let path = self.substituted(step.str_at(&["path"]));
        Ok(client::Request { method, path, headers, body: body.into() })
    }

    /// The response to a step, which is repeated until it is as the step wants it.
    async fn send(&mut self, step: &Value) -> Result<Value> {
        let until = step.get("until").cloned().unwrap_or_default();
        let begun = clock::instant();
        let wanted = until.get("status");
        let patience = match until.get("seconds") {
            // the recording has what there was in the end
            _ if self.task.fast && wanted.is_some_and(|code| step.at(&["answer", "status"]) != Some(code)) => {
                Duration::ZERO
            }
            _ if until.is_null() => Duration::ZERO,
            Some(seconds) => seconds_of(seconds),
            None => limits::REPLAY_UNTIL,
        };
        loop {
            let request = self.request(step)?;
            let mut response = self.connection.exchange(request).await?;
            let bytes = response.rest().await?;
            if response.closes() {
                self.connection = client::connect(&self.access).await?;
            }
            let text = String::from_utf8_lossy(&bytes);
            let is_as_wanted = wanted.and_then(Value::as_int).is_none_or(|code| code == response.code())
                && text.contains(until.str_at(&["has"]))
                && until.get("lacks").and_then(Value::as_str).is_none_or(|lacks| !text.contains(lacks));
            if is_as_wanted || begun.elapsed() >= patience {
                return self.response(step, &response, &bytes);
            }
            tokio::time::sleep(limits::REPLAY_LOOK).await;
        }
    }

    fn response(&mut self, step: &Value, response: &Streamed, bytes: &[u8]) -> Result<Value> {
        let (mut body, mut absent) = (decoded(bytes), None);
        for (variable, path) in step.fields_at(&["save"]) {
            let path = path.as_str().unwrap_or_default();
            match lookup(&body, path) {
                Some(value) => {
                    let text = value.as_str().map_or_else(|| value.to_json(), str::to_owned);
                    self.saved.insert(variable.to_string(), text);
                }
                // later steps miss the variable as well
                None => absent = Some(variable),
            }
        }
        if let Some(absent) = absent
            && (self.task.exact || self.task.record)
        {
            return Ok(no_response(absent));
        }
        ignored(step).for_each(|path| remove(Some(&mut body), path));
        if step.get("protobuf").is_some()
            && let Some(fields) = protobuf::comparable(bytes)
        {
            // without --exact, fields of types that this command does not know count as the recorded ones
            let recorded = || step.at(&["answer", "body"]).cloned().unwrap_or_default();
            body = if self.task.exact || self.task.record { fields } else { recorded() };
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

    async fn open(&mut self, watch: &str, step: &Value) -> Result<()> {
        let request = self.request(step)?;
        let mut connection = client::connect(&self.access).await?;
        let mut stream = connection.exchange(request).await?;
        if stream.code() != 200 {
            let body = decoded(&stream.rest().await?);
            self.refused.insert(watch.to_owned(), json!({"status": (stream.code()), "body": body}));
        }
        let events = Events { _connection: connection, stream, received: vec![], has_ended: false };
        self.watches.insert(watch.to_owned(), events);
        Ok(())
    }

    /// The next events of a watch: as many as were asked for, or those of the time that is given.
    async fn collect(&mut self, watch: &str, step: &Value) -> Result<Value> {
        if let Some(mut response) = self.refused.remove(watch) {
            ignored(step).for_each(|path| remove(Some(&mut response), path));
            return Ok(json!([(normalized(&response, &mut self.names, ""))]));
        }
        let events = self.watches.get_mut(watch).ok_or_else(|| format!("there is no watch {watch:?}"))?;
        let wanted = step.get("events").and_then(Value::as_int).and_then(|count| usize::try_from(count).ok());
        let mut until = clock::instant() + step.get("seconds").map_or(limits::REPLAY_EVENTS, seconds_of);
        let recorded = step.items_at(&["answer"]);
        let with_end = self.task.exact || self.task.record;
        let with_bookmarks = with_end || recorded.iter().any(is_bookmark);
        let mut found = vec![];
        while wanted.is_none_or(|wanted| found.len() < wanted) {
            if self.task.fast && found.len() == recorded.len() {
                until = until.min(clock::instant() + limits::REPLAY_QUIET);
            }
            let Ok(line) = tokio::time::timeout_at(until, events.line()).await else { break };
            // lines of a watch that is printed prettily are no events, and end it for clients
            let event = line.transpose()?.and_then(|line| machinery::value::decode(&line).ok());
            let Some(event) = event else {
                if with_end && !std::mem::replace(&mut events.has_ended, true) {
                    found.push(Value::from("<closed>"));
                }
                break;
            };
            if with_bookmarks || !is_bookmark(&event) {
                found.push(event);
            }
        }
        for path in ignored(step) {
            found.iter_mut().for_each(|event| remove(Some(event), path.trim_start_matches("*.")));
        }
        Ok(found.iter().map(|event| normalized(event, &mut self.names, "")).collect())
    }
}

impl Events {
    /// The next line; `None` at the end. What was received is kept if this is dropped.
    async fn line(&mut self) -> Option<Result<Vec<u8>, client::Error>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(end + 1);
                return Some(Ok(std::mem::replace(&mut self.received, rest)));
            }
            match self.stream.next().await {
                Ok(Some(bytes)) => self.received.extend_from_slice(&bytes),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The paths of a step that are not compared.
fn ignored(step: &Value) -> impl Iterator<Item = &str> {
    step.items_at(&["ignore"]).iter().filter_map(Value::as_str)
}

/// The response to a step that needs a value which no response had: it is not sent.
fn no_response(variable: &str) -> Value {
    json!({"error": (format!("no response had the value of ${{{variable}}}"))})
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
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
