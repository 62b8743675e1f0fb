//! May they (layer 4): RBAC, and whoever else is asked. Invariant: [`Authorized`] is made here and nowhere else, and only it gets to the verbs;
//! bodies are read after that.

mod authorizer;
pub mod defaults;
mod impersonation;
mod index;
mod rules;
mod webhook;

use machinery::Status;

use crate::request::{RequestInfo, User};

pub use authorizer::{Authorizer, Decision, Mode};
pub use impersonation::impersonate;
pub use index::{GROUP, Rbac};
pub use rules::{Rule, missing, quoted};
pub use webhook::{AccessReviewer, Remember};

/// A request that may go on.
#[derive(Debug)]
pub struct Authorized {
    pub info: RequestInfo,
    pub user: User,
    /// Why.
    pub decision: Decision,
    _witness: (),
}

/// What somebody wants to do: a verb on a resource, or on a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    pub verb: &'a str,
    pub is_resource: bool,
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub path: &'a str,
}

/// Paths that everybody may read.
const ALWAYS_READABLE: [&str; 3] = ["/healthz", "/livez", "/readyz"];

impl<'a> Attributes<'a> {
    /// The resource of a request, under another verb.
    pub fn of_resource(info: &'a RequestInfo, verb: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes {
            verb,
            is_resource: true,
            group: &info.group,
            version: &info.version,
            resource: &info.resource,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name,
            path: "",
        }
    }
}

/// Decides about a request.
pub async fn authorize(authorizer: &Authorizer, user: User, info: RequestInfo) -> Result<Authorized, Status> {
    let decision = if info.is_resource {
        let name = info.authorized_name();
        require(authorizer, &user, &Attributes::of_resource(&info, info.verb.as_str(), &name)).await?
    } else {
        let verb = info.method.as_str().to_ascii_lowercase();
        match verb == "get" && ALWAYS_READABLE.contains(&info.path.as_str()) {
            true => Decision::AllowedFor(String::new()),
            false => {
                let asked = Attributes { verb: &verb, path: &info.path, ..Attributes::default() };
                require(authorizer, &user, &asked).await?
            }
        }
    };
    Ok(Authorized { info, user, decision, _witness: () })
}

/// Refuses what a user may not.
pub async fn require(authorizer: &Authorizer, user: &User, asked: &Attributes<'_>) -> Result<Decision, Status> {
    let decision = authorizer.decide(user, asked).await;
    if decision.allowed() { Ok(decision) } else { Err(refusal(user, asked, &decision.reason())) }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#34;").replace('\'', "&#39;")
}

/// The exact 403 (api-machinery 2.4).
fn refusal(user: &User, asked: &Attributes<'_>, reason: &str) -> Status {
    let (name, verb) = (escape(&user.name), escape(asked.verb));
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    if !asked.is_resource {
        let why = format!("User \"{name}\" cannot {verb} path \"{}\"{reason}", escape(asked.path));
        return Status::forbidden("", "", "", &why);
    }
    let resource = match asked.subresource {
        "" => asked.resource.to_owned(),
        sub => format!("{}/{sub}", asked.resource),
    };
    let place = match asked.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{}\"", escape(namespace)),
    };
    let (resource, group) = (escape(&resource), escape(asked.group));
    let why = format!("User \"{name}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}{reason}");
    Status::forbidden(asked.group, asked.resource, asked.name, &why)
}

impl Authorized {
    /// A request of the server itself: controllers go through the same verbs as everybody, under a name.
    pub fn internal(user: &str, method: &http::Method, path: &str) -> Authorized {
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
        let authorizer = Authorizer::new(Default::default(), vec![Mode::Rbac]);
        authorize(&authorizer, User::anonymous(), info).now_or_never().unwrap()
    }

    #[test]
    fn refusals_read_as_upstream() {
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
        assert_eq!(refuse("/version"), "forbidden: User \"system:anonymous\" cannot get path \"/version\"");
    }

    #[test]
    fn health_can_be_read_but_not_written() {
        let may = |method: http::Method| judge(RequestInfo::parse(&method, "/readyz", "")).is_ok();
        assert!(may(http::Method::GET));
        assert!(!may(http::Method::POST));
    }
}
