//! The claims of ServiceAccount tokens, parsed to go-jose's types: a token is refused if a claim has another type,
//! even though its signature is valid.

use base::metrics::METRICS;
use machinery::value::quote_list;
use machinery::{Text, Value};

use super::CredentialWarnings;
use crate::limits;

/// The claims of a token whose signature is valid. The claims of RFC 7519 are parsed. Other claims are kept as JSON.
pub struct AccountClaims {
    pub issuer: Text,
    pub subject: Text,
    /// If empty, the token is for this server's own audiences.
    pub audiences: Vec<Text>,
    pub id: Text,
    expiry: Option<i64>,
    not_before: Option<i64>,
    issued_at: Option<i64>,
    warn_after: Option<i64>,
    all: Value,
}

impl AccountClaims {
    /// Parses the claims. An error has go-jose's text, because TokenReviews show it.
    pub fn parse(all: &Value) -> Result<AccountClaims, String> {
        let claims = AccountClaims {
            issuer: text(all, "iss")?,
            subject: text(all, "sub")?,
            audiences: audiences(all)?,
            id: text(all, "jti")?,
            expiry: date(all, "exp")?,
            not_before: date(all, "nbf")?,
            issued_at: date(all, "iat")?,
            warn_after: all.get("kubernetes.io").map(|claims| date(claims, "warnafter")).transpose()?.flatten(),
            all: all.clone(),
        };
        Ok(claims)
    }

    /// The realm (workspace) that issued the token; empty for the server's own API.
    pub fn realm(&self) -> &str {
        self.all.str_at(&[super::REALM_CLAIM])
    }

    /// A claim that is not part of RFC 7519; null if there is none.
    pub fn private(&self, name: &str) -> &Value {
        self.all.get(name).unwrap_or(&Value::Null)
    }

    /// The audiences in `wanted` that the token is for. If the token or the request names none, it means the server's
    /// own.
    pub fn accepted_audiences(&self, wanted: &[Text], own: &[Text]) -> Result<Vec<Text>, String> {
        let given = if self.audiences.is_empty() { own } else { &self.audiences };
        let wanted = if wanted.is_empty() { own } else { wanted };
        let accepted: Vec<Text> = given.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
        if accepted.is_empty() {
            let (given, wanted) = (quote_list(given), quote_list(wanted));
            return Err(format!("token audiences {given} is invalid for the target audiences {wanted}"));
        }
        Ok(accepted)
    }

    /// Refuses a token that is not valid yet, has expired, or never expires: no API server issues a token without an
    /// expiry.
    pub fn check_times(&self, now: i64) -> Result<(), String> {
        let (earliest, latest) = (now - limits::ACCOUNT_LEEWAY, now + limits::ACCOUNT_LEEWAY);
        let refused = if self.not_before.is_some_and(|begin| latest < begin) {
            "service account token is not valid yet"
        } else if self.expiry.is_none_or(|expiry| earliest > expiry) {
            "service account token has expired"
        } else if self.issued_at.is_some_and(|issued| latest < issued) {
            "service account token is issued in the future"
        } else {
            return Ok(());
        };
        Err(refused.to_owned())
    }

    /// Whether the token is so new that the objects it refers to may not have arrived from another server yet.
    pub fn is_new(&self, now: i64) -> bool {
        self.issued_at.is_some_and(|issued| now.abs_diff(issued) <= limits::ACCOUNT_NEW)
    }

    /// Counts a token that is valid for longer than its client is expected to use it. If the client should have
    /// renewed it by now, the audit event is annotated.
    pub fn warn_of_age(&self, now: i64, remarks: &mut CredentialWarnings) {
        match self.warn_after {
            None | Some(0) => {}
            Some(warn_after) if now > warn_after => {
                let (subject, seconds) = (&self.subject, now - warn_after);
                let age = format!("subject: {subject}, seconds after warning threshold: {seconds}");
                remarks.annotations.push(("authentication.k8s.io/stale-token", Text::from(age)));
                METRICS.tokens.stale.inc();
            }
            Some(_) => {
                METRICS.tokens.valid.inc();
            }
        }
    }
}

fn text(claims: &Value, name: &str) -> Result<Text, String> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(Text::default()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => {
            let kind = other.json_type();
            Err(format!("json: cannot unmarshal {kind} into Go value of type string"))
        }
    }
}

fn audiences(claims: &Value) -> Result<Vec<Text>, String> {
    let wrong = || "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience".to_owned();
    match claims.get("aud") {
        None => Ok(vec![]),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(list)) => list.iter().map(|item| item.as_str().map(Text::from).ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
    }
}

/// A time in seconds since 1970; fractions are dropped.
fn date(claims: &Value, name: &str) -> Result<Option<i64>, String> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_float() {
            Some(seconds) => Ok(Some(seconds as i64)),
            None => Err("go-jose/go-jose/jwt: expected number value to unmarshal NumericDate".to_owned()),
        },
    }
}
