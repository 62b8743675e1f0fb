//! Offline verdicts are those of kube-apiserver: every create of the recorded scenarios is asked for as a dry run of the
//! engine, before the recorded request is sent to the same engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use machinery::{Release, Value, value};
use offline::engine::{Content, Engine, Options, RequestOptions};

/// The fewest creates that have to be compared: a test that compares nothing proves nothing.
const COMPARED_MIN: usize = 6_500;

/// The scenarios of a folder, and the release that they were recorded from.
fn scenarios() -> Vec<(PathBuf, Release)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts");
    let of_release = Release::ALL.map(|release| (root.join("recorded").join(release.to_string()), release));
    let mut found = vec![];
    for (folder, release) in of_release.into_iter().chain([(root, Release::NEWEST)]) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "json") {
                found.push((path, release));
            }
        }
    }
    found.sort();
    found
}

/// What became of the creates of a scenario.
#[derive(Default)]
struct Tally {
    compared: usize,
    differences: Vec<String>,
}

/// A scenario in progress.
struct Replay {
    engine: Engine,
    saved: BTreeMap<String, String>,
    tally: Tally,
}

impl Replay {
    /// A text with the values of its variables.
    fn substituted(&self, text: &str) -> String {
        let fill = |text: String, (name, saved): (&String, &String)| text.replace(&format!("${{{name}}}"), saved);
        self.saved.iter().fold(text.to_owned(), fill)
    }

    async fn step(&mut self, name: &str, line: &str) {
        let step = &value::decode(line.as_bytes()).unwrap();
        let method = step.str_at(&["method"]);
        // reads change nothing, and watches have no end
        if method.is_empty() || step.at(&["watch"]).is_some() || method == "GET" && step.get("save").is_none() {
            return;
        }
        let path = self.substituted(step.str_at(&["path"]));
        let text = match step.get("body") {
            Some(_) => body(line).to_owned(),
            None => step.str_at(&["text"]).to_owned(),
        };
        let text = self.substituted(&text);
        if method == "POST" {
            self.compare(name, step, &path, &text).await;
        }
        let media_type = match header(step, "content-type") {
            "" if text.is_empty() => "",
            "" if method == "PATCH" => "application/merge-patch+json",
            "" => "application/json",
            other => Box::leak(other.to_owned().into_boxed_str()),
        };
        let content = Content::new(text, media_type);
        let method = http::Method::from_bytes(method.as_bytes()).unwrap();
        let verdict = self.engine.call(method, &path, content, &RequestOptions::default()).await;
        let Some(Value::Object(variables)) = step.get("save") else { return };
        let response = verdict.object().unwrap_or_default();
        for (name, place) in variables.iter() {
            let steps: Vec<&str> = place.as_str().unwrap_or_default().split('.').collect();
            self.saved.insert(name.to_string(), response.str_at(&steps).to_owned());
        }
    }

    /// Compares the verdict on the object of a create with the recorded response.
    async fn compare(&mut self, name: &str, step: &Value, path: &str, text: &str) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let is_plain = ["", "fieldValidation=Strict", "fieldValidation=Warn", "fieldValidation=Ignore", "dryRun=All"]
            .contains(&query);
        let headers = step.get("headers").and_then(Value::as_object).map_or(0, |headers| headers.iter().count());
        let of_type = usize::from(header(step, "content-type") == "application/json");
        let Ok(object) = value::decode(text.as_bytes()) else { return };
        let Some(target) = self.engine.target(&object).filter(|_| is_plain && headers == of_type) else { return };
        let is_generated = object.str_at(&["metadata", "name"]).is_empty();
        let at = target.path("");
        let collection =
            if is_generated { at.as_str() } else { at.rsplit_once('/').map_or("", |(collection, _)| collection) };
        let id = step.str_at(&["id"]);
        let is_exception =
            |(scenario, step, _): &(&str, &str, &str)| name.ends_with(scenario) && (step.is_empty() || *step == id);
        if collection != path || EXCEPTIONS.iter().any(is_exception) {
            return;
        }
        let response = step.get("answer").cloned().unwrap_or_default();
        if is_missing_namespace(&response) {
            return;
        }
        let options = RequestOptions { strict: query.ends_with("Strict"), ..RequestOptions::dry() };
        let verdict = self.engine.create(&target, Content::json(text.to_owned()), &options).await;
        let code = response.get("status").and_then(Value::as_int).unwrap_or_default();
        let message = response.str_at(&["body", "message"]);
        // a message that differs from run to run is not recorded
        let is_stable = !message.is_empty() && !message.contains("<uid:") && !message.contains("<rv:");
        let shown = |text: &str| if is_stable { comparable(text) } else { vec![] };
        let recorded = (code >= 400).then(|| (code, shown(message)));
        let found = verdict.error().map(|(code, message)| (i64::from(code), shown(message)));
        self.tally.compared += 1;
        if recorded != found {
            self.tally.differences.push(format!("{name}: {id}\n  recorded {recorded:?}\n  found    {found:?}"));
        }
    }
}

