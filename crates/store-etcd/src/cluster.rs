//! The id of the etcd cluster: the configured one, else that of an earlier start, else that of the first response. A
//! response with another id is refused: it is from another cluster, whose keys and revisions are not those of this store.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{IdError, OptionsError};
use crate::options::Options;

/// The cluster from which responses are accepted.
pub struct Cluster {
    id: OnceLock<u64>,
    /// The end of error messages, which says where the expected id is from.
    since: String,
    /// The file to which the id of the first response is written for later starts; `None` if there is nothing to write.
    file: Option<PathBuf>,
}

impl Cluster {
    /// Reads the id of an earlier start, unless one is configured.
    pub fn new(options: &Options) -> Result<Cluster, OptionsError> {
        if let Some(id) = options.cluster {
            return Ok(Cluster { id: id.into(), since: "the id that is configured".to_owned(), file: None });
        }
        let before = "the id that it had before".to_owned();
        let Some(path) = &options.cluster_file else {
            return Ok(Cluster { id: OnceLock::new(), since: before, file: None });
        };
        match remembered(path)? {
            Some(id) => {
                let since =
                    format!("{before} according to {}; remove that file to use another cluster", path.display());
                Ok(Cluster { id: id.into(), since, file: None })
            }
            None => Ok(Cluster { id: OnceLock::new(), since: before, file: Some(path.clone()) }),
        }
    }

    #[cfg(test)]
    pub fn id(&self) -> &OnceLock<u64> {
        &self.id
    }

    /// Checks the cluster id of a response; the first response sets it. The error describes the mismatch.
    pub fn check(&self, found: u64) -> Result<(), String> {
        let known = *self.id.get_or_init(|| {
            if let Some(path) = &self.file {
                remember(path, found);
            }
            found
        });
        if found == known { Ok(()) } else { Err(format!("has cluster id {found:x} and not {known:x}, {}", self.since)) }
    }
}

/// Parses a cluster id, in hexadecimal digits as in etcd's log.
pub fn parse_id(text: &str) -> Result<u64, IdError> {
    u64::from_str_radix(text.trim(), 16).map_err(|_| IdError(text.trim().to_owned()))
}

fn remembered(path: &Path) -> Result<Option<u64>, OptionsError> {
    match std::fs::read_to_string(path) {
        Ok(text) => {
            parse_id(&text).map(Some).map_err(|source| OptionsError::StoredId { path: path.to_owned(), source })
        }
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(OptionsError::ClusterFile { path: path.to_owned(), source }),
    }
}

fn remember(path: &Path, id: u64) {
    // renamed when it is complete, so that a crash leaves no part of an id
    let mut unfinished = path.as_os_str().to_owned();
    let _ = write!(unfinished, ".{}", std::process::id());
    let written = std::fs::write(&unfinished, format!("{id:x}\n")).and_then(|()| std::fs::rename(&unfinished, path));
    if let Err(error) = written {
        let path = path.display();
        tracing::warn!(%path, %error, "the id of etcd's cluster cannot be stored; the next start will accept any cluster");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_id_survives_restart() {
        let place = std::env::temp_dir().join(format!("pintle-cluster-{}", std::process::id()));
        let options = Options { cluster_file: Some(place.clone()), ..Options::default() };
        for (ids, good) in [(&[7, 7, 8][..], 2), (&[8], 0), (&[7], 1)] {
            let cluster = Cluster::new(&options).unwrap();
            let checked: Vec<_> = ids.iter().map(|id| cluster.check(*id)).collect();
            assert_eq!(checked.iter().filter(|checked| checked.is_ok()).count(), good, "{checked:?}");
        }
        let meant = Cluster::new(&Options { cluster: Some(8), ..options.clone() }).unwrap();
        assert_eq!(meant.check(8), Ok(()));
        assert_eq!(meant.check(0xab).unwrap_err(), "has cluster id ab and not 8, the id that is configured");
        std::fs::write(&place, "seven").unwrap();
        let wrong = Cluster::new(&options).err().unwrap().to_string();
        assert!(wrong.contains("\"seven\" is not a cluster id"), "{wrong}");
        std::fs::remove_file(&place).unwrap();
    }
}
