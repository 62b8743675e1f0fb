//! Certificates with several organizations, one for each group of a user. rcgen supports only one, so the subject of
//! its certificate is replaced, and the certificate is signed again.

use rcgen::{Error, KeyPair, SigningKey as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use yasna::models::ObjectIdentifier;
use yasna::{construct_der, parse_der};

use super::pem;

/// The object identifiers of the attributes of a subject.
const COMMON_NAME: [u64; 4] = [2, 5, 4, 3];
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];
/// The index of the subject in a TBSCertificate: after version, serial number, algorithm, issuer and validity.
const SUBJECT_AT: usize = 5;

/// The DER of a subject: the user is its common name, the groups are its organizations.
pub fn of_user(user: &str, groups: &[String]) -> Vec<u8> {
    let attribute = |kind: &[u64], text: &str| {
        let kind = ObjectIdentifier::from_slice(kind);
        construct_der(|writer| {
            writer.write_set(|set| {
                set.next().write_sequence(|pair| {
                    pair.next().write_oid(&kind);
                    pair.next().write_utf8_string(text);
                });
            });
        })
    };
    let groups = groups.iter().map(|group| attribute(&ORGANIZATION, group));
    sequence(&groups.chain([attribute(&COMMON_NAME, user)]).collect::<Vec<_>>())
}

/// Replaces the subject of a certificate (PEM) by `subject` (DER), and signs the certificate again with `key`.
pub fn replaced(certificate: &str, subject: &[u8], key: &KeyPair) -> Result<String, Error> {
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|_| Error::CouldNotParseCertificate)?;
    let [signed, algorithm, _] = &elements(&der)?[..] else { return Err(Error::CouldNotParseCertificate) };
    let mut parts = elements(signed)?;
    *parts.get_mut(SUBJECT_AT).ok_or(Error::CouldNotParseCertificate)? = subject.to_vec();
    let signed = sequence(&parts);
    let signature = key.sign(&signed)?;
    let signature = construct_der(|writer| writer.write_bitvec_bytes(&signature, 8 * signature.len()));
    Ok(pem::encode("CERTIFICATE", &sequence(&[signed, algorithm.clone(), signature])))
}

/// The DER of a sequence of encoded elements.
fn sequence(elements: &[Vec<u8>]) -> Vec<u8> {
    construct_der(|writer| {
        writer.write_sequence(|sequence| elements.iter().for_each(|element| sequence.next().write_der(element)));
    })
}

fn elements(sequence: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let elements = parse_der(sequence, |reader| reader.collect_sequence_of(|element| element.read_der()));
    elements.map_err(|_| Error::CouldNotParseCertificate)
}
