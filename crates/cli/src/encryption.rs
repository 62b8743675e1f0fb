//! Encryption at rest: the flags, under kube-apiserver's names, and the reload of the configuration.

use std::path::PathBuf;

use base::metrics::{METRICS, Reload};
use base::task;
use clap::Args;
use server::{Encryption, Layout, Storage};

use crate::{files, limits};

const FLAG: &str = "--encryption-provider-config";

#[derive(Args)]
pub struct EncryptionFlags {
    /// EncryptionConfiguration (apiserver.config.k8s.io/v1): which resources are encrypted at rest, and how.
    #[arg(long, value_name = "FILE", help_heading = "Storage")]
    encryption_provider_config: Option<PathBuf>,
}

/// The encryption of a storage, and the file that it is from.
pub struct Configured {
    encryption: Encryption,
    /// Path and content; `None` if nothing is encrypted.
    file: Option<(PathBuf, Vec<u8>)>,
}

impl EncryptionFlags {
    /// Whether a configuration is given.
    pub fn is_given(&self) -> bool {
        self.encryption_provider_config.is_some()
    }

    /// Reads the configuration and connects to its key management services. The error is one line that names the flag.
    pub fn open(&self) -> Result<Configured, String> {
        let Some(path) = &self.encryption_provider_config else {
            return Ok(Configured { encryption: Encryption::default(), file: None });
        };
        let wrong = |why: String| format!("{FLAG}: {}: {why}", path.display());
        let content = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let encryption = Encryption::default();
        replace(&encryption, &content).map_err(wrong)?;
        Ok(Configured { encryption, file: Some((path.clone(), content)) })
    }

    /// Adds encryption to a layout. The error is one line that names the flag.
    pub fn to_layout(&self, layout: Layout) -> Result<Layout, String> {
        Ok(layout.then(std::sync::Arc::new(self.open()?.encryption)))
    }
}

fn replace(encryption: &Encryption, content: &[u8]) -> Result<(), String> {
    Ok(encryption.replace(&files::decode(content)?)?)
}

impl Configured {
    pub fn apply(&self, Storage { store, layout }: Storage) -> Storage {
        Storage { store, layout: layout.then(std::sync::Arc::new(self.encryption.clone())) }
    }

    /// Loads the file when it changes. One that cannot be used is reported, and the former configuration stays in force.
    pub fn follow(self) {
        let Configured { encryption, file: Some((path, content)) } = self else { return };
        let file = path.display().to_string();
        task::follow_file(path, limits::ENCRYPTION_LOOK, content, move |content| {
            // key management services are called, on a thread of their own
            let replaced = content.and_then(|content| task::blocking(|| replace(&encryption, content)));
            METRICS.encryption_config_controller_automatic_reloads.get_or_create(&Reload::of(&replaced)).inc();
            match replaced {
                Ok(()) => tracing::info!(file, "the encryption configuration has been reloaded"),
                Err(why) => {
                    tracing::error!(file, why, "{FLAG} cannot be reloaded; the previous configuration stays in use");
                }
            }
            true
        });
    }
}
