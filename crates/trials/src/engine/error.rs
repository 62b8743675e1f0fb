//! Why a fork cannot be used, in one line each, with what to do about it.

use std::fmt;
use std::time::Duration;

/// Why something could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The source cannot be loaded, or the server cannot start.
    Source(String),
    /// A file of this run cannot be written.
    File(String),
    /// A command cannot be started.
    NotStarted { command: String, why: String },
    /// A command has failed.
    Failed { command: String, status: String, output: String },
    /// A command has not sent any request.
    Silent { command: String, within: Duration },
    /// The fork has not come to rest.
    NeverSettled { waits_for: String, within: Duration },
    /// The server has refused a request.
    Refused(String),
    /// A kind or an object that is named does not exist.
    Missing(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Source(why) | Error::File(why) | Error::Refused(why) | Error::Missing(why) => out.write_str(why),
            Error::NotStarted { command, why } => write!(out, "cannot run {command}: {why}"),
            Error::Failed { command, status, output } => {
                let last =
                    output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it has printed nothing");
                write!(out, "{command} has failed with {status}: {}", last.trim())
            }
            Error::Silent { command, within } => {
                write!(
                    out,
                    "{command} has sent no request within {within:?}: it must use the KUBECONFIG that it is given"
                )
            }
            Error::NeverSettled { waits_for, within } => {
                write!(out, "not settled within {within:?}: {waits_for}; allow more time, or less quiet time")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<embed::Error> for Error {
    fn from(error: embed::Error) -> Error {
        Error::Refused(error.to_string())
    }
}
