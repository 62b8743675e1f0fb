//! The `authorizer` of admission expressions (KEP-3488; since Kubernetes 1.27).
//!
//! An expression builds a check, step by step from the authorizer, and gets a decision:
//! `authorizer.group('g').resource('r').namespace('n').check('get').allowed()`.

use super::Val;
use crate::decl::types::Type;
use machinery::Text;
use std::rc::Rc;

/// Decides the checks of expressions.
pub trait Authorizer: std::fmt::Debug {
    /// Decides whether the check is allowed.
    fn decide(&self, check: &Check) -> Decision;
}

/// A check: a verb on a path or on a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Namespace and name of the ServiceAccount that is checked; `None` for the user of the request.
    pub service_account: Option<(Text, Text)>,
    /// The path of a URL that is not a resource; empty for resources.
    pub path: Text,
    /// The API group of the resource.
    pub group: Text,
    /// The plural name of the resource.
    pub resource: Text,
    /// The subresource, or empty.
    pub subresource: Text,
    /// The namespace, or empty.
    pub namespace: Text,
    /// The name of the object, or empty.
    pub name: Text,
    /// The verb, such as `get`.
    pub verb: Text,
}

/// The decision about a check.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// Whether the check is allowed.
    pub allowed: bool,
    /// The reason of the decision.
    pub reason: String,
    /// The error that prevented a decision; empty if there was none.
    pub error: String,
}

/// An intermediate value between an authorizer and its decision.
#[derive(Clone, Debug)]
pub struct Authorization<'a> {
    pub(crate) authorizer: &'a dyn Authorizer,
    pub(crate) check: Check,
    pub(crate) step: CheckStep,
}

#[derive(Clone, Debug)]
pub(crate) enum CheckStep {
    Authorizer,
    Path,
    Group,
    Resource,
    Decision(Decision),
}

impl<'a> Authorization<'a> {
    /// The variable `authorizer`.
    pub fn of(authorizer: &'a dyn Authorizer) -> Val<'a> {
        Val::Authorization(Rc::new(Authorization { authorizer, check: Check::default(), step: CheckStep::Authorizer }))
    }

    /// The variable `authorizer.requestResource`.
    pub fn of_resource(authorizer: &'a dyn Authorizer, check: Check) -> Val<'a> {
        Val::Authorization(Rc::new(Authorization { authorizer, check, step: CheckStep::Resource }))
    }

    pub(crate) fn type_of(&self) -> Type {
        Type::parse(match self.step {
            CheckStep::Authorizer => "kubernetes.authorization.Authorizer",
            CheckStep::Path => "kubernetes.authorization.PathCheck",
            CheckStep::Group => "kubernetes.authorization.GroupCheck",
            CheckStep::Resource => "kubernetes.authorization.ResourceCheck",
            CheckStep::Decision(_) => "kubernetes.authorization.Decision",
        })
    }

    pub(crate) fn next(&self, step: CheckStep, change: impl FnOnce(&mut Check)) -> Val<'a> {
        let mut next = Authorization { step, ..self.clone() };
        change(&mut next.check);
        Val::Authorization(Rc::new(next))
    }
}
