use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaPublicKeyComponents};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use objects::{Encoded, Key, Meta, Objects, Storage};

use super::*;

/// Objects of an empty store in memory.
pub async fn objects() -> Arc<Objects> {
    Objects::open(Storage::own(Arc::new(store::Memory::default())), Default::default(), Box::new(|_, _, _| {}))
        .await
        .unwrap()
}

async fn put(objects: &Arc<Objects>, plural: &'static str, name: &str, uid: &str) -> Arc<Stored> {
    let object = json!({"metadata": {"name": name, "namespace": "n", "uid": uid}});
    let key = Key::new(&Text::default(), &Text::new_static(plural), "n", name);
    objects.put(&key, Encoded::of(&object), None).await.unwrap();
    objects.collection(&key.group, &key.plural).get(&key.path).unwrap()
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

fn rsa_pem() -> String {
    let der: Pkcs8V1Der<'_> = KeyPair::generate(KeySize::Rsa2048).unwrap().as_der().unwrap();
    pem("PRIVATE KEY", der.as_ref())
}

fn ec_pem() -> String {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    pem("PRIVATE KEY", pair.to_pkcs8v1().unwrap().as_ref())
}

fn accounts(options: AccountOptions, pem: &str) -> Accounts {
    let accounts = Accounts::new(options).unwrap();
    accounts.set_signing_key(Ok(pem.as_bytes())).unwrap();
    accounts
}

fn key_of(accounts: &Accounts) -> Arc<SigningKey> {
    accounts.inner.keys.borrow().signing.clone().unwrap().unwrap()
}

/// The SubjectPublicKeyInfo of an RSA key.
fn public_der(key: &SigningKey) -> Vec<u8> {
    let jwk = key.public.to_jwk();
    let [n, e] = ["n", "e"].map(|part| URL_SAFE_NO_PAD.decode(jwk.str_at(&[part])).unwrap());
    let der: PublicKeyX509Der<'_> = RsaPublicKeyComponents { n, e }.as_der().unwrap();
    der.as_ref().to_vec()
}

/// The same token with one part made anew.
fn with_part(token: &str, part: usize, change: impl Fn(&mut Value)) -> String {
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let mut value = machinery::value::decode(&URL_SAFE_NO_PAD.decode(&parts[part]).unwrap()).unwrap();
    change(&mut value);
    parts[part] = URL_SAFE_NO_PAD.encode(value.to_json());
    parts.join(".")
}

/// Why a token is refused; empty if it is good, a dash if another one issued it.
fn why(accounts: &Accounts, objects: &Objects, token: &str) -> String {
    match accounts.authenticate(objects, token, &[]) {
        None => "-".to_owned(),
        Some(Ok(_)) => String::new(),
        Some(Err(why)) => why,
    }
}

#[tokio::test]
async fn token_authenticates_its_service_account() {
    let objects = objects().await;
    let account = put(&objects, "serviceaccounts", "a", "u1").await;
    for pem in [rsa_pem(), ec_pem()] {
        let accounts = accounts(AccountOptions::default(), &pem);
        let now = clock::now_seconds();
        let (token, _) = accounts.issue(&account, None, accounts.audiences(), now, 600).await.unwrap();
        let identity = accounts.authenticate(&objects, &token, &[]).unwrap().unwrap();
        assert_eq!(identity.audiences, [DEFAULT_ISSUER]);
        let user = identity.user;
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:n:a", "u1"));
        assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"]);
        assert_eq!(user.extra[0].0, "authentication.kubernetes.io/credential-id");
        assert!(user.extra[0].1[0].starts_with("JTI="));
    }
}

#[tokio::test]
async fn times_and_audiences_are_checked() {
    let objects = objects().await;
    let account = put(&objects, "serviceaccounts", "a", "u1").await;
    let accounts = accounts(AccountOptions { audiences: vec!["api".into()], ..Default::default() }, &ec_pem());
    let now = clock::now_seconds();
    let not_for_us = r#"token audiences ["vault"] is invalid for the target audiences ["api"]"#;
    let cases: [(&str, i64, i64, &str); 6] = [
        ("api", now, 600, ""),
        ("api", now - 600, 570, ""),
        ("api", now - 3600, 600, "service account token has expired"),
        ("api", now + 3600, 600, "service account token is not valid yet"),
        ("vault", now, 600, not_for_us),
        ("vault", now - 3600, 600, not_for_us),
    ];
    for (audience, from, seconds, want) in cases {
        let (token, _) = accounts.issue(&account, None, &[audience.into()], from, seconds).await.unwrap();
        assert_eq!(why(&accounts, &objects, &token), want, "{audience} {}", from - now);
    }
    let (token, _) = accounts.issue(&account, None, &["vault".into(), "b".into()], now, 600).await.unwrap();
    let identity = accounts.authenticate(&objects, &token, &["x".into(), "vault".into()]).unwrap().unwrap();
    assert_eq!(identity.audiences, ["vault"]);
}

/// Replaces a stored object by one that is being deleted since `deleted_at`.
async fn mark_deleted(objects: &Arc<Objects>, plural: &'static str, object: &Stored, deleted_at: i64) {
    let meta = &object.meta;
    let time = machinery::time::rfc3339(deleted_at);
    let value = json!({"metadata": {
        "name": (meta.name.clone()), "namespace": (meta.namespace.clone()), "uid": (meta.uid.clone()), "deletionTimestamp": time
    }});
    let key = Key::new(&Text::default(), &Text::new_static(plural), &meta.namespace, &meta.name);
    objects.put(&key, Encoded::of(&value), Some(object.revision)).await.unwrap();
}

#[tokio::test]
async fn tokens_end_with_their_account_and_object() {
    let objects = objects().await;
    let account = put(&objects, "serviceaccounts", "a", "u1").await;
    let gone = Stored::new(1, account.body.clone(), Meta { name: "b".into(), ..account.meta.clone() });
    let replaced = Stored::new(1, account.body.clone(), Meta { uid: "u0".into(), ..account.meta.clone() });
    for plural in ["secrets", "pods"] {
        put(&objects, plural, "s", "u2").await;
        let now = clock::now_seconds();
        for (name, deleted_at) in [("long", now - 120), ("lately", now)] {
            let object = put(&objects, plural, name, "u3").await;
            mark_deleted(&objects, plural, &object, deleted_at).await;
        }
    }
    let node = json!({"metadata": {"name": "s", "uid": "u2"}});
    let key = Key::new(&Text::default(), &"nodes".into(), "", "s");
    objects.put(&key, Encoded::of(&node), None).await.unwrap();
    let named = |name: &str, uid: &str| Reference { name: name.into(), uid: uid.into() };
    let secret = |name: &str, uid: &str| Some(Bound::Secret(named(name, uid)));
    let pod = |name: &str, uid: &str| Some(Bound::Pod { pod: named(name, uid), node: Some(named("none", "u0")) });
    let node = |name: &str, uid: &str| Some(Bound::Node(named(name, uid)));
    let accounts = accounts(AccountOptions::default(), &ec_pem());
    let invalidated = "service account token has been invalidated";
    let cases = [
        (&*account, None, ""),
        (&gone, None, r#"serviceaccounts "b" not found"#),
        (&replaced, None, "service account UID (u1) does not match claim (u0)"),
        (&*account, secret("s", "u2"), ""),
        (&*account, secret("s", "u9"), "secret UID (u2) does not match service account secret ref claim (u9)"),
        (&*account, secret("t", "u2"), invalidated),
        (&*account, secret("lately", "u3"), ""),
        (&*account, secret("long", "u3"), invalidated),
        (&*account, pod("s", "u2"), ""),
        (&*account, pod("s", "u9"), "pod UID (u2) does not match service account pod ref claim (u9)"),
        (&*account, pod("t", "u2"), invalidated),
        (&*account, pod("lately", "u3"), ""),
        (&*account, pod("long", "u3"), invalidated),
        (&*account, node("s", "u2"), ""),
        (&*account, node("s", "u9"), "node UID (u2) does not match service account node ref claim (u9)"),
        (&*account, node("t", "u2"), invalidated),
    ];
    for (account, bound, want) in cases {
        let now = clock::now_seconds();
        let (token, _) = accounts.issue(account, bound.as_ref(), accounts.audiences(), now, 600).await.unwrap();
        assert_eq!(why(&accounts, &objects, &token), want, "{} {bound:?}", account.meta.name);
    }
    mark_deleted(&objects, "serviceaccounts", &account, clock::now_seconds() - 120).await;
    let (token, _) = accounts.issue(&account, None, accounts.audiences(), clock::now_seconds(), 600).await.unwrap();
    assert_eq!(why(&accounts, &objects, &token), "service account n/a has been deleted");
}

#[tokio::test]
async fn bound_tokens_name_their_object_to_users() {
    let objects = objects().await;
    let account = put(&objects, "serviceaccounts", "a", "u1").await;
    put(&objects, "secrets", "s", "u2").await;
    put(&objects, "pods", "p", "u3").await;
    let named = |name: &str, uid: &str| Reference { name: name.into(), uid: uid.into() };
    let on = |node| Some(Bound::Pod { pod: named("p", "u3"), node });
    let cases = [
        (Some(Bound::Secret(named("s", "u2"))), json!({"secret": {"name": "s", "uid": "u2"}}), "credential-id"),
        (on(None), json!({"pod": {"name": "p", "uid": "u3"}}), "credential-id pod-name=p pod-uid=u3"),
        (
            on(Some(named("n1", "u4"))),
            json!({"pod": {"name": "p", "uid": "u3"}, "node": {"name": "n1", "uid": "u4"}}),
            "credential-id node-name=n1 node-uid=u4 pod-name=p pod-uid=u3",
        ),
        (
            on(Some(named("n1", ""))),
            json!({"pod": {"name": "p", "uid": "u3"}, "node": {"name": "n1"}}),
            "credential-id node-name=n1 pod-name=p pod-uid=u3",
        ),
    ];
    let accounts = accounts(AccountOptions::default(), &ec_pem());
    for (bound, claims, extra) in cases {
        let now = clock::now_seconds();
        let (token, _) = accounts.issue(&account, bound.as_ref(), accounts.audiences(), now, 600).await.unwrap();
        let mut private_claims = jose::Unverified::parse(&token).unwrap().claims.get("kubernetes.io").unwrap().clone();
        private_claims.remove_at(&["namespace"]);
        private_claims.remove_at(&["serviceaccount"]);
        assert_eq!(private_claims.to_json(), claims.to_json());
        let user = accounts.authenticate(&objects, &token, &[]).unwrap().unwrap().user;
        let shown: Vec<String> = user
            .extra
            .iter()
            .map(|(key, values)| match key.strip_prefix("authentication.kubernetes.io/").unwrap() {
                "credential-id" => "credential-id".to_owned(),
                key => format!("{key}={}", values[0]),
            })
            .collect();
        assert_eq!(shown.join(" "), extra);
    }
}

#[tokio::test]
async fn tokens_of_pods_are_extended() {
    let objects = objects().await;
    let account = put(&objects, "serviceaccounts", "a", "u1").await;
    put(&objects, "pods", "p", "u3").await;
    let pod = Bound::Pod { pod: Reference { name: "p".into(), uid: "u3".into() }, node: None };
    let extending = |extend_expiration| {
        accounts(AccountOptions { extend_expiration, audiences: vec!["api".into()], ..Default::default() }, &ec_pem())
    };
    let (on, off) = (extending(true), extending(false));
    let year = 365 * 24 * 3600;
    let cases = [
        (&on, Some(&pod), "api", 3607, year, Some(3607)),
        (&on, Some(&pod), "api", 3600, 3600, None),
        (&on, Some(&pod), "vault", 3607, 3607, None),
        (&on, None, "api", 3607, 3607, None),
        (&off, Some(&pod), "api", 3607, 3607, None),
    ];
    for (accounts, bound, audience, seconds, lifetime, warn_after) in cases {
        let now = clock::now_seconds();
        let (token, _) = accounts.issue(&account, bound, &[audience.into()], now, seconds).await.unwrap();
        let claims = jose::Unverified::parse(&token).unwrap().claims;
        let time = |path: &[&str]| claims.at(path).and_then(Value::as_int).map(|time| time - now);
        assert_eq!((time(&["exp"]), time(&["kubernetes.io", "warnafter"])), (Some(lifetime), warn_after), "{seconds}");
    }
    let issued = clock::now_seconds() - 4000;
    let (token, _) = on.issue(&account, Some(&pod), on.audiences(), issued, 3607).await.unwrap();
    let remarks = on.authenticate(&objects, &token, &[]).unwrap().unwrap().remarks;
    let (key, value) = &remarks.annotations[0];
    assert_eq!(*key, "authentication.k8s.io/stale-token");
    assert!(value.starts_with("subject: system:serviceaccount:n:a, seconds after warning threshold: 39"), "{value}");
}

#[tokio::test]
async fn claims_of_wrong_types_are_refused() {
    let objects = objects().await;
    let account = put(&objects, "serviceaccounts", "a", "u1").await;
    let accounts = accounts(AccountOptions::default(), &ec_pem());
    let claims = accounts.claims(&account, None, accounts.audiences(), clock::now_seconds(), 600);
    let audience = "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience";
    let date = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate";
    let cases = [
        ("aud", json!(5), audience),
        ("aud", Value::Null, audience),
        ("aud", json!(["a", 5]), audience),
        ("aud", json!([]), ""),
        ("nbf", json!("x"), date),
        ("exp", json!(true), date),
        ("exp", Value::Null, "service account token has expired"),
        ("exp", json!(4102444800.5), ""),
        ("iat", json!({}), date),
        ("sub", json!(5), "json: cannot unmarshal number into Go value of type string"),
        ("jti", json!([]), "json: cannot unmarshal array into Go value of type string"),
    ];
    for (name, value, want) in cases {
        let mut claims = claims.clone();
        claims.set_at(&[name], value);
        let token = jose::sign(&claims, &key_of(&accounts)).unwrap();
        assert_eq!(why(&accounts, &objects, &token), want, "{name}");
    }
}

#[tokio::test]
async fn last_use_of_secret_tokens_is_recorded() {
    let objects = objects().await;
    let account = put(&objects, "serviceaccounts", "a", "u1").await;
    let accounts = accounts(AccountOptions::default(), &ec_pem());
    let token = accounts.issue_for_secret(&account, &json!({"metadata": {"name": "s"}})).await.unwrap();
    let invalid = "the token in secret n/s for service account n/a has been marked invalid. Use tokens from the TokenRequest \
                   API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' \
                   label from the secret to temporarily allow use of this token";
    let mut revision = None;
    for (since, want) in [("", ""), ("2024-01-01", invalid), ("soon", invalid)] {
        let mut secret = json!({"metadata": {"name": "s", "namespace": "n", "uid": "u2"}});
        secret.set_at(&["metadata", "labels", "kubernetes.io/legacy-token-invalid-since"], Value::from(since));
        secret.set_at(&["data", "token"], Value::from(STANDARD.encode(&token)));
        let key = Key::new(&Text::default(), &"secrets".into(), "n", "s");
        revision = Some(objects.put(&key, Encoded::of(&secret), revision).await.unwrap());
        assert_eq!(why(&accounts, &objects, &token), want, "{since}");
        assert_eq!(accounts.uses().take().into_iter().collect::<Vec<_>>(), ["n/s"]);
    }
    assert!(!why(&accounts, &objects, &token[..token.len() - 6]).is_empty() && accounts.uses().take().is_empty());
}

#[tokio::test]
async fn rejects_foreign_signatures() {
    let objects = objects().await;
    let account = put(&objects, "serviceaccounts", "a", "u1").await;
    let accounts = accounts(AccountOptions::default(), &rsa_pem());
    let now = clock::now_seconds();
    let (token, _) = accounts.issue(&account, None, accounts.audiences(), now, 600).await.unwrap();
    let other = self::accounts(AccountOptions::default(), &rsa_pem());
    let (foreign, _) = other.issue(&account, None, accounts.audiences(), now, 600).await.unwrap();
    let key = key_of(&accounts);
    let own_kid = with_part(&foreign, 0, |header| header.set_at(&["kid"], Value::from(&key.public.id)));
    let unsigned = with_part(&token, 0, |header| header.set_at(&["alg"], Value::from("none")));
    let unsigned = format!("{}.", unsigned.rsplit_once('.').unwrap().0);
    // the public key as the secret of an HMAC
    let symmetric = with_part(&token, 0, |header| header.set_at(&["alg"], Value::from("HS256")));
    let signed = symmetric.rsplit_once('.').unwrap().0;
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public_der(&key)), signed.as_bytes());
    let symmetric = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()));
    let other_account = with_part(&token, 1, |claims| {
        claims.set_at(&["kubernetes.io", "serviceaccount", "name"], Value::from("admin"));
    });
    let broken = "go-jose/go-jose: error in cryptographic primitive";
    let critical = with_part(&token, 0, |header| header.set_at(&["crit"], json!(["exp"])));
    let cases = [
        (token.clone(), ""),
        (foreign, "invalid signature, no keys found"),
        (own_kid, broken),
        (unsigned, broken),
        (symmetric, broken),
        (other_account, broken),
        (critical, broken),
        (with_part(&token, 0, |header| drop(header.remove_at(&["alg"]))), broken),
        (with_part(&token, 1, |claims| claims.set_at(&["iss"], Value::from("https://else.example.com"))), "-"),
        (token[..token.len() - 6].to_owned(), broken),
        (format!("{token}.x"), "-"),
        ("a.b.c".to_owned(), "-"),
        ("..".to_owned(), "-"),
        (String::new(), "-"),
    ];
    for (token, want) in cases {
        assert_eq!(why(&accounts, &objects, &token), want, "{token}");
    }
    assert_eq!(why(&Accounts::default(), &objects, &token), "invalid signature, no keys found");
}

