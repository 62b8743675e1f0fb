//! Errors, in one line each.

use machinery::Status;

/// Why something could not be done, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: Option<u16>,
    reason: String,
    message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error { code: None, reason: String::new(), message: message.into() }
    }

    /// The refusal of a request.
    pub(crate) fn of_status(status: &Status) -> Error {
        let reason = status.to_value().str_at(&["reason"]).to_owned();
        Error { code: Some(status.code), reason, message: status.message.clone() }
    }

    /// The HTTP status code, if the API refused a request.
    pub fn code(&self) -> Option<u16> {
        self.code
    }

    /// The reason of the API, such as `AlreadyExists`; empty if there is none.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
