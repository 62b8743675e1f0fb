//! The servers that hostile requests are sent to: each scenario has its own, with an empty store.

use std::path::{Path, PathBuf};

use client::Access;

use super::super::etcd::Etcd;
use super::super::process::{Launch, Server};
use super::super::upstream::Upstream;

/// A program to measure, and its name in the table.
pub enum Target {
    Pintle { name: &'static str, binary: PathBuf },
    KubeApiserver { binary: PathBuf, etcd: PathBuf },
}

/// A running server.
pub enum Running {
    Pintle(Server),
    /// kube-apiserver, with the etcd of its objects.
    KubeApiserver(Upstream, #[expect(dead_code, reason = "held for its Drop")] Etcd),
}

impl Target {
    pub fn name(&self) -> &'static str {
        match self {
            Target::Pintle { name, .. } => name,
            Target::KubeApiserver { .. } => "kube-apiserver",
        }
    }

    /// Starts the server with its data in `directory`.
    pub async fn start(&self, directory: &Path) -> Result<Running, String> {
        match self {
            Target::Pintle { binary, .. } => {
                let launch = Launch { binary: binary.clone(), directory: directory.to_owned(), etcd: None };
                launch.start("hostile").map(Running::Pintle)
            }
            Target::KubeApiserver { binary, etcd } => {
                let etcd = Etcd::start(etcd, directory).await?;
                Ok(Running::KubeApiserver(Upstream::start(binary, &etcd.url, directory).await?, etcd))
            }
        }
    }
}

impl Running {
    pub fn id(&self) -> u32 {
        match self {
            Running::Pintle(server) => server.id(),
            Running::KubeApiserver(server, _) => server.id(),
        }
    }

    pub fn access(&self) -> Result<Access, String> {
        match self {
            Running::Pintle(server) => server.access(),
            Running::KubeApiserver(server, _) => Ok(server.access.clone()),
        }
    }
}
