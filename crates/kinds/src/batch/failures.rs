//! Validation of the failure policies of Jobs.

use std::collections::HashSet;

use machinery::{Value, names};

use schema::at::At;

/// How a Job responds to failed Pods.
pub fn failure_policy(spec: At) {
    let Some(policy) = spec.field_if_given("podFailurePolicy") else { return };
    let restart = spec.field("template.spec.restartPolicy");
    if restart.as_text() == "OnFailure" {
        restart.invalid("only \"Never\" is supported when podFailurePolicy is specified");
    }
    let names = ["template.spec.containers", "template.spec.initContainers"];
    let containers: Vec<&str> = names.iter().flat_map(|list| spec.texts::<Vec<_>>(list, "name")).collect();
    policy.field("rules").max_items(RULES_MAX);
    for rule in policy.items_of("rules") {
        let action = rule.field("action");
        match action.as_text() {
            "" => action.required("valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"),
            _ => action.shown_as_json().one_of(&["Count", "FailIndex", "FailJob", "Ignore"]),
        }
        if action.as_text() == "FailIndex" && !spec.has("backoffLimitPerIndex") {
            action.invalid("requires the backoffLimitPerIndex to be set");
        }
        let codes = rule.field_if_given("onExitCodes");
        codes.into_iter().for_each(|codes| exit_codes(codes, &containers));
        pod_conditions(rule);
        match (codes.is_some(), rule.list("onPodConditions").is_empty()) {
            (true, false) => {
                rule.shown_verbatim("").invalid("specifying both OnExitCodes and OnPodConditions is not supported");
            }
            (false, true) => {
                rule.shown_verbatim("").invalid("specifying one of OnExitCodes and OnPodConditions is required");
            }
            _ => {}
        }
    }
}

/// The most rules of a policy, and conditions of a rule.
const RULES_MAX: usize = 20;
const CODES_MAX: usize = 255;

fn pod_conditions(rule: At) {
    rule.field("onPodConditions").max_items(RULES_MAX);
    for pattern in rule.items_of("onPodConditions") {
        pattern.field("type").check_text(names::qualified_name);
        let status = pattern.field("status");
        match status.as_text() {
            "" => status.required("valid values: [\"False\" \"True\" \"Unknown\"]"),
            _ => status.shown_as_json().one_of(&["False", "True", "Unknown"]),
        }
    }
}

fn exit_codes(codes: At, containers: &[&str]) {
    let (operator, name, values) = (codes.field("operator"), codes.field("containerName"), codes.field("values"));
    match operator.as_text() {
        "" => operator.required("valid values: [\"In\" \"NotIn\"]"),
        _ => operator.shown_as_json().one_of(&["In", "NotIn"]),
    }
    if name.is_given() && !containers.contains(&name.as_text()) {
        name.invalid("must be one of the container or initContainer names in the pod template");
    }
    values.invalid_if(values.items().len() == 0, "at least one value is required");
    values.max_items(CODES_MAX);
    let mut known = HashSet::new();
    for value in values.items() {
        if operator.as_text() == "In" && *value.value == Value::Int(0) {
            value.invalid("must not be 0 for the In operator");
        }
        if !known.insert(value.value.as_int()) {
            value.duplicate();
        }
    }
    if codes.list("values").windows(2).any(|pair| pair[0].as_int() > pair[1].as_int()) {
        values.invalid("must be ordered");
    }
}
