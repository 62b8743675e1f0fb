use std::sync::Arc;

use futures_util::FutureExt as _;
use machinery::json;
use objects::{Body, Event, EventKind, Key, Meta, Stored};

use super::*;
use crate::authorization::{AuthorizationMode as By, GROUP, Rbac};

/// An authorizer that grants the rules to ann and the agent.
fn authorizer(rules: &[Value]) -> Authorizer {
    let rbac = Rbac::default();
    let role = json!({"metadata": {"name": "acts"}, "rules": (Value::Array(rules.to_vec()))});
    let agent = json!({"kind": "ServiceAccount", "name": "agent", "namespace": "n"});
    let reference = json!({"kind": "ClusterRole", "name": "acts"});
    let binding = json!({
        "metadata": {"name": "acts"}, "roleRef": reference, "subjects": [{"kind": "User", "name": "ann"}, agent]
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let key = Key::new(&GROUP.into(), &plural.into(), "", "acts");
        let object = Arc::new(Stored::new(1, Body::encode(&object), Meta::of(&object)));
        let path = key.path.clone();
        rbac.observe(&key, &Event { revision: 1, kind: EventKind::Added, path, object, previous: None });
    }
    Authorizer::new(Arc::new(rbac), crate::authorization::modes(vec![By::Rbac]), machinery::Release::NEWEST).0
}

/// A rule of a mode, for one name or, if `name` is empty, for all.
fn rule(verb: &str, resource: &str, name: &str) -> Value {
    let group = if verb == "impersonate" && resource == "users" { "" } else { AUTHENTICATION };
    let mut rule = json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]});
    if !name.is_empty() {
        rule.set_at(&["resourceNames"], json!([name]));
    }
    rule
}

fn info(resource: &str, name: &str) -> Value {
    rule("impersonate:user-info", resource, name)
}

/// A rule for impersonation in a mode by requests that list ConfigMaps.
fn on(mode: &str) -> Value {
    json!({"verbs": [(format!("impersonate-on:{mode}:list"))], "apiGroups": [""], "resources": ["configmaps"]})
}

fn user(name: &str) -> ImpersonationTarget {
    ImpersonationTarget { user: name.into(), ..ImpersonationTarget::default() }
}

fn extra(pairs: &[(&str, &str)]) -> Vec<(Text, Vec<Text>)> {
    pairs.iter().map(|(key, value)| (Text::from(*key), vec![Text::from(*value)])).collect()
}

fn ann() -> User {
    User { name: "ann".into(), ..User::default() }
}

fn agent() -> User {
    User { extra: extra(&[("x", "y"), (ACCOUNT_NODE, "n1")]), ..User::service_account("n", "agent") }
}

/// The user that is impersonated for a list of ConfigMaps, or the message.
fn act(modes: &Modes, asker: &User, rules: &[Value], wanted: &ImpersonationTarget) -> Result<Impersonated, String> {
    let info = RequestInfo::parse(&http::Method::GET, "/api/v1/namespaces/n/configmaps", "");
    let found = modes.impersonate(&authorizer(rules), asker, &info, wanted).now_or_never().unwrap();
    found.map_err(|status| status.message.clone())
}

fn refused(what: &str, verb: &str, resource: &str, more: &str) -> String {
    let why = format!("User \"ann\" cannot {verb} resource \"{resource}\" in API group \"{AUTHENTICATION}\"");
    let what = format!("{}.{AUTHENTICATION}{what}", resource.split('/').next().unwrap());
    format!("{what} is forbidden: {why} at the cluster scope{more}")
}

fn refused_on(mode: &str) -> String {
    let verb = format!("impersonate-on:{mode}:list");
    format!(
        "configmaps is forbidden: User \"ann\" cannot {verb} resource \"configmaps\" in API group \"\" in the namespace \"n\""
    )
}

