//! The line by which a server reports that it is ready: on stdout, in a file, and to systemd.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use client::{Context as _, Result};
use machinery::{Value, json};

use crate::certificates::write_atomically;
use crate::files::remove_existing;
use crate::listening::url;
use crate::logs;
use crate::values::TextOrJson;

#[derive(Args)]
#[command(next_help_heading = "Serving")]
pub struct ReadyFlags {
    /// File to write the ready line to, when the server is ready. It is removed at the start.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,

    /// The form of the ready line.
    #[arg(short, long, value_enum, default_value = "text")]
    output: TextOrJson,
}

impl ReadyFlags {
    /// Removes the file of an earlier start.
    pub fn forget(&self) -> Result<()> {
        let Some(path) = &self.ready_file else { return Ok(()) };
        remove_existing(path).context("--ready-file")
    }

    /// Reports that the server is ready, and returns the report. stdout may be closed.
    pub fn say(&self, address: SocketAddr, kubeconfig: &Path, after: Duration) -> Result<Value> {
        let (url, milliseconds) = (url(address), after.as_millis());
        let text = format!("pintle is ready on {url} in {milliseconds} ms; kubeconfig: {}", kubeconfig.display());
        let kubeconfig = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
        let kubeconfig = kubeconfig.display().to_string();
        let (milliseconds, pid) = (i64::try_from(milliseconds).unwrap_or(i64::MAX), i64::from(std::process::id()));
        let ready = json!({
            "url": url, "kubeconfig": kubeconfig, "milliseconds": milliseconds, "pid": pid, "version": (env!("CARGO_PKG_VERSION"))
        });
        let line = match self.output {
            TextOrJson::Text => text.clone(),
            TextOrJson::Json => ready.to_json(),
        };
        if let Some(path) = &self.ready_file {
            write_atomically(path, &format!("{line}\n"), 0o644).context("--ready-file")?;
        }
        logs::say(&line);
        notify(&format!("READY=1\nSTATUS={text}\n"));
        Ok(ready)
    }
}

/// Reports to systemd, if it has started the server: lines of `sd_notify(3)`.
pub fn notify(lines: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let send = |address| UnixDatagram::unbound()?.send_to_addr(lines.as_bytes(), &address);
    if let Err(error) = unix_address(&name).and_then(send) {
        tracing::warn!(%error, "systemd cannot be notified");
    }
}

/// The address of a socket: a path, or after `@` the name of an abstract one, which only Linux has.
fn unix_address(name: &OsStr) -> std::io::Result<UnixAddress> {
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::ffi::OsStrExt as _;
        if let Some(name) = name.as_bytes().strip_prefix(b"@") {
            return UnixAddress::from_abstract_name(name);
        }
    }
    UnixAddress::from_pathname(name)
}
