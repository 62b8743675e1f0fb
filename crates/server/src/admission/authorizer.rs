//! The `authorizer` of expressions: the server's, asked for whoever makes the request.

use cel::value::Val;
use cel::{Authorization, Check, Decision, Supply};
use machinery::Text;

use super::Attributes;
use crate::authorization;
use crate::request::User;

/// `authorizer`: asked for whoever makes the request.
#[derive(Clone, Copy)]
pub struct Authorizer<'a> {
    authorizer: &'a authorization::Authorizer,
    user: &'a User,
}

impl std::fmt::Debug for Authorizer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "authorizer of {}", self.user.name)
    }
}

impl<'a> Authorizer<'a> {
    pub fn new(authorizer: &'a authorization::Authorizer, attributes: &Attributes<'a>) -> Authorizer<'a> {
        Authorizer { authorizer, user: attributes.user }
    }
}

impl Supply for Authorizer<'_> {
    fn value(&self) -> Val<'_> {
        Authorization::of(self)
    }
}

/// `authorizer.requestResource`: the resource of the write.
#[derive(Clone, Copy)]
pub struct RequestResource<'a> {
    pub authorizer: Authorizer<'a>,
    pub attributes: &'a Attributes<'a>,
}

impl std::fmt::Debug for RequestResource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {:?}", self.attributes.plural(), self.authorizer)
    }
}

impl Supply for RequestResource<'_> {
    fn value(&self) -> Val<'_> {
        let check = Check {
            group: self.attributes.group().clone(),
            resource: self.attributes.plural().clone(),
            subresource: Text::new_static(self.attributes.subresource),
            namespace: self.attributes.namespace.clone(),
            name: Text::from(self.attributes.name),
            ..Check::default()
        };
        Authorization::of_resource(&self.authorizer, check)
    }
}

impl cel::Authorizer for Authorizer<'_> {
    fn decide(&self, check: &Check) -> Decision {
        let account = check.service_account.as_ref().map(|(namespace, name)| User::service_account(namespace, name));
        let asked = authorization::Attributes {
            verb: &check.verb,
            is_resource: check.path.is_empty(),
            group: &check.group,
            version: "*",
            resource: &check.resource,
            subresource: &check.subresource,
            namespace: &check.namespace,
            name: &check.name,
            path: &check.path,
            ..authorization::Attributes::default()
        };
        let decision = self.authorizer.decide_here(account.as_ref().unwrap_or(self.user), &asked);
        Decision { allowed: decision.allowed(), reason: decision.reason(), error: decision.error().unwrap_or_default() }
    }
}
