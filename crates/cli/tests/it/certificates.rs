//! Client certificates authenticate only while they are valid and if the certificate authority has signed them.

use std::time::{Duration, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::server::{Pair, Server};

const UNAUTHORIZED: &str = r#"{"apiVersion":"v1","code":401,"kind":"Status","message":"Unauthorized","metadata":{},"reason":"Unauthorized","status":"Failure"}"#;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An unknown certificate authority with the same name as the server's own.
fn foreign_certificate_authority() -> Pair {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "pintle-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    Pair { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

/// A client certificate of an administrator that is valid until `days` from now.
fn administrator(by: &Pair, days: i64, usage: ExtendedKeyUsagePurpose) -> Pair {
    named(by, days, usage, Some("root"))
}

fn named(by: &Pair, days: i64, usage: ExtendedKeyUsagePurpose, name: Option<&str>) -> Pair {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    name.into_iter().for_each(|name| params.distinguished_name.push(DnType::CommonName, name));
    let now = rcgen::date_time_ymd(1970, 1, 1) + UNIX_EPOCH.elapsed().unwrap();
    let days_from_now = Duration::from_secs(days.unsigned_abs() * 24 * 3600);
    params.not_before = now - Duration::from_secs(30 * 24 * 3600);
    params.not_after = if days < 0 { now - days_from_now } else { now + days_from_now };
    params.extended_key_usages = vec![usage];
    let issuer = Issuer::from_ca_cert_pem(&by.certificate, KeyPair::from_pem(&by.key).unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    Pair { certificate: params.signed_by(&key, &issuer).unwrap().pem(), key: key.serialize_pem() }
}

#[test]
fn only_certificates_of_the_certificate_authority_authenticate() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let ours = server.certificate_authority();
    let good = administrator(&ours, 1, ExtendedKeyUsagePurpose::ClientAuth);
    assert_eq!(server.get(MAPS, Some(&good), None).0, 200);
    let expired = administrator(&ours, -1, ExtendedKeyUsagePurpose::ClientAuth);
    let foreign = administrator(&foreign_certificate_authority(), 1, ExtendedKeyUsagePurpose::ClientAuth);
    let of_a_server = administrator(&ours, 1, ExtendedKeyUsagePurpose::ServerAuth);
    for refused in [&expired, &foreign, &of_a_server] {
        let (status, body) = server.get(MAPS, Some(refused), None);
        assert_eq!((status, body.trim_end()), (401, UNAUTHORIZED));
        assert_eq!(server.get("/version", Some(refused), None).0, 401, "worse than no certificate");
        assert_eq!(server.get("/version", Some(refused), Some("wrong")).0, 401);
        assert_eq!(server.get("/version", Some(refused), Some("token")).0, 200, "a token says who one is");
        let (status, body) = server.get(MAPS, Some(refused), Some("token"));
        assert!(status == 403 && body.contains(r#"User \"ann\" cannot list"#), "{body}");
    }
    let nameless = named(&ours, 1, ExtendedKeyUsagePurpose::ClientAuth, None);
    assert!([401, 403].contains(&server.get(MAPS, Some(&nameless), None).0));
    assert_eq!(server.get("/version", None, None).0, 200);
}
