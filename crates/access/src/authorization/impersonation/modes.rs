//! Modes of impersonation (KEP-5284): which users may be impersonated, and for which requests, by mode.
//!
//! A mode requires `impersonate-on:<mode>:<verb>` on the resource of the request and `impersonate:<mode>` on every part of
//! the user. If no mode allows the request, the verb `impersonate` is checked. The only cache is the last mode of each user,
//! which is tried first; kube-apiserver also caches decisions for 10 s.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use base::clock;
use base::metrics::{ImpersonationAttempt, METRICS};
use base::request::{RequestInfo, User};
use machinery::field::{FieldError, FieldPath};
use machinery::status::aggregate;
use machinery::value::quote;
use machinery::{Status, Text, Value, names};

use super::super::{AccessAttributes, Authorizer, judged_by, refusal};
use super::{AUTHENTICATION, Impersonated, ImpersonationTarget, account};
use crate::limits;

const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";
/// The claim of ServiceAccount tokens about the node of their Pod.
const ACCOUNT_NODE: &str = "authentication.kubernetes.io/node-name";
const ACCOUNT_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImpersonationMode {
    /// A ServiceAccount impersonates the node of its Pod.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// Users that are neither nodes nor ServiceAccounts.
    UserInfo,
    Legacy,
}

/// All modes, in the order in which they are tried.
const MODES: [ImpersonationMode; 5] = [
    ImpersonationMode::AssociatedNode,
    ImpersonationMode::ArbitraryNode,
    ImpersonationMode::ServiceAccount,
    ImpersonationMode::UserInfo,
    ImpersonationMode::Legacy,
];

