//! Requests that a user may not send.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};

use access::authentication::ClientCertificate;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;
use crate::http::Client;

/// A verb, and the method, the name and the query that request it.
const VERBS: [(&str, Method, &str, &str); 8] = [
    ("get", Method::GET, "/x", ""),
    ("list", Method::GET, "", ""),
    ("watch", Method::GET, "", "?watch=1"),
    ("create", Method::POST, "", ""),
    ("update", Method::PUT, "/x", ""),
    ("patch", Method::PATCH, "/x", ""),
    ("delete", Method::DELETE, "/x", ""),
    ("deletecollection", Method::DELETE, "", ""),
];
const COLLECTIONS: [(&str, &str, &str); 2] = [
    ("", "configmaps", "/api/v1/namespaces/default/configmaps"),
    ("rbac.authorization.k8s.io", "roles", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"),
];

/// The code and the message of the response to a request, whose body must not be read.
async fn refused(
    server: &TestServer,
    client: &Arc<Client>,
    method: &Method,
    path: &str,
    (header, value): (&'static str, &str),
) -> (u16, String) {
    let is_read = Arc::new(AtomicBool::default());
    let reading = is_read.clone();
    let mut request = request(method.clone(), path, &json!({})).map(|body| {
        body.made(usize::MAX, move |_| {
            reading.store(true, Ordering::Relaxed);
            Ok(Bytes::new())
        })
    });
    request.headers_mut().insert(header, value.parse().unwrap());
    let (code, body) = read(server.send(client.clone(), request).await).await;
    assert!(!is_read.load(Ordering::Relaxed), "{method} {path}");
    (code, body.str_at(&["message"]).to_owned())
}

/// The Authorization header of a token of an account.
async fn bearer(server: &TestServer, name: &str, spec: Value) -> String {
    let path = format!("/api/v1/namespaces/default/serviceaccounts/{name}/token");
    let review = server.ok(Method::POST, &path, json!({"spec": spec})).await;
    format!("Bearer {}", review.str_at(&["status", "token"]))
}

/// The token with another field in its header (part 0) or claims (part 1), and the same signature.
fn altered(token: &str, part: usize, field: &str, value: &str) -> String {
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let encoded = parts[part].trim_start_matches("Bearer ").to_owned();
    let mut content = machinery::value::decode(&URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap();
    content.set_at(&[field], Value::from(value));
    let scheme = if part == 0 { "Bearer " } else { "" };
    parts[part] = format!("{scheme}{}", URL_SAFE_NO_PAD.encode(content.to_json()));
    parts.join(".")
}

/// Headers with tokens that no server accepts, or not this one.
async fn invalid_tokens(server: &TestServer) -> Vec<String> {
    const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
    let other = self::server(&[]).await;
    for (server, name) in [(server, "sam"), (server, "gone"), (&other, "sam")] {
        server.ok(Method::POST, ACCOUNTS, json!({"metadata": {"name": name}})).await;
    }
    let (own, deleted) = (bearer(server, "sam", json!({})).await, bearer(server, "gone", json!({})).await);
    server.ok(Method::DELETE, &format!("{ACCOUNTS}/gone"), Value::Null).await;
    let unsigned = altered(&own, 0, "alg", "none");
    vec![
        "Bearer nobody".to_owned(),
        bearer(&other, "sam", json!({})).await,
        own[..own.len() - 8].to_owned(),
        deleted,
        format!("{}.", unsigned.rsplit_once('.').unwrap().0),
        altered(&own, 0, "alg", "HS256"),
        bearer(server, "sam", json!({"audiences": ["others"]})).await,
        altered(&own, 1, "sub", "system:serviceaccount:kube-system:admin"),
    ]
}

#[tokio::test]
async fn requests_are_rejected_before_their_body_is_read() {
    const NO_HEADER: (&str, &str) = ("x-none", "");
    let server = server(&[]).await;
    let invalid = invalid_tokens(&server).await;
    let own = bearer(&server, "sam", json!({})).await;
    let with = |certificate| Arc::new(Client { certificate, address: IpAddr::V4(Ipv4Addr::LOCALHOST) });
    let (anonymous, plain) = (with(ClientCertificate::None), plain().client());
    let users = [
        ("system:anonymous", &anonymous, NO_HEADER),
        ("plain", &plain, NO_HEADER),
        ("system:serviceaccount:default:sam", &anonymous, ("authorization", own.as_str())),
    ];
    for (verb, method, name, query) in VERBS {
        for (group, resource, collection) in COLLECTIONS {
            let path = format!("{collection}{name}{query}");
            let of_group = if group.is_empty() { String::new() } else { format!(".{group}") };
            let object = if name.is_empty() { "" } else { " \"x\"" };
            let wanted = |user: &str, verb: &str| {
                let attributes = format!(r#"resource "{resource}" in API group "{group}" in the namespace "default""#);
                (403, format!(r#"{resource}{of_group}{object} is forbidden: User "{user}" cannot {verb} {attributes}"#))
            };
            for (user, client, header) in users {
                assert_eq!(refused(&server, client, &method, &path, header).await, wanted(user, verb));
            }
            let found = refused(&server, &plain, &method, &path, ("impersonate-user", "tester")).await;
            assert_eq!(found, wanted("plain", &format!("impersonate-on:user-info:{verb}")));
            for token in &invalid {
                let found = refused(&server, &anonymous, &method, &path, ("authorization", token)).await;
                assert_eq!(found, (401, "Unauthorized".to_owned()), "{verb} {token}");
            }
        }
    }
    for path in ["/metrics", "/openid/v1/jwks", "/logs", "/debug/pprof"] {
        let wanted = format!(r#"forbidden: User "plain" cannot get path "{path}""#);
        assert_eq!(refused(&server, &plain, &Method::GET, path, NO_HEADER).await, (403, wanted));
    }
}

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const LIST: &str = "secrets is forbidden: cannot list secrets in kube-system";

/// Paths, and the request attributes in the message of kube-apiserver 1.35.3; [`long_form`] completes `cannot VERB RESOURCE in
/// NAMESPACE`.
const TRICKS: [(&str, &str); 36] = [
    (
        "/api/v1/namespaces/default/../kube-system/secrets",
        r#".. "kube-system" is forbidden: cannot get ../secrets in default"#,
    ),
    (
        "/version/../api/v1/namespaces/kube-system/secrets",
        "forbidden: cannot get path /version/../api/v1/namespaces/kube-system/secrets",
    ),
    (
        "/version/%2e%2e/api/v1/namespaces/kube-system/secrets",
        "forbidden: cannot get path /version/../api/v1/namespaces/kube-system/secrets",
    ),
    ("/version/%2e%2e%2fapi/v1/secrets", "forbidden: cannot get path /version/../api/v1/secrets"),
    (
        "/healthz/../api/v1/namespaces/kube-system/secrets",
        "forbidden: cannot get path /healthz/../api/v1/namespaces/kube-system/secrets",
    ),
    (
        "/livez%2f../api/v1/namespaces/kube-system/secrets",
        "forbidden: cannot get path /livez/../api/v1/namespaces/kube-system/secrets",
    ),
    ("//api/v1/namespaces/kube-system/secrets", LIST),
    ("/api//v1/namespaces/kube-system/secrets", r#"v1 "namespaces" is forbidden: cannot get v1/kube-system"#),
    ("/api/v1//namespaces/kube-system/secrets", "forbidden: cannot get /kube-system"),
    ("/api/v1/namespaces//kube-system/secrets", r#"kube-system "secrets" is forbidden: cannot get kube-system"#),
    ("/API/v1/namespaces/kube-system/secrets", "forbidden: cannot get path /API/v1/namespaces/kube-system/secrets"),
    ("/api/V1/namespaces/kube-system/secrets", LIST),
    ("/api/v1/namespaces/kube-system/Secrets", "Secrets is forbidden: cannot list Secrets in kube-system"),
    ("/api/v1/namespaces/kube-system%2fsecrets", LIST),
    ("/api%2fv1/namespaces/kube-system/secrets", LIST),
    ("/apis/../api/v1/secrets", r#"v1... "secrets" is forbidden: cannot get v1 of .."#),
    ("/apis//v1/secrets", "secrets is forbidden: cannot list secrets"),
    ("/api/v1/./secrets", r#". "secrets" is forbidden: cannot get ."#),
    ("/api/v1/namespaces/kube-system/../../secrets", r#".. ".." is forbidden: cannot get ../secrets in kube-system"#),
    ("/api/v1/namespaces/kube-system/secrets/", LIST),
    ("/api/v1/namespaces/kube-system/secrets//", LIST),
    ("/api/v1/namespaces/kube-system/secrets?/../x", LIST),
    ("/api/v1/namespaces/kube-system/secrets?%2e%2e=1&watch=false", LIST),
    ("/api/v1/namespaces/kube-system/secrets?watch=%31", "secrets is forbidden: cannot watch secrets in kube-system"),
    (
        "/api/v1/namespaces/kube-system/secrets%3Fwatch=1",
        "secrets?watch=1 is forbidden: cannot list secrets?watch=1 in kube-system",
    ),
    ("/api/v1/namespaces/kube-system/secrets;x=y", "secrets;x=y is forbidden: cannot list secrets;x=y in kube-system"),
    ("/api/v1/namespaces/kube-system/secrets%20", "secrets  is forbidden: cannot list secrets  in kube-system"),
    ("/api/v1/namespaces/kube-system/secrets/.", r#"secrets "." is forbidden: cannot get secrets in kube-system"#),
    ("/api/v1/namespaces/kube-system/secrets/%00", r#"secrets "\x00" is forbidden: cannot get secrets in kube-system"#),
    ("/api/v1/namespaces/kube-system/secrets%2fs", r#"secrets "s" is forbidden: cannot get secrets in kube-system"#),
    ("/api/v1/namespaces/kube%2Dsystem/secrets/s", r#"secrets "s" is forbidden: cannot get secrets in kube-system"#),
    (
        "/api/v1/namespaces/kube-system/secrets/s/status",
        r#"secrets "s" is forbidden: cannot get secrets/status in kube-system"#,
    ),
    (
        "/api/v1/namespaces/kube-system/secrets/s/../s",
        r#"secrets "s" is forbidden: cannot get secrets/.. in kube-system"#,
    ),
    (
        "/api/v1/namespaces/kube-system/secrets/s/%2e%2e/s",
        r#"secrets "s" is forbidden: cannot get secrets/.. in kube-system"#,
    ),
    ("/api/v1/watch/namespaces/kube-system/secrets", "secrets is forbidden: cannot watch secrets in kube-system"),
    (
        "/api/v1/proxy/namespaces/kube-system/secrets/s",
        r#"secrets "s" is forbidden: cannot proxy secrets in kube-system"#,
    ),
];

/// The whole message for the user `plain`.
fn long_form(short: &str) -> String {
    let (target, attributes) = short.split_once("cannot ").unwrap();
    let (verb, rest) = attributes.split_once(' ').unwrap();
    if let Some(path) = rest.strip_prefix("path ") {
        return format!(r#"{target}User "plain" cannot {verb} path "{path}""#);
    }
    let (rest, group) = rest.split_once(" of ").unwrap_or((rest, ""));
    let (resource, namespace) = rest.split_once(" in ").unwrap_or((rest, ""));
    let scope = match namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!(r#"in the namespace "{namespace}""#),
    };
    format!(r#"{target}User "plain" cannot {verb} resource "{resource}" in API group "{group}" {scope}"#)
}

#[tokio::test]
async fn paths_are_not_normalized() {
    let server = server(&[]).await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "hidden"}});
    server.ok(Method::POST, SECRETS, secret).await;
    let role =
        json!({"metadata": {"name": "versions"}, "rules": [{"nonResourceURLs": ["/version"], "verbs": ["get"]}]});
    server.ok(Method::POST, ROLES, role).await;
    for (path, short) in TRICKS {
        let (code, body) = send(&server, &plain(), request(Method::GET, path, &Value::Null)).await;
        assert_eq!((code, body.str_at(&["message"])), (403, long_form(short).as_str()), "{path}");
    }
    // all users may read below /openapi/
    let found = bytes(&server, &plain(), &format!("/openapi/v2/../..{SECRETS}")).await;
    assert_eq!(found, (404, "404 page not found\n".into()));
    // such paths do not extend the permissions of a user
    grant(&server, "maps", &[("", "configmaps", "*", &[])]).await;
    for path in [
        "/api/v1/namespaces/kube-system/configmaps/../secrets/s",
        "/api/v1/namespaces/kube-system/configmaps%2f..%2fsecrets",
        "/api/v1/configmaps/..%2fsecrets",
        "/api/v1/namespaces/kube-system/configmaps;/../secrets",
    ] {
        let (code, body) = bytes(&server, &plain(), path).await;
        let text = String::from_utf8_lossy(&body);
        assert!([400, 403, 404].contains(&code), "{path}: {code}");
        assert!(!text.contains("hidden") && !text.contains("aGlkZGVu"), "{path}: {text}");
    }
}
