//! Logs on stderr: text by default, JSON by flag.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use client::{Context as _, Failure, Result};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes a line to stderr, as a line of the log if that is JSON. Errors are ignored.
pub fn print_error(line: &str) {
    if IS_JSON.load(Ordering::Relaxed) {
        return tracing::error!("{line}");
    }
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The exit status of a program that SIGPIPE has ended, as a shell reports it.
const CLOSED_PIPE: u8 = 141;

/// Whether a write to stdout has failed because its reader has closed it.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Prints the error that ends a command, and returns its exit status. Nothing is printed once the reader of stdout has closed it,
/// as `head` does: the error is only about that.
pub fn ended(failure: &Failure, code: ExitCode) -> ExitCode {
    if IS_CLOSED.load(Ordering::Relaxed) {
        return ExitCode::from(CLOSED_PIPE);
    }
    print_error(&format!("pintle: {failure}"));
    code
}

/// Whether texts on stdout may have colours: it is a terminal, which can show them, and the user has not refused them
/// (<https://no-color.org>).
pub fn has_colours() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    std::io::stdout().is_terminal() && !is_dumb && !is_set("NO_COLOR")
}

/// Stdout, see [`ended`].
pub struct Stdout;

impl std::io::Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        noted(std::io::stdout().write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        noted(std::io::stdout().flush())
    }
}

/// The result of a write, after it has been noted whether stdout is closed.
fn noted<T>(written: std::io::Result<T>) -> std::io::Result<T> {
    if written.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        IS_CLOSED.store(true, Ordering::Relaxed);
    }
    written
}

/// Prints to stdout.
pub fn print(text: &[u8]) -> Result<()> {
    Stdout.write_all(text).and_then(|()| Stdout.flush()).context("cannot write to stdout")
}

/// Prints to stdout. Returns the exit status of a program that does no more than that.
pub fn printed(text: &str) -> ExitCode {
    print(text.as_bytes()).map_or_else(|failure| ended(&failure, ExitCode::FAILURE), |()| ExitCode::SUCCESS)
}

/// Prints a line to stdout, which may be closed.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Writes a field of a line. Control characters are escaped, so that no name of a user ends the line or controls the terminal.
fn write_field(writer: &mut Writer<'_>, name: &str, value: &str) -> std::fmt::Result {
    if name != "message" {
        write!(writer, "{name}=")?;
    }
    value.chars().try_for_each(|character| match character.is_control() {
        true => write!(writer, "{}", character.escape_default()),
        false => writer.write_char(character),
    })
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
    let mut filter = Targets::new().with_default(level).with_target(server::REQUESTS, requests);
    if level < LevelFilter::TRACE {
        // these log every frame
        let protocols = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tower", "tungstenite"];
        filter = filter.with_targets(protocols.map(|protocol| (protocol, level.min(LevelFilter::INFO))));
    }
    let builder = tracing_subscriber::fmt()
        .with_max_level(requests)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // the subscriber would log the failure of a write to stderr, and panic when that fails too
        .log_internal_errors(false)
        .with_target(false);
    // fails only if there is a subscriber already, which is harmless
    let _ = match format {
        LogFormat::Text => {
            let fields = debug_fn(|writer, field, value| write_field(writer, field.name(), &format!("{value:?}")));
            builder.fmt_fields(fields.delimited(" ")).finish().with(filter).try_init()
        }
        LogFormat::Json => {
            IS_JSON.store(true, Ordering::Relaxed);
            builder.json().finish().with(filter).try_init()
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let cases = [
            ("message", "slow request", "slow request"),
            ("user", "jane", "user=jane"),
            ("user", "a\nb\x1b[31m\0", "user=a\\nb\\u{1b}[31m\\u{0}"),
            ("why", "é \u{85}", "why=é \\u{85}"),
        ];
        for (name, value, want) in cases {
            let mut line = String::new();
            write_field(&mut Writer::new(&mut line), name, value).unwrap();
            assert_eq!(line, want);
        }
    }
}
