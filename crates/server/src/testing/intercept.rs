//! Applies faults to requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::clock;
use base::request::{RequestInfo, Verb};
use futures_util::future::BoxFuture;
use machinery::{Result, Status, Text, Value};
use objects::{Position, Stored};
use tokio::sync::watch;

use super::Testing;
use super::checking::check;
use super::clock::ClockCompletion;
use super::definition::{CLOCKS, FAULTS, GATES, GROUP, REVIEWS};
use super::fault::{FaultEffect, Hit, Lateness, status_of};
use super::matching::{Matchable, described};
use super::repeats::{FailedRequest, RepeatKey};
use super::report::Observing;
use super::state::{InFlightRequest, ReportedKind, TestState};
use crate::http::{Disruption, InterceptedRequest, Interception, Interceptor, Observation, Tap};
use crate::verbs::{Behind, Completion, Deliveries, Lag, Request};

/// The interceptor of a workspace.
pub struct Hook(pub Arc<Testing>);

impl Interceptor for Hook {
    fn counter(&self, info: &RequestInfo) -> Option<&AtomicUsize> {
        (info.verb != Verb::Watch && info.group != GROUP).then_some(&self.0.in_flight)
    }

    fn intercept(&self, subject: &InterceptedRequest<'_>) -> Option<Interception> {
        if subject.info.group == GROUP {
            return refused(subject.info).or_else(|| self.0.exactly(subject.info));
        }
        if self.0.is_active() { self.0.intercept(subject) } else { None }
    }

    fn observe(&self, info: &RequestInfo, agent: &str) -> Option<Box<dyn Observation>> {
        let observing = Observing::begin(&self.0, info, agent)?;
        Some(Box::new(observing))
    }

    fn tap(&self, info: &RequestInfo, path: &str, head: &http::request::Parts) -> Option<Arc<dyn Tap>> {
        if !self.0.records.load(Ordering::Acquire) {
            return None;
        }
        self.0.recorder.lock().clone()?.begin(info, path, head)
    }

    fn deliveries(&self, watch: &Request, agent: &str, position: Position) -> Box<dyn Deliveries> {
        Box::new(self.0.clone().begin(watch, agent, position))
    }

    fn completion(&self, info: &RequestInfo) -> Option<Box<dyn Completion>> {
        let clock = (info.resource == CLOCKS).then(|| ClockCompletion(self.0.clock.clone()));
        (info.group == GROUP).then(|| Box::new(CheckedCompletion { clock }) as Box<dyn Completion>)
    }

    fn is_review(&self, info: &RequestInfo) -> bool {
        is_review(info) && info.subresource.is_empty()
    }

    fn review(&self, object: Value) -> BoxFuture<'_, Result<Value>> {
        match object.str_at(&["kind"]) {
            "Report" => Box::pin(async { self.0.report_on(object) }),
            "Recording" => Box::pin(async { self.0.record(object) }),
            _ => Box::pin(self.0.settle(object)),
        }
    }
}

/// Checks an object of this group before it is stored.
struct CheckedCompletion {
    clock: Option<ClockCompletion>,
}

impl Completion for CheckedCompletion {
    fn complete(&self, object: &mut Value, old: Option<&Value>) -> Result<()> {
        // what an earlier version of the server has accepted stays
        if old.is_none_or(|old| old.get("spec") != object.get("spec")) {
            check(object)?;
        }
        self.clock.as_ref().map_or(Ok(()), |clock| clock.complete(object, old))
    }
}

impl Testing {
    /// Lets a read of faults or gates wait until their status is that of this moment.
    fn exactly(self: &Arc<Self>, info: &RequestInfo) -> Option<Interception> {
        let reads = matches!(info.verb, Verb::Get | Verb::List) && [FAULTS, GATES].contains(&info.resource.as_str());
        if !reads || !self.is_active() && !self.state.lock().has_changed() {
            return None;
        }
        let testing = self.clone();
        let delay: BoxFuture<'static, ()> = Box::pin(async move { testing.report().await });
        Some(Interception { delay: Some(delay), ..Interception::default() })
    }

    fn intercept(self: &Arc<Self>, subject: &InterceptedRequest<'_>) -> Option<Interception> {
        let target = target_of(subject);
        let stored = self.stored(&target);
        let labels = || stored.as_deref().map(|stored| &*stored.meta.labels);
        let mut state = self.state.lock();
        let now = state.now_millis();
        let id = state.number();
        let request = described(subject.info);
        let flight =
            InFlightRequest { request: request.clone(), user: target.user.into(), agent: target.agent.to_owned() };
        state.flights.insert(id, flight);
        let mut guard = FlightGuard { testing: self.clone(), id, failed: None };
        let key = RepeatKey::of(target.user, target.agent, subject.info);
        state.repeats.requested(&key);
        let mut found = None;
        for (name, fault) in &mut state.faults {
            let alive = fault.alive.subscribe();
            if let Some((rule, at)) = fault.hit(&target, labels, now) {
                found = Some((name.clone(), rule.effect.clone(), rule.delay_of(at), at, alive));
                break;
            }
        }
        let Some((name, effect, delay, at, alive)) = found else {
            return Some(Interception { guard: Some(Box::new(guard)), ..Interception::default() });
        };
        let hit = Hit {
            seconds: now.div_euclid(1000),
            ordinal: at.ordinal,
            effect: effect.name(),
            request: request.clone(),
            user: target.user.into(),
            agent: target.agent.into(),
        };
        let disruption = disruption(&effect, &target, &state);
        state.remember(&name, hit);
        if effect.fails() {
            let pause = effect.retry_after();
            let is_expected =
                pause.is_some() || is_informer(subject.info) || state.has_watch(target.user, target.agent);
            guard.failed = is_expected.then(|| (key, FailedRequest { request, fault: name.clone(), pause }));
        }
        drop(state);
        self.has_changed.notify_one();
        Some(Interception {
            delay: (!delay.is_zero()).then(|| pause(delay, alive)),
            disruption,
            cause: name,
            guard: Some(Box::new(guard)),
        })
    }

