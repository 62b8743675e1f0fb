//! SelfSubjectRulesReview.

use std::collections::HashSet;

use access::authorization::{PolicyRule, UserRules};
use access::limits::LISTED_RULES_BYTES_MAX;
use base::task;
use machinery::{Result, Status, Text, Value, json};

use crate::verbs::admit::Admit;

/// The rules that apply to the user of the request in a namespace.
pub async fn review(admit: &Admit<'_>, object: &Value) -> Result<Value> {
    let (context, request) = (admit.context, admit.request);
    let namespace = object.str_at(&["spec", "namespace"]);
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    admit.validate(Some(object), None).await?;
    let status = task::blocking(|| status_of(context.authorizer.rules_of(&request.authorized.user, namespace)));
    let (version, kind) = (request.api_version(), &request.resource.kind);
    Ok(json!({"apiVersion": version, "kind": kind, "metadata": {}, "spec": {}, "status": status}))
}

/// The status that lists rules, each once. What exceeds [`LISTED_RULES_BYTES_MAX`] is left out.
fn status_of(UserRules { roles, mut errors, mut incomplete }: UserRules) -> Value {
    let (mut resources, mut paths, mut known, mut bytes) = (vec![], vec![], HashSet::new(), 0);
    for rule in roles.iter().flat_map(|role| role.iter()) {
        bytes += rule.bytes();
        if bytes > LISTED_RULES_BYTES_MAX {
            incomplete = true;
            errors.push(format!("the user has more rules than the {} that are listed", known.len()));
            break;
        }
        if known.insert(rule) {
            resources.extend((!rule.resources.is_empty()).then(|| resource_rule(rule)));
            paths.extend((!rule.urls.is_empty()).then(|| path_rule(rule)));
        }
    }
    let mut status = json!({"incomplete": incomplete, "nonResourceRules": paths, "resourceRules": resources});
    if !errors.is_empty() {
        status.set_at(&["evaluationError"], Value::from(machinery::status::aggregate(&errors)));
    }
    status
}

fn texts(list: &[Text]) -> Value {
    list.iter().map(Value::from).collect()
}

fn resource_rule(rule: &PolicyRule) -> Value {
    let mut out: Value = [("verbs", texts(&rule.verbs))].into();
    for (key, list) in [("apiGroups", &rule.groups), ("resourceNames", &rule.names), ("resources", &rule.resources)] {
        if !list.is_empty() {
            out.set_at(&[key], texts(list));
        }
    }
    out
}

fn path_rule(rule: &PolicyRule) -> Value {
    [("nonResourceURLs", texts(&rule.urls)), ("verbs", texts(&rule.verbs))].into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn listed_rules_are_distinct_and_bounded() {
        let role = |from: usize, to: usize| -> Arc<[PolicyRule]> {
            let rule = |i| PolicyRule {
                verbs: vec!["get".into()],
                groups: vec!["".into()],
                resources: vec![Text::from(format!("r{i}-{}", "x".repeat(1000)))],
                ..PolicyRule::default()
            };
            (from..to).map(rule).collect()
        };
        let listed = |roles: Vec<Arc<[PolicyRule]>>| {
            let status = status_of(UserRules { roles, ..UserRules::default() });
            let rules = status.get("resourceRules").and_then(Value::as_array).unwrap().len();
            let error = status.str_at(&["evaluationError"]).to_owned();
            (rules, status.is_true_at(&["incomplete"]), error)
        };
        assert_eq!(listed(vec![role(0, 3), role(2, 5)]), (5, false, String::new()));
        let (rules, incomplete, error) = listed(vec![role(0, 2000), role(2000, 4000)]);
        assert!((2000..4000).contains(&rules) && incomplete, "{rules}");
        assert_eq!(error, format!("the user has more rules than the {rules} that are listed"));
    }
}
