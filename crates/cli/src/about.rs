//! Completions, man pages and the version of the program.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use client::{Context as _, Result};
use machinery::{Release, json};

use crate::flags::Arguments;
use crate::values::TextOrJson;
use crate::{examples, logs};

/// The commands and flags of Pintle's own.
fn documented() -> Command {
    examples::added_to(Arguments::command())
}

/// Prints the completion script of a shell.
pub fn completion(shell: clap_complete::Shell) -> Result<()> {
    let mut script = vec![];
    clap_complete::generate(shell, &mut documented(), "pintle", &mut script);
    logs::print(&script)
}

/// Writes a man page for each command into a directory.
pub fn man(directory: &Path) -> Result<()> {
    let written = std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(documented(), directory));
    written.cannot("write man pages to", directory)
}

/// Prints the version.
pub fn version(form: TextOrJson) -> Result<()> {
    let (version, kubernetes) = (env!("CARGO_PKG_VERSION"), Release::NEWEST.to_string());
    let commit = env!("PINTLE_COMMIT");
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let text = match form {
        TextOrJson::Text => format!("pintle {version} (commit {commit}, Kubernetes {kubernetes}, {platform})\n"),
        TextOrJson::Json => {
            let fields = json!({
                "version": version, "commit": commit, "kubernetesVersion": kubernetes, "platform": platform
            });
            fields.to_json() + "\n"
        }
    };
    logs::print(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_man_page() {
        let directory = tempfile::tempdir().unwrap();
        man(directory.path()).unwrap();
        let text = std::fs::read_to_string(directory.path().join("pintle-serve.1")).unwrap();
        assert!(text.contains("secure\\-port") && !text.contains("kubelet\\-timeout"));
        for page in ["pintle.1", "pintle-store-backup.1", "pintle-config-view.1"] {
            assert!(directory.path().join(page).exists(), "{page}");
        }
    }
}
