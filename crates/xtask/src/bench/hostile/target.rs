//! The servers that hostile requests are sent to: each scenario has its own, with an empty store.

use std::path::{Path, PathBuf};

use client::Result;

use super::super::etcd::Etcd;
use super::super::process::{Launch, Server};
use super::super::upstream;
use super::inputs::Conditions;

/// A program to measure, and its name in the table.
pub enum Target {
    Pintle { name: &'static str, binary: PathBuf },
    KubeApiserver { binary: PathBuf, etcd: PathBuf },
}

impl Target {
    pub fn name(&self) -> &'static str {
        match self {
            Target::Pintle { name, .. } => name,
            Target::KubeApiserver { .. } => "kube-apiserver",
        }
    }

    /// Whether the server can be started under these conditions.
    pub fn allows(&self, conditions: Conditions) -> bool {
        matches!(self, Target::Pintle { .. }) || conditions.flags.is_empty() && conditions.descriptors.is_none()
    }

    /// Starts the server with its data in `directory`, and the etcd that it needs.
    pub async fn start(&self, directory: &Path, conditions: Conditions) -> Result<(Server, Option<Etcd>)> {
        match self {
            Target::Pintle { binary, .. } => {
                let Conditions { flags, descriptors } = conditions;
                let launch = Launch { flags, descriptors, ..Launch::new(binary.clone(), directory.to_owned()) };
                Ok((launch.start("hostile")?, None))
            }
            Target::KubeApiserver { binary, etcd } => {
                let etcd = Etcd::start(etcd, directory).await?;
                Ok((upstream::start(binary, &etcd.url, directory).await?, Some(etcd)))
            }
        }
    }
}
