//! EvictionRequests and Evictions (`lifecycle.k8s.io`): Pods that are to be evicted, and who is doing that.
//!
//! The rules here are those that kube-apiserver writes by hand; those that its types declare are in `rules/rules.txt`.

use std::cmp::Reverse;
use std::collections::HashMap;

use base::clock;
use machinery::field::{FieldError, FieldPath};
use machinery::time::parse_rfc3339;
use machinery::{Release, Value};

use super::checks::{invalid_internal, invalid_shown, list, text};
use super::routing;

type Errors = Vec<FieldError>;

/// The maximum number of responders of an Eviction: those of a Pod and the one of Kubernetes itself.
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

fn holds(status: &Value, kind: &str) -> bool {
    list(status, "conditions").iter().any(|one| text(one, "type") == kind && text(one, "status") == "True")
}

pub fn validate_status(eviction: &Value, old: &Value, release: Release) -> Errors {
    let path = FieldPath::new("status");
    let (status, before) = (eviction.get("status").unwrap_or(&Value::Null), old.get("status").unwrap_or(&Value::Null));
    let mut errors = super::at::errors_of(eviction, Some(old), release, routing::validate_conditions);
    let mut is_final = holds(status, "TargetEvicted") || holds(status, "Failed");
    for condition in list(before, "conditions") {
        let kind = text(condition, "type");
        if !["TargetEvicted", "Failed"].contains(&kind) || text(condition, "status") != "True" {
            continue;
        }
        let new = list(status, "conditions").iter().find(|new| text(new, "type") == kind);
        if new.is_none_or(|new| text(new, "status") == "False" || text(new, "reason") != text(condition, "reason")) {
            let shown = list(status, "conditions").iter();
            let shown: Vec<String> =
                shown.map(|one| machinery::types::published_json(one, "meta.v1.Condition")).collect();
            let shown = if shown.is_empty() { "null".to_owned() } else { format!("[{}]", shown.join(",")) };
            let why = format!("{kind} condition status cannot be reverted");
            errors.push(invalid_shown(&path.child("conditions"), shown, why));
            is_final = true;
        }
    }
    let now = clock::now_seconds();
    errors.extend(Responders { status, before, is_final, now }.errors(&path));
    errors
}

/// The responders of an Eviction, which become active and end one after the other.
struct Responders<'a> {
    status: &'a Value,
    before: &'a Value,
    /// Whether the eviction has ended.
    is_final: bool,
    now: i64,
}

const TARGETS: &str = "targetResponders";
const STATUSES: &str = "responders";

/// Whether all items have different names.
fn are_unique(items: &[Value]) -> bool {
    let names: std::collections::HashSet<&str> = items.iter().map(|item| text(item, "name")).collect();
    names.len() == items.len()
}

fn has(items: &[Value], name: &str) -> bool {
    items.iter().any(|item| text(item, "name") == name)
}

