//! Waits until nothing happens any more in a workspace.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::clock;
use machinery::{Result, Status, Value, json};
use tokio::time::Instant;

use super::Testing;
use super::fault::duration;
use super::queue::Hold;
use super::state::{Activity, Watcher};
use crate::limits;

/// A settle that a client waits for.
struct SettleOptions {
    quiet: Duration,
    timeout: Duration,
    rounds: u64,
    ignores_held: bool,
    ignored: Vec<String>,
}

impl SettleOptions {
    /// Reads an object that its schema has validated and completed.
    fn read(object: &Value) -> SettleOptions {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        SettleOptions {
            quiet: duration(spec, "quiet").unwrap_or_default(),
            timeout: duration(spec, "timeout").unwrap_or_default(),
            rounds: spec.get("rounds").and_then(Value::as_int).and_then(|n| u64::try_from(n).ok()).unwrap_or_default(),
            ignores_held: spec.str_at(&["held"]) == "Ignore",
            ignored: spec.items_at(&["ignore"]).iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }
}

/// A watch that has not received everything.
struct BehindWatch {
    watcher: Arc<Watcher>,
    events: usize,
    held_by: String,
}

/// The pending work at one moment.
struct Outstanding {
    behind: Vec<BehindWatch>,
    watches: usize,
    /// Events that gates hold.
    held: usize,
    in_flight: usize,
    /// Tasks that have not yet looked at what a change of the clock made due.
    late: usize,
    controller: Option<&'static str>,
    /// A client that has yet to repeat a request.
    repeat: Option<String>,
    writes: u64,
    last: Instant,
    object: String,
}

impl Outstanding {
    /// Whether clients have received everything and request nothing.
    fn is_delivered(&self) -> bool {
        self.behind.is_empty() && self.in_flight == 0 && self.late == 0
    }

    /// Whether nothing is left to be done by clients and by controllers of the server.
    fn is_at_rest(&self) -> bool {
        self.is_delivered() && self.controller.is_none() && self.repeat.is_none()
    }
}

/// A waiting client, until this is dropped.
struct Wait<'a> {
    testing: &'a Testing,
    id: u64,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.testing.change(|state| state.waits.remove(&self.id));
    }
}

/// How a wait has ended.
enum Ending {
    Settled,
    TimedOut,
    StillWriting,
}

impl Testing {
    /// Completes a Settle once the workspace has settled, or the time is over.
    pub async fn settle(&self, mut object: Value) -> Result<Value> {
        let wanted = SettleOptions::read(&object);
        if wanted.timeout >= self.request_timeout {
            let limit = self.request_timeout.as_secs_f64();
            let why = format!("spec.timeout must be shorter than the request timeout of the server, {limit} s");
            return Err(Status::bad_request(why));
        }
        let begun = clock::instant();
        let wait = self.wait(&wanted, begun);
        let (ending, view, rounds) = wait.until(&wanted, begun).await;
        drop(wait);
        if let Ending::Settled = ending {
            self.kept.tally.lock().settled(wanted.ignored);
        }
        object.set_at(&["status"], self.outcome(&ending, &view, rounds, begun.elapsed()));
        Ok(object)
    }

    fn wait(&self, wanted: &SettleOptions, begun: Instant) -> Wait<'_> {
        let id = self.change(|state| {
            let id = state.number();
            let ignored = wanted.ignored.clone();
            state.waits.insert(id, Activity { ignored, writes: 0, last: begun, object: String::new() });
            id
        });
        Wait { testing: self, id }
    }

    fn outcome(&self, ending: &Ending, view: &Outstanding, rounds: u64, took: Duration) -> Value {
        let behind = view.behind.iter().take(limits::SETTLE_NAMED).map(|behind| {
            let watcher = &behind.watcher;
            json!({"watch": (watcher.key.to_string()), "user": (watcher.user.as_str()), "userAgent": (watcher.agent.as_str()),
                "events": (behind.events), "heldBy": (behind.held_by.as_str())})
        });
        let flights: Vec<_> = self.state.lock().flights.values().take(limits::SETTLE_NAMED).cloned().collect();
        let requests = flights.iter().map(|flight| {
            json!({"request": (flight.request.as_str()), "user": (flight.user.as_str()),
                "userAgent": (flight.agent.as_str())})
        });
        let (is_settled, reason) = match ending {
            Ending::Settled => (true, "Settled"),
            Ending::TimedOut => (false, "TimedOut"),
            Ending::StillWriting => (false, "StillWriting"),
        };
        json!({
            "settled": is_settled,
            "reason": reason,
            "message": (message(ending, view)),
            "milliseconds": (u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            "rounds": rounds,
            "watches": (view.watches),
            "held": (view.held),
            "requestsInFlight": (view.in_flight),
            "behind": (behind.collect::<Value>()),
            "requests": (if view.in_flight > 0 { requests.collect::<Value>() } else { Value::Array(vec![]) }),
        })
    }

    fn view(&self, id: u64, ignores_held: bool) -> Outstanding {
        // first what causes requests and writes, so that none of them happens unseen in between
        let controller = self.busy_controller();
        let in_flight = self.in_flight.load(Ordering::Acquire);
        let mut state = self.state.lock();
        state.expire_repeats();
        let (writes, last, object) = match state.waits.get(&id) {
            Some(activity) => (activity.writes, activity.last, activity.object.clone()),
            None => (0, clock::instant(), String::new()),
        };
        let repeat = state.repeats.first();
        let watches: Vec<_> = state.watches.values().cloned().collect();
        drop(state);
        let held = |watcher: &Arc<Watcher>| watcher.queue.lock().count(|hold| matches!(hold, Hold::Gate(_)));
        Outstanding {
            held: watches.iter().map(held).sum(),
            behind: watches.iter().filter_map(|watcher| behind(watcher, ignores_held)).collect(),
            watches: watches.len(),
            in_flight,
            late: self.clock.lagging(),
            controller,
            repeat,
            writes,
            last,
            object,
        }
    }

    /// A controller of the server that has work. While a client waits, such controllers make no pauses.
    fn busy_controller(&self) -> Option<&'static str> {
        let controllers = self.controllers.get()?.upgrade()?;
        let busy = controllers.busy()?;
        controllers.hurry();
        Some(busy)
    }
}

