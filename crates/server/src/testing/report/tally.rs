//! Counts what the clients of a workspace do, in memory of bounded size.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::clock;
use base::request::{User, Verb};
use machinery::Text;
use machinery::status::Reason;
use tokio::time::Instant;

use super::super::matching::described;
use super::checks::Check;
use super::observing::{Exchange, agent_of};
use super::resource_name;
use super::rights::Right;
use super::writes::Writes;
use crate::http::RequestEnding;
use crate::limits;

/// The counters of a workspace.
pub struct Tally {
    pub since: Instant,
    pub agents: BTreeMap<Text, AgentTally>,
    /// Set while nothing has happened since a Settle: the resources whose writes do not count.
    at_rest: Option<Vec<String>>,
    /// Whether something was not counted because a limit was reached.
    pub is_truncated: bool,
    /// In a copy, what its users have requested, also through other clients.
    pub rights: BTreeMap<Text, HashSet<Right>>,
    /// The writes since a report has first listed them.
    pub writes: Option<Writes>,
    /// The bytes of what is kept, about.
    bytes: usize,
}

/// The counters of the clients with one user agent.
#[derive(Default)]
pub struct AgentTally {
    pub users: BTreeMap<Text, UserTally>,
    /// Requests by verb and resource, and how many of them were refused.
    pub requests: BTreeMap<(&'static str, String), Requests>,
    /// Responses of 400 and above, by reason.
    pub reasons: BTreeMap<Text, u64>,
    pub counts: BTreeMap<Check, u64>,
    pub findings: BTreeMap<(Check, String), u64>,
    /// Objects whose last write by the agent met a conflict, and the number of conflicts since its last successful
    /// write.
    pub pending: BTreeMap<String, u64>,
    pub watches: BTreeMap<WatchKey, WatchTally>,
    /// Requests for single objects; true for writes.
    objects: HashMap<(bool, ObjectKey), RequestWindow>,
    lists: HashMap<String, RequestWindow>,
    space: Space,
}

/// The group, the resource, the namespace and the name.
type ObjectKey = (Text, Text, Text, Text);

#[derive(Clone, Copy, Default)]
pub struct Requests {
    pub count: u64,
    pub failed: u64,
}

/// The requests of a user.
#[derive(Clone, Default)]
pub struct UserTally {
    pub user: User,
    pub rights: HashSet<Right>,
}

/// The selection of a watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchKey {
    pub group: Text,
    pub resource: Text,
    pub namespace: Text,
    /// The name and the selectors.
    pub selection: String,
}

impl fmt::Display for WatchKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&resource_name(&self.group, &self.resource, ""))?;
        if !self.namespace.is_empty() {
            write!(out, " in {}", self.namespace)?;
        }
        out.write_str(&self.selection)
    }
}

#[derive(Default)]
pub struct WatchTally {
    pub running: u64,
    pub started: u64,
    /// The watches that began after another one had ended.
    pub restarted: u64,
    pub events: Arc<AtomicU64>,
    has_ended: bool,
}

/// The number of requests since a time.
struct RequestWindow {
    since: Instant,
    count: u64,
}

impl RequestWindow {
    fn new(since: Instant) -> RequestWindow {
        RequestWindow { since, count: 0 }
    }

    /// Counts a request. Returns true for the one with which the maximum is exceeded.
    fn exceeds(&mut self, now: Instant, length: std::time::Duration, max: u64) -> bool {
        if now - self.since >= length {
            *self = RequestWindow::new(now);
        }
        self.count += 1;
        self.count == max + 1
    }
}

impl Default for Tally {
    fn default() -> Tally {
        let (agents, rights) = Default::default();
        Tally { since: clock::instant(), agents, at_rest: None, is_truncated: false, rights, writes: None, bytes: 0 }
    }
}

