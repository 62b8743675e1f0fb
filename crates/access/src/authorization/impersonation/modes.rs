//! Modes of impersonation (KEP-5284). Each mode covers a kind of users that may be impersonated, and is granted for
//! verbs on resources.
//!
//! A mode requires `impersonate-on:<mode>:<verb>` on the resource of the request and `impersonate:<mode>` on every part of
//! the user. If no mode allows the request, the verb `impersonate` is checked. The only cache is the last mode of each user,
//! which is tried first; kube-apiserver also caches decisions for 10 s.

use std::borrow::Cow;
use std::collections::HashMap;

use base::clock;
use base::metrics::{ImpersonationAttempt, METRICS};
use base::request::{RequestInfo, User};
use machinery::field::{FieldError, FieldPath};
use machinery::status::aggregate;
use machinery::value::quote;
use machinery::{Status, Text, Value, names};
use parking_lot::Mutex;

use super::super::{AccessAttributes, Authorizer, refusal, verb_and_name};
use super::{AUTHENTICATION, Impersonated, ImpersonationTarget, account};
use crate::limits;

const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";
/// The claim of ServiceAccount tokens about the node of their Pod.
const ACCOUNT_NODE: &str = "authentication.kubernetes.io/node-name";
const ACCOUNT_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";

machinery::text_enum! {
    /// In the order in which they are tried.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum ImpersonationMode {
        /// A ServiceAccount impersonates the node of its Pod.
        AssociatedNode = "associated-node",
        ArbitraryNode = "arbitrary-node",
        ServiceAccount = "serviceaccount",
        /// Users that are neither nodes nor ServiceAccounts.
        UserInfo = "user-info",
        Legacy = "legacy",
    }
}

impl ImpersonationMode {
    /// The verbs that are required on the parts of a user.
    fn verb(self) -> &'static str {
        match self {
            ImpersonationMode::AssociatedNode => "impersonate:associated-node",
            ImpersonationMode::ArbitraryNode => "impersonate:arbitrary-node",
            ImpersonationMode::ServiceAccount => "impersonate:serviceaccount",
            ImpersonationMode::UserInfo => "impersonate:user-info",
            ImpersonationMode::Legacy => "impersonate",
        }
    }

    fn is_constrained(self) -> bool {
        self != ImpersonationMode::Legacy
    }

    /// Whether the mode applies to a target. A node or ServiceAccount must be requested by name alone, since its groups are
    /// known.
    fn applies_to(self, target: &ImpersonationTarget, user: &User) -> bool {
        let (node_name, is_account) = (node_name(&target.user), account(&target.user).is_some());
        match self {
            ImpersonationMode::AssociatedNode => {
                target.is_name_alone() && node_name.is_some() && node_name == node_of(user)
            }
            ImpersonationMode::ArbitraryNode => target.is_name_alone() && node_name.is_some(),
            ImpersonationMode::ServiceAccount => target.is_name_alone() && is_account,
            ImpersonationMode::UserInfo => node_name.is_none() && !is_account,
            ImpersonationMode::Legacy => true,
        }
    }

    /// The impersonating user for the authorization check. For associated nodes, the values of the node claims are removed, so
    /// that an agent that runs on every node is the same user on each.
    fn checked_user(self, user: &User) -> Cow<'_, User> {
        if self != ImpersonationMode::AssociatedNode {
            return Cow::Borrowed(user);
        }
        let mut keys: Vec<Text> = user.extra.iter().map(|(key, _)| key.clone()).collect();
        keys.sort();
        Cow::Owned(User { extra: vec![(ACCOUNT_KEYS.into(), keys)], ..user.clone() })
    }

    fn user_part<'a>(self, target: &'a ImpersonationTarget, base: AccessAttributes<'a>) -> AccessAttributes<'a> {
        match self {
            ImpersonationMode::AssociatedNode => AccessAttributes { resource: "nodes", name: "*", ..base },
            ImpersonationMode::ArbitraryNode => {
                AccessAttributes { resource: "nodes", name: node_name(&target.user).unwrap_or_default(), ..base }
            }
            _ => target.user_part(base),
        }
    }

    fn into_user(self, mut target: ImpersonationTarget) -> User {
        if matches!(self, ImpersonationMode::AssociatedNode | ImpersonationMode::ArbitraryNode) {
            target.groups.push(NODES.into());
        }
        target.into_user()
    }
}

fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix(NODE).filter(|name| names::dns1123_subdomain(name).is_empty())
}