impl Wait<'_> {
    /// Waits, and returns how the wait ended, what was still to be done then, and how often something was written
    /// after everything had been delivered.
    async fn until(&self, wanted: &SettleOptions, begun: Instant) -> (Ending, Outstanding, u64) {
        let (mut rounds, mut at_rest) = (0, None);
        loop {
            let view = self.testing.view(self.id, wanted.ignores_held);
            if at_rest.is_some_and(|writes| writes < view.writes) {
                rounds += 1;
                at_rest = None;
            }
            if view.is_delivered() {
                at_rest = Some(view.writes);
            }
            if view.is_at_rest() && view.last.elapsed() >= wanted.quiet {
                return (Ending::Settled, view, rounds);
            }
            if wanted.rounds > 0 && rounds > wanted.rounds {
                return (Ending::StillWriting, view, rounds);
            }
            if begun.elapsed() >= wanted.timeout {
                return (Ending::TimedOut, view, rounds);
            }
            // polled, so that watches need not report every event while no client waits
            tokio::time::sleep(limits::SETTLE_LOOK).await;
        }
    }
}

/// The events that a watch has not received; `None` if it has received all.
fn behind(watcher: &Arc<Watcher>, ignores_held: bool) -> Option<BehindWatch> {
    let sent = watcher.reached.load(Ordering::Acquire);
    let not_begun = usize::from(!watcher.has_begun.load(Ordering::Acquire));
    let outstanding = if not_begun > 0 { not_begun } else { watcher.position.outstanding(sent) };
    let queue = watcher.queue.lock();
    let (held, held_by) = match queue.held_first() {
        Some(Hold::Gate(name)) if ignores_held && queue.due().is_none() => (0, format!("Gate {name}")),
        Some(Hold::Gate(name)) => (queue.len(), format!("Gate {name}")),
        Some(Hold::Until(_, name) | Hold::Swap(_, name)) => (queue.len(), format!("Fault {name}")),
        Some(Hold::Free) | None => (queue.len(), String::new()),
    };
    let events = outstanding + held;
    (events > 0).then(|| BehindWatch { watcher: watcher.clone(), events, held_by })
}

/// One line about what was waited for last.
fn message(ending: &Ending, view: &Outstanding) -> String {
    if let Ending::Settled = ending {
        return "every watch has received everything, and nothing happens any more".to_owned();
    }
    if let Some(behind) = view.behind.first() {
        let more = match view.behind.len() - 1 {
            0 => String::new(),
            more => format!("; so do {more} more"),
        };
        let held_by = if behind.held_by.is_empty() { String::new() } else { format!(" held by {}", behind.held_by) };
        let (watch, agent, user) = (&behind.watcher.key, &behind.watcher.agent, &behind.watcher.user);
        let events = if behind.events == 1 { "1 event".to_owned() } else { format!("{} events", behind.events) };
        return format!("the watch of {watch} by {agent} ({user}) waits for {events}{held_by}{more}");
    }
    match view.in_flight {
        0 => {}
        1 => return "a request is in flight".to_owned(),
        count => return format!("{count} requests are in flight"),
    }
    if view.late > 0 {
        return "controllers of the server do what the clock has made due".to_owned();
    }
    if let Some(controller) = view.controller {
        return format!("the controller {controller:?} of the server has work");
    }
    if let Some(repeat) = &view.repeat {
        return repeat.clone();
    }
    if view.object.is_empty() {
        return "the quiet time has not passed yet".to_owned();
    }
    format!("objects are still written, {} was the last", view.object)
}
