//! Offline verdicts are those of kube-apiserver: every write of the recorded scenarios that an offline command speaks of is asked
//! for as a dry run of the engine, before the recorded request is sent to the same engine. Status, message and warnings are compared,
//! and the result of an apply.
//!
//! A create is what `pintle validate` does, a replacement and a patch are what it does with `--old`, and a server-side apply is
//! `pintle object apply`. Every POST, PUT, PATCH and DELETE of a scenario is either compared or counted under the reason why it is not
//! (`Skipped`).

mod patches;
mod recorded;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Method;
use machinery::value::Decoded;
use machinery::{Release, Value, value, yaml};
use offline::engine::{Caller, Content, Engine, FieldValidation, Options, Patch, RequestOptions, User, Verdict};
use recorded::{Response, body, comparable, escaped, header};

/// The fewest requests that have to be compared: a test that compares nothing proves nothing.
const COMPARED_MIN: [(Compared, usize); 4] =
    [(Compared::Create, 7_500), (Compared::Update, 950), (Compared::Patch, 2_300), (Compared::Apply, 1_200)];

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
    // those of plugins first: some of their requests wait for ten seconds, beside the others
    found.sort_by(|a, b| b.0.cmp(&a.0));
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
    /// A key is given twice: commands other than `pintle validate` take the last value.
    Duplicates,
    /// The query has options that manifests cannot ask for: invalid options, `dryRun` of other values, an apply without a field
    /// manager.
    Query,
    /// Headers other than the media types of body and response: users, encodings.
    Headers,
    /// A media type that is not that of a manifest or of a patch, or a response in a form that is not acceptable.
    MediaType,
    /// The kind is not served, which validation reports in words of its own.
    NotServed,
    /// The path is not that of the object: another kind, another namespace, or a subresource.
    OtherPath,
    /// The namespace does not exist. To the engine, every namespace that is named exists.
    MissingNamespace,
    /// The object to replace or to patch does not exist, so that it would be a create.
    NothingToReplace,
    /// The patch is wrong, or does not fit the object: there is no object to validate.
    WrongPatch,
    /// The patched object cannot be decoded, which is worded as an error of the patch.
    UndecodablePatched,
    /// The patch says which revision or which object it is for.
    Precondition,
    /// No command speaks of deletions.
    Deletion,
    /// One of `EXCEPTIONS`.
    Exception,
}

/// What a request was compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Compared {
    Create,
    Update,
    /// The update from the stored object to the patched one.
    Patch,
    Apply,
}

/// What became of the requests of a scenario.
#[derive(Default)]
struct Tally {
    compared: BTreeMap<Compared, usize>,
    /// The number of compared responses with warnings.
    warned: usize,
    /// The number of compared objects.
    objects: usize,
    skipped: BTreeMap<Skipped, usize>,
    differences: Vec<String>,
}

/// A scenario in progress.
struct Replay {
    name: String,
    engine: Engine,
    /// The user of the recorded requests.
    caller: Caller,
    saved: BTreeMap<String, String>,
    tally: Tally,
}

/// A request of a scenario.
struct Request<'s> {
    step: &'s Value,
    path: &'s str,
    options: RequestOptions,
    /// Whether unknown fields are ignored.
    is_lenient: bool,
    text: &'s str,
    response: Response<'s>,
}

impl Replay {
    /// A text with the values of its variables.
    fn substituted(&self, text: &str) -> String {
        let fill = |text: String, (name, saved): (&String, &String)| text.replace(&format!("${{{name}}}"), saved);
        self.saved.iter().fold(text.to_owned(), fill)
    }

