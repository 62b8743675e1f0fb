//! A webhook that decides: SubjectAccessReview, sent out (api-machinery 23.6).

use std::time::Duration;

use machinery::{Value, json};

use super::{Attributes, Decision};
use crate::authentication::ReviewVersion;
use crate::request::User;
use crate::webhook::{Answers, Remote};

/// The bytes of a question whose answer is remembered, at most; upstream's.
const REMEMBERED_BYTES_MAX: usize = 10_000;

/// How long answers are good for.
#[derive(Clone, Copy, Debug)]
pub struct Remember {
    pub allowed: Duration,
    pub refused: Duration,
}

/// Asks a webhook. One that cannot be asked has no opinion.
#[derive(Debug)]
pub struct AccessReviewer {
    remote: Remote,
    version: ReviewVersion,
    remembered: Answers<Decision>,
}

impl AccessReviewer {
    pub fn new(remote: Remote, version: ReviewVersion, remember: Remember) -> AccessReviewer {
        let good_for = move |decision: &Decision| if decision.allowed() { remember.allowed } else { remember.refused };
        AccessReviewer { remote, version, remembered: Answers::new(good_for) }
    }

    pub async fn decide(&self, user: &User, asked: &Attributes<'_>) -> Decision {
        let spec = self.spec(user, asked);
        let key = spec.to_json();
        if let Some(known) = self.remembered.get(&key) {
            return known;
        }
        let version = format!("authorization.k8s.io/{}", self.version.as_str());
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": version, "metadata": {"creationTimestamp": null}, "spec": spec,
            "status": {"allowed": false}
        });
        match self.remote.post(&review).await {
            Ok(answer) => {
                let decision = decision(answer.get("status").unwrap_or(&Value::Null));
                if key.len() < REMEMBERED_BYTES_MAX {
                    self.remembered.put(key, decision.clone());
                }
                decision
            }
            Err(why) => {
                tracing::warn!(why, "the webhook of authorization cannot be asked");
                Decision::NoOpinion(vec![])
            }
        }
    }

    fn spec(&self, user: &User, asked: &Attributes<'_>) -> Value {
        let mut spec = user.to_value("user");
        if self.version == ReviewVersion::V1beta1
            && let Some(groups) = spec.remove_at(&["groups"])
        {
            spec.set_at(&["group"], groups);
        }
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
        for (key, text) in members.into_iter().filter(|(_, text)| !text.is_empty()) {
            spec.set_at(&[place, key], Value::from(text));
        }
        spec
    }
}

fn decision(status: &Value) -> Decision {
    let said = |name: &str| status.get(name) == Some(&Value::Bool(true));
    let reason = status.str_at(&["reason"]).to_owned();
    match (said("allowed"), said("denied")) {
        (true, true) => {
            Decision::Denied("webhook subject access review returned both allow and deny response".to_owned())
        }
        (true, false) => Decision::AllowedFor(reason),
        (false, true) => Decision::Denied(reason),
        (false, false) => Decision::NoOpinion(vec![]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_decisions() {
        let of = |status: Value| {
            let decision = decision(&status);
            (decision.allowed(), decision.is_final_refusal(), decision.reason())
        };
        assert_eq!(of(json!({"allowed": true, "reason": "r"})), (true, false, "r".to_owned()));
        assert_eq!(of(json!({"allowed": false, "reason": "r"})), (false, false, String::new()));
        assert_eq!(of(json!({"denied": true, "reason": "r"})), (false, true, "r".to_owned()));
        assert!(of(json!({"denied": true, "allowed": true})).1);
        assert_eq!(of(json!({})), (false, false, String::new()));
    }
}
