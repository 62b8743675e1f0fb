//! The `authorizer` of expressions: authorization checks for the user of the request.
//!
//! Evaluations are synchronous, webhook authorizers are not. So an evaluation runs until it needs an unknown decision; that
//! decision is awaited, and the evaluation is repeated from the start.

use std::sync::Arc;

use base::deadline;
use base::request::User;
use cel::{Authorization, Check, Decision, LazyValue, Val};
use machinery::Text;
use parking_lot::Mutex;

use super::Attributes;
use crate::authorization;

/// `authorizer`: checks for the user of the request.
pub struct ExpressionAuthorizer<'a> {
    authorizer: &'a authorization::Authorizer,
    user: &'a User,
    decisions: Mutex<DecisionCache>,
}

/// The authorization checks of the expressions about one write.
#[derive(Default)]
struct DecisionCache {
    known: Vec<(Check, Decision)>,
    /// The first check without a decision.
    unknown: Option<Check>,
}

impl std::fmt::Debug for ExpressionAuthorizer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "authorizer of {}", self.user.name)
    }
}

impl<'a> ExpressionAuthorizer<'a> {
    pub fn new(authorizer: &'a authorization::Authorizer, attributes: &Attributes<'a>) -> ExpressionAuthorizer<'a> {
        ExpressionAuthorizer { authorizer, user: attributes.user, decisions: Mutex::default() }
    }

    /// Repeats an evaluation until all decisions that it needs are known, and returns its result.
    pub async fn evaluate<T>(&self, mut evaluate: impl FnMut() -> T) -> T {
        loop {
            let result = deadline::long(&mut evaluate).await;
            let Some(check) = self.decisions.lock().unknown.take() else { return result };
            let subject = self.subject(&check);
            let decision =
                self.authorizer.decide(subject.as_ref().unwrap_or(self.user), &access_attributes(&check)).await;
            self.decisions.lock().known.push((check, decision_of(&decision)));
        }
    }

    /// The subject of a check, if it is not the user of the request.
    fn subject(&self, check: &Check) -> Option<User> {
        check.service_account.as_ref().map(|(namespace, name)| User::service_account(namespace, name))
    }
}

fn access_attributes(check: &Check) -> authorization::AccessAttributes<'_> {
    authorization::AccessAttributes {
        verb: &check.verb,
        is_resource: check.path.is_empty(),
        group: &check.group,
        version: "*",
        resource: &check.resource,
        subresource: &check.subresource,
        namespace: &check.namespace,
        name: &check.name,
        path: &check.path,
        ..authorization::AccessAttributes::default()
    }
}

fn decision_of(decision: &authorization::Decision) -> Decision {
    Decision { allowed: decision.allowed(), reason: decision.reason(), error: decision.error().unwrap_or_default() }
}

impl LazyValue for ExpressionAuthorizer<'_> {
    fn value(&self) -> Val<'_> {
        Authorization::of(self)
    }
}

/// `authorizer.requestResource`: the resource of the write.
pub struct RequestResource<'a> {
    pub authorizer: Arc<ExpressionAuthorizer<'a>>,
    pub attributes: &'a Attributes<'a>,
}

impl std::fmt::Debug for RequestResource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {:?}", self.attributes.plural(), self.authorizer)
    }
}

impl LazyValue for RequestResource<'_> {
    fn value(&self) -> Val<'_> {
        let check = Check {
            group: self.attributes.group().clone(),
            resource: self.attributes.plural().clone(),
            subresource: Text::new_static(self.attributes.subresource),
            namespace: self.attributes.namespace.clone(),
            name: Text::from(self.attributes.name),
            ..Check::default()
        };
        Authorization::of_resource(&*self.authorizer, check)
    }
}

impl cel::Authorizer for ExpressionAuthorizer<'_> {
    fn decide(&self, check: &Check) -> Decision {
        let subject = self.subject(check);
        if let Some(decision) =
            self.authorizer.decide_at_once(subject.as_ref().unwrap_or(self.user), &access_attributes(check))
        {
            return decision_of(&decision);
        }
        let mut decisions = self.decisions.lock();
        if let Some((_, decision)) = decisions.known.iter().find(|(known, _)| known == check) {
            return decision.clone();
        }
        // the result of this evaluation will be discarded
        decisions.unknown.get_or_insert_with(|| check.clone());
        Decision::default()
    }
}
