//! The cells of evictions.

use machinery::Value;

use resource::builtin::checks::text;
use resource::builtin::columns::parts::{NONE, condition, since};

const UNSET: &str = "<unset>";

pub fn status(eviction: &Value) -> String {
    let holding = |kind: &str| condition(eviction, kind).map(|one| format!("{kind} ({})", text(one, "reason")));
    let is_observed = eviction.int_at(&["status", "observedGeneration"]) > 0;
    let state = holding("TargetEvicted").or_else(|| holding("Failed"));
    state.unwrap_or_else(|| if is_observed { "Progressing" } else { "Pending" }.to_owned())
}

const ENDED: [&str; 3] = ["Canceled", "Completed", "Interrupted"];

/// The last active responder or, without one, the last that has ended.
fn current(eviction: &Value) -> Option<&Value> {
    let targets = eviction.items_at(&["status", "targetResponders"]);
    let active = targets.iter().rfind(|target| text(target, "state") == "Active");
    active.or_else(|| targets.iter().rfind(|target| ENDED.contains(&text(target, "state"))))
}

/// The state of the current responder, and what it reports.
fn responder(eviction: &Value) -> Option<(&str, &Value)> {
    let target = current(eviction)?;
    let mut statuses = eviction.items_at(&["status", "responders"]).iter();
    let status = statuses.find(|status| text(status, "name") == text(target, "name"))?;
    Some((text(target, "state"), status))
}

pub fn active_responder(eviction: &Value) -> String {
    let targets = eviction.items_at(&["status", "targetResponders"]);
    let has_begun = |target: &&Value| text(target, "state") == "Active" || ENDED.contains(&text(target, "state"));
    let name = current(eviction).map_or(UNSET, |target| text(target, "name"));
    format!("{name} ({}/{})", targets.iter().filter(has_begun).count(), targets.len())
}

pub fn responder_status(eviction: &Value, now: i64) -> String {
    let Some((state, status)) = responder(eviction) else { return UNSET.to_owned() };
    let at = |name: &str| Some(text(status, name)).filter(|time| !time.is_empty());
    match (state, at("startTime"), at("completionTime")) {
        ("Active", Some(started), _) => format!("Started ({} ago)", since(started, now)),
        ("Completed", _, Some(completed)) => format!("Completed ({} ago)", since(completed, now)),
        _ => state.to_owned(),
    }
}

pub fn expected_finish(eviction: &Value, now: i64) -> String {
    let Some((state, status)) = responder(eviction) else { return "<unknown>".to_owned() };
    let expected = text(status, "expectedCompletionTime");
    let has_begun = !text(status, "startTime").is_empty();
    match machinery::time::parse_rfc3339(expected) {
        _ if state != "Active" => "-".to_owned(),
        Some((seconds, _)) if has_begun && seconds > now => {
            let until = machinery::time::rfc3339(now - (seconds - now));
            format!("in {}", since(&until, now))
        }
        Some(_) if has_begun => format!("{} ago", since(expected, now)),
        _ => "<unknown>".to_owned(),
    }
}

pub fn requesters(eviction: &Value) -> String {
    let all = eviction.items_at(&["status", "requesters"]);
    let mut names: Vec<&str> =
        all.iter().filter(|one| text(one, "intent") != "Withdrawn").map(|one| text(one, "name")).collect();
    names.sort_unstable();
    match names[..] {
        [] if all.is_empty() => NONE.to_owned(),
        [] => "<withdrawn>".to_owned(),
        [one] => one.to_owned(),
        [first, ref others @ ..] => format!("{first} + {} more...", others.len()),
    }
}

pub fn heartbeat(eviction: &Value, now: i64) -> String {
    match responder(eviction).map_or("", |(_, status)| text(status, "heartbeatTime")) {
        "" => UNSET.to_owned(),
        heartbeat => format!("{} ago", since(heartbeat, now)),
    }
}

pub fn message(eviction: &Value) -> &str {
    match responder(eviction).map_or("", |(_, status)| text(status, "message").trim()) {
        "" => UNSET,
        message => message,
    }
}
