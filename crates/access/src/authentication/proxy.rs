//! Front proxies, which authenticate users and pass them in request headers. The headers are used only if the client
//! certificate is the proxy's.

use base::request::User;
use http::HeaderMap;
use machinery::Text;

use super::extra_of_headers;

/// The names of the headers, in lower case. If there are several names for a value, the first one that the request has
/// counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeaders {
    pub username: Vec<String>,
    pub uid: Vec<String>,
    pub groups: Vec<String>,
    /// The prefixes of headers with extra attributes.
    pub extra: Vec<String>,
}

impl Default for ProxyHeaders {
    fn default() -> ProxyHeaders {
        let only = |name: &str| vec![name.to_owned()];
        ProxyHeaders {
            username: only("x-remote-user"),
            uid: only("x-remote-uid"),
            groups: only("x-remote-group"),
            extra: only("x-remote-extra-"),
        }
    }
}

impl ProxyHeaders {
    /// The user that the headers name, if there is one.
    pub fn user(&self, headers: &HeaderMap) -> Option<User> {
        let text = |value: &http::HeaderValue| Text::from(String::from_utf8_lossy(value.as_bytes()).trim());
        let first = |names: &[String]| {
            let values = names.iter().filter_map(|name| headers.get(name.as_str())).map(text);
            values.into_iter().find(|value| !value.is_empty())
        };
        let name = first(&self.username)?;
        let groups = self.groups.iter().flat_map(|name| headers.get_all(name.as_str())).map(text);
        let key_of = |name| self.extra.iter().find_map(|prefix| str::strip_prefix(name, prefix.as_str()));
        let extra = extra_of_headers(headers, key_of, text);
        let groups = groups.filter(|group| !group.is_empty()).collect();
        Some(User { name, uid: first(&self.uid).unwrap_or_default(), groups, extra }.authenticated())
    }

    /// Removes the headers that name a user.
    pub fn forget(&self, headers: &mut HeaderMap) {
        let named =
            |name: &str| [&self.username, &self.uid, &self.groups].iter().any(|names| names.iter().any(|n| n == name));
        let extra = |name: &str| self.extra.iter().any(|prefix| name.starts_with(prefix.as_str()));
        let names: Vec<_> =
            headers.keys().filter(|name| named(name.as_str()) || extra(name.as_str())).cloned().collect();
        names.iter().for_each(|name| drop(headers.remove(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_headers_name_the_user() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", "ann"),
            ("x-remote-group", "a"),
            ("x-remote-group", "b"),
            ("x-remote-extra-Scopes", "s1"),
            ("x-remote-extra-acme.io%2fp", "v"),
        ] {
            let name = http::HeaderName::try_from(name).unwrap();
            headers.append(name, http::HeaderValue::from_static(value));
        }
        let user = ProxyHeaders::default().user(&headers).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", ""));
        assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
        let extra: Vec<_> = user.extra.iter().map(|(key, values)| (key.as_str(), values[0].as_str())).collect();
        assert_eq!(extra, [("scopes", "s1"), ("acme.io/p", "v")]);
        headers.remove("x-remote-user");
        assert_eq!(ProxyHeaders::default().user(&headers), None);
    }
}
