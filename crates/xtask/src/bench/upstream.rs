//! kube-apiserver as a child process, over the same etcd as pintle. It is built once from its Go module.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use client::{Access, Call, Client, Context as _, Protocol, Result, fail};

use super::etcd::free_port;
use super::process::{Process, Server};
use super::subject::options;
use crate::workspace;

/// The directory of the Go module, and the line of `go.mod` with the version.
const MODULE: &str = "tests/upstream";
const REQUIRED: &str = "k8s.io/kubernetes ";
const TOKEN: &str = "bench";
/// Time limit for it to become ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// Builds kube-apiserver, which takes some ten minutes, unless its binary exists; returns the path of the binary.
pub fn build(root: &Path) -> Result<PathBuf> {
    let module = root.join(MODULE);
    let text = std::fs::read_to_string(module.join("go.mod")).context(format_args!("{MODULE}/go.mod"))?;
    let version = text.lines().find_map(|line| line.trim().strip_prefix(REQUIRED));
    let version = version.ok_or("tests/upstream/go.mod names no version of Kubernetes")?;
    let binary = root.join("target/upstream").join(version).join("kube-apiserver");
    if binary.exists() {
        return Ok(binary);
    }
    eprintln!("building kube-apiserver {version}, which takes some ten minutes");
    let unfinished = binary.with_extension(std::process::id().to_string());
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-ldflags", "-s -w", "-o"]).arg(&unfinished).arg(".").current_dir(module);
    workspace::run(&mut go).context("kube-apiserver cannot be built")?;
    std::fs::rename(&unfinished, &binary).context(binary.display())?;
    Ok(binary)
}

/// Starts it with its own key prefix in etcd and waits until it is ready.
pub async fn start(binary: &Path, etcd: &str, directory: &Path) -> Result<Server> {
    let place = directory.join("upstream");
    std::fs::create_dir_all(&place).context("cannot make a directory")?;
    let tokens = format!("{TOKEN},bench,bench,\"system:masters\"\n");
    std::fs::write(place.join("tokens.csv"), tokens).context("cannot write tokens")?;
    let key = Command::new("openssl").args(["genrsa", "-out", "accounts.key", "2048"]).current_dir(&place).output();
    key.context("cannot run openssl")?;
    let port = free_port()?.to_string();
    let log = std::fs::File::create(place.join("log")).context("cannot write a log")?;
    let child = Command::new(binary)
        .current_dir(&place)
        .args(["--etcd-servers", etcd, "--etcd-prefix", "/upstream", "--bind-address", "127.0.0.1"])
        .args(["--secure-port", &port, "--cert-dir", "certs", "--token-auth-file", "tokens.csv"])
        .args(["--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24"])
        .args(["--service-account-issuer", "https://kubernetes.default.svc"])
        .args(["--service-account-key-file", "accounts.key", "--service-account-signing-key-file", "accounts.key"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .context(format_args!("cannot start {}", binary.display()))?;
    let server = format!("https://127.0.0.1:{port}");
    let access = Access { server, token: TOKEN.to_owned(), ..Access::default() };
    let started = Instant::now();
    let mut server = Server { process: Process(child), access, took: Duration::ZERO };
    while !is_ready(&mut server.access, &place).await {
        if server.process.has_ended() || started.elapsed() > PATIENCE {
            let log = std::fs::read_to_string(place.join("log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or_default();
            return fail(format!("kube-apiserver did not become ready: {last}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    server.took = started.elapsed();
    Ok(server)
}

/// Whether it is ready. At its start, it creates a certificate first, then reports for a while that it is not ready.
async fn is_ready(access: &mut Access, place: &Path) -> bool {
    let Ok(authority) = std::fs::read(place.join("certs/apiserver.crt")) else { return false };
    access.certificate_authority = authority;
    let Ok(client) = Client::new(access, options(Protocol::Http1)) else { return false };
    let Ok(mut connection) = client.connect().await else { return false };
    connection.send(Call::get("/readyz")).await.is_ok_and(|response| response.status == 200)
}
