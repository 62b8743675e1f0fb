//! Translates the command line of kube-apiserver to that of `pintle serve`, which accepts all flags. Only the flags of
//! the storage, the server's files and the controllers need to change.

use std::path::Path;

use super::{Start, etcd};
use crate::logs;
use crate::upstream_flags::{self, has_value};

/// The environment variable that enables the controllers that do not run in a test environment of kube-apiserver.
const CONTROLLERS: &str = "PINTLE_CONTROLLERS";

/// A flag and its value, if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Flag {
    name: String,
    value: Option<String>,
}

pub fn start(arguments: &[String]) -> Start {
    if arguments.iter().any(|argument| argument == "--version") {
        let minor = machinery::Release::default().minor();
        let text = format!("Kubernetes v1.{minor}.0 (pintle {})\n", env!("CARGO_PKG_VERSION"));
        return Start::End(logs::printed(&text));
    }
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        return Start::End(logs::printed(&help()));
    }
    let flags = split(&arguments[1..]);
    let mut translated = vec!["pintle".to_owned(), "serve".to_owned()];
    // a killed test cannot stop its server; the last value of a flag counts, so tests can turn this off
    translated.push("--exit-with-parent=true".to_owned());
    translated.extend(storage(&flags));
    if std::env::var_os(CONTROLLERS).is_none() && flags.iter().all(|flag| flag.name != "controllers") {
        translated.push(format!("--controllers={OFF}"));
    }
    translated.extend(flags.into_iter().filter(|flag| !is_stand_in(flag)).map(|flag| match flag.value {
        Some(value) => format!("--{}={value}", flag.name),
        None => format!("--{}", flag.name),
    }));
    Start::Arguments(translated)
}

/// The controllers of kube-controller-manager, which test environments do not start.
const OFF: &str = "-garbagecollector,-namespace";

/// The flags of the storage: etcd if it is running, otherwise memory, with the server's own files in `--cert-dir`.
fn storage(flags: &[Flag]) -> Vec<String> {
    let value = |name: &str| flags.iter().find(|flag| flag.name == name).and_then(|flag| flag.value.clone());
    let in_etcd = flags.iter().any(|flag| flag.name == "etcd-servers" && !is_stand_in(flag));
    let mut storage = if in_etcd { vec![] } else { vec!["--storage=memory".to_owned()] };
    if let Some(directory) = value("cert-dir") {
        storage.push(format!("--data-dir={directory}/pintle"));
        storage
            .extend(serving_certificate(&directory).filter(|_| value("tls-cert-file").is_none()).into_iter().flatten());
    }
    storage
}

/// The certificate that kube-apiserver looks for in its `--cert-dir`.
fn serving_certificate(directory: &str) -> Option<[String; 2]> {
    let [certificate, key] = ["crt", "key"].map(|kind| format!("{directory}/apiserver.{kind}"));
    let exists = Path::new(&certificate).exists() && Path::new(&key).exists();
    exists.then(|| [format!("--tls-cert-file={certificate}"), format!("--tls-private-key-file={key}")])
}

fn is_stand_in(flag: &Flag) -> bool {
    let urls = flag.value.as_deref().unwrap_or_default();
    flag.name == "etcd-servers" && urls.split(',').any(etcd::is_stand_in)
}

/// Flags as `--name=value`, `--name value` or `--name`.
fn split(arguments: &[String]) -> Vec<Flag> {
    let mut flags = vec![];
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.trim_start_matches('-');
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None if has_value(text) == Some(true) => (text, rest.next().cloned()),
            None => (text, None),
        };
        flags.push(Flag { name: name.to_owned(), value });
    }
    flags
}

/// The help text, in which test environments look for flags.
fn help() -> String {
    let mut help = "kube-apiserver of Pintle\n\nFlags:\n".to_owned();
    for (name, has_value) in upstream_flags::all() {
        help += &format!("      --{name}{}\n", if has_value { " value" } else { "" });
    }
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn flags_are_split_with_their_values() {
        let flags = split(&texts(&["--allow-privileged=true", "--secure-port", "1", "--anonymous-auth"]));
        let want = [("allow-privileged", Some("true")), ("secure-port", Some("1")), ("anonymous-auth", None)];
        let want = want.map(|(name, value)| Flag { name: name.to_owned(), value: value.map(str::to_owned) });
        assert_eq!(flags, want);
    }

    #[test]
    fn flags_of_envtest_are_translated() {
        let arguments = texts(&[
            "/assets/kube-apiserver",
            "--allow-privileged=true",
            "--authorization-mode=Node,RBAC",
            "--cert-dir=/c",
            "--disable-admission-plugins=ServiceAccount",
            "--secure-port=1",
        ]);
        let Start::Arguments(got) = start(&arguments) else { panic!("the process ends") };
        let want = [
            "pintle",
            "serve",
            "--exit-with-parent=true",
            "--storage=memory",
            "--data-dir=/c/pintle",
            "--controllers=-garbagecollector,-namespace",
            "--allow-privileged=true",
            "--authorization-mode=Node,RBAC",
            "--cert-dir=/c",
            "--disable-admission-plugins=ServiceAccount",
            "--secure-port=1",
        ];
        assert_eq!(got, want);
    }
}
