//! Cells: one disturbance each, of what the run without faults has shown. They are generated without running anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use machinery::{Release, Text, Value, json};

use super::record::{Record, RequestKind, WATCH, agents_of};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Steps {
    All,
    One(usize),
}

/// A disturbance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Something happens to requests, or to the watch of a client on a resource. The number is that of the request or the event, for each
    /// object, or among all if the command is killed; of a stale cache, that of the changes that it lacks; and 0 if there is none.
    Request(RequestKind, Effect, u64),
    /// The command does not run during the step.
    Down,
    Recipe(Text, u64),
    /// A user edits an object when the first such request has been committed, before the command goes on.
    Edit(RequestKind, Edit, ObjectKey),
    /// The server emulates another release of Kubernetes.
    Release(Release),
}

machinery::text_enum! {
    /// An edit by a user, to which a controller has to respond as it does at rest.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Edit {
        Deletes = "user-deletes",
        /// All labels are removed.
        Unlabels = "user-unlabels",
    }
}

machinery::text_enum! {
    /// What happens to requests. A command that is killed is started again.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Effect {
        Fails = "fails",
        LosesResponse = "lost",
        KilledBeforeCommit = "killed-before",
        KilledAfterCommit = "killed-after",
        /// All are refused, as without the right to them.
        Forbidden = "forbidden",
        /// The watch ends before the event.
        Ends = "ends",
        Expires = "expires",
        /// The events are held until the next step is over.
        Late = "late",
        /// After the step, the command is started again, and first reads a cache that lacks changes.
        StaleStart = "stale-start",
    }
}

impl Effect {
    /// Whether it concerns a watch, or the list with which one begins.
    fn is_of_watch(self) -> bool {
        matches!(self, Effect::Ends | Effect::Expires | Effect::Late | Effect::StaleStart)
    }

    fn is_numbered(self) -> bool {
        !matches!(self, Effect::Forbidden | Effect::Late)
    }
}

