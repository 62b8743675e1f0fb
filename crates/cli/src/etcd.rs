//! From the flags to etcd.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::flags::Etcd;

/// The variable of the password, where no file is named.
const PASSWORD: &str = "PINTLE_ETCD_PASSWORD";

/// The file in the data directory that holds the id of the cluster.
const CLUSTER: &str = "etcd-cluster";
/// The folder of events, which are written with leases.
const EVENTS: &str = "events";

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// What only a server does.
pub struct Server<'a> {
    /// Where it remembers the cluster, beside its certificates.
    pub directory: &'a Path,
    /// How long events are kept; zero for ever.
    pub event_ttl: Duration,
    /// How it writes custom resources.
    pub form: server::CustomForm,
}

/// The store that flags describe. Nothing is asked of it yet.
pub fn store(flags: &Etcd) -> Result<store_etcd::Etcd, String> {
    open(flags, None)
}

fn open(flags: &Etcd, server: Option<&Server>) -> Result<store_etcd::Etcd, String> {
    if flags.etcd_servers.is_empty() {
        return Err("--storage etcd: needs --etcd-servers".to_owned());
    }
    let expiring = server.filter(|server| !server.event_ttl.is_zero());
    let options = store_etcd::Options {
        servers: flags.etcd_servers.clone(),
        prefix: flags.etcd_prefix.clone(),
        authority: flags.etcd_cafile.as_deref().map(read).transpose()?,
        identity: match (&flags.etcd_certfile, &flags.etcd_keyfile) {
            (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
            _ => None,
        },
        credentials: credentials(flags)?,
        cluster: flags.etcd_cluster_id,
        cluster_file: server.map(|server| server.directory.join(CLUSTER)),
        expiring: expiring.map(|server| (EVENTS.to_owned(), server.event_ttl)),
    };
    store_etcd::Etcd::new(&options)
}

/// The same with the layout of the API server.
pub fn storage(flags: &Etcd, server: Option<&Server>) -> Result<server::Storage, String> {
    let prefix = store_etcd::normalise(&flags.etcd_prefix);
    let form = server.map(|server| server.form).unwrap_or_default();
    Ok(server::upstream_storage(Arc::new(open(flags, server)?), &prefix, form))
}

fn credentials(flags: &Etcd) -> Result<Option<store_etcd::Credentials>, String> {
    let Some(user) = flags.etcd_username.clone() else { return Ok(None) };
    let password = match &flags.etcd_password_file {
        Some(path) => {
            let text = String::from_utf8(read(path)?).map_err(|_| format!("{} is no text", path.display()))?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
        None => std::env::var(PASSWORD)
            .map_err(|_| format!("--etcd-username: needs --etcd-password-file or the variable {PASSWORD}"))?,
    };
    Ok(Some(store_etcd::Credentials { user, password }))
}
