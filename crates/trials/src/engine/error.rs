//! Why a fork cannot be used, in one line each, with what to do about it.

use std::time::Duration;

/// Why something could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A source, a file, a kind or an object that this run needs cannot be used or does not exist.
    #[error("{0}")]
    Setup(String),
    #[error("cannot run {command}: {why}")]
    NotStarted { command: String, why: String },
    #[error("{command} has failed with {status}: {}", last_line(output))]
    Failed { command: String, status: String, output: String },
    #[error("{command} has sent no request within {within:?}: it must use the KUBECONFIG that it is given")]
    Silent { command: String, within: Duration },
    #[error("not settled within {within:?}: {waits_for}; allow more time, or less quiet time")]
    NeverSettled { waits_for: String, within: Duration },
    /// The server has refused a request.
    #[error("{0}")]
    Refused(String),
}

/// The line that says why a command has ended: the panic of a Go program, which its stack follows, or the last one.
fn last_line(output: &str) -> &str {
    let is_panic = |line: &&str| line.starts_with("panic: ") || line.starts_with("fatal error: ");
    let last = || output.lines().rev().find(|line| !line.trim().is_empty());
    output.lines().find(is_panic).or_else(last).unwrap_or("it has printed nothing").trim()
}

impl From<embed::Error> for Error {
    fn from(error: embed::Error) -> Error {
        Error::Refused(error.to_string())
    }
}
