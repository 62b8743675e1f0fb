//! Authorization webhooks: SubjectAccessReview.

use std::time::Duration;

use base::notice::Notices;
use base::request::User;
use base::webhook::{Remote, ResponseCache};
use machinery::selector::label::Operator;
use machinery::selector::{FieldRequirement, FieldSelector, LabelSelector};
use machinery::{Value, json};

use super::conditions::{Condition, all_hold};
use super::decision::DecisionDetails;
use super::{AccessAttributes, Decision, Selection};
use crate::authentication::{Realm, ReviewVersion};
use crate::limits;

/// Time to live of cached decisions.
#[derive(Clone, Copy, Debug)]
pub struct DecisionTtl {
    pub allowed: Duration,
    pub refused: Duration,
}

/// Names the workspace of a request in `extra`, by name and uid. A workspace with the name of a deleted one has another uid.
const WORKSPACE_NAME: &str = "workspaces.pintle.dev/name";
const WORKSPACE_UID: &str = "workspaces.pintle.dev/uid";

/// The name of a webhook that flags configure.
const DEFAULT_NAME: &str = "default";

#[derive(Debug)]
pub struct AccessReviewer {
    name: String,
    remote: Remote,
    version: ReviewVersion,
    cache: ResponseCache<Decision>,
    /// Match conditions. A request that does not match is not sent to the webhook.
    conditions: Vec<Condition>,
    /// Whether a failed call denies the request; otherwise the webhook has no opinion.
    denies: bool,
}

impl AccessReviewer {
    pub fn new(remote: Remote, version: ReviewVersion, ttl: DecisionTtl) -> AccessReviewer {
        let ttl_of = move |decision: &Decision| if decision.allowed() { ttl.allowed } else { ttl.refused };
        let cache = ResponseCache::new(ttl_of);
        AccessReviewer { name: DEFAULT_NAME.to_owned(), remote, version, cache, conditions: vec![], denies: false }
    }

    /// Sets the name, which is `default` for a webhook of flags.
    pub fn named(self, name: impl Into<String>) -> AccessReviewer {
        AccessReviewer { name: name.into(), ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn with_conditions(self, conditions: Vec<Condition>) -> AccessReviewer {
        AccessReviewer { conditions, ..self }
    }

    pub fn deny_on_failure(self, denies: bool) -> AccessReviewer {
        AccessReviewer { denies, ..self }
    }

    fn failed(&self, why: String) -> Decision {
        if self.denies {
            Decision::Denied(DecisionDetails::error(why))
        } else {
            Decision::NoOpinion(DecisionDetails::error(why))
        }
    }

    /// Decides about a request to a realm, or to the server itself.
    pub async fn decide(&self, user: &User, attributes: &AccessAttributes<'_>, realm: Option<&Realm>) -> Decision {
        let mut spec = spec(user, attributes);
        name_realm(&mut spec, realm);
        match all_hold(&self.conditions, &spec) {
            Ok(true) => {}
            Ok(false) => return Decision::NoOpinion(DecisionDetails::default()),
            Err(why) => return self.failed(why),
        }
        let spec = self.in_version(spec);
        let key = spec.to_json();
        if let Some(known) = self.cache.get(&key) {
            return known;
        }
        let version = self.version.api_version("authorization.k8s.io");
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": version, "metadata": {}, "spec": spec,
            "status": {"allowed": false}
        });
        match self.remote.post(&review).await {
            Ok(response) => {
                let decision = decision(response.get("status").unwrap_or(&Value::Null));
                if key.len() < limits::REMEMBERED_BYTES_MAX {
                    self.cache.put(key, decision.clone());
                }
                decision
            }
            Err(error) => {
                static FAILURES: Notices = Notices::new();
                let why = error.to_string();
                if let Some(more) = FAILURES.due("") {
                    tracing::warn!(why, more, "the call of the authorization webhook failed");
                }
                self.failed(why)
            }
        }
    }

    fn in_version(&self, mut spec: Value) -> Value {
        if self.version == ReviewVersion::V1beta1
            && let Some(groups) = spec.remove_at(&["groups"])
        {
            spec.set_at(&["group"], groups);
        }
        spec
    }
}

