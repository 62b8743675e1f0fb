//! Offline verdicts are those of kube-apiserver: every create and every replacement of the recorded scenarios is asked for as a
//! dry run of the engine, before the recorded request is sent to the same engine. Status, message and warnings are compared.
//!
//! Every POST and PUT of a scenario is either compared or counted under the reason why it is not (`Skipped`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use machinery::{Release, Value, value};
use offline::engine::{Content, Engine, Options, RequestOptions, Verdict};

/// The fewest requests that have to be compared: a test that compares nothing proves nothing.
const COMPARED_MIN: usize = 7_500;

/// The feature gates of kinds that are off by default, as the black-box tests of these scenarios set them.
const GATES: [&str; 6] = [
    "GenericWorkload=true",
    "CompositePodGroup=true",
    "EvictionRequestAPI=true",
    "TopologyAwareWorkloadScheduling=true",
    "PodGroupPreemptionPolicy=true",
    "DRAWorkloadResourceClaims=true",
];

/// The scenarios, with what they were recorded from.
fn scenarios() -> Vec<(PathBuf, Options)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts");
    let of_release = Release::ALL.map(|release| (root.join("recorded").join(release.to_string()), release));
    let newest = [root.clone(), root.join("switched")].map(|folder| (folder, Release::NEWEST));
    let mut found = vec![];
    for (folder, release) in of_release.into_iter().chain(newest) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "json") {
                let switches =
                    if path.to_string_lossy().contains("/switched/") { switches(&path) } else { Options::default() };
                found.push((path, Options { release, ..switches }));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// The switches of the server from which a scenario was recorded.
fn switches(path: &Path) -> Options {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let gated = ["workloads", "podgroups", "compositepodgroups", "evictionrequests", "evictions"];
    let mut options = Options::default();
    match &*name {
        "gated-groups" => options.feature_gates = texts(&["GenericWorkload=true", "EvictionRequestAPI=true"]),
        "shards" => options.feature_gates = texts(&["ShardedListAndWatch=true"]),
        name if gated.iter().any(|kind| name.starts_with(&format!("kinds-{kind}-"))) => {
            options.feature_gates = texts(&GATES)
        }
        // the plugins that these are about look for objects of a cluster
        name if name.starts_with("plugin-") => options.is_bare = true,
        _ => {}
    }
    if name.starts_with("kinds-") || name == "gated-groups" {
        options.runtime_config = texts(&["api/all=true"]);
    }
    options
}

/// Why a request is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Skipped {
    /// The body is no text, or not one of an object: what the engine is asked about is an object of a manifest.
    NoObject,
    /// The query has options that manifests cannot ask for: field managers, invalid options, `dryRun` of other values.
    Query,
    /// Headers other than the media types of body and response: users, patches, encodings.
    Headers,
    /// A media type that is not that of a manifest, or a response in a form that is not acceptable.
    MediaType,
    /// The kind is not served, which validation reports in words of its own.
    NotServed,
    /// The path is not that of the object: another kind, another namespace, or a subresource.
    OtherPath,
    /// The namespace does not exist. To the engine, every namespace that is named exists.
    MissingNamespace,
    /// The object to replace does not exist, so that it would be a create.
    NothingToReplace,
    /// One of `EXCEPTIONS`.
    Exception,
}