impl Tally {
    /// A copy of what a report shows of the selected agents.
    pub fn copy(&self, selects: impl Fn(&str) -> bool) -> Tally {
        let selected = self.agents.iter().filter(|(name, _)| selects(name));
        let agents: BTreeMap<_, _> = selected.map(|(name, agent)| (name.clone(), agent.copy())).collect();
        let mut rights: BTreeMap<Text, HashSet<Right>> = BTreeMap::new();
        for name in agents.values().flat_map(|agent: &AgentTally| agent.users.keys()) {
            let of_user = self.agents.values().filter_map(|agent| agent.users.get(name));
            let all = || of_user.flat_map(|user| user.rights.iter().cloned()).collect();
            rights.entry(name.clone()).or_insert_with(all);
        }
        Tally { since: self.since, agents, is_truncated: self.is_truncated, rights, ..Tally::default() }
    }

    /// Starts again. Running watches keep running.
    pub fn reset(&mut self) {
        let before = std::mem::take(self);
        for (name, agent) in before.agents {
            let running = agent.watches.into_iter().filter(|(_, watch)| watch.running > 0);
            let watches: BTreeMap<_, _> = running.map(|(key, watch)| (key, watch.anew())).collect();
            if !watches.is_empty() {
                self.agents.insert(name, AgentTally { watches, ..AgentTally::default() });
            }
        }
        self.at_rest = before.at_rest;
        self.writes = before.writes.map(|_| Writes::default());
    }

    /// Called when a Settle has returned: nothing happens any more.
    pub fn settled(&mut self, ignored: Vec<String>) {
        self.at_rest = Some(ignored);
    }

    /// Called when a write begins. A write by a client without a watch ends the rest after a Settle: what follows
    /// is its consequence.
    pub fn begins(&mut self, exchange: &mut Exchange) {
        let Some(ignored) = &self.at_rest else { return };
        let info = &exchange.info;
        let is_ignored = ignored.iter().any(|name| match name.split_once('.') {
            Some((resource, group)) => resource == info.resource && group == info.group,
            None => *name == info.resource && info.group.is_empty(),
        });
        if is_ignored {
            return;
        }
        let watches = |agent: &AgentTally| agent.watches.values().any(|watch| watch.running > 0);
        exchange.at_rest = self.agents.get(&exchange.agent).is_some_and(watches);
        if !exchange.at_rest {
            self.at_rest = None;
        }
    }

    fn agent(&mut self, name: &Text) -> Option<&mut AgentTally> {
        if !self.agents.contains_key(name) && self.agents.len() >= limits::REPORT_AGENTS_MAX {
            self.is_truncated = true;
            return None;
        }
        Some(self.agents.entry(name.clone()).or_default())
    }

    pub fn ended(&mut self, exchange: &Exchange, ending: &RequestEnding, now: Instant) {
        let is_full = self.bytes >= limits::REPORT_BYTES;
        if let Some(writes) = self.writes.as_mut().filter(|_| exchange.is_write()) {
            writes.add(exchange, ending);
        }
        let Some(agent) = self.agent(&exchange.agent) else { return };
        agent.space.is_full = is_full;
        let before = agent.space.bytes;
        let is_whole = agent.count(exchange, ending)
            & agent.count_rights(exchange, ending)
            & agent.count_failure(exchange, ending)
            & agent.count_write(exchange, ending)
            & agent.count_rate(exchange, now);
        let added = agent.space.bytes - before;
        self.bytes += added;
        self.is_truncated |= !is_whole;
    }

    /// Called when a watch begins. Returns the counter of its events.
    pub fn watch_begins(&mut self, agent: &str, key: &WatchKey) -> Arc<AtomicU64> {
        let is_full = self.bytes >= limits::REPORT_BYTES;
        let Some(agent) = self.agent(&agent_of(agent)) else { return Arc::default() };
        let is_new = !agent.watches.contains_key(key);
        if is_new && (is_full || agent.watches.len() >= limits::REPORT_ITEMS_MAX) {
            self.is_truncated = true;
            return Arc::default();
        }
        let added = if is_new { ENTRY_BYTES + key.selection.len() } else { 0 };
        let watch = agent.watches.entry(key.clone()).or_default();
        watch.running += 1;
        watch.started += 1;
        watch.restarted += u64::from(watch.has_ended);
        let events = watch.events.clone();
        self.bytes += added;
        events
    }

