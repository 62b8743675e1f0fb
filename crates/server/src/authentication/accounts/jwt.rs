//! JSON Web Tokens in the compact form (RFC 7515, 7519): split, signed, verified; their claims are looked at elsewhere.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use machinery::{Value, json};

use super::keys::{PublicKey, SigningKey};

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

    /// The claims, if one of the keys has signed them: that of the `kid`, or any if the token names none.
    ///
    /// The algorithm is the key's; a token that says another one is not looked at further.
    pub fn verify(&self, keys: &[PublicKey]) -> Result<&Value, &'static str> {
        let id = self.header.str_at(&["kid"]);
        let mut candidates = keys.iter().filter(|key| id.is_empty() || key.id == id).peekable();
        if candidates.peek().is_none() {
            return Err("invalid signature, no keys found");
        }
        let algorithm = self.header.str_at(&["alg"]);
        let good = self.header.get("crit").is_none()
            && candidates.any(|key| {
                key.algorithm.as_str() == algorithm && key.verifies(self.signed.as_bytes(), &self.signature)
            });
        if good { Ok(&self.claims) } else { Err("go-jose/go-jose: error in cryptographic primitive") }
    }
}

/// A signed token; `None` if the key cannot sign.
pub fn sign(claims: &Value, key: &SigningKey) -> Option<String> {
    let (algorithm, id) = (key.public.algorithm.as_str(), key.public.id.as_str());
    let header = json!({"alg": algorithm, "kid": id});
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_json());
    let signed = format!("{}.{}", encode(&header), encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())?);
    Some(format!("{signed}.{signature}"))
}