    async fn step(&mut self, line: &str) {
        let step = &value::decode(line.as_bytes()).unwrap();
        let method = step.str_at(&["method"]);
        // reads change nothing, and watches have no end
        if method.is_empty() || step.at(&["watch"]).is_some() || method == "GET" && step.get("save").is_none() {
            return;
        }
        let path = self.substituted(step.str_at(&["path"]));
        let text = match step.get("body") {
            Some(_) => escaped(body(line)),
            None => step.str_at(&["text"]).to_owned(),
        };
        let text = self.substituted(&text);
        if method != "GET" {
            match self.compare(step, &path, &text).await {
                Ok(what) => *self.tally.compared.entry(what).or_default() += 1,
                Err(why) => *self.tally.skipped.entry(why).or_default() += 1,
            }
        }
        let code = Response::of(step).code();
        if code == 406 || code == 415 {
            // the engine sends no Accept of its own, so that it would write what the server has not
            return;
        }
        let media_type = match header(step, "content-type") {
            "" if text.is_empty() => "",
            "" if method == "PATCH" => "application/merge-patch+json",
            "" => "application/json",
            other => Box::leak(other.to_owned().into_boxed_str()),
        };
        let mut options = RequestOptions { caller: Some(self.caller.clone()), ..RequestOptions::default() };
        if !path.contains("fieldManager=") && !media_type.contains("apply-patch") {
            // the user agent of the recorded requests
            options.field_manager = "replay".to_owned();
        }
        let content = Content::new(text, media_type);
        let method = http::Method::from_bytes(method.as_bytes()).unwrap();
        let verdict = self.engine.call(method, &path, content, &options).await;
        let Some(Value::Object(variables)) = step.get("save") else { return };
        let response = verdict.object().unwrap_or_default();
        for (name, place) in variables.iter() {
            let steps: Vec<&str> = place.as_str().unwrap_or_default().split('.').collect();
            self.saved.insert(name.to_string(), response.str_at(&steps).to_owned());
        }
    }

    /// Compares the verdict on the object of a request with the recorded response.
    async fn compare(&mut self, step: &Value, path: &str, text: &str) -> Result<Compared, Skipped> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (mut options, is_lenient) = options(query).ok_or(Skipped::Query)?;
        options.caller = Some(self.caller.clone());
        let is_apply = header(step, "content-type").contains("apply-patch");
        if query.contains("force=") && !is_apply || options.field_manager.is_empty() && is_apply {
            return Err(Skipped::Query);
        }
        let response = Response::of(step);
        has_plain_headers(step)?;
        if [406, 415].contains(&response.code()) {
            return Err(Skipped::MediaType);
        }
        let id = step.str_at(&["id"]);
        let is_exception = |(scenario, step, _): &(&str, &str, &str)| {
            self.name.ends_with(scenario) && (step.is_empty() || *step == id)
        };
        if EXCEPTIONS.iter().any(is_exception) {
            return Err(Skipped::Exception);
        }
        if response.is_missing_namespace() {
            return Err(Skipped::MissingNamespace);
        }
        let request = Request { step, path, options, is_lenient, text, response };
        match (step.str_at(&["method"]), header(step, "content-type")) {
            ("PATCH", "application/apply-patch+yaml") => self.compare_apply(request).await,
            ("PATCH", media_type) => match patches::Kind::of(media_type) {
                Some(kind) => self.compare_patch(request, kind).await,
                None => Err(Skipped::MediaType),
            },
            ("DELETE", _) => Err(Skipped::Deletion),
            _ => self.compare_write(request).await,
        }
    }

    /// A create or a replacement.
    async fn compare_write(&mut self, request: Request<'_>) -> Result<Compared, Skipped> {
        let (media_type, object) = match header(request.step, "content-type") {
            "" | "application/json" => ("application/json", value::decode(request.text.as_bytes()).ok()),
            "application/yaml" => {
                ("application/yaml", yaml::decode(request.text.as_bytes()).ok().map(|decoded| decoded.value))
            }
            _ => return Err(Skipped::MediaType),
        };
        let object = object.filter(|object| object.as_object().is_some()).ok_or(Skipped::NoObject)?;
        let target = self.engine.target(&object).ok_or(Skipped::NotServed)?;
        let is_update = request.step.str_at(&["method"]) == "PUT";
        let at = target.path("");
        let collection = at.rsplit_once('/').map_or("", |(collection, _)| collection);
        let is_generated = object.str_at(&["metadata", "name"]).is_empty();
        let own = if is_update || is_generated { at.as_str() } else { collection };
        if own != request.path || is_update && is_generated {
            return Err(Skipped::OtherPath);
        }
        if is_update && !self.engine.get(&target).await.is_good() {
            return Err(Skipped::NothingToReplace);
        }
        let content = Content::new(request.text.to_owned(), media_type);
        let verdict = match is_update {
            true => self.engine.update(&target, "", content, &request.options).await,
            false => self.engine.create(&target, content, &request.options).await,
        };
        self.differs(&request, verdict);
        Ok(if is_update { Compared::Update } else { Compared::Create })
    }

    /// A server-side apply is what `pintle object apply` does: the result is compared, too.
    async fn compare_apply(&mut self, request: Request<'_>) -> Result<Compared, Skipped> {
        let Decoded { value: configuration, duplicates } =
            yaml::decode(request.text.as_bytes()).map_err(|_| Skipped::NoObject)?;
        if !duplicates.is_empty() {
            return Err(Skipped::Duplicates);
        }
        if configuration.as_object().is_none() {
            return Err(Skipped::NoObject);
        }
        let target = self.engine.target(&configuration).ok_or(Skipped::NotServed)?;
        if target.path("") != request.path || target.name().is_empty() {
            return Err(Skipped::OtherPath);
        }
        let verdict = self.engine.patch(&target, "", Patch::Apply, &configuration, &request.options).await;
        if let Ok(found) = verdict.object()
            && request.response.code() < 400
            && header(request.step, "accept").is_empty()
        {
            self.tally.objects += 1;
            if !request.response.is_object(&found) {
                let (place, recorded) = (self.place(&request), request.response.body());
                let found = found.to_json();
                self.tally.differences.push(format!("{place}\n  recorded {recorded}\n  found    {found}"));
            }
        }
        self.differs(&request, verdict);
        Ok(Compared::Apply)
    }

    /// Any other patch is an update to what it makes of the stored object.
    async fn compare_patch(&mut self, request: Request<'_>, kind: patches::Kind) -> Result<Compared, Skipped> {
        let stored = self.engine.call(Method::GET, request.path, Content::default(), &RequestOptions::default()).await;
        let stored = stored.object().map_err(|_| Skipped::NothingToReplace)?;
        let target = self.engine.target(&stored).ok_or(Skipped::OtherPath)?;
        if target.path("") != request.path {
            return Err(Skipped::OtherPath);
        }
        let patched = patches::patched(&stored, kind, request.text).ok_or(Skipped::WrongPatch)?;
        if self.engine.target(&patched).is_none_or(|target| target.path("") != request.path) {
            return Err(Skipped::OtherPath);
        }
        let differs = |field: &str| stored.at(&["metadata", field]) != patched.at(&["metadata", field]);
        if differs("resourceVersion") || differs("uid") {
            return Err(Skipped::Precondition);
        }
        let verdict = self.engine.update(&target, "", &patched, &request.options).await;
        let (code, message) = (request.response.code(), request.response.message());
        let is_worded_so = message.is_empty() || message.contains("is invalid: patch: Invalid value: ");
        if code == 422 && is_worded_so && verdict.error().is_some_and(|(code, _)| code == 400) {
            return Err(Skipped::UndecodablePatched);
        }
        self.differs(&request, verdict);
        Ok(Compared::Patch)
    }

    fn place(&self, request: &Request) -> String {
        format!("{}: {}", self.name, request.step.str_at(&["id"]))
    }

    /// Notes a verdict that differs from a recorded response.
    fn differs(&mut self, request: &Request, mut verdict: Verdict) {
        if request.is_lenient {
            // the engine asks for warnings
            verdict.warnings.retain(|text| !is_about_fields(text));
        }
        let response = &request.response;
        let (code, message) = (response.code(), response.message());
        // a message that differs from run to run is not recorded
        let is_stable = !message.is_empty() && !["<uid:", "<rv:", "<echoed>"].iter().any(|part| message.contains(part));
        let shown = |text: &str| if is_stable { comparable(text) } else { vec![] };
        let recorded = ((code >= 400).then(|| (code, shown(message))), response.warnings());
        let mut warnings = verdict.warnings.clone();
        warnings.sort();
        self.tally.warned += usize::from(!warnings.is_empty());
        let found = (verdict.error().map(|(code, message)| (i64::from(code), shown(message))), warnings);
        if recorded != found {
            let place = self.place(request);
            self.tally.differences.push(format!("{place}\n  recorded {recorded:?}\n  found    {found:?}"));
        }
    }
}

