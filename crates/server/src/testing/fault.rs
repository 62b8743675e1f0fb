//! Faults: their effects, the recipes, and the requests that they have hit.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use base::request::Verb;
use machinery::status::{Details, Reason};
use machinery::{Status, Text, Value, json};
use tokio::sync::watch;

use super::choice::{Choice, Match, mixed};
use super::matching::{Matchable, Matcher};
use super::trigger::Trigger;
use crate::limits;

machinery::text_enum! {
    /// The effect on an event of a watch.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EventEffect {
        Drop = "Drop",
        Repeat = "Repeat",
        Delay = "Delay",
        Reorder = "Reorder",
        End = "End",
        Expire = "Expire",
    }
}

/// How far a cache lags behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lateness {
    /// By this many changes of the resource.
    Changes(usize),
    Time(Duration),
}

/// The effect on a request.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultEffect {
    /// The request is only delayed.
    Slow,
    Error {
        code: u16,
        retry_after: Option<u32>,
        message: Option<String>,
    },
    Reset,
    Cut,
    TimedOutAfterCommit,
    ResetAfterCommit,
    Stale {
        behind: Lateness,
        consistent_reads: bool,
    },
    Event(EventEffect),
}

impl FaultEffect {
    pub fn is_of_events(&self) -> bool {
        matches!(self, FaultEffect::Event(_))
    }

    /// Whether the effect can apply to a request or an event.
    fn applies(&self, target: &Matchable<'_>) -> bool {
        match self {
            FaultEffect::Event(_) => target.verb.is_none(),
            FaultEffect::Stale { consistent_reads: true, .. } => target.reads_state,
            FaultEffect::Stale { .. } => target.may_be_stale,
            // a watch has no end, so there is no half of it
            FaultEffect::Cut => target.verb.is_some_and(|verb| verb != Verb::Watch),
            _ => target.verb.is_some(),
        }
    }

    /// Whether the effect can apply to requests with this verb, or to their events.
    pub fn concerns(&self, verb: Verb) -> bool {
        match self {
            FaultEffect::Event(_) => verb == Verb::Watch,
            FaultEffect::Stale { .. } => matches!(verb, Verb::Get | Verb::List | Verb::Watch),
            FaultEffect::Cut => verb != Verb::Watch,
            _ => true,
        }
    }

    /// The target of the effect, for messages.
    pub fn subjects(&self) -> &'static str {
        match self {
            FaultEffect::Event(_) => "it is about the events of watches",
            FaultEffect::Stale { .. } => "it is about reads",
            FaultEffect::Cut => "watch: End ends a watch",
            _ => "it is about requests",
        }
    }

    /// Whether the client sees its request fail.
    pub fn fails(&self) -> bool {
        !matches!(self, FaultEffect::Slow | FaultEffect::Stale { .. } | FaultEffect::Event(_))
    }

    /// The time for which the response asks the client to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        let FaultEffect::Error { code, retry_after, .. } = self else { return None };
        let seconds = retry_after.or((*code == 429).then_some(1)).filter(|seconds| *seconds > 0)?;
        Some(Duration::from_secs(seconds.into()))
    }

    /// The name of the effect in the status.
    pub fn name(&self) -> String {
        match self {
            FaultEffect::Slow => "delayed".to_owned(),
            FaultEffect::Error { code, .. } => format!("error {code}"),
            FaultEffect::Reset => "connection reset".to_owned(),
            FaultEffect::Cut => "response cut".to_owned(),
            FaultEffect::TimedOutAfterCommit => "timeout after the commit".to_owned(),
            FaultEffect::ResetAfterCommit => "reset after the commit".to_owned(),
            FaultEffect::Stale { .. } => "stale read".to_owned(),
            FaultEffect::Event(effect) => match effect {
                EventEffect::Drop => "event dropped",
                EventEffect::Repeat => "event repeated",
                EventEffect::Delay => "event delayed",
                EventEffect::Reorder => "event reordered",
                EventEffect::End => "watch ended",
                EventEffect::Expire => "watch expired",
            }
            .to_owned(),
        }
    }
}

