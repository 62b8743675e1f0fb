//! Tokens of OpenID Connect issuers, by a structured AuthenticationConfiguration (KEP-3331).
//!
//! Invariant: claims are used only after the signature, the audiences and the times of the token have been verified.

mod claims;
mod configuration;
mod error;
mod keys;

use base::clock;
use base::request::User;
use machinery::value::quote_list;
use machinery::{Text, Value};

use super::jose::{Algorithm, Unverified};
use crate::limits;
use claims::Claims;
pub use configuration::{Anonymous, AuthenticationConfiguration};
use error::{IssuerError, VerificationError};
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
    pub async fn authenticate(&self, token: &str) -> Option<Result<User, IssuerError>> {
        let token = Unverified::parse(token)?;
        if token.claims.str_at(&["iss"]) != self.url {
            return None;
        }
        Some(self.user(&token).await)
    }

    async fn user(&self, token: &Unverified<'_>) -> Result<User, IssuerError> {
        Ok(self.claims.user(self.verified(token).await?)?)
    }

    async fn verified<'t>(&self, token: &'t Unverified<'_>) -> Result<&'t Value, VerificationError> {
        let audiences = texts(token.claims.get("aud"));
        if !audiences.iter().any(|audience| self.audiences.contains(audience)) {
            let wanted = machinery::value::quote(self.audiences.first().map_or("", Text::as_str));
            return Err(VerificationError::Audience { wanted, given: quote_list(&audiences) });
        }
        check_times(&token.claims, clock::machine_seconds())?;
        let keys = self.keys.for_token(token.key_id()).await?;
        Ok(token.verify(&keys, &self.algorithms)?)
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

fn check_times(claims: &Value, now: i64) -> Result<(), VerificationError> {
    let time = |name: &str| claims.get(name).and_then(Value::as_float).map(|seconds| seconds as i64);
    match time("exp") {
        Some(expiry) if now < expiry => {}
        Some(expiry) => return Err(VerificationError::Expired(expiry)),
        None => return Err(VerificationError::NoExpiry),
    }
    match time("nbf") {
        Some(begin) if now + limits::NOT_BEFORE_LEEWAY < begin => Err(VerificationError::NotBefore { now, begin }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
