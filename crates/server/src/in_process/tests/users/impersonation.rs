//! Impersonation. The messages of constrained impersonation are those of kube-apiserver 1.35.3 with the same feature gate.

use super::*;

const REVIEWS: &str = "authentication.k8s.io";

/// What a request impersonates, by the names of the headers after `Impersonate-`.
type Headers<'a> = &'a [(&'a str, &'a str)];

async fn impersonate(server: &TestServer, headers: Headers<'_>) -> (u16, String) {
    impersonate_at(server, Method::POST, SELF, headers).await
}

async fn impersonate_at(server: &TestServer, method: Method, path: &str, headers: Headers<'_>) -> (u16, String) {
    let names: Vec<String> = headers.iter().map(|(name, _)| format!("Impersonate-{name}")).collect();
    let headers: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(headers.iter().map(|(_, to)| *to)).collect();
    act(server, method, path, &headers).await
}

fn cannot(target: &str, verb: &str, resource: &str, group: &str, scope: &str) -> String {
    format!(r#"{target} is forbidden: User "plain" cannot {verb} resource "{resource}" in API group "{group}" {scope}"#)
}

/// The message if a mode does not apply to a creation of reviews.
fn at(mode: &str) -> String {
    let (target, verb) = (format!("selfsubjectreviews.{REVIEWS}"), format!("impersonate-on:{mode}:create"));
    cannot(&target, &verb, "selfsubjectreviews", REVIEWS, "at the cluster scope")
}

/// The message if a mode does not permit one part of a user.
fn part(mode: &str, resource: &str, name: &str) -> String {
    let plural = resource.split('/').next().unwrap();
    let name = if name.is_empty() { String::new() } else { format!(" {name:?}") };
    let target = format!("{plural}.{REVIEWS}{name}");
    cannot(&target, &format!("impersonate:{mode}"), resource, REVIEWS, "at the cluster scope")
}

/// The message if the verb `impersonate` is not permitted.
fn at_legacy(resource: &str, name: &str, group: &str, scope: &str) -> String {
    let plural = resource.split('/').next().unwrap();
    let suffix = if group.is_empty() { String::new() } else { format!(".{group}") };
    cannot(&format!("{plural}{suffix} {name:?}"), "impersonate", resource, group, scope)
}

#[tokio::test]
async fn verb_impersonate_is_granted_by_name() {
    let server = server(&[]).await;
    grant(&server, "acts", &[("", "users", "impersonate", &["bob"])]).await;
    let denied = |resource: &str, name: &str, group: &str| at_legacy(resource, name, group, "at the cluster scope");
    let account = "system:serviceaccount:kube-system:admin";
    let cases: [(Headers<'_>, (u16, String)); 8] = [
        (&[("User", "bob")], (201, "bob: system:authenticated".to_owned())),
        (&[("User", "Bob")], (403, denied("users", "Bob", ""))),
        (&[("User", "system:masters")], (403, denied("users", "system:masters", ""))),
        (&[("User", "bob"), ("Group", "system:masters")], (403, denied("groups", "system:masters", ""))),
        (&[("User", "bob"), ("Uid", "1")], (403, denied("uids", "1", REVIEWS))),
        (&[("User", "bob"), ("Extra-scopes", "all")], (403, denied("userextras/scopes", "all", REVIEWS))),
        (&[("User", account)], (403, at_legacy("serviceaccounts", "admin", "", r#"in the namespace "kube-system""#))),
        (
            &[("Group", "system:masters")],
            (400, without_user(r#"UID:"", Groups:[]string{"system:masters"}, Extra:map[string][]string(nil)"#)),
        ),
    ];
    for (headers, wanted) in cases {
        assert_eq!(impersonate(&server, headers).await, wanted, "{headers:?}");
    }
    // the headers of a proxy have no effect, in any spelling
    for name in ["X-Remote-User", "x_remote_user", "X-REMOTE-USER", "X-Remote-Extra-Impersonate-User"] {
        let headers = [(name, "bob"), ("X-Remote-Group", "system:masters"), ("Connection", "X-Remote-Group")];
        let user = act(&server, Method::POST, SELF, &headers).await;
        assert_eq!(user, (201, "plain: system:authenticated".to_owned()), "{name}");
    }
}

fn without_user(fields: &str) -> String {
    format!(r#"requested &user.DefaultInfo{{Name:"", {fields}}} without impersonating a user name"#)
}

/// A rule for the requests that a mode applies to.
fn on<'a>(verb: &'a str) -> Rule<'a> {
    (REVIEWS, "selfsubjectreviews", verb, &[])
}

/// After `=`, what `plain` is granted: `on` requests of a mode, `to` impersonate in a mode, or by the verb `impersonate`, each of a
/// resource and its names. Then the headers of requests, and what each results in.
///
/// An allowed impersonation is cached for 10 s, as by kube-apiserver, so that other names are used after a permission is revoked.
const MODES: &str = r#"
= # the first requested permission is the one that is denied
User=bob | at user-info
User=system:node:n1 | at arbitrary-node
User=system:serviceaccount:n:a | at serviceaccount
User=system:node:N1 | at user-info
User=system:serviceaccount:n:a:b | at user-info
User=system:node:n1 Group=g | verb users system:node:n1
User=system:serviceaccount:n:a Uid=1 | verb serviceaccounts a n
= on user-info
User=bob | part user-info users bob
= on user-info; to user-info users bob
User=bob | as bob: system:authenticated
User=eve | part user-info users eve
User=bob Group=g Uid=7 | part user-info uids 7
User=bob Group=g | part user-info groups g
User=bob Extra-a.io%2fk=v | part user-info userextras/a.io/k v
= on user-info; to user-info users; to user-info groups; to user-info userextras/k # permissions that no mode grants
User=bob Group=g | as bob: g system:authenticated
User=bob Group=system:masters | part user-info groups system:masters : the system:masters group is not allowed
User=bob Group= | part user-info groups - : the empty string group is not allowed
User=bob Extra-=v | part user-info userextras - : the empty string key in extra is not allowed
User=bob Extra-a.io%2fk= | part user-info userextras - : the empty string value in extra is not allowed
User=bob Extra-a-b%2fc%20d=v | part user-info userextras - : an invalid key in extra is not allowed: extra.key: Invalid value: "c d": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')
User=bob Extra-k=v | part user-info userextras - : an invalid key in extra is not allowed: extra.key: Invalid value: "k": must be a domain-prefixed path (such as "acme.io/foo")
= on user-info; to user-info users; to user-info groups * # four groups or more are authorized by one check
User=bob Group=a Group=b Group=c | part user-info groups a
User=bob Group=a Group=b Group=c Group=d | as bob: a b c d system:authenticated
= on arbitrary-node; to arbitrary-node nodes n1; on serviceaccount; to serviceaccount serviceaccounts # they get their groups
User=system:node:n1 | as system:node:n1: system:authenticated system:nodes
User=system:node:n2 | part arbitrary-node nodes n2
User=system:serviceaccount:n:a | as system:serviceaccount:n:a: system:authenticated system:serviceaccounts system:serviceaccounts:n
User=carl | at user-info
= on user-info; verb users carl # the verb still works, and the mode that was used last is tried first
User=carl | as carl: system:authenticated
User=eve | verb users eve
User=system:node:n3 | verb users system:node:n3
User=carl Uid=7 | verb uids 7
= on user-info; to user-info users
User=dora | as dora: system:authenticated
User=dora Group=g | part user-info groups g
"#;

/// The rule of one grant of [`MODES`]: the group, the resource, the verb and the names.
fn rule(grant: &str) -> (&str, &str, String, Vec<&str>) {
    let words: Vec<&str> = grant.split(' ').collect();
    match words.as_slice() {
        ["on", mode] => (REVIEWS, "selfsubjectreviews", format!("impersonate-on:{mode}:create"), vec![]),
        ["to", mode, resource, names @ ..] => (REVIEWS, resource, format!("impersonate:{mode}"), names.to_vec()),
        ["verb", resource, names @ ..] => ("", resource, "impersonate".to_owned(), names.to_vec()),
        _ => panic!("{grant:?} is no grant"),
    }
}

/// The code and the text of one result of [`MODES`].
fn result(text: &str) -> (u16, String) {
    let (result, why) = text
        .split_once(" : ")
        .map_or((text, String::new()), |(result, why)| (result, format!(": impersonating {why}")));
    let words: Vec<&str> = result.split(' ').collect();
    match words.as_slice() {
        ["as", ..] => (201, result["as ".len()..].to_owned()),
        ["at", mode] => (403, at(mode)),
        ["part", mode, resource, name] => (403, part(mode, resource, name.trim_start_matches('-')) + &why),
        ["verb", "uids", name] => (403, at_legacy("uids", name, REVIEWS, "at the cluster scope")),
        ["verb", resource, name] => (403, at_legacy(resource, name, "", "at the cluster scope")),
        ["verb", resource, name, namespace] => {
            (403, at_legacy(resource, name, "", &format!("in the namespace {namespace:?}")))
        }
        _ => panic!("{text:?} is no result"),
    }
}

#[tokio::test]
async fn modes_of_constrained_impersonation() {
    let server = server(&["ConstrainedImpersonation=true"]).await;
    for line in MODES.lines().skip(1) {
        if let Some(grants) = line.strip_prefix('=') {
            let grants = grants.split('#').next().unwrap().split(';').map(str::trim).filter(|grant| !grant.is_empty());
            let rules: Vec<_> = grants.map(rule).collect();
            let rules: Vec<Rule<'_>> =
                rules.iter().map(|(a, b, verb, names)| (*a, *b, verb.as_str(), &names[..])).collect();
            grant(&server, "acts", &rules).await;
            continue;
        }
        let (headers, wanted) = line.split_once(" | ").unwrap();
        let headers: Vec<(&str, &str)> = headers.split(' ').map(|header| header.split_once('=').unwrap()).collect();
        assert_eq!(impersonate(&server, &headers).await, result(wanted), "{line}");
    }
    for (headers, fields) in [
        (&[("Uid", "1")][..], r#"UID:"1", Groups:[]string(nil), Extra:map[string][]string(nil)"#),
        (&[("Group", "g\"x")], r#"UID:"", Groups:[]string{"g\"x"}, Extra:map[string][]string(nil)"#),
        (
            &[("Extra-b", "c"), ("Extra-a", "b")],
            r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"b"}, "b":[]string{"c"}}"#,
        ),
    ] {
        assert_eq!(impersonate(&server, headers).await, (400, without_user(fields)), "{headers:?}");
    }
    let metrics = bytes(&server, &Caller::admin(), "/metrics").await.1;
    let metrics = String::from_utf8_lossy(&metrics);
    let decided = ["arbitrary-node", "user-info", "legacy"].map(|mode| format!(r#"mode="{mode}",decision="allowed""#));
    for (name, labels) in
        ["attempts", "authorization_attempts"].iter().flat_map(|name| decided.iter().map(move |of| (name, of)))
    {
        assert!(metrics.contains(&format!("apiserver_impersonation_{name}_total{{{labels}}}")), "{name} {labels}");
        let durations = format!("apiserver_impersonation_{name}_duration_seconds_count{{{labels}}}");
        assert!(metrics.contains(&durations), "{durations}");
    }
    assert!(metrics.contains(r#"apiserver_impersonation_attempts_total{mode="",decision="denied"}"#));
    assert!(metrics.contains(r#"kubernetes_feature_enabled{name="ConstrainedImpersonation",stage="BETA"} 1"#));
}

#[tokio::test]
async fn constrained_impersonation_is_of_one_verb() {
    let server = server(&["ConstrainedImpersonation=true"]).await;
    let bob: Headers<'_> = &[("User", "bob")];
    let maps = "/api/v1/namespaces/default/configmaps?watch=1";
    let path = |path: &str| format!(r#"forbidden: User "plain" cannot impersonate-on:user-info:get path "{path}""#);
    let watch = "impersonate-on:user-info:watch";
    let of_watch = cannot("configmaps", watch, "configmaps", "", r#"in the namespace "default""#);
    assert_eq!(impersonate_at(&server, Method::GET, maps, bob).await, (403, of_watch));
    assert_eq!(impersonate_at(&server, Method::GET, "/healthz", bob).await, (403, path("/healthz")));
    grant(&server, "acts", &[on("impersonate-on:user-info:create"), (REVIEWS, "users", "impersonate:user-info", &[])])
        .await;
    assert_eq!(impersonate(&server, bob).await, (201, "bob: system:authenticated".to_owned()));
    assert_eq!(impersonate_at(&server, Method::GET, "/version", bob).await, (403, path("/version")));
}