/// One effect of a fault, with its own counts of matches.
#[derive(Clone, Debug)]
pub struct Rule {
    pub matcher: Matcher,
    pub choice: Choice,
    pub effect: FaultEffect,
    pub delay: Duration,
    pub jitter: Duration,
    /// The number of requests or events that have matched so far.
    pub matches: u64,
    /// The same by client and subject.
    counts: HashMap<u64, u64>,
}

impl Rule {
    fn new(matcher: Matcher, choice: Choice, effect: FaultEffect, delay: Duration, jitter: Duration) -> Rule {
        Rule { matcher, choice, effect, delay, jitter, matches: 0, counts: HashMap::new() }
    }

    pub fn delay_of(&self, at: Match) -> Duration {
        self.delay + self.choice.jitter(at, self.jitter)
    }

    fn count(&mut self, target: &Matchable<'_>) -> Match {
        self.matches += 1;
        let subject = target.subject();
        let mut key = mixed(subject) ^ target.client();
        if self.counts.len() >= limits::FAULT_COUNTS_MAX && !self.counts.contains_key(&key) {
            // beyond these, some share a counter
            key %= limits::FAULT_COUNTS_SHARED;
        }
        let ordinal = self.counts.entry(key).or_default();
        *ordinal += 1;
        Match { subject, ordinal: *ordinal }
    }
}

/// A request or an event that was hit, for the status.
#[derive(Clone, Debug)]
pub struct Hit {
    pub seconds: i64,
    pub ordinal: u64,
    pub effect: String,
    pub request: String,
    pub user: Text,
    pub agent: Text,
}

/// A fault that is in effect.
pub struct Fault {
    pub uid: Text,
    pub generation: i64,
    pub rules: Vec<Rule>,
    /// The number of remaining hits, if it is limited.
    left: Option<u64>,
    /// When the fault ends, in milliseconds since the Unix epoch.
    pub end: Option<i64>,
    pub hits: u64,
    last: VecDeque<Hit>,
    /// Dropped with the fault, which ends the delays of its requests.
    pub alive: watch::Sender<()>,
    /// The write that starts the fault.
    pub trigger: Option<Trigger>,
    /// Why the fault has no effect, if it has none.
    pub failure: Option<String>,
}

impl Fault {
    /// Reads a Fault that its schema has validated.
    pub fn read(object: &Value) -> Fault {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let when = spec.get("when").unwrap_or(&Value::Null);
        let trigger = when.get("trigger").map(Trigger::read).transpose();
        let (rules, trigger) = match (rules(spec), trigger) {
            (Ok(rules), Ok(trigger)) => (Ok(rules), trigger),
            (Err(why), _) | (_, Err(why)) => (Err(why), None),
        };
        let failure = rules.as_ref().err().cloned();
        Fault {
            uid: object.str_at(&["metadata", "uid"]).into(),
            generation: object.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default(),
            rules: rules.unwrap_or_default(),
            left: when.get("count").and_then(Value::as_int).and_then(|count| u64::try_from(count).ok()),
            end: end(object),
            hits: 0,
            last: VecDeque::new(),
            alive: watch::Sender::new(()),
            trigger,
            failure,
        }
    }

    /// Whether the fault selects objects by their labels.
    pub fn needs_labels(&self) -> bool {
        self.rules.iter().any(|rule| rule.matcher.needs_labels())
    }

    /// Whether the fault no longer has an effect.
    pub fn has_ended(&self, now_millis: i64) -> bool {
        self.left == Some(0) || self.end.is_some_and(|end| now_millis >= end)
    }

    /// Marks the fault as ended, since its time is over.
    pub fn expire(&mut self) {
        (self.left, self.end) = (Some(0), None);
    }