/// Creates whose verdict differs by design: scenario, step, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("/bound-tokens", "", "the engine issues no tokens"),
    ("/plugin-priority", "second-default", "the plugin Priority is off, since it looks for objects of a cluster"),
    ("/crd-deletion", "again", "no controller removes a CRD that is being deleted"),
    ("/crd-deletion", "same-name-free", "follows from again"),
    ("/crd-deletion", "create-allowed-again", "follows from again"),
    ("/read-watch-end", "define-again", "no controller removes a CRD that is being deleted"),
    ("/crd-storedversions", "same-name-exists", "a dry run of kube-apiserver does not find what it cannot decode"),
    ("/crd-versions", "metadata-rv-given", "a dry run of kube-apiserver accepts a resourceVersion"),
    ("/crud-system", "resource-version-stored", "a dry run of kube-apiserver accepts a resourceVersion"),
    ("/crud-system", "configmap-resource-version", "a dry run of kube-apiserver accepts a resourceVersion"),
    ("/crud-namespaces", "create-default", "a namespace exists as soon as a request names it"),
];

/// Whether a create was refused because its namespace does not exist. To the engine, every namespace that is named exists.
fn is_missing_namespace(response: &Value) -> bool {
    let message = response.str_at(&["body", "message"]);
    message.starts_with("namespaces \"") && message.ends_with("\" not found")
}

/// A header that a step sends; empty if it does not.
fn header<'a>(step: &'a Value, name: &str) -> &'a str {
    let headers = step.get("headers").and_then(Value::as_object).into_iter().flat_map(machinery::Map::iter);
    let mut found = headers.filter(|(key, _)| key.eq_ignore_ascii_case(name)).filter_map(|(_, value)| value.as_str());
    found.next().unwrap_or_default()
}

/// The words of a message, whose causes may be in another order.
fn comparable(message: &str) -> Vec<String> {
    let mut words: Vec<String> =
        message.split([' ', ',', '[', ']']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.sort();
    words
}

/// The body of a step as it was sent, with its numbers and the order of its fields.
fn body(line: &str) -> &str {
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

async fn replay(path: PathBuf, release: Release) -> Tally {
    let text = std::fs::read_to_string(&path).unwrap();
    let engine = Engine::start(&Options { release, ..Options::default() }).await.unwrap();
    let mut replay = Replay { engine, saved: BTreeMap::new(), tally: Tally::default() };
    let name = format!("{release}/{}", path.file_stem().unwrap_or_default().to_string_lossy());
    let scenario = value::decode(text.as_bytes()).unwrap();
    // one step per line
    let lines = text.lines().map(|line| line.trim().trim_end_matches(','));
    let lines: Vec<&str> = lines.filter(|line| line.starts_with('{') && line.ends_with('}')).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| value::decode(line.as_bytes()).is_ok()).collect();
    assert_eq!(lines.len(), scenario.items_at(&["steps"]).len(), "{name}: a step has several lines");
    for line in lines {
        replay.step(&name, line).await;
    }
    replay.tally
}

#[test]
fn verdicts_are_those_of_kube_apiserver() {
    let runtime = offline::engine::runtime().unwrap();
    let turns = Arc::new(tokio::sync::Semaphore::new(4));
    let mut total = Tally::default();
    runtime.block_on(async {
        let mut all = vec![];
        for (path, release) in scenarios() {
            let turns = turns.clone();
            all.push(base::task::spawn("scenario", async move {
                let _turn = turns.acquire().await.unwrap();
                replay(path, release).await
            }));
        }
        for scenario in all {
            let tally = scenario.await.unwrap();
            total.compared += tally.compared;
            total.differences.extend(tally.differences);
        }
    });
    let differences = total.differences.len();
    assert!(differences == 0, "{differences} of {} verdicts differ:\n{}", total.compared, total.differences.join("\n"));
    assert!(total.compared >= COMPARED_MIN, "only {} verdicts were compared", total.compared);
}
