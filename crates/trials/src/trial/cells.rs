//! Cells: one disturbance each, of what the run without faults has shown. They are generated without running anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use machinery::{Release, Text, Value, json};

use super::record::{Record, RequestKind, WatchKind, agents_of};
use crate::compare::{ObjectKey, Objects};

/// A disturbance of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub steps: Steps,
    pub act: Act,
    /// The number of requests or events that are hit at most; each object's by default.
    pub count: Option<u64>,
}

/// The steps that are disturbed. Step 0 is the start of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    All,
    One(usize),
}

/// A disturbance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Something happens at the n-th request for each object, or at the n-th of all if the command is killed.
    Request(RequestKind, Effect, u64),
    /// The watch ends or expires before the n-th event of each object.
    Watch(WatchKind, WatchFault, u64),
    /// The events of the watch are held until the next step is over.
    Held(WatchKind),
    /// The command does not run during the step.
    Down,
    /// After the step, the command is started again, and first reads a cache that lacks as many changes.
    StaleStart(WatchKind, u64),
    Recipe(Text, u64),
    /// The requests are refused, as without the right to them.
    Forbidden(RequestKind),
    /// A user edits an object when the first such request has been committed, before the command goes on.
    Edit(RequestKind, Edit, ObjectKey),
    /// The server emulates another release of Kubernetes.
    Release(Release),
}

/// An edit by a user, to which a controller has to respond as it does at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    Deletes,
    /// All labels are removed.
    Unlabels,
}

/// What happens at a request. A command that is killed is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Fails,
    LosesResponse,
    KilledBeforeCommit,
    KilledAfterCommit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    Ends,
    Expires,
}

/// The words of ids.
const EFFECTS: [(&str, Effect); 4] = [
    ("fails", Effect::Fails),
    ("lost", Effect::LosesResponse),
    ("killed-before", Effect::KilledBeforeCommit),
    ("killed-after", Effect::KilledAfterCommit),
];
const WATCH_FAULTS: [(&str, WatchFault); 2] = [("ends", WatchFault::Ends), ("expires", WatchFault::Expires)];
const EDITS: [(&str, Edit); 2] = [("user-deletes", Edit::Deletes), ("user-unlabels", Edit::Unlabels)];

const RECIPES: [&str; 6] =
    ["stale-reads", "missed-events", "lost-response", "throttled", "restarting-server", "flaky-watch"];
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// How often each recipe is tried, with another seed each time.
const SEEDS: u64 = 3;
/// The requests of one kind, and of one object, that are disturbed.
const NTH_MAX: u64 = 3;

/// Changes before a step that a stale cache may lack as well.
const STALE_BEFORE: u64 = 2;
/// Stale starts of a step and a watch.
const STALE_MAX: usize = 5;

/// A request is held so long at most.
const HOLD: &str = "10m";

impl Act {
    fn words(&self) -> (&'static str, Vec<String>) {
        let request = |kind: &RequestKind| [&kind.client, &kind.verb, &kind.resource].map(ToString::to_string).to_vec();
        let watch = |kind: &WatchKind| vec![kind.client.to_string(), kind.resource.to_string()];
        let and = |mut parts: Vec<String>, last: &dyn fmt::Display| {
            parts.push(last.to_string());
            parts
        };
        match self {
            Act::Request(kind, effect, nth) => (word_of(&EFFECTS, effect), and(request(kind), nth)),
            Act::Watch(kind, fault, nth) => (word_of(&WATCH_FAULTS, fault), and(watch(kind), nth)),
            Act::Held(kind) => ("late", watch(kind)),
            Act::Down => ("down", vec![]),
            Act::StaleStart(kind, changes) => ("stale-start", and(watch(kind), changes)),
            Act::Recipe(recipe, seed) => ("recipe", vec![recipe.to_string(), seed.to_string()]),
            Act::Forbidden(kind) => ("forbidden", request(kind)),
            Act::Edit(kind, edit, ObjectKey { resource, namespace, name }) => {
                (word_of(&EDITS, edit), and(request(kind), &format!("{resource}/{namespace}/{name}")))
            }
            Act::Release(release) => ("release", vec![release.to_string()]),
        }
    }

    /// Whether the command is stopped at one request.
    pub fn interrupts(&self) -> bool {
        matches!(self, Act::Request(_, Effect::KilledBeforeCommit | Effect::KilledAfterCommit, _) | Act::Edit(..))
    }

