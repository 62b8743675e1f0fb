//! Validation of the success policy and the status of Jobs.

use std::collections::HashSet;

use machinery::field::{FieldError, FieldPath};
use machinery::{Release, Value};

use super::checks::{invalid_internal, is_set, items, list, text};

type Errors = Vec<FieldError>;

/// Counts the indexes in a text such as `0-2,5`. They must be in ascending order and less than `completions`.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut count, mut last) = (0, None);
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let ends: Vec<&str> = part.split('-').collect();
        if ends.len() > 2 {
            return Err(format!(
                "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
            ));
        }
        let first = index(ends[0], completions, last)?;
        let end = match ends.get(1) {
            Some(end) => index(end, completions, Some(first))?,
            None => first,
        };
        count += end - first + 1;
        last = Some(end);
    }
    Ok(count)
}

fn index(text: &str, completions: i64, last: Option<i64>) -> Result<i64, String> {
    let number: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
    match last {
        Some(last) if number <= last => Err(format!("non-increasing order, previous: {last}, current: {number}")),
        _ if number >= completions => Err(format!("too large index: {text:?}")),
        _ => Ok(number),
    }
}

const ITEMS_MAX: usize = 20;

/// Validates the policy that decides when a Job has succeeded.
pub fn success_policy(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let Some(policy) = spec.get("successPolicy").filter(|policy| !policy.is_null()) else { return };
    let path = path.child("successPolicy");
    if text(spec, "completionMode") != "Indexed" {
        let why = "requires indexed completion mode";
        return errors.push(invalid_internal(&path, policy, "batch.SuccessPolicy", why));
    }
    let rules = list(policy, "rules").len();
    if rules == 0 {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path.child("rules"), why));
    }
    if rules > ITEMS_MAX {
        errors.push(FieldError::too_many(&path.child("rules"), rules, ITEMS_MAX));
    }
    let completions = spec.get("completions").and_then(Value::as_int);
    items(policy, "rules", &path).for_each(|(path, rule)| success_rule(rule, completions, &path, errors));
}

fn success_rule(rule: &Value, completions: Option<i64>, path: &FieldPath, errors: &mut Errors) {
    let (indexes, count) = ("succeededIndexes", "succeededCount");
    if !is_set(rule, indexes) && !is_set(rule, count) {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, why));
    }
    let mut total = is_set(rule, indexes).then_some(0);
    if is_set(rule, indexes) {
        let given = text(rule, indexes);
        match count_indexes(given, completions.unwrap_or_default()) {
            Ok(number) => total = Some(number),
            Err(why) => {
                let why = format!("error parsing succeededIndexes: {why}");
                errors.push(FieldError::invalid(&path.child(indexes), &Value::from(given), why));
            }
        }
    }
    let Some(number) = rule.get(count).and_then(Value::as_int) else { return };
    let mut invalid = |why: String| errors.push(FieldError::invalid(&path.child(count), &Value::Int(number), why));
    if number < 0 {
        invalid("must be greater than or equal to 0".to_owned());
    }
    if let Some(all) = completions.filter(|all| number > *all) {
        invalid(format!("must be less than or equal to {all} (the number of specified completions)"));
    }
    if let Some(all) = total.filter(|all| number > *all) {
        invalid(format!(
            "must be less than or equal to {all} (the number of indexes in the specified succeededIndexes field)"
        ));
    }
}

