//! Encryption at rest: the flag, under kube-apiserver's name.

use std::path::PathBuf;

use clap::Args;
use server::{Encryption, Storage};

#[derive(Args)]
pub struct EncryptionFlags {
    /// EncryptionConfiguration (apiserver.config.k8s.io/v1): which resources are encrypted at rest, and how.
    #[arg(long, value_name = "FILE", help_heading = "Storage")]
    encryption_provider_config: Option<PathBuf>,
}

impl EncryptionFlags {
    /// The error is one line that names the flag.
    fn encryption(&self) -> Result<Encryption, String> {
        let Some(path) = &self.encryption_provider_config else { return Ok(Encryption::default()) };
        let wrong = |why: String| format!("--encryption-provider-config: {}: {why}", path.display());
        let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let configuration = machinery::yaml::decode(&text).map_err(|error| wrong(error.to_string()))?.value;
        Encryption::parse(&configuration).map_err(wrong)
    }

    /// Adds encryption to a storage.
    pub fn apply(&self, storage: Storage) -> Result<Storage, String> {
        let Storage { store, layout } = storage;
        Ok(Storage { store, layout: self.to_layout(layout)? })
    }

    pub fn to_layout(&self, layout: server::Layout) -> Result<server::Layout, String> {
        Ok(layout.then(Box::new(self.encryption()?)))
    }
}
