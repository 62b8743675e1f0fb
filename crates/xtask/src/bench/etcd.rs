//! A single etcd member as a child process, with its data on the same disk as the server's.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use client::{Context as _, Result, fail};

use super::process::Process;

/// Time limit for etcd to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running etcd.
pub struct Etcd {
    process: Process,
    pub url: String,
}

pub fn free_port() -> Result<u16> {
    let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    found.map(|address| address.port()).context("there is no free port")
}

impl Etcd {
    pub async fn start(binary: &Path, directory: &Path) -> Result<Etcd> {
        let (port, peer) = (free_port()?, format!("http://127.0.0.1:{}", free_port()?));
        let url = format!("http://127.0.0.1:{port}");
        let child = Command::new(binary)
            .args(["--name", "bench", "--log-level", "error", "--data-dir"])
            .arg(directory.join("etcd"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("bench={peer}")])
            .stdin(Stdio::null())
            .spawn()
            .context(format_args!("cannot start {}", binary.display()))?;
        let mut etcd = Etcd { process: Process(child), url };
        let deadline = Instant::now() + PATIENCE;
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            if etcd.process.has_ended() || Instant::now() > deadline {
                return fail(format!("{} does not listen", binary.display()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(etcd)
    }
}
