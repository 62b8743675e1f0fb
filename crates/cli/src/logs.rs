//! Logs on standard error: text by default, JSON by flag.

use std::io::{IsTerminal as _, Write as _};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::flags::LogFormat;

/// Says a line on standard error. Nothing depends on whether somebody listens, or on whether there is room for it.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Starts logging at a verbosity of kube-apiserver's scale.
pub fn start(verbosity: u8, format: LogFormat) {
    let level = match verbosity {
        0 | 1 => LevelFilter::WARN,
        2 | 3 => LevelFilter::INFO,
        4 | 5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // it would be told where writing has just failed, by what panics when that fails
        .log_internal_errors(false)
        .with_target(false);
    // a second subscriber in one process is not worth failing for
    let _ = match format {
        LogFormat::Text => builder.finish().try_init(),
        LogFormat::Json => builder.json().finish().try_init(),
    };
}
