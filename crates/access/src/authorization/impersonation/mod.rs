//! Impersonation by request headers.

mod modes;

use base::request::{RequestInfo, User};
use http::HeaderMap;
use machinery::value::quote;
use machinery::{Status, Text, names};

use super::{AccessAttributes, Authorizer, require};
use crate::authentication::extra_of_headers;
use modes::Modes;

const AUTHENTICATION: &str = "authentication.k8s.io";
const ACCOUNT: &str = "system:serviceaccount:";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const EXTRA: &str = "impersonate-extra-";

/// Impersonation: authorized by the verb `impersonate` or, with the feature gate ConstrainedImpersonation, by modes
/// (KEP-5284).
pub struct Impersonation {
    modes: Option<Modes>,
}

/// The impersonated user of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Impersonated {
    pub user: User,
    /// The verb of the mode that allowed it; empty for `impersonate`.
    pub constraint: &'static str,
}

impl Impersonation {
    /// `constrained` is the feature gate ConstrainedImpersonation.
    pub fn new(constrained: bool) -> Impersonation {
        Impersonation { modes: constrained.then(Modes::default) }
    }

    /// The impersonated user of a request.
    pub async fn impersonate(
        &self,
        authorizer: &Authorizer,
        user: &User,
        info: &RequestInfo,
        headers: &HeaderMap,
    ) -> Result<Option<Impersonated>, Status> {
        let Some(target) = requested(headers) else { return Ok(None) };
        if target.user.is_empty() {
            if target.is_name_alone() {
                return Ok(None);
            }
            let message = match self.modes {
                Some(_) => format!("requested {} without impersonating a user name", target.go_syntax()),
                None => format!("requested [{}] without impersonating a user", target.object_references().join(" ")),
            };
            return Err(Status::bad_request(message));
        }
        match &self.modes {
            Some(modes) => Box::pin(modes.impersonate(authorizer, user, info, &target)).await.map(Some),
            None => {
                Box::pin(target.check(authorizer, user)).await?;
                Ok(Some(Impersonated { user: target.into_user(), constraint: "" }))
            }
        }
    }
}

/// The user that the request asks to impersonate.
#[derive(Clone, Debug, Default)]
struct ImpersonationTarget {
    user: Text,
    uid: Text,
    groups: Vec<Text>,
    extra: Vec<(Text, Vec<Text>)>,
}

/// The impersonation that the headers request; `None` without such headers.
fn requested(headers: &HeaderMap) -> Option<ImpersonationTarget> {
    let text = |value: &http::HeaderValue| Text::from(String::from_utf8_lossy(value.as_bytes()).as_ref());
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return None;
    }
    Some(ImpersonationTarget {
        user: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        extra: extra_of_headers(headers, |name| name.strip_prefix(EXTRA), text),
    })
}

/// Namespace and name of a service account's user name.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT)?.split_once(':')?;
    let valid = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}

impl ImpersonationTarget {
    /// Whether only a user name is requested.
    fn is_name_alone(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }

    /// All parts but the user name as object references, as Go prints them.
    fn object_references(&self) -> Vec<String> {
        let groups = self.groups.iter().map(|group| format!("{{Group  {group}    }}"));
        let extra = self.extra.iter().flat_map(|(key, values)| {
            values.iter().map(move |value| format!("{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}"))
        });
        let uid = Some(&self.uid).filter(|uid| !uid.is_empty());
        let uid = uid.map(|uid| format!("{{UID  {uid}  {AUTHENTICATION}/v1  }}"));
        groups.chain(extra).chain(uid).collect()
    }