/// What became of the requests of a scenario.
#[derive(Default)]
struct Tally {
    compared: usize,
    /// The number of compared responses with warnings.
    warned: usize,
    skipped: BTreeMap<Skipped, usize>,
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
        if method == "POST" || method == "PUT" {
            match self.compare(name, step, &path, &text).await {
                Ok(()) => self.tally.compared += 1,
                Err(why) => *self.tally.skipped.entry(why).or_default() += 1,
            }
        }
        let code = step.at(&["answer", "status"]).and_then(Value::as_int);
        if code == Some(406) || code == Some(415) {
            // the engine sends no Accept of its own, so that it would write what the server has not
            return;
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

    /// Compares the verdict on the object of a create or of a replacement with the recorded response.
    async fn compare(&mut self, name: &str, step: &Value, path: &str, text: &str) -> Result<(), Skipped> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if !["", "fieldValidation=Strict", "fieldValidation=Warn", "fieldValidation=Ignore", "dryRun=All"]
            .contains(&query)
        {
            return Err(Skipped::Query);
        }
        let response = step.get("answer").cloned().unwrap_or_default();
        let code = response.get("status").and_then(Value::as_int).unwrap_or_default();
        let media_type = media_type(step, code)?;
        let object = match media_type {
            "application/json" => value::decode(text.as_bytes()).ok(),
            _ => machinery::yaml::decode(text.as_bytes()).ok().map(|decoded| decoded.value),
        };
        let object = object.filter(|object| object.as_object().is_some()).ok_or(Skipped::NoObject)?;
        let target = self.engine.target(&object).ok_or(Skipped::NotServed)?;
        let is_update = step.str_at(&["method"]) == "PUT";
        let at = target.path("");
        let collection = at.rsplit_once('/').map_or("", |(collection, _)| collection);
        let is_generated = object.str_at(&["metadata", "name"]).is_empty();
        let own = if is_update || is_generated { at.as_str() } else { collection };
        if own != path || is_update && is_generated {
            return Err(Skipped::OtherPath);
        }
        let id = step.str_at(&["id"]);
        let is_exception =
            |(scenario, step, _): &(&str, &str, &str)| name.ends_with(scenario) && (step.is_empty() || *step == id);
        if EXCEPTIONS.iter().any(is_exception) {
            return Err(Skipped::Exception);
        }
        if is_missing_namespace(&response) {
            return Err(Skipped::MissingNamespace);
        }
        if is_update && !self.engine.get(&target).await.is_good() {
            return Err(Skipped::NothingToReplace);
        }
        let content = Content::new(text.to_owned(), media_type);
        let options = RequestOptions { strict: query.ends_with("Strict"), ..RequestOptions::dry() };
        let mut verdict = match is_update {
            true => self.engine.update(&target, "", content, &options).await,
            false => self.engine.create(&target, content, &options).await,
        };
        if query.ends_with("Ignore") {
            // the engine asks for warnings
            verdict
                .warnings
                .retain(|text| !text.starts_with("unknown field ") && !text.starts_with("duplicate field "));
        }
        self.differs(format!("{name}: {id}"), &response, &verdict);
        Ok(())
    }

    /// Notes a verdict that differs from a recorded response.
    fn differs(&mut self, place: String, response: &Value, verdict: &Verdict) {
        let code = response.get("status").and_then(Value::as_int).unwrap_or_default();
        let message = response.str_at(&["body", "message"]);
        // a message that differs from run to run is not recorded
        let is_stable = !message.is_empty() && !message.contains("<uid:") && !message.contains("<rv:");
        let shown = |text: &str| if is_stable { comparable(text) } else { vec![] };
        let recorded = ((code >= 400).then(|| (code, shown(message))), warnings(response));
        let mut found = verdict.warnings.clone();
        found.sort();
        self.tally.warned += usize::from(!found.is_empty());
        let found = (verdict.error().map(|(code, message)| (i64::from(code), shown(message))), found);
        if recorded != found {
            self.tally.differences.push(format!("{place}\n  recorded {recorded:?}\n  found    {found:?}"));
        }
    }
}

/// The media type of the body of a request, if it is that of manifests and nothing else about its headers matters.
fn media_type(step: &Value, code: i64) -> Result<&'static str, Skipped> {
    let headers = step.get("headers").and_then(Value::as_object).into_iter().flat_map(machinery::Map::iter);
    let is_known = |name: &str| ["content-type", "accept"].iter().any(|known| name.eq_ignore_ascii_case(known));
    if !headers.into_iter().all(|(name, _)| is_known(name)) {
        return Err(Skipped::Headers);
    }
    if code == 406 || code == 415 {
        return Err(Skipped::MediaType);
    }
    match header(step, "content-type") {
        "" | "application/json" => Ok("application/json"),
        "application/yaml" => Ok("application/yaml"),
        _ => Err(Skipped::MediaType),
    }
}

/// The texts of the warnings of a recorded response, sorted.
fn warnings(response: &Value) -> Vec<String> {
    let headers = response.get("headers").and_then(|headers| headers.get("warning"));
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

/// Requests whose verdict differs by design: scenario, step, reason.
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

async fn replay(path: PathBuf, options: Options) -> Tally {
    let text = std::fs::read_to_string(&path).unwrap();
    let release = options.release;
    let engine = Engine::start(&options).await.unwrap();
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
        for (path, options) in scenarios() {
            let turns = turns.clone();
            all.push(base::task::spawn("scenario", async move {
                let _turn = turns.acquire().await.unwrap();
                replay(path, options).await
            }));
        }
        for scenario in all {
            let tally = scenario.await.unwrap();
            total.compared += tally.compared;
            total.warned += tally.warned;
            tally.skipped.into_iter().for_each(|(why, count)| *total.skipped.entry(why).or_default() += count);
            total.differences.extend(tally.differences);
        }
    });
    let differences = total.differences.len();
    assert!(differences == 0, "{differences} of {} verdicts differ:\n{}", total.compared, total.differences.join("\n"));
    println!("{} compared, {} of them with warnings; not compared: {:?}", total.compared, total.warned, total.skipped);
    assert!(total.compared >= COMPARED_MIN, "only {} verdicts were compared", total.compared);
}
