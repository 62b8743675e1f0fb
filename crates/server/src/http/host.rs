//! The `Host` header, which Go's server checks before it handles a request.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version};

use super::body::Body;

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
    let mut response = Response::new(Body::Full(Bytes::from(text)));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

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