    /// The rule that hits a request or event, and the match. Every rule counts every match.
    pub fn hit<'l>(
        &mut self,
        target: &Matchable<'_>,
        labels: impl Fn() -> Option<&'l [(Text, Text)]>,
        now_millis: i64,
    ) -> Option<(&Rule, Match)> {
        if self.has_ended(now_millis) || self.trigger.is_some() {
            return None;
        }
        let mut found = None;
        for (index, rule) in self.rules.iter_mut().enumerate() {
            if !rule.effect.applies(target) || !rule.matcher.matches(target, &labels) {
                continue;
            }
            let at = rule.count(target);
            if found.is_none() && rule.choice.hits(at) {
                found = Some((index, at));
            }
        }
        let (index, at) = found?;
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.hits += 1;
        Some((self.rules.get(index)?, at))
    }

    /// Remembers a hit for the status.
    pub fn remember(&mut self, hit: Hit) {
        self.last.truncate(limits::FAULT_HITS_SHOWN - 1);
        self.last.push_front(hit);
    }

    pub fn status(&self, now_millis: i64) -> Value {
        let matches: u64 = self.rules.iter().map(|rule| rule.matches).sum();
        let phase = match &self.failure {
            Some(_) => "Failed",
            None if self.has_ended(now_millis) => "Ended",
            None if self.trigger.is_some() => "Waiting",
            None => "Active",
        };
        let hit = |hit: &Hit| {
            json!({
                "time": (machinery::time::rfc3339(hit.seconds)),
                "ordinal": (hit.ordinal),
                "effect": (hit.effect.as_str()),
                "request": (hit.request.as_str()),
                "user": (hit.user.as_str()),
                "userAgent": (hit.agent.as_str()),
            })
        };
        let last = Value::Array(self.last.iter().map(hit).collect());
        let mut status = json!({"phase": phase, "hits": (self.hits), "matches": matches, "last": last});
        if let Some(why) = &self.failure {
            status.set_at(&["message"], Value::from(why));
        }
        status
    }
}

/// When a fault ends, in milliseconds since the Unix epoch.
fn end(object: &Value) -> Option<i64> {
    let ttl = duration(object.get("spec")?.get("when")?, "ttl").filter(|ttl| !ttl.is_zero())?;
    let (created, _) = machinery::time::parse_rfc3339(object.str_at(&["metadata", "creationTimestamp"]))?;
    created.checked_mul(1000)?.checked_add(i64::try_from(ttl.as_millis()).ok()?)
}

/// The duration of a field, if it has one.
pub fn duration(value: &Value, name: &str) -> Option<Duration> {
    machinery::time::parse_duration(value.get(name)?.as_str()?).ok()
}

/// The rules of a specification. Fails with a one-line message.
fn rules(spec: &Value) -> Result<Vec<Rule>, String> {
    let matcher = Matcher::read(spec.get("match").unwrap_or(&Value::Null))?;
    let choice = spec.get("when").map(Choice::read);
    if let Some(effect) = spec.get("effect") {
        let time = |field| duration(effect, field).unwrap_or_default();
        let (delay, jitter) = (time("delay"), time("jitter"));
        return Ok(vec![Rule::new(matcher, choice.unwrap_or_default(), effect_of(effect)?, delay, jitter)]);
    }
    let recipe = spec.str_at(&["recipe"]);
    let (_, steps) =
        RECIPES.iter().find(|(name, _)| *name == recipe).ok_or(format!("there is no recipe {recipe:?}"))?;
    Ok(steps().into_iter().map(|step| step.rule(&matcher, choice.as_ref())).collect())
}

fn effect_of(value: &Value) -> Result<FaultEffect, String> {
    if let Some(error) = value.get("error") {
        let number = |name: &str| error.get(name).and_then(Value::as_int);
        let code = number("code").and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
        let retry_after = number("retryAfterSeconds").and_then(|seconds| u32::try_from(seconds).ok());
        let message = error.get("message").and_then(Value::as_str).map(str::to_owned);
        return Ok(FaultEffect::Error { code, retry_after, message });
    }
    if let Some(stale) = value.get("stale") {
        let changes = stale.get("changes").and_then(Value::as_int).and_then(|number| usize::try_from(number).ok());
        let behind = match changes {
            Some(changes) => Lateness::Changes(changes),
            None => Lateness::Time(duration(stale, "age").unwrap_or_default()),
        };
        let consistent_reads = stale.get("consistentReads") == Some(&Value::Bool(true));
        return Ok(FaultEffect::Stale { behind, consistent_reads });
    }
    let text = |name: &str| value.str_at(&[name]);
    match (text("connection"), text("afterCommit"), text("watch")) {
        ("Reset", ..) => Ok(FaultEffect::Reset),
        ("Cut", ..) => Ok(FaultEffect::Cut),
        (_, "Timeout", _) => Ok(FaultEffect::TimedOutAfterCommit),
        (_, "Reset", _) => Ok(FaultEffect::ResetAfterCommit),
        ("", "", "") => Ok(FaultEffect::Slow),
        (.., event) => EventEffect::parse(event).map(FaultEffect::Event).ok_or("spec.effect is unknown".to_owned()),
    }
}

