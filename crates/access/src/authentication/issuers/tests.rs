use machinery::json;

use super::claims::{ClaimExpression, ClaimScope, Claims, ExpressionResult, Mapping};
use super::*;

fn configuration(jwt: Value) -> Result<AuthenticationConfiguration, String> {
    let value = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt});
    AuthenticationConfiguration::parse(&value, &Algorithm::ALL)
}

fn entry(change: impl FnOnce(&mut Value)) -> Value {
    let mut entry = json!({
        "issuer": {"url": "https://i.io", "audiences": ["a"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}}
    });
    change(&mut entry);
    json!([entry])
}

#[test]
fn errors_name_the_invalid_value() {
    type Case = (&'static [&'static str], Value, &'static str);
    let cases: [Case; 15] = [
        (&["issuer", "url"], json!(""), "jwt[0].issuer.url: Required value: URL is required"),
        (
            &["issuer", "url"],
            json!("http://i.io"),
            "jwt[0].issuer.url: Invalid value: \"http://i.io\": URL scheme must be https",
        ),
        (
            &["issuer", "audiences"],
            json!(["a", "b"]),
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
        (&["issuer", "audiences"], json!([]), "jwt[0].issuer.audiences: Required value"),
        (&["issuer", "audiences"], json!(["a", "a"]), "[jwt[0].issuer.audiences[1]: Duplicate value: \"a\""),
        (&["issuer", "boat"], json!(1), "strict decoding error: unknown field \"jwt[0].issuer.boat\""),
        (&["issuer", "jwks"], json!({"keys": []}), "jwt[0].issuer.jwks: Required value: there is no usable"),
        (
            &["claimMappings", "username"],
            json!({"claim": "sub"}),
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set.",
        ),
        (
            &["claimValidationRules"],
            json!([{"expression": "claims.sub"}]),
            "jwt[0].claimValidationRules[0].expression: Invalid value: \"claims.sub\": must evaluate to bool",
        ),
        (
            &["claimMappings", "extra"],
            json!([{"key": "k", "valueExpression": "claims.k"}]),
            "jwt[0].claimMappings.extra[0].key: Invalid value: \"k\": must be a domain-prefixed path",
        ),
        (
            &["claimMappings", "extra"],
            json!([{"key": "a.k8s.io/k", "valueExpression": "claims.k"}]),
            "jwt[0].claimMappings.extra[0].key: Invalid value: \"a.k8s.io/k\": k8s.io, kubernetes.io and their subdomains",
        ),
        (
            &["claimMappings", "extra"],
            json!([{"valueExpression": "claims.k"}]),
            "jwt[0].claimMappings.extra[0].key: Required value",
        ),
        (
            &["claimValidationRules"],
            json!([{"claim": "c", "expression": "true"}]),
            "jwt[0].claimValidationRules[0]: Invalid value: \"c\": claim and expression can't both be set",
        ),
        (
            &["userValidationRules"],
            json!([{"expression": "user.nickname == ''"}]),
            "jwt[0].userValidationRules[0].expression: Invalid value: \"user.nickname == ''\": compilation failed: ",
        ),
        (
            &["claimMappings", "username"],
            json!({"expression": "claims.email"}),
            "jwt[0].claimMappings.username.expression: Invalid value: \"claims.email\": claims.email_verified must be used",
        ),
    ];
    for (path, value, want) in cases {
        let error = configuration(entry(|entry| entry.set_at(path, value))).unwrap_err();
        assert!(error.starts_with(want), "{error}");
    }
    assert!(configuration(entry(|_| {})).is_ok());
    let wrong = AuthenticationConfiguration::parse(&json!({"kind": "Other"}), &Algorithm::ALL).unwrap_err();
    assert_eq!(wrong, "no kind \"Other\" is registered for version \"\"");
}

#[test]
fn claims_map_to_user() {
    let by_claim = |name: &str, prefix: &str| Mapping::Claim { name: name.into(), prefix: prefix.into() };
    let of = |username: Mapping, groups: Mapping, claims: Value| {
        let none = (vec![], vec![], vec![]);
        let claims_of = Claims {
            username,
            groups: Some(groups),
            uid: None,
            extra: none.0,
            claim_rules: none.1,
            user_rules: none.2,
        };
        claims_of.user(&claims).map(|user| (user.name, user.groups))
    };
    let claims = json!({"sub": "ann", "g": ["a", "b"], "one": "c", "n": 1, "email": "a@b.io", "email_verified": false});
    let found = of(by_claim("sub", "p:"), by_claim("g", "q:"), claims.clone()).unwrap();
    assert_eq!(found.0, "p:ann");
    assert_eq!(found.1, ["q:a", "q:b", "system:authenticated"]);
    assert_eq!(of(by_claim("sub", ""), by_claim("one", ""), claims.clone()).unwrap().1[0], "c");
    assert_eq!(of(by_claim("sub", ""), by_claim("absent", ""), claims.clone()).unwrap().1.len(), 1);
    let refused = [("absent", "claim not present"), ("n", "no string"), ("email", "email not verified")];
    for (claim, why) in refused {
        let error = of(by_claim(claim, ""), by_claim("g", ""), claims.clone()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let expression = |text: &str| {
        Mapping::ClaimExpression(ClaimExpression::compile(text, ClaimScope::Claims, ExpressionResult::Any).unwrap())
    };
    let found = of(by_claim("sub", ""), expression("claims.g.filter(g, g != 'a')"), claims.clone()).unwrap();
    assert_eq!(found.1[0], "b");
    let error = of(by_claim("sub", ""), expression("claims.absent"), claims).unwrap_err().to_string();
    assert!(error.contains("no such key: absent"), "{error}");
}

#[test]
fn times_are_checked() {
    let now = 1_000_000;
    let of = |claims: Value| check_times(&claims, now).map_err(|error| error.to_string());
    assert!(of(json!({"exp": 1_000_001})).is_ok());
    assert!(of(json!({"exp": 1_000_001, "nbf": 1_000_200})).is_ok());
    assert!(of(json!({"exp": 1_000_000})).unwrap_err().contains("token is expired"));
    assert!(of(json!({"exp": 2_000_000, "nbf": 1_000_301})).unwrap_err().contains("not before"));
    assert!(of(json!({})).is_err());
}
