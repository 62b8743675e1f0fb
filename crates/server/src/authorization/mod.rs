//! May they (layer 4). Invariant: [`Authorized`] is made here and nowhere else, and only it gets to the verbs; bodies
//! are read after that.

use machinery::Status;

use crate::request::{RequestInfo, User};

/// A request that may go on.
#[derive(Debug)]
pub struct Authorized {
    pub info: RequestInfo,
    pub user: User,
    _witness: (),
}

/// Paths that need no permission.
const ALWAYS_ALLOWED: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Decides. Members of `system:masters` may all; everybody else is refused until RBAC stands.
pub fn authorize(user: User, info: RequestInfo) -> Result<Authorized, Status> {
    if user.in_group(User::MASTERS) || ALWAYS_ALLOWED.contains(&info.path.as_str()) {
        return Ok(Authorized { info, user, _witness: () });
    }
    Err(refusal(&user, &info))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#34;").replace('\'', "&#39;")
}

/// The exact 403 (api-machinery 2.4).
fn refusal(user: &User, info: &RequestInfo) -> Status {
    let name = escape(&user.name);
    if !info.is_resource {
        let verb = info.method.as_str().to_ascii_lowercase();
        let why = format!("User \"{name}\" cannot {verb} path \"{}\"", escape(&info.path));
        return Status::forbidden("", "", "", &why);
    }
    let resource = match info.subresource.as_str() {
        "" => info.resource.to_string(),
        sub => format!("{}/{sub}", info.resource),
    };
    let place = match info.namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{}\"", escape(namespace)),
    };
    let why = format!(
        "User \"{name}\" cannot {} resource \"{}\" in API group \"{}\" {place}",
        info.verb.as_str(),
        escape(&resource),
        escape(&info.group)
    );
    Status::forbidden(&info.group, &info.resource, &info.authorized_name(), &why)
}

impl Authorized {
    /// A request of the server itself: controllers go through the same verbs as everybody, under a name.
    pub fn internal(user: &str, method: &http::Method, path: &str) -> Authorized {
        Authorized { info: RequestInfo::parse(method, path, ""), user: User::system(user), _witness: () }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_read_as_upstream() {
        let refuse = |path: &str| {
            let info = RequestInfo::parse(&http::Method::GET, path, "");
            authorize(User::anonymous(), info).unwrap_err().message.clone()
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
}
