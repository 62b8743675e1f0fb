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
    /// The n-th request for each object fails before the commit, or loses its response after it.
    Request(RequestKind, RequestFault, u64),
    /// The command is killed at its n-th such request, and started again.
    Kill(RequestKind, Moment, u64),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    Fails,
    LosesResponse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    BeforeCommit,
    AfterCommit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    Ends,
    Expires,
}

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
        let request = |kind: &RequestKind, nth: &u64| {
            vec![kind.client.to_string(), kind.verb.to_string(), kind.resource.to_string(), nth.to_string()]
        };
        let watch = |kind: &WatchKind| vec![kind.client.to_string(), kind.resource.to_string()];
        let numbered = |kind: &WatchKind, number: &u64| [watch(kind), vec![number.to_string()]].concat();
        match self {
            Act::Request(kind, RequestFault::Fails, nth) => ("fails", request(kind, nth)),
            Act::Request(kind, RequestFault::LosesResponse, nth) => ("lost", request(kind, nth)),
            Act::Kill(kind, Moment::BeforeCommit, nth) => ("killed-before", request(kind, nth)),
            Act::Kill(kind, Moment::AfterCommit, nth) => ("killed-after", request(kind, nth)),
            Act::Watch(kind, WatchFault::Ends, nth) => ("ends", numbered(kind, nth)),
            Act::Watch(kind, WatchFault::Expires, nth) => ("expires", numbered(kind, nth)),
            Act::Held(kind) => ("late", watch(kind)),
            Act::Down => ("down", vec![]),
            Act::StaleStart(kind, changes) => ("stale-start", numbered(kind, changes)),
            Act::Recipe(recipe, seed) => ("recipe", vec![recipe.to_string(), seed.to_string()]),
            Act::Forbidden(RequestKind { client, verb, resource }) => {
                ("forbidden", [client, verb, resource].map(ToString::to_string).into())
            }
            Act::Edit(RequestKind { client, verb, resource }, edit, ObjectKey { resource: of, namespace, name }) => {
                let word = if *edit == Edit::Deletes { "user-deletes" } else { "user-unlabels" };
                let object = format!("{of}/{namespace}/{name}");
                (word, vec![client.to_string(), verb.to_string(), resource.to_string(), object])
            }
            Act::Release(release) => ("release", vec![release.to_string()]),
        }
    }

    /// The states that a disturbance makes the command meet. What shows the same with others has another cause.
    pub fn states(&self) -> &'static str {
        match self {
            Act::Request(..) | Act::Kill(..) | Act::Forbidden(_) => "intermediate",
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
            Act::Request(kind, RequestFault::Fails, nth) => (request(kind, json!({"error": {"code": 500}})), Some(nth)),
            Act::Request(kind, RequestFault::LosesResponse, nth) => {
                (request(kind, json!({"afterCommit": "Reset"})), Some(nth))
            }
            // once the process is gone, the fault is deleted, which ends the delay
            Act::Kill(kind, Moment::BeforeCommit, nth) => {
                (request(kind, json!({"delay": HOLD, "connection": "Reset"})), Some(nth))
            }
            Act::Kill(kind, Moment::AfterCommit, nth) => (request(kind, json!({"delay": HOLD})), Some(nth)),
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
        let count = if matches!(self, Act::Kill(..) | Act::Edit(..)) { Some(1) } else { count };
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
            Act::Request(of, RequestFault::Fails, nth) => format!("{} {} fails with 500", ordinal(*nth), kind(of)),
            Act::Request(of, RequestFault::LosesResponse, nth) => {
                format!("the response to the {} {} is lost", ordinal(*nth), kind(of))
            }
            Act::Kill(of, Moment::BeforeCommit, nth) => format!("killed before the {} {}", ordinal(*nth), kind(of)),
            Act::Kill(of, Moment::AfterCommit, nth) => format!("killed after the {} {}", ordinal(*nth), kind(of)),
            Act::Watch(of, WatchFault::Ends, nth) => {
                format!("the watch of {} by {} ends before the {} event", of.resource, of.client, ordinal(*nth))
            }
            Act::Watch(of, WatchFault::Expires, nth) => {
                format!("the watch of {} by {} expires before the {} event", of.resource, of.client, ordinal(*nth))
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
        let is_recipe = matches!(self.act, Act::Recipe(..));
        let counts: &[u64] = match self.act {
            Act::Recipe(..) => &[1, 2, 4, 8],
            Act::Request(..) | Act::Watch(..) => &[1],
            _ => &[],
        };
        let places: Vec<Steps> = match self.steps {
            Steps::All => (0..=steps).map(Steps::One).collect(),
            one => vec![one],
        };
        let of = |steps: Steps, count: Option<u64>| Cell { steps, count, act: self.act.clone() };
        let counted =
            counts.iter().filter(|count| self.count.is_none_or(|own| **count < own)).map(|count| Some(*count));
        let counted: Vec<_> = counted.collect();
        let whole = places.iter().filter(|_| is_recipe && self.steps == Steps::All).map(|place| of(*place, self.count));
        match self.steps {
            // a step that shows it is searched first, and then shrunk itself
            Steps::All => whole.collect(),
            one => counted.into_iter().map(|count| of(one, count)).collect(),
        }
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
        let request = |[client, verb, resource]: [&str; 3]| {
            let [client, verb, resource] = [client, verb, resource].map(Text::from);
            RequestKind { client, verb, resource }
        };
        let watch = |client: &str, resource: &str| WatchKind { client: client.into(), resource: resource.into() };
        Some(match (word, rest) {
            ("down", _) => Act::Down,
            ("late", [client, resource, ..]) => Act::Held(watch(client, resource)),
            ("forbidden", [client, verb, resource]) => Act::Forbidden(request([client, verb, resource])),
            ("user-deletes" | "user-unlabels", [client, verb, resource, object @ ..]) => {
                let edit = if word == "user-deletes" { Edit::Deletes } else { Edit::Unlabels };
                // names of RBAC have colons
                let object = object.join(":");
                let mut parts = object.splitn(3, '/').map(Text::from);
                let (of, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
                Act::Edit(request([client, verb, resource]), edit, ObjectKey { resource: of, namespace, name })
            }
            ("release", [release]) => Act::Release(release.parse().ok()?),
            ("recipe", [recipe, seed]) if RECIPES.contains(recipe) => Act::Recipe((*recipe).into(), seed.parse().ok()?),
            ("ends" | "expires" | "stale-start", [client, resource, number, ..]) => {
                let (of, number) = (watch(client, resource), number.parse().ok()?);
                match word {
                    "ends" => Act::Watch(of, WatchFault::Ends, number),
                    "expires" => Act::Watch(of, WatchFault::Expires, number),
                    _ => Act::StaleStart(of, number),
                }
            }
            (_, [client, verb, resource, nth]) => {
                let (of, nth) = (request([client, verb, resource]), nth.parse().ok()?);
                match word {
                    "fails" => Act::Request(of, RequestFault::Fails, nth),
                    "lost" => Act::Request(of, RequestFault::LosesResponse, nth),
                    "killed-before" => Act::Kill(of, Moment::BeforeCommit, nth),
                    "killed-after" => Act::Kill(of, Moment::AfterCommit, nth),
                    _ => return None,
                }
            }
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
                if kind.verb == "get" || kind.verb == "list" {
                    add(Act::Request(kind.clone(), RequestFault::Fails, nth));
                } else if WRITES.contains(&kind.verb.as_str()) {
                    add(Act::Request(kind.clone(), RequestFault::Fails, nth));
                    add(Act::Request(kind.clone(), RequestFault::LosesResponse, nth));
                    add(Act::Kill(kind.clone(), Moment::BeforeCommit, nth));
                    add(Act::Kill(kind.clone(), Moment::AfterCommit, nth));
                }
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
            if let Some(object) = objects.get(key) {
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
