//! The reader: decodes the bytes of a stream, checks its characters, and tracks the position of the scanner.

use super::error::{YamlError, YamlProblem};
use super::token::Place;

/// The input is decoded in chunks of this many bytes, as go-yaml does it: an error in a later chunk is not seen when
/// the scanner finds another one first, or when the first document ends before it.
const CHUNK_BYTES: usize = 512;
const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16 { high: usize },
}

/// A position: characters since the beginning, lines and columns in characters, all counted from 0.
#[derive(Clone, Copy, Default)]
pub struct Mark {
    pub index: usize,
    pub line: usize,
    pub column: usize,
}

impl Mark {
    pub fn place(self) -> Place {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Place { line: number(self.line), column: number(self.column) }
    }
}

/// The characters of a text. After the end, it returns NUL characters, which texts cannot contain.
pub struct Reader<'a> {
    raw: &'a [u8],
    /// The end of the decoded part of `raw`, and the end of the chunk up to which it may be decoded.
    raw_at: usize,
    raw_end: usize,
    encoding: Encoding,
    text: String,
    at: usize,
    /// The number of decoded characters from `at` on, including NULs after the end.
    ahead: usize,
    /// The value of `at` when the last chunk was decoded.
    window: usize,
    at_end: bool,
    fault: Option<&'static str>,
    pub mark: Mark,
}

