//! Decoding, defaults and validation of AuthenticationConfiguration (`apiserver.config.k8s.io`). Errors name the field.

use machinery::field::{FieldError, FieldPath};
use machinery::{Text, Value, names};

use super::claims::{ClaimExpression, ClaimRule, ClaimScope, Claims, ExpressionResult, Mapping};
use super::keys::{Discovered, KeySource, of_set};
use super::{Issuer, texts};
use crate::authentication::jose::Algorithm;

const GROUP: &str = "apiserver.config.k8s.io";

/// Whether anonymous requests are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anonymous {
    pub enabled: bool,
    /// The paths for which they are allowed; empty for all.
    pub paths: Vec<Text>,
}

impl Default for Anonymous {
    fn default() -> Anonymous {
        Anonymous { enabled: true, paths: vec![] }
    }
}

impl Anonymous {
    pub fn allows(&self, path: &str) -> bool {
        self.enabled && (self.paths.is_empty() || self.paths.iter().any(|known| known == path))
    }
}

/// The content of the file.
#[derive(Debug)]
pub struct AuthenticationConfiguration {
    pub issuers: Vec<Issuer>,
    /// `None` if the configuration does not have the field.
    pub anonymous: Option<Anonymous>,
}

/// Validation errors, collected while the parts are built.
struct IssuerErrors {
    errors: Vec<FieldError>,
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or_default()
}

impl AuthenticationConfiguration {
    /// Reads a decoded AuthenticationConfiguration. In addition to upstream's fields, an issuer may have `jwks`, a JSON Web
    /// Key Set that is used instead of discovery. The error is one line.
    pub fn parse(value: &Value, algorithms: &[Algorithm]) -> Result<AuthenticationConfiguration, String> {
        let (version, kind) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
        let known = version.strip_prefix(GROUP).is_some_and(|v| matches!(v, "/v1" | "/v1beta1" | "/v1alpha1"));
        if !known || kind != "AuthenticationConfiguration" {
            return Err(format!("no kind {kind:?} is registered for version {version:?}"));
        }
        let mut reader = IssuerErrors { errors: vec![] };
        reader.unknown(value, &FieldPath::root(), &["apiVersion", "kind", "jwt", "anonymous"]);
        let path = FieldPath::new("jwt");
        let mut issuers: Vec<Issuer> = vec![];
        for (i, entry) in list(value, "jwt").iter().enumerate() {
            let path = path.index(i);
            if let Some(issuer) = reader.issuer(entry, &path, algorithms) {
                if issuers.iter().any(|other| other.url == issuer.url) {
                    let path = path.child("issuer").child("url");
                    reader.errors.push(FieldError::duplicate(&path, &Value::from(&issuer.url)));
                }
                issuers.push(issuer);
            }
        }
        let anonymous = value.get("anonymous").map(|anonymous| reader.anonymous(anonymous));
        let texts: Vec<String> = reader.errors.iter().map(ToString::to_string).collect();
        if !texts.is_empty() {
            return Err(machinery::status::aggregate(&texts));
        }
        Ok(AuthenticationConfiguration { issuers, anonymous })
    }
}

impl IssuerErrors {
    fn required(&mut self, path: &FieldPath, why: &str) {
        self.errors.push(FieldError::required(path, why));
    }

    fn invalid(&mut self, path: &FieldPath, value: &Value, why: impl Into<String>) {
        self.errors.push(FieldError::invalid(path, value, why.into()));
    }

