//! The tokens of the scanner.

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
    Scalar { text: String, plain: bool },
}

/// A token and the line where it starts, counted from 0.
#[derive(Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub line: usize,
}
