//! Which user a request acts as, and what it may do, through the whole handler chain.

mod forbidden;
mod impersonation;

use std::sync::Arc;

use access::authorization::{self, AuthorizationMode};
use base::request::{FeatureGates, User};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use machinery::{Release, Value, json};
use store::Memory;

use crate::assembly::ApiConfig;
use crate::http::RequestBody;
use crate::in_process::Caller;
use crate::test_server::{TestServer, read, request};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A server whose only authorizer is RBAC, and which signs tokens.
async fn server(gates: &[&str]) -> TestServer {
    let gates: Vec<String> = gates.iter().map(|gate| (*gate).to_owned()).collect();
    let gates = FeatureGates::parse(&gates, Release::NEWEST).unwrap();
    let modes = authorization::modes(vec![AuthorizationMode::Rbac]);
    let api = ApiConfig { modes, gates, ..ApiConfig::default() };
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    api.authentication.accounts.set_signing_key(Ok(key.as_bytes())).unwrap();
    TestServer::of(api, Arc::new(Memory::default())).await
}

/// A user without permissions of its own.
fn plain() -> Caller {
    Caller::new(User { name: "plain".into(), uid: "2".into(), ..User::default() })
}

/// A rule of a role: an API group, resources, a verb and names.
type Rule<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

/// Grants these rules to the user `plain`, in place of those of the same role.
async fn grant(server: &TestServer, role: &str, rules: &[Rule<'_>]) {
    let rule = |(group, resource, verb, names): &Rule<'_>| {
        let names: Value = names.iter().copied().map(Value::from).collect();
        json!({"apiGroups": [(*group)], "resources": [(*resource)], "verbs": [(*verb)], "resourceNames": names})
    };
    let rules: Value = rules.iter().map(rule).collect();
    server.ok(Method::PUT, &format!("{ROLES}/{role}"), json!({"metadata": {"name": role}, "rules": rules})).await;
    let subject = json!({"kind": "User", "name": "plain"});
    let reference = json!({"kind": "ClusterRole", "name": role});
    let binding = json!({"metadata": {"name": role}, "subjects": [subject], "roleRef": reference});
    server.ok(Method::PUT, &format!("{BINDINGS}/{role}"), binding).await;
}

/// The code, and the name and the groups of the user that a request acts as, or why it is refused.
async fn act(server: &TestServer, method: Method, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request = request(method, path, &json!({}));
    for (name, value) in headers {
        let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let (code, body) = send(server, &plain(), request).await;
    let user = body.at(&["status", "userInfo"]).filter(|_| code == 201);
    let text = user.map_or_else(
        || body.str_at(&["message"]).to_owned(),
        |user| {
            let mut groups: Vec<&str> = user.items_at(&["groups"]).iter().filter_map(Value::as_str).collect();
            groups.sort_unstable();
            format!("{}: {}", user.str_at(&["username"]), groups.join(" "))
        },
    );
    (code, text)
}

async fn send(server: &TestServer, caller: &Caller, request: Request<RequestBody>) -> (u16, Value) {
    read(server.send(caller.client(), request).await).await
}

/// The code and the bytes of a response to a user.
async fn bytes(server: &TestServer, caller: &Caller, path: &str) -> (u16, Bytes) {
    let response = server.send(caller.client(), request(Method::GET, path, &Value::Null)).await;
    (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes())
}
