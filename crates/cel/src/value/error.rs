//! Why an evaluation failed.

use machinery::Text;

/// Why an evaluation failed. Displayed as by cel-go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.text)]
pub struct Error(std::sync::Arc<Failure>);

#[derive(Debug, PartialEq, Eq)]
struct Failure {
    text: Text,
    scope: FailureScope,
}

/// The extent of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureScope {
    /// `&&`, `||` and folds may absorb it.
    Here,
    /// As `Here`; no overload of the function accepts the arguments.
    Overload,
    /// It ends the evaluation.
    Evaluation,
    /// The budget is used up.
    Budget,
}

impl Error {
    #[cold]
    pub(crate) fn new(text: impl Into<Text>) -> Error {
        Error(std::sync::Arc::new(Failure { text: text.into(), scope: FailureScope::Here }))
    }

    /// The error of a function whose overloads do not accept the arguments.
    #[cold]
    pub(crate) fn overload() -> Error {
        Error::overload_of("no such overload")
    }

    /// As [`Error::overload`], with a text that names the function.
    #[cold]
    pub(crate) fn overload_of(text: impl Into<Text>) -> Error {
        Error(std::sync::Arc::new(Failure { text: text.into(), scope: FailureScope::Overload }))
    }

    /// Whether no overload of a function accepts the arguments.
    pub fn is_overload(&self) -> bool {
        self.0.scope == FailureScope::Overload
    }

    #[cold]
    pub(crate) fn cancelled() -> Error {
        let text = Text::new_static("operation cancelled: actual cost limit exceeded");
        Error(std::sync::Arc::new(Failure { text, scope: FailureScope::Budget }))
    }

    /// An error that ends the evaluation, where cel-go panics.
    #[cold]
    pub(crate) fn broken(text: impl Into<Text>) -> Error {
        Error(std::sync::Arc::new(Failure { text: text.into(), scope: FailureScope::Evaluation }))
    }

    /// Whether the error ends the evaluation, so that `&&` and `||` do not absorb it.
    pub(crate) fn is_fatal(&self) -> bool {
        !matches!(self.0.scope, FailureScope::Here | FailureScope::Overload)
    }

    /// Whether the evaluation ended because of its cost limit, its work limit or its interrupt.
    pub fn is_cancelled(&self) -> bool {
        self.0.scope == FailureScope::Budget
    }

    /// The message.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

/// The result of an operation on values.
pub type Result<T> = std::result::Result<T, Error>;
