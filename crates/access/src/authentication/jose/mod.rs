//! JSON Web Tokens in the compact form (RFC 7515, 7519): split, signed, verified; their claims are looked at elsewhere.

mod algorithm;
mod keys;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use machinery::{Value, json};

pub use algorithm::Algorithm;
pub use keys::{PublicKey, SigningKey, public_keys};

/// A token taken apart; nothing in it has been verified.
pub struct Unverified<'a> {
    header: Value,
    pub claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Unverified<'a> {
    /// `None` for what is no signed token with an object of claims.
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

    /// The key that is said to have signed it; empty if none is named.
    pub fn key_id(&self) -> &str {
        self.header.str_at(&["kid"])
    }

    /// How it says that it is signed.
    pub fn algorithm(&self) -> Option<Algorithm> {
        Algorithm::parse(self.header.str_at(&["alg"]))
    }

    /// The claims, if one of the keys has signed them: that of the `kid`, or any if the token names none. A token whose
    /// algorithm is not for the key, or not among those allowed, is not looked at further.
    pub fn verify(&self, keys: &[PublicKey], allowed: &[Algorithm]) -> Result<&Value, &'static str> {
        let id = self.key_id();
        let mut candidates = keys.iter().filter(|key| id.is_empty() || key.id == id).peekable();
        if candidates.peek().is_none() {
            return Err("invalid signature, no keys found");
        }
        let algorithm = self.algorithm().filter(|algorithm| allowed.contains(algorithm));
        let message = self.signed.as_bytes();
        let good = self.header.get("crit").is_none()
            && algorithm.is_some_and(|it| candidates.any(|key| key.verifies(it, message, &self.signature)));
        if good { Ok(&self.claims) } else { Err("go-jose/go-jose: error in cryptographic primitive") }
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
