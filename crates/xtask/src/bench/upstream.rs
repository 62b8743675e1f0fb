//! kube-apiserver as a child process, over the same etcd as pintle. It is built once from its Go module.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use client::{Access, Call, Client, Protocol};

use super::etcd::free_port;
use super::process::{Process, Server};
use super::subject::options;

/// The directory of the Go module, and the line of `go.mod` with the version.
const MODULE: &str = "tests/upstream";
const REQUIRED: &str = "k8s.io/kubernetes ";
const TOKEN: &str = "bench";
/// Time limit for it to become ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// Builds kube-apiserver, which takes some ten minutes, unless its binary exists; returns the path of the binary.
pub fn build(root: &Path) -> Result<PathBuf, String> {
    let module = root.join(MODULE);
    let text = std::fs::read_to_string(module.join("go.mod")).map_err(|error| format!("{MODULE}/go.mod: {error}"))?;
    let version = text.lines().find_map(|line| line.trim().strip_prefix(REQUIRED));
    let version = version.ok_or("tests/upstream/go.mod names no version of Kubernetes")?;
    let binary = root.join("target/upstream").join(version).join("kube-apiserver");
    if binary.exists() {
        return Ok(binary);
    }
    eprintln!("building kube-apiserver {version}, which takes some ten minutes");
    let unfinished = binary.with_extension(std::process::id().to_string());
    let built = Command::new("go")
        .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
        .arg(&unfinished)
        .arg(".")
        .current_dir(module)
        .status()
        .map_err(|error| format!("cannot run go: {error}"))?;
    if !built.success() {
        return Err("kube-apiserver cannot be built".to_owned());
    }
    std::fs::rename(&unfinished, &binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    Ok(binary)
}

/// Starts it with its own key prefix in etcd and waits until it is ready.
pub async fn start(binary: &Path, etcd: &str, directory: &Path) -> Result<Server, String> {
    let failed = |what: &str, error: std::io::Error| format!("cannot {what}: {error}");
    let place = directory.join("upstream");
    std::fs::create_dir_all(&place).map_err(|error| failed("make a directory", error))?;
    let tokens = format!("{TOKEN},bench,bench,\"system:masters\"\n");
    std::fs::write(place.join("tokens.csv"), tokens).map_err(|error| failed("write tokens", error))?;
    let key = Command::new("openssl").args(["genrsa", "-out", "accounts.key", "2048"]).current_dir(&place).output();
    key.map_err(|error| failed("run openssl", error))?;
    let port = free_port()?.to_string();
    let log = std::fs::File::create(place.join("log")).map_err(|error| failed("write a log", error))?;
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
        .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
    let server = format!("https://127.0.0.1:{port}");
    let access = Access { server, token: TOKEN.to_owned(), ..Access::default() };
    let started = Instant::now();
    let mut server = Server { process: Process(child), access, took: Duration::ZERO };
    while !is_ready(&mut server.access, &place).await {
        if server.process.has_ended() || started.elapsed() > PATIENCE {
            let log = std::fs::read_to_string(place.join("log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or_default();
            return Err(format!("kube-apiserver did not become ready: {last}"));
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