/// Pairs of conditions that exclude each other.
const EXCLUSIVE: [(&str, &str, &str); 4] = [
    ("Complete", "Failed", "cannot set Complete=True and Failed=true conditions"),
    ("Complete", "FailureTarget", "cannot set Complete=True and FailureTarget=true conditions"),
    ("SuccessCriteriaMet", "Failed", "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
    ("SuccessCriteriaMet", "FailureTarget", "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
];

pub fn validate_status(job: &Value, old: &Value, _release: Release) -> Vec<FieldError> {
    let (mut errors, path) = (vec![], FieldPath::new("status"));
    let (status, before) = (job.get("status").unwrap_or(&Value::Null), old.get("status").unwrap_or(&Value::Null));
    let number = |status: &Value, name: &str| status.get(name).and_then(Value::as_int).unwrap_or_default();
    for name in ["failed", "succeeded"] {
        let now = number(status, name);
        if now < number(before, name) {
            let why = format!("cannot decrease the {name} counter");
            errors.push(FieldError::invalid(&path.child(name), &Value::Int(now), why));
        }
    }
    let is_changed = ["active", "ready"].into_iter().any(|name| number(status, name) != number(before, name));
    let ready = number(status, "ready");
    if is_changed && is_set(status, "ready") && ready > number(status, "active") {
        let why = "cannot set more ready pods than active";
        errors.push(FieldError::invalid(&path.child("ready"), &Value::Int(ready), why));
    }
    uncounted(status, &path, &mut errors);
    indexes(job, status, &path, &mut errors);
    conditions(status, before, &path, &mut errors);
    errors
}

fn uncounted(status: &Value, path: &FieldPath, errors: &mut Errors) {
    let Some(pods) = status.get("uncountedTerminatedPods").filter(|pods| !pods.is_null()) else { return };
    let (path, mut known) = (path.child("uncountedTerminatedPods"), HashSet::new());
    for kind in ["succeeded", "failed"] {
        for (path, uid) in items(pods, kind, &path) {
            if uid.as_str() == Some("") {
                errors.push(FieldError::invalid(&path, uid, "must not be empty"));
            } else if !known.insert(uid.as_str().unwrap_or_default()) {
                errors.push(FieldError::duplicate(&path, uid));
            }
        }
    }
}

fn indexes(job: &Value, status: &Value, path: &FieldPath, errors: &mut Errors) {
    let spec = job.get("spec").unwrap_or(&Value::Null);
    let is_indexed = text(spec, "completionMode") == "Indexed";
    let completions = spec.get("completions").and_then(Value::as_int).unwrap_or_default();
    for name in ["completedIndexes", "failedIndexes"] {
        let (given, path) = (text(status, name), path.child(name));
        let mut invalid = |why: String| errors.push(FieldError::invalid(&path, &Value::from(given), why));
        if name == "failedIndexes" && is_set(status, name) && !is_set(spec, "backoffLimitPerIndex") {
            invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null".to_owned());
            continue;
        }
        if is_set(spec, "completions")
            && let Err(why) = count_indexes(given, completions)
        {
            invalid(format!("error parsing {name}: {why}"));
        }
        if !given.is_empty() && !is_indexed {
            invalid(format!("cannot set non-empty {name} when non-indexed completion mode"));
        }
    }
}

fn conditions(status: &Value, before: &Value, path: &FieldPath, errors: &mut Errors) {
    let is_true = |status: &Value, kind: &str| {
        list(status, "conditions").iter().any(|it| text(it, "type") == kind && text(it, "status") == "True")
    };
    let has = |kind: &str| is_true(status, kind);
    let all = path.child("conditions");
    let refused = |why: &str| FieldError { value: String::new(), ..FieldError::invalid(&all, &Value::Null, why) };
    for kind in ["Complete", "Failed"].into_iter().filter(|kind| is_true(before, kind) && !has(kind)) {
        errors.push(refused(&format!("cannot disable the terminal {kind}=True condition")));
    }
    for (one, other, why) in EXCLUSIVE {
        if has(one) && has(other) {
            errors.push(refused(why));
        }
    }
    let completed = status.get("completionTime").filter(|time| !time.is_null());
    let started = status.get("startTime").filter(|time| !time.is_null());
    match completed {
        None if has("Complete") => {
            let why = "completionTime is required for Complete jobs";
            errors.push(FieldError::required(&path.child("completionTime"), why));
        }
        Some(time) if !has("Complete") => {
            let why = "cannot set completionTime when there is no Complete=True condition";
            errors.push(FieldError::invalid(&path.child("completionTime"), time, why));
        }
        _ => {}
    }
    if let (Some(time), Some(started)) = (completed, started)
        && started.as_str() > time.as_str()
    {
        errors.push(FieldError::invalid(&path.child("completionTime"), time, "must be equal to or after `startTime`"));
    }
    if has("Failed") && !has("FailureTarget") {
        errors.push(refused("cannot set Failed=True condition without the FailureTarget=true condition"));
    }
    if has("Complete") && !has("SuccessCriteriaMet") {
        errors.push(refused("cannot set Complete=True condition without the SuccessCriteriaMet=true condition"));
    }
    if (has("Complete") || has("Failed")) && started.is_none() {
        errors.push(FieldError::required(&path.child("startTime"), "startTime is required for finished job"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_increase_and_are_less_than_completions() {
        let cases = [
            ("", Ok(0)),
            ("0-2,4", Ok(4)),
            ("x", Err("cannot convert string to integer for index: \"x\"")),
            ("1-3,2", Err("non-increasing order, previous: 3, current: 2")),
            ("1-9", Err("too large index: \"9\"")),
        ];
        for (text, want) in cases {
            assert_eq!(count_indexes(text, 5), want.map_err(str::to_owned), "{text}");
        }
    }
}