/// A list as kube-apiserver prints it in its internal type.
fn shown(items: &[Value], go: &str) -> String {
    let items: Vec<String> = items.iter().map(|item| machinery::types::internal_json(item, go, false)).collect();
    if items.is_empty() { "null".to_owned() } else { format!("[{}]", items.join(",")) }
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

impl Responders<'_> {
    fn errors(&self, path: &FieldPath) -> Errors {
        let mut errors = self.target_errors(&path.child(TARGETS));
        errors.extend(self.status_errors(&path.child(STATUSES)));
        errors
    }

    fn target_errors(&self, path: &FieldPath) -> Errors {
        let (targets, before) = (list(self.status, TARGETS), list(self.before, TARGETS));
        let invalid = |why: &str| vec![invalid_shown(path, shown(targets, "lifecycle.TargetResponder"), why)];
        if !before.is_empty() && targets.len() != before.len() {
            return invalid("must preserve the same length and the same keys");
        }
        if before.iter().any(|old| !has(targets, text(old, "name"))) {
            return invalid("must preserve the same keys");
        }
        // the declared rules report these errors
        if targets.len() > RESPONDERS_MAX || !are_unique(targets) {
            return vec![];
        }
        let (targets, before) = (in_order(targets), in_order(before));
        let active = before.iter().position(|(_, old)| text(old, "state") == "Active");
        let turn = Turn { before: &before, active, is_final: self.is_final };
        let mut errors = vec![];
        for (place, (i, target)) in targets.iter().enumerate() {
            let is_over = active.is_some_and(|active| text(targets[active].1, "state") != "Active");
            self.target(target, turn.expected(place, is_over), &path.index(*i), &mut errors);
        }
        errors
    }

    /// Checks a responder that must be in one of the given states.
    fn target(&self, target: &Value, (states, reason): (Vec<&str>, &str), path: &FieldPath, errors: &mut Errors) {
        let name = text(target, "name");
        let Some(status) = list(self.status, STATUSES).iter().find(|status| text(status, "name") == name) else {
            let why = format!("{} has to be tracked in status.responders first", machinery::value::quote(name));
            return errors.push(invalid_internal(path, target, "lifecycle.TargetResponder", why));
        };
        let priority = target.get("priority").and_then(Value::as_int).filter(|priority| *priority >= 0);
        let mut wrong_priority = |priority: i64, why: String| {
            errors.push(FieldError::invalid(&path.child("priority"), &Value::Int(priority), why));
        };
        match priority {
            Some(priority) if name == IMPERATIVE.0 && priority != IMPERATIVE.1 => {
                wrong_priority(priority, format!("core k8s responder is expected to have priority: {}", IMPERATIVE.1));
            }
            Some(priority) if name != IMPERATIVE.0 && priority < OWN_PRIORITY_MIN => {
                let why = "priorities 0-999 are reserved for responders with *.k8s.io suffix";
                wrong_priority(priority, why.to_owned());
            }
            _ => {}
        }
        let (state, path) = (text(target, "state"), path.child("state"));
        if !states.contains(&state) {
            let why = format!("must be one of: {}, because {reason}", states.join(", "));
            return errors.push(FieldError::invalid(&path, &Value::from(state), why));
        }
        let started = time(status, "startTime").filter(|_| time(status, "completionTime").is_none() && !self.is_final);
        if let Some(started) = started.filter(|_| state != "Active") {
            let heartbeat = time(status, "heartbeatTime").unwrap_or(started);
            if self.now < heartbeat + SILENCE_SECONDS - SKEW_SECONDS {
                let why = "must stay Active because the responder is in progress and it should report status.responders.heartbeatTime or status.responders.completionTime";
                errors.push(FieldError::forbidden(&path, why));
            }
        }
        if state == "Completed" && time(status, "completionTime").is_none() {
            let why = "cannot become Completed because the responder didn't report status.responders.completionTime";
            errors.push(FieldError::invalid(&path, &Value::from(state), why));
        }
    }

    fn status_errors(&self, path: &FieldPath) -> Errors {
        let (targets, statuses) = (list(self.status, TARGETS), list(self.status, STATUSES));
        let invalid = |why: &str| vec![invalid_shown(path, shown(statuses, "lifecycle.ResponderStatus"), why)];
        if targets.len() != statuses.len() {
            return invalid("must be the same length as status.targetResponders and contain the same keys");
        }
        if targets.iter().any(|target| !has(statuses, text(target, "name"))) {
            return invalid("must contain the same keys as status.targetResponders");
        }
        if statuses.len() > RESPONDERS_MAX || !are_unique(statuses) {
            return vec![];
        }
        let states: HashMap<&str, &str> =
            targets.iter().map(|target| (text(target, "name"), text(target, "state"))).collect();
        let mut errors = vec![];
        for (i, status) in statuses.iter().enumerate() {
            let name = text(status, "name");
            let old = list(self.before, STATUSES).iter().find(|old| text(old, "name") == name);
            let is_active = states.get(name) == Some(&"Active");
            self.responder(status, old, is_active, &path.index(i), &mut errors);
        }
        errors
    }

    /// Checks the times that a responder reports. Only the active responder may change them.
    fn responder(&self, status: &Value, old: Option<&Value>, is_active: bool, path: &FieldPath, errors: &mut Errors) {
        if old.is_some_and(|old| old != status) && !is_active {
            return errors.push(invalid_internal(path, status, "lifecycle.ResponderStatus", "field is immutable"));
        }
        let start_path = path.child("startTime").to_string();
        let before = |name: &str| old.and_then(|old| time(old, name));
        let (now, started) = (self.now, time(status, "startTime"));
        let mut invalid = |name: &str, why: &str| {
            errors.push(FieldError::invalid(&path.child(name), &Value::from(text(status, name)), why));
        };
        let (early, late) =
            (format!("cannot be set before {start_path} is set"), format!("must occur after {start_path}"));
        match (before("startTime"), started) {
            (Some(_), _) => {}
            (None, Some(started)) if !is_present(started, now) => {
                invalid("startTime", "must be set to the present time")
            }
            _ => {}
        }
        for name in ["heartbeatTime", "expectedCompletionTime", "completionTime"] {
            let before = before(name);
            let Some(time) = time(status, name).filter(|seconds| Some(*seconds) != before) else { continue };
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
            invalid(name, why);
        }
        if before("startTime").is_none() && started.is_none() && is_active {
            let why = "is required for an active responder";
            errors.push(FieldError::required(&path.child("startTime"), why));
        }
        if before("heartbeatTime").is_some() && time(status, "heartbeatTime").is_none() {
            errors.push(FieldError::required(&path.child("heartbeatTime"), "is required once set"));
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
    use machinery::json;

    use super::*;

    fn target(name: &str, state: &str) -> Value {
        json!({"name": (name), "priority": 2000, "state": (state)})
    }

    fn found(status: Value, before: Value) -> Vec<String> {
        let (status, before) = (json!({"status": (status)}), json!({"status": (before)}));
        validate_status(&status, &before, Release::NEWEST).iter().map(ToString::to_string).collect()
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