    pub fn watch_ends(&mut self, agent: &str, key: &WatchKey) {
        let watch = self.agents.get_mut(&agent_of(agent)).and_then(|agent| agent.watches.get_mut(key));
        if let Some(watch) = watch {
            watch.running = watch.running.saturating_sub(1);
            watch.has_ended = true;
        }
    }
}

impl WatchTally {
    /// A copy whose count of events stays as it is.
    fn copy(&self) -> WatchTally {
        WatchTally { events: Arc::new(self.events.load(Ordering::Acquire).into()), ..*self }
    }

    fn anew(self) -> WatchTally {
        self.events.store(0, Ordering::Release);
        WatchTally { started: self.running, restarted: 0, has_ended: false, ..self }
    }
}

/// The bytes of an entry of a map, besides its text: some short texts, counters, and the nodes of the map.
const ENTRY_BYTES: usize = 256;

/// The space that counters take.
#[derive(Default)]
struct Space {
    /// The bytes of what has been added, about.
    bytes: usize,
    /// Whether nothing may be added any more.
    is_full: bool,
}

impl Space {
    /// The counter of a key, which has a text of that length; `None` if it is a new one without room.
    fn counter<'m, K: Ord, V: Default>(
        &mut self,
        counters: &'m mut BTreeMap<K, V>,
        key: K,
        length: usize,
    ) -> Option<&'m mut V> {
        if !counters.contains_key(&key) {
            if self.is_full || counters.len() >= limits::REPORT_ITEMS_MAX {
                return None;
            }
            self.bytes += ENTRY_BYTES + length;
        }
        Some(counters.entry(key).or_default())
    }
}

impl AgentTally {
    fn copy(&self) -> AgentTally {
        AgentTally {
            users: self.users.clone(),
            requests: self.requests.clone(),
            reasons: self.reasons.clone(),
            counts: self.counts.clone(),
            findings: self.findings.clone(),
            pending: self.pending.clone(),
            watches: self.watches.iter().map(|(key, watch)| (key.clone(), watch.copy())).collect(),
            ..AgentTally::default()
        }
    }

    /// Records a finding. Each of these functions returns whether everything was kept.
    fn find(&mut self, check: Check, subject: String) -> bool {
        *self.counts.entry(check).or_default() += 1;
        let length = subject.len();
        self.space.counter(&mut self.findings, (check, subject), length).map(|count| *count += 1).is_some()
    }

    fn count(&mut self, exchange: &Exchange, ending: &RequestEnding) -> bool {
        let info = &exchange.info;
        let key = (info.verb.as_str(), resource_name(&info.group, &info.resource, &info.subresource));
        let length = key.1.len();
        let Some(requests) = self.space.counter(&mut self.requests, key, length) else { return false };
        requests.count += 1;
        requests.failed += u64::from(!(100..400).contains(&ending.code));
        true
    }

    fn count_rights(&mut self, exchange: &Exchange, ending: &RequestEnding) -> bool {
        let Some(user) = &exchange.user else { return true };
        if self.users.len() >= limits::REPORT_USERS_MAX && !self.users.contains_key(&user.name) {
            return false;
        }
        let tally = self.users.entry(user.name.clone()).or_default();
        if tally.user.name.is_empty() {
            tally.user = user.clone();
        }
        let right = Right::of(&exchange.info);
        if tally.rights.contains(&right) && ending.code != 201 {
            return true;
        }
        if self.space.is_full || tally.rights.len() >= limits::REPORT_ITEMS_MAX {
            return false;
        }
        // an update or apply that creates the object needs both permissions
        let created = ending.code == 201 && exchange.changes_object();
        let create = created.then(|| Right { verb: Verb::Create.as_str(), ..right.clone() });
        let demanded = right.demanded();
        let before = tally.rights.len();
        tally.rights.insert(right);
        tally.rights.extend(create.into_iter().chain(demanded));
        self.space.bytes += ENTRY_BYTES * (tally.rights.len() - before);
        true
    }