    /// The states that a disturbance makes the command meet. What shows the same with others has another cause.
    pub fn states(&self) -> &'static str {
        match self {
            Act::Request(..) | Act::Forbidden(_) => "intermediate",
            Act::Edit(..) => "edited",
            Act::Release(_) => "emulated",
            Act::Watch(..) | Act::Down => "unobserved",
            Act::Held(_) | Act::StaleStart(..) => "stale",
            Act::Recipe(recipe, _) => match recipe.as_str() {
                "stale-reads" => "stale",
                "missed-events" | "flaky-watch" => "unobserved",
                _ => "intermediate",
            },
        }
    }

    /// What is disturbed, and how, wherever that is.
    pub fn target(&self) -> String {
        let (word, mut rest) = self.words();
        // the number, the seed, the object or the release
        if !matches!(self, Act::Held(_) | Act::Down | Act::Forbidden(_)) {
            rest.pop();
        }
        format!("{word}:{}", rest.join(":"))
    }

    /// The spec of the Fault, or of the Gate of [`Act::Held`], for the clients of the command.
    pub fn spec(&self, clients: &[Text], count: Option<u64>) -> Value {
        let matching = |client: &str, resource: &str| {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            json!({"userAgents": [(agents_of(client))], "groups": [group], "resources": [plural]})
        };
        let request = |kind: &RequestKind, effect: Value| {
            let mut matched = matching(&kind.client, &kind.resource);
            matched.set_at(&["verbs"], json!([(kind.verb.as_str())]));
            json!({"match": matched, "effect": effect})
        };
        let watch = |kind: &WatchKind| matching(&kind.client, &kind.resource);
        let (mut spec, nth) = match self {
            Act::Request(kind, effect, nth) => {
                let effect = match effect {
                    Effect::Fails => json!({"error": {"code": 500}}),
                    Effect::LosesResponse => json!({"afterCommit": "Reset"}),
                    // once the process is gone, the fault is deleted, which ends the delay
                    Effect::KilledBeforeCommit => json!({"delay": HOLD, "connection": "Reset"}),
                    Effect::KilledAfterCommit => json!({"delay": HOLD}),
                };
                (request(kind, effect), Some(nth))
            }
            Act::Watch(kind, WatchFault::Ends, nth) => {
                (json!({"match": (watch(kind)), "effect": {"watch": "End"}}), Some(nth))
            }
            // what happens while the watch is silent is in no event that the client gets
            Act::Watch(kind, WatchFault::Expires, nth) => {
                (json!({"match": (watch(kind)), "effect": {"watch": "Expire", "delay": "300ms"}}), Some(nth))
            }
            Act::Edit(kind, ..) => (request(kind, json!({"delay": HOLD})), Some(&1)),
            Act::Held(kind) => return json!({"match": (watch(kind))}),
            Act::Down | Act::Release(_) => return Value::Null,
            Act::StaleStart(kind, changes) => {
                let effect = json!({"stale": {"changes": (*changes)}});
                (json!({"match": (watch(kind)), "when": {"nth": 1}, "effect": effect}), None)
            }
            Act::Recipe(recipe, seed) => {
                let agents: Value = clients.iter().map(|client| Value::from(agents_of(client))).collect();
                let (recipe, when) = (recipe.as_str(), json!({"seed": (*seed)}));
                (json!({"match": {"userAgents": agents}, "when": when, "recipe": recipe}), None)
            }
            Act::Forbidden(kind) => (request(kind, json!({"error": {"code": 403}})), None),
        };
        if let Some(nth) = nth {
            spec.set_at(&["when", "nth"], Value::from(*nth));
        }
        let count = if self.interrupts() { Some(1) } else { count };
        if let Some(count) = count {
            spec.set_at(&["when", "count"], Value::from(count));
        }
        spec
    }
}

impl Cell {
    fn new(step: usize, act: Act) -> Cell {
        Cell { steps: Steps::One(step), act, count: None }
    }

    /// Whether a step is disturbed.
    pub fn disturbs(&self, step: usize) -> bool {
        match self.steps {
            Steps::All => true,
            Steps::One(one) => one == step,
        }
    }

    /// Whether a step comes before all that are disturbed.
    pub fn begins_after(&self, step: usize) -> bool {
        matches!(self.steps, Steps::One(one) if step < one)
    }

