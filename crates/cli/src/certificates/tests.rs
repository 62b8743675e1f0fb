use std::net::IpAddr;
use std::time::Duration;

use super::*;

fn names(address: &str) -> Names {
    Names::of(&[address.parse().unwrap()], &[])
}

fn directory() -> (tempfile::TempDir, Directory) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("certificates");
    (place, Directory { path })
}

#[test]
fn certificates_are_generated_once() {
    let (_place, directory) = directory();
    let first = directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).unwrap();
    let second = directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).unwrap();
    assert_eq!(first.admin.certificate, second.admin.certificate);
    assert_eq!(first.serving.certificate, second.serving.certificate);
    fs::remove_file(directory.path.join("ca.key")).unwrap();
    let error = directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).err().unwrap().to_string();
    assert!(error.contains("ca.key is missing"), "{error}");
}

/// A start may be interrupted after any of the files that it writes. The key of the authority gets its name after `ca.crt`.
#[test]
fn start_succeeds_after_interrupted_start() {
    let written = ["ca.key", "ca.crt", "serving.key", "serving.crt", "admin.key", "admin.crt"];
    for last in 1..=written.len() {
        let (_place, directory) = directory();
        let made = directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).unwrap();
        for name in &written[last..] {
            fs::remove_file(directory.path.join(name)).unwrap();
        }
        if last <= 2 {
            fs::rename(directory.path.join("ca.key"), directory.path.join("ca-next.key")).unwrap();
        }
        let next = directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).unwrap();
        assert_eq!(next.authority == made.authority, last > 1, "after {}", written[last - 1]);
        assert!(written.iter().all(|name| directory.path.join(name).exists()), "after {}", written[last - 1]);
        assert!(!directory.path.join("ca-next.key").exists());
    }
}

/// The files of an authority that were lost or damaged, and the error, which names the file.
#[test]
fn authority_that_is_not_whole_is_never_replaced() {
    const OTHER: &str = "other authority";
    for (file, content, want) in [
        ("ca.crt", None, "ca.crt is missing: put it back, or remove "),
        ("ca.key", None, "ca.key is missing: put it back, or remove "),
        ("ca.crt", Some("\u{fffd}"), "ca.crt is damaged: there is no certificate; put it back from a backup"),
        ("ca.key", Some(""), "ca.key is damaged: it holds no private key; put it back from a backup"),
        ("ca.key", Some("-----BEGIN PRIVATE KEY-----\nMIG"), "ca.key is damaged: "),
        ("ca.key", Some(OTHER), "ca.key is damaged: it is not the key of ca.crt"),
    ] {
        let (_place, directory) = directory();
        directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).unwrap();
        let path = directory.path.join(file);
        match content {
            None => fs::remove_file(&path).unwrap(),
            Some(OTHER) => fs::write(&path, issue::authority("other").unwrap().key).unwrap(),
            Some(text) => fs::write(&path, text).unwrap(),
        }
        let left = |name| fs::read(directory.path.join(name)).ok();
        let before = ["ca.crt", "ca.key"].map(left);
        for missing in [MissingAuthority::Made, MissingAuthority::Refused] {
            let error = directory.load_or_make(&names("127.0.0.1"), missing).err().unwrap().to_string();
            assert!(error.contains(want), "{error}");
        }
        assert_eq!(["ca.crt", "ca.key"].map(left), before, "{want}");
    }
}

#[test]
fn authority_that_vanishes_while_serving_is_not_replaced() {
    let (_place, directory) = directory();
    directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).unwrap();
    ["ca.crt", "ca.key"].iter().for_each(|name| fs::remove_file(directory.path.join(name)).unwrap());
    let error = directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Refused).err().unwrap().to_string();
    assert!(error.contains("have vanished"), "{error}");
    assert!(!directory.path.join("ca.key").exists());
}

/// A crash of the machine may leave files empty that the authority can make anew.
#[test]
fn start_succeeds_after_lost_content() {
    let (_place, directory) = directory();
    let mut made = directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).unwrap();
    for name in ["serving.key", "serving.crt", "admin.key", "admin.crt"] {
        fs::write(directory.path.join(name), "").unwrap();
        let next = directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).unwrap();
        let keys = |all: &Certificates| [all.serving.key.clone(), all.admin.key.clone()];
        let is_new = keys(&next).iter().zip(keys(&made)).map(|(next, made)| *next != made).collect::<Vec<_>>();
        assert_eq!(is_new, [name.starts_with("serving"), name.starts_with("admin")], "{name}");
        assert!(belong_together(&next.serving) && belong_together(&next.admin), "{name}");
        assert_eq!(next.authority, made.authority);
        made = next;
    }
}

#[test]
fn serving_certificate_covers_every_address() {
    let (_place, directory) = directory();
    let mut authorities = std::collections::BTreeSet::new();
    for address in ["127.0.0.1", "::1", "127.0.0.2", "0.0.0.0", "10.0.0.7", "fd00::7"] {
        let made = directory.load_or_make(&names(address), MissingAuthority::Made).unwrap();
        let address: IpAddr = address.parse().unwrap();
        let facts = first(&made.serving.certificate).unwrap();
        assert!(facts.names.addresses.contains(&address) || address.is_unspecified(), "{address}");
        authorities.insert(made.authority);
    }
    assert_eq!(authorities.len(), 1, "new names need no new authority");
}

