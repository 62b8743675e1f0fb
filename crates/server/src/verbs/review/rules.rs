//! SelfSubjectRulesReview.

use access::authorization::{PolicyRule, UserRules};
use machinery::{Status, Text, Value};

use crate::verbs::admit::Admit;

/// The rules that apply to the user of the request in a namespace.
pub async fn review(admit: &Admit<'_>, object: &Value) -> Result<Value, Status> {
    let (context, request) = (admit.context, admit.request);
    let namespace = object.str_at(&["spec", "namespace"]);
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    admit.validate(Some(object), None).await?;
    let UserRules { rules, errors, incomplete } = context.authorizer.rules_of(&request.authorized.user, namespace);
    let resources = rules.iter().filter(|rule| !rule.resources.is_empty()).map(resource_rule);
    let paths = rules.iter().filter(|rule| !rule.urls.is_empty()).map(path_rule);
    let mut status: Value = [
        ("incomplete", Value::Bool(incomplete)),
        ("nonResourceRules", paths.collect()),
        ("resourceRules", resources.collect()),
    ]
    .into();
    if !errors.is_empty() {
        status.set_at(&["evaluationError"], Value::from(machinery::status::aggregate(&errors)));
    }
    let fields = [
        ("apiVersion", Value::String(request.api_version())),
        ("kind", Value::from(&request.resource.kind)),
        ("metadata", Value::object()),
        ("spec", Value::object()),
        ("status", status),
    ];
    Ok(fields.into())
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
