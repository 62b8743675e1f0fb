//! Opens the etcd that the flags describe.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use client::{Result, fail};

use crate::etcd_flags::Etcd;
use crate::files::read;

/// Environment variable with the password of the etcd user, read when no password file is given.
const PASSWORD: &str = "PINTLE_ETCD_PASSWORD";

/// The file in the data directory that holds the id of the cluster.
const CLUSTER: &str = "etcd-cluster";
/// The part of keys of Events, which are written with leases.
const EVENTS: &str = "events";

/// Options of a server; other commands have none.
pub struct Server<'a> {
    /// Directory in which the cluster id is kept between starts.
    pub directory: &'a Path,
    /// Time to live of events; zero keeps them forever.
    pub event_ttl: Duration,
    /// Encoding of custom resources.
    pub form: server::CustomForm,
}

/// Reads all live keys at the newest revision.
pub async fn latest(flags: &Etcd) -> Result<store::Snapshot> {
    Ok(open(flags, None)?.latest().await?)
}

/// Creates the client; it does not connect yet.
pub fn open(flags: &Etcd, server: Option<&Server>) -> Result<store_etcd::Etcd> {
    if flags.etcd_servers.is_empty() {
        return fail("--storage etcd: needs --etcd-servers");
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
    Ok(store_etcd::Etcd::new(&options)?)
}

/// Returns the store with kube-apiserver's key layout. Does not connect yet.
pub fn storage(flags: &Etcd, server: Option<&Server>) -> Result<server::Storage> {
    let prefix = store_etcd::normalise(&flags.etcd_prefix);
    let form = server.map(|server| server.form).unwrap_or_default();
    Ok(server::upstream_storage(Arc::new(open(flags, server)?), &prefix, form))
}

fn credentials(flags: &Etcd) -> Result<Option<store_etcd::Credentials>> {
    let Some(user) = flags.etcd_username.clone() else { return Ok(None) };
    let password = match &flags.etcd_password_file {
        Some(path) => {
            let text = String::from_utf8(read(path)?).map_err(|_| format!("{} is not UTF-8", path.display()))?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
        None => std::env::var(PASSWORD)
            .map_err(|_| format!("--etcd-username: needs --etcd-password-file or the variable {PASSWORD}"))?,
    };
    Ok(Some(store_etcd::Credentials { user, password }))
}
