//! Stages of kwok (`kwok.x-k8s.io/v1alpha1`), as far as a Progress can say the same.
//!
//! A Stage is one rule: a selector, a delay, and what comes next. Its templates are read as YAML; templates with Go's actions, paths of
//! jq that are more than fields, and weights have no counterpart.

use machinery::{Value, json, yaml};

pub const API_VERSION: &str = "kwok.x-k8s.io/v1alpha1";

/// The `spec` of the Progress that does what a Stage does. Fails with a line that names what has no counterpart.
pub fn to_progress(stage: &Value) -> Result<Value, String> {
    let field = |path: &[&str]| stage.at(path).unwrap_or(&Value::Null);
    let (selector, delay, next) = (["spec", "selector"], ["spec", "delay"], ["spec", "next"]);
    only(field(&["spec"]), "spec", &["resourceRef", "selector", "delay", "next"])?;
    only(field(&selector), "spec.selector", &["matchLabels", "matchAnnotations", "matchExpressions"])?;
    only(field(&delay), "spec.delay", &["durationMilliseconds", "jitterDurationMilliseconds"])?;
    let known = ["delete", "event", "finalizers", "patches", "statusTemplate", "statusSubresource"];
    only(field(&next), "spec.next", &known)?;

    let mut rule = json!({"name": "next"});
    let conditions = conditions(field(&selector))?;
    if !conditions.is_empty() {
        rule.set_at(&["when"], Value::from(conditions.join(" && ")));
    }
    let milliseconds = |name: &str| field(&delay).int_at(&[name]);
    let (after, at_most) = (milliseconds("durationMilliseconds"), milliseconds("jitterDurationMilliseconds"));
    if after > 0 {
        rule.set_at(&["after"], Value::from(format!("{after}ms")));
    }
    if at_most > after {
        rule.set_at(&["jitter"], Value::from(format!("{}ms", at_most - after)));
    }
    add_next(&mut rule, field(&next))?;

    let kind = |name: &str| Value::from(stage.str_at(&["spec", "resourceRef", name]));
    let target = json!({"apiVersion": (kind("apiGroup")), "kind": (kind("kind"))});
    let mut spec = json!({"for": (target), "rules": (Value::Array(vec![rule]))});
    if let Some(labels) = stage.at(&["spec", "selector", "matchLabels"]) {
        spec.set_at(&["selector", "matchLabels"], labels.clone());
    }
    Ok(spec)
}

/// Fails if a value has other fields than these.
fn only(value: &Value, path: &str, names: &[&str]) -> Result<(), String> {
    let mut fields = value.fields().map(|(name, _)| name.as_str());
    match fields.find(|name| !names.contains(name)) {
        Some(other) => Err(format!("{path}.{other} of a Stage has no counterpart in a Progress")),
        None => Ok(()),
    }
}

/// The expressions of a selector, without its labels.
fn conditions(selector: &Value) -> Result<Vec<String>, String> {
    let mut conditions = vec![];
    for (name, value) in selector.fields_at(&["matchAnnotations"]) {
        let name = Value::from(name.as_str()).to_json();
        conditions.push(format!("object.metadata.?annotations[?{name}].orValue('') == {}", value.to_json()));
    }
    for requirement in selector.items_at(&["matchExpressions"]) {
        let key = requirement.str_at(&["key"]);
        let path = path(key).ok_or_else(|| format!("key {key:?} of a Stage is more than a path of fields"))?;
        let values = Value::Array(requirement.items_at(&["values"]).to_vec()).to_json();
        let is_one = format!("({path}.hasValue() && string({path}.value()) in {values})");
        conditions.push(match requirement.str_at(&["operator"]) {
            "Exists" => format!("{path}.hasValue()"),
            "DoesNotExist" => format!("!{path}.hasValue()"),
            "In" => is_one,
            "NotIn" => format!("!{is_one}"),
            other => return Err(format!("operator {other:?} of a Stage is not known")),
        });
    }
    Ok(conditions)
}

/// A path of jq, such as `.metadata.annotations["a/b"]`, as an optional value in CEL. `None` if it is more than fields.
fn path(jq: &str) -> Option<String> {
    let (mut path, mut rest) = ("object".to_owned(), jq);
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (name, behind) = quoted.split_once("\"]")?;
            path += &format!("[?{}]", Value::from(name).to_json());
            rest = behind;
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        path += &format!(".?{name}");
        rest = behind;
    }
    (path != "object").then_some(path)
}

