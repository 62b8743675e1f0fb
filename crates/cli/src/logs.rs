//! Logs on stderr: text by default, JSON by flag.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Whether the log is JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes a line to stderr, as a line of the log if that is JSON. Errors are ignored.
pub fn print_error(line: &str) {
    if IS_JSON.load(Ordering::Relaxed) {
        return tracing::error!("{line}");
    }
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints to stdout.
pub fn print(text: &[u8]) -> Result<(), String> {
    std::io::stdout().write_all(text).map_err(|error| format!("cannot write to stdout: {error}"))
}

/// Prints a line to stdout, which may be closed.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Starts logging at a verbosity on kube-apiserver's scale (`-v`).
pub fn start(verbosity: u8, format: LogFormat) {
    let level = match verbosity {
        0 | 1 => LevelFilter::WARN,
        2 | 3 => LevelFilter::INFO,
        4 | 5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // one line per request from level 3 on
    let requests = if verbosity < 3 { level } else { level.max(LevelFilter::DEBUG) };
    let filter = Targets::new().with_default(level).with_target(server::REQUESTS, requests);
    let builder = tracing_subscriber::fmt()
        .with_max_level(requests)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // the subscriber would log the failure of a write to stderr, and panic when that fails too
        .log_internal_errors(false)
        .with_target(false);
    // fails only if there is a subscriber already, which is harmless
    let _ = match format {
        LogFormat::Text => builder.finish().with(filter).try_init(),
        LogFormat::Json => {
            IS_JSON.store(true, Ordering::Relaxed);
            builder.json().finish().with(filter).try_init()
        }
    };
}