    /// A sentence about the cell.
    pub fn described(&self) -> String {
        let kind = |kind: &RequestKind| format!("{} {} by {}", kind.verb, kind.resource, kind.client);
        let what = match &self.act {
            Act::Request(of, effect, nth) => {
                let request = format!("{} {}", ordinal(*nth), kind(of));
                match effect {
                    Effect::Fails => format!("{request} fails with 500"),
                    Effect::LosesResponse => format!("the response to the {request} is lost"),
                    Effect::KilledBeforeCommit => format!("killed before the {request}"),
                    Effect::KilledAfterCommit => format!("killed after the {request}"),
                }
            }
            Act::Watch(of, fault, nth) => {
                let fault = word_of(&WATCH_FAULTS, fault);
                format!("the watch of {} by {} {fault} before the {} event", of.resource, of.client, ordinal(*nth))
            }
            Act::Held(of) => format!("events of {} reach {} after the next step", of.resource, of.client),
            Act::Down => "the command is down".to_owned(),
            Act::StaleStart(of, _) => format!("started again, {} lists {} as before the step", of.client, of.resource),
            Act::Recipe(recipe, seed) => format!("recipe {recipe}, seed {seed}"),
            Act::Forbidden(of) => format!("{} may not {} {}", of.client, of.verb, of.resource),
            Act::Edit(of, edit, object) => {
                let edit = if *edit == Edit::Deletes { "deletes" } else { "removes the labels of" };
                format!("a user {edit} {object} right after the first {}", kind(of))
            }
            Act::Release(release) => format!("on Kubernetes {release}"),
        };
        let hits = self.count.map(|count| format!(", {count} at most")).unwrap_or_default();
        match self.steps {
            Steps::All => format!("all steps: {what}{hits}"),
            Steps::One(0) => format!("start: {what}{hits}"),
            Steps::One(step) => format!("step {step}: {what}{hits}"),
        }
    }

    /// Cells that disturb less, the smallest first. The first one that shows the same takes the place of this one.
    pub fn smaller(&self, steps: usize) -> Vec<Cell> {
        let of = |steps: Steps, count: Option<u64>| Cell { steps, count, act: self.act.clone() };
        let counts: &[u64] = match (&self.act, self.steps) {
            // a step that shows it is searched first, and then shrunk itself
            (Act::Recipe(..), Steps::All) => {
                return (0..=steps).map(|step| of(Steps::One(step), self.count)).collect();
            }
            (Act::Recipe(..), Steps::One(_)) => &[1, 2, 4, 8],
            (Act::Request(..) | Act::Watch(..), Steps::One(_)) if !self.act.interrupts() => &[1],
            _ => &[],
        };
        let fewer = counts.iter().filter(|count| self.count.is_none_or(|own| **count < own));
        fewer.map(|count| of(self.steps, Some(*count))).collect()
    }
}

/// The name of a cell, which [`Cell::from_str`] reads again.
impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.steps {
            Steps::All => out.write_str("all")?,
            Steps::One(0) => out.write_str("start")?,
            Steps::One(step) => write!(out, "{step}")?,
        }
        let (word, rest) = self.act.words();
        write!(out, ":{word}")?;
        rest.iter().try_for_each(|part| write!(out, ":{part}"))?;
        self.count.map_or(Ok(()), |count| write!(out, ":x{count}"))
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Cell, String> {
        let parsed = || {
            let mut parts: Vec<&str> = text.split(':').collect();
            let count = parts.last().and_then(|last| last.strip_prefix('x')?.parse().ok());
            parts.truncate(parts.len() - usize::from(count.is_some()));
            let [step, word, rest @ ..] = parts.as_slice() else { return None };
            let steps = match *step {
                "all" => Steps::All,
                "start" => Steps::One(0),
                step => Steps::One(step.parse().ok()?),
            };
            Some(Cell { steps, act: Act::parse(word, rest)?, count })
        };
        parsed().ok_or_else(|| format!("{text:?} is not a cell: use an id that `pintle trial` has printed"))
    }
}