    fn count_failure(&mut self, exchange: &Exchange, ending: &RequestEnding) -> bool {
        let code = ending.code;
        if (100..400).contains(&code) {
            return true;
        }
        let reason = match ending.reason.map(Reason::as_str).filter(|reason| !reason.is_empty()) {
            Some(reason) => Text::new_static(reason),
            None if code == 0 => Text::new_static("Reset"),
            None => Text::from(format!("HTTP {code}")),
        };
        *self.reasons.entry(reason).or_default() += 1;
        let request = described(&exchange.info);
        match code {
            403 => self.find(Check::Forbidden, request),
            429 => self.find(Check::Throttled, request),
            409 if ending.reason == Some(Reason::Conflict) => {
                let object = object_of(exchange);
                let length = object.len();
                let pending = self.space.counter(&mut self.pending, object, length);
                let room = pending.map(|count| *count += 1).is_some();
                self.find(Check::Conflicts, request) && room
            }
            // clients often ask in order to learn that an object is absent, or exists already
            404 | 409 => true,
            400..500 => self.find(Check::Refused, request),
            _ => self.find(Check::Failed, request),
        }
    }

    fn count_write(&mut self, exchange: &Exchange, ending: &RequestEnding) -> bool {
        if !exchange.is_write() || !(200..300).contains(&ending.code) {
            return true;
        }
        if !self.pending.is_empty() {
            self.pending.remove(&object_of(exchange));
        }
        let mut room = true;
        if exchange.before.is_some() && exchange.before == ending.revision {
            room &= self.find(Check::NoOpWrites, described(&exchange.info));
        }
        if exchange.at_rest {
            room &= self.find(Check::WritesAtRest, described(&exchange.info));
        }
        room
    }

    fn count_rate(&mut self, exchange: &Exchange, now: Instant) -> bool {
        let info = &exchange.info;
        let writes = match info.verb {
            Verb::List if info.query.has("limit") || info.query.has("continue") => return true,
            Verb::List => return self.count_list(exchange, now),
            Verb::Get => false,
            Verb::Update | Verb::Patch | Verb::Delete => true,
            _ => return true,
        };
        let object = (info.group.clone(), info.resource.clone(), info.namespace.clone(), info.name.clone());
        let key = (writes, object);
        if (self.space.is_full || self.objects.len() >= limits::REPORT_ITEMS_MAX) && !self.objects.contains_key(&key) {
            self.objects.retain(|_, window| now - window.since < limits::HOT_LOOP);
            if self.space.is_full || self.objects.len() >= limits::REPORT_ITEMS_MAX {
                return false;
            }
        }
        // objects of one loop are forgotten, so these bytes are those of the most that there were
        self.space.bytes += if self.objects.contains_key(&key) { 0 } else { ENTRY_BYTES };
        let window = self.objects.entry(key).or_insert_with(|| RequestWindow::new(now));
        let max = limits::HOT_LOOP_PER_SECOND * limits::HOT_LOOP.as_secs();
        let is_hot = window.exceeds(now, limits::HOT_LOOP, max);
        !is_hot || self.find(Check::HotLoops, described(info))
    }

    fn count_list(&mut self, exchange: &Exchange, now: Instant) -> bool {
        let subject = described(&exchange.info);
        let is_known = self.lists.contains_key(&subject);
        if !is_known && (self.space.is_full || self.lists.len() >= limits::REPORT_ITEMS_MAX) {
            return false;
        }
        self.space.bytes += if is_known { 0 } else { ENTRY_BYTES + subject.len() };
        let window = self.lists.entry(subject.clone()).or_insert_with(|| RequestWindow::new(now));
        let is_storm = window.exceeds(now, limits::LIST_STORM, limits::LIST_STORM_MAX);
        !is_storm || self.find(Check::ListStorms, subject)
    }
}

/// The object of a request.
fn object_of(exchange: &Exchange) -> String {
    let info = &exchange.info;
    let place = if info.namespace.is_empty() { String::new() } else { format!("{}/", info.namespace) };
    format!("{} {place}{}", resource_name(&info.group, &info.resource, ""), info.name)
}
