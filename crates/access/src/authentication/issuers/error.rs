//! Why a token of an issuer is refused. TokenReviews show the texts, which are kube-apiserver's.

use std::sync::Arc;

use base::webhook::{CallError, SettingsError};
use machinery::Text;
use machinery::time::rfc3339;
use machinery::value::quote;
use thiserror::Error;

use crate::authentication::jose::SignatureError;

#[derive(Debug, Error)]
pub enum IssuerError {
    #[error("oidc: verify token: {0}")]
    Unverified(#[from] VerificationError),
    #[error("oidc: {0}")]
    Claims(#[from] ClaimError),
}

/// Why the claims of a token cannot be trusted.
#[derive(Debug, Error)]
pub enum VerificationError {
    #[error("oidc: expected audience {wanted} got {given}")]
    Audience { wanted: String, given: String },
    #[error("oidc: token has no expiry")]
    NoExpiry,
    #[error("oidc: token is expired (Token Expiry: {})", rfc3339(*.0))]
    Expired(i64),
    #[error("oidc: current time {} before the nbf (not before) time: {}", rfc3339(*now), rfc3339(*begin))]
    NotBefore { now: i64, begin: i64 },
    /// Shared by the tokens that come before the next read.
    #[error("fetching keys {0}")]
    Keys(#[source] Arc<KeysError>),
    #[error("failed to verify signature: {0}")]
    Signature(#[from] SignatureError),
}

/// Why the keys of an issuer cannot be read.
#[derive(Debug, Error)]
pub enum KeysError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(
        "oidc: issuer did not match the issuer returned by provider, expected {} got {}",
        quote(expected),
        quote(got)
    )]
    Issuer { expected: String, got: String },
}

/// Why claims have no user.
#[derive(Debug, Error)]
pub enum ClaimError {
    #[error("email not verified")]
    Email,
    #[error("error evaluating {rules} validation rule: {source}")]
    Rule { rules: &'static str, source: Box<ClaimError> },
    #[error("parse {field} claim {}: no string", quote(name))]
    NotText { field: &'static str, name: Text },
    #[error("parse {field} claim {}: claim not present", quote(name))]
    Absent { field: &'static str, name: Text },
    #[error("parse claim {0}: no string")]
    RequiredNotText(Text),
    #[error("required claim {0} not present in ID token")]
    RequiredAbsent(Text),
    #[error("required claim {claim} value does not match. Got = {got}, want = {want}")]
    Mismatch { claim: Text, got: Text, want: Text },
    #[error("validation expression '{expression}' failed{}{message}", if message.is_empty() { "" } else { ": " })]
    NotHeld { expression: Text, message: Text },
    #[error(transparent)]
    Value(#[from] cel::Error),
    #[error("expression '{expression}' resulted in error: {source}")]
    Evaluation { expression: Text, source: cel::Error },
    /// The result of an expression is no JSON.
    #[error("expression '{expression}' resulted in error: {why}")]
    NotJson { expression: Text, why: String },
    #[error("error evaluating expression '{expression}': must evaluate to {wanted}")]
    Type { expression: Text, wanted: &'static str },
}
