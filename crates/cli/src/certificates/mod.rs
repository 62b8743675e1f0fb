//! The certificates that a server creates: a certificate authority, a serving certificate, and the administrator's.
//!
//! `ca.crt` has the authority that signs, followed by the former one while `pintle certificates rotate-ca` is not finished.

mod inspect;
mod issue;
mod names;
mod pem;
pub mod rotation;
mod subject;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use client::{Context as _, Result, fail};
use rcgen::KeyPair;

pub use inspect::{Facts, first, of_pem};
pub use issue::{client, requested};
pub use names::{Names, hostname};

use crate::files::read_existing;
use crate::limits;

pub const AUTHORITY: &str = "ca";
pub const SERVING: &str = "serving";
pub const ADMIN: &str = "admin";
/// The common name of the first authority.
const AUTHORITY_NAME: &str = "pintle-ca";

/// A certificate and its key, PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// The certificates that the server presents and trusts.
#[derive(Clone, Debug)]
pub struct Certificates {
    pub authority: String,
    pub serving: Pair,
    pub admin: Pair,
}

/// Writes a file atomically, readable by its owner only.
pub fn write_private(path: &Path, content: &str) -> Result<()> {
    write_atomically(path, content, 0o600)
}

pub fn write_atomically(path: &Path, content: &str, mode: u32) -> Result<()> {
    replace(path, content, mode, AfterCrash::Whole)
}

/// States of a file that was just written, after a crash of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterCrash {
    /// It has the old content or the new one.
    Whole,
    /// It may be empty: its reader makes it anew.
    Lost,
}

fn replace(path: &Path, content: &str, mode: u32, after_crash: AfterCrash) -> Result<()> {
    let temporary = path.with_extension("tmp");
    let write = || {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&temporary)?;
        file.write_all(content.as_bytes())?;
        if after_crash == AfterCrash::Whole {
            file.sync_all()?;
        }
        fs::rename(&temporary, path)
    };
    write().cannot("write", path)
}

