//! DefaultTolerationSeconds, and the union of tolerations.

use machinery::{Value, json};

use super::{Decision, PluginRequest, push};

/// Seconds for which a Pod tolerates a node that is not ready or unreachable, by default.
pub const DEFAULT_SECONDS: i64 = 300;
const FIELD: [&str; 2] = ["spec", "tolerations"];

fn text<'a>(toleration: &'a Value, field: &str) -> &'a str {
    toleration.str_at(&[field])
}

pub fn admit(call: &PluginRequest<'_>, pod: &mut Value) -> Decision {
    let defaults = [
        ("node.kubernetes.io/not-ready", call.settings.not_ready_seconds),
        ("node.kubernetes.io/unreachable", call.settings.unreachable_seconds),
    ];
    for (key, seconds) in defaults {
        let is_tolerated = |toleration: &Value| {
            [key, ""].contains(&text(toleration, "key")) && ["NoExecute", ""].contains(&text(toleration, "effect"))
        };
        if !pod.items_at(&FIELD).iter().any(is_tolerated) {
            let toleration =
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
            push(pod, &FIELD, toleration);
        }
    }
    Ok(())
}

/// The tolerations of both lists, without those that another one includes.
pub fn merged(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = vec![];
    for (i, toleration) in all.iter().enumerate() {
        let is_included = merged.iter().any(|other| includes(other, toleration))
            || all[i + 1..].iter().any(|other| other != toleration && includes(other, toleration));
        if !is_included {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Whether a toleration tolerates every taint that another one tolerates.
fn includes(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let same = |field: &str| text(wide, field) == text(narrow, field);
    let exists = text(wide, "operator") == "Exists";
    let is_any_key = text(wide, "key").is_empty() && exists;
    if !same("key") && !is_any_key {
        return false;
    }
    if !same("effect") && !text(wide, "effect").is_empty() {
        return false;
    }
    if let Some(most) = seconds(wide).filter(|_| text(wide, "effect") == "NoExecute")
        && seconds(narrow).is_none_or(|seconds| seconds > most)
    {
        return false;
    }
    match text(wide, "operator") {
        "Equal" | "" => text(narrow, "operator") == "Equal" && same("value"),
        _ => exists,
    }
}

fn seconds(toleration: &Value) -> Option<i64> {
    toleration.get("tolerationSeconds").and_then(Value::as_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_tolerations_replace_narrower_ones() {
        let all = json!({"operator": "Exists"});
        let a = json!({"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"});
        let b = json!({"key": "a", "operator": "Exists", "effect": "NoSchedule"});
        let short = json!({"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3});
        let long = json!({"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30});
        let cases: [(&[&Value], &[&Value], &[&Value]); 5] = [
            (&[&a], &[&b], &[&b]),
            (&[&a, &short], &[&all], &[&all]),
            (&[&a], &[&a], &[&a]),
            (&[&short], &[&long], &[&long]),
            (&[&a], &[&long], &[&a, &long]),
        ];
        let list = |of: &[&Value]| of.iter().map(|it| (*it).clone()).collect::<Vec<_>>();
        for (first, second, want) in cases {
            assert_eq!(merged(&list(first), &list(second)), list(want));
        }
    }
}
