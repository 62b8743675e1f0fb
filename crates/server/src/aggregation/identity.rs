//! Headers of requests to aggregated API servers: the user, and the original request.

use access::authentication::websocket::TOKEN_PROTOCOL;
use base::request::User;
use http::header::{
    AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{Request, Uri};

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA: &str = "x-remote-extra-";

/// Hop-by-hop headers, which are not forwarded (RFC 9110, 7.6.1).
const HOP_BY_HOP: [&str; 8] = [
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
    "transfer-encoding", "upgrade",
];

/// Sets the user headers. Removes earlier ones, the request's credentials, and the headers of its connection, which
/// could otherwise name user headers for removal. Fails with Go's error if a value cannot be a header: leaving it
/// out would change the user.
pub fn introduce(user: &User, headers: &mut HeaderMap) -> Result<(), String> {
    if let Some(protocol) = remove_hop_by_hop(headers) {
        set_upgrade(headers, protocol);
    }
    remove_claims(headers);
    let mut add = |name: &HeaderName, text: &str| {
        let value = HeaderValue::from_bytes(text.as_bytes());
        let value = value.map_err(|_| format!("net/http: invalid header field value for \"{name}\""))?;
        headers.append(name.clone(), value);
        Ok::<_, String>(())
    };
    add(&USER, &user.name)?;
    if !user.uid.is_empty() {
        add(&UID, &user.uid)?;
    }
    user.groups.iter().try_for_each(|group| add(&GROUP, group))?;
    for (key, values) in &user.extra {
        let name = format!("{EXTRA}{}", escaped(key));
        let name =
            HeaderName::try_from(&name).map_err(|_| format!("net/http: invalid header field name \"{name}\""))?;
        values.iter().try_for_each(|value| add(&name, value))?;
    }
    Ok(())
}

/// Removes the headers with which a client says who it is, or who it wants to be.
fn remove_claims(headers: &mut HeaderMap) {
    let is_user_header = |name: &HeaderName| {
        [USER, UID, GROUP].contains(name)
            || name.as_str().starts_with(EXTRA)
            || name.as_str().starts_with("impersonate-")
    };
    let given: Vec<HeaderName> = headers.keys().filter(|name| is_user_header(name)).cloned().collect();
    given.iter().for_each(|name| drop(headers.remove(name)));
    headers.remove(AUTHORIZATION);
    remove_token_protocol(headers);
}

/// Removes the WebSocket subprotocol that carries a bearer token.
fn remove_token_protocol(headers: &mut HeaderMap) {
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|line| line.to_str().ok());
    let offered = offered.flat_map(|line| line.split(',')).map(str::trim);
    let kept: Vec<&str> = offered.filter(|name| !name.is_empty() && !name.starts_with(TOKEN_PROTOCOL)).collect();
    match HeaderValue::from_str(&kept.join(", ")) {
        Ok(value) if !kept.is_empty() => drop(headers.insert(SEC_WEBSOCKET_PROTOCOL, value)),
        _ => drop(headers.remove(SEC_WEBSOCKET_PROTOCOL)),
    }
}

/// Protocols to which connections may be upgraded. HTTP/2 must not be one of them: its requests would reach the server with
/// the proxy's certificate and with user headers that the client has chosen.
const UPGRADE_PROTOCOLS: [&str; 2] = ["websocket", "spdy/3.1"];

/// The protocol to which a request or a response upgrades its connection (RFC 9110, 7.8), if it is one of
/// [`UPGRADE_PROTOCOLS`].
pub fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let lines = headers.get_all(CONNECTION).iter().filter_map(|line| line.to_str().ok());
    let upgrades = lines.flat_map(|line| line.split(',')).any(|name| name.trim().eq_ignore_ascii_case("upgrade"));
    let protocol = headers.get(UPGRADE).filter(|_| upgrades)?;
    let known = |name: &str| protocol.as_bytes().eq_ignore_ascii_case(name.as_bytes());
    UPGRADE_PROTOCOLS.iter().any(|name| known(name)).then(|| protocol.clone())
}

/// The key of an extra field as part of a header name; other characters are percent-encoded.
fn escaped(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    key.bytes().map(escape).collect()
}