#[test]
fn what_expires_soon_is_renewed() {
    let (_place, directory) = directory();
    let names = names("127.0.0.1");
    let made = directory.load_or_make(&names, MissingAuthority::Made).unwrap();
    let now = base::clock::now_seconds();
    let left = |pair: &Pair| (first(&pair.certificate).unwrap().not_after - now + 60) / (24 * 3600);
    assert_eq!((left(&made.serving), left(&made.admin)), (365, 365));
    let authority = directory.authority().unwrap().unwrap();
    let old = issue::client("kubernetes-admin", &[], limits::CERTIFICATE_RENEWAL - Duration::from_secs(60), &authority);
    let foreign = issue::serving(&names, &issue::authority(AUTHORITY_NAME).unwrap()).unwrap();
    directory.save(ADMIN, &old.unwrap()).unwrap();
    directory.save(SERVING, &foreign).unwrap();
    let renewed = directory.load_or_make(&names, MissingAuthority::Made).unwrap();
    assert_eq!((left(&renewed.serving), left(&renewed.admin)), (365, 365));
    assert!(renewed.admin.certificate != made.admin.certificate && renewed.serving.certificate != foreign.certificate);
}

/// Certificates begin with their authority, and those of the future are made anew.
#[test]
fn what_is_not_valid_yet_is_renewed() {
    const DAY: i64 = 24 * 3600;
    let now = base::clock::now_seconds();
    let facts = |not_before, not_after| {
        let mut facts = Facts::default();
        (facts.not_before, facts.not_after) = (not_before, not_after);
        facts
    };
    let authority = facts(now - DAY, now + 3650 * DAY);
    for (not_before, not_after, stays) in [
        (now - DAY, now + 365 * DAY, true),
        (now + DAY, now + 365 * DAY, false),
        (now - DAY, now + 89 * DAY, false),
        (now - DAY, now - 1, false),
    ] {
        assert_eq!(stays_valid(&facts(not_before, not_after), &authority), stays, "{not_before} {not_after}");
    }
    // the authority is of the future too, so a new certificate would be no better
    assert!(stays_valid(&facts(now + DAY, now + 365 * DAY), &facts(now + DAY, now + 3650 * DAY)));
    assert_eq!(facts(now - DAY, now + DAY).invalid_at(now), None);
    assert_eq!(facts(now - DAY, now - 1).invalid_at(now), Some("it has expired"));
    assert!(facts(now + 1, now + DAY).invalid_at(now).unwrap().starts_with("it is not valid yet"));
    let (_place, directory) = directory();
    let made = directory.load_or_make(&names("127.0.0.1"), MissingAuthority::Made).unwrap();
    let begin = |pem: &str| first(pem).unwrap().not_before;
    assert_eq!([&made.serving, &made.admin].map(|pair| begin(&pair.certificate)), [begin(&made.authority); 2]);
}

/// Clients that trust the former, the new or both authorities verify the serving certificate.
#[test]
fn rotation_keeps_former_clients() {
    let (_place, directory) = directory();
    let names = names("127.0.0.1");
    let before = directory.load_or_make(&names, MissingAuthority::Made).unwrap();
    rotation::begin(&directory).unwrap();
    let during = directory.load_or_make(&names, MissingAuthority::Made).unwrap();
    let error = rotation::begin(&directory).unwrap_err().to_string();
    assert!(error.contains("not finished"), "{error}");
    rotation::finish(&directory).unwrap();
    assert!(rotation::finish(&directory).unwrap_err().to_string().contains("no rotation"));
    let after = directory.load_or_make(&names, MissingAuthority::Made).unwrap();
    let count = |pem: &str| pem.matches("BEGIN CERTIFICATE").count();
    assert_eq!([&before, &during, &after].map(|made| count(&made.authority)), [1, 2, 1]);
    assert_eq!(count(&during.serving.certificate), 2);
    for authority in [&before.authority, &during.authority, &after.authority] {
        assert!(verifies(authority, &during.serving.certificate));
    }
    assert!(verifies(&after.authority, &after.serving.certificate));
    assert!(!verifies(&before.authority, &foreign()));
}

/// The serving certificate of another authority of the same name.
fn foreign() -> String {
    issue::serving(&names("127.0.0.1"), &issue::authority(AUTHORITY_NAME).unwrap()).unwrap().certificate
}

/// Whether a client that trusts `authority` accepts a serving certificate with its chain.
fn verifies(authority: &str, chain: &str) -> bool {
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    let all = |pem: &str| -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
    };
    let mut roots = rustls::RootCertStore::empty();
    all(authority).into_iter().for_each(|authority| roots.add(authority).unwrap());
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
    let chain = all(chain);
    let now = UnixTime::since_unix_epoch(Duration::from_secs(base::clock::now_seconds().unsigned_abs()));
    let name = ServerName::try_from("127.0.0.1").unwrap();
    verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], now).is_ok()
}

#[test]
fn interrupted_rotation_is_completed() {
    let (_place, directory) = directory();
    let names = names("127.0.0.1");
    directory.load_or_make(&names, MissingAuthority::Made).unwrap();
    let key = fs::read_to_string(directory.path.join("ca.key")).unwrap();
    rotation::begin(&directory).unwrap();
    // as if the process had been interrupted before it renamed the key
    fs::rename(directory.path.join("ca.key"), directory.path.join("ca-next.key")).unwrap();
    fs::write(directory.path.join("ca.key"), key).unwrap();
    let made = directory.load_or_make(&names, MissingAuthority::Made).unwrap();
    assert!(verifies(&made.authority, &made.serving.certificate));
    assert!(!directory.path.join("ca-next.key").exists());
}
