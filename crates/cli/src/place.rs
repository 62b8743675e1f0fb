//! Where commands find the data and the certificates of a server.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::certificates::{Directory, directory_of};
use crate::kubeconfig::ADMIN_FILE;

/// The default of `--data-dir`.
pub const DATA_DIRECTORY: &str = ".pintle";

/// The directory of a server.
#[derive(Args)]
pub struct Place {
    /// The data directory.
    #[arg(long, value_name = "DIR", default_value = DATA_DIRECTORY, env = "PINTLE_DATA_DIR")]
    pub data_dir: PathBuf,
}

/// The directory of certificates.
#[derive(Args)]
pub struct CertificatePlace {
    #[command(flatten)]
    pub place: Place,

    /// Directory of the certificates [default: the data directory].
    #[arg(long, value_name = "DIR")]
    pub cert_dir: Option<PathBuf>,
}

impl CertificatePlace {
    pub fn directory(&self) -> Directory {
        directory_of(&self.place.data_dir, self.cert_dir.as_ref())
    }
}

/// The running server that a command connects to.
#[derive(Args)]
pub struct RunningServer {
    /// Kubeconfig of the server [default: the files of the environment variable KUBECONFIG, else .pintle/admin.kubeconfig].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl RunningServer {
    /// The kubeconfig files. For each entry, the first file that has it counts.
    pub fn kubeconfigs(&self) -> Vec<PathBuf> {
        let default = || vec![Path::new(DATA_DIRECTORY).join(ADMIN_FILE)];
        self.kubeconfig.clone().map(|path| vec![path]).or_else(listed_kubeconfigs).unwrap_or_else(default)
    }
}

/// The files of the environment variable `KUBECONFIG`, if there are any.
pub fn listed_kubeconfigs() -> Option<Vec<PathBuf>> {
    let value = std::env::var_os("KUBECONFIG")?;
    let files: Vec<PathBuf> = std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect();
    Some(files).filter(|files| !files.is_empty())
}
