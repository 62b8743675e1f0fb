//! The scanner, which turns characters into tokens, including tokens for indentation. Its algorithm, limits and errors
//! are libyaml's.

use crate::limits::SIMPLE_KEY_CHARACTERS_MAX;
pub use crate::limits::YAML_DEPTH_MAX as DEPTH_MAX;
use std::collections::VecDeque;

use super::buffers::Buffers;
use super::error::{YamlError, YamlProblem};
use super::reader::{Mark, Reader};
use super::token::{Token, TokenKind};

/// The error of more than [`DEPTH_MAX`] open collections.
const TOO_DEEP: &str = "exceeded max depth of 10000";

/// A token that becomes a key if a `:` follows it.
#[derive(Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    /// Whether the position allows only a key.
    required: bool,
    token: usize,
    mark: Mark,
}

/// The numbers of the tokens that may become keys, ascending, each with the index of its [`SimpleKey`].
#[derive(Default)]
struct Candidates(VecDeque<(usize, usize)>);

impl Candidates {
    /// The index for `first`, the first token of the queue. Earlier tokens are forgotten.
    fn of(&mut self, first: usize) -> Option<usize> {
        while self.0.front().is_some_and(|(token, _)| *token < first) {
            self.0.pop_front();
        }
        self.0.front().filter(|(token, _)| *token == first).map(|(_, place)| *place)
    }

    /// Adds the last token, or replaces it.
    fn insert(&mut self, token: usize, place: usize) {
        self.0.pop_back_if(|(last, _)| *last == token);
        self.0.push_back((token, place));
    }

    fn remove(&mut self, token: usize) {
        if let Ok(index) = self.0.binary_search_by_key(&token, |(token, _)| *token) {
            self.0.remove(index);
        }
    }
}