    /// The target as Go's `%#v` prints a user.
    fn go_syntax(&self) -> String {
        let list = |texts: &[Text]| {
            let texts: Vec<String> = texts.iter().map(|text| quote(text)).collect();
            format!("[]string{{{}}}", texts.join(", "))
        };
        let groups = if self.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&self.groups) };
        let mut extra: Vec<_> = self.extra.iter().collect();
        extra.sort();
        let extra: Vec<String> =
            extra.into_iter().map(|(key, values)| format!("{}:{}", quote(key), list(values))).collect();
        let extra = if extra.is_empty() { "(nil)".to_owned() } else { format!("{{{}}}", extra.join(", ")) };
        let (name, uid) = (quote(&self.user), quote(&self.uid));
        format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:map[string][]string{extra}}}")
    }

    /// The user as a resource: `users`, or `serviceaccounts` for a ServiceAccount.
    fn user_part<'a>(&'a self, base: AccessAttributes<'a>) -> AccessAttributes<'a> {
        match account(&self.user) {
            Some((namespace, name)) => AccessAttributes { resource: "serviceaccounts", namespace, name, ..base },
            None => AccessAttributes { resource: "users", name: &self.user, ..base },
        }
    }

    fn group_parts<'a>(&'a self, base: AccessAttributes<'a>) -> impl Iterator<Item = AccessAttributes<'a>> {
        self.groups.iter().map(move |group| AccessAttributes { resource: "groups", name: group, ..base })
    }

    fn extra_parts<'a>(&'a self, base: AccessAttributes<'a>) -> impl Iterator<Item = AccessAttributes<'a>> {
        let base = AccessAttributes { group: AUTHENTICATION, version: "v1", resource: "userextras", ..base };
        let pairs = self.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        pairs.map(move |(key, value)| AccessAttributes { subresource: key, name: value, ..base })
    }

    fn uid_part<'a>(&'a self, base: AccessAttributes<'a>) -> Option<AccessAttributes<'a>> {
        let uid = AccessAttributes { group: AUTHENTICATION, version: "v1", resource: "uids", name: &self.uid, ..base };
        (!self.uid.is_empty()).then_some(uid)
    }

    /// Checks the permission for each part.
    async fn check(&self, authorizer: &Authorizer, user: &User) -> Result<(), Status> {
        let base = AccessAttributes { verb: "impersonate", is_resource: true, ..AccessAttributes::default() };
        let parts = std::iter::once(self.user_part(base)).chain(self.group_parts(base));
        for attributes in parts.chain(self.extra_parts(base)).chain(self.uid_part(base)) {
            require(authorizer, user, &attributes).await?;
        }
        Ok(())
    }

    fn into_user(self) -> User {
        let mut groups = self.groups;
        if let Some((namespace, _)) = account(&self.user)
            && groups.is_empty()
        {
            groups.push("system:serviceaccounts".into());
            groups.push(format!("system:serviceaccounts:{namespace}").into());
        }
        let mut user = User { name: self.user, uid: self.uid, groups, extra: self.extra };
        if user.in_group(UNAUTHENTICATED) {
            return user;
        }
        if user.name == "system:anonymous" {
            user.groups.push(UNAUTHENTICATED.into());
            return user;
        }
        user.authenticated()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn impersonate(headers: &[(&'static str, &'static str)]) -> Result<Option<User>, String> {
        act_with(false, headers)
    }

    fn act_with(constrained: bool, headers: &[(&'static str, &'static str)]) -> Result<Option<User>, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, http::HeaderValue::from_static(value));
        }
        let (authorizer, _) = Authorizer::new(Default::default(), Default::default(), machinery::Release::NEWEST);
        let (impersonation, user) = (Impersonation::new(constrained), User::system("admin"));
        let info = RequestInfo::parse(&http::Method::GET, "/version", "");
        let found = impersonation.impersonate(&authorizer, &user, &info, &map).now_or_never().unwrap();
        found.map(|acting| acting.map(|acting| acting.user)).map_err(|status| status.message.clone())
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
            assert_eq!(impersonate(headers).unwrap().unwrap().groups, groups, "{headers:?}");
        }
        assert_eq!(impersonate(&[]), Ok(None));
        assert_eq!(impersonate(&[("impersonate-user", "")]), Ok(None));
    }

    #[test]
    fn impersonation_requires_user() {
        let message = impersonate(&[("impersonate-uid", "1"), ("impersonate-extra-k", "v")]).unwrap_err();
        let parts = "{UserExtra  v  authentication.k8s.io/v1  k} {UID  1  authentication.k8s.io/v1  }";
        assert_eq!(message, format!("requested [{parts}] without impersonating a user"));
    }

    #[test]
    fn impersonation_modes_are_audited_as_user() {
        type Case = (&'static [(&'static str, &'static str)], &'static str);
        let cases: [Case; 3] = [
            (&[("impersonate-uid", "1")], r#"UID:"1", Groups:[]string(nil), Extra:map[string][]string(nil)"#),
            (
                &[("impersonate-group", "g\"x"), ("impersonate-group", "h")],
                r#"UID:"", Groups:[]string{"g\"x", "h"}, Extra:map[string][]string(nil)"#,
            ),
            (
                &[("impersonate-extra-k", "v"), ("impersonate-extra-a", "b"), ("impersonate-extra-a", "c")],
                r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"b", "c"}, "k":[]string{"v"}}"#,
            ),
        ];
        for (headers, shown) in cases {
            let message = act_with(true, headers).unwrap_err();
            let wanted = format!("requested &user.DefaultInfo{{Name:\"\", {shown}}} without impersonating a user name");
            assert_eq!(message, wanted);
        }
    }
}
