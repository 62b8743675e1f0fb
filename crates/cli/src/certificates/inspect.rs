//! Reads certificates: their subject and names, their issuer, and the time of their validity.

use std::net::IpAddr;

use client::{Result, fail};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::names::Names;

/// The fields of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub subject: String,
    pub issuer: String,
    /// The identifiers of its key and of the key that has signed it.
    key_id: Option<Vec<u8>>,
    issuer_key_id: Option<Vec<u8>>,
    /// Seconds since the epoch, as `not_after`.
    pub not_before: i64,
    pub not_after: i64,
    pub names: Names,
}

impl Facts {
    /// Why the certificate is not valid at a time, if it is not.
    pub fn invalid_at(&self, now: i64) -> Option<&'static str> {
        match now {
            _ if now > self.not_after => Some("it has expired"),
            _ if now < self.not_before => {
                Some("it is not valid yet: the clock was ahead when it was made, or is behind now")
            }
            _ => None,
        }
    }

    /// Whether `authority` has signed this certificate, by the names and the key identifiers of both.
    pub fn is_signed_by(&self, authority: &Facts) -> bool {
        self.issuer == authority.subject && self.issuer_key_id == authority.key_id
    }
}

/// The certificates of a PEM file, at least one. The error is part of a line.
pub fn of_pem(pem: &str) -> Result<Vec<Facts>> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
    let found = certificates.map(|der| facts(&der?));
    match found.collect::<Result<Vec<_>, _>>()? {
        found if found.is_empty() => fail("there is no certificate"),
        found => Ok(found),
    }
}

pub fn first(pem: &str) -> Result<Facts> {
    of_pem(pem).map(|mut found| found.swap_remove(0))
}

fn facts(der: &[u8]) -> Result<Facts> {
    let (_, certificate) = X509Certificate::from_der(der)?;
    let mut facts = Facts {
        subject: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        not_before: certificate.validity().not_before.timestamp(),
        not_after: certificate.validity().not_after.timestamp(),
        ..Facts::default()
    };
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => facts.key_id = Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                facts.issuer_key_id = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            ParsedExtension::SubjectAlternativeName(names) => facts.names = names_of(&names.general_names),
            _ => {}
        }
    }
    Ok(facts)
}

fn names_of(list: &[GeneralName<'_>]) -> Names {
    let mut names = Names::default();
    for name in list {
        match name {
            GeneralName::DNSName(name) => drop(names.dns.insert((*name).to_owned())),
            GeneralName::IPAddress(octets) => {
                let v4 = <[u8; 4]>::try_from(*octets).map(IpAddr::from);
                let v6 = <[u8; 16]>::try_from(*octets).map(IpAddr::from);
                names.addresses.extend(v4.or(v6).ok());
            }
            _ => {}
        }
    }
    names
}
