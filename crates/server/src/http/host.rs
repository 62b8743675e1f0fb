//! The `Host` header, which Go's server checks before it handles a request, and the host names of workspaces.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, Version};

use super::body::Body;
use super::respond::response;

/// Why an HTTP/1 request is refused; an empty text where Go's server refuses it without a reason.
fn fault(version: Version, method: &Method, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version == Version::HTTP_11 && *method != Method::CONNECT => Some("missing required Host header"),
        (None, _) => None,
        (Some(_), Some(_)) => Some(""),
        (Some(host), None) => (!host.as_bytes().iter().all(is_host_byte)).then_some("malformed Host header"),
    }
}

/// Go's server checks only the bytes of a host, not its form.
fn is_host_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=[]_~".contains(byte)
}

/// The response to an HTTP/1 request whose `Host` header is invalid, repeated, or missing where it is required. It ends
/// the connection.
pub fn refusal(version: Version, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    if version > Version::HTTP_11 {
        return None;
    }
    let fault = fault(version, method, headers)?;
    let text = if fault.is_empty() { "400 Bad Request".to_owned() } else { format!("400 Bad Request: {fault}") };
    let mut response = response(StatusCode::BAD_REQUEST, Body::Full(Bytes::from(text)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}

/// The name before `domain` in the host of a request, which may have a port, and the dot of a complete name.
fn label(host: &str, domain: &str) -> Option<String> {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
    let (label, rest) = host.strip_suffix('.').unwrap_or(host).split_once('.')?;
    (!label.is_empty() && rest.eq_ignore_ascii_case(domain)).then(|| label.to_ascii_lowercase())
}

/// The name of the workspace that a request is for by its host or, if that has another domain, by the name in its TLS handshake. A
/// client may send requests for several hosts over one connection.
pub fn workspace(uri: &Uri, headers: &HeaderMap, tls_name: Option<&str>, domain: &str) -> Option<String> {
    let header = || headers.get(HOST).and_then(|host| host.to_str().ok());
    let of_request = uri.host().or_else(header).and_then(|host| label(host, domain));
    of_request.or_else(|| label(tls_name?, domain))
}

/// Puts a path below a prefix, unless it is there already.
pub fn put_below(uri: &mut Uri, prefix: &str) {
    let path = uri.path();
    let is_below = path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']));
    if !is_below {
        set_path(uri, &format!("{prefix}{path}"));
    }
}

/// Replaces the path, and keeps the query.
pub fn set_path(uri: &mut Uri, path: &str) {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(changed) = format!("{path}{query}").parse() {
        *uri = changed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_name_workspaces() {
        let cases = [
            ("a.w.example:6443", None, Some("a")),
            ("A.W.example", None, Some("a")),
            ("a.w.example.:6443", None, Some("a")),
            ("a.w.example", Some("b.w.example"), Some("a")),
            ("127.0.0.1:6443", Some("b.w.example"), Some("b")),
            ("127.0.0.1:6443", None, None),
            ("w.example", Some("localhost"), None),
            (".w.example", None, None),
            ("a.b.w.example", None, None),
            ("a.w.example.com", None, None),
        ];
        for (host, tls_name, expected) in cases {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            let found = workspace(&Uri::from_static("/api"), &headers, tls_name, "w.example");
            assert_eq!(found.as_deref(), expected, "{host} {tls_name:?}");
        }
        let absolute = Uri::from_static("https://a.w.example/api");
        assert_eq!(workspace(&absolute, &HeaderMap::new(), None, "w.example").as_deref(), Some("a"));
    }

    #[test]
    fn paths_are_put_below_a_workspace_once() {
        for (path, expected) in [
            ("/", "/clusters/a/"),
            ("/api?x=/y", "/clusters/a/api?x=/y"),
            ("/clusters/a", "/clusters/a"),
            ("/clusters/a/api?x", "/clusters/a/api?x"),
            ("/clusters/a.1-2/api", "/clusters/a.1-2/api"),
            ("/clusters/ab/api", "/clusters/a/clusters/ab/api"),
        ] {
            let mut uri = path.parse().unwrap();
            put_below(&mut uri, "/clusters/a");
            assert_eq!(uri, expected);
        }
    }

    #[test]
    fn requests_need_one_host() {
        let cases: [(Version, &[&'static str], Option<&str>); 9] = [
            (Version::HTTP_11, &[], Some("missing required Host header")),
            (Version::HTTP_10, &[], None),
            (Version::HTTP_2, &[], None),
            (Version::HTTP_11, &["a", "a"], Some("")),
            (Version::HTTP_10, &["a", "b"], Some("")),
            (Version::HTTP_11, &["a/b"], Some("malformed Host header")),
            (Version::HTTP_11, &["a b"], Some("malformed Host header")),
            (Version::HTTP_11, &[""], None),
            (Version::HTTP_11, &["[::1]:443"], None),
        ];
        for (version, hosts, expected) in cases {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_static(host));
            }
            assert_eq!(fault(version, &Method::GET, &headers), expected, "{version:?} {hosts:?}");
        }
        assert_eq!(fault(Version::HTTP_11, &Method::CONNECT, &HeaderMap::new()), None);
    }
}