impl ImpersonationMode {
    fn as_str(self) -> &'static str {
        match self {
            ImpersonationMode::AssociatedNode => "associated-node",
            ImpersonationMode::ArbitraryNode => "arbitrary-node",
            ImpersonationMode::ServiceAccount => "serviceaccount",
            ImpersonationMode::UserInfo => "user-info",
            ImpersonationMode::Legacy => "legacy",
        }
    }

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
    fn suits(self, wanted: &ImpersonationTarget, user: &User) -> bool {
        let (node, is_account) = (node(&wanted.user), account(&wanted.user).is_some());
        match self {
            ImpersonationMode::AssociatedNode => wanted.is_name_alone() && node.is_some() && node == node_of(user),
            ImpersonationMode::ArbitraryNode => wanted.is_name_alone() && node.is_some(),
            ImpersonationMode::ServiceAccount => wanted.is_name_alone() && is_account,
            ImpersonationMode::UserInfo => node.is_none() && !is_account,
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

    fn user_part<'a>(self, wanted: &'a ImpersonationTarget, base: AccessAttributes<'a>) -> AccessAttributes<'a> {
        match self {
            ImpersonationMode::AssociatedNode => AccessAttributes { resource: "nodes", name: "*", ..base },
            ImpersonationMode::ArbitraryNode => {
                AccessAttributes { resource: "nodes", name: node(&wanted.user).unwrap_or_default(), ..base }
            }
            _ => wanted.user_part(base),
        }
    }

    fn into_user(self, mut wanted: ImpersonationTarget) -> User {
        if matches!(self, ImpersonationMode::AssociatedNode | ImpersonationMode::ArbitraryNode) {
            wanted.groups.push(NODES.into());
        }
        wanted.into_user()
    }
}

/// The name of a node in the name of its user.
fn node(user: &str) -> Option<&str> {
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
        wanted: &ImpersonationTarget,
    ) -> Result<Impersonated, Status> {
        let begun = clock::instant();
        let found = self.find(authorizer, user, info, wanted).await;
        let mode = found.as_ref().map_or("", |mode| mode.as_str());
        let attempt = ImpersonationAttempt { mode, decision: decision(found.is_ok()) };
        METRICS.impersonation.attempted(&attempt, begun.elapsed());
        found.map(|mode| Impersonated {
            user: mode.into_user(wanted.clone()),
            constraint: if mode.is_constrained() { mode.verb() } else { "" },
        })
    }

    async fn find(
        &self,
        authorizer: &Authorizer,
        user: &User,
        info: &RequestInfo,
        wanted: &ImpersonationTarget,
    ) -> Result<ImpersonationMode, Status> {
        let (verb, name) = judged_by(info);
        let target = AccessAttributes::of_request(info, &verb, &name);
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).get(&user.name).copied();
        let others = MODES.into_iter().filter(|mode| Some(*mode) != last);
        let mut refused = None;
        for mode in last.into_iter().chain(others).filter(|mode| mode.suits(wanted, user)) {
            let attempt = Attempt { authorizer, user: mode.checked_user(user), mode };
            match attempt.check(wanted, &target).await {
                Ok(()) if Some(mode) == last => return Ok(mode),
                Ok(()) => {
                    self.remember(user, mode);
                    return Ok(mode);
                }
                Err(status) => {
                    refused.get_or_insert(status);
                }
            }
        }
        Err(refused.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
    }

    fn remember(&self, user: &User, mode: ImpersonationMode) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
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
    async fn check(&self, wanted: &ImpersonationTarget, target: &AccessAttributes<'_>) -> Result<(), Status> {
        if self.mode.is_constrained() {
            let verb = format!("impersonate-on:{}:{}", self.mode.as_str(), target.verb);
            self.ask(AccessAttributes { verb: &verb, ..*target }).await?;
        }
        let group = if self.mode.is_constrained() { AUTHENTICATION } else { "" };
        let verb = self.mode.verb();
        let base = AccessAttributes { verb, is_resource: true, group, version: "v1", ..AccessAttributes::default() };
        self.ask(self.mode.user_part(wanted, base)).await?;
        if let Some(uid) = wanted.uid_part(base) {
            self.ask(uid).await?;
        }
        self.check_groups(wanted, base).await?;
        self.check_extra(wanted, base).await
    }

    async fn check_groups(&self, wanted: &ImpersonationTarget, base: AccessAttributes<'_>) -> Result<(), Status> {
        let all = AccessAttributes { resource: "groups", ..base };
        if self.mode.is_constrained() {
            if wanted.groups.iter().any(|group| group.is_empty()) {
                return Err(self.refuse(&all, "impersonating the empty string group is not allowed"));
            }
            if wanted.groups.iter().any(|group| group == User::MASTERS) {
                let masters = AccessAttributes { name: User::MASTERS, ..all };
                return Err(self.refuse(&masters, "impersonating the system:masters group is not allowed"));
            }
            if wanted.groups.len() >= limits::IMPERSONATED_TOGETHER
                && self.ask(AccessAttributes { name: "*", ..all }).await.is_ok()
            {
                return Ok(());
            }
        }
        for asked in wanted.group_parts(base) {
            self.ask(asked).await?;
        }
        Ok(())
    }

    async fn check_extra(&self, wanted: &ImpersonationTarget, base: AccessAttributes<'_>) -> Result<(), Status> {
        if self.mode.is_constrained() && !wanted.extra.is_empty() {
            let all = AccessAttributes { resource: "userextras", ..base };
            if let Some(why) = wanted.extra.iter().find_map(|(key, values)| wrong_extra(key, values)) {
                return Err(self.refuse(&all, &why));
            }
            let values = wanted.extra_parts(base).count();
            if values >= limits::IMPERSONATED_TOGETHER
                && self.ask(AccessAttributes { subresource: "*", name: "*", ..all }).await.is_ok()
            {
                return Ok(());
            }
        }
        for asked in wanted.extra_parts(base) {
            self.ask(asked).await?;
        }
        Ok(())
    }

    async fn ask(&self, asked: AccessAttributes<'_>) -> Result<(), Status> {
        let begun = clock::instant();
        let found = self.authorizer.decide(&self.user, &asked).await;
        let attempt = ImpersonationAttempt { mode: self.mode.as_str(), decision: decision(found.allowed()) };
        METRICS.impersonation.authorized(&attempt, begun.elapsed());
        if found.allowed() {
            return Ok(());
        }
        let reason = Some(found.reason()).filter(|reason| !reason.is_empty());
        let why: Vec<String> = found.error().into_iter().chain(reason).collect();
        Err(self.refuse(&asked, &why.join(": ")))
    }

    fn refuse(&self, asked: &AccessAttributes<'_>, why: &str) -> Status {
        refusal(&self.user, asked, why)
    }
}

/// The error of a key and its values.
fn wrong_extra(key: &str, values: &[Text]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".into());
    }
    let path = FieldPath::new("extra").child("key");
    let wrong = names::domain_prefixed_path(key).into_iter();
    let wrong: Vec<String> =
        wrong.map(|(part, why)| FieldError::invalid(&path, &Value::from(part), why).to_string()).collect();
    if !wrong.is_empty() {
        return Some(format!("impersonating an invalid key in extra is not allowed: {}", aggregate(&wrong)));
    }
    if key != key.to_lowercase() {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {}", quote(key)));
    }
    let is_wrong = values.iter().any(|value| value.is_empty());
    is_wrong.then(|| "impersonating the empty string value in extra is not allowed".into())
}

fn decision(allowed: bool) -> &'static str {
    if allowed { "allowed" } else { "denied" }
}

#[cfg(test)]
mod tests;