/// Removes the headers of a connection, including those that `Connection` names. Returns the protocol to which they
/// upgrade the connection, if they do.
pub fn remove_hop_by_hop(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let upgrade = upgrade_of(headers);
    let lines = headers.get_all(CONNECTION).iter().filter_map(|line| line.to_str().ok());
    let named: Vec<String> =
        lines.flat_map(|line| line.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect();
    for name in HOP_BY_HOP.iter().copied().chain(named.iter().map(String::as_str)) {
        headers.remove(name);
    }
    upgrade
}

pub fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// Sets the URL of a request to a server, and the headers about the original request.
pub fn forward<B>(request: &mut Request<B>, host: &str) {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let path = request.uri().path().to_owned();
    if let Ok(target) = Uri::try_from(target) {
        *request.uri_mut() = target;
    }
    *request.version_mut() = http::Version::HTTP_11;
    let original = [
        (HOST, host),
        (HeaderName::from_static("x-forwarded-host"), host),
        (HeaderName::from_static("x-forwarded-proto"), "https"),
        (HeaderName::from_static("x-forwarded-uri"), path.as_str()),
    ];
    for (name, text) in original {
        if let Ok(value) = HeaderValue::from_str(text) {
            request.headers_mut().insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_proxy_sets_identity_headers() {
        let mut request = Request::get("https://here:6443/apis/a.b/v1/things?x=1").body(()).unwrap();
        let before = [
            ("authorization", "Bearer secret"),
            ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.c2VjcmV0"),
            ("x-remote-user", "evil"),
            ("x-remote-extra-scopes", "all"),
            ("x-remote-group", "system:masters"),
            ("impersonate-user", "evil"),
            ("connection", "X-Mine, close, X-Remote-User, X-Remote-Group"),
            ("x-mine", "1"),
            ("upgrade", "spdy/3.1"),
            ("accept", "*/*"),
        ];
        for (name, text) in before {
            request.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_static(text));
        }
        let user = User {
            name: "bob".into(),
            groups: vec!["g".into(), "h".into()],
            extra: vec![("a.b/C%".into(), vec!["1".into(), "2".into()])],
            ..User::default()
        };
        introduce(&user, request.headers_mut()).unwrap();
        forward(&mut request, "s:443");
        assert_eq!(request.uri(), "/apis/a.b/v1/things?x=1");
        let mut sent: Vec<String> =
            request.headers().iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        sent.sort();
        let want = [
            "accept: */*",
            "host: s:443",
            "x-forwarded-host: s:443",
            "x-forwarded-proto: https",
            "x-forwarded-uri: /apis/a.b/v1/things",
            "x-remote-extra-a.b%2fc%25: 1",
            "x-remote-extra-a.b%2fc%25: 2",
            "x-remote-group: g",
            "x-remote-group: h",
            "x-remote-user: bob",
        ];
        assert_eq!(sent, want);
        assert_eq!(upgrade_of(request.headers()), None);
        let upgrades = [("connection", "x, Upgrade"), ("upgrade", "WebSocket")];
        upgrades
            .iter()
            .for_each(|(name, text)| drop(request.headers_mut().insert(*name, HeaderValue::from_static(text))));
        let protocols = HeaderValue::from_static("base64url.bearer.authorization.k8s.io.c2U, v5.channel.k8s.io");
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, protocols);
        introduce(&user, request.headers_mut()).unwrap();
        forward(&mut request, "s:443");
        let sent = |name: HeaderName| request.headers()[name].to_str().unwrap();
        assert_eq!((sent(CONNECTION), sent(UPGRADE)), ("Upgrade", "WebSocket"));
        assert_eq!(sent(SEC_WEBSOCKET_PROTOCOL), "v5.channel.k8s.io");
        request.headers_mut().insert(UPGRADE, HeaderValue::from_static("h2c"));
        assert_eq!(upgrade_of(request.headers()), None);
        let unspeakable = User { name: "bob\nX-Remote-Group: system:masters".into(), ..User::default() };
        let why = introduce(&unspeakable, request.headers_mut()).unwrap_err();
        assert_eq!(why, "net/http: invalid header field value for \"x-remote-user\"");
    }
}
