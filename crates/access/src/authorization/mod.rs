//! Authorization: RBAC and webhooks.
//!
//! Invariant: only this room creates an [`Authorized`], which the verbs require: [`authorize`] for a client's request, and
//! [`Loopback`] for the server's own. Bodies are read after authorization.

mod authorizer;
mod conditions;
mod configuration;
mod coverage;
mod decision;
pub mod defaults;
mod impersonation;
mod index;
mod rules;
mod webhook;

use std::borrow::Cow;

use base::request::{RequestInfo, User, Verb};
use machinery::value::quote;
use machinery::{Status, Text, Value};

pub use authorizer::{AuthorizationMode, Authorizer, Modes, UserRules, modes};
pub use configuration::parse as parse_configuration;
pub use coverage::{TooManyParts, missing};
pub use decision::Decision;
pub use impersonation::Impersonation;
pub use index::{GROUP, GrantedRole, Rbac};
pub use rules::PolicyRule;
pub use webhook::{AccessReviewer, DecisionTtl};

/// An authorized request.
#[derive(Debug)]
#[expect(clippy::manual_non_exhaustive, reason = "no other room of this crate can create one either")]
pub struct Authorized {
    pub info: RequestInfo,
    pub user: User,
    /// The reason of the decision.
    pub decision: Decision,
    _witness: (),
}

/// The attributes of a request: a verb on a resource or on a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessAttributes<'a> {
    pub verb: &'a str,
    pub is_resource: bool,
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub path: &'a str,
    /// The selectors of a list, a watch or a deletecollection.
    pub fields: Selection<'a>,
    pub labels: Selection<'a>,
}