/// The parts of a token of account `a`, to be changed and signed again.
struct Forge {
    objects: Arc<Objects>,
    accounts: Accounts,
    pair: KeyPair,
    token: String,
    header: Value,
    claims: Value,
}

impl Forge {
    async fn new() -> Forge {
        let objects = objects().await;
        let account = put(&objects, "serviceaccounts", "a", "u1").await;
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let accounts = accounts(AccountOptions::default(), &pem("PRIVATE KEY", der.as_ref()));
        let now = clock::now_seconds();
        let (token, _) = accounts.issue(&account, None, accounts.audiences(), now, 600).await.unwrap();
        let part = |index: usize| {
            let part = token.split('.').nth(index).unwrap();
            machinery::value::decode(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        let (header, claims) = (part(0), part(1));
        Forge { objects, accounts, pair, token, header, claims }
    }

    /// Signs with the key of the server.
    fn by_key(&self, text: &[u8]) -> Vec<u8> {
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature).unwrap();
        signature
    }

    fn with_header(&self, name: &str, value: Value) -> String {
        signed(&with(&self.header, &[name], value), &self.claims, |text| self.by_key(text))
    }

    fn with_claims(&self, claims: &Value) -> String {
        signed(&self.header, claims, |text| self.by_key(text))
    }

    fn check(&self, cases: impl IntoIterator<Item = (&'static str, String, &'static str)>) {
        for (kind, token, want) in cases {
            assert_eq!(why(&self.accounts, &self.objects, &token), want, "{kind}");
        }
    }
}

fn signed(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_json()), URL_SAFE_NO_PAD.encode(claims.to_json()));
    let signature = sign(text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Signs with a secret that both sides know.
fn by_secret(secret: &[u8]) -> impl Fn(&[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    move |text| hmac::sign(&key, text).as_ref().to_vec()
}

fn with(value: &Value, path: &[&str], field: Value) -> Value {
    let mut changed = value.clone();
    changed.set_at(path, field);
    changed
}

#[tokio::test]
async fn rejects_other_algorithms_and_keys_although_they_are_signed() {
    let forge = Forge::new().await;
    let broken = "go-jose/go-jose: error in cryptographic primitive";
    let unknown = "invalid signature, no keys found";
    let symmetric = with(&forge.header, &["alg"], Value::from("HS256"));
    let public = pem("PUBLIC KEY", &public_der(&key_of(&forge.accounts)));
    let own_key = with(&symmetric, &["jwk"], json!({"kty": "oct", "k": "YQ"}));
    let none = with(&forge.header, &["alg"], Value::from("None"));
    forge.check([
        ("as the server signs", forge.with_claims(&forge.claims), ""),
        ("None", signed(&none, &forge.claims, |_| vec![]), broken),
        ("HS256 by RSA", forge.with_header("alg", Value::from("HS256")), broken),
        ("the public key as a secret", signed(&symmetric, &forge.claims, by_secret(public.as_bytes())), broken),
        ("RS512 of a SHA-256", forge.with_header("alg", Value::from("RS512")), broken),
        ("another key id", forge.with_header("kid", Value::from("x")), unknown),
        ("a path for a key id", forge.with_header("kid", Value::from("../../service-account.key")), unknown),
        ("a key of its own", signed(&own_key, &forge.claims, by_secret(b"a")), broken),
        ("an empty signature", format!("{}.", forge.token.rsplit_once('.').unwrap().0), broken),
        ("two parts", forge.token.rsplit_once('.').unwrap().0.to_owned(), "-"),
        ("an escape", forge.token.replacen('.', "%20.", 1), "-"),
    ]);
}

#[tokio::test]
async fn rejects_other_claims_although_they_are_signed() {
    let forge = Forge::new().await;
    let claim = |path: &[&str], value: Value| forge.with_claims(&with(&forge.claims, path, value));
    let without = |name: &str| {
        let mut fewer = forge.claims.clone();
        fewer.remove_at(&[name]);
        forge.with_claims(&fewer)
    };
    let times = |from: i64, until: i64| {
        let now = clock::now_seconds();
        let times = [("iat", from), ("nbf", from), ("exp", until)];
        let changed = |claims, (name, time): (&str, i64)| with(&claims, &[name], Value::Int(now + time));
        forge.with_claims(&times.into_iter().fold(forge.claims.clone(), changed))
    };
    let account = |name: &str, uid: &str| json!({"name": name, "uid": uid});
    let place: &[&str] = &["kubernetes.io", "serviceaccount"];
    let mut of_stranger = with(&forge.claims, place, account("x", "1"));
    of_stranger.set_at(&["sub"], Value::from("system:serviceaccount:n:x"));
    forge.check([
        ("expired", times(-7200, -3600), "service account token has expired"),
        ("not yet", times(3600, 7200), "service account token is not valid yet"),
        ("never expires", without("exp"), "service account token has expired"),
        ("another issuer", claim(&["iss"], Value::from("https://evil.io")), "-"),
        ("no issuer", without("iss"), "-"),
        (
            "another audience",
            claim(&["aud"], json!(["other"])),
            r#"token audiences ["other"] is invalid for the target audiences ["https://kubernetes.default.svc.cluster.local"]"#,
        ),
        ("no account", claim(&["kubernetes.io"], json!({"namespace": "n"})), r#"serviceaccounts "" not found"#),
        ("another uid", claim(place, account("a", "u0")), "service account UID (u1) does not match claim (u0)"),
        ("an account that has never existed", forge.with_claims(&of_stranger), r#"serviceaccounts "x" not found"#),
        (
            "a deleted Secret",
            claim(&["kubernetes.io", "secret"], account("x", "1")),
            "service account token has been invalidated",
        ),
    ]);
}

#[tokio::test]
async fn public_keys_print_as_a_jwk_set() {
    let (rsa, ec) = (rsa_pem(), ec_pem());
    let options = AccountOptions { keys: vec![("ec".into(), ec.into_bytes())], ..Default::default() };
    let accounts = accounts(options, &rsa);
    let set = accounts.key_set().await;
    let keys = set.get("keys").and_then(Value::as_array).unwrap();
    let shown: Vec<_> = keys.iter().map(|key| (key.str_at(&["kty"]), key.str_at(&["alg"]))).collect();
    assert_eq!(shown, [("RSA", "RS256"), ("EC", "ES256")]);
    let length = |key: &Value, field: &str| URL_SAFE_NO_PAD.decode(key.str_at(&[field])).unwrap().len();
    assert_eq!((length(&keys[0], "n"), keys[0].str_at(&["e"])), (256, "AQAB"));
    assert_eq!((length(&keys[1], "x"), length(&keys[1], "y"), keys[1].str_at(&["crv"])), (32, 32, "P-256"));
    let configuration = accounts.configuration().await.unwrap();
    assert_eq!(configuration.at(&["id_token_signing_alg_values_supported"]), Some(&json!(["ES256", "RS256"])));
    let plain = AccountOptions { issuers: vec!["cluster".into()], ..Default::default() };
    assert!(self::accounts(plain, &rsa).configuration().await.is_none());
}

#[tokio::test]
async fn tokens_wait_for_the_signing_key() {
    let objects = objects().await;
    let account = put(&objects, "serviceaccounts", "a", "u1").await;
    for (key, want) in [(Ok(ec_pem()), Ok(())), (Err("no room".to_owned()), Err("no room".to_owned()))] {
        let accounts = Accounts::default();
        let (waiting, account) = (accounts.clone(), account.clone());
        let issued = base::task::spawn("waiting", async move {
            waiting.issue(&account, None, waiting.audiences(), clock::now_seconds(), 600).await.map(drop)
        });
        accounts.signing_key_wanted().await;
        assert!(!issued.is_finished());
        let set = accounts.set_signing_key(key.as_ref().map(String::as_bytes).map_err(Clone::clone));
        assert_eq!((set, issued.await.unwrap()), (want.clone(), want));
    }
}

#[test]
fn rejects_files_without_keys() {
    let with = |pem: &str| {
        let keys = vec![("file".to_owned(), pem.as_bytes().to_vec())];
        Accounts::new(AccountOptions { keys, ..Default::default() }).err().unwrap_or_default()
    };
    let cases = [
        (String::new(), "file cannot be used: it holds no key"),
        (pem("PUBLIC KEY", b"no"), "file cannot be used: it is not a public key"),
        (pem("PRIVATE KEY", b"no"), "file cannot be used: its private key cannot be used"),
        (pem("CERTIFICATE", b"no"), "file cannot be used: it holds a broken certificate"),
        (rsa_pem(), ""),
    ];
    for (pem, want) in cases {
        assert_eq!(with(&pem), want);
    }
}

/// A store that other servers write to, whose changes arrive here once they are let in.
struct Lagging {
    store: Arc<store::Memory>,
    /// Whether its head has been asked for, after which changes arrive.
    asked: tokio::sync::watch::Sender<bool>,
}

struct LaggingChanges(Box<dyn store::Changes>, tokio::sync::watch::Receiver<bool>);

impl store::Changes for LaggingChanges {
    fn next(&mut self) -> store::BoxFuture<'_, Result<store::Batch, store::StoreError>> {
        Box::pin(async move {
            let _ = self.1.wait_for(|asked| *asked).await;
            self.0.next().await
        })
    }
}

impl store::Store for Lagging {
    fn commit(&self, write: store::Write) -> store::BoxFuture<'_, Result<u64, store::Refused>> {
        self.store.commit(write)
    }
    fn snapshot(&self) -> store::BoxFuture<'_, Result<store::Snapshot, store::StoreError>> {
        self.store.snapshot()
    }
    fn history(&self, revisions: u64) -> store::BoxFuture<'_, Result<store::Snapshot, store::StoreError>> {
        self.store.history(revisions)
    }
    fn follow(&self, after: u64) -> store::BoxFuture<'_, Result<Box<dyn store::Changes>, store::StoreError>> {
        let receiver = self.asked.subscribe();
        Box::pin(async move {
            Ok(Box::new(LaggingChanges(self.store.follow(after).await?, receiver)) as Box<dyn store::Changes>)
        })
    }
    fn head(&self) -> store::BoxFuture<'_, Result<u64, store::StoreError>> {
        self.asked.send_replace(true);
        self.store.head()
    }
    fn compact(&self, before: u64) -> store::BoxFuture<'_, Result<(), store::StoreError>> {
        self.store.compact(before)
    }
    fn is_shared(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn new_tokens_of_other_servers_wait_for_their_account() {
    let memory = Arc::new(store::Memory::default());
    let lagging = Arc::new(Lagging { store: memory.clone(), asked: tokio::sync::watch::Sender::new(false) });
    let open = async |store: Arc<dyn store::Store>| {
        Objects::open(Storage::own(store), Default::default(), Box::new(|_, _, _| {})).await.unwrap()
    };
    let behind = open(lagging.clone()).await;
    let other = open(memory).await;
    let account = put(&other, "serviceaccounts", "a", "u1").await;
    let accounts = accounts(AccountOptions::default(), &ec_pem());
    let now = clock::now_seconds();
    // an old token asks nothing, a new one does, and what it asked for has arrived for all
    for (age, is_found, asks) in [(3000, false, false), (0, true, true), (3000, true, false)] {
        lagging.asked.send_replace(false);
        let (token, _) = accounts.issue(&account, None, accounts.audiences(), now - age, 6000).await.unwrap();
        let found = accounts.authenticate_new(&behind, &token, &[]).await.unwrap();
        assert_eq!((found.is_ok(), *lagging.asked.borrow()), (is_found, asks), "{age}");
    }
}