impl<'a> Reader<'a> {
    pub fn new(raw: &'a [u8]) -> Reader<'a> {
        let (encoding, raw_at) = match raw {
            [0xff, 0xfe, ..] => (Encoding::Utf16 { high: 1 }, 2),
            [0xfe, 0xff, ..] => (Encoding::Utf16 { high: 0 }, 2),
            [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
            _ => (Encoding::Utf8, 0),
        };
        Reader {
            raw,
            raw_at,
            raw_end: raw_at,
            encoding,
            text: String::with_capacity(raw.len()),
            at: 0,
            ahead: 0,
            window: 0,
            at_end: false,
            fault: None,
            mark: Mark::default(),
        }
    }

    /// The encoding error that was found. Scanning continues as if the input ended there, so that one check after each
    /// token is enough.
    pub fn fault(&self) -> Option<YamlError> {
        self.fault.map(|problem| YamlError::new(YamlProblem::Encoding(problem)))
    }

    /// Decodes until `count` characters are available. At the end of the input, each call adds one NUL, as in go-yaml.
    pub fn ensure(&mut self, count: usize) {
        if self.ahead >= count {
            return;
        }
        self.window = self.at;
        while self.ahead < count {
            self.decode_chunk();
            if self.at_end {
                self.ahead += 1;
                return;
            }
        }
    }

    fn decode_chunk(&mut self) {
        if self.raw_end == self.raw.len() {
            self.at_end = true;
        } else {
            let start = if self.raw_end < CHUNK_BYTES { 0 } else { self.raw_at };
            self.raw_end = self.raw.len().min(start + CHUNK_BYTES);
        }
        while self.raw_at < self.raw_end {
            self.decode_plain();
            let bytes = &self.raw[self.raw_at..self.raw_end];
            if bytes.is_empty() {
                return;
            }
            let decoded = match self.encoding {
                Encoding::Utf8 => decode_utf8(bytes),
                Encoding::Utf16 { high } => decode_utf16(bytes, high),
            };
            let problem = match decoded {
                Ok((c, width)) if is_allowed(c) => {
                    self.text.push(c);
                    self.ahead += 1;
                    self.raw_at += width;
                    continue;
                }
                Ok(_) => "control characters are not allowed",
                // the rest of the character may be in the next chunk
                Err(Undecodable::Incomplete(_)) if !self.at_end => return,
                Err(Undecodable::Incomplete(problem) | Undecodable::Invalid(problem)) => problem,
            };
            self.fault = Some(problem);
            self.at_end = true;
            return;
        }
    }

    /// Decodes the allowed ASCII characters at the beginning of the chunk, which are most of all texts, at once.
    fn decode_plain(&mut self) {
        let Encoding::Utf8 = self.encoding else { return };
        let bytes = &self.raw[self.raw_at..self.raw_end];
        let length = bytes.iter().position(|byte| !is_plain(*byte)).unwrap_or(bytes.len());
        // what is ASCII is UTF-8
        let plain = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
        self.text.push_str(plain);
        self.ahead += plain.len();
        self.raw_at += plain.len();
    }

    /// The byte `offset` bytes ahead, or 0 at the end. All characters before it must be ASCII.
    pub fn byte(&mut self, offset: usize) -> u8 {
        if self.at + offset >= self.text.len() {
            self.ensure(offset + 1);
        }
        self.text.as_bytes().get(self.at + offset).copied().unwrap_or(0)
    }

    pub fn is_end(&mut self) -> bool {
        self.byte(0) == 0
    }

    /// Whether the character is a space or a tab.
    pub fn is_blank(&mut self, offset: usize) -> bool {
        matches!(self.byte(offset), b' ' | b'\t')
    }

    /// Whether the character is CR, LF, NEL, LS or PS.
    pub fn is_break(&mut self, offset: usize) -> bool {
        match self.byte(offset) {
            b'\r' | b'\n' => true,
            0xc2 => self.byte(offset + 1) == 0x85,
            0xe2 => self.byte(offset + 1) == 0x80 && matches!(self.byte(offset + 2), 0xa8 | 0xa9),
            _ => false,
        }
    }

    pub fn is_break_or_end(&mut self) -> bool {
        self.is_end() || self.is_break(0)
    }

    pub fn is_space_or_end(&mut self, offset: usize) -> bool {
        matches!(self.byte(offset), 0 | b' ' | b'\t') || self.is_break(offset)
    }

    /// Whether the character is a letter, a digit, `_` or `-`.
    pub fn is_word(&mut self) -> bool {
        matches!(self.byte(0), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-')
    }

    /// Whether a byte order mark is at the position where the last chunk was decoded. At the start of each line go-yaml
    /// checks that position, not the line itself.
    pub fn is_window_marked(&mut self) -> bool {
        self.ensure(1);
        self.text[self.window..].starts_with(BYTE_ORDER_MARK)
    }

    fn width(&self) -> usize {
        match self.text.as_bytes().get(self.at) {
            None => 0,
            Some(0..=0x7f) => 1,
            Some(0x80..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(_) => 4,
        }
    }

    /// Skips one character that is not a line break.
    pub fn skip(&mut self) {
        self.at += self.width();
        self.ahead = self.ahead.saturating_sub(1);
        self.mark.index += 1;
        self.mark.column += 1;
    }

    pub fn skip_many(&mut self, count: usize) {
        (0..count).for_each(|_| self.skip());
    }

    pub fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.skip();
        }
    }

    /// Skips a comment up to the line break.
    pub fn skip_comment(&mut self) {
        if self.byte(0) == b'#' {
            while !self.is_break_or_end() {
                self.skip();
            }
        }
    }

    /// Consumes one character and appends it to `out`.
    pub fn take(&mut self, out: &mut String) {
        let end = self.at + self.width();
        out.push_str(&self.text[self.at..end]);
        self.skip();
    }

    /// Consumes the ASCII characters that are decoded and satisfy a condition, and appends them to `out`. The last two characters
    /// that are decoded are left, since the place where more of them are decoded matters (see [`Reader::is_window_marked`]).
    pub fn take_while(&mut self, out: &mut String, is_part: impl Fn(u8) -> bool) {
        let begin = self.at;
        self.skip_while(is_part);
        out.push_str(&self.text[begin..self.at]);
    }

    /// As [`Reader::take_while`], for characters that are not kept.
    pub fn skip_while(&mut self, is_part: impl Fn(u8) -> bool) {
        let end = self.text.len().min(self.at + self.ahead.saturating_sub(2));
        let bytes = self.text.as_bytes().get(self.at..end).unwrap_or_default();
        let length = bytes.iter().position(|byte| !byte.is_ascii() || !is_part(*byte)).unwrap_or(bytes.len());
        self.at += length;
        self.ahead -= length;
        self.mark.index += length;
        self.mark.column += length;
    }

    /// Skips a line break.
    pub fn skip_line(&mut self) {
        if self.is_break(0) {
            self.pass_line();
        }
    }

    /// Consumes a line break and appends it to `out`: LS and PS as they are, others as a line feed.
    pub fn take_line(&mut self, out: &mut String) {
        if !self.is_break(0) {
            return;
        }
        let end = self.at + self.width();
        match self.byte(0) {
            0xe2 => out.push_str(&self.text[self.at..end]),
            _ => out.push('\n'),
        }
        self.pass_line();
    }

    /// Skips the line break that comes next.
    fn pass_line(&mut self) {
        if self.byte(0) == b'\r' && self.byte(1) == b'\n' {
            self.skip();
        }
        self.skip();
        self.mark.line += 1;
        self.mark.column = 0;
    }
}

enum Undecodable {
    Incomplete(&'static str),
    Invalid(&'static str),
}

/// Whether a byte is an allowed character of ASCII.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

/// The first character, and its length in bytes.
fn decode_utf8(bytes: &[u8]) -> Result<(char, usize), Undecodable> {
    let (width, lead, least) = match bytes[0] {
        byte @ 0..=0x7f => return Ok((char::from(byte), 1)),
        byte @ 0xc0..=0xdf => (2, byte & 0x1f, 0x80),
        byte @ 0xe0..=0xef => (3, byte & 0x0f, 0x800),
        byte @ 0xf0..=0xf7 => (4, byte & 0x07, 0x10000),
        _ => return Err(Undecodable::Invalid("invalid leading UTF-8 octet")),
    };
    let Some(trailing) = bytes.get(1..width) else {
        return Err(Undecodable::Incomplete("incomplete UTF-8 octet sequence"));
    };
    if trailing.iter().any(|byte| byte & 0xc0 != 0x80) {
        return Err(Undecodable::Invalid("invalid trailing UTF-8 octet"));
    }
    let code = trailing.iter().fold(u32::from(lead), |code, byte| code << 6 | u32::from(byte & 0x3f));
    if code < least {
        return Err(Undecodable::Invalid("invalid length of a UTF-8 sequence"));
    }
    char::from_u32(code).map(|c| (c, width)).ok_or(Undecodable::Invalid("invalid Unicode character"))
}

/// As [`decode_utf8`]; `high` is the offset of the high byte in a unit.
fn decode_utf16(bytes: &[u8], high: usize) -> Result<(char, usize), Undecodable> {
    let unit = |at: usize| bytes.get(at..at + 2).map(|pair| u32::from(pair[high]) << 8 | u32::from(pair[1 - high]));
    let Some(first) = unit(0) else {
        return Err(Undecodable::Incomplete("incomplete UTF-16 character"));
    };
    match first & 0xfc00 {
        0xdc00 => Err(Undecodable::Invalid("unexpected low surrogate area")),
        0xd800 => match unit(2) {
            None => Err(Undecodable::Incomplete("incomplete UTF-16 surrogate pair")),
            Some(second) if second & 0xfc00 == 0xdc00 => {
                let code = 0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff);
                Ok((char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 4))
            }
            Some(_) => Err(Undecodable::Invalid("expected low surrogate area")),
        },
        _ => Ok((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 2)),
    }
}