    /// The stored object that a request names, if a fault selects objects by their labels.
    fn stored(&self, target: &Matchable<'_>) -> Option<Arc<Stored>> {
        if target.name.is_empty() || target.verb == Some(Verb::Create) {
            return None;
        }
        let matters = self.state.lock().faults.values().any(|fault| fault.needs_labels());
        let resource = matters.then(|| self.context()?.registry.get(target.group, target.resource)).flatten()?;
        resource.collection.get(&resource.key(target.namespace, target.name).path)
    }
}

impl TestState {
    pub fn remember(&mut self, name: &Text, hit: Hit) {
        if let Some(fault) = self.faults.get_mut(name) {
            fault.remember(hit);
            self.changed.insert((ReportedKind::Fault, name.clone()));
        }
    }
}

fn is_review(info: &RequestInfo) -> bool {
    info.group == GROUP && REVIEWS.contains(&info.resource.as_str())
}

/// Refuses an apply of a review, which would store it.
fn refused(info: &RequestInfo) -> Option<Interception> {
    let stores = is_review(info) && matches!(info.verb, Verb::Update | Verb::Patch);
    let refusal = || Disruption::Refused(Status::method_not_supported(GROUP, &info.resource, info.verb.as_str()));
    stores.then(|| Interception { disruption: Some(refusal()), ..Interception::default() })
}

/// A request in flight, until this is dropped.
struct FlightGuard {
    testing: Arc<Testing>,
    id: u64,
    /// Set if a fault makes the request fail and the client is expected to repeat it.
    failed: Option<(RepeatKey, FailedRequest)>,
}

impl Drop for FlightGuard {
    fn drop(&mut self) {
        self.testing.change(|state| {
            state.flights.remove(&self.id);
            if let Some((key, failed)) = self.failed.take() {
                state.repeats.expect(key, failed, clock::instant());
            }
        });
    }
}

/// Whether a request is one with which informers begin. They repeat it, whereas commands give up.
fn is_informer(info: &RequestInfo) -> bool {
    info.verb == Verb::Watch || info.verb == Verb::List && info.query.has("resourceVersion")
}

fn target_of<'a>(subject: &InterceptedRequest<'a>) -> Matchable<'a> {
    let info = subject.info;
    let has_version = info.query.get("resourceVersion").is_some_and(|version| !version.is_empty());
    let is_exact = info.query.get("resourceVersionMatch") == Some("Exact") || info.query.has("continue");
    let reads = match info.verb {
        Verb::Get | Verb::List => !is_exact,
        Verb::Watch => {
            info.query.flag("sendInitialEvents") || matches!(info.query.get("resourceVersion"), None | Some("" | "0"))
        }
        _ => false,
    };
    Matchable {
        user: &subject.user.name,
        agent: subject.agent,
        verb: Some(info.verb),
        group: &info.group,
        resource: &info.resource,
        subresource: &info.subresource,
        namespace: &info.namespace,
        name: &info.name,
        reads_state: reads,
        may_be_stale: reads && has_version,
    }
}

/// Waits for the delay, or until the fault is removed.
fn pause(delay: Duration, mut alive: watch::Receiver<()>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = alive.changed() => {}
        }
    })
}

fn disruption(effect: &FaultEffect, target: &Matchable<'_>, state: &TestState) -> Option<Disruption> {
    Some(match effect {
        FaultEffect::Slow | FaultEffect::Event(_) => return None,
        FaultEffect::Error { code, retry_after, message } => {
            Disruption::Refused(status_of(*code, *retry_after, message.as_deref(), target))
        }
        FaultEffect::Reset => Disruption::Reset,
        FaultEffect::Cut => Disruption::ResponseCut,
        FaultEffect::TimedOutAfterCommit => Disruption::ResponseTimedOut,
        FaultEffect::ResetAfterCommit => Disruption::ResponseLost,
        FaultEffect::Stale { behind, consistent_reads } => {
            let behind = match behind {
                Lateness::Changes(changes) => Behind::Changes(*changes),
                Lateness::Time(age) => Behind::At(state.revision_before(*age)?),
            };
            Disruption::Lagging(Lag { behind, consistent_reads: *consistent_reads })
        }
    })
}
