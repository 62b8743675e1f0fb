//! The certificates that a server creates: a certificate authority, a serving certificate, and the administrator's.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::limits;

/// A certificate and its private key in PEM format.
#[derive(Clone, Debug)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// The certificates that the server presents and trusts.
pub struct Certificates {
    pub authority: String,
    pub serving: Pair,
    pub admin: Pair,
}

/// Writes a file atomically, readable by its owner only.
pub fn write_private(path: &Path, content: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let temporary = path.with_extension("tmp");
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary).map_err(failed)?;
    file.write_all(content.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

fn read(path: &Path) -> Result<Option<String>, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

struct Directory {
    path: PathBuf,
}

impl Directory {
    fn load(&self, name: &str) -> Result<Option<Pair>, String> {
        let (certificate, key) =
            (read(&self.path.join(format!("{name}.crt")))?, read(&self.path.join(format!("{name}.key")))?);
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(Pair { certificate, key })),
            // the key is written first, so an interrupted start never leaves a certificate without key
            (None, _) => Ok(None),
            (Some(_), None) => {
                let path = self.path.join(name);
                let (certificate, key) = (path.with_extension("crt"), path.with_extension("key"));
                Err(format!(
                    "{} is missing: restore the private key of {}, or remove that certificate so that both are created again",
                    key.display(),
                    certificate.display()
                ))
            }
        }
    }

    fn save(&self, name: &str, pair: &Pair) -> Result<(), String> {
        write_private(&self.path.join(format!("{name}.key")), &pair.key)?;
        write_private(&self.path.join(format!("{name}.crt")), &pair.certificate)
    }
}

fn params(common_name: &str, organization: Option<&str>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(vec![])?;
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    let now = Duration::from_secs(base::clock::now_seconds().unsigned_abs());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(limits::CERTIFICATE_BEFORE);
    params.not_after = epoch + now + limits::CERTIFICATE_LIFETIME;
    Ok(params)
}

fn authority() -> Result<Pair, rcgen::Error> {
    let mut params = params("pintle-ca", None)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn signed(mut params: CertificateParams, usage: ExtendedKeyUsagePurpose, by: &Pair) -> Result<Pair, rcgen::Error> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![usage];
    let issuer = Issuer::from_ca_cert_pem(&by.certificate, KeyPair::from_pem(&by.key)?)?;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A P-256 key as `EC PRIVATE KEY` (RFC 5915), since Java clients assume that a `PRIVATE KEY` is an RSA key.
fn sec1(key: &KeyPair) -> Option<String> {
    // the head of ECPrivateKey inside PKCS #8: version 1, then 32 octets of the secret
    const HEAD: [u8; 5] = [0x02, 0x01, 0x01, 0x04, 0x20];
    // parameters [0]: the object identifier of P-256; publicKey [1]: a bit string of 65 octets
    const CURVE: [u8; 17] = *b"\xa0\x0a\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\xa1\x44\x03\x42\x00";
    let wrapped = key.serialized_der();
    let start = wrapped.windows(HEAD.len()).position(|part| part == HEAD)? + HEAD.len();
    let secret = wrapped.get(start..start + 32)?;
    let der = [&[0x30, 0x77], HEAD.as_slice(), secret, &CURVE, key.public_key_raw()].concat();
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    Some(format!("-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n", lines.join("\n")))
}

fn admin(by: &Pair) -> Result<Pair, rcgen::Error> {
    let made = signed(params("kubernetes-admin", Some("system:masters"))?, ExtendedKeyUsagePurpose::ClientAuth, by)?;
    let key = sec1(&KeyPair::from_pem(&made.key)?).ok_or(rcgen::Error::CouldNotParseKeyPair)?;
    Ok(Pair { key, ..made })
}

fn serving(address: IpAddr, by: &Pair) -> Result<Pair, rcgen::Error> {
    let mut params = params("pintle", None)?;
    for name in ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
        params.subject_alt_names.push(SanType::DnsName(name.try_into()?));
    }
    for ip in [address, Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
        if !ip.is_unspecified() && !params.subject_alt_names.contains(&SanType::IpAddress(ip)) {
            params.subject_alt_names.push(SanType::IpAddress(ip));
        }
    }
    signed(params, ExtendedKeyUsagePurpose::ServerAuth, by)
}

