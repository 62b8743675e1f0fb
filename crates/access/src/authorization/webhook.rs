//! Authorization webhooks: SubjectAccessReview.

use std::time::Duration;

use base::request::User;
use base::webhook::{Remote, ResponseCache};
use machinery::selector::label::Operator;
use machinery::selector::{FieldSelector, LabelSelector};
use machinery::{Value, json};

use super::conditions::{Condition, all_hold};
use super::decision::DecisionDetails;
use super::{AccessAttributes, Decision, Selection};
use crate::authentication::ReviewVersion;
use crate::limits;

/// Time to live of cached decisions.
#[derive(Clone, Copy, Debug)]
pub struct Remember {
    pub allowed: Duration,
    pub refused: Duration,
}

/// The name of a webhook that flags configure.
const DEFAULT_NAME: &str = "default";

/// A webhook authorizer.
#[derive(Debug)]
pub struct AccessReviewer {
    name: String,
    remote: Remote,
    version: ReviewVersion,
    remembered: ResponseCache<Decision>,
    /// Match conditions: other requests are not sent.
    conditions: Vec<Condition>,
    /// Whether a failed call denies the request; otherwise it is no opinion.
    denies: bool,
}

impl AccessReviewer {
    pub fn new(remote: Remote, version: ReviewVersion, remember: Remember) -> AccessReviewer {
        let time_to_live =
            move |decision: &Decision| if decision.allowed() { remember.allowed } else { remember.refused };
        let remembered = ResponseCache::new(time_to_live);
        AccessReviewer { name: DEFAULT_NAME.to_owned(), remote, version, remembered, conditions: vec![], denies: false }
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

    pub async fn decide(&self, user: &User, asked: &AccessAttributes<'_>) -> Decision {
        let spec = spec(user, asked);
        match all_hold(&self.conditions, &spec) {
            Ok(true) => {}
            Ok(false) => return Decision::NoOpinion(DecisionDetails::default()),
            Err(why) => return self.failed(why),
        }
        let spec = self.in_version(spec);
        let key = spec.to_json();
        if let Some(known) = self.remembered.get(&key) {
            return known;
        }
        let version = format!("authorization.k8s.io/{}", self.version.as_str());
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": version, "metadata": {}, "spec": spec,
            "status": {"allowed": false}
        });
        match self.remote.post(&review).await {
            Ok(response) => {
                let decision = decision(response.get("status").unwrap_or(&Value::Null));
                if key.len() < limits::REMEMBERED_BYTES_MAX {
                    self.remembered.put(key, decision.clone());
                }
                decision
            }
            Err(why) => {
                tracing::warn!(why, "the call of the authorization webhook failed");
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

/// The spec of the review, in v1.
fn spec(user: &User, asked: &AccessAttributes<'_>) -> Value {
    let mut spec = user.to_value("user");
    let (place, members) = match asked.is_resource {
        true => (
            "resourceAttributes",
            vec![
                ("namespace", asked.namespace),
                ("verb", asked.verb),
                ("group", asked.group),
                ("version", asked.version),
                ("resource", asked.resource),
                ("subresource", asked.subresource),
                ("name", asked.name),
            ],
        ),
        false => ("nonResourceAttributes", vec![("path", asked.path), ("verb", asked.verb)]),
    };
    spec.set_at(&[place], Value::object());
    for (key, text) in members.into_iter().filter(|(_, text)| !text.is_empty()) {
        spec.set_at(&[place, key], Value::from(text));
    }
    for (name, requirements) in [("fieldSelector", fields(asked.fields)), ("labelSelector", labels(asked.labels))] {
        if !requirements.is_empty() {
            spec.set_at(&[place, name, "requirements"], Value::Array(requirements));
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

/// The valid field or label requirements of a review.
fn known(requirements: &Value, of_labels: bool) -> Vec<Value> {
    let known = |requirement: &&Value| {
        let values = requirement.get("values").and_then(Value::as_array).map_or(0, <[Value]>::len);
        match requirement.str_at(&["operator"]) {
            "In" | "NotIn" => of_labels || values == 1,
            "Exists" | "DoesNotExist" => of_labels,
            _ => false,
        }
    };
    requirements.as_array().unwrap_or_default().iter().filter(known).cloned().collect()
}

/// Selectors narrow a request; an invalid selector is ignored, which requests everything.
fn fields(selection: Selection<'_>) -> Vec<Value> {
    match selection {
        Selection::All => vec![],
        Selection::Requirements(requirements) => known(requirements, false),
        Selection::Text(text) => {
            let requirements = FieldSelector::parse(text).map(|selector| selector.requirements).unwrap_or_default();
            let shown = requirements.iter().map(|it| {
                requirement(&it.field, if it.negated { "NotIn" } else { "In" }, vec![Value::from(&it.value)])
            });
            shown.collect()
        }
    }
}

fn labels(selection: Selection<'_>) -> Vec<Value> {
    match selection {
        Selection::All => vec![],
        Selection::Requirements(requirements) => known(requirements, true),
        Selection::Text(text) => {
            let requirements = LabelSelector::parse(text).map(|selector| selector.requirements).unwrap_or_default();
            let shown = requirements.iter().filter_map(|it| {
                let operator = match it.operator {
                    Operator::In => "In",
                    Operator::NotIn => "NotIn",
                    Operator::Exists => "Exists",
                    Operator::DoesNotExist => "DoesNotExist",
                    Operator::GreaterThan | Operator::LessThan => return None,
                };
                Some(requirement(&it.key, operator, it.values.iter().map(Value::from).collect()))
            });
            shown.collect()
        }
    }
}

fn decision(status: &Value) -> Decision {
    let said = |name: &str| status.get(name) == Some(&Value::Bool(true));
    let reason = status.str_at(&["reason"]).to_owned();
    match (said("allowed"), said("denied")) {
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
            (decision.allowed(), decision.is_final_refusal(), decision.reason())
        };
        assert_eq!(of(json!({"allowed": true, "reason": "r"})), (true, false, "r".to_owned()));
        assert_eq!(of(json!({"allowed": false, "reason": "r"})), (false, false, "r".to_owned()));
        assert_eq!(of(json!({"denied": true, "reason": "r"})), (false, true, "r".to_owned()));
        assert!(of(json!({"denied": true, "allowed": true})).1);
        assert_eq!(of(json!({})), (false, false, String::new()));
    }

    #[test]
    fn access_reviews_include_selectors() {
        let asked =
            AccessAttributes { is_resource: true, verb: "list", resource: "boats", ..AccessAttributes::default() };
        let selected = |fields: &'static str, labels: &'static str| {
            let asked = AccessAttributes { fields: Selection::Text(fields), labels: Selection::Text(labels), ..asked };
            spec(&User::system("u"), &asked).at(&["resourceAttributes"]).unwrap().clone()
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