/// Produces tokens on demand.
pub struct Scanner<'a> {
    pub(super) reader: Reader<'a>,
    queue: VecDeque<Token>,
    /// How many tokens have left the queue, which is also the number of its first token.
    taken: usize,
    /// Whether the first token of the queue is final, since it can no longer become part of a key.
    is_ready: bool,
    /// The column of the innermost open block collection; -1 if there is none.
    pub(super) indent: isize,
    indents: Vec<isize>,
    /// The possible keys: one for the block context and one for each open bracket.
    keys: Vec<SimpleKey>,
    candidates: Candidates,
    pub(super) key_allowed: bool,
    pub(super) buffers: Buffers,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8]) -> Scanner<'a> {
        Scanner {
            reader: Reader::new(text),
            queue: VecDeque::new(),
            taken: 0,
            is_ready: false,
            indent: -1,
            indents: vec![],
            keys: vec![SimpleKey::default()],
            candidates: Candidates::default(),
            key_allowed: true,
            buffers: Buffers::default(),
        }
    }

    /// The next token, which stays in the queue.
    pub fn peek(&mut self) -> Result<&Token, YamlError> {
        while !self.is_ready {
            self.is_ready = !self.queue.is_empty() && !self.may_head_become_key()?;
            if !self.is_ready {
                let fetched = self.fetch();
                self.reader.fault().map_or(fetched, Err)?;
            }
        }
        self.queue.front().ok_or_else(|| self.error("attempted to go past the end of stream; corrupted value?"))
    }

    /// Removes the token that [`Scanner::peek`] has returned.
    pub fn pop(&mut self) -> Option<Token> {
        self.is_ready = false;
        self.taken += 1;
        self.queue.pop_front()
    }

    fn may_head_become_key(&mut self) -> Result<bool, YamlError> {
        match self.candidates.of(self.taken) {
            Some(place) if place < self.keys.len() => self.is_key_valid(place),
            _ => Ok(false),
        }
    }

    /// An error at the current line.
    pub(super) fn error(&self, problem: &'static str) -> YamlError {
        YamlError::at(self.reader.mark.line, YamlProblem::Scan(problem))
    }

    pub(super) fn in_flow(&self) -> bool {
        self.keys.len() > 1
    }

    pub(super) fn column(&self) -> isize {
        isize::try_from(self.reader.mark.column).unwrap_or(isize::MAX)
    }

    fn push(&mut self, kind: TokenKind, mark: Mark) {
        self.queue.push_back(Token { kind, place: mark.place() });
    }

    /// Inserts a token before the token `number`, or at the end of the queue if that one has been returned already.
    fn insert(&mut self, number: usize, kind: TokenKind, mark: Mark) {
        match number.checked_sub(self.taken) {
            Some(index) if index <= self.queue.len() => {
                self.queue.insert(index, Token { kind, place: mark.place() });
            }
            _ => self.push(kind, mark),
        }
    }

    fn fetch(&mut self) -> Result<(), YamlError> {
        self.skip_to_token();
        self.unroll(self.column());
        self.reader.ensure(4);
        if self.reader.is_end() {
            return self.fetch_stream_end();
        }
        if self.reader.mark.column == 0 {
            if self.reader.byte(0) == b'%' {
                return self.fetch_directive();
            }
            if self.is_document_indicator() {
                return self.fetch_document_indicator();
            }
        }
        let mark = self.reader.mark;
        let in_flow = self.in_flow();
        match self.reader.byte(0) {
            b'[' => self.fetch_opening(TokenKind::FlowSequenceStart),
            b'{' => self.fetch_opening(TokenKind::FlowMappingStart),
            b']' => self.fetch_closing(TokenKind::FlowSequenceEnd),
            b'}' => self.fetch_closing(TokenKind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if self.reader.is_space_or_end(1) => self.fetch_block_entry(),
            b'?' if in_flow || self.reader.is_space_or_end(1) => self.fetch_key(),
            b':' if in_flow || self.reader.is_space_or_end(1) => self.fetch_value(),
            b'*' => self.fetch_content(mark, Scanner::scan_alias),
            b'&' => self.fetch_content(mark, Scanner::scan_anchor),
            b'!' => self.fetch_content(mark, Scanner::scan_tag),
            b'|' | b'>' if !in_flow => self.fetch_block_scalar(mark),
            b'\'' | b'"' => self.fetch_content(mark, Scanner::scan_quoted),
            _ if self.may_start_plain() => self.fetch_content(mark, Scanner::scan_plain),
            _ => Err(self.error("found character that cannot start any token")),
        }
    }

    /// Whether the next character may start a plain scalar. White space and indicators may not, except for `-`, and for
    /// `?` and `:` outside of brackets, if another character follows.
    fn may_start_plain(&mut self) -> bool {
        match self.reader.byte(0) {
            b'-' => !self.reader.is_blank(1),
            b'?' | b':' => !self.in_flow() && !self.reader.is_space_or_end(1),
            byte if b",[]{}#&*!|>'\"%@`".contains(&byte) => false,
            _ => !self.reader.is_space_or_end(0),
        }
    }

    /// Skips spaces, comments and line breaks. A tab is not skipped where a key may start.
    fn skip_to_token(&mut self) {
        loop {
            self.reader.ensure(1);
            if self.reader.mark.column == 0 && self.reader.is_window_marked() {
                self.reader.skip();
            }
            let tabs_allowed = self.in_flow() || !self.key_allowed;
            self.reader.skip_while(|byte| byte == b' ');
            while self.reader.byte(0) == b' ' || (tabs_allowed && self.reader.byte(0) == b'\t') {
                self.reader.skip();
            }
            self.reader.skip_comment();
            if !self.reader.is_break(0) {
                return;
            }
            self.reader.skip_line();
            self.key_allowed |= !self.in_flow();
        }
    }

    /// Whether `---` or `...` comes next, followed by white space.
    pub(super) fn is_document_indicator(&mut self) -> bool {
        let first = self.reader.byte(0);
        matches!(first, b'-' | b'.')
            && self.reader.byte(1) == first
            && self.reader.byte(2) == first
            && self.reader.is_space_or_end(3)
    }
}

/// Simple keys.
impl Scanner<'_> {
    /// Whether the token of `keys[place]` may still become a key. If it may not and a key is required, that is an
    /// error.
    fn is_key_valid(&mut self, place: usize) -> Result<bool, YamlError> {
        let (key, mark) = (self.keys[place], self.reader.mark);
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line == mark.line && key.mark.index + SIMPLE_KEY_CHARACTERS_MAX >= mark.index {
            return Ok(true);
        }
        if key.required {
            return Err(self.error("could not find expected ':'"));
        }
        self.keys[place].possible = false;
        Ok(false)
    }

    /// Records that the next token may become a key.
    fn save_key(&mut self) -> Result<(), YamlError> {
        if !self.key_allowed {
            return Ok(());
        }
        let required = !self.in_flow() && self.indent == self.column();
        self.forget_key()?;
        let token = self.taken + self.queue.len();
        let place = self.keys.len() - 1;
        self.keys[place] = SimpleKey { possible: true, required, token, mark: self.reader.mark };
        self.candidates.insert(token, place);
        Ok(())
    }

    /// Records that the possible key of the current level is not a key.
    fn forget_key(&mut self) -> Result<(), YamlError> {
        let Some(key) = self.keys.last_mut().filter(|key| key.possible) else { return Ok(()) };
        if key.required {
            return Err(self.error("could not find expected ':'"));
        }
        key.possible = false;
        let token = key.token;
        self.candidates.remove(token);
        Ok(())
    }
}

