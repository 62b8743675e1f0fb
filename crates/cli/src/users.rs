//! `pintle kubeconfig create`: a kubeconfig with a client certificate of a user.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use client::{Context as _, Result, fail};

use crate::kubeconfig::{ADMIN_FILE, Entries, Kubeconfig};
use crate::place::{CertificatePlace, listed_kubeconfigs};
use crate::values::{context_name, server_url, subject, user_lifetime};
use crate::{certificates, logs};

#[derive(Subcommand)]
pub enum KubeconfigTask {
    /// Create a kubeconfig with a client certificate for a user, signed by the certificate authority of a data directory.
    ///
    /// The certificate cannot be revoked before it expires. Grant permissions to the user with RoleBindings, which you can
    /// delete.
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

    /// Time for which the certificate is valid, at least 10m, such as 12h or 30d.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = user_lifetime)]
    pub ttl: std::time::Duration,

    /// URL of the server [default: that of the administrator's kubeconfig in the data directory].
    #[arg(long, value_name = "URL", value_parser = server_url)]
    pub server: Option<String>,

    /// Add the context to the kubeconfigs of the environment variable KUBECONFIG, or to ~/.kube/config, instead of printing
    /// it. Like kubectl, this writes to the file that has the context, otherwise to the first one that exists, or creates
    /// the last one.
    #[arg(long)]
    pub merge: bool,

    /// With --merge, replace the context if it is there already, for example to renew its certificate.
    #[arg(long, requires = "merge")]
    pub replace: bool,

    /// Name of the context, its cluster and its user in the kubeconfig [default: NAME@pintle].
    #[arg(long, value_name = "CONTEXT", value_parser = context_name)]
    pub context: Option<String>,

    #[command(flatten)]
    pub place: CertificatePlace,
}

/// Creates the kubeconfig, and prints it or merges it into a file. Fails with a one-line message.
pub fn create(task: &KubeconfigFlags) -> Result<()> {
    let directory = task.place.directory();
    let authority = directory.authority()?.ok_or_else(|| {
        format!("{} has no certificate authority: pintle serve creates it at its first start", directory.path.display())
    })?;
    let server = match &task.server {
        Some(server) => server.clone(),
        None => server_of_admin(task)?,
    };
    let credentials = certificates::client(&task.name, &task.group, task.ttl, &authority)
        .context(format_args!("cannot make a certificate for {:?}", task.name))?;
    let context = task.context.clone().unwrap_or_else(|| format!("{}@pintle", task.name));
    let entries = Entries { user: context.clone(), context };
    let mut target = if task.merge { Some(MergeTarget::find(&entries, task.replace)?) } else { None };
    let mut new = Kubeconfig::new();
    let kubeconfig = target.as_mut().map_or(&mut new, |target| &mut target.kubeconfig);
    kubeconfig.set(&entries, &server, &authority.certificate, &credentials);
    let Some(mut target) = target else {
        new.set_current_context(&entries.context);
        return logs::print(new.text().as_bytes());
    };
    if !target.has_current_context {
        target.kubeconfig.set_current_context(&entries.context);
    }
    target.write()?;
    logs::say(&format!("context {:?} is written to {}", entries.context, target.path.display()));
    Ok(())
}

/// The kubeconfig that a context is added to.
struct MergeTarget {
    path: PathBuf,
    kubeconfig: Kubeconfig,
    /// Whether this or another file of `KUBECONFIG` has a current context.
    has_current_context: bool,
}

impl MergeTarget {
    /// Reads the files of `KUBECONFIG` and chooses one as kubectl does: the first one with an entry of these names, else the first one
    /// that exists, else the last one. The error is one line; an existing entry that may not be replaced is an error
    /// too.
    fn find(entries: &Entries, replace: bool) -> Result<MergeTarget> {
        let home = || std::env::var_os("HOME").map(|home| vec![PathBuf::from(home).join(".kube/config")]);
        let paths = listed_kubeconfigs().or_else(home).ok_or("--merge: neither KUBECONFIG nor HOME is set")?;
        let mut found = vec![];
        for path in &paths {
            if let Some(kubeconfig) = Kubeconfig::read(path)? {
                found.push((path.clone(), kubeconfig));
            }
        }
        let has_current_context = found.iter().any(|(_, kubeconfig)| kubeconfig.has_current_context());
        let taken = found.iter().position(|(_, kubeconfig)| kubeconfig.taken(entries).is_some());
        if let (Some(at), false) = (taken, replace) {
            let (path, kubeconfig) = &found[at];
            let what = kubeconfig.taken(entries).unwrap_or_default();
            return fail(format!(
                "{} has {what} already: replace it with --replace, or choose another name with --context",
                path.display()
            ));
        }
        let (path, kubeconfig) = match found.is_empty() {
            true => (paths.last().cloned().unwrap_or_default(), Kubeconfig::new()),
            false => found.swap_remove(taken.unwrap_or(0)),
        };
        Ok(MergeTarget { path, kubeconfig, has_current_context })
    }

    fn write(&self) -> Result<()> {
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent).cannot("create", parent)?;
        }
        self.kubeconfig.write(&self.path, 0o600)
    }
}

/// The server of the administrator's kubeconfig.
fn server_of_admin(task: &KubeconfigFlags) -> Result<String> {
    let path = task.place.place.data_dir.join(ADMIN_FILE);
    let kubeconfig = Kubeconfig::read(&path)?;
    let server = kubeconfig.as_ref().and_then(Kubeconfig::server).map(str::to_owned);
    Ok(server.ok_or_else(|| format!("{} names no server; give one with --server https://HOST:PORT", path.display()))?)
}