/// Names the workspace in `extra`, which is also part of the key of cached decisions. Users do not set these keys, by
/// impersonation or claims, so that a request to `default` cannot pass for one to a workspace.
fn name_realm(spec: &mut Value, realm: Option<&Realm>) {
    for key in [WORKSPACE_NAME, WORKSPACE_UID] {
        spec.remove_at(&["extra", key]);
    }
    if let Some(realm) = realm {
        for (key, value) in [(WORKSPACE_NAME, &realm.name), (WORKSPACE_UID, &realm.id)] {
            spec.set_at(&["extra", key], Value::Array(vec![Value::from(value)]));
        }
    } else if spec.get("extra").and_then(Value::as_object).is_some_and(machinery::Map::is_empty) {
        spec.remove_at(&["extra"]);
    }
}

/// The spec of the review, in v1.
fn spec(user: &User, attributes: &AccessAttributes<'_>) -> Value {
    let mut spec = user.to_value("user");
    let section = if attributes.is_resource { "resourceAttributes" } else { "nonResourceAttributes" };
    let texts: &[(&str, &str)] = if attributes.is_resource {
        &[
            ("namespace", attributes.namespace),
            ("verb", attributes.verb),
            ("group", attributes.group),
            ("version", attributes.version),
            ("resource", attributes.resource),
            ("subresource", attributes.subresource),
            ("name", attributes.name),
        ]
    } else {
        &[("path", attributes.path), ("verb", attributes.verb)]
    };
    spec.set_at(&[section], Value::object());
    for &(key, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
        spec.set_at(&[section, key], Value::from(text));
    }
    for (name, requirements) in
        [("fieldSelector", fields(attributes.fields)), ("labelSelector", labels(attributes.labels))]
    {
        if !requirements.is_empty() {
            spec.set_at(&[section, name, "requirements"], Value::Array(requirements));
        }
    }
    spec
}

fn requirement(key: &str, operator: &str, values: Vec<Value>) -> Value {
    let mut requirement = json!({"key": key, "operator": operator});
    if !values.is_empty() {
        requirement.set_at(&["values"], Value::Array(values));
    }
    requirement
}

/// The requirements of a review that are valid, by their operator and the number of their values.
fn valid(requirements: &Value, is_valid: fn(&str, usize) -> bool) -> Vec<Value> {
    let requirements = requirements.as_array().unwrap_or_default().iter();
    let valid = requirements.filter(|requirement| {
        let values = requirement.items_at(&["values"]);
        is_valid(requirement.str_at(&["operator"]), values.len())
    });
    valid.cloned().collect()
}

fn is_valid_for_fields(operator: &str, values: usize) -> bool {
    matches!(operator, "In" | "NotIn") && values == 1
}

fn is_valid_for_labels(operator: &str, _values: usize) -> bool {
    matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist")
}

/// The field selector of a request. An invalid one is ignored, so that everything counts as requested.
fn fields(selection: Selection<'_>) -> Vec<Value> {
    match selection {
        Selection::All => vec![],
        Selection::Requirements(requirements) => valid(requirements, is_valid_for_fields),
        Selection::Text(text) => {
            let parsed = FieldSelector::parse(text).map(|selector| selector.requirements).unwrap_or_default();
            let to_value = |field: &FieldRequirement| {
                let operator = if field.negated { "NotIn" } else { "In" };
                requirement(&field.field, operator, vec![Value::from(&field.value)])
            };
            parsed.iter().map(to_value).collect()
        }
    }
}

fn labels(selection: Selection<'_>) -> Vec<Value> {
    match selection {
        Selection::All => vec![],
        Selection::Requirements(requirements) => valid(requirements, is_valid_for_labels),
        Selection::Text(text) => {
            let parsed = LabelSelector::parse(text).map(LabelSelector::into_requirements).unwrap_or_default();
            let requirements = parsed.iter().filter_map(|label| {
                let operator = match label.operator {
                    Operator::In => "In",
                    Operator::NotIn => "NotIn",
                    Operator::Exists => "Exists",
                    Operator::DoesNotExist => "DoesNotExist",
                    Operator::GreaterThan | Operator::LessThan => return None,
                };
                Some(requirement(&label.key, operator, label.values.iter().map(Value::from).collect()))
            });
            requirements.collect()
        }
    }
}

