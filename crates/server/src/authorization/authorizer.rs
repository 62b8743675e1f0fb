//! The chain of authorizers: the first one with an opinion decides.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use machinery::Release;
use machinery::status::aggregate;

use super::index::Grant;
use super::webhook::AccessReviewer;
use super::{Attributes, Rbac, Rule};
use crate::request::User;

/// A decision, with its reason.
#[derive(Clone, Debug)]
pub enum Decision {
    /// Allowed as member of `system:masters`.
    Master,
    Allowed(Arc<Grant>),
    /// Allowed by an authorizer, with its reason.
    AllowedFor(String),
    /// No authorizer has an opinion.
    NoOpinion(Words),
    /// Denied by an authorizer; later ones are not asked.
    Denied(Words),
}

/// The decision of the chain, and the errors of its authorizers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    pub reasons: Vec<String>,
    pub errors: Vec<String>,
}

impl Words {
    pub fn reason(text: impl Into<String>) -> Words {
        let text = text.into();
        Words { reasons: if text.is_empty() { vec![] } else { vec![text] }, errors: vec![] }
    }

    pub fn error(text: impl Into<String>) -> Words {
        Words { reasons: vec![], errors: vec![text.into()] }
    }
}

impl Words {
    /// Adds what an authorizer without an opinion says; since 1.37 with the name of the authorizer.
    fn add(&mut self, said: Words, mode: &Mode, release: Release) {
        self.errors.extend(said.errors);
        let named = |reason| if release >= Release::V1_37 { format!("{}: {reason}", mode.name()) } else { reason };
        self.reasons.extend(said.reasons.into_iter().map(named));
    }
}

impl Mode {
    /// The name in the configuration of authorizers: for flags, the mode in lower case.
    fn name(&self) -> &str {
        match self {
            Mode::AlwaysAllow => "alwaysallow",
            Mode::AlwaysDeny => "alwaysdeny",
            Mode::Rbac => "rbac",
            Mode::Webhook(reviewer) => reviewer.name(),
        }
    }
}

impl Decision {
    pub fn allowed(&self) -> bool {
        matches!(self, Decision::Master | Decision::Allowed(_) | Decision::AllowedFor(_))
    }

    /// Whether the request was denied explicitly.
    pub fn is_final_refusal(&self) -> bool {
        matches!(self, Decision::Denied(_))
    }

    /// The reason, for reviews and error messages.
    pub fn reason(&self) -> String {
        match self {
            Decision::Master => String::new(),
            Decision::Allowed(grant) => format!("RBAC: allowed by {grant}"),
            Decision::AllowedFor(reason) => reason.clone(),
            Decision::NoOpinion(words) | Decision::Denied(words) => words.reasons.join("\n"),
        }
    }

    /// The evaluation error, if there is one.
    pub fn error(&self) -> Option<String> {
        match self {
            Decision::NoOpinion(words) | Decision::Denied(words) if !words.errors.is_empty() => {
                Some(aggregate(&words.errors))
            }
            _ => None,
        }
    }
}

/// One authorizer (`--authorization-mode`).
#[derive(Debug)]
pub enum Mode {
    AlwaysAllow,
    AlwaysDeny,
    Rbac,
    Webhook(Box<AccessReviewer>),
}

/// The chain. Members of `system:masters` are allowed before any authorizer is asked.
pub struct Authorizer {
    rbac: Arc<Rbac>,
    modes: ArcSwap<Vec<Mode>>,
    release: Release,
}

impl Authorizer {
    pub fn new(rbac: Arc<Rbac>, modes: Vec<Mode>, release: Release) -> Authorizer {
        Authorizer { rbac, modes: ArcSwap::from_pointee(modes), release }
    }

    /// Replaces the authorizers.
    pub fn set_modes(&self, modes: Vec<Mode>) {
        self.modes.store(Arc::new(modes));
    }

    pub fn rbac(&self) -> &Rbac {
        &self.rbac
    }

    /// Decides about a request of a user.
    pub async fn decide(&self, user: &User, asked: &Attributes<'_>) -> Decision {
        if user.in_group(User::MASTERS) {
            return Decision::Master;
        }
        let mut words = Words::default();
        for mode in self.modes.load_full().iter() {
            let decision = match mode {
                Mode::AlwaysAllow => Decision::AllowedFor(String::new()),
                Mode::AlwaysDeny => Decision::NoOpinion(Words::reason("Everything is forbidden.")),
                Mode::Rbac => self.rbac.decide(user, asked),
                Mode::Webhook(reviewer) => Box::pin(reviewer.decide(user, asked)).await,
            };
            match decision {
                Decision::NoOpinion(said) => {
                    words.add(said, mode, self.release);
                }
                decided => return decided,
            }
        }
        Decision::NoOpinion(words)
    }

    /// Decides without waiting; `None` if an authorizer has to be awaited.
    pub fn decide_at_once(&self, user: &User, asked: &Attributes<'_>) -> Option<Decision> {
        let asks_outside = self.modes.load().iter().any(|mode| matches!(mode, Mode::Webhook(_)));
        if asks_outside && !user.in_group(User::MASTERS) {
            return None;
        }
        self.decide(user, asked).now_or_never()
    }

    /// The rules of a user in a namespace, the errors of their resolution, and whether they are incomplete.
    pub fn rules_of(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>, bool) {
        let (mut rules, mut errors, mut incomplete) = (vec![], vec![], false);
        for mode in self.modes.load().iter() {
            match mode {
                Mode::AlwaysAllow => rules.extend(Rule::all()),
                Mode::AlwaysDeny => {}
                Mode::Rbac => {
                    let (found, failed) = self.rbac.rules_of(user, namespace);
                    rules.extend(found);
                    errors.extend(failed.iter().map(ToString::to_string));
                }
                Mode::Webhook(_) => {
                    incomplete = true;
                    errors.push("webhook authorizer does not support user rule resolution".to_owned());
                }
            }
        }
        (rules, errors, incomplete)
    }
}