/// The effects on reads and on writes.
const OF_READS: [Effect; 1] = [Effect::Fails];
const OF_WRITES: [Effect; 4] =
    [Effect::Fails, Effect::LosesResponse, Effect::KilledBeforeCommit, Effect::KilledAfterCommit];
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
    /// The word of the id, and what follows it.
    fn words(&self) -> (&'static str, Vec<String>) {
        match self {
            Act::Request(RequestKind { client, verb, resource }, effect, number) => {
                let verb = Some(verb).filter(|_| !effect.is_of_watch());
                let mut rest: Vec<String> =
                    [Some(client), verb, Some(resource)].into_iter().flatten().map(Text::to_string).collect();
                rest.extend(effect.is_numbered().then(|| number.to_string()));
                (effect.as_str(), rest)
            }
            Act::Down => ("down", vec![]),
            Act::Recipe(recipe, seed) => ("recipe", vec![recipe.to_string(), seed.to_string()]),
            Act::Edit(RequestKind { client, verb, resource }, edit, object) => {
                let object = format!("{}/{}/{}", object.resource, object.namespace, object.name);
                (edit.as_str(), vec![client.to_string(), verb.to_string(), resource.to_string(), object])
            }
            Act::Release(release) => ("release", vec![release.to_string()]),
        }
    }

    /// Reads what [`Act::words`] returns.
    fn parse(word: &str, rest: &[&str]) -> Option<Act> {
        let kind = |client: &str, verb: &str, resource: &str| {
            let [client, verb, resource] = [client, verb, resource].map(Text::from);
            RequestKind { client, verb, resource }
        };
        if let Some(effect) = Effect::parse(word) {
            let (number, rest) = match rest {
                [rest @ .., number] if effect.is_numbered() => (number.parse().ok()?, rest),
                rest => (0, rest),
            };
            let kind = match rest {
                [client, resource] if effect.is_of_watch() => kind(client, WATCH, resource),
                [client, verb, resource] if !effect.is_of_watch() => kind(client, verb, resource),
                _ => return None,
            };
            return Some(Act::Request(kind, effect, number));
        }
        Some(match (word, rest) {
            ("down", []) => Act::Down,
            ("recipe", [recipe, seed]) if RECIPES.contains(recipe) => Act::Recipe((*recipe).into(), seed.parse().ok()?),
            ("release", [release]) => Act::Release(release.parse().ok()?),
            (word, [client, verb, resource, object @ ..]) => {
                // names of RBAC have colons
                let object = object.join(":");
                let mut parts = object.splitn(3, '/').map(Text::from);
                let (of, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
                let object = ObjectKey { resource: of, namespace, name };
                Act::Edit(kind(client, verb, resource), Edit::parse(word)?, object)
            }
            _ => return None,
        })
    }

    /// Whether the command is stopped at one request.
    pub fn interrupts(&self) -> bool {
        matches!(self, Act::Request(_, Effect::KilledBeforeCommit | Effect::KilledAfterCommit, _) | Act::Edit(..))
    }

    /// The states that a disturbance makes the command meet. What shows the same with others has another cause.
    pub fn states(&self) -> &'static str {
        match self {
            Act::Request(_, Effect::Late | Effect::StaleStart, _) => "stale",
            Act::Request(_, effect, _) if !effect.is_of_watch() => "intermediate",
            Act::Request(..) | Act::Down => "unobserved",
            Act::Edit(..) => "edited",
            Act::Release(_) => "emulated",
            Act::Recipe(recipe, _) => match recipe.as_str() {
                "stale-reads" => "stale",
                "missed-events" | "flaky-watch" => "unobserved",
                _ => "intermediate",
            },
        }
    }

    /// What is disturbed, and how, wherever that is: the id without the number, the seed, the object or the release.
    pub fn target(&self) -> String {
        let (word, mut rest) = self.words();
        if !matches!(self, Act::Request(_, effect, _) if !effect.is_numbered()) {
            rest.pop();
        }
        format!("{word}:{}", rest.join(":"))
    }

    /// The spec of the Fault, or of the Gate of [`Effect::Late`], for the clients of the command.
    pub fn spec(&self, clients: &[Text], count: Option<u64>) -> Value {
        let matching = |kind: &RequestKind| {
            let (plural, group) = kind.resource.split_once('.').unwrap_or((&kind.resource, ""));
            let mut matched =
                json!({"userAgents": [(agents_of(&kind.client))], "groups": [group], "resources": [plural]});
            if kind.verb != WATCH {
                matched.set_at(&["verbs"], json!([(kind.verb.as_str())]));
            }
            matched
        };
        let (mut spec, nth) = match self {
            Act::Request(kind, effect, number) => {
                let nth = match effect {
                    Effect::Forbidden => None,
                    Effect::StaleStart => Some(1),
                    _ => Some(*number),
                };
                let effect = match effect {
                    Effect::Fails => json!({"error": {"code": 500}}),
                    Effect::LosesResponse => json!({"afterCommit": "Reset"}),
                    // once the process is gone, the fault is deleted, which ends the delay
                    Effect::KilledBeforeCommit => json!({"delay": HOLD, "connection": "Reset"}),
                    Effect::KilledAfterCommit => json!({"delay": HOLD}),
                    Effect::Forbidden => json!({"error": {"code": 403}}),
                    Effect::Ends => json!({"watch": "End"}),
                    // what happens while the watch is silent is in no event that the client gets
                    Effect::Expires => json!({"watch": "Expire", "delay": "300ms"}),
                    Effect::StaleStart => json!({"stale": {"changes": (*number)}}),
                    Effect::Late => return json!({"match": (matching(kind))}),
                };
                (json!({"match": (matching(kind)), "effect": effect}), nth)
            }
            Act::Edit(kind, ..) => (json!({"match": (matching(kind)), "effect": {"delay": HOLD}}), Some(1)),
            Act::Recipe(recipe, seed) => {
                let agents: Value = clients.iter().map(|client| Value::from(agents_of(client))).collect();
                let (recipe, when) = (recipe.as_str(), json!({"seed": (*seed)}));
                (json!({"match": {"userAgents": agents}, "when": when, "recipe": recipe}), None)
            }
            Act::Down | Act::Release(_) => return Value::Null,
        };
        let count = if self.interrupts() { Some(1) } else { count };
        for (field, number) in [("nth", nth), ("count", count)] {
            if let Some(number) = number {
                spec.set_at(&["when", field], Value::from(number));
            }
        }
        spec
    }
}