/// Whether a warning is about an unknown or a duplicate field.
fn is_about_fields(warning: &str) -> bool {
    let begins = ["unknown field ", "duplicate field "].iter().any(|begin| warning.starts_with(begin));
    begins || warning.ends_with(" already set in map")
}

/// The options of a query, and whether unknown fields are ignored; `None` if there are others than manifests can ask for.
fn options(query: &str) -> Option<(RequestOptions, bool)> {
    let mut options = RequestOptions { fields: FieldValidation::Warn, ..RequestOptions::dry() };
    let mut is_lenient = false;
    let mut given = vec![];
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=')?;
        if given.contains(&name) {
            return None;
        }
        given.push(name);
        match (name, value) {
            ("fieldValidation", "Strict") => options.fields = FieldValidation::Strict,
            ("fieldValidation", "Ignore") => is_lenient = true,
            ("fieldValidation", "Warn") | ("dryRun", "All") | ("force", "false") => {}
            ("force", "true") => options.force = true,
            ("fieldManager", manager) if is_plain(manager) => options.field_manager = manager.to_owned(),
            _ => return None,
        }
    }
    Some((options, is_lenient))
}

/// Whether a field manager is one that a command takes, without escapes.
fn is_plain(manager: &str) -> bool {
    !manager.is_empty()
        && manager.len() <= 128
        && manager.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// Nothing but the media types matters about the headers of a request.
fn has_plain_headers(step: &Value) -> Result<(), Skipped> {
    let mut headers = step.fields_at(&["headers"]);
    let is_known = |name: &str| ["content-type", "accept"].iter().any(|known| name.eq_ignore_ascii_case(known));
    if headers.all(|(name, _)| is_known(name)) { Ok(()) } else { Err(Skipped::Headers) }
}

/// Requests whose verdict differs by design: scenario, step, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("/bound-tokens", "", "the engine issues no tokens"),
    (
        "/differ-corners-2",
        "keys-of-maps",
        "unknown fields below keys of maps have other paths in strategic merge patches",
    ),
    ("/built-in-lists", "flow-apply", "no controller sets conditions"),
    ("/crud-owners", "patch-owner-duplicate", "the warning is worded for patches"),
    ("/patch-apply-builtin", "namespace-dry-run", "the engine creates the namespace default itself"),
    (
        "/patch-terminating",
        "apply-to-existing",
        "no controller deletes the objects of a namespace that is being deleted",
    ),
    ("/service-allocations", "taken-address", "a dry run allocates nothing"),
    ("/plugin-priority", "second-default", "the plugin Priority is off, since it looks for objects of a cluster"),
    ("/plugin-priority", "made-default", "the same"),
    ("/crd-deletion", "again", "no controller removes a CRD that is being deleted"),
    ("/crd-deletion", "same-name-free", "follows from again"),
    ("/crd-deletion", "create-allowed-again", "follows from again"),
    ("/crd-deletion", "crd-own-finalizer", "follows from again"),
    ("/crd-deletion", "new-finalizer-refused", "no controller deletes the instances of a CRD that is being deleted"),
    ("/read-watch-end", "define-again", "no controller removes a CRD that is being deleted"),
    ("/crd-storedversions", "same-name-exists", "a dry run of kube-apiserver does not find what it cannot decode"),
    ("/crd-versions", "metadata-rv-given", "a dry run of kube-apiserver accepts a resourceVersion"),
    ("/crud-system", "resource-version-stored", "a dry run of kube-apiserver accepts a resourceVersion"),
    ("/crud-system", "configmap-resource-version", "a dry run of kube-apiserver accepts a resourceVersion"),
    ("/crud-namespaces", "create-default", "a namespace exists as soon as a request names it"),
];

