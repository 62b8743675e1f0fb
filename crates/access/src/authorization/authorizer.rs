//! The chain of authorizers: the first one with an opinion decides.

use std::sync::Arc;

use arc_swap::ArcSwap;
use base::request::User;
use futures_util::FutureExt as _;
use machinery::Release;

use super::decision::DecisionDetails;
use super::webhook::AccessReviewer;
use super::{AccessAttributes, Decision, Loopback, PolicyRule, Rbac};
use crate::authentication::Realm;

#[derive(Debug)]
pub enum AuthorizationMode {
    AlwaysAllow,
    AlwaysDeny,
    Rbac,
    Webhook(Box<AccessReviewer>),
}

impl AuthorizationMode {
    /// The name in the configuration of authorizers. For a mode that a flag sets, it is the mode in lower case.
    pub(super) fn name(&self) -> &str {
        match self {
            AuthorizationMode::AlwaysAllow => "alwaysallow",
            AuthorizationMode::AlwaysDeny => "alwaysdeny",
            AuthorizationMode::Rbac => "rbac",
            AuthorizationMode::Webhook(reviewer) => reviewer.name(),
        }
    }
}

/// The rules of a user, as far as the authorizers can list them.
#[derive(Debug, Default)]
pub struct UserRules {
    /// One list for each role.
    pub roles: Vec<Arc<[PolicyRule]>>,
    pub errors: Vec<String>,
    /// Whether an authorizer cannot list its rules.
    pub incomplete: bool,
}

/// The authorizers of a server, which may be replaced.
pub type Modes = Arc<ArcSwap<Vec<AuthorizationMode>>>;

/// Makes authorizers replaceable.
pub fn modes(modes: Vec<AuthorizationMode>) -> Modes {
    Arc::new(ArcSwap::from_pointee(modes))
}

/// The chain. Members of `system:masters` are allowed before any authorizer decides.
pub struct Authorizer {
    rbac: Arc<Rbac>,
    modes: Modes,
    release: Release,
    /// Decides for this realm, or for the server itself.
    realm: Option<Realm>,
}

impl Authorizer {
    /// The authorizer of a server, and the server's right to make requests that bypass it.
    pub fn new(rbac: Arc<Rbac>, modes: Modes, release: Release) -> (Authorizer, Loopback) {
        (Authorizer { rbac, modes, release, realm: None }, Loopback(()))
    }

    /// The same authorizers, which decide for a realm: webhooks get its name.
    pub fn in_realm(self, realm: Option<Realm>) -> Authorizer {
        Authorizer { realm, ..self }
    }

    /// Replaces the authorizers.
    pub fn set_modes(&self, modes: Vec<AuthorizationMode>) {
        self.modes.store(Arc::new(modes));
    }

    pub fn rbac(&self) -> &Rbac {
        &self.rbac
    }

    /// Decides about a request of a user.
    pub async fn decide(&self, user: &User, attributes: &AccessAttributes<'_>) -> Decision {
        if user.in_group(User::MASTERS) {
            return Decision::Master;
        }
        let mut details = DecisionDetails::default();
        for mode in self.modes.load_full().iter() {
            let decision = match mode {
                AuthorizationMode::AlwaysAllow => Decision::AllowedFor(String::new()),
                AuthorizationMode::AlwaysDeny => {
                    Decision::NoOpinion(DecisionDetails::reason("Everything is forbidden."))
                }
                AuthorizationMode::Rbac => self.rbac.decide(user, attributes),
                AuthorizationMode::Webhook(reviewer) => {
                    Box::pin(reviewer.decide(user, attributes, self.realm.as_ref())).await
                }
            };
            match decision {
                Decision::NoOpinion(opinion) => details.add(opinion, mode.name(), self.release),
                allowed_or_denied => return allowed_or_denied,
            }
        }
        Decision::NoOpinion(details)
    }

    /// Decides without waiting; `None` if an authorizer has to be awaited.
    pub fn decide_at_once(&self, user: &User, attributes: &AccessAttributes<'_>) -> Option<Decision> {
        let has_webhook = self.modes.load().iter().any(|mode| matches!(mode, AuthorizationMode::Webhook(_)));
        if has_webhook && !user.in_group(User::MASTERS) { None } else { self.decide(user, attributes).now_or_never() }
    }

    pub fn rules_of(&self, user: &User, namespace: &str) -> UserRules {
        let mut resolved = UserRules::default();
        for mode in self.modes.load().iter() {
            match mode {
                AuthorizationMode::AlwaysAllow => resolved.roles.push(Arc::from(PolicyRule::all())),
                AuthorizationMode::AlwaysDeny => {}
                AuthorizationMode::Rbac => {
                    let (roles, missing_roles) = self.rbac.rules_of(user, namespace);
                    resolved.roles.extend(roles);
                    resolved.errors.extend(missing_roles.iter().map(ToString::to_string));
                }
                AuthorizationMode::Webhook(_) => {
                    resolved.incomplete = true;
                    resolved.errors.push("webhook authorizer does not support user rule resolution".to_owned());
                }
            }
        }
        resolved
    }
}
