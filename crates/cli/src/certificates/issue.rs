//! Issues certificates: certificate authorities, serving certificates, and client certificates.

use std::net::IpAddr;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, Error,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer as _;

use super::names::Names;
use super::{Pair, inspect, pem, subject};
use crate::limits;

/// A subject, valid from an hour ago for as long as `lifetime`; certificates that an authority signs begin with it.
fn params(common_name: &str, lifetime: Duration) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(vec![])?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    set_validity(&mut params, lifetime);
    Ok(params)
}

fn set_validity(params: &mut CertificateParams, lifetime: Duration) {
    let now = Duration::from_secs(base::clock::now_seconds().unsigned_abs());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(limits::CERTIFICATE_BEFORE);
    params.not_after = epoch + now + lifetime;
}

fn authority_params(common_name: &str) -> Result<CertificateParams, Error> {
    let mut params = params(common_name, limits::AUTHORITY_LIFETIME)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    Ok(params)
}

pub fn authority(common_name: &str) -> Result<Pair, Error> {
    let key = KeyPair::generate()?;
    let certificate = authority_params(common_name)?.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// The certificate of a new authority that a former one signs: it lets clients that trust the former authority trust
/// the new one.
pub fn cross_certificate(common_name: &str, new: &Pair, former: &Pair) -> Result<String, Error> {
    let mut params = authority_params(common_name)?;
    params.use_authority_key_identifier_extension = true;
    Ok(params.signed_by(&KeyPair::from_pem(&new.key)?, &issuer(former)?)?.pem())
}

fn issuer(by: &Pair) -> Result<Issuer<'static, KeyPair>, Error> {
    Issuer::from_ca_cert_pem(&by.certificate, KeyPair::from_pem(&by.key)?)
}

/// Signs a certificate that is valid from the same time on as its authority, as kubeadm's are: a clock that is behind the one which
/// made it rejects both or none.
fn signed(mut params: CertificateParams, usage: ExtendedKeyUsagePurpose, by: &Pair) -> Result<Pair, Error> {
    if let Ok(authority) = inspect::first(&by.certificate) {
        let since_epoch = Duration::from_secs(u64::try_from(authority.not_before).unwrap_or_default());
        params.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_epoch;
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer(by)?)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A P-256 key as `EC PRIVATE KEY` (RFC 5915): Java clients assume that a `PRIVATE KEY` is an RSA key.
fn sec1(key: &KeyPair) -> Option<String> {
    // how ECPrivateKey begins inside PKCS #8: version 1, then the head of the 32 octets of the secret
    const HEAD: [u8; 5] = [0x02, 0x01, 0x01, 0x04, 0x20];
    // parameters [0]: the object identifier of P-256; publicKey [1]: a bit string of 65 octets
    const CURVE: [u8; 17] = *b"\xa0\x0a\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\xa1\x44\x03\x42\x00";
    let wrapped = key.serialized_der();
    let start = wrapped.windows(HEAD.len()).position(|part| part == HEAD)? + HEAD.len();
    let secret = wrapped.get(start..start + 32)?;
    let der = [&[0x30, 0x77], HEAD.as_slice(), secret, &CURVE, key.public_key_raw()].concat();
    Some(pem::encode("EC PRIVATE KEY", &der))
}

pub fn client(user: &str, groups: &[String], lifetime: Duration, by: &Pair) -> Result<Pair, Error> {
    let made = signed(params(user, lifetime)?, ExtendedKeyUsagePurpose::ClientAuth, by)?;
    let key = sec1(&KeyPair::from_pem(&made.key)?).ok_or(Error::CouldNotParseKeyPair)?;
    let subject = subject::of_user(user, groups);
    let certificate = subject::replaced(&made.certificate, &subject, &KeyPair::from_pem(&by.key)?)?;
    Ok(Pair { certificate, key })
}

pub fn serving(names: &Names, by: &Pair) -> Result<Pair, Error> {
    let mut params = params("pintle", limits::CERTIFICATE_LIFETIME)?;
    let dns = names.dns.iter().map(|name| Ok(SanType::DnsName(name.as_str().try_into()?)));
    let addresses = names.addresses.iter().map(|address: &IpAddr| Ok(SanType::IpAddress(*address)));
    params.subject_alt_names = dns.chain(addresses).collect::<Result<_, Error>>()?;
    signed(params, ExtendedKeyUsagePurpose::ServerAuth, by)
}

/// The certificate that a certificate signing request (PEM) asks for, for a client; its subject and names are kept.
pub fn requested(request: &str, lifetime: Duration, by: &Pair) -> Result<String, Error> {
    let (_, block) = parse_x509_pem(request.as_bytes()).map_err(|_| Error::CouldNotParseCertificationRequest)?;
    let (_, parsed) =
        X509CertificationRequest::from_der(&block.contents).map_err(|_| Error::CouldNotParseCertificationRequest)?;
    let subject = parsed.certification_request_info.subject.as_raw();
    let mut request = CertificateSigningRequestParams::from_pem(request)?;
    set_validity(&mut request.params, lifetime);
    request.params.is_ca = IsCa::ExplicitNoCa;
    request.params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    request.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    request.params.use_authority_key_identifier_extension = true;
    subject::replaced(&request.signed_by(&issuer(by)?)?.pem(), subject, &KeyPair::from_pem(&by.key)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_round_trips_between_layouts() {
        let key = KeyPair::generate().unwrap();
        let other = KeyPair::from_pem(&sec1(&key).unwrap()).unwrap();
        assert_eq!(key.public_key_raw(), other.public_key_raw());
        assert!(!sec1(&key).unwrap().contains("BEGIN PRIVATE KEY"));
    }
}
