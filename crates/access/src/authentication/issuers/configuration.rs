//! Decoding, defaults and validation of AuthenticationConfiguration (`apiserver.config.k8s.io`). Errors name the field.

use base::configuration::{API_VERSIONS, ConfigurationErrors, ConfigurationKind, UnknownFields};
use machinery::{FieldPath, Text, Value, names};

use super::claims::{ClaimExpression, ClaimRule, ClaimScope, Claims, ExpressionResult, Mapping};
use super::keys::{Discovered, KeySource, of_set};
use super::{Issuer, texts};
use crate::authentication::jose::Algorithm;

const KIND: ConfigurationKind = ConfigurationKind {
    api_versions: API_VERSIONS,
    go: "apiserver_config.v1.AuthenticationConfiguration",
    unknown_fields: UnknownFields::Refused,
};

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
#[derive(Debug, Default)]
pub struct AuthenticationConfiguration {
    pub issuers: Vec<Issuer>,
    /// `None` if the configuration does not have the field.
    pub anonymous: Option<Anonymous>,
}

/// Builds the issuers, and collects errors.
#[derive(Default)]
struct IssuerReader {
    errors: ConfigurationErrors,
}

impl AuthenticationConfiguration {
    /// Reads a decoded AuthenticationConfiguration. In addition to upstream's fields, an issuer may have `jwks`, a JSON Web
    /// Key Set that is used instead of discovery. Fails with a one-line message.
    pub fn parse(value: &Value, algorithms: &[Algorithm]) -> Result<AuthenticationConfiguration, String> {
        let value = &KIND.read(value)?;
        let mut reader = IssuerReader::default();
        let path = FieldPath::new("jwt");
        let mut issuers: Vec<Issuer> = vec![];
        for (i, entry) in value.items_at(&["jwt"]).iter().enumerate() {
            let path = path.index(i);
            if let Some(issuer) = reader.issuer(entry, &path, algorithms) {
                if issuers.iter().any(|other| other.url == issuer.url) {
                    let path = path.child("issuer").child("url");
                    reader.errors.duplicate(&path, &issuer.url);
                }
                issuers.push(issuer);
            }
        }
        let anonymous = value.get("anonymous").map(|anonymous| reader.anonymous(anonymous));
        reader.errors.check()?;
        Ok(AuthenticationConfiguration { issuers, anonymous })
    }
}

impl IssuerReader {
    fn anonymous(&mut self, value: &Value) -> Anonymous {
        let path = FieldPath::new("anonymous");
        let enabled = value.is_true_at(&["enabled"]);
        let conditions = value.items_at(&["conditions"]);
        if !enabled && !conditions.is_empty() {
            let why = "enabled should be set to true when conditions are defined";
            self.errors.invalid(&path.child("conditions"), conditions.to_vec(), why);
        }
        let paths = conditions.iter().map(|condition| Text::from(condition.str_at(&["path"]))).collect();
        Anonymous { enabled, paths }
    }

    fn issuer(&mut self, entry: &Value, path: &FieldPath, algorithms: &[Algorithm]) -> Option<Issuer> {
        let null = Value::Null;
        let (issuer, issuer_path) = (entry.get("issuer").unwrap_or(&null), path.child("issuer"));
        let url = self.url(issuer, &issuer_path.child("url"))?;
        let audiences = self.audiences(issuer, &issuer_path);
        let keys = self.keys(issuer, &issuer_path, &url);
        let claims = self.claims(entry, path);
        Some(Issuer { url, audiences, algorithms: algorithms.to_vec(), keys: keys?, claims: claims? })
    }

