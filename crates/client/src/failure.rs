//! Why a command or a development task fails, in one line for the person who runs it.

use std::error::Error;
use std::fmt;
use std::path::Path;

/// Any error that ends a command, with its causes. `?` makes it of every error and of every text.
pub struct Failure(Box<dyn Error + Send + Sync>);

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Fails with a text.
pub fn fail<T>(text: impl Into<Failure>) -> Result<T> {
    Err(text.into())
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.into())
    }
}

/// For functions that the server calls, and parsers, which return one message.
impl From<Failure> for String {
    fn from(failure: Failure) -> String {
        failure.to_string()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// An error behind the name of what it is about.
#[derive(Debug, thiserror::Error)]
#[error("{about}: {source}")]
struct Named {
    about: String,
    source: Box<dyn Error + Send + Sync>,
}

/// Names what an error is about.
pub trait Context<T> {
    /// Puts a file, a flag or an act that has failed before the error.
    fn context(self, about: impl fmt::Display) -> Result<T>;

    /// Puts the act that has failed and its file before the error, such as `write`.
    fn cannot(self, act: &str, path: &Path) -> Result<T>;
}

impl<T, E: Into<Failure>> Context<T> for Result<T, E> {
    fn context(self, about: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Named { about: about.to_string(), source: error.into().0 }.into())
    }

    fn cannot(self, act: &str, path: &Path) -> Result<T> {
        self.context(format_args!("cannot {act} {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_one_line_and_causes_are_kept() {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let read: Result<(), std::io::Error> = Err(missing());
        let failure = read.cannot("read", Path::new("a")).context("--flag").unwrap_err();
        assert_eq!(failure.to_string(), format!("--flag: cannot read a: {}", missing()));
        let mut innermost: &dyn Error = &*failure.0;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        assert_eq!(innermost.downcast_ref::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::NotFound);
        assert_eq!(String::from(Failure::from("text")), "text");
    }
}
