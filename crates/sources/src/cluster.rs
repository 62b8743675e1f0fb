//! The objects of a running server, which a kubeconfig names.

use std::path::PathBuf;

use client::JsonClient;
use machinery::Value;

use crate::error::ClusterError;

/// The word that stands for the current context of the default kubeconfigs; `kubeconfig:FILE` names a file.
const WORD: &str = "kubeconfig";

/// A connection to a server, for sequential reads.
pub struct Cluster {
    client: JsonClient,
}

/// The kubeconfigs that an argument names: those of `KUBECONFIG` or `~/.kube/config` for `kubeconfig`, a file for
/// `kubeconfig:FILE`; `None` for other arguments.
pub fn kubeconfigs(argument: &str) -> Option<Vec<PathBuf>> {
    match argument.strip_prefix(WORD)? {
        "" => match std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
            Some(paths) => Some(std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect()),
            None => Some(vec![PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".kube/config")]),
        },
        file => file.strip_prefix(':').map(|file| vec![PathBuf::from(file)]),
    }
}

impl Cluster {
    /// Connects to the server of the current context.
    pub async fn connect(kubeconfigs: &[PathBuf]) -> Result<Cluster, ClusterError> {
        Ok(Cluster { client: JsonClient::connect(kubeconfigs).await? })
    }

    /// Reads an object or a list; `None` if it does not exist.
    pub async fn get(&mut self, path: &str) -> Result<Option<Value>, ClusterError> {
        let response = self.client.get(path).await?;
        if response.code == 404 {
            return Ok(None);
        }
        response.ok().map(Some).map_err(|source| ClusterError::Get { path: path.to_owned(), source })
    }

    /// The items of a list, with their `apiVersion` and `kind` and without `resourceVersion`, so that they can be created.
    pub async fn list(&mut self, path: &str) -> Result<Vec<Value>, ClusterError> {
        let list = self.get(path).await?.unwrap_or_default();
        let kind = list.str_at(&["kind"]);
        // the kind itself may end in List
        let kind = kind.strip_suffix("List").unwrap_or(kind);
        let items = list.items_at(&["items"]).iter().cloned().map(|mut item| {
            item.set_at(&["apiVersion"], Value::from(list.str_at(&["apiVersion"])));
            item.set_at(&["kind"], Value::from(kind));
            item.remove_at(&["metadata", "resourceVersion"]);
            item
        });
        Ok(items.collect())
    }
}
