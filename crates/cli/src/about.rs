//! What the program says about itself: short help, completions, man pages and its version.

use std::io::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use machinery::{Release, json};

use crate::flags::{Arguments, VersionForm};

/// The flags of `pintle serve` that `-h` shows; `--help` shows all.
const MAIN_FLAGS: [&str; 24] = [
    "config",
    "data-dir",
    "storage",
    "durability",
    "etcd-servers",
    "encryption-provider-config",
    "bind-address",
    "advertise-address",
    "secure-port",
    "feature-gates",
    "tls-san",
    "tls-cert-file",
    "tls-private-key-file",
    "write-kubeconfig",
    "client-ca-file",
    "token-auth-file",
    "oidc-issuer-url",
    "oidc-client-id",
    "authorization-mode",
    "audit-policy-file",
    "audit-log-path",
    "controllers",
    "v",
    "logging-format",
];

/// The command whose short help has only the main flags.
pub fn with_short_help(command: Command) -> Command {
    command.mut_args(|flag| match flag.get_long() {
        Some(name) if !MAIN_FLAGS.contains(&name) && name != "help" => flag.hide_short_help(true),
        _ => flag,
    })
}

/// The commands and flags of Pintle's own.
fn documented() -> Command {
    Arguments::command()
}

/// Prints the completion script of a shell.
pub fn completion(shell: clap_complete::Shell) -> Result<(), String> {
    let mut script = vec![];
    clap_complete::generate(shell, &mut documented(), "pintle", &mut script);
    print(&script)
}

/// Writes a man page for each command into a directory.
pub fn man(directory: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write man pages to {}: {error}", directory.display());
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(documented(), directory).map_err(failed)
}

/// Prints the version.
pub fn version(form: VersionForm) -> Result<(), String> {
    let (version, kubernetes) = (env!("CARGO_PKG_VERSION"), Release::NEWEST.to_string());
    // set by `cargo xtask dist`
    let commit = option_env!("PINTLE_COMMIT").unwrap_or("unknown");
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let text = match form {
        VersionForm::Text => format!("pintle {version} (commit {commit}, Kubernetes {kubernetes}, {platform})\n"),
        VersionForm::Json => {
            let fields = json!({
                "version": version, "commit": commit, "kubernetesVersion": kubernetes, "platform": platform
            });
            fields.to_json() + "\n"
        }
    };
    print(text.as_bytes())
}

/// Prints to stdout.
pub fn print(text: &[u8]) -> Result<(), String> {
    std::io::stdout().write_all(text).map_err(|error| format!("cannot write to stdout: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_help_has_the_main_flags() {
        let command = crate::flags::command();
        let serve = command.find_subcommand("serve").unwrap();
        let shown = serve.get_arguments().filter(|flag| !flag.is_hide_set() && !flag.is_hide_short_help_set());
        let mut shown: Vec<&str> = shown.filter_map(clap::Arg::get_long).collect();
        let mut wanted = MAIN_FLAGS;
        shown.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(shown, wanted);
    }

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