/// Indentation.
impl Scanner<'_> {
    /// Opens a block collection at the column of `mark`. Its token goes before the token `before`, or to the end.
    fn roll(&mut self, mark: Mark, before: Option<usize>, kind: TokenKind) -> Result<(), YamlError> {
        let column = isize::try_from(mark.column).unwrap_or(isize::MAX);
        if self.in_flow() || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > DEPTH_MAX {
            return Err(self.error(TOO_DEEP));
        }
        match before {
            Some(number) => self.insert(number, kind, mark),
            None => self.push(kind, mark),
        }
        Ok(())
    }

    /// Closes the block collections that are indented more than `column`.
    fn unroll(&mut self, column: isize) {
        while !self.in_flow() && self.indent > column {
            self.push(TokenKind::BlockEnd, self.reader.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }
}

/// One method for each kind of token.
impl Scanner<'_> {
    fn fetch_stream_end(&mut self) -> Result<(), YamlError> {
        if self.reader.mark.column != 0 {
            self.reader.mark.column = 0;
            self.reader.mark.line += 1;
        }
        self.unroll(-1);
        self.forget_key()?;
        self.key_allowed = false;
        self.push(TokenKind::StreamEnd, self.reader.mark);
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<(), YamlError> {
        self.unroll(-1);
        self.forget_key()?;
        self.key_allowed = false;
        let mark = self.reader.mark;
        let kind = self.scan_directive()?;
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_document_indicator(&mut self) -> Result<(), YamlError> {
        self.unroll(-1);
        self.forget_key()?;
        self.key_allowed = false;
        let kind = if self.reader.byte(0) == b'-' { TokenKind::DocumentStart } else { TokenKind::DocumentEnd };
        self.push(kind, self.reader.mark);
        self.reader.skip_many(3);
        Ok(())
    }

    /// Appends an indicator of one character.
    fn push_indicator(&mut self, kind: TokenKind) {
        self.push(kind, self.reader.mark);
        self.reader.skip();
    }

    fn fetch_opening(&mut self, kind: TokenKind) -> Result<(), YamlError> {
        self.save_key()?;
        let token = self.taken + self.queue.len();
        self.keys.push(SimpleKey { token, mark: self.reader.mark, ..SimpleKey::default() });
        if self.keys.len() - 1 > DEPTH_MAX {
            return Err(self.error(TOO_DEEP));
        }
        self.key_allowed = true;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_closing(&mut self, kind: TokenKind) -> Result<(), YamlError> {
        self.forget_key()?;
        if self.in_flow()
            && let Some(key) = self.keys.pop()
        {
            // in an empty collection this is the number of its opening bracket: such a collection is returned at once
            // and cannot be a key of a block mapping
            self.candidates.remove(key.token);
        }
        self.key_allowed = false;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Result<(), YamlError> {
        self.forget_key()?;
        self.key_allowed = true;
        self.push_indicator(TokenKind::FlowEntry);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), YamlError> {
        if !self.in_flow() {
            if !self.key_allowed {
                return Err(self.error("block sequence entries are not allowed in this context"));
            }
            self.roll(self.reader.mark, None, TokenKind::BlockSequenceStart)?;
        }
        self.forget_key()?;
        self.key_allowed = true;
        self.push_indicator(TokenKind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), YamlError> {
        if !self.in_flow() {
            if !self.key_allowed {
                return Err(self.error("mapping keys are not allowed in this context"));
            }
            self.roll(self.reader.mark, None, TokenKind::BlockMappingStart)?;
        }
        self.forget_key()?;
        self.key_allowed = !self.in_flow();
        self.push_indicator(TokenKind::Key);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), YamlError> {
        let place = self.keys.len() - 1;
        if self.is_key_valid(place)? {
            let key = self.keys[place];
            self.insert(key.token, TokenKind::Key, key.mark);
            self.roll(key.mark, Some(key.token), TokenKind::BlockMappingStart)?;
            self.keys[place].possible = false;
            self.candidates.remove(key.token);
            self.key_allowed = false;
        } else {
            if !self.in_flow() {
                if !self.key_allowed {
                    return Err(self.error("mapping values are not allowed in this context"));
                }
                self.roll(self.reader.mark, None, TokenKind::BlockMappingStart)?;
            }
            self.key_allowed = !self.in_flow();
        }
        self.push_indicator(TokenKind::Value);
        Ok(())
    }

    /// Scans a token that may become a key.
    fn fetch_content(
        &mut self,
        mark: Mark,
        scan: fn(&mut Self) -> Result<TokenKind, YamlError>,
    ) -> Result<(), YamlError> {
        self.save_key()?;
        self.key_allowed = false;
        let kind = scan(self)?;
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_block_scalar(&mut self, mark: Mark) -> Result<(), YamlError> {
        self.forget_key()?;
        self.key_allowed = true;
        let kind = self.scan_block()?;
        self.push(kind, mark);
        Ok(())
    }
}