/// A field or label selector, as the request has it.
#[derive(Clone, Copy, Debug, Default)]
pub enum Selection<'a> {
    #[default]
    All,
    Text(&'a str),
    /// The `requirements` of a review.
    Requirements(&'a Value),
}

impl<'a> AccessAttributes<'a> {
    /// The attributes of a verb on the resource of a request and the object `name`.
    pub fn of_resource(info: &'a RequestInfo, verb: &'a str, name: &'a str) -> AccessAttributes<'a> {
        AccessAttributes {
            verb,
            is_resource: true,
            group: &info.group,
            version: &info.version,
            resource: &info.resource,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name,
            ..AccessAttributes::default()
        }
    }

    fn of_request(info: &'a RequestInfo, verb: &'a str, name: &'a str) -> AccessAttributes<'a> {
        if info.is_resource {
            AccessAttributes::of_resource(info, verb, name).selecting(info)
        } else {
            AccessAttributes { verb, path: &info.path, ..AccessAttributes::default() }
        }
    }

    /// The attributes with the selectors of the request, if its verb supports selectors; the deprecated `/watch/` form does
    /// not.
    fn selecting(self, info: &'a RequestInfo) -> AccessAttributes<'a> {
        if info.watch_path || !matches!(info.verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
            return self;
        }
        let selection =
            |name| info.query.get(name).filter(|text| !text.is_empty()).map_or(Selection::All, Selection::Text);
        AccessAttributes { fields: selection("fieldSelector"), labels: selection("labelSelector"), ..self }
    }
}

/// Why a request is not authorized.
#[derive(Debug)]
pub enum Refusal {
    /// Not allowed; `is_final` if an authorizer denied it.
    Forbidden {
        status: Status,
        reason: String,
        is_final: bool,
    },
    Failed(String),
}

pub async fn authorize(authorizer: &Authorizer, user: User, info: RequestInfo) -> Result<Authorized, Refusal> {
    let (verb, name) = verb_and_name(&info);
    let decision = decide(authorizer, &user, &AccessAttributes::of_request(&info, &verb, &name)).await?;
    Ok(Authorized { info, user, decision, _witness: () })
}

fn verb_and_name(info: &RequestInfo) -> (Cow<'static, str>, Text) {
    if info.is_resource {
        (info.verb.as_str().into(), info.authorized_name())
    } else {
        (info.method.as_str().to_ascii_lowercase().into(), Text::default())
    }
}

async fn decide(authorizer: &Authorizer, user: &User, attributes: &AccessAttributes<'_>) -> Result<Decision, Refusal> {
    let decision = authorizer.decide(user, attributes).await;
    if decision.allowed() {
        return Ok(decision);
    }
    if let Some(error) = decision.error() {
        return Err(Refusal::Failed(error));
    }
    let reason = decision.reason();
    Err(Refusal::Forbidden { status: refusal(user, attributes, &reason), reason, is_final: decision.is_denied() })
}

/// Whether a user has a permission for a signer of certificates, or for all signers of its domain.
pub async fn may_use_signer(authorizer: &Authorizer, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
    for name in [signer.to_owned(), format!("{domain}/*")] {
        let attributes = AccessAttributes {
            verb,
            is_resource: true,
            group: "certificates.k8s.io",
            version: "*",
            resource: "signers",
            name: &name,
            ..AccessAttributes::default()
        };
        if authorizer.decide(user, &attributes).await.allowed() {
            return true;
        }
    }
    false
}

/// Returns an error unless the user is allowed.
pub async fn require(
    authorizer: &Authorizer,
    user: &User,
    attributes: &AccessAttributes<'_>,
) -> Result<Decision, Status> {
    let decision = authorizer.decide(user, attributes).await;
    if decision.allowed() { Ok(decision) } else { Err(refusal(user, attributes, &decision.reason())) }
}

/// Escapes a text of a request as HTML, as kube-apiserver does in messages, since a browser may show them.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The 403 with kube-apiserver's message.
fn refusal(user: &User, attributes: &AccessAttributes<'_>, reason: &str) -> Status {
    let (name, verb) = (quote(&user.name), attributes.verb);
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    if !attributes.is_resource {
        let why = escape(&format!("User {name} cannot {verb} path {}", quote(attributes.path)));
        return Status::forbidden("", "", "", &format!("{why}{reason}"));
    }
    let resource = match attributes.subresource {
        "" => attributes.resource.to_owned(),
        sub => format!("{}/{sub}", attributes.resource),
    };
    let place = match attributes.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", quote(namespace)),
    };
    let (resource, group) = (quote(&resource), quote(attributes.group));
    let why = escape(&format!("User {name} cannot {verb} resource {resource} in API group {group} {place}"));
    Status::forbidden(attributes.group, attributes.resource, attributes.name, &format!("{why}{reason}"))
}

/// The right of a server to make requests that no authorizer decides about: its own and those of its controllers. A
/// server gets it once, with its [`Authorizer`], and hands it to the rooms that act for it.
#[derive(Debug)]
pub struct Loopback(());

impl Loopback {
    /// A request to a path, which may have a query, as a user of the system such as a controller.
    pub fn request(&self, user: &str, method: &http::Method, path: &str) -> Authorized {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        Authorized {
            info: RequestInfo::parse(method, path, query),
            user: User::system(user),
            decision: Decision::Master,
            _witness: (),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn judge(info: RequestInfo) -> Result<Authorized, Status> {
        let (authorizer, _) =
            Authorizer::new(Default::default(), modes(vec![AuthorizationMode::Rbac]), machinery::Release::NEWEST);
        authorize(&authorizer, User::anonymous(), info).now_or_never().unwrap().map_err(|refusal| match refusal {
            Refusal::Forbidden { status, .. } => status,
            Refusal::Failed(why) => panic!("{why}"),
        })
    }

    #[test]
    fn refusal_messages_match_upstream() {
        let refuse = |path: &str| {
            let info = RequestInfo::parse(&http::Method::GET, path, "");
            judge(info).unwrap_err().message.clone()
        };
        assert_eq!(
            refuse("/apis/g.io/v1/namespaces/n/foos/x"),
            "foos.g.io \"x\" is forbidden: User \"system:anonymous\" cannot get resource \"foos\" in API group \"g.io\" in the namespace \"n\""
        );
        assert_eq!(
            refuse("/api/v1/namespaces"),
            "namespaces is forbidden: User \"system:anonymous\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope"
        );
        assert_eq!(
            refuse("/apis/g.io/v1//x"),
            ".g.io \"x\" is forbidden: User \"system:anonymous\" cannot get resource \"\" in API group \"g.io\" at the cluster scope"
        );
        assert_eq!(refuse("/a%22b%3Cc%27"), r#"forbidden: User "system:anonymous" cannot get path "/a\"b&lt;c'""#);
        assert_eq!(refuse("/version"), "forbidden: User \"system:anonymous\" cannot get path \"/version\"");
    }
}
