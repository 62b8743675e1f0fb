//! Why a text is not a YAML document that has a JSON value.

use crate::value::Text;
use std::fmt;

/// Why a text could not be decoded, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    pub problem: YamlProblem,
}

/// The problem of an invalid YAML document, by the stage that detects it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum YamlProblem {
    /// The bytes are not text.
    Encoding(EncodingProblem),
    /// The characters are not tokens.
    Scan(ScanProblem),
    /// The tokens are not a document.
    Parse(ParseProblem),
    /// An alias names an anchor that no node before it has.
    UnknownAnchor(String),
    /// An alias stands inside of the node that it names.
    CyclicAnchor(String),
    /// Aliases add more to the document than they may.
    ExcessiveAliasing,
    /// A collection, which begins with this bracket in JSON, nests deeper than JSON may.
    TooDeep(char),
    /// A key is a collection, which Go prints like this.
    CollectionAsKey(String),
    /// A key is null; Go prints the value of the field like this.
    NullAsKey { value: String },
    /// A key is an integer beyond 64 bits with a sign; Go prints it and the value of the field like this.
    LargeIntegerAsKey { key: String, value: String },
    /// `<<` stands before something other than mappings.
    MergeOfNonMapping,
    /// A number is infinite or not a number, which JSON cannot express.
    NotFinite(String),
    /// A scalar of the type `found` has the tag of another type.
    TagMismatch { found: &'static str, text: Text, tag: String },
    /// A scalar with the tag `!!binary` is not base64.
    InvalidBase64,
}

/// Why bytes are not text in UTF-8 or UTF-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodingProblem {
    ControlCharacter,
    InvalidLeadingByte,
    InvalidTrailingByte,
    IncompleteCharacter,
    OverlongCharacter,
    InvalidCharacter,
    IncompleteUtf16Unit,
    IncompleteSurrogatePair,
    UnexpectedLowSurrogate,
    MissingLowSurrogate,
}

/// Why characters are not tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanProblem {
    PastEndOfStream,
    InvalidFirstCharacter,
    MissingColon,
    TooManyOpenCollections,
    BlockEntryNotAllowed,
    KeyNotAllowed,
    ValueNotAllowed,
    TabViolatesIndentation,
    DocumentIndicatorInQuotes,
    UnclosedQuotes,
    UnknownEscape,
    InvalidHexadecimalEscape,
    InvalidEscapedCharacter,
    MissingCommentOrLineBreak,
    ZeroIndentationIndicator,
    TabInsteadOfIndentation,
    MissingAnchorName,
    UnclosedVerbatimTag,
    MissingSpaceOrLineBreak,
    MissingTagDelimiter,
    MissingTagUri,
    InvalidLeadingByteInUri,
    InvalidTrailingByteInUri,
    MissingEscapedByteInUri,
    MissingDirectiveName,
    InvalidDirectiveName,
    UnknownDirective,
    InvalidVersion,
    LongVersion,
    MissingVersion,
    MissingSpace,
}

/// Why tokens are not a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseProblem {
    MissingDocumentStart,
    DuplicateVersionDirective,
    UnsupportedVersion,
    DuplicateTagDirective,
    UndefinedTagHandle,
    MissingNode,
    MissingBlockEntry,
    MissingKey,
    UnclosedFlowSequence,
    UnclosedFlowMapping,
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

/// The name of a variant as words: `MissingColon` is "missing colon".
fn words(f: &mut fmt::Formatter<'_>, variant: &dyn fmt::Debug) -> fmt::Result {
    for (i, c) in format!("{variant:?}").chars().enumerate() {
        match c.is_ascii_uppercase() && i > 0 {
            true => write!(f, " {}", c.to_ascii_lowercase())?,
            false => write!(f, "{}", c.to_ascii_lowercase())?,
        }
    }
    Ok(())
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        match &self.problem {
            YamlProblem::Encoding(problem) => words(f, problem),
            YamlProblem::Scan(problem) => words(f, problem),
            YamlProblem::Parse(problem) => words(f, problem),
            YamlProblem::UnknownAnchor(name) => write!(f, "no anchor is named {name:?}"),
            YamlProblem::CyclicAnchor(name) => write!(f, "the node with the anchor {name:?} contains itself"),
            YamlProblem::ExcessiveAliasing => f.write_str("aliases expand the document too much"),
            YamlProblem::TooDeep(_) => f.write_str("collections nest too deep"),
            YamlProblem::CollectionAsKey(key) => write!(f, "a collection cannot be a key: {key}"),
            YamlProblem::NullAsKey { .. } => f.write_str("null cannot be a key"),
            YamlProblem::LargeIntegerAsKey { key, .. } => write!(f, "{key} is too large for a key"),
            YamlProblem::MergeOfNonMapping => f.write_str("only mappings can be merged with <<"),
            YamlProblem::NotFinite(number) => write!(f, "JSON has no number {number}"),
            YamlProblem::TagMismatch { found, text, tag } => write!(f, "{text:?} is of type {found}, not {tag}"),
            YamlProblem::InvalidBase64 => f.write_str("the value of !!binary is not base64"),
        }
    }
}

impl std::error::Error for YamlError {}
