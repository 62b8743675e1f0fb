//! The chain of authorizers: the first one with an opinion decides.

use std::sync::Arc;

use arc_swap::ArcSwap;
use base::request::User;
use futures_util::FutureExt as _;
use machinery::Release;

use super::decision::DecisionDetails;
use super::webhook::AccessReviewer;
use super::{AccessAttributes, Decision, PolicyRule, Rbac};

/// One authorizer (`--authorization-mode`).
#[derive(Debug)]
pub enum AuthorizationMode {
    AlwaysAllow,
    AlwaysDeny,
    Rbac,
    Webhook(Box<AccessReviewer>),
}

impl AuthorizationMode {
    /// The name in the configuration of authorizers: for flags, the mode in lower case.
    pub(super) fn name(&self) -> &str {
        match self {
            AuthorizationMode::AlwaysAllow => "alwaysallow",
            AuthorizationMode::AlwaysDeny => "alwaysdeny",
            AuthorizationMode::Rbac => "rbac",
            AuthorizationMode::Webhook(reviewer) => reviewer.name(),
        }
    }
}

/// The chain. Members of `system:masters` are allowed before any authorizer decides.
pub struct Authorizer {
    rbac: Arc<Rbac>,
    modes: ArcSwap<Vec<AuthorizationMode>>,
    release: Release,
}

impl Authorizer {
    pub fn new(rbac: Arc<Rbac>, modes: Vec<AuthorizationMode>, release: Release) -> Authorizer {
        Authorizer { rbac, modes: ArcSwap::from_pointee(modes), release }
    }

    /// Replaces the authorizers.
    pub fn set_modes(&self, modes: Vec<AuthorizationMode>) {
        self.modes.store(Arc::new(modes));
    }

    pub fn rbac(&self) -> &Rbac {
        &self.rbac
    }

    /// Decides about a request of a user.
    pub async fn decide(&self, user: &User, asked: &AccessAttributes<'_>) -> Decision {
        if user.in_group(User::MASTERS) {
            return Decision::Master;
        }
        let mut words = DecisionDetails::default();
        for mode in self.modes.load_full().iter() {
            let decision = match mode {
                AuthorizationMode::AlwaysAllow => Decision::AllowedFor(String::new()),
                AuthorizationMode::AlwaysDeny => {
                    Decision::NoOpinion(DecisionDetails::reason("Everything is forbidden."))
                }
                AuthorizationMode::Rbac => self.rbac.decide(user, asked),
                AuthorizationMode::Webhook(reviewer) => Box::pin(reviewer.decide(user, asked)).await,
            };
            match decision {
                Decision::NoOpinion(said) => {
                    words.add(said, mode.name(), self.release);
                }
                decided => return decided,
            }
        }
        Decision::NoOpinion(words)
    }

    /// Decides without waiting; `None` if an authorizer has to be awaited.
    pub fn decide_at_once(&self, user: &User, asked: &AccessAttributes<'_>) -> Option<Decision> {
        let asks_outside = self.modes.load().iter().any(|mode| matches!(mode, AuthorizationMode::Webhook(_)));
        if asks_outside && !user.in_group(User::MASTERS) {
            return None;
        }
        self.decide(user, asked).now_or_never()
    }

    /// The rules of a user in a namespace, the errors of their resolution, and whether they are incomplete.
    pub fn rules_of(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Vec<String>, bool) {
        let (mut rules, mut errors, mut incomplete) = (vec![], vec![], false);
        for mode in self.modes.load().iter() {
            match mode {
                AuthorizationMode::AlwaysAllow => rules.extend(PolicyRule::all()),
                AuthorizationMode::AlwaysDeny => {}
                AuthorizationMode::Rbac => {
                    let (found, failed) = self.rbac.rules_of(user, namespace);
                    rules.extend(found);
                    errors.extend(failed.iter().map(ToString::to_string));
                }
                AuthorizationMode::Webhook(_) => {
                    incomplete = true;
                    errors.push("webhook authorizer does not support user rule resolution".to_owned());
                }
            }
        }
        (rules, errors, incomplete)
    }
}