impl Act {
    fn parse(word: &str, rest: &[&str]) -> Option<Act> {
        let request = |client: &str, verb: &str, resource: &str| RequestKind {
            client: client.into(),
            verb: verb.into(),
            resource: resource.into(),
        };
        let watch = |client: &str, resource: &str| WatchKind { client: client.into(), resource: resource.into() };
        Some(match (word, rest) {
            ("down", []) => Act::Down,
            ("late", [client, resource]) => Act::Held(watch(client, resource)),
            ("stale-start", [client, resource, changes]) => {
                Act::StaleStart(watch(client, resource), changes.parse().ok()?)
            }
            ("forbidden", [client, verb, resource]) => Act::Forbidden(request(client, verb, resource)),
            ("recipe", [recipe, seed]) if RECIPES.contains(recipe) => Act::Recipe((*recipe).into(), seed.parse().ok()?),
            ("release", [release]) => Act::Release(release.parse().ok()?),
            (word, [client, resource, nth]) => {
                Act::Watch(watch(client, resource), named(&WATCH_FAULTS, word)?, nth.parse().ok()?)
            }
            (word, [client, verb, resource, last @ ..]) => match (named(&EFFECTS, word), last) {
                (Some(effect), [nth]) => Act::Request(request(client, verb, resource), effect, nth.parse().ok()?),
                (None, object) => {
                    let edit = named(&EDITS, word)?;
                    // names of RBAC have colons
                    let object = object.join(":");
                    let mut parts = object.splitn(3, '/').map(Text::from);
                    let (of, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
                    Act::Edit(request(client, verb, resource), edit, ObjectKey { resource: of, namespace, name })
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// The cells for a record and the objects after each step, in the order in which they are tried: what happens rarely comes
/// first, since chance shows it least; releases, recipes and edits come after all first requests, and the n-th requests
/// after them.
pub fn generate(record: &Record, objects: &[Objects], clients: &[Text], seed: u64) -> Vec<Cell> {
    let mut ranked: Vec<((u64, u64), Cell)> = vec![];
    let mut past: BTreeMap<&WatchKind, u64> = BTreeMap::new();
    for (step, found) in record.0.iter().enumerate() {
        let events = || found.events.iter().filter(|(kind, count)| **count > 0 && clients.contains(&kind.client));
        for (kind, count) in events() {
            let all = past.entry(kind).or_default();
            *all += count;
            if step > 0 {
                // before the step, in its middle, and in the middle of the one before
                let stale = (1..=(count + STALE_BEFORE).min(*all)).rev().take(STALE_MAX);
                ranked.extend(
                    stale.map(|changes| ((0, *count), Cell::new(step, Act::StaleStart(kind.clone(), changes)))),
                );
            }
        }
        if step > 0 {
            ranked.push(((0, 1), Cell::new(step, Act::Down)));
        }
        for (kind, count) in found.requests.iter().filter(|(kind, _)| clients.contains(&kind.client)) {
            for nth in 1..=(*count).min(NTH_MAX) {
                let mut add = |act| ranked.push((rank(nth, *count), Cell::new(step, act)));
                let effects = match kind.verb.as_str() {
                    "get" | "list" => &EFFECTS[..1],
                    verb if WRITES.contains(&verb) => &EFFECTS[..],
                    _ => &[],
                };
                effects.iter().for_each(|(_, effect)| add(Act::Request(kind.clone(), *effect, nth)));
            }
        }
        for (kind, count) in events() {
            for nth in 1..=(*count).min(NTH_MAX) {
                let mut add = |act| ranked.push((rank(nth, *count), Cell::new(step, act)));
                add(Act::Watch(kind.clone(), WatchFault::Ends, nth));
                add(Act::Watch(kind.clone(), WatchFault::Expires, nth));
                if nth == 1 && step > 0 {
                    add(Act::Held(kind.clone()));
                }
            }
        }
    }
    for (step, (found, objects)) in record.0.iter().zip(objects).enumerate() {
        let (own, others): (Vec<_>, Vec<_>) =
            found.written.iter().partition(|(kind, _)| clients.contains(&kind.client));
        let applied = others.iter().map(|(_, key)| *key).find(|key| objects.contains_key(*key));
        for (kind, key) in own {
            let rank = (1, found.requests.get(kind).copied().unwrap_or_default());
            let mut add = |edit, key: &ObjectKey| {
                ranked.push((rank, Cell::new(step, Act::Edit(kind.clone(), edit, key.clone()))))
            };
            // what the request deletes is gone
            if let Some(object) = objects.get(key).filter(|_| !kind.verb.starts_with("delete")) {
                add(Edit::Deletes, key);
                if object.at(&["metadata", "labels"]).is_some() {
                    add(Edit::Unlabels, key);
                }
            }
            applied.into_iter().filter(|applied| *applied != key).for_each(|applied| add(Edit::Deletes, applied));
        }
    }
    for release in Release::ALL.into_iter().filter(|release| *release != Release::default()) {
        ranked.push(((1, 0), Cell { steps: Steps::All, act: Act::Release(release), count: None }));
    }
    for (number, recipe) in (0..SEEDS).flat_map(|number| RECIPES.iter().map(move |recipe| (number, recipe))) {
        let act = Act::Recipe((*recipe).into(), seed + number);
        ranked.push(((if number == 0 { 1 } else { 3 }, number), Cell { steps: Steps::All, act, count: None }));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, cell)| cell).collect()
}

/// A cell for each right that the clients have used, in which they lack it.
pub fn without_one_right(record: &Record, clients: &[Text]) -> Vec<Cell> {
    let used: BTreeSet<&RequestKind> = record.0.iter().flat_map(|step| step.requests.keys()).collect();
    let lacking = used.into_iter().filter(|kind| clients.contains(&kind.client));
    lacking.map(|kind| Cell { steps: Steps::All, act: Act::Forbidden(kind.clone()), count: None }).collect()
}

/// The word for a value of a table.
fn word_of<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, one)| one == value).map_or("", |(word, _)| word)
}

fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(word, _)| *word == name).map(|(_, value)| *value)
}

fn ordinal(number: u64) -> String {
    match number {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        other => format!("{other}th"),
    }
}

/// First requests come before further ones, and rare ones before frequent ones.
fn rank(nth: u64, count: u64) -> (u64, u64) {
    (if nth == 1 { 0 } else { 2 }, count)
}
