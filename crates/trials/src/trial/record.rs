//! Records the requests of the command's clients in each step of the run without faults.

use std::collections::{BTreeMap, BTreeSet};

use machinery::{Text, Value};

use crate::compare::{LEFT_OUT, ObjectKey};
use crate::engine::{OWN, Write};

/// The verb of a watch, and of its events.
pub const WATCH: &str = "watch";

/// Requests of a client with a verb for a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKind {
    pub client: Text,
    pub verb: Text,
    /// As in `deployments/status.apps`.
    pub resource: Text,
}

/// The requests and the events of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepRecord {
    pub requests: BTreeMap<RequestKind, u64>,
    pub events: BTreeMap<RequestKind, u64>,
    /// The object that a client, of the command or of the step, wrote first with such requests.
    pub written: BTreeMap<RequestKind, ObjectKey>,
    /// The clients that hold a watch at the end of the step.
    watching: BTreeSet<Text>,
    /// The watches that run at the end of the step, and those that have been started.
    pub running: u64,
    pub started: u64,
}

/// The program of a user agent. Its version may differ between runs.
fn program(agent: &str) -> Text {
    agent.split('/').next().unwrap_or_default().into()
}

/// The pattern that matches the user agents of a program.
pub fn agents_of(client: &str) -> String {
    // a report calls clients without a user agent so
    if client == "unknown" { String::new() } else { format!("{client}*") }
}

impl StepRecord {
    /// Reads the status of a Report about one step.
    pub fn read(report: &Value) -> StepRecord {
        let mut record = StepRecord::default();
        for value in report.items_at(&["writes"]) {
            let write = Write::read(value);
            let client = write.agent.as_deref().map_or(OWN.into(), program);
            let kind =
                RequestKind { client, verb: write.verb.as_str().into(), resource: value.str_at(&["resource"]).into() };
            if write.is_success() && !LEFT_OUT.contains(&kind.resource.as_str()) {
                record.written.entry(kind).or_insert(write.object);
            }
        }
        let number = |value: &Value, name: &str| u64::try_from(value.int_at(&[name])).unwrap_or_default();
        for agent in report.items_at(&["agents"]) {
            let client = program(agent.str_at(&["userAgent"]));
            if client == OWN {
                continue;
            }
            for requests in agent.items_at(&["requests"]) {
                let text = |name: &str| Text::from(requests.str_at(&[name]));
                let kind = RequestKind { client: client.clone(), verb: text("verb"), resource: text("resource") };
                // their order and number are chance
                if LEFT_OUT.contains(&kind.resource.as_str()) {
                    continue;
                }
                *record.requests.entry(kind).or_default() += number(requests, "count");
            }
            for watch in agent.items_at(&["watches"]) {
                let resource = watch.str_at(&["watch"]).split(' ').next().unwrap_or_default().into();
                let kind = RequestKind { client: client.clone(), verb: WATCH.into(), resource };
                *record.events.entry(kind).or_default() += number(watch, "events");
                record.running += number(watch, "running");
                record.started += number(watch, "started");
                if watch.int_at(&["running"]) > 0 {
                    record.watching.insert(client.clone());
                }
            }
        }
        record
    }
}

/// The record of a whole run: its start, and then its steps.
#[derive(Clone, Debug, Default)]
pub struct Record(pub Vec<StepRecord>);

impl Record {
    /// The clients of the command: those that sent requests before the first step, or that keep a watch. Others
    /// belong to the steps, as kubectl does.
    pub fn clients(&self) -> BTreeSet<Text> {
        let first = self.0.first().into_iter().flat_map(|step| step.requests.keys().map(|kind| kind.client.clone()));
        first.chain(self.0.iter().flat_map(|step| step.watching.iter().cloned())).collect()
    }

    /// Also those of the steps.
    pub fn all_clients(&self) -> BTreeSet<Text> {
        let of_requests = self.0.iter().flat_map(|step| step.requests.keys().map(|kind| kind.client.clone()));
        of_requests.chain(self.clients()).collect()
    }
}