fn read(path: &Path) -> Result<Option<String>> {
    // what is no PEM is found by its parser, whose error has the remedy
    Ok(read_existing(path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The act of issuing, in errors.
const CANNOT_MAKE: &str = "cannot make a certificate";

/// How to treat a missing certificate authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingAuthority {
    Made,
    /// It was there when the server started.
    Refused,
}

#[derive(Clone, Debug)]
pub struct Directory {
    pub path: PathBuf,
}

pub fn directory_of(data_dir: &Path, cert_dir: Option<&PathBuf>) -> Directory {
    Directory { path: cert_dir.cloned().unwrap_or_else(|| data_dir.to_owned()) }
}

impl Directory {
    /// Keeps others from changing the certificates until the lock is dropped.
    pub fn lock(&self) -> Result<fs::File> {
        let directory = fs::File::open(&self.path);
        directory.and_then(|directory| directory.lock().map(|()| directory)).cannot("lock", &self.path)
    }

    /// The files that change when certificates are renewed.
    pub fn files(&self) -> Vec<PathBuf> {
        [AUTHORITY, SERVING, ADMIN].map(|name| self.path.join(format!("{name}.crt"))).to_vec()
    }

    pub fn load(&self, name: &str) -> Result<Option<Pair>> {
        let (certificate, key) =
            (read(&self.path.join(format!("{name}.crt")))?, read(&self.path.join(format!("{name}.key")))?);
        let missing = |is, of| {
            let file = |extension| self.path.join(name).with_extension(extension).display().to_string();
            let (is, of) = (file(is), file(of));
            format!("{is} is missing: put it back, or remove {of}, which belongs to it, to have both made anew")
        };
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(Pair { certificate, key })),
            (Some(_), None) => fail(missing("key", "crt")),
            // clients trust the certificate of the authority, so a new one must not take its place unasked
            (None, Some(_)) if name == AUTHORITY => fail(missing("crt", "key")),
            // the key is written first, so a key without a certificate is what an interrupted process has left
            (None, _) => Ok(None),
        }
    }

    /// Writes the key and the certificate of a new authority, durably. The key gets its name last, so that a key without a
    /// certificate shows that the certificate was lost.
    fn save_authority(&self, pair: &Pair) -> Result<()> {
        write_private(&self.path.join(rotation::NEXT_KEY), &pair.key)?;
        write_private(&self.path.join("ca.crt"), &pair.certificate)?;
        rotation::settle(self)
    }

    /// Writes a key, and then its certificate. They need not survive a crash: a pair that is incomplete is replaced at the next
    /// start.
    fn save(&self, name: &str, pair: &Pair) -> Result<()> {
        let write = |extension, content: &str| {
            replace(&self.path.join(format!("{name}.{extension}")), content, 0o600, AfterCrash::Lost)
        };
        write("key", &pair.key)?;
        write("crt", &pair.certificate)
    }

    pub fn authority(&self) -> Result<Option<Pair>> {
        rotation::settle(self)?;
        self.load(AUTHORITY)
    }

    /// Warns if every user of the machine can read the key with which anyone can be impersonated.
    fn warn_of_readers(&self) {
        let key = self.path.join("ca.key");
        if fs::metadata(&key).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0) {
            tracing::warn!(key = %key.display(), "every user can read this key; take that permission away (chmod o-r)");
        }
    }

    /// The facts of an authority whose files are whole. The error names the file that is not, and the remedy.
    fn check_authority(&self, authority: &Pair) -> Result<Facts> {
        let damaged = |name: &str, why: &dyn std::fmt::Display| {
            let path = self.path.join(name);
            format!(
                "{} is damaged: {why}; put it back from a backup, or remove ca.crt and ca.key to have an authority made that \
                 clients do not know yet",
                path.display()
            )
        };
        let facts = first(&authority.certificate).map_err(|why| damaged("ca.crt", &why))?;
        KeyPair::from_pem(&authority.key).map_err(|_| damaged("ca.key", &"it holds no private key"))?;
        if belong_together(authority) { Ok(facts) } else { fail(damaged("ca.key", &"it is not the key of ca.crt")) }
    }

    /// Reads the certificates, creates missing ones, and renews those that expire soon, that are not valid yet, that another
    /// authority has signed, or that lack one of the names.
    pub fn load_or_make(&self, names: &Names, missing: MissingAuthority) -> Result<Certificates> {
        let mut private = fs::DirBuilder::new();
        let made = private.recursive(true).mode(0o700).create(&self.path);
        made.cannot("create", &self.path)?;
        let _lock = self.lock()?;
        let authority = match self.authority()? {
            Some(authority) => authority,
            None if missing == MissingAuthority::Refused => {
                let path = self.path.display();
                return fail(format!("ca.crt and ca.key have vanished from {path}; put them back from a backup"));
            }
            None => {
                if self.path.join("serving.crt").exists() {
                    let directory = self.path.display();
                    tracing::warn!(%directory, "ca.crt and ca.key are missing; clients do not know the authority that is made");
                }
                let authority = issue::authority(AUTHORITY_NAME).context(CANNOT_MAKE)?;
                self.save_authority(&authority)?;
                authority
            }
        };
        let signed_by = self.check_authority(&authority)?;
        self.warn_of_readers();
        let load_fresh = |name: &str, names: &Names| -> Result<Option<Pair>> {
            let Some(pair) = self.load(name)? else { return Ok(None) };
            let is_fresh = first(&pair.certificate).is_ok_and(|facts| {
                facts.is_signed_by(&signed_by) && stays_valid(&facts, &signed_by) && facts.names.include(names)
            });
            // a process may have been interrupted between writing the two files
            Ok(Some(pair).filter(|pair| is_fresh && belong_together(pair)))
        };
        let serving = match load_fresh(SERVING, names)? {
            Some(serving) => serving,
            None => self.issue_serving(names, &authority)?,
        };
        let admin = match load_fresh(ADMIN, &Names::default())? {
            Some(admin) => admin,
            None => self.issue_admin(&authority)?,
        };
        Ok(Certificates { authority: authority.certificate, serving, admin })
    }

    pub fn issue_serving(&self, names: &Names, by: &Pair) -> Result<Pair> {
        let mut serving = issue::serving(names, by).context(CANNOT_MAKE)?;
        serving.certificate += &read(&self.path.join(rotation::CROSS))?.unwrap_or_default();
        self.save(SERVING, &serving)?;
        Ok(serving)
    }

    pub fn issue_admin(&self, by: &Pair) -> Result<Pair> {
        let groups = ["system:masters".to_owned()];
        let admin =
            issue::client("kubernetes-admin", &groups, limits::CERTIFICATE_LIFETIME, by).context(CANNOT_MAKE)?;
        self.save(ADMIN, &admin)?;
        Ok(admin)
    }
}

/// Whether a certificate is valid and does not expire soon. One that is as little valid yet as its authority cannot be made better.
fn stays_valid(facts: &Facts, authority: &Facts) -> bool {
    let now = base::clock::now_seconds();
    let left = facts.not_after.saturating_sub(now);
    let renewal = i64::try_from(limits::CERTIFICATE_RENEWAL.as_secs()).unwrap_or(i64::MAX);
    left >= renewal && (facts.not_before <= now || facts.not_before <= authority.not_before)
}

/// Whether the key is that of the first certificate.
fn belong_together(pair: &Pair) -> bool {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let (Ok(key), Ok(certificate)) =
        (KeyPair::from_pem(&pair.key), CertificateDer::from_pem_slice(pair.certificate.as_bytes()))
    else {
        return false;
    };
    let raw = key.public_key_raw();
    certificate.windows(raw.len()).any(|part| part == raw)
}

#[cfg(test)]
mod tests;