async fn replay(path: PathBuf, options: Options) -> Tally {
    let text = std::fs::read_to_string(&path).unwrap();
    let release = options.release;
    let engine = Engine::start(&options).await.unwrap();
    let name = format!("{release}/{}", path.file_stem().unwrap_or_default().to_string_lossy());
    let scenario = value::decode(text.as_bytes()).unwrap();
    // one step per line
    let lines = text.lines().map(|line| line.trim().trim_end_matches(','));
    let lines: Vec<&str> = lines.filter(|line| line.starts_with('{') && line.ends_with('}')).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| value::decode(line.as_bytes()).is_ok()).collect();
    assert_eq!(lines.len(), scenario.items_at(&["steps"]).len(), "{name}: a step has several lines");
    let caller = Caller::new(User { uid: "1".into(), ..User::system("tester") });
    let mut replay = Replay { name, engine, caller, saved: BTreeMap::new(), tally: Tally::default() };
    for line in lines {
        replay.step(line).await;
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
            tally.compared.into_iter().for_each(|(what, count)| *total.compared.entry(what).or_default() += count);
            total.warned += tally.warned;
            total.objects += tally.objects;
            tally.skipped.into_iter().for_each(|(why, count)| *total.skipped.entry(why).or_default() += count);
            total.differences.extend(tally.differences);
        }
    });
    let (differences, compared) = (total.differences.len(), total.compared.values().sum::<usize>());
    assert!(differences == 0, "{differences} of {compared} verdicts differ:\n{}", total.differences.join("\n"));
    println!(
        "{compared} compared: {:?}, with warnings {}, with the result {}",
        total.compared, total.warned, total.objects
    );
    println!("not compared: {:?}", total.skipped);
    for (what, least) in COMPARED_MIN {
        let count = total.compared.get(&what).copied().unwrap_or_default();
        assert!(count >= least, "only {count} verdicts were compared of {what:?}");
    }
}
