//! `--from`: the objects of files and captures, served as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use server::transfer::{self, BuiltInKind, CapturedObject};
use server::{CapturedLogs, LogOf, LogRun, ServedCapture};
use sources::{Capture, CapturedLog, Known, KnownKind, LogKey, Plan, Planned, Run};

use crate::logs;

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

/// Reads sources. Fails with a one-line message if one of them has nothing to serve.
pub fn read(from: &[String]) -> Result<Plan, String> {
    let captures: Vec<Capture> = from.iter().map(|source| Capture::read(source)).collect::<Result<_, _>>()?;
    Ok(sources::plan(captures, &known))
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
pub async fn load(plan: Plan, clock: ClockFlag, storage: &server::Storage) -> Result<ServedCapture, String> {
    logs::print_error(&plan.summary());
    plan.problems.lines().iter().for_each(|line| logs::print_error(&format!("skipped: {line}")));
    logs::print_error("changes are kept in memory; the source is never written");
    let moment = plan.moment.filter(|_| clock == ClockFlag::Capture);
    let object = |Planned { group, plural, path, value }: Planned| CapturedObject {
        group: group.into(),
        plural: plural.into(),
        path: path.into(),
        value,
    };
    transfer::load(storage, plan.objects.into_iter().map(object)).await?;
    Ok(ServedCapture { moment, logs: Arc::new(Logs(plan.logs)) })
}