/// Reads the certificates in `directory` and creates missing ones. The serving certificate is replaced if it does not
/// name the address.
pub fn load_or_make(directory: &Path, address: IpAddr) -> Result<Certificates, String> {
    let mut private = fs::DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(directory);
    made.map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let place = Directory { path: directory.to_owned() };
    let failed = |error: rcgen::Error| format!("cannot create a certificate: {error}");
    let load_or = |name: &str, make: &dyn Fn() -> Result<Pair, rcgen::Error>| -> Result<Pair, String> {
        if let Some(pair) = place.load(name)? {
            return Ok(pair);
        }
        let pair = make().map_err(failed)?;
        place.save(name, &pair)?;
        Ok(pair)
    };
    let authority = load_or("ca", &authority)?;
    let is_always_named = |ip: IpAddr| ip.is_unspecified() || ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST;
    let name = match is_always_named(address) {
        true => "serving".to_owned(),
        false => format!("serving-{}", address.to_string().replace(':', "-")),
    };
    let serving = load_or(&name, &|| serving(address, &authority))?;
    let admin = load_or("admin", &|| admin(&authority))?;
    Ok(Certificates { authority: authority.certificate, serving, admin })
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

    #[test]
    fn certificates_are_generated_once() {
        let directory = std::env::temp_dir().join(format!("pintle-certificates-{}", std::process::id()));
        let first = load_or_make(&directory, IpAddr::from([127, 0, 0, 1])).unwrap();
        let second = load_or_make(&directory, IpAddr::from([127, 0, 0, 1])).unwrap();
        assert_eq!(first.admin.certificate, second.admin.certificate);
        fs::remove_file(directory.join("ca.key")).unwrap();
        let error = load_or_make(&directory, IpAddr::from([127, 0, 0, 1])).err().unwrap();
        assert!(error.contains("ca.key is missing"), "{error}");
        fs::remove_dir_all(directory).unwrap();
    }

    /// A start may be interrupted after each file that it writes.
    #[test]
    fn start_succeeds_after_interrupted_start() {
        let written = ["ca.key", "ca.crt", "serving.key", "serving.crt", "admin.key", "admin.crt"];
        for last in 1..=written.len() {
            let directory = std::env::temp_dir().join(format!("pintle-interrupted-{last}-{}", std::process::id()));
            load_or_make(&directory, Ipv4Addr::LOCALHOST.into()).unwrap();
            for name in &written[last..] {
                fs::remove_file(directory.join(name)).unwrap();
            }
            load_or_make(&directory, Ipv4Addr::LOCALHOST.into()).unwrap();
            assert!(written.iter().all(|name| directory.join(name).exists()), "after {}", written[last - 1]);
            fs::remove_dir_all(directory).unwrap();
        }
    }

    #[test]
    fn serving_certificate_covers_every_address() {
        let directory = std::env::temp_dir().join(format!("pintle-addresses-{}", std::process::id()));
        for address in ["127.0.0.1", "::1", "127.0.0.2", "0.0.0.0", "10.0.0.7", "fd00::7"] {
            let address: IpAddr = address.parse().unwrap();
            let made = load_or_make(&directory, address).unwrap();
            let (_, pem) = x509_parser::pem::parse_x509_pem(made.serving.certificate.as_bytes()).unwrap();
            let certificate = pem.parse_x509().unwrap();
            let names = certificate.subject_alternative_name().unwrap().unwrap();
            let octets = match address {
                IpAddr::V4(ip) => ip.octets().to_vec(),
                IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            let is_named = names.value.general_names.iter().any(
                |name| matches!(name, x509_parser::extensions::GeneralName::IPAddress(ip) if *ip == octets.as_slice()),
            );
            assert!(is_named || address.is_unspecified(), "{address}");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
