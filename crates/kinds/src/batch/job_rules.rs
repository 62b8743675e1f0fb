//! Validation of the success policy and the status of Jobs.

use std::collections::HashSet;

use machinery::Value;

use schema::at::At;

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
pub fn success_policy(spec: At) {
    let Some(policy) = spec.field_if_given("successPolicy") else { return };
    if spec.text("completionMode") != "Indexed" {
        return policy.shown_as_go("batch.SuccessPolicy").invalid("requires indexed completion mode");
    }
    if policy.list("rules").is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        policy.field("rules").required(why);
    }
    policy.field("rules").max_items(ITEMS_MAX);
    policy.items_of("rules").for_each(|rule| success_rule(rule, spec.int("completions")));
}

fn success_rule(rule: At, completions: Option<i64>) {
    let (indexes, count) = (rule.field("succeededIndexes"), rule.field("succeededCount"));
    if !indexes.is_given() && !count.is_given() {
        rule.required("at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut total = indexes.is_given().then_some(0);
    if indexes.is_given() {
        match count_indexes(indexes.as_text(), completions.unwrap_or_default()) {
            Ok(number) => total = Some(number),
            Err(why) => indexes.invalid(format!("error parsing succeededIndexes: {why}")),
        }
    }
    let Some(number) = count.value.as_int() else { return };
    count.invalid_if(number < 0, "must be greater than or equal to 0");
    if let Some(all) = completions.filter(|all| number > *all) {
        count.invalid(format!("must be less than or equal to {all} (the number of specified completions)"));
    }
    if let Some(all) = total.filter(|all| number > *all) {
        count.invalid(format!(
            "must be less than or equal to {all} (the number of indexes in the specified succeededIndexes field)"
        ));
    }
}

pub fn validate_status(job: At) {
    let (status, spec) = (job.field("status"), job.field("spec"));
    let number = |at: At| at.value.as_int().unwrap_or_default();
    let before = |at: At| at.old.and_then(Value::as_int).unwrap_or_default();
    for name in ["failed", "succeeded"] {
        let counter = status.field(name);
        if number(counter) < before(counter) {
            let why = format!("cannot decrease the {name} counter");
            counter.shown_verbatim(&number(counter).to_string()).invalid(why);
        }
    }
    let (active, ready) = (status.field("active"), status.field("ready"));
    let is_changed = [active, ready].into_iter().any(|at| number(at) != before(at));
    if is_changed && ready.is_given() && number(ready) > number(active) {
        ready.invalid("cannot set more ready pods than active");
    }
    uncounted(status);
    indexes(status, spec);
}

fn uncounted(status: At) {
    let mut known = HashSet::new();
    for kind in ["uncountedTerminatedPods.succeeded", "uncountedTerminatedPods.failed"] {
        for uid in status.items_of(kind) {
            match uid.as_text() {
                "" => uid.invalid("must not be empty"),
                _ => uid.unique(&mut known),
            }
        }
    }
}

fn indexes(status: At, spec: At) {
    let completions = spec.int("completions").unwrap_or_default();
    for name in ["completedIndexes", "failedIndexes"] {
        let given = status.field_or_empty(name);
        if name == "failedIndexes" && status.has(name) && !spec.has("backoffLimitPerIndex") {
            given.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null");
            continue;
        }
        if spec.has("completions")
            && let Err(why) = count_indexes(given.as_text(), completions)
        {
            given.invalid(format!("error parsing {name}: {why}"));
        }
        if !given.as_text().is_empty() && spec.text("completionMode") != "Indexed" {
            given.invalid(format!("cannot set non-empty {name} when non-indexed completion mode"));
        }
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
