//! Errors of the CBOR decoder.

use crate::value::{Text, Value};
use std::fmt;

/// Why bytes could not be decoded, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct CborError {
    /// The offset at which the problem was noticed, in bytes.
    pub offset: usize,
    /// The violation at the offset.
    pub problem: CborProblem,
}

/// The problem of an invalid CBOR document.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CborProblem {
    /// There are no bytes at all.
    Empty,
    /// The input ends within an item.
    UnexpectedEnd,
    /// The bytes are not well-formed.
    Malformed(String),
    /// Bytes follow the document.
    TrailingBytes {
        /// The number of bytes that follow.
        count: usize,
    },
    /// Items are nested too deeply.
    TooDeep {
        /// The greatest allowed depth.
        max: usize,
    },
    /// An array has too many items.
    TooManyItems {
        /// The greatest allowed number of items.
        max: usize,
    },
    /// A map has too many fields.
    TooManyFields {
        /// The greatest allowed number of fields.
        max: usize,
    },
    /// An integer does not fit 64 bits with a sign.
    IntegerOutOfRange(String),
    /// A float is infinite or not a number.
    NotFinite,
    /// JSON has no such type.
    UnsupportedType(String),
    /// An integer beyond 64 bits.
    BigNumber,
    /// The key of a map is not text.
    KeyNotText(Value),
    /// A map contains this key twice.
    DuplicateKey(Text),
    /// A value with the tag of a time is no time.
    InvalidTime(Value),
}

impl fmt::Display for CborError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            CborProblem::Empty => return f.write_str("the document is empty"),
            CborProblem::UnexpectedEnd => f.write_str("the document is incomplete"),
            CborProblem::Malformed(why) => f.write_str(why),
            CborProblem::TrailingBytes { count } => write!(f, "{count} bytes follow the document"),
            CborProblem::TooDeep { max } => write!(f, "values nest deeper than {max}"),
            CborProblem::TooManyItems { max } => write!(f, "an array has more than {max} items"),
            CborProblem::TooManyFields { max } => write!(f, "a map has more than {max} fields"),
            CborProblem::IntegerOutOfRange(integer) => write!(f, "the integer {integer} does not fit 64 bits"),
            CborProblem::NotFinite => f.write_str("JSON has no infinite numbers and no NaN"),
            CborProblem::UnsupportedType(name) => write!(f, "values of type {name} are not supported"),
            CborProblem::BigNumber => f.write_str("big numbers are not supported"),
            CborProblem::KeyNotText(key) => write!(f, "the key {key} is not text"),
            CborProblem::DuplicateKey(key) => write!(f, "the key {key:?} is there twice"),
            CborProblem::InvalidTime(value) => write!(f, "{value} is not a time"),
        }?;
        write!(f, " (at byte {})", self.offset)
    }
}

impl std::error::Error for CborError {}
