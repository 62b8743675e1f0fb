//! EvictionRequests and Evictions (`lifecycle.k8s.io`): the Pods to evict, and the responders that evict them.
//!
//! The rules here are those that kube-apiserver writes by hand; those that its types declare are in `declared.txt`.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use base::clock;
use machinery::Value;
use machinery::time::parse_rfc3339;

use resource::builtin::checks::{self, text};
use schema::at::At;

/// The maximum number of responders of an Eviction: those of a Pod, and Kubernetes itself.
const RESPONDERS_MAX: usize = 11;
/// The responder of Kubernetes itself, and its priority.
const IMPERATIVE: (&str, i64) = ("imperative-eviction.k8s.io/evictor", 100);
/// Lower priorities are reserved for responders of Kubernetes.
const OWN_PRIORITY_MIN: i64 = 1000;
/// How long a responder may stay silent, and how far its clock may be off.
const SILENCE_SECONDS: i64 = 20 * 60;
const SKEW_SECONDS: i64 = 30;
/// How far in the future the expected completion may be: ten years.
const COMPLETION_SECONDS_MAX: i64 = 10 * 365 * 24 * 60 * 60;

const ENDED: [&str; 3] = ["Canceled", "Completed", "Interrupted"];

/// The time of a field, in seconds.
fn time(object: &Value, name: &str) -> Option<i64> {
    parse_rfc3339(text(object, name)).map(|(seconds, _)| seconds)
}

fn is_present(seconds: i64, now: i64) -> bool {
    (seconds - now).abs() < SKEW_SECONDS
}

fn holds(status: At, kind: &str) -> bool {
    status.list("conditions").iter().any(|one| text(one, "type") == kind && text(one, "status") == "True")
}

pub fn validate_status(at: At) {
    let status = at.field("status");
    checks::validate_conditions(at);
    let conditions = status.field("conditions");
    let mut is_final = holds(status, "TargetEvicted") || holds(status, "Failed");
    for condition in conditions.old_items() {
        let kind = text(condition, "type");
        if !["TargetEvicted", "Failed"].contains(&kind) || text(condition, "status") != "True" {
            continue;
        }
        let new = conditions.items().find(|new| new.text("type") == kind);
        if new.is_none_or(|new| new.text("status") == "False" || new.text("reason") != text(condition, "reason")) {
            let print = |one: At| machinery::types::published_json(one.value, "meta.v1.Condition");
            let shown: Vec<String> = conditions.items().map(print).collect();
            let shown = if shown.is_empty() { "null".to_owned() } else { format!("[{}]", shown.join(",")) };
            conditions.shown_verbatim(&shown).invalid(format!("{kind} condition status cannot be reverted"));
            is_final = true;
        }
    }
    let responders = Responders { status, is_final, now: clock::now_seconds() };
    responders.targets();
    responders.statuses();
}

/// The responders of an Eviction, which become active and end one after the other.
struct Responders<'p, 'v> {
    status: At<'p, 'v>,
    /// Whether the eviction has ended.
    is_final: bool,
    now: i64,
}

const TARGETS: &str = "targetResponders";
const STATUSES: &str = "responders";

/// Whether all items have different names.
fn are_unique(list: At) -> bool {
    let names: HashSet<&str> = list.items().map(|item| item.text("name")).collect();
    names.len() == list.items().len()
}

fn has(list: At, name: &str) -> bool {
    list.items().any(|item| item.text("name") == name)
}

/// An `Invalid value` error that shows a list as kube-apiserver prints it in its internal type.
fn invalid_list(list: At, go: &str, why: &str) {
    let shown = if list.items().len() == 0 { "null".to_owned() } else { list.printed_items(go) };
    list.shown_verbatim(&shown).invalid(why);
}

/// The responders in the order in which they become active: by priority, then by the labels of the domain from the last
/// to the first, then by the rest of the name.
fn in_order(targets: &[Value]) -> Vec<(usize, &Value)> {
    let mut all: Vec<(usize, &Value)> = targets.iter().enumerate().collect();
    all.sort_by_key(|(_, target)| {
        let (domain, key) = text(target, "name").split_once('/').unwrap_or((text(target, "name"), ""));
        let priority = target.get("priority").and_then(Value::as_int);
        (Reverse(priority), domain.split('.').rev().collect::<Vec<_>>(), key)
    });
    all
}

