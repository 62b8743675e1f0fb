//! Errors of the YAML decoder.

use crate::value::Text;
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
    /// The expanded aliases are larger than the limits allow.
    ExcessiveAliasing,
    /// A collection nests deeper than JSON may; the opening bracket that it would have in JSON.
    TooDeep(char),
    /// A key is a collection; its text as Go prints it.
    CollectionAsKey(String),
    /// A key is null.
    NullAsKey {
        /// The value of the field, as Go prints it.
        value: String,
    },
    /// A key is an integer that does not fit a signed 64-bit integer.
    LargeIntegerAsKey {
        /// The key.
        key: String,
        /// The value of the field, as Go prints it.
        value: String,
    },
    /// `<<` stands before something other than mappings.
    MergeOfNonMapping,
    /// A number is infinite or not a number, which JSON cannot express.
    NotFinite(String),
    /// A scalar of the type `found` has the tag of another type.
    TagMismatch {
        /// The type that was found, as Go names it.
        found: &'static str,
        /// The text of the scalar.
        text: Text,
        /// The tag.
        tag: String,
    },
    /// A scalar with the tag `!!binary` is not base64.
    InvalidBase64,
}

/// Why bytes are not text in UTF-8 or UTF-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodingProblem {
    /// A control character that YAML does not allow.
    ControlCharacter,
    /// A byte that begins no UTF-8 character.
    InvalidLeadingByte,
    /// A byte that continues no UTF-8 character.
    InvalidTrailingByte,
    /// The input ends within a UTF-8 character.
    IncompleteCharacter,
    /// A UTF-8 character encoded in more bytes than it needs.
    OverlongCharacter,
    /// A code point beyond Unicode, or a surrogate.
    InvalidCharacter,
    /// The input ends within a UTF-16 unit.
    IncompleteUtf16Unit,
    /// The input ends within a surrogate pair.
    IncompleteSurrogatePair,
    /// A low surrogate without a high one.
    UnexpectedLowSurrogate,
    /// A high surrogate without a low one.
    MissingLowSurrogate,
}

/// Why characters are not tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanProblem {
    /// A token is expected after the end of the stream.
    PastEndOfStream,
    /// A character that begins no token.
    InvalidFirstCharacter,
    /// A simple key without a colon.
    MissingColon,
    /// Too many collections are open.
    TooManyOpenCollections,
    /// A `-` where no block sequence can begin.
    BlockEntryNotAllowed,
    /// A key where no mapping can begin.
    KeyNotAllowed,
    /// A `:` where no value is allowed.
    ValueNotAllowed,
    /// A tab in indentation.
    TabViolatesIndentation,
    /// A document indicator within a quoted scalar.
    DocumentIndicatorInQuotes,
    /// The stream ends within a quoted scalar.
    UnclosedQuotes,
    /// A backslash before an unknown character.
    UnknownEscape,
    /// An escape without enough hexadecimal digits.
    InvalidHexadecimalEscape,
    /// An escape of a code point that is no character.
    InvalidEscapedCharacter,
    /// A block scalar header is followed by text.
    MissingCommentOrLineBreak,
    /// An indentation indicator of 0.
    ZeroIndentationIndicator,
    /// A tab where a block scalar is indented.
    TabInsteadOfIndentation,
    /// `&` or `*` without a name.
    MissingAnchorName,
    /// A verbatim tag without `>`.
    UnclosedVerbatimTag,
    /// A tag that is not followed by space.
    MissingSpaceOrLineBreak,
    /// A tag handle without its `!`.
    MissingTagDelimiter,
    /// A tag without a URI.
    MissingTagUri,
    /// An escaped byte of a URI that begins no UTF-8 character.
    InvalidLeadingByteInUri,
    /// An escaped byte of a URI that continues no UTF-8 character.
    InvalidTrailingByteInUri,
    /// A `%` in a URI without two hexadecimal digits.
    MissingEscapedByteInUri,
    /// `%` without the name of a directive.
    MissingDirectiveName,
    /// The name of a directive contains another character.
    InvalidDirectiveName,
    /// A directive other than `%YAML` and `%TAG`.
    UnknownDirective,
    /// The version of `%YAML` has no dot.
    InvalidVersion,
    /// A number of the version has too many digits.
    LongVersion,
    /// A number of the version has no digits.
    MissingVersion,
    /// The parts of `%TAG` are not separated by space.
    MissingSpace,
}

/// Why tokens are not a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseProblem {
    /// A document without `---` after its directives.
    MissingDocumentStart,
    /// A second `%YAML` directive.
    DuplicateVersionDirective,
    /// A YAML version other than 1.1.
    UnsupportedVersion,
    /// A second `%TAG` directive with the same handle.
    DuplicateTagDirective,
    /// A tag with a handle that no directive defines.
    UndefinedTagHandle,
    /// A node is missing.
    MissingNode,
    /// A block sequence continues with something else than `-`.
    MissingBlockEntry,
    /// A block mapping continues with something else than a key.
    MissingKey,
    /// A flow sequence without `,` or `]`.
    UnclosedFlowSequence,
    /// A flow mapping without `,` or `}`.
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
fn write_words(f: &mut fmt::Formatter<'_>, variant: &dyn fmt::Debug) -> fmt::Result {
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
            YamlProblem::Encoding(problem) => write_words(f, problem),
            YamlProblem::Scan(problem) => write_words(f, problem),
            YamlProblem::Parse(problem) => write_words(f, problem),
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
