//! The keys of ServiceAccount tokens: from flags, or created at the first start beside the certificates.

use std::path::{Path, PathBuf};

use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use server::{AccountOptions, Accounts};

use crate::certificates::write_private;
use crate::files::read;
use crate::flags::Serve;

/// The file name of the key that the server generates.
const KEY: &str = "service-account.key";
/// The range of `--service-account-max-token-expiration` in seconds; kube-apiserver's.
const EXPIRATION_SECONDS: std::ops::RangeInclusive<u64> = 3600..=1 << 32;

/// The options for issuing and accepting tokens, and the file of the signing key if it has yet to be generated.
pub fn load(flags: &Serve, directory: &Path) -> Result<(Accounts, Option<PathBuf>), String> {
    let max_expiration = flags.service_account_max_token_expiration.as_secs();
    if max_expiration != 0 && !EXPIRATION_SECONDS.contains(&max_expiration) {
        return Err("--service-account-max-token-expiration: must be between 1 hour and 2^32 seconds".to_owned());
    }
    if flags.service_account_issuer.iter().any(String::is_empty) {
        return Err("--service-account-issuer: must not be empty".to_owned());
    }
    let key_file = |path: &PathBuf| Ok((format!("--service-account-key-file: {}", path.display()), read(path)?));
    let options = AccountOptions {
        issuers: flags.service_account_issuer.clone(),
        audiences: flags.api_audiences.clone(),
        max_expiration: i64::try_from(max_expiration).unwrap_or(0),
        extend_expiration: flags.service_account_extend_token_expiration,
        jwks_uri: flags.service_account_jwks_uri.clone(),
        keys: flags.service_account_key_file.iter().map(key_file).collect::<Result<_, String>>()?,
    };
    let accounts = Accounts::new(options)?;
    let generated = directory.join(KEY);
    let path = flags.service_account_signing_key_file.clone().or_else(|| generated.exists().then(|| generated.clone()));
    let Some(path) = path else { return Ok((accounts, Some(generated))) };
    let used = accounts.set_signing_key(Ok(&read(&path)?));
    used.map_err(|why| format!("the signing key {} cannot be used: {why}", path.display()))?;
    Ok((accounts, None))
}

/// Generates the signing key in a separate thread: an RSA key takes longer than the rest of the start, and it is only needed
/// for the first token. It is an RSA key since every verifier of OpenID Connect supports RS256. The caller must join the
/// thread before the process exits.
pub fn make_signing_key(accounts: Accounts, path: PathBuf) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let made = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)
            .map_err(|error| format!("the key of ServiceAccount tokens cannot be generated: {error}"))
            .map(|key| key.serialize_pem())
            .and_then(|pem| write_private(&path, &pem).map(|()| pem));
        // tokens must stay valid after a restart, so a key that cannot be saved is not used
        let used = accounts.set_signing_key(made.as_ref().map(String::as_bytes).map_err(Clone::clone));
        if let Err(why) = used {
            tracing::error!(why, "no tokens can be issued to ServiceAccounts");
        }
    })
}
