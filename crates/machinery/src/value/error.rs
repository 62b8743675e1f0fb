//! Errors of the JSON decoder, in Go's words.

use super::{Text, quote};
use std::borrow::Cow;

/// Why bytes are not a JSON document, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at byte {offset})")]
pub struct JsonError {
    /// The offset of the unexpected byte; the length of the document if it ends too early.
    pub offset: usize,
    /// The violation at the offset.
    pub problem: JsonProblem,
}

/// The problem of an invalid JSON document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonProblem {
    /// The document ends too early.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// An unexpected byte. In numbers, literals and escapes the end of the input counts as a space.
    #[error("invalid character {} {context}", quote_byte(*byte))]
    Unexpected {
        /// The byte.
        byte: u8,
        /// The position of the byte in the grammar.
        context: Cow<'static, str>,
    },
    /// A number is too large for a float. Reported if nothing else is wrong with the document.
    #[error("json: cannot unmarshal number {literal} into Go value of type float64")]
    NumberOutOfRange {
        /// The literal.
        literal: Text,
    },
}

pub(super) fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = quote(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}