/// A rule of a recipe.
struct RecipeStep {
    verbs: &'static [&'static str],
    effect: FaultEffect,
    /// When the step hits, unless the object says so.
    choice: Choice,
    delay: Duration,
    jitter: Duration,
}

impl RecipeStep {
    fn new(verbs: &'static [&'static str], effect: FaultEffect, choice: Choice) -> RecipeStep {
        RecipeStep { verbs, effect, choice, delay: Duration::ZERO, jitter: Duration::ZERO }
    }

    fn delayed(self, delay: Duration, jitter: Duration) -> RecipeStep {
        RecipeStep { delay, jitter, ..self }
    }

    /// Makes a rule of the step. If `when` has only a seed, a count or a time, the choice of the recipe is kept.
    fn rule(self, matcher: &Matcher, given: Option<&Choice>) -> Rule {
        let choice = match given {
            Some(given) if given.nth.is_none() && given.every.is_none() && given.percent.is_none() => {
                Choice { seed: given.seed, ..self.choice }
            }
            Some(given) => given.clone(),
            None => self.choice,
        };
        let matcher = if self.effect.is_of_events() { matcher.clone() } else { matcher.clone().or_verbs(self.verbs) };
        Rule::new(matcher, choice, self.effect, self.delay, self.jitter)
    }
}

const READS: &[&str] = &["get", "list", "watch"];
const WRITES: &[&str] = &["create", "update", "patch", "delete"];
const ALL: &[&str] = &[];

fn percent(percent: f64) -> Choice {
    Choice { percent: Some(percent), ..Choice::default() }
}

fn error(code: u16, seconds: u32) -> FaultEffect {
    FaultEffect::Error { code, retry_after: Some(seconds), message: None }
}

type Steps = fn() -> Vec<RecipeStep>;

/// The recipes. `docs/src/reference/testing-api.md` describes them.
const RECIPES: [(&str, Steps); 6] = [
    ("stale-reads", || {
        let (behind, lag) = (Lateness::Time(limits::RECIPE_LAG), limits::RECIPE_LAG);
        let stale = FaultEffect::Stale { behind, consistent_reads: false };
        let late = RecipeStep::new(ALL, FaultEffect::Event(EventEffect::Delay), Choice::default());
        vec![RecipeStep::new(READS, stale, Choice::default()), late.delayed(lag, Duration::ZERO)]
    }),
    ("missed-events", || {
        let expire = RecipeStep::new(ALL, FaultEffect::Event(EventEffect::Expire), percent(20.0));
        vec![expire.delayed(limits::RECIPE_OUTAGE, Duration::ZERO)]
    }),
    ("lost-response", || vec![RecipeStep::new(WRITES, FaultEffect::ResetAfterCommit, percent(33.0))]),
    ("throttled", || vec![RecipeStep::new(ALL, error(429, 1), percent(50.0))]),
    ("restarting-server", || {
        vec![
            RecipeStep::new(ALL, FaultEffect::Reset, percent(5.0)),
            RecipeStep::new(ALL, error(503, 1), percent(20.0)),
            RecipeStep::new(ALL, FaultEffect::Event(EventEffect::End), percent(10.0)),
        ]
    }),
    ("flaky-watch", || {
        let (delay, jitter) = (Duration::from_millis(200), Duration::from_millis(500));
        vec![
            RecipeStep::new(ALL, FaultEffect::Event(EventEffect::End), percent(15.0)),
            RecipeStep::new(ALL, FaultEffect::Event(EventEffect::Expire), percent(4.0)),
            RecipeStep::new(ALL, FaultEffect::Event(EventEffect::Repeat), percent(20.0)),
            RecipeStep::new(ALL, FaultEffect::Event(EventEffect::Delay), percent(30.0)).delayed(delay, jitter),
        ]
    }),
];

