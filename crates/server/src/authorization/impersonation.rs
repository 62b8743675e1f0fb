//! Impersonation: the headers by which somebody acts as somebody else (api-machinery 22).

use http::HeaderMap;
use machinery::{Status, Text, names};

use super::{Attributes, Authorizer, require};
use crate::request::User;
use crate::request::percent_decode;

const AUTHENTICATION: &str = "authentication.k8s.io";
const ACCOUNT: &str = "system:serviceaccount:";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const EXTRA: &str = "impersonate-extra-";

/// Who is to be acted as.
#[derive(Debug, Default)]
struct Wanted {
    user: Text,
    uid: Text,
    groups: Vec<Text>,
    extra: Vec<(Text, Vec<Text>)>,
}

/// The user that a request acts as: the real one, or the one of the headers if the real one may.
pub async fn impersonate(authorizer: &Authorizer, user: User, headers: &HeaderMap) -> Result<User, Status> {
    let Some(wanted) = wanted(headers) else { return Ok(user) };
    if wanted.user.is_empty() {
        if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
            return Ok(user);
        }
        let message = format!("requested [{}] without impersonating a user", wanted.shown().join(" "));
        return Err(Status::bad_request(message));
    }
    Box::pin(wanted.check(authorizer, &user)).await?;
    Ok(wanted.into_user())
}

/// What the headers ask for; `None` where none of them is there.
fn wanted(headers: &HeaderMap) -> Option<Wanted> {
    let text = |value: &http::HeaderValue| Text::from(String::from_utf8_lossy(value.as_bytes()).as_ref());
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return None;
    }
    let mut extra: Vec<(Text, Vec<Text>)> = vec![];
    for (name, value) in headers {
        let Some(key) = name.as_str().strip_prefix(EXTRA) else { continue };
        let key = Text::from(percent_decode(key).unwrap_or_else(|| key.to_owned()));
        match extra.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(text(value)),
            None => extra.push((key, vec![text(value)])),
        }
    }
    Some(Wanted {
        user: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        extra,
    })
}

/// Namespace and name of a service account's user name.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT)?.split_once(':')?;
    let valid = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}

impl Wanted {
    /// Everything but the user as object references, as Go prints them.
    fn shown(&self) -> Vec<String> {
        let groups = self.groups.iter().map(|group| format!("{{Group  {group}    }}"));
        let extra = self.extra.iter().flat_map(|(key, values)| {
            values.iter().map(move |value| format!("{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}"))
        });
        let uid = Some(&self.uid).filter(|uid| !uid.is_empty());
        let uid = uid.map(|uid| format!("{{UID  {uid}  {AUTHENTICATION}/v1  }}"));
        groups.chain(extra).chain(uid).collect()
    }

    /// Each part needs a permission of its own.
    async fn check(&self, authorizer: &Authorizer, user: &User) -> Result<(), Status> {
        let base = Attributes { verb: "impersonate", is_resource: true, ..Attributes::default() };
        let ask = async |asked: Attributes<'_>| require(authorizer, user, &asked).await.map(drop);
        match account(&self.user) {
            Some((namespace, name)) => ask(Attributes { resource: "serviceaccounts", namespace, name, ..base }).await?,
            None => ask(Attributes { resource: "users", name: &self.user, ..base }).await?,
        }
        for group in &self.groups {
            ask(Attributes { resource: "groups", name: group, ..base }).await?;
        }
        let base = Attributes { group: AUTHENTICATION, ..base };
        for (key, values) in &self.extra {
            for value in values {
                ask(Attributes { resource: "userextras", subresource: key, name: value, ..base }).await?;
            }
        }
        match self.uid.is_empty() {
            true => Ok(()),
            false => ask(Attributes { resource: "uids", name: &self.uid, ..base }).await,
        }
    }

    fn into_user(self) -> User {
        let mut groups = self.groups;
        if let Some((namespace, _)) = account(&self.user)
            && groups.is_empty()
        {
            groups.push("system:serviceaccounts".into());
            groups.push(format!("system:serviceaccounts:{namespace}").into());
        }
        let user = User { name: self.user, uid: self.uid, groups, extra: self.extra };
        match (user.name == "system:anonymous", user.in_group(UNAUTHENTICATED)) {
            (_, true) => user,
            (true, false) => {
                let mut user = user;
                user.groups.push(UNAUTHENTICATED.into());
                user
            }
            (false, false) => user.authenticated(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn act(headers: &[(&'static str, &'static str)]) -> Result<User, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, http::HeaderValue::from_static(value));
        }
        let authorizer = Authorizer::new(Default::default(), vec![]);
        let found = impersonate(&authorizer, User::system("admin"), &map).now_or_never().unwrap();
        found.map_err(|status| status.message.clone())
    }

    #[test]
    fn groups_follow_from_the_user() {
        type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);
        let cases: [Case; 6] = [
            (&[("impersonate-user", "u")], &["system:authenticated"]),
            (&[("impersonate-user", "u"), ("impersonate-group", "g")], &["g", "system:authenticated"]),
            (&[("impersonate-user", "system:anonymous")], &["system:unauthenticated"]),
            (
                &[("impersonate-user", "u"), ("impersonate-group", "system:unauthenticated")],
                &["system:unauthenticated"],
            ),
            (
                &[("impersonate-user", "system:serviceaccount:n:a")],
                &["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"],
            ),
            (&[("impersonate-user", "system:serviceaccount:n:A_")], &["system:authenticated"]),
        ];
        for (headers, groups) in cases {
            assert_eq!(act(headers).unwrap().groups, groups, "{headers:?}");
        }
        assert_eq!(act(&[]).unwrap().name, "admin");
    }

    #[test]
    fn a_user_is_needed() {
        let message = act(&[("impersonate-uid", "1"), ("impersonate-extra-k", "v")]).unwrap_err();
        let parts = "{UserExtra  v  authentication.k8s.io/v1  k} {UID  1  authentication.k8s.io/v1  }";
        assert_eq!(message, format!("requested [{parts}] without impersonating a user"));
    }
}