impl Cell {
    fn new(step: usize, act: Act) -> Cell {
        Cell { steps: Steps::One(step), act, count: None }
    }

    /// The edit by a user, and its object.
    pub fn edit(&self) -> Option<(Edit, &ObjectKey)> {
        match &self.act {
            Act::Edit(_, edit, object) => Some((*edit, object)),
            _ => None,
        }
    }

    /// The client whose requests are disturbed, if there is only one.
    pub fn client(&self) -> Option<&Text> {
        match &self.act {
            Act::Request(kind, ..) | Act::Edit(kind, ..) => Some(&kind.client),
            _ => None,
        }
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
            Act::Request(of @ RequestKind { client, verb, resource }, effect, number) => {
                let request = format!("{} {}", ordinal(*number), kind(of));
                let watch = format!("the watch of {resource} by {client}");
                match effect {
                    Effect::Fails => format!("{request} fails with 500"),
                    Effect::LosesResponse => format!("the response to the {request} is lost"),
                    Effect::KilledBeforeCommit => format!("killed before the {request}"),
                    Effect::KilledAfterCommit => format!("killed after the {request}"),
                    Effect::Forbidden => format!("{client} may not {verb} {resource}"),
                    Effect::Ends => format!("{watch} ends before the {} event", ordinal(*number)),
                    Effect::Expires => format!("{watch} expires before the {} event", ordinal(*number)),
                    Effect::Late => format!("events of {resource} reach {client} after the next step"),
                    Effect::StaleStart => format!("started again, {client} lists {resource} as before the step"),
                }
            }
            Act::Down => "the command is down".to_owned(),
            Act::Recipe(recipe, seed) => format!("recipe {recipe}, seed {seed}"),
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
            (
                Act::Request(_, Effect::Fails | Effect::LosesResponse | Effect::Ends | Effect::Expires, _),
                Steps::One(_),
            ) => &[1],
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

/// The cells for a record and the objects after each step, in the order in which they are tried: what happens rarely comes
/// first, since chance shows it least; releases, recipes and edits come after all first requests, and the n-th requests
/// after them.
pub fn generate(record: &Record, objects: &[Objects], clients: &[Text], seed: u64) -> Vec<Cell> {
    let mut ranked: Vec<((u64, u64), Cell)> = vec![];
    let mut past: BTreeMap<&RequestKind, u64> = BTreeMap::new();
    for (step, found) in record.0.iter().enumerate() {
        let mut add = |rank, act| ranked.push((rank, Cell::new(step, act)));
        let of = |kind: &RequestKind, effect, number| Act::Request(kind.clone(), effect, number);
        let of_clients = |(kind, _): &(&RequestKind, &u64)| clients.contains(&kind.client);
        let events = || found.events.iter().filter(of_clients).filter(|(_, count)| **count > 0);
        for (kind, count) in events() {
            let all = past.entry(kind).or_default();
            *all += count;
            if step > 0 {
                // before the step, in its middle, and in the middle of the one before
                let stale = (1..=(count + STALE_BEFORE).min(*all)).rev().take(STALE_MAX);
                stale.for_each(|changes| add((0, *count), of(kind, Effect::StaleStart, changes)));
            }
        }
        if step > 0 {
            add((0, 1), Act::Down);
        }
        for (kind, count) in found.requests.iter().filter(of_clients) {
            let effects = match kind.verb.as_str() {
                "get" | "list" => &OF_READS[..],
                verb if WRITES.contains(&verb) => &OF_WRITES[..],
                _ => &[],
            };
            for nth in 1..=(*count).min(NTH_MAX) {
                effects.iter().for_each(|effect| add(rank(nth, *count), of(kind, *effect, nth)));
            }
        }
        for (kind, count) in events() {
            for nth in 1..=(*count).min(NTH_MAX) {
                add(rank(nth, *count), of(kind, Effect::Ends, nth));
                add(rank(nth, *count), of(kind, Effect::Expires, nth));
                if nth == 1 && step > 0 {
                    add(rank(nth, *count), of(kind, Effect::Late, 0));
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
    let act = |kind: &RequestKind| Act::Request(kind.clone(), Effect::Forbidden, 0);
    lacking.map(|kind| Cell { steps: Steps::All, act: act(kind), count: None }).collect()
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