#[test]
fn constrained_impersonation_modes_match_requests() {
    let suitable = |wanted: &ImpersonationTarget, user: &User| -> Vec<&str> {
        ImpersonationMode::ALL
            .into_iter()
            .filter(|mode| mode.applies_to(wanted, user))
            .map(ImpersonationMode::as_str)
            .collect()
    };
    let two = User { extra: vec![(ACCOUNT_NODE.into(), vec!["n1".into(), "n2".into()])], ..agent() };
    let no_account = User { extra: agent().extra, ..ann() };
    let cases: [(&str, &User, &[&str]); 9] = [
        ("bob", &no_account, &["user-info", "legacy"]),
        ("system:node:n1", &no_account, &["arbitrary-node", "legacy"]),
        ("system:node:N1", &no_account, &["user-info", "legacy"]),
        ("system:node:", &no_account, &["user-info", "legacy"]),
        ("system:node:n1", &agent(), &["associated-node", "arbitrary-node", "legacy"]),
        ("system:node:n2", &agent(), &["arbitrary-node", "legacy"]),
        ("system:node:n1", &two, &["arbitrary-node", "legacy"]),
        ("system:serviceaccount:n:a", &agent(), &["serviceaccount", "legacy"]),
        ("system:serviceaccount:n:a:b", &agent(), &["user-info", "legacy"]),
    ];
    for (name, asker, modes) in cases {
        assert_eq!(suitable(&user(name), asker), modes, "{name} by {asker:?}");
    }
    for name in ["system:node:n1", "system:serviceaccount:n:a"] {
        let more = [
            ImpersonationTarget { uid: "1".into(), ..user(name) },
            ImpersonationTarget { groups: vec!["g".into()], ..user(name) },
            ImpersonationTarget { extra: extra(&[("a.io/k", "v")]), ..user(name) },
        ];
        for wanted in more {
            assert_eq!(suitable(&wanted, &agent()), ["legacy"], "{wanted:?}");
        }
    }
}

#[test]
fn each_impersonated_part_requires_its_verb() {
    let extra = extra(&[("acme.io/k", "v")]);
    let bob = ImpersonationTarget { uid: "7".into(), groups: vec!["g".into()], extra, ..user("bob") };
    let steps = [
        (on("user-info"), refused_on("user-info")),
        (info("users", "bob"), refused(" \"bob\"", "impersonate:user-info", "users", "")),
        (info("uids", "7"), refused(" \"7\"", "impersonate:user-info", "uids", "")),
        (info("groups", "g"), refused(" \"g\"", "impersonate:user-info", "groups", "")),
        (info("userextras/acme.io/k", "v"), refused(" \"v\"", "impersonate:user-info", "userextras/acme.io/k", "")),
    ];
    let mut rules = vec![];
    for (rule, message) in steps {
        assert_eq!(act(&Modes::default(), &ann(), &rules, &bob), Err(message));
        rules.push(rule);
    }
    let acting = act(&Modes::default(), &ann(), &rules, &bob).unwrap();
    let groups = vec!["g".into(), "system:authenticated".into()];
    let user = User { name: "bob".into(), uid: "7".into(), groups, extra: bob.extra.clone() };
    assert_eq!(acting, Impersonated { user, constraint: "impersonate:user-info" });
    // permissions of one mode do not apply to another
    rules[0] = on("serviceaccount");
    assert_eq!(act(&Modes::default(), &ann(), &rules, &bob), Err(refused_on("user-info")));
}

#[test]
fn system_masters_requires_unconstrained_impersonation() {
    let rules = [on("user-info"), info("users", ""), info("groups", ""), info("userextras/k", "")];
    let no = |resource: &str, name: &str, why: &str| refused(name, "impersonate:user-info", resource, why);
    let cases = [
        (
            ImpersonationTarget { groups: vec!["g".into(), "system:masters".into()], ..user("bob") },
            no("groups", " \"system:masters\"", ": impersonating the system:masters group is not allowed"),
        ),
        (
            ImpersonationTarget { groups: vec!["system:masters".into(), "".into()], ..user("bob") },
            no("groups", "", ": impersonating the empty string group is not allowed"),
        ),
        (
            ImpersonationTarget { extra: extra(&[("", "v")]), ..user("bob") },
            no("userextras", "", ": impersonating the empty string key in extra is not allowed"),
        ),
        (
            ImpersonationTarget { extra: extra(&[("a.io/k", "v"), ("a.io/l", "")]), ..user("bob") },
            no("userextras", "", ": impersonating the empty string value in extra is not allowed"),
        ),
        (
            ImpersonationTarget { extra: extra(&[("a.io/K", "v")]), ..user("bob") },
            no("userextras", "", ": impersonating a non-lowercase key in extra is not allowed: \"a.io/K\""),
        ),
        (
            ImpersonationTarget { extra: extra(&[("k", "v")]), ..user("bob") },
            no(
                "userextras",
                "",
                ": impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \"k\": must be a domain-prefixed path (such as \"acme.io/foo\")",
            ),
        ),
    ];
    for (wanted, message) in cases {
        assert_eq!(act(&Modes::default(), &ann(), &rules, &wanted), Err(message));
        let all = json!({"verbs": ["impersonate"], "apiGroups": ["*"], "resources": ["*"]});
        let acting = act(&Modes::default(), &ann(), &[all], &wanted).unwrap();
        assert_eq!((acting.constraint, &acting.user.extra), ("", &wanted.extra));
    }
}

