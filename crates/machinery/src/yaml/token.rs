//! The tokens of the scanner.

use crate::value::Text;

/// The kind of a token, with its content.
#[derive(Debug, PartialEq)]
pub enum TokenKind {
    StreamEnd,
    Version { major: u8, minor: u8 },
    TagDirective { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar { text: Text, plain: bool },
}

/// A line and a column in characters, counted from 0. They have 32 bits, since every node has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

/// A token and the place where it starts.
#[derive(Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub place: Place,
}
