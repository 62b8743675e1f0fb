//! Errors of the decoder, with the texts of go-yaml v2 as `sigs.k8s.io/yaml` 1.6.0 returns them.

use crate::value::JsonError;

/// An error without a position.
pub fn fail(message: impl Into<String>) -> JsonError {
    JsonError { message: message.into() }
}

/// An error of the scanner, which stands at `line` (counted from 0).
pub fn at_scanner(line: usize, problem: &str) -> JsonError {
    at_line(if line == 0 { 0 } else { line + 1 }, problem)
}

/// An error of the parser at a token that starts on `line` (counted from 0).
///
/// go-yaml adds one to the lines of its scanner only, so the line in the text is the one before the token's.
pub fn at_token(line: usize, problem: &str) -> JsonError {
    at_line(line, problem)
}

/// Line 0 is left out of the text.
fn at_line(line: usize, problem: &str) -> JsonError {
    if line == 0 { fail(format!("yaml: {problem}")) } else { fail(format!("yaml: line {line}: {problem}")) }
}
