//! `pintle kubeconfig create`: a kubeconfig with a client certificate of a user.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::kubeconfig::{ADMIN_FILE, Entries, Kubeconfig};
use crate::place::CertificatePlace;
use crate::values::{context_name, server_url, subject, user_lifetime};
use crate::{certificates, logs};

#[derive(Subcommand)]
pub enum KubeconfigTask {
    /// Create a kubeconfig with a client certificate for a user, signed by the certificate authority of a data directory.
    ///
    /// The certificate is valid until it expires: grant it its rights by RoleBindings, which can be removed.
    Create(KubeconfigFlags),
}

#[derive(Args)]
pub struct KubeconfigFlags {
    /// Name of the user.
    #[arg(value_parser = subject)]
    pub name: String,

    /// Group of the user; may be repeated.
    #[arg(long, value_name = "GROUP", value_parser = subject)]
    pub group: Vec<String>,

    /// Time for which the certificate is valid, at least 10m.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = user_lifetime)]
    pub ttl: std::time::Duration,

    /// URL of the server [default: that of the administrator's kubeconfig in the data directory].
    #[arg(long, value_name = "URL", value_parser = server_url)]
    pub server: Option<String>,

    /// Add the context to the kubeconfig of the environment variable KUBECONFIG, or ~/.kube/config, instead of printing it.
    #[arg(long)]
    pub merge: bool,

    /// Name of the context.
    #[arg(long, value_name = "NAME", default_value = "pintle", value_parser = context_name)]
    pub context: String,

    #[command(flatten)]
    pub place: CertificatePlace,
}

/// Creates it. The error is one line.
pub fn create(task: &KubeconfigFlags) -> Result<(), String> {
    let directory = task.place.directory();
    let authority = directory.authority()?.ok_or_else(|| {
        format!("{} has no certificate authority: pintle serve creates it at its first start", directory.path.display())
    })?;
    let server = match &task.server {
        Some(server) => server.clone(),
        None => server_of_admin(task)?,
    };
    let credentials = certificates::client(&task.name, &task.group, task.ttl, &authority)
        .map_err(|error| format!("cannot make a certificate for {:?}: {error}", task.name))?;
    let entries = Entries { context: task.context.clone(), user: task.name.clone() };
    if !task.merge {
        let mut kubeconfig = Kubeconfig::new();
        kubeconfig.set(&entries, &server, &authority.certificate, &credentials);
        return logs::print(kubeconfig.text().as_bytes());
    }
    let path = merge_target()?;
    let mut kubeconfig = Kubeconfig::read(&path)?.unwrap_or_else(Kubeconfig::new);
    kubeconfig.set(&entries, &server, &authority.certificate, &credentials);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| format!("cannot create {}: {error}", parent.display()))?;
    }
    kubeconfig.write(&path, 0o600)?;
    // stdout may be closed
    let _ = writeln!(std::io::stdout(), "context {:?} is written to {}", task.context, path.display());
    Ok(())
}

/// The server of the administrator's kubeconfig.
fn server_of_admin(task: &KubeconfigFlags) -> Result<String, String> {
    let path = task.place.place.data_dir.join(ADMIN_FILE);
    let kubeconfig = Kubeconfig::read(&path)?;
    let server = kubeconfig.as_ref().and_then(Kubeconfig::server).map(str::to_owned);
    server.ok_or_else(|| format!("{} names no server; give one with --server https://HOST:PORT", path.display()))
}

/// The file that kubectl would write to.
fn merge_target() -> Result<PathBuf, String> {
    let listed = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
    let first = listed.and_then(|value| std::env::split_paths(&value).find(|path| !path.as_os_str().is_empty()));
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
    first.or_else(home).ok_or_else(|| "--merge: neither KUBECONFIG nor HOME is set".to_owned())
}