fn add_next(rule: &mut Value, next: &Value) -> Result<(), String> {
    if next.is_true_at(&["delete"]) {
        rule.set_at(&["delete"], Value::from("object"));
    }
    if let Some(event) = next.get("event") {
        let mut event = event.clone();
        event.set_at(&["message"], Value::from(Value::from(event.str_at(&["message"])).to_json()));
        rule.set_at(&["event"], event);
    }
    only(next.get("finalizers").unwrap_or(&Value::Null), "spec.next.finalizers", &["remove", "empty"])?;
    let removed: Vec<Value> =
        next.items_at(&["finalizers", "remove"]).iter().filter_map(|it| it.get("value").cloned()).collect();
    if !removed.is_empty() {
        rule.set_at(&["removeFinalizers"], Value::Array(removed));
    }
    let mut merged = Value::object();
    if next.is_true_at(&["finalizers", "empty"]) {
        merged.set_at(&["metadata", "finalizers"], Value::Null);
    }
    if let Some(template) = next.get("statusTemplate").and_then(Value::as_str) {
        rule.set_at(&["status"], Value::from(plain(template)?.to_json()));
    }
    for patch in next.items_at(&["patches"]) {
        only(patch, "spec.next.patches", &["subresource", "root", "template", "type"])?;
        let content = plain(patch.str_at(&["template"]))?;
        match (patch.str_at(&["subresource"]), patch.str_at(&["root"]), patch.str_at(&["type"])) {
            ("status", "status", "" | "merge") => rule.set_at(&["status"], Value::from(content.to_json())),
            ("", root, "" | "merge") if !root.is_empty() => merged.set_at(&[root], content),
            _ => return Err("a patch of a Stage has a subresource, a root or a type without a counterpart".to_owned()),
        }
    }
    if merged.fields().next().is_some() {
        rule.set_at(&["merge"], Value::from(merged.to_json()));
    }
    Ok(())
}

/// The value of a template without actions.
fn plain(template: &str) -> Result<Value, String> {
    if template.contains("{{") {
        return Err("a template of a Stage has actions of Go: write them as expressions of a Progress".to_owned());
    }
    let decoded = yaml::decode(template.as_bytes()).map_err(|error| format!("a template of a Stage: {error}"))?;
    Ok(decoded.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::plan::Plan;

    fn converted(spec: &str) -> Result<Value, String> {
        let stage = format!(
            "{{metadata: {{name: s}}, spec: {{resourceRef: {{apiGroup: example.com/v1, kind: Boat}}, {spec}}}}}"
        );
        to_progress(&yaml::decode(stage.as_bytes()).unwrap().value)
    }

    #[test]
    fn stages_become_rules() {
        let spec = r#"selector: {matchLabels: {a: b}, matchAnnotations: {x/y: "1"}, matchExpressions: [
            {key: .status.phase, operator: NotIn, values: [Ready]}, {key: '.metadata.annotations["k/l"]', operator: Exists},
            {key: .metadata.deletionTimestamp, operator: DoesNotExist}]},
            delay: {durationMilliseconds: 1000, jitterDurationMilliseconds: 1500},
            next: {event: {type: Normal, reason: R, message: m}, finalizers: {empty: true}, statusTemplate: "phase: Ready\nm: 1"}"#;
        let spec = converted(spec).unwrap();
        let when = r#"object.metadata.?annotations[?"x/y"].orValue('') == "1" && !(object.?status.?phase.hasValue() && string(object.?status.?phase.value()) in ["Ready"]) && object.?metadata.?annotations[?"k/l"].hasValue() && !object.?metadata.?deletionTimestamp.hasValue()"#;
        let rule = &spec.items_at(&["rules"])[0];
        assert_eq!(rule.str_at(&["when"]), when);
        let texts = [["after", "1000ms"], ["jitter", "500ms"], ["merge", r#"{"metadata":{"finalizers":null}}"#]];
        for [name, want] in texts.into_iter().chain([["status", r#"{"m":1,"phase":"Ready"}"#]]) {
            assert_eq!(rule.str_at(&[name]), want, "{name}");
        }
        assert_eq!(rule.str_at(&["event", "message"]), "\"m\"");
        assert_eq!(spec.str_at(&["selector", "matchLabels", "a"]), "b");
        let mut progress = json!({"kind": "Progress"});
        progress.set_at(&["spec"], spec);
        let plan = Plan::compile(&progress);
        let wrong: Vec<_> = plan.rules.iter().filter_map(|(_, rule)| rule.as_ref().err()).collect();
        assert!(plan.problem.is_none() && wrong.is_empty(), "{:?} {wrong:?}", plan.problem);
    }

    #[test]
    fn what_has_no_counterpart_is_named() {
        for (spec, want) in [
            ("weight: 1", "spec.weight"),
            ("delay: {durationFrom: {}}", "spec.delay.durationFrom"),
            ("selector: {matchExpressions: [{key: '.a[] | b', operator: Exists}]}", "more than a path of fields"),
            ("selector: {matchExpressions: [{key: .a, operator: Gt}]}", "operator \"Gt\""),
            ("next: {statusTemplate: 'at: {{ Now }}'}", "actions of Go"),
            ("next: {patches: [{subresource: scale, root: spec, template: 'a: 1'}]}", "without a counterpart"),
            ("next: {finalizers: {add: []}}", "spec.next.finalizers.add"),
        ] {
            let why = converted(spec).unwrap_err();
            assert!(why.contains(want), "{spec}: {why}");
        }
    }
}