/// The Status of an injected error.
pub fn status_of(code: u16, retry_after: Option<u32>, message: Option<&str>, target: &Matchable<'_>) -> Status {
    let text = |default: &str| message.unwrap_or(default).to_owned();
    let after = |status: Status| match retry_after {
        Some(seconds) if seconds > 0 => {
            status.with_details(Details { retry_after_seconds: seconds, ..Details::default() })
        }
        _ => status,
    };
    let of = |reason: Reason, default: &str| after(Status::new(reason, text(default)));
    match code {
        400 => of(Reason::BadRequest, "the server rejected our request for an unknown reason"),
        401 => of(Reason::Unauthorized, "Unauthorized"),
        403 => Status::forbidden(target.group, target.resource, target.name, &text("a fault forbids it")),
        404 if message.is_none() && !target.name.is_empty() => {
            Status::not_found(target.group, target.resource, target.name)
        }
        404 => of(Reason::NotFound, "the server could not find the requested resource"),
        405 => of(Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"),
        406 => {
            of(Reason::NotAcceptable, "the server was unable to respond with a content type that the client supports")
        }
        413 => of(Reason::RequestEntityTooLarge, "Request entity too large: limit is 3145728"),
        415 => of(Reason::UnsupportedMediaType, "the body of the request was in an unknown format"),
        422 => of(Reason::Invalid, "the server rejected our request due to an error in our request"),
        408 | 501 | 502 => {
            after(Status::untyped(code, text("an error on the server has prevented the request from succeeding")))
        }
        409 => {
            let why =
                text("the object has been modified; please apply your changes to the latest version and try again");
            Status::conflict(target.group, target.resource, target.name, &why)
        }
        410 => Status::expired(text("The resourceVersion for the provided watch is too old.")),
        429 => {
            let message = text("The server has received too many requests and has asked us to try again later");
            Status::too_many_requests(message, retry_after.unwrap_or(1))
        }
        503 => {
            after(Status::new(Reason::ServiceUnavailable, text("the server is currently unable to handle the request")))
        }
        504 => {
            after(Status::new(Reason::Timeout, text("Timeout: request did not complete within the allotted timeout")))
        }
        _ => after(Status::internal(text("the server has failed"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target<'a>(verb: Option<Verb>, name: &'a str) -> Matchable<'a> {
        let (group, resource, subresource, namespace) = ("", "pods", "", "n");
        let (reads_state, may_be_stale) = (true, true);
        let (user, agent) = ("ann", "a/1");
        Matchable { user, agent, verb, group, resource, subresource, namespace, name, reads_state, may_be_stale }
    }

    fn fault(spec: Value) -> Fault {
        let fault = Fault::read(&json!({"metadata": {"uid": "u", "generation": 1}, "spec": (spec)}));
        assert_eq!(fault.failure, None);
        fault
    }

    /// The effects on a sequence of requests.
    fn decisions(fault: &mut Fault, count: usize) -> Vec<Option<(String, u64, Duration)>> {
        let verbs = [Verb::Get, Verb::Create, Verb::List, Verb::Update, Verb::Patch, Verb::Delete];
        let decide = |index: usize| {
            let name = format!("p{}", index % 3);
            let of_events = index.is_multiple_of(4);
            let verb = verbs.get(index % verbs.len()).copied().filter(|_| !of_events);
            let hit = fault.hit(&target(verb, &name), || None, 0);
            hit.map(|(rule, at)| (rule.effect.name(), at.ordinal, rule.delay_of(at)))
        };
        (0..count).map(decide).collect()
    }

    #[test]
    fn same_seed_makes_the_same_decisions() {
        let slow = json!({"delay": "10ms", "jitter": "2s"});
        let specs = [
            json!({"effect": (slow), "when": {"percent": 30, "seed": 11}}),
            json!({"recipe": "flaky-watch", "when": {"seed": 5}}),
            json!({"recipe": "missed-events"}),
            json!({"recipe": "restarting-server"}),
        ];
        for spec in specs {
            let wanted = decisions(&mut fault(spec.clone()), 200);
            assert!(wanted.iter().any(Option::is_some) && wanted.iter().any(Option::is_none), "{}", spec.to_json());
            for run in 0..1_000 {
                assert_eq!(decisions(&mut fault(spec.clone()), 200), wanted, "run {run} of {}", spec.to_json());
            }
        }
    }

    /// As goroutines do that handle objects at the same time.
    #[test]
    fn the_order_in_which_objects_are_handled_does_not_matter() {
        let of_objects = |order: &[usize]| {
            let specs = [json!({"percent": 40, "seed": 3}), json!({"nth": 2}), json!({"every": 3, "burst": 2})];
            let mut decisions = vec![];
            for when in specs {
                let mut fault = fault(json!({"effect": {"delay": "1s", "jitter": "1s"}, "when": when}));
                let mut of_run: Vec<(usize, Option<(u64, Duration)>)> = vec![];
                for index in order {
                    let name = format!("p{}", index % 7);
                    let hit = fault.hit(&target(Some(Verb::Update), &name), || None, 0);
                    of_run.push((index % 7, hit.map(|(rule, at)| (at.ordinal, rule.delay_of(at)))));
                }
                // the decisions about each object, in order
                of_run.sort_by_key(|(object, _)| *object);
                decisions.push(of_run);
            }
            decisions
        };
        let forward: Vec<usize> = (0..70).collect();
        let mut by_object = forward.clone();
        by_object.sort_by_key(|index| index % 7);
        let mut backward = by_object.clone();
        backward.reverse();
        assert_eq!(of_objects(&forward), of_objects(&by_object));
        assert_eq!(of_objects(&forward), of_objects(&backward));
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let mut fault = fault(json!({"effect": {"delay": "1s"}, "when": {"nth": 2}}));
        for number in 0..limits::FAULT_COUNTS_MAX + 5_000 {
            fault.hit(&target(Some(Verb::Get), &format!("p{number}")), || None, 0);
        }
        let most = limits::FAULT_COUNTS_MAX + usize::try_from(limits::FAULT_COUNTS_SHARED).unwrap();
        assert!(fault.rules[0].counts.len() <= most);
    }

    #[test]
    fn every_recipe_of_the_schema_exists() {
        let definitions = super::super::definition::definitions().unwrap();
        let path = ["openAPIV3Schema", "properties", "spec", "properties", "recipe", "enum"];
        let schema = definitions[0].items_at(&["spec", "versions"])[0].get("schema").unwrap();
        let names: Vec<&str> = schema.items_at(&path).iter().filter_map(Value::as_str).collect();
        assert_eq!(names, RECIPES.map(|(name, _)| name));
        for name in names {
            assert!(!fault(json!({"recipe": name})).rules.is_empty());
        }
    }

    #[test]
    fn faults_end_with_their_count_or_time() {
        let mut counted = fault(json!({"effect": {"error": {"code": 500}}, "when": {"count": 2}}));
        let hits = decisions(&mut counted, 12).into_iter().flatten().count();
        assert_eq!((hits, counted.hits, counted.status(0).str_at(&["phase"])), (2, 2, "Ended"));
        let object = json!({"metadata": {"creationTimestamp": "1970-01-01T00:00:10Z"},
            "spec": {"effect": {"delay": "1s"}, "when": {"ttl": "5s"}}});
        let timed = Fault::read(&object);
        assert!(!timed.has_ended(14_999) && timed.has_ended(15_000));
    }

    #[test]
    fn injected_errors_are_those_of_kubernetes() {
        let of = |code| status_of(code, Some(3), None, &target(Some(Verb::Update), "a"));
        for (code, reason, seconds) in [
            (400, "BadRequest", 3),
            (401, "Unauthorized", 3),
            (403, "Forbidden", 0),
            (404, "NotFound", 0),
            (405, "MethodNotAllowed", 3),
            (406, "NotAcceptable", 3),
            (408, "", 3),
            (413, "RequestEntityTooLarge", 3),
            (415, "UnsupportedMediaType", 3),
            (422, "Invalid", 3),
            (501, "", 3),
            (502, "", 3),
            (409, "Conflict", 0),
            (410, "Expired", 0),
            (429, "TooManyRequests", 3),
            (500, "InternalError", 3),
            (503, "ServiceUnavailable", 3),
            (504, "Timeout", 3),
        ] {
            let status = of(code);
            assert_eq!((status.code, status.reason_text(), status.retry_after_seconds()), (code, reason, seconds));
        }
        let text = "Operation cannot be fulfilled on pods \"a\": the object has been modified; please apply your changes to the latest version and try again";
        assert_eq!(of(409).message, text);
    }
}
