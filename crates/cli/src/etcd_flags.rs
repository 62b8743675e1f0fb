//! Flags for etcd, under kube-apiserver's names.

use std::path::PathBuf;

use clap::Args;

use crate::values::cluster_id;

/// Addresses and credentials of etcd.
#[derive(Args)]
#[command(next_help_heading = "Storage")]
pub struct Etcd {
    /// URLs of the etcd servers, comma separated; implies --storage etcd.
    #[arg(long, value_name = "URL,...", value_delimiter = ',')]
    pub etcd_servers: Vec<String>,

    /// Prefix of all keys in etcd.
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    pub etcd_prefix: String,

    /// Id of the etcd cluster, as in etcd's log; other clusters are refused [default: the cluster of the first start on the
    /// data directory].
    #[arg(long, value_name = "HEX", value_parser = cluster_id)]
    pub etcd_cluster_id: Option<u64>,

    /// CA bundle for the certificates of the etcd servers, PEM [default: the system's].
    #[arg(long, value_name = "FILE")]
    pub etcd_cafile: Option<PathBuf>,

    /// Client certificate for etcd, PEM; requires --etcd-keyfile.
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub etcd_certfile: Option<PathBuf>,

    /// Private key of the client certificate for etcd, PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub etcd_keyfile: Option<PathBuf>,

    /// User name for etcd; requires --etcd-password-file or the environment variable PINTLE_ETCD_PASSWORD.
    #[arg(long, value_name = "NAME")]
    pub etcd_username: Option<String>,

    /// File with the password of the etcd user.
    #[arg(long, value_name = "FILE", requires = "etcd_username")]
    pub etcd_password_file: Option<PathBuf>,
}
