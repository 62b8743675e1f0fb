//! `--from`: the objects of files and captures, served as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use offline::findings::Form;
use offline::validate::{self, Empty, Outcome, Settings};
use server::transfer::{self, BuiltInKind, CapturedObject};
use server::{CapturedLogs, LogOf, LogRun, ServedCapture};
use sources::{Capture, CapturedLog, INFERRED, Input, Inputs, Known, KnownKind, LogKey, Plan, Planned, Run, Writer};

use crate::logs::print_error;

/// The value of `--clock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClockFlag {
    Capture,
    Now,
}

/// The logs of the sources.
struct Logs(BTreeMap<LogKey, CapturedLog>);

impl CapturedLogs for Logs {
    fn read(&self, log: LogOf<'_>) -> Option<Result<Bytes, String>> {
        let run = match log.run {
            LogRun::Current => Run::Current,
            LogRun::Previous => Run::Previous,
        };
        let [namespace, pod, container] = [log.namespace, log.pod, log.container].map(str::to_owned);
        self.0.get(&LogKey { namespace, pod, container, run }).map(CapturedLog::read)
    }
}

/// The content of sources.
pub struct Read {
    objects: Vec<Planned>,
    logs: Logs,
    moment: Option<i64>,
    /// What was found and what was left out.
    lines: Vec<String>,
}

/// Reads sources, and reports what the rules of `judge` would refuse. Fails with a one-line message if one of the sources has nothing
/// to serve.
pub fn read(from: &[String], judge: Option<&Settings>) -> Result<Read, String> {
    // objects may be nested more deeply than the stack of the first thread allows
    let reader = std::thread::Builder::new().stack_size(server::WORKER_STACK_BYTES);
    std::thread::scope(|scope| {
        let reading = reader.spawn_scoped(scope, || read_here(from, judge));
        let reading = reading.map_err(|error| format!("cannot start a thread: {error}"))?;
        reading.join().unwrap_or_else(|_| Err("the sources cannot be read".to_owned()))
    })
}

fn read_here(from: &[String], judge: Option<&Settings>) -> Result<Read, String> {
    let captures: Vec<Capture> = from.iter().map(|source| Capture::read(source)).collect::<Result<_, _>>()?;
    let mut plan = sources::plan(captures, &known);
    let mut report = vec![];
    if let Some(settings) = judge {
        plan.invalid = judged(&plan, settings, &mut report)?.summary.invalid;
    }
    let skipped = plan.problems.lines().into_iter().map(|line| format!("skipped: {line}"));
    let mut lines: Vec<String> = std::iter::once(plan.summary()).chain(skipped).collect();
    lines.extend(String::from_utf8_lossy(&report).lines().map(str::to_owned));
    lines.push("changes are kept in memory; the source is never written".to_owned());
    Ok(Read { objects: plan.objects, logs: Logs(plan.logs), moment: plan.moment, lines })
}

/// The verdict on the objects of sources, by kind. Objects without a definition have no rules.
fn judged(plan: &Plan, settings: &Settings, report: &mut Vec<u8>) -> Result<Outcome, String> {
    let failed = |error: std::io::Error| format!("the report cannot be made: {error}");
    let mut spool = Writer::new().map_err(failed)?;
    let mut inputs = Inputs::default();
    for Planned { value, path, .. } in &plan.objects {
        if value.at(&["metadata", "annotations", INFERRED]).is_none() {
            let part = spool.copy(value.to_json().as_bytes()).map_err(failed)?;
            inputs.inputs.push(Input::Part(path.as_str().into(), part));
        }
    }
    let settings =
        Settings { ignores_missing: true, empty: Empty::Allowed, style: Form::Kinds.into(), ..settings.clone() };
    offline::engine::runtime()?.block_on(validate::check(&settings, inputs, vec![], report))
}

fn known(api_version: &str, kind: &str) -> Known {
    match transfer::built_in_kind(api_version, kind) {
        BuiltInKind::Stored { group, plural, namespaced } => {
            Known::Kind(KnownKind { group: group.to_owned(), plural: plural.to_owned(), namespaced })
        }
        BuiltInKind::OtherVersions => Known::OtherVersions,
        BuiltInKind::None => Known::Nothing,
    }
}

/// Writes the content of sources to a new store, and says on stderr what it is.
pub async fn load(
    read: Option<Read>,
    clock: ClockFlag,
    storage: &server::Storage,
) -> Result<Option<ServedCapture>, String> {
    let Some(Read { objects, logs, moment, lines }) = read else { return Ok(None) };
    lines.iter().for_each(|line| print_error(line));
    let storage = server::Storage { store: storage.store.clone(), layout: storage.layout.clone() };
    // on a worker, since objects may be nested deeply; one after the other, so that each is in memory once
    let loaded = base::task::spawn("load of sources", async move {
        let object =
            |Planned { group, plural, path, value }: Planned| CapturedObject::new(&group, &plural, &path, value);
        transfer::load(&storage, objects.into_iter().map(object)).await
    });
    loaded.await.map_err(|error| format!("the sources cannot be loaded: {error}"))??;
    let moment = moment.filter(|_| clock == ClockFlag::Capture);
    Ok(Some(ServedCapture { moment, logs: Arc::new(logs) }))
}