fn decision(status: &Value) -> Decision {
    let is_true = |name: &str| status.is_true_at(&[name]);
    let reason = status.str_at(&["reason"]).to_owned();
    match (is_true("allowed"), is_true("denied")) {
        (true, true) => {
            let why = "webhook subject access review returned both allow and deny response";
            Decision::Denied(DecisionDetails { errors: vec![why.to_owned()], ..DecisionDetails::reason(reason) })
        }
        (true, false) => Decision::AllowedFor(reason),
        (false, true) => Decision::Denied(DecisionDetails::reason(reason)),
        (false, false) => Decision::NoOpinion(DecisionDetails::reason(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_responses_are_decisions() {
        let of = |status: Value| {
            let decision = decision(&status);
            (decision.allowed(), decision.is_denied(), decision.reason())
        };
        assert_eq!(of(json!({"allowed": true, "reason": "r"})), (true, false, "r".to_owned()));
        assert_eq!(of(json!({"allowed": false, "reason": "r"})), (false, false, "r".to_owned()));
        assert_eq!(of(json!({"denied": true, "reason": "r"})), (false, true, "r".to_owned()));
        assert!(of(json!({"denied": true, "allowed": true})).1);
        assert_eq!(of(json!({})), (false, false, String::new()));
    }

    #[test]
    fn access_reviews_name_the_workspace() {
        let forged = |key: &str| (key.into(), vec!["forged".into()]);
        let own = || ("a".into(), vec!["b".into()]);
        let user = |extra| User { extra, ..User::default() };
        let named = |extra, realm: Option<&Realm>| {
            let mut spec = spec(&user(extra), &AccessAttributes::default());
            name_realm(&mut spec, realm);
            spec.get("extra").cloned()
        };
        let realm = Realm { name: "x".into(), path: "/clusters/x".into(), id: "1".into() };
        let names = |own: Value| {
            let mut extra = own;
            extra.set_at(&[WORKSPACE_NAME], json!(["x"]));
            extra.set_at(&[WORKSPACE_UID], json!(["1"]));
            Some(extra)
        };
        let both = || vec![forged(WORKSPACE_NAME), forged(WORKSPACE_UID)];
        assert_eq!(named(vec![], None), None);
        assert_eq!(named(both(), None), None);
        assert_eq!(named([vec![own()], both()].concat(), None), Some(json!({"a": ["b"]})));
        assert_eq!(named(vec![], Some(&realm)), names(json!({})));
        assert_eq!(named([vec![own()], both()].concat(), Some(&realm)), names(json!({"a": ["b"]})));
    }

    #[test]
    fn access_reviews_include_selectors() {
        let attributes =
            AccessAttributes { is_resource: true, verb: "list", resource: "boats", ..AccessAttributes::default() };
        let selected = |fields: &'static str, labels: &'static str| {
            let attributes =
                AccessAttributes { fields: Selection::Text(fields), labels: Selection::Text(labels), ..attributes };
            spec(&User::system("u"), &attributes).at(&["resourceAttributes"]).unwrap().clone()
        };
        let wanted = json!({
            "verb": "list", "resource": "boats",
            "fieldSelector": {"requirements": [
                {"key": "a", "operator": "In", "values": ["1"]}, {"key": "b", "operator": "NotIn", "values": ["2"]}
            ]},
            "labelSelector": {"requirements": [
                {"key": "x", "operator": "Exists"}, {"key": "y", "operator": "In", "values": ["1", "2"]}
            ]}
        });
        assert_eq!(selected("a=1,b!=2", "x,y in (1,2),z>3"), wanted);
        assert_eq!(selected("a", "x in ("), json!({"verb": "list", "resource": "boats"}));
    }
}
