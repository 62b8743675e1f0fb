//! The short help of `pintle serve`.

use clap::Command;

/// The flags of `pintle serve` that `-h` shows; `--help` shows all.
const MAIN_FLAGS: [&str; 24] = [
    "config", "data-dir", "storage", "durability", "etcd-servers", "encryption-provider-config", "bind-address",
    "advertise-address", "secure-port", "feature-gates", "tls-san", "tls-cert-file", "tls-private-key-file",
    "write-kubeconfig", "client-ca-file", "token-auth-file", "oidc-issuer-url", "oidc-client-id", "authorization-mode",
    "audit-policy-file", "audit-log-path", "controllers", "v", "logging-format",
];

/// The command whose short help has only the main flags.
pub fn applied_to(command: Command) -> Command {
    command.mut_args(|flag| match flag.get_long() {
        Some(name) if !MAIN_FLAGS.contains(&name) && name != "help" => flag.hide_short_help(true),
        _ => flag,
    })
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
}
