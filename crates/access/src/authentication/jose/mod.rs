//! Parsing, signing and verification of JSON Web Tokens in the compact form (RFC 7515, 7519). Callers check the claims.

mod algorithm;
mod error;
mod keys;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use machinery::{Value, json};

pub use algorithm::Algorithm;
pub use error::SignatureError;
pub use keys::{PublicKey, SigningKey, public_keys};

/// A parsed token that has not been verified.
pub struct Unverified<'a> {
    header: Value,
    pub claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Unverified<'a> {
    /// Parses a token; `None` if the text is not a signed token whose claims are an object.
    pub fn parse(token: &'a str) -> Option<Unverified<'a>> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let object = |part: &str| -> Option<Value> {
            let value = machinery::value::decode(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()?;
            value.as_object().is_some().then_some(value)
        };
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(Unverified { header: object(header)?, claims: object(claims)?, signed, signature })
    }

    /// The id of the key in the header; empty if there is none.
    pub fn key_id(&self) -> &str {
        self.header.str_at(&["kid"])
    }

    /// The algorithm in the header.
    pub fn algorithm(&self) -> Option<Algorithm> {
        Algorithm::parse(self.header.str_at(&["alg"]))
    }

    /// The claims, if one of the keys has signed them: the key with the `kid` of the token, or any key if the token has
    /// none. The algorithm must be allowed and fit the key.
    pub fn verify(&self, keys: &[PublicKey], allowed: &[Algorithm]) -> Result<&Value, SignatureError> {
        let id = self.key_id();
        let mut candidates = keys.iter().filter(|key| id.is_empty() || key.id == id).peekable();
        if candidates.peek().is_none() {
            return Err(SignatureError::NoKeys);
        }
        let algorithm = self.algorithm().filter(|algorithm| allowed.contains(algorithm));
        let message = self.signed.as_bytes();
        let is_valid = self.header.get("crit").is_none()
            && algorithm
                .is_some_and(|algorithm| candidates.any(|key| key.verifies(algorithm, message, &self.signature)));
        if is_valid { Ok(&self.claims) } else { Err(SignatureError::Invalid) }
    }
}

/// A signed token; `None` if the key cannot sign.
pub fn sign(claims: &Value, key: &SigningKey) -> Option<String> {
    let (algorithm, id) = (key.public.family.algorithm().as_str(), key.public.id.as_str());
    let header = json!({"alg": algorithm, "kid": id});
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_json());
    let signed = format!("{}.{}", encode(&header), encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())?);
    Some(format!("{signed}.{signature}"))
}
