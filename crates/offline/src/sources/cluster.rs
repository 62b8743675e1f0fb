//! The objects of a running server, which a kubeconfig names.

use std::path::PathBuf;

use client::{Access, Call, Client, Connection, Options};
use machinery::{Value, value};

/// The word that stands for the current context of the default kubeconfigs; `kubeconfig:FILE` names a file.
const WORD: &str = "kubeconfig";

/// A connection to a server, for sequential reads.
pub struct Cluster {
    connection: Connection,
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
    /// Connects to the server of the current context. The error is one line.
    pub async fn connect(kubeconfigs: &[PathBuf]) -> Result<Cluster, String> {
        let client = Client::new(&Access::read_all(kubeconfigs)?, Options::default());
        let client = client.map_err(|why| format!("the kubeconfig: {why}"))?;
        Ok(Cluster { connection: client.connect().await? })
    }

    /// Reads an object or a list; `None` if it does not exist. The error is one line.
    pub async fn get(&mut self, path: &str) -> Result<Option<Value>, String> {
        let response = self.connection.send(Call::get(path)).await?;
        let body = value::decode(&response.body).unwrap_or_default();
        match response.status {
            404 => Ok(None),
            200 => Ok(Some(body)),
            code => match body.str_at(&["message"]) {
                "" => Err(format!("the server responded to GET {path} with status {code}")),
                message => Err(format!("GET {path}: {message}")),
            },
        }
    }

    /// The items of a list, with their `apiVersion` and `kind` and without `resourceVersion`, so that they can be created.
    pub async fn list(&mut self, path: &str) -> Result<Vec<Value>, String> {
        let list = self.get(path).await?.unwrap_or_default();
        let kind = list.str_at(&["kind"]).trim_end_matches("List").to_owned();
        let items = list.items_at(&["items"]).iter().cloned().map(|mut item| {
            item.set_at(&["apiVersion"], Value::from(list.str_at(&["apiVersion"])));
            item.set_at(&["kind"], Value::from(kind.as_str()));
            item.remove_at(&["metadata", "resourceVersion"]);
            item
        });
        Ok(items.collect())
    }
}
