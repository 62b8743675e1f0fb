//! Certificates with several organizations, one for each group of a user. rcgen supports only one, so the subject of
//! its certificate is replaced, and the certificate is signed again.

use rcgen::{Error, KeyPair, SigningKey as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::pem;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const BIT_STRING: u8 = 0x03;
/// The encoded object identifiers of the attributes of a subject.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];
/// The index of the subject in a TBSCertificate: after version, serial number, algorithm, issuer and validity.
const SUBJECT_AT: usize = 5;

/// The DER of a subject: the user is its common name, the groups are its organizations.
pub fn of_user(user: &str, groups: &[String]) -> Vec<u8> {
    let attribute = |kind: &[u8], text: &str| {
        let pair = [element(OBJECT_IDENTIFIER, kind), element(UTF8_STRING, text.as_bytes())].concat();
        element(SET, &element(SEQUENCE, &pair))
    };
    let groups = groups.iter().map(|group| attribute(&ORGANIZATION, group));
    let all: Vec<Vec<u8>> = groups.chain([attribute(&COMMON_NAME, user)]).collect();
    element(SEQUENCE, &all.concat())
}

/// Replaces the subject of a certificate (PEM) by `subject` (DER), and signs the certificate again with `key`.
pub fn replaced(certificate: &str, subject: &[u8], key: &KeyPair) -> Result<String, Error> {
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|_| Error::CouldNotParseCertificate)?;
    let outer = elements(&der).and_then(|whole| elements(content(whole.first()?)?));
    let outer = outer.filter(|parts| parts.len() == 3).ok_or(Error::CouldNotParseCertificate)?;
    let parts = content(outer[0]).and_then(elements).filter(|parts| parts.len() > SUBJECT_AT);
    let mut parts = parts.ok_or(Error::CouldNotParseCertificate)?;
    parts[SUBJECT_AT] = subject;
    let signed = element(SEQUENCE, &parts.concat());
    let signature = [vec![0], key.sign(&signed)?].concat();
    let whole = element(SEQUENCE, &[&signed, outer[1], &element(BIT_STRING, &signature)].concat());
    Ok(pem::encode("CERTIFICATE", &whole))
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut out = vec![tag];
    match content.len() {
        short @ 0..=127 => out.extend(u8::try_from(short)),
        _ => {
            out.extend(u8::try_from(0x80 | length.len()));
            out.extend(length);
        }
    }
    out.extend(content);
    out
}

/// The lengths in bytes of the head and of the content of the first element.
fn lengths(bytes: &[u8]) -> Option<(usize, usize)> {
    match *bytes.get(1)? {
        short @ 0..=127 => Some((2, short.into())),
        long => {
            let count = usize::from(long & 0x7f);
            let length = bytes.get(2..2 + count)?;
            let value = length.iter().try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add((*byte).into()));
            Some((2 + count, value?))
        }
    }
}

fn content(element: &[u8]) -> Option<&[u8]> {
    let (head, length) = lengths(element)?;
    element.get(head..head.checked_add(length)?)
}

/// The DER elements that follow each other in `bytes`.
fn elements(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = vec![];
    while !bytes.is_empty() {
        let (head, length) = lengths(bytes)?;
        let (first, rest) = bytes.split_at_checked(head.checked_add(length)?)?;
        found.push(first);
        bytes = rest;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_any_length() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let body = vec![7; length];
            let two = [element(SEQUENCE, &body), element(SET, &[])].concat();
            let found = elements(&two).unwrap();
            assert_eq!((found.len(), content(found[0])), (2, Some(body.as_slice())), "{length}");
        }
        for wrong in [&[0x30][..], &[0x30, 5, 0], &[0x30, 0x82, 1], &[0x30, 0xff]] {
            assert_eq!(elements(wrong), None, "{wrong:?}");
        }
    }
}
