//! Errors of the YAML decoder, in the words of go-yaml.

use std::fmt;

/// Why a text could not be decoded, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The line, counted from 1, if it is known.
    pub line: Option<usize>,
    /// The violation at the line.
    pub problem: YamlProblem,
}

/// The problem of an invalid YAML document, by the stage that detects it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlProblem {
    /// The bytes are not text in UTF-8 or UTF-16.
    #[error("{0}")]
    Encoding(&'static str),
    /// The characters are not tokens.
    #[error("{0}")]
    Scan(&'static str),
    /// The tokens are not a document.
    #[error("{0}")]
    Parse(&'static str),
    /// The nodes are not a document, such as aliases without an anchor.
    #[error("{0}")]
    Document(String),
    /// The document has no form in JSON.
    #[error("{0}")]
    Conversion(String),
    /// A collection nests deeper than JSON may; the opening bracket that it would have in JSON.
    #[error("invalid character '{0}' exceeded max depth")]
    TooDeep(char),
}

impl YamlError {
    /// An error whose line is not known.
    pub(super) fn new(problem: YamlProblem) -> YamlError {
        YamlError { line: None, problem }
    }

    /// An error at a line that is counted from 0.
    pub(super) fn at(line: usize, problem: YamlProblem) -> YamlError {
        YamlError { line: Some(line + 1), problem }
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for YamlError {}