    fn url(&mut self, issuer: &Value, path: &FieldPath) -> Option<Text> {
        let url = issuer.str_at(&["url"]);
        let error = if url.is_empty() {
            self.errors.required(path, "URL is required");
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
        self.errors.invalid(path, url, error);
        None
    }

    fn audiences(&mut self, issuer: &Value, path: &FieldPath) -> Vec<Text> {
        let audiences = texts(issuer.get("audiences"));
        let path_of = |name: &str| path.child(name);
        if audiences.is_empty() {
            self.errors
                .required(&path_of("audiences"), format!("at least one {}.audiences is required", path.as_str()));
        }
        for (i, audience) in audiences.iter().enumerate() {
            let path = path_of("audiences").index(i);
            if audience.is_empty() {
                self.errors.required(&path, "audience can't be empty");
            } else if audiences[..i].contains(audience) {
                self.errors.duplicate(&path, audience);
            }
        }
        let policy = issuer.str_at(&["audienceMatchPolicy"]);
        if audiences.len() > 1 && policy != "MatchAny" {
            let why = "audienceMatchPolicy must be MatchAny for multiple audiences";
            self.errors.invalid(&path_of("audienceMatchPolicy"), policy, why);
        } else if !policy.is_empty() && policy != "MatchAny" {
            let why = "audienceMatchPolicy must be empty or MatchAny for single audience";
            self.errors.invalid(&path_of("audienceMatchPolicy"), policy, why);
        }
        audiences
    }

    fn keys(&mut self, issuer: &Value, path: &FieldPath, url: &str) -> Option<KeySource> {
        if let Some(set) = issuer.get("jwks") {
            let keys = of_set(set);
            if keys.is_empty() {
                self.errors.required(&path.child("jwks"), "there is no usable signing key in it");
            }
            return Some(KeySource::Given(keys));
        }
        let given = issuer.str_at(&["discoveryURL"]);
        if given == url {
            self.errors.invalid(&path.child("discoveryURL"), given, "discoveryURL must be different from URL");
        }
        let document = match given {
            "" => format!("{}/.well-known/openid-configuration", url.trim_end_matches('/')),
            given => given.to_owned(),
        };
        let roots = issuer.str_at(&["certificateAuthority"]).as_bytes();
        match Discovered::new(url, &document, roots) {
            Ok(discovered) => Some(KeySource::Discovered(Box::new(discovered))),
            Err(why) => {
                self.errors.invalid(&path.child("certificateAuthority"), "<omitted>", why);
                None
            }
        }
    }

    fn claims(&mut self, entry: &Value, path: &FieldPath) -> Option<Claims> {
        let null = Value::Null;
        let (mappings, mappings_path) = (entry.get("claimMappings").unwrap_or(&null), path.child("claimMappings"));
        let username = self.mapping(mappings, &mappings_path, "username");
        if username.is_none() && mappings.get("username").is_none() {
            self.errors.required(&mappings_path.child("username"), "claim or expression is required");
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
        compiled.map_err(|why| self.errors.invalid(path, text, why)).ok()
    }

    fn mapping(&mut self, mappings: &Value, path: &FieldPath, name: &str) -> Option<Mapping> {
        let value = mappings.get(name)?;
        let path = path.child(name);
        let has_prefix = name != "uid";
        let (claim, expression) = (value.str_at(&["claim"]), value.str_at(&["expression"]));
        let prefix = value.get("prefix").and_then(Value::as_str);
        if !claim.is_empty() && !expression.is_empty() {
            self.errors.invalid(&path, "", "claim and expression can't both be set");
            return None;
        }
        if !expression.is_empty() {
            if let Some(prefix) = prefix {
                let why = "prefix can't be set when expression is set";
                self.errors.invalid(&path.child("prefix"), prefix, why);
            }
            let path = path.child("expression");
            let compiled = self.expression(expression, &path, ClaimScope::Claims, ExpressionResult::Any);
            return compiled.map(Mapping::ClaimExpression);
        }
        if claim.is_empty() {
            if name == "username" {
                self.errors.required(&path, "claim or expression is required");
            }
            return None;
        }
        if has_prefix && prefix.is_none() {
            let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
            self.errors.required(&path.child("prefix"), why);
        }
        Some(Mapping::Claim { name: claim.into(), prefix: prefix.unwrap_or_default().into() })
    }

    fn extra(&mut self, mappings: &Value, path: &FieldPath) -> Vec<(Text, ClaimExpression)> {
        let (mut out, mut seen) = (vec![], vec![]);
        for (i, entry) in mappings.items_at(&["extra"]).iter().enumerate() {
            let path = path.index(i);
            let (key, expression) = (entry.str_at(&["key"]), entry.str_at(&["valueExpression"]));
            self.extra_key(key, &path.child("key"));
            if seen.contains(&key) {
                self.errors.duplicate(&path.child("key"), key);
                continue;
            }
            seen.push(key);
            if expression.is_empty() {
                self.errors.required(&path.child("valueExpression"), "");
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
            self.errors.required(path, "");
        }
        for (part, why) in names::domain_prefixed_path(key) {
            self.errors.invalid(path, part, why);
        }
        if key != key.to_lowercase() {
            self.errors.invalid(path, key, "must be lowercase");
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_in =
            |parent: &str| domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        if is_in("kubernetes.io") || is_in("k8s.io") {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            self.errors.invalid(path, key, why);
        }
    }

    fn rules(&mut self, entry: &Value, path: &FieldPath, name: &str, subject: ClaimScope) -> Vec<ClaimRule> {
        let mut out = vec![];
        for (i, rule) in entry.items_at(&[name]).iter().enumerate() {
            let path = path.child(name).index(i);
            let of_claims = subject == ClaimScope::Claims;
            let (claim, text) = (rule.str_at(&["claim"]), rule.str_at(&["expression"]));
            let message = Text::from(rule.str_at(&["message"]));
            match (claim.is_empty() || !of_claims, text.is_empty()) {
                (false, false) => self.errors.invalid(&path, claim, "claim and expression can't both be set"),
                (true, true) if of_claims => self.errors.required(&path, "claim or expression is required"),
                (true, true) => self.errors.required(&path.child("expression"), "expression is required"),
                (false, true) => {
                    if !message.is_empty() {
                        let why = "message can't be set when claim is set";
                        self.errors.invalid(&path.child("message"), &message, why);
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
            self.errors.invalid(path, &username.text, why);
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
