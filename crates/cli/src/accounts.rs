//! The keys of ServiceAccount tokens: from flags, or created at their first use beside the certificates.

use std::path::PathBuf;
use std::thread::JoinHandle;

use client::{Context as _, Result, fail};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use server::{AccountOptions, Accounts};

use crate::certificates::{Directory, write_private};
use crate::files::{read, read_text};
use crate::flags::Serve;

/// The file name of the key that the server generates.
const KEY: &str = "service-account.key";
/// The public key of the generated one. Where it is alone, the key was lost, and a new one would end the validity of all tokens.
const PUBLIC_KEY: &str = "service-account.pub";
/// The range of `--service-account-max-token-expiration` in seconds; kube-apiserver's.
const EXPIRATION_SECONDS: std::ops::RangeInclusive<u64> = 3600..=1 << 32;

/// The options for issuing and accepting tokens, and the signing key that has yet to be made, if there is none.
pub fn load(flags: &Serve, directory: &Directory) -> Result<(Accounts, Option<KeyToMake>)> {
    let max_expiration = flags.service_account_max_token_expiration.as_secs();
    if max_expiration != 0 && !EXPIRATION_SECONDS.contains(&max_expiration) {
        return fail("--service-account-max-token-expiration: must be between 1 hour and 2^32 seconds");
    }
    if flags.service_account_issuer.iter().any(String::is_empty) {
        return fail("--service-account-issuer: must not be empty");
    }
    let key_file = |path: &PathBuf| Ok((format!("--service-account-key-file: {}", path.display()), read(path)?));
    let options = AccountOptions {
        issuers: flags.service_account_issuer.clone(),
        audiences: flags.api_audiences.clone(),
        max_expiration: i64::try_from(max_expiration).unwrap_or(0),
        extend_expiration: flags.service_account_extend_token_expiration,
        jwks_uri: flags.service_account_jwks_uri.clone(),
        keys: flags.service_account_key_file.iter().map(key_file).collect::<Result<_>>()?,
    };
    let accounts = Accounts::new(options)?;
    let generated = directory.path.join(KEY);
    let path = flags.service_account_signing_key_file.clone().or_else(|| generated.exists().then(|| generated.clone()));
    let Some(path) = path else {
        check(directory)?;
        let key = KeyToMake { accounts: accounts.clone(), directory: directory.clone(), thread: None };
        return Ok((accounts, Some(key)));
    };
    let key = read(&path)?;
    let remedy = match path == generated {
        true => {
            "; put it back from a backup, or remove it and service-account.pub to have one made that ends all tokens"
        }
        false => "",
    };
    let used = accounts.set_signing_key(Ok(&key));
    used.map_err(|why| format!("the signing key {} cannot be used: {why}{remedy}", path.display()))?;
    if path == generated && !directory.path.join(PUBLIC_KEY).exists() {
        // an earlier version has made the key, or a restore has brought it
        save_public_key(directory, &String::from_utf8_lossy(&key))?;
    }
    Ok((accounts, None))
}

/// Fails if the generated key was there and is missing now.
pub fn check(directory: &Directory) -> Result<()> {
    let (key, public) = (directory.path.join(KEY), directory.path.join(PUBLIC_KEY));
    match public.exists() && !key.exists() {
        false => Ok(()),
        true => fail(format!(
            "{} is missing: put it back from a backup, or remove {} to have one made that ends the validity of all tokens",
            key.display(),
            public.display()
        )),
    }
}

fn save_public_key(directory: &Directory, key: &str) -> Result<()> {
    // a key that this library does not read, which the server does, has no public key here
    let Ok(key) = KeyPair::from_pem(key) else { return Ok(()) };
    write_private(&directory.path.join(PUBLIC_KEY), &key.public_key_pem())
}

/// A signing key that is made when a token or the key set is first asked for: most servers of test suites never issue a
/// token, and an RSA key costs more than the rest of the start. It is an RSA key since every verifier of OpenID Connect
/// supports RS256.
pub struct KeyToMake {
    accounts: Accounts,
    directory: Directory,
    thread: Option<JoinHandle<()>>,
}

impl KeyToMake {
    /// Waits until the key is needed; for ever if it is made already.
    pub async fn wanted(&self) {
        match self.thread {
            None => self.accounts.signing_key_wanted().await,
            Some(_) => std::future::pending().await,
        }
    }

    /// Begins to make the key, in a thread of its own.
    pub fn make(&mut self) {
        let (accounts, directory) = (self.accounts.clone(), self.directory.clone());
        self.thread = Some(std::thread::spawn(move || {
            // tokens must stay valid after a restart, so a key that cannot be saved is not used
            let made = read_or_make(&directory);
            if let Err(why) = accounts.set_signing_key(made.as_ref().map(String::as_bytes).map_err(ToString::to_string))
            {
                tracing::error!(why, "no tokens can be issued to ServiceAccounts");
            }
        }));
    }

    /// Waits for the thread. The process must not exit before: its exit could destroy the state of a random number
    /// generator that is in use, and abort.
    pub fn join(self) {
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

/// Reads the key, or makes and saves it. Servers with a common directory get the same key.
fn read_or_make(directory: &Directory) -> Result<String> {
    let _lock = directory.lock()?;
    let path = directory.path.join(KEY);
    if path.exists() {
        return read_text(&path);
    }
    check(directory)?;
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)
        .context("the key of ServiceAccount tokens cannot be generated")?;
    let pem = key.serialize_pem();
    write_private(&path, &pem)?;
    save_public_key(directory, &pem)?;
    Ok(pem)
}
