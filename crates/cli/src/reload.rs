//! Certificates, keys and tokens in files that flags name; they are reloaded when they change, and on SIGHUP.

use std::path::{Path, PathBuf};

use base::metrics::METRICS;
use client::{Context as _, Failure, Result, fail};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use server::{ProxyAuthority, Replacement, Replacements, StaticTokens, Tls};

use crate::certificates::first;
use crate::credentials::Credentials;
use crate::files::read;
use crate::flags::Serve;

/// The files, and the content to use for those that no flag names.
#[derive(Clone)]
pub struct Files {
    /// `--tls-cert-file` and `--tls-private-key-file`.
    serving: Option<(PathBuf, PathBuf)>,
    /// `--client-ca-file`.
    client_ca: Option<PathBuf>,
    /// `--requestheader-client-ca-file` and `--requestheader-allowed-names`.
    proxy: Option<(PathBuf, Vec<String>)>,
    /// `--token-auth-file`.
    tokens: Option<PathBuf>,
    /// Credentials that the server creates. Clients with a certificate of its own authority are always accepted, too.
    credentials: Credentials,
}

impl Files {
    pub fn of(flags: &Serve, credentials: &Credentials) -> Files {
        let identity = &flags.identity;
        Files {
            serving: flags.tls_cert_file.clone().zip(flags.tls_private_key_file.clone()),
            client_ca: identity.client_ca_file.clone(),
            proxy: identity.requestheader_client_ca_file.clone().map(|path| {
                let names = identity.requestheader_allowed_names.clone();
                (path, names)
            }),
            tokens: identity.token_auth_file.clone(),
            credentials: credentials.clone(),
        }
    }

    /// Reads the certificates and keys. The error is one line that names the file.
    pub fn tls(&self) -> Result<Tls> {
        let credentials = self.credentials.current();
        let (certificate, key) = match &self.serving {
            Some((certificate, key)) => (read_certificates(certificate)?, read(key)?),
            None => {
                (credentials.serving.certificate.clone().into_bytes(), credentials.serving.key.clone().into_bytes())
            }
        };
        for (name, pem) in [
            ("serving", &*certificate),
            ("ca", credentials.authority.as_bytes()),
            ("admin", credentials.admin.certificate.as_bytes()),
        ] {
            if let Ok(facts) = std::str::from_utf8(pem).map_err(Failure::from).and_then(first) {
                METRICS.operation.certificate(name, facts.not_after);
                if let Some(why) = facts.invalid_at(base::clock::machine_seconds()) {
                    tracing::error!(certificate = name, why, "a certificate is not valid, and clients reject it");
                }
            }
        }
        let mut client_ca = credentials.authority.clone().into_bytes();
        if let Some(path) = &self.client_ca {
            client_ca.extend(read_certificates(path)?);
        }
        let proxy = match &self.proxy {
            Some((path, names)) => Some(ProxyAuthority { ca: read_certificates(path)?, names: names.clone() }),
            None => None,
        };
        Ok(Tls { certificate, key, client_ca, proxy })
    }

    /// Reads the token file. The error is one line that names the flag.
    pub fn tokens(&self) -> Result<StaticTokens> {
        let Some(path) = &self.tokens else { return Ok(StaticTokens::default()) };
        let text = String::from_utf8(read(path)?).map_err(|_| format!("{} is not UTF-8", path.display()));
        text.and_then(|text| StaticTokens::parse(&text)).context("--token-auth-file")
    }

    /// The files with the function that reloads them.
    pub fn replacements(self) -> Replacements {
        let serving = self.serving.iter().flat_map(|(certificate, key)| [certificate, key]);
        let proxy = self.proxy.iter().map(|(path, _)| path);
        let paths = serving.chain(&self.client_ca).chain(proxy).chain(&self.tokens).cloned();
        let paths = paths.chain(self.credentials.files()).collect();
        let credentials = self.credentials.clone();
        let read = move || {
            self.credentials.read_again()?;
            Ok(Replacement {
                tls: self.tls()?,
                tokens: self.tokens()?,
                root_authority: self.credentials.root_authority()?,
            })
        };
        // clients must not use new certificates before the server does
        Replacements { paths, read: Box::new(read), applied: Box::new(move || Ok(credentials.update_kubeconfigs()?)) }
    }
}

/// A file of one or more certificates, PEM.
fn read_certificates(path: &Path) -> Result<Vec<u8>> {
    let pem = read(path)?;
    match CertificateDer::pem_slice_iter(&pem).next() {
        Some(Ok(_)) => Ok(pem),
        Some(Err(error)) => fail(format!("{}: {error}", path.display())),
        None => fail(format!("{} contains no certificate", path.display())),
    }
}