/// The node of a ServiceAccount's Pod, by the claims of its token.
fn node_of(user: &User) -> Option<&str> {
    account(&user.name)?;
    match user.extra.iter().find(|(key, _)| key == ACCOUNT_NODE)?.1.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

/// The mode that each user used last.
#[derive(Default)]
pub struct Modes {
    last: Mutex<HashMap<Text, ImpersonationMode>>,
}

impl Modes {
    /// Returns the impersonated user; the error is that of the mode that was tried first.
    pub async fn impersonate(
        &self,
        authorizer: &Authorizer,
        user: &User,
        info: &RequestInfo,
        target: &ImpersonationTarget,
    ) -> Result<Impersonated, Status> {
        let started = clock::instant();
        let found = self.find(authorizer, user, info, target).await;
        let mode = found.as_ref().map_or("", |mode| mode.as_str());
        let attempt = ImpersonationAttempt { mode, decision: decision_label(found.is_ok()) };
        METRICS.impersonation.attempted(&attempt, started.elapsed());
        found.map(|mode| Impersonated {
            user: mode.into_user(target.clone()),
            constraint: if mode.is_constrained() { mode.verb() } else { "" },
        })
    }

    async fn find(
        &self,
        authorizer: &Authorizer,
        user: &User,
        info: &RequestInfo,
        target: &ImpersonationTarget,
    ) -> Result<ImpersonationMode, Status> {
        let (verb, name) = verb_and_name(info);
        let request = AccessAttributes::of_request(info, &verb, &name);
        let last = self.last.lock().get(&user.name).copied();
        let others = ImpersonationMode::ALL.into_iter().filter(|mode| Some(*mode) != last);
        let mut first_refusal = None;
        for mode in last.into_iter().chain(others).filter(|mode| mode.applies_to(target, user)) {
            let attempt = Attempt { authorizer, user: mode.checked_user(user), mode };
            match attempt.check(target, &request).await {
                Ok(()) => {
                    if Some(mode) != last {
                        self.set_last(user, mode);
                    }
                    return Ok(mode);
                }
                Err(status) => {
                    first_refusal.get_or_insert(status);
                }
            }
        }
        Err(first_refusal.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
    }

    fn set_last(&self, user: &User, mode: ImpersonationMode) {
        let mut last = self.last.lock();
        if last.len() >= limits::IMPERSONATORS_MAX {
            last.clear();
        }
        last.insert(user.name.clone(), mode);
    }
}

/// The check of a mode.
struct Attempt<'a> {
    authorizer: &'a Authorizer,
    user: Cow<'a, User>,
    mode: ImpersonationMode,
}

impl Attempt<'_> {
    async fn check(&self, target: &ImpersonationTarget, request: &AccessAttributes<'_>) -> Result<(), Status> {
        if self.mode.is_constrained() {
            let verb = format!("impersonate-on:{}:{}", self.mode.as_str(), request.verb);
            self.authorize(AccessAttributes { verb: &verb, ..*request }).await?;
        }
        let group = if self.mode.is_constrained() { AUTHENTICATION } else { "" };
        let verb = self.mode.verb();
        let base = AccessAttributes { verb, is_resource: true, group, version: "v1", ..AccessAttributes::default() };
        self.authorize(self.mode.user_part(target, base)).await?;
        if let Some(uid) = target.uid_part(base) {
            self.authorize(uid).await?;
        }
        self.check_groups(target, base).await?;
        self.check_extra(target, base).await
    }

    async fn check_groups(&self, target: &ImpersonationTarget, base: AccessAttributes<'_>) -> Result<(), Status> {
        let all = AccessAttributes { resource: "groups", ..base };
        if self.mode.is_constrained() {
            if target.groups.iter().any(|group| group.is_empty()) {
                return Err(self.refuse(&all, "impersonating the empty string group is not allowed"));
            }
            if target.groups.iter().any(|group| group == User::MASTERS) {
                let masters = AccessAttributes { name: User::MASTERS, ..all };
                return Err(self.refuse(&masters, "impersonating the system:masters group is not allowed"));
            }
            if target.groups.len() >= limits::IMPERSONATED_TOGETHER
                && self.authorize(AccessAttributes { name: "*", ..all }).await.is_ok()
            {
                return Ok(());
            }
        }
        for attributes in target.group_parts(base) {
            self.authorize(attributes).await?;
        }
        Ok(())
    }

    async fn check_extra(&self, target: &ImpersonationTarget, base: AccessAttributes<'_>) -> Result<(), Status> {
        if self.mode.is_constrained() && !target.extra.is_empty() {
            let all = AccessAttributes { resource: "userextras", ..base };
            if let Some(why) = target.extra.iter().find_map(|(key, values)| extra_error(key, values)) {
                return Err(self.refuse(&all, &why));
            }
            let values = target.extra_parts(base).count();
            if values >= limits::IMPERSONATED_TOGETHER
                && self.authorize(AccessAttributes { subresource: "*", name: "*", ..all }).await.is_ok()
            {
                return Ok(());
            }
        }
        for attributes in target.extra_parts(base) {
            self.authorize(attributes).await?;
        }
        Ok(())
    }

    async fn authorize(&self, attributes: AccessAttributes<'_>) -> Result<(), Status> {
        let started = clock::instant();
        let decision = self.authorizer.decide(&self.user, &attributes).await;
        let attempt = ImpersonationAttempt { mode: self.mode.as_str(), decision: decision_label(decision.allowed()) };
        METRICS.impersonation.authorized(&attempt, started.elapsed());
        if decision.allowed() {
            return Ok(());
        }
        let reason = Some(decision.reason()).filter(|reason| !reason.is_empty());
        let why: Vec<String> = decision.error().into_iter().chain(reason).collect();
        Err(self.refuse(&attributes, &why.join(": ")))
    }

    fn refuse(&self, attributes: &AccessAttributes<'_>, why: &str) -> Status {
        refusal(&self.user, attributes, why)
    }
}

fn extra_error(key: &str, values: &[Text]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".into());
    }
    let path = FieldPath::new("extra").child("key");
    let to_text = |(part, why)| FieldError::invalid(&path, &Value::from(part), why).to_string();
    let errors: Vec<String> = names::domain_prefixed_path(key).into_iter().map(to_text).collect();
    if !errors.is_empty() {
        return Some(format!("impersonating an invalid key in extra is not allowed: {}", aggregate(&errors)));
    }
    if key != key.to_lowercase() {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {}", quote(key)));
    }
    let has_empty_value = values.iter().any(|value| value.is_empty());
    has_empty_value.then(|| "impersonating the empty string value in extra is not allowed".into())
}

fn decision_label(allowed: bool) -> &'static str {
    if allowed { "allowed" } else { "denied" }
}

#[cfg(test)]
mod tests;
