//! The certificates that a server makes for itself, and the administrator's kubeconfigs, both kept valid while it runs.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use client::Result;
use parking_lot::{Mutex, MutexGuard};
use server::{CertificateSigner, Controllers};

use crate::certificates::{self, Certificates, Directory, MissingAuthority, Names, directory_of};
use crate::files::read_text;
use crate::flags::Serve;
use crate::kubeconfig::{ADMIN_FILE, AdminFiles};
use crate::{accounts, limits};

/// The certificates and kubeconfigs of a running server.
#[derive(Clone)]
pub struct Credentials(Arc<Inner>);

struct Inner {
    directory: Directory,
    /// The names that the serving certificate should have now.
    names: Box<dyn Fn() -> Names + Send + Sync>,
    /// The file of the CA bundle that `kube-root-ca.crt` contains instead of the server's own: `--root-ca-file`, else
    /// `--tls-cert-file`.
    root_authority: Option<PathBuf>,
    /// The file of the CA bundle in kubeconfigs instead of the server's own: `--tls-cert-file`.
    trusted: Option<PathBuf>,
    kubeconfigs: AdminFiles,
    /// The URL of the server, when it is known.
    url: OnceLock<String>,
    certificates: Mutex<Certificates>,
}

impl Credentials {
    /// Reads the certificates or makes them. Fails with a one-line message.
    pub fn start(flags: &Serve) -> Result<Credentials> {
        let mut files = vec![(flags.data_dir.join(ADMIN_FILE), 0o600)];
        files.extend(flags.write_kubeconfig.clone().map(|path| (path, flags.write_kubeconfig_mode)));
        let kubeconfigs = AdminFiles { files, context: flags.kubeconfig_context.clone() };
        kubeconfigs.check()?;
        let addresses: Vec<_> = [Some(flags.bind_address), flags.advertise_address].into_iter().flatten().collect();
        let mut more_names = flags.tls_san.clone();
        if flags.workspaces {
            let domain = flags.workspace_domain();
            more_names.extend([format!("*.{domain}"), domain.to_owned()]);
        }
        // the addresses of the machine may change
        let names = Box::new(move || Names::of(&addresses, &more_names));
        let directory = directory_of(&flags.data_dir, flags.cert_dir.as_ref());
        let certificates = Mutex::new(directory.load_or_make(&names(), MissingAuthority::Made)?);
        let root_authority = flags.root_ca_file.clone().or(flags.tls_cert_file.clone());
        let (trusted, url) = (flags.tls_cert_file.clone(), OnceLock::new());
        Ok(Credentials(Arc::new(Inner { directory, names, root_authority, trusted, kubeconfigs, url, certificates })))
    }

    fn lock(&self) -> MutexGuard<'_, Certificates> {
        self.0.certificates.lock()
    }

    pub fn current(&self) -> Certificates {
        self.lock().clone()
    }

    pub fn directory(&self) -> &Directory {
        &self.0.directory
    }

    /// The files that change when certificates are renewed.
    pub fn files(&self) -> Vec<PathBuf> {
        self.0.directory.files()
    }

    /// Renews certificates that expire soon, or that lack an address which the machine has now.
    pub fn renew(&self) {
        if let Err(why) = self.0.directory.load_or_make(&(self.0.names)(), MissingAuthority::Refused) {
            tracing::error!(why = why.to_string(), "certificates cannot be renewed");
        }
        if let Err(why) = accounts::check(&self.0.directory) {
            tracing::error!(why = why.to_string(), "the key of ServiceAccount tokens has vanished");
        }
    }

    /// Reads the certificates again after their files have changed.
    pub fn read_again(&self) -> Result<()> {
        let certificates = self.0.directory.load_or_make(&(self.0.names)(), MissingAuthority::Refused)?;
        *self.lock() = certificates;
        Ok(())
    }

    /// Writes the kubeconfigs of a server with this URL. Returns the one in the data directory.
    pub fn write_kubeconfigs(&self, url: String) -> Result<PathBuf> {
        let _ = self.0.url.set(url);
        self.update_kubeconfigs()?;
        Ok(self.0.kubeconfigs.files.first().map(|(path, _)| path.clone()).unwrap_or_default())
    }

    /// Puts the certificates into the kubeconfigs.
    pub fn update_kubeconfigs(&self) -> Result<()> {
        let Some(url) = self.0.url.get() else { return Ok(()) };
        let certificates = self.current();
        let authority = bundle(self.0.trusted.as_ref(), &certificates)?;
        self.0.kubeconfigs.write(url, &authority, &certificates.admin)
    }

    /// The CA bundle of the serving certificate, PEM, which `kube-root-ca.crt` contains.
    pub fn root_authority(&self) -> Result<String> {
        bundle(self.0.root_authority.as_ref(), &self.current())
    }

    /// Gives controllers the CA bundle to publish, and the server's own authority, with which they sign client
    /// certificates.
    pub fn equip(&self, controllers: &mut Controllers) -> Result<()> {
        controllers.root_authority = self.root_authority()?;
        let credentials = self.clone();
        let sign = move |request: &str, lifetime| Ok(credentials.sign(request, lifetime)?);
        controllers.signer = Some(CertificateSigner::new(sign));
        Ok(())
    }

    fn sign(&self, request: &str, lifetime: Option<Duration>) -> Result<String> {
        let authority = self.0.directory.authority()?.ok_or("there is no certificate authority")?;
        let until = certificates::first(&authority.certificate)?.not_after;
        let left =
            u64::try_from(until - base::clock::now_seconds()).map_err(|_| "the certificate authority has expired")?;
        let lifetime = lifetime.unwrap_or(limits::CERTIFICATE_LIFETIME);
        let lifetime = lifetime.min(limits::CERTIFICATE_LIFETIME).min(Duration::from_secs(left));
        Ok(certificates::requested(request, lifetime, &authority)?)
    }
}

/// The CA bundle of a file, else that of the server's own certificates.
fn bundle(file: Option<&PathBuf>, certificates: &Certificates) -> Result<String> {
    match file {
        Some(path) => read_text(path),
        None => Ok(certificates.authority.clone()),
    }
}
