//! Tokens of OpenID Connect issuers, by a structured AuthenticationConfiguration (KEP-3331).
//!
//! Invariant: claims are used only after the signature, the audiences and the times of the token have been verified.

mod claims;
mod configuration;
mod keys;

use base::clock;
use base::request::User;
use machinery::value::quote_list;
use machinery::{Text, Value};

use super::jose::{Algorithm, Unverified};
use crate::limits;
use claims::Claims;
pub use configuration::{Anonymous, AuthenticationConfiguration};
use keys::KeySource;

/// An issuer of tokens, and the mapping of its claims to users.
#[derive(Debug)]
pub struct Issuer {
    url: Text,
    audiences: Vec<Text>,
    algorithms: Vec<Algorithm>,
    keys: KeySource,
    claims: Claims,
}

impl Issuer {
    /// Authenticates a token. `None` if it has another issuer; the error says why it is invalid.
    pub async fn authenticate(&self, token: &str) -> Option<Result<User, String>> {
        let token = Unverified::parse(token)?;
        if token.claims.str_at(&["iss"]) != self.url {
            return None;
        }
        Some(self.user(&token).await.map_err(|why| format!("oidc: {why}")))
    }

    async fn user(&self, token: &Unverified<'_>) -> Result<User, String> {
        let claims = self.verified(token).await.map_err(|why| format!("verify token: {why}"))?;
        self.claims.user(claims)
    }

    async fn verified<'t>(&self, token: &'t Unverified<'_>) -> Result<&'t Value, String> {
        let audiences = texts(token.claims.get("aud"));
        if !audiences.iter().any(|audience| self.audiences.contains(audience)) {
            let wanted = machinery::value::quote(self.audiences.first().map_or("", Text::as_str));
            return Err(format!("oidc: expected audience {wanted} got {}", quote_list(&audiences)));
        }
        check_times(&token.claims, clock::machine_seconds())?;
        let keys = self.keys.for_token(token.key_id()).await?;
        let failed = |why: &str| format!("failed to verify signature: {why}");
        token.verify(&keys, &self.algorithms).map_err(failed)
    }
}

/// The strings of a string or a list of strings.
fn texts(value: Option<&Value>) -> Vec<Text> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(Text::from).collect(),
        _ => vec![],
    }
}

fn check_times(claims: &Value, now: i64) -> Result<(), String> {
    let time = |name: &str| claims.get(name).and_then(Value::as_float).map(|seconds| seconds as i64);
    match time("exp") {
        Some(expiry) if now < expiry => {}
        Some(expiry) => {
            return Err(format!("oidc: token is expired (Token Expiry: {})", machinery::time::rfc3339(expiry)));
        }
        None => return Err("oidc: token has no expiry".to_owned()),
    }
    match time("nbf") {
        Some(begin) if now + limits::NOT_BEFORE_LEEWAY < begin => Err(format!(
            "oidc: current time {} before the nbf (not before) time: {}",
            machinery::time::rfc3339(now),
            machinery::time::rfc3339(begin)
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