    /// Reports unknown fields.
    fn unknown(&mut self, value: &Value, path: &FieldPath, known: &[&str]) {
        let Some(object) = value.as_object() else {
            if !value.is_null() {
                self.invalid(path, value, "must be an object");
            }
            return;
        };
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            let path = if path.as_str().is_empty() { FieldPath::new(key.as_str()) } else { path.child(key) };
            self.errors.push(FieldError::forbidden(&path, "unknown field"));
        }
    }

    fn anonymous(&mut self, value: &Value) -> Anonymous {
        let path = FieldPath::new("anonymous");
        self.unknown(value, &path, &["enabled", "conditions"]);
        let enabled = value.get("enabled").and_then(Value::as_bool).unwrap_or_default();
        let conditions = list(value, "conditions");
        if !enabled && !conditions.is_empty() {
            let why = "enabled should be set to true when conditions are defined";
            self.invalid(&path.child("conditions"), &Value::from(conditions.to_vec()), why);
        }
        let paths = conditions.iter().map(|condition| Text::from(condition.str_at(&["path"]))).collect();
        Anonymous { enabled, paths }
    }

    fn issuer(&mut self, entry: &Value, path: &FieldPath, algorithms: &[Algorithm]) -> Option<Issuer> {
        let known = ["issuer", "claimValidationRules", "claimMappings", "userValidationRules"];
        self.unknown(entry, path, &known);
        let null = Value::Null;
        let (issuer, issuer_path) = (entry.get("issuer").unwrap_or(&null), path.child("issuer"));
        let known = [
            "url",
            "discoveryURL",
            "certificateAuthority",
            "audiences",
            "audienceMatchPolicy",
            "jwks",
            "egressSelectorType",
        ];
        self.unknown(issuer, &issuer_path, &known);
        let url = self.url(issuer, &issuer_path.child("url"))?;
        let audiences = self.audiences(issuer, &issuer_path);
        let keys = self.keys(issuer, &issuer_path, &url);
        let claims = self.claims(entry, path);
        Some(Issuer { url, audiences, algorithms: algorithms.to_vec(), keys: keys?, claims: claims? })
    }

    fn url(&mut self, issuer: &Value, path: &FieldPath) -> Option<Text> {
        let url = issuer.str_at(&["url"]);
        let value = Value::from(url);
        let error = if url.is_empty() {
            self.required(path, "URL is required");
            return None;
        } else if !url.starts_with("https://") {
            "URL scheme must be https"
        } else if url["https://".len()..].split('/').next().is_some_and(|authority| authority.contains('@')) {
            "URL must not contain a username or password"
        } else if url.contains('?') {
            "URL must not contain a query"
        } else if url.contains('#') {
            "URL must not contain a fragment"
        } else {
            return Some(url.into());
        };
        self.invalid(path, &value, error);
        None
    }

    fn audiences(&mut self, issuer: &Value, path: &FieldPath) -> Vec<Text> {
        let audiences = texts(issuer.get("audiences"));
        let path_of = |name: &str| path.child(name);
        if audiences.is_empty() {
            self.required(&path_of("audiences"), &format!("at least one {}.audiences is required", path.as_str()));
        }
        for (i, audience) in audiences.iter().enumerate() {
            let path = path_of("audiences").index(i);
            if audience.is_empty() {
                self.required(&path, "audience can't be empty");
            } else if audiences[..i].contains(audience) {
                self.errors.push(FieldError::duplicate(&path, &Value::from(audience)));
            }
        }
        let policy = issuer.str_at(&["audienceMatchPolicy"]);
        if audiences.len() > 1 && policy != "MatchAny" {
            let why = "audienceMatchPolicy must be MatchAny for multiple audiences";
            self.invalid(&path_of("audienceMatchPolicy"), &Value::from(policy), why);
        } else if !policy.is_empty() && policy != "MatchAny" {
            let why = "audienceMatchPolicy must be empty or MatchAny for single audience";
            self.invalid(&path_of("audienceMatchPolicy"), &Value::from(policy), why);
        }
        audiences
    }

    fn keys(&mut self, issuer: &Value, path: &FieldPath, url: &str) -> Option<KeySource> {
        if let Some(set) = issuer.get("jwks") {
            let keys = of_set(set);
            if keys.is_empty() {
                self.required(&path.child("jwks"), "there is no usable signing key in it");
            }
            return Some(KeySource::Given(keys));
        }
        let given = issuer.str_at(&["discoveryURL"]);
        if given == url {
            self.invalid(&path.child("discoveryURL"), &Value::from(given), "discoveryURL must be different from URL");
        }
        let document = match given {
            "" => format!("{}/.well-known/openid-configuration", url.trim_end_matches('/')),
            given => given.to_owned(),
        };
        let roots = issuer.str_at(&["certificateAuthority"]).as_bytes();
        match Discovered::new(url, &document, roots) {
            Ok(discovered) => Some(KeySource::Discovered(Box::new(discovered))),
            Err(why) => {
                self.invalid(&path.child("certificateAuthority"), &Value::from("<omitted>"), why);
                None
            }
        }
    }

    fn claims(&mut self, entry: &Value, path: &FieldPath) -> Option<Claims> {
        let null = Value::Null;
        let (mappings, mappings_path) = (entry.get("claimMappings").unwrap_or(&null), path.child("claimMappings"));
        self.unknown(mappings, &mappings_path, &["username", "groups", "uid", "extra"]);
        let username = self.mapping(mappings, &mappings_path, "username");
        if username.is_none() && mappings.get("username").is_none() {
            self.required(&mappings_path.child("username"), "claim or expression is required");
        }
        let groups = self.mapping(mappings, &mappings_path, "groups");
        let uid = self.mapping(mappings, &mappings_path, "uid");
        let extra = self.extra(mappings, &mappings_path.child("extra"));
        let claim_rules = self.rules(entry, path, "claimValidationRules", ClaimScope::Claims);
        let user_rules = self.rules(entry, path, "userValidationRules", ClaimScope::User);
        let claims = Claims { username: username?, groups, uid, extra, claim_rules, user_rules };
        self.verified_email(&claims, &mappings_path.child("username").child("expression"));
        Some(claims)
    }

    fn expression(
        &mut self,
        text: &str,
        path: &FieldPath,
        scope: ClaimScope,
        result: ExpressionResult,
    ) -> Option<ClaimExpression> {
        let compiled = ClaimExpression::compile(text, scope, result);
        compiled.map_err(|why| self.invalid(path, &Value::from(text), why)).ok()
    }

    fn mapping(&mut self, mappings: &Value, path: &FieldPath, name: &str) -> Option<Mapping> {
        let value = mappings.get(name)?;
        let path = path.child(name);
        let has_prefix = name != "uid";
        let known: &[&str] = if has_prefix { &["claim", "prefix", "expression"] } else { &["claim", "expression"] };
        self.unknown(value, &path, known);
        let (claim, expression) = (value.str_at(&["claim"]), value.str_at(&["expression"]));
        let prefix = value.get("prefix").and_then(Value::as_str);
        if !claim.is_empty() && !expression.is_empty() {
            self.invalid(&path, &Value::from(""), "claim and expression can't both be set");
            return None;
        }
        if !expression.is_empty() {
            if let Some(prefix) = prefix {
                let why = "prefix can't be set when expression is set";
                self.invalid(&path.child("prefix"), &Value::from(prefix), why);
            }
            let path = path.child("expression");
            let compiled = self.expression(expression, &path, ClaimScope::Claims, ExpressionResult::Any);
            return compiled.map(Mapping::ClaimExpression);
        }
        if claim.is_empty() {
            if name == "username" {
                self.required(&path, "claim or expression is required");
            }
            return None;
        }
        if has_prefix && prefix.is_none() {
            let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
            self.required(&path.child("prefix"), why);
        }
        Some(Mapping::Claim { name: claim.into(), prefix: prefix.unwrap_or_default().into() })
    }

    fn extra(&mut self, mappings: &Value, path: &FieldPath) -> Vec<(Text, ClaimExpression)> {
        let (mut out, mut seen) = (vec![], vec![]);
        for (i, entry) in list(mappings, "extra").iter().enumerate() {
            let path = path.index(i);
            let (key, expression) = (entry.str_at(&["key"]), entry.str_at(&["valueExpression"]));
            self.extra_key(key, &path.child("key"));
            if seen.contains(&key) {
                self.errors.push(FieldError::duplicate(&path.child("key"), &Value::from(key)));
                continue;
            }
            seen.push(key);
            if expression.is_empty() {
                self.required(&path.child("valueExpression"), "");
                continue;
            }
            let expression_path = path.child("valueExpression");
            let compiled = self.expression(expression, &expression_path, ClaimScope::Claims, ExpressionResult::Any);
            out.extend(compiled.map(|compiled| (key.into(), compiled)));
        }
        out
    }

    fn extra_key(&mut self, key: &str, path: &FieldPath) {
        if key.is_empty() {
            self.required(path, "");
        }
        for (part, why) in names::domain_prefixed_path(key) {
            self.invalid(path, &Value::from(part), why);
        }
        if key != key.to_lowercase() {
            self.invalid(path, &Value::from(key), "must be lowercase");
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_in =
            |parent: &str| domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        if is_in("kubernetes.io") || is_in("k8s.io") {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            self.invalid(path, &Value::from(key), why);
        }
    }

    fn rules(&mut self, entry: &Value, path: &FieldPath, name: &str, subject: ClaimScope) -> Vec<ClaimRule> {
        let mut out = vec![];
        for (i, rule) in list(entry, name).iter().enumerate() {
            let path = path.child(name).index(i);
            let of_claims = subject == ClaimScope::Claims;
            let known: &[&str] = if of_claims {
                &["claim", "requiredValue", "expression", "message"]
            } else {
                &["expression", "message"]
            };
            self.unknown(rule, &path, known);
            let (claim, text) = (rule.str_at(&["claim"]), rule.str_at(&["expression"]));
            let message = Text::from(rule.str_at(&["message"]));
            match (claim.is_empty() || !of_claims, text.is_empty()) {
                (false, false) => self.invalid(&path, &Value::from(claim), "claim and expression can't both be set"),
                (true, true) if of_claims => self.required(&path, "claim or expression is required"),
                (true, true) => self.required(&path.child("expression"), "expression is required"),
                (false, true) => {
                    if !message.is_empty() {
                        let why = "message can't be set when claim is set";
                        self.invalid(&path.child("message"), &Value::from(&message), why);
                    }
                    out.push(ClaimRule::Required {
                        claim: claim.into(),
                        value: rule.str_at(&["requiredValue"]).into(),
                    });
                }
                (true, false) => {
                    let expression_path = path.child("expression");
                    let compiled = self.expression(text, &expression_path, subject, ExpressionResult::Bool);
                    out.extend(compiled.map(|expression| ClaimRule::ClaimExpression { expression, message }));
                }
            }
        }
        out
    }

    /// Requires that an expression for the user name from `claims.email` also uses `claims.email_verified`.
    fn verified_email(&mut self, claims: &Claims, path: &FieldPath) {
        let Mapping::ClaimExpression(username) = &claims.username else { return };
        let extra = claims.extra.iter().map(|(_, expression)| &expression.text);
        let rules = claims.claim_rules.iter().filter_map(|rule| match rule {
            ClaimRule::ClaimExpression { expression, .. } => Some(&expression.text),
            ClaimRule::Required { .. } => None,
        });
        let mut all = std::iter::once(&username.text).chain(extra).chain(rules);
        if selects(&username.text, "email") && !all.any(|text| selects(text, "email_verified")) {
            let why = "claims.email_verified must be used in claimMappings.username.expression or \
                claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used \
                in claimMappings.username.expression";
            self.invalid(path, &Value::from(&username.text), why);
        }
    }
}

fn selects(expression: &str, claim: &str) -> bool {
    let mut rest = expression;
    while let Some((_, selection)) = rest.split_once("claims.") {
        rest = selection;
        let name = selection.trim_start_matches('?');
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        if &name[..end] == claim {
            return true;
        }
    }
    false
}
