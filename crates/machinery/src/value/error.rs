//! Errors of the JSON decoder.

use super::Text;
use std::fmt;

/// Why bytes are not a JSON document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The offset of the unexpected byte; the length of the document if it ends too early.
    pub offset: usize,
    /// The violation at the offset.
    pub problem: JsonProblem,
}

/// The problem of an invalid JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonProblem {
    /// The document ends too early.
    UnexpectedEnd,
    /// An unexpected byte. In numbers, literals and escapes the end of the input counts as a space.
    Unexpected {
        /// The byte.
        byte: u8,
        /// The position of the byte in the grammar.
        context: JsonContext,
    },
    /// A number is too large for a float. Reported if nothing else is wrong with the document.
    NumberOutOfRange {
        /// The literal.
        literal: Text,
    },
}

/// The position of an unexpected byte in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonContext {
    /// At the start of a value.
    Value,
    /// An opening bracket that nests deeper than [`super::DEPTH_MAX`].
    Depth,
    /// At the start of a key.
    Key,
    /// Behind a key, in front of its colon.
    AfterKey,
    /// Behind the value of a key.
    AfterField,
    /// Behind an item of an array.
    AfterItem,
    /// Behind the document.
    AfterDocument,
    /// Inside of `true`, `false` or `null`.
    Literal {
        /// The literal.
        literal: &'static str,
        /// The byte that was expected.
        expected: u8,
    },
    /// Behind the sign of a number.
    Number,
    /// Behind the decimal point of a number.
    Fraction,
    /// In the exponent of a number.
    Exponent,
    /// In a string.
    String,
    /// Behind a backslash in a string.
    Escape,
    /// In the four digits of `\u`.
    HexEscape,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            JsonProblem::UnexpectedEnd => f.write_str("the document is incomplete"),
            JsonProblem::Unexpected { byte, context } => {
                let byte = char::from(*byte);
                write!(f, "unexpected {byte:?} at byte {} ({})", self.offset, context.description())
            }
            JsonProblem::NumberOutOfRange { literal } => {
                write!(f, "the number {literal} at byte {} is too large", self.offset)
            }
        }
    }
}

impl JsonContext {
    fn description(self) -> &'static str {
        match self {
            JsonContext::Value => "expected a value",
            JsonContext::Depth => "too many nested containers",
            JsonContext::Key => "expected a key in quotes",
            JsonContext::AfterKey => "expected a colon",
            JsonContext::AfterField => "expected a comma or a closing brace",
            JsonContext::AfterItem => "expected a comma or a closing bracket",
            JsonContext::AfterDocument => "expected the end of the document",
            JsonContext::Literal { literal, .. } => literal,
            JsonContext::Number | JsonContext::Fraction | JsonContext::Exponent => "expected a digit",
            JsonContext::String => "control characters must be escaped",
            JsonContext::Escape => "unknown escape",
            JsonContext::HexEscape => "expected a hexadecimal digit",
        }
    }
}

impl std::error::Error for JsonError {}