impl Responders<'_, '_> {
    fn targets(&self) {
        let targets = self.status.field(TARGETS);
        let before = targets.old_items();
        let invalid = |why: &str| invalid_list(targets, "lifecycle.TargetResponder", why);
        let count = targets.items().len();
        if !before.is_empty() && count != before.len() {
            return invalid("must preserve the same length and the same keys");
        }
        if before.iter().any(|old| !has(targets, text(old, "name"))) {
            return invalid("must preserve the same keys");
        }
        // the declared rules report these errors
        if count > RESPONDERS_MAX || !are_unique(targets) {
            return;
        }
        let (ordered, before) = (in_order(self.status.list(TARGETS)), in_order(before));
        let active = before.iter().position(|(_, old)| text(old, "state") == "Active");
        let turn = Turn { before: &before, active, is_final: self.is_final };
        for (place, (i, _)) in ordered.iter().enumerate() {
            let is_over = active.is_some_and(|active| text(ordered[active].1, "state") != "Active");
            self.target(targets.item(*i), turn.expected(place, is_over));
        }
    }

    /// Checks a responder that must be in one of the given states.
    fn target(&self, target: At, (states, reason): (Vec<&str>, &str)) {
        let name = target.text("name");
        let Some(status) = self.status.list(STATUSES).iter().find(|status| text(status, "name") == name) else {
            let why = format!("{} has to be tracked in status.responders first", machinery::value::quote(name));
            return target.shown_as_go("lifecycle.TargetResponder").invalid(why);
        };
        let (priority, state) = (target.field("priority"), target.field_or_empty("state"));
        match priority.value.as_int().filter(|priority| *priority >= 0) {
            Some(given) if name == IMPERATIVE.0 && given != IMPERATIVE.1 => {
                priority.invalid(format!("core k8s responder is expected to have priority: {}", IMPERATIVE.1));
            }
            Some(..OWN_PRIORITY_MIN) if name != IMPERATIVE.0 => {
                priority.invalid("priorities 0-999 are reserved for responders with *.k8s.io suffix");
            }
            _ => {}
        }
        if !states.contains(&state.as_text()) {
            return state.invalid(format!("must be one of: {}, because {reason}", states.join(", ")));
        }
        let started = time(status, "startTime").filter(|_| time(status, "completionTime").is_none() && !self.is_final);
        if let Some(started) = started.filter(|_| state.as_text() != "Active") {
            let heartbeat = time(status, "heartbeatTime").unwrap_or(started);
            if self.now < heartbeat + SILENCE_SECONDS - SKEW_SECONDS {
                state.forbidden("must stay Active because the responder is in progress and it should report status.responders.heartbeatTime or status.responders.completionTime");
            }
        }
        if state.as_text() == "Completed" && time(status, "completionTime").is_none() {
            state.invalid(
                "cannot become Completed because the responder didn't report status.responders.completionTime",
            );
        }
    }

    fn statuses(&self) {
        let (targets, statuses) = (self.status.field(TARGETS), self.status.field(STATUSES));
        let invalid = |why: &str| invalid_list(statuses, "lifecycle.ResponderStatus", why);
        if targets.items().len() != statuses.items().len() {
            return invalid("must be the same length as status.targetResponders and contain the same keys");
        }
        if targets.items().any(|target| !has(statuses, target.text("name"))) {
            return invalid("must contain the same keys as status.targetResponders");
        }
        if statuses.items().len() > RESPONDERS_MAX || !are_unique(statuses) {
            return;
        }
        let states: HashMap<&str, &str> =
            targets.items().map(|target| (target.text("name"), target.text("state"))).collect();
        let before = statuses.old_items();
        for status in statuses.items() {
            let old = before.iter().find(|old| text(old, "name") == status.text("name"));
            self.responder(status.with_old(old), states.get(status.text("name")) == Some(&"Active"));
        }
    }

    /// Checks the times that a responder reports. Only the active responder may change them.
    fn responder(&self, status: At, is_active: bool) {
        if status.old.is_some_and(|old| old != status.value) && !is_active {
            return status.shown_as_go("lifecycle.ResponderStatus").invalid("field is immutable");
        }
        let (start, heartbeat) = (status.field("startTime"), status.field("heartbeatTime"));
        let before = |name: &str| status.old.and_then(|old| time(old, name));
        let (now, started) = (self.now, time(status.value, "startTime"));
        let (early, late) =
            (format!("cannot be set before {} is set", start.path()), format!("must occur after {}", start.path()));
        if before("startTime").is_none() && started.is_some_and(|started| !is_present(started, now)) {
            start.invalid("must be set to the present time");
        }
        for name in ["heartbeatTime", "expectedCompletionTime", "completionTime"] {
            let before = before(name);
            let Some(time) = time(status.value, name).filter(|seconds| Some(*seconds) != before) else { continue };
            let why = match (started, name) {
                (_, "completionTime") if before.is_some() => continue,
                (None, _) => &early,
                (_, "heartbeatTime") if before.is_some_and(|before| time < before) => "cannot be decreased",
                (Some(started), _) if time < started => &late,
                (_, "expectedCompletionTime") if time < now - SKEW_SECONDS => "cannot be set to the past time",
                (_, "expectedCompletionTime") if time > now + COMPLETION_SECONDS_MAX => "must complete within 10 years",
                (_, "expectedCompletionTime") => continue,
                _ if !is_present(time, now) => "must be set to the present time",
                _ => continue,
            };
            status.field(name).invalid(why);
        }
        if before("startTime").is_none() && started.is_none() && is_active {
            start.required("is required for an active responder");
        }
        if before("heartbeatTime").is_some() && time(status.value, "heartbeatTime").is_none() {
            heartbeat.required("is required once set");
        }
    }
}

