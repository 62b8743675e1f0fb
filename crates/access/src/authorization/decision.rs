//! The decision of an authorizer, with its reason.

use std::sync::Arc;

use machinery::status::aggregate;
use machinery::{Release, Text};

/// A decision, with its reason.
#[derive(Clone, Debug)]
pub enum Decision {
    /// Allowed as member of `system:masters`.
    Master,
    Allowed(Arc<Grant>),
    AllowedFor(String),
    NoOpinion(DecisionDetails),
    /// Denied by an authorizer; later ones are not called.
    Denied(DecisionDetails),
}

/// The decision of the chain, and the errors of its authorizers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionDetails {
    pub reasons: Vec<String>,
    pub errors: Vec<String>,
}

impl DecisionDetails {
    /// Adds the details of an authorizer without an opinion; since 1.37 reasons have the name of the authorizer.
    pub fn add(&mut self, opinion: DecisionDetails, authorizer: &str, release: Release) {
        self.errors.extend(opinion.errors);
        let named = |reason| if release >= Release::V1_37 { format!("{authorizer}: {reason}") } else { reason };
        self.reasons.extend(opinion.reasons.into_iter().map(named));
    }

    pub fn reason(text: impl Into<String>) -> DecisionDetails {
        let text = text.into();
        DecisionDetails { reasons: if text.is_empty() { vec![] } else { vec![text] }, errors: vec![] }
    }

    pub fn error(text: impl Into<String>) -> DecisionDetails {
        DecisionDetails { reasons: vec![], errors: vec![text.into()] }
    }
}

impl Decision {
    pub fn allowed(&self) -> bool {
        matches!(self, Decision::Master | Decision::Allowed(_) | Decision::AllowedFor(_))
    }

    /// Whether the request was denied explicitly.
    pub fn is_denied(&self) -> bool {
        matches!(self, Decision::Denied(_))
    }

    /// The reason, for reviews and error messages.
    pub fn reason(&self) -> String {
        match self {
            Decision::Master => String::new(),
            Decision::Allowed(grant) => format!("RBAC: allowed by {grant}"),
            Decision::AllowedFor(reason) => reason.clone(),
            Decision::NoOpinion(details) | Decision::Denied(details) => details.reasons.join("\n"),
        }
    }

    /// The evaluation error, if there is one.
    pub fn error(&self) -> Option<String> {
        match self {
            Decision::NoOpinion(details) | Decision::Denied(details) if !details.errors.is_empty() => {
                Some(aggregate(&details.errors))
            }
            _ => None,
        }
    }
}

/// One subject of one binding.
#[derive(Debug)]
pub struct Grant {
    pub binding: Text,
    /// Empty for a ClusterRoleBinding.
    pub namespace: Text,
    pub role_kind: Text,
    pub role: Text,
    /// Key of the role: `namespace/name`, or `name` for a ClusterRole.
    pub role_path: Text,
    /// Its text in reasons.
    pub subject: Text,
    /// Index among the subjects of the binding.
    pub subject_index: usize,
}

impl std::fmt::Display for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Grant { binding, namespace, role_kind, role, subject, .. } = self;
        if namespace.is_empty() {
            write!(f, "ClusterRoleBinding \"{binding}\" of {role_kind} \"{role}\" to {subject}")
        } else {
            write!(f, "RoleBinding \"{binding}/{namespace}\" of {role_kind} \"{role}\" to {subject}")
        }
    }
}