#[test]
fn impersonation_may_allow_several_at_once() {
    let texts = |n: usize| -> Vec<Text> { (0..n).map(|i| Text::from(format!("g{i}"))).collect() };
    let groups = |n: usize| ImpersonationTarget { groups: texts(n), ..user("bob") };
    let values = |n: usize| ImpersonationTarget { extra: vec![("a.io/k".into(), texts(n))], ..user("bob") };
    for (of, resource, star) in [
        (&groups as &dyn Fn(usize) -> ImpersonationTarget, "groups", info("groups", "*")),
        (&values, "userextras/a.io/k", info("userextras/*", "*")),
    ] {
        let rules = [on("user-info"), info("users", "bob"), star];
        let message = refused(" \"g0\"", "impersonate:user-info", resource, "");
        assert_eq!(act(&Modes::default(), &ann(), &rules, &of(limits::IMPERSONATED_TOGETHER - 1)), Err(message));
        assert!(act(&Modes::default(), &ann(), &rules, &of(limits::IMPERSONATED_TOGETHER)).is_ok());
        let rules = [on("user-info"), info("users", "bob"), info(resource, "")];
        assert!(act(&Modes::default(), &ann(), &rules, &of(limits::IMPERSONATED_TOGETHER)).is_ok());
    }
}

#[test]
fn nodes_and_accounts_have_groups_of_their_own() {
    let of = |mode: &str, resource: &str, name: &str| [on(mode), rule(&format!("impersonate:{mode}"), resource, name)];
    let acts = |asker: &User, rules: &[Value], name: &str| {
        let acting = act(&Modes::default(), asker, rules, &user(name))?;
        assert!(acting.user.extra.is_empty() && acting.user.name == name, "{acting:?}");
        Ok::<_, String>((acting.constraint, acting.user.groups.join(" ")))
    };
    let node = "system:nodes system:authenticated".to_owned();
    let arbitrary = of("arbitrary-node", "nodes", "n1");
    assert_eq!(acts(&ann(), &arbitrary, "system:node:n1"), Ok(("impersonate:arbitrary-node", node.clone())));
    let message = refused(" \"n2\"", "impersonate:arbitrary-node", "nodes", "");
    assert_eq!(acts(&ann(), &arbitrary, "system:node:n2"), Err(message));
    let account = of("serviceaccount", "serviceaccounts", "a");
    let groups = "system:serviceaccounts system:serviceaccounts:m system:authenticated".to_owned();
    assert_eq!(acts(&ann(), &account, "system:serviceaccount:m:a"), Ok(("impersonate:serviceaccount", groups)));
    // an agent may impersonate any node that it runs on, so the rule cannot name a node
    let associated = of("associated-node", "nodes", "");
    assert_eq!(acts(&agent(), &associated, "system:node:n1"), Ok(("impersonate:associated-node", node.clone())));
    let named = of("associated-node", "nodes", "*");
    assert_eq!(acts(&agent(), &named, "system:node:n1"), Ok(("impersonate:associated-node", node)));
    let message = acts(&agent(), &of("associated-node", "nodes", "n1"), "system:node:n1").unwrap_err();
    assert!(message.starts_with("nodes.authentication.k8s.io \"*\" is forbidden"), "{message}");
    let message = acts(&agent(), &associated, "system:node:n2").unwrap_err();
    assert!(message.contains("cannot impersonate-on:arbitrary-node:list"), "{message}");
}

#[test]
fn associated_node_check_is_equal_for_every_node() {
    let shown = ImpersonationMode::AssociatedNode.checked_user(&agent()).into_owned();
    assert_eq!(shown.extra, [(ACCOUNT_KEYS.into(), vec![ACCOUNT_NODE.into(), "x".into()])]);
    assert_eq!(User { extra: agent().extra, ..shown }, agent());
    assert_eq!(*ImpersonationMode::ArbitraryNode.checked_user(&agent()), agent());
}

#[test]
fn last_used_impersonation_mode_is_tried_first() {
    let modes = Modes::default();
    let legacy = [rule("impersonate", "users", "bob")];
    assert_eq!(act(&modes, &ann(), &[], &user("bob")), Err(refused_on("user-info")));
    assert_eq!(act(&modes, &ann(), &legacy, &user("bob")).unwrap().constraint, "");
    let message = "users \"bob\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope";
    assert_eq!(act(&modes, &ann(), &[], &user("bob")), Err(message.to_owned()));
    let both = [&legacy[..], &[on("user-info"), info("users", "")]].concat();
    assert_eq!(act(&modes, &ann(), &both, &user("bob")).unwrap().constraint, "");
    assert_eq!(act(&modes, &ann(), &both, &user("eve")).unwrap().constraint, "impersonate:user-info");
    assert_eq!(act(&modes, &ann(), &both, &user("bob")).unwrap().constraint, "impersonate:user-info");
}
