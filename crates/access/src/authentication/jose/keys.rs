//! Keys of tokens: parsing from PEM and JWK, signing, verification, encoding as JWK (RFC 7517, 7518).

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self, EcdsaKeyPair, KeyPair as _, RsaKeyPair, RsaPublicKeyComponents};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use machinery::{Value, json};
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::Algorithm;
use super::algorithm::Family;
use super::error::KeyError;

/// A public key, which verifies signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    pub family: Family,
    /// The `kid`: unpadded base64url of the SHA-256 of the SubjectPublicKeyInfo, or the issuer's name of the key.
    pub id: String,
    /// SubjectPublicKeyInfo, DER; or the point of a curve, uncompressed.
    der: Vec<u8>,
}

impl PublicKey {
    fn of_der(der: &[u8]) -> Result<PublicKey, KeyError> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).map_err(|_| KeyError::NotPublic)?;
        let family = match info.parsed() {
            Ok(Parsed::RSA(_)) => Some(Family::Rsa),
            Ok(Parsed::EC(_)) => {
                let curve = info.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
                curve.and_then(|curve| Family::of_curve(&curve.to_id_string()))
            }
            _ => None,
        };
        let id = URL_SAFE_NO_PAD.encode(base::digest::sha256(info.raw));
        let family = family.ok_or(KeyError::Family)?;
        Ok(PublicKey { family, id, der: info.raw.to_vec() })
    }

    /// Parses a JWK; `None` for keys of other types, and for keys that are not for signatures.
    pub fn of_jwk(jwk: &Value) -> Option<PublicKey> {
        if !matches!(jwk.str_at(&["use"]), "" | "sig") {
            return None;
        }
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(jwk.str_at(&[name])).ok().filter(|bytes| !bytes.is_empty());
        let (family, der) = match (jwk.str_at(&["kty"]), jwk.str_at(&["crv"])) {
            ("RSA", _) => {
                let components = RsaPublicKeyComponents { n: bytes("n")?, e: bytes("e")? };
                let der: PublicKeyX509Der<'_> = components.as_der().ok()?;
                (Family::Rsa, der.as_ref().to_vec())
            }
            ("EC", curve) => {
                let family = [Family::P256, Family::P384, Family::P521].into_iter().find(|f| f.curve() == curve)?;
                (family, [&[4], bytes("x")?.as_slice(), bytes("y")?.as_slice()].concat())
            }
            _ => return None,
        };
        Some(PublicKey { family, id: jwk.str_at(&["kid"]).to_owned(), der })
    }

    /// Whether `signature` is a valid signature of `message` by this key; false if the algorithm is for other keys.
    pub fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        algorithm.family() == self.family && algorithm.verification().verify_sig(&self.der, message, signature).is_ok()
    }

    pub fn to_jwk(&self) -> Value {
        let (algorithm, id) = (self.family.algorithm().as_str(), self.id.as_str());
        let numbers =
            SubjectPublicKeyInfo::from_der(&self.der).ok().and_then(|(_, info)| match info.parsed().ok()? {
                Parsed::RSA(key) => Some((key.modulus.to_vec(), key.exponent.to_vec())),
                Parsed::EC(point) => {
                    let point = point.data().get(1..)?;
                    let (x, y) = point.split_at(point.len() / 2);
                    Some((x.to_vec(), y.to_vec()))
                }
                _ => None,
            });
        let (first, second) = numbers.unwrap_or_default();
        if self.family == Family::Rsa {
            let (n, e) = (number(&first), number(&second));
            return json!({"use": "sig", "kty": "RSA", "kid": id, "alg": algorithm, "n": n, "e": e});
        }
        let (x, y) = (URL_SAFE_NO_PAD.encode(first), URL_SAFE_NO_PAD.encode(second));
        let curve = self.family.curve();
        json!({"use": "sig", "kty": "EC", "kid": id, "crv": curve, "alg": algorithm, "x": x, "y": y})
    }
}

/// A number without leading zeros.
fn number(bytes: &[u8]) -> String {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    URL_SAFE_NO_PAD.encode(&bytes[zeros..])
}

#[derive(Debug)]
enum Secret {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
}

#[derive(Debug)]
pub struct SigningKey {
    secret: Secret,
    pub public: PublicKey,
}

impl SigningKey {
    /// From a private key, PEM: PKCS #8, PKCS #1 or SEC 1.
    pub fn from_pem(pem: &[u8]) -> Result<SigningKey, KeyError> {
        let (kind, der) = sections(pem)?.into_iter().next().ok_or(KeyError::NoKey)?;
        SigningKey::of_section(kind, &der)
    }

    fn of_section(kind: SectionKind, der: &[u8]) -> Result<SigningKey, KeyError> {
        let rsa = match kind {
            SectionKind::PrivateKey => RsaKeyPair::from_pkcs8(der).ok(),
            SectionKind::RsaPrivateKey => Some(RsaKeyPair::from_der(der).map_err(|_| KeyError::Unusable)?),
            SectionKind::EcPrivateKey => None,
            _ => return Err(KeyError::NotPrivate),
        };
        if let Some(pair) = rsa {
            let public = pair.public_key().as_der().map_err(|_| KeyError::Unusable)?;
            return Ok(SigningKey { public: PublicKey::of_der(public.as_ref())?, secret: Secret::Rsa(pair) });
        }
        for algorithm in [
            &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
            &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
            &signature::ECDSA_P521_SHA512_FIXED_SIGNING,
        ] {
            let pair = match kind {
                SectionKind::EcPrivateKey => EcdsaKeyPair::from_private_key_der(algorithm, der),
                _ => EcdsaKeyPair::from_pkcs8(algorithm, der),
            };
            if let Ok(pair) = pair {
                let public = pair.public_key().as_der().map_err(|_| KeyError::Unusable)?;
                return Ok(SigningKey { public: PublicKey::of_der(public.as_ref())?, secret: Secret::Ec(pair) });
            }
        }
        Err(KeyError::Unusable)
    }

    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.secret {
            Secret::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
            Secret::Ec(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
        }
    }
}

/// The keys of a PEM file: public keys, certificates, and private keys for their public half.
pub fn public_keys(pem: &[u8]) -> Result<Vec<PublicKey>, KeyError> {
    let key = |(kind, der): (SectionKind, Vec<u8>)| match kind {
        SectionKind::PublicKey => PublicKey::of_der(&der),
        SectionKind::Certificate => {
            let certificate = x509_parser::parse_x509_certificate(&der);
            let (_, certificate) = certificate.map_err(|_| KeyError::Certificate)?;
            PublicKey::of_der(certificate.public_key().raw)
        }
        _ => SigningKey::of_section(kind, &der).map(|key| key.public),
    };
    let keys: Vec<PublicKey> = sections(pem)?.into_iter().map(key).collect::<Result<_, _>>()?;
    if keys.is_empty() { Err(KeyError::NoKey) } else { Ok(keys) }
}

/// The sections of a PEM file that can be keys.
fn sections(pem: &[u8]) -> Result<Vec<(SectionKind, Vec<u8>)>, KeyError> {
    let parsed: Result<Vec<(SectionKind, Vec<u8>)>, _> = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).collect();
    let sections = parsed.map_err(|_| KeyError::NotPem)?;
    let key_kinds = [
        SectionKind::PublicKey,
        SectionKind::Certificate,
        SectionKind::PrivateKey,
        SectionKind::RsaPrivateKey,
        SectionKind::EcPrivateKey,
    ];
    Ok(sections.into_iter().filter(|(kind, _)| key_kinds.contains(kind)).collect())
}