/// The responders before a write, and which of them is active.
struct Turn<'a> {
    before: &'a [(usize, &'a Value)],
    /// The index of the active responder.
    active: Option<usize>,
    is_final: bool,
}

impl Turn<'_> {
    /// The states that the responder at index `place` may have, and the reason. `is_over` means that this write ends
    /// the active responder.
    fn expected(&self, place: usize, is_over: bool) -> (Vec<&'static str>, &'static str) {
        const FINISHED: &str = "the eviction request has finished processing";
        let state_before = |place: usize| {
            let old = self.before.get(place).map_or("", |(_, old)| text(old, "state"));
            ["Active", "Canceled", "Completed", "Inactive", "Interrupted"].into_iter().find(|known| *known == old)
        };
        let have_all_ended =
            self.is_final || self.before.last().is_some_and(|(_, last)| ENDED.contains(&text(last, "state")));
        let is_processed = self.active.is_some_and(|active| place < active)
            || (!self.before.is_empty() && self.active.is_none() && have_all_ended);
        let is_next = match self.active {
            Some(active) => place == active + 1 && is_over,
            None => place == 0 && self.before.is_empty(),
        };
        match self.active == Some(place) {
            _ if is_processed => (state_before(place).into_iter().collect(), "final state is immutable"),
            true if is_over => (ENDED.to_vec(), "this responder must reach a final state"),
            true if self.is_final => (ENDED.to_vec(), FINISHED),
            true => (vec!["Active"], "the eviction request stays active"),
            false if is_next && self.is_final => (vec!["Inactive"], FINISHED),
            false if is_next => (vec!["Active"], "this responder is next in line"),
            false => (vec!["Inactive"], "the previously active has not finished processing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::{Release, json};

    use super::*;
    use schema::at::errors_of;

    fn target(name: &str, state: &str) -> Value {
        json!({"name": (name), "priority": 2000, "state": (state)})
    }

    fn found(status: Value, before: Value) -> Vec<String> {
        let (status, before) = (json!({"status": (status)}), json!({"status": (before)}));
        errors_of(&status, Some(&before), Release::NEWEST, validate_status).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_first_responder_becomes_active() {
        let now = clock::now_rfc3339();
        let first = json!({"name": "a.io/x", "startTime": (now.as_str())});
        let begun = |first_state: &str, second_state: &str| {
            json!({"targetResponders": [(target("a.io/x", first_state)), (target("b.io/y", second_state))],
                "responders": [(first.clone()), {"name": "b.io/y"}]})
        };
        assert_eq!(found(begun("Active", "Inactive"), json!({})), [""; 0]);
        let next = "must be one of: Active, because this responder is next in line";
        let want = format!("status.targetResponders[0].state: Invalid value: \"Inactive\": {next}");
        assert_eq!(found(begun("Inactive", "Inactive"), json!({})), [want]);
        let errors = found(begun("Active", "Active"), begun("Active", "Inactive"));
        assert!(errors[0].ends_with("because the previously active has not finished processing"), "{errors:?}");
    }

    #[test]
    fn responders_are_tracked() {
        let errors = found(json!({"targetResponders": [(target("a.io/x", "Active"))]}), json!({}));
        assert!(errors[0].contains("\"a.io/x\" has to be tracked in status.responders first"), "{errors:?}");
        assert!(errors[1].contains("must be the same length as status.targetResponders"), "{errors:?}");
    }

    #[test]
    fn responders_are_sorted_by_priority_and_domain() {
        let targets = [
            json!({"name": "b.io/x", "priority": 5}),
            json!({"name": "a.b.io/x", "priority": 5}),
            json!({"name": "z.com/x", "priority": 5}),
            json!({"name": "c.io/x", "priority": 9}),
        ];
        let order: Vec<usize> = in_order(&targets).iter().map(|(i, _)| *i).collect();
        assert_eq!(order, [3, 2, 0, 1]);
    }
}
