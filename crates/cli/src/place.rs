//! Where commands find the data and the certificates of a server.

use std::path::PathBuf;

use clap::Args;

use crate::certificates::{Directory, directory_of};

/// The directory of a server.
#[derive(Args)]
pub struct Place {
    /// The data directory.
    #[arg(long, value_name = "DIR", default_value = ".pintle", env = "PINTLE_DATA_DIR")]
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
