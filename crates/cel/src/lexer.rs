//! The lexer, with the errors of ANTLR's lexer.
//!
//! Positions are in code points. White space and comments yield no tokens. Messages quote the text between tokens, so
//! tokens have byte positions too.

use crate::ast::Issue;

/// Kinds of tokens, numbered as in cel-go's grammar, because messages list the expected tokens in that order. EOF is
/// 0.
pub(crate) mod kind {
    pub const EOF: u8 = 0;
    pub const EQUALS: u8 = 1;
    pub const NOT_EQUALS: u8 = 2;
    pub const IN: u8 = 3;
    pub const LESS: u8 = 4;
    pub const LESS_EQUALS: u8 = 5;
    pub const GREATER_EQUALS: u8 = 6;
    pub const GREATER: u8 = 7;
    pub const AND: u8 = 8;
    pub const OR: u8 = 9;
    pub const LBRACKET: u8 = 10;
    pub const RBRACKET: u8 = 11;
    pub const LBRACE: u8 = 12;
    pub const RBRACE: u8 = 13;
    pub const LPAREN: u8 = 14;
    pub const RPAREN: u8 = 15;
    pub const DOT: u8 = 16;
    pub const COMMA: u8 = 17;
    pub const MINUS: u8 = 18;
    pub const EXCLAM: u8 = 19;
    pub const QUESTION: u8 = 20;
    pub const COLON: u8 = 21;
    pub const PLUS: u8 = 22;
    pub const STAR: u8 = 23;
    pub const SLASH: u8 = 24;
    pub const PERCENT: u8 = 25;
    pub const TRUE: u8 = 26;
    pub const FALSE: u8 = 27;
    pub const NULL: u8 = 28;
    pub const FLOAT: u8 = 31;
    pub const INT: u8 = 32;
    pub const UINT: u8 = 33;
    pub const STRING: u8 = 34;
    pub const BYTES: u8 = 35;
    pub const IDENT: u8 = 36;
    pub const ESC_IDENT: u8 = 37;
}

/// How messages name a kind.
pub(crate) fn kind_name(kind: u8) -> &'static str {
    const NAMES: [&str; 38] = [
        "<EOF>", "'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'['", "']'", "'{'", "'}'",
        "'('", "')'", "'.'", "','", "'-'", "'!'", "'?'", "':'", "'+'", "'*'", "'/'", "'%'", "'true'", "'false'",
        "'null'", "WHITESPACE", "COMMENT", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER",
        "ESC_IDENTIFIER",
    ];
    NAMES.get(usize::from(kind)).copied().unwrap_or("")
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: u8,
    /// Code point offset.
    pub offset: u32,
    pub start: usize,
    pub end: usize,
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    offset: u32,
    tokens: Vec<Token>,
    issues: Vec<Issue>,
    /// Byte ranges that no token matches.
    unread: Vec<(usize, usize)>,
}

/// The tokens of a text, EOF last. Parts that no token matches are returned both as issues and as byte ranges.
pub(crate) fn tokens(text: &str) -> (Vec<Token>, Vec<Issue>, Vec<(usize, usize)>) {
    let mut lexer = Lexer {
        text,
        at: 0,
        offset: 0,
        tokens: Vec::with_capacity(text.len() / 3 + 2),
        issues: vec![],
        unread: vec![],
    };
    while lexer.at < text.len() {
        lexer.next();
    }
    lexer.tokens.push(Token { kind: kind::EOF, offset: lexer.offset, start: text.len(), end: text.len() });
    (lexer.tokens, lexer.issues, lexer.unread)
}

impl Lexer<'_> {
    fn bytes(&self) -> &[u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn advance(&mut self, len: usize) {
        let part = &self.text[self.at..self.at + len];
        self.offset += if part.is_ascii() { len as u32 } else { part.chars().count() as u32 };
        self.at += len;
    }

    fn push(&mut self, kind: u8, len: usize) {
        self.tokens.push(Token { kind, offset: self.offset, start: self.at, end: self.at + len });
        self.advance(len);
    }

    /// Reports that no token starts here; the first unexpected character is `len` bytes ahead.
    fn fail(&mut self, len: usize) {
        let rest = &self.text[self.at..];
        let bad = rest[len..].chars().next().map_or(0, char::len_utf8);
        let text = &rest[..len + bad];
        self.issues.push(Issue::new(self.offset, format!("Syntax error: token recognition error at: '{text}'")));
        self.unread.push((self.at, self.at + len + bad));
        self.advance(len + bad);
    }

    fn next(&mut self) {
        let bytes = self.bytes();
        match bytes[0] {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0c => {
                let len = bytes.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0x0c)).count();
                self.advance(len);
            }
            b'/' if bytes.get(1) == Some(&b'/') => {
                let len = bytes.iter().position(|&b| b == b'\n').unwrap_or(bytes.len());
                self.advance(len);
            }
            b'0'..=b'9' => self.number(),
            b'.' if bytes.get(1).is_some_and(u8::is_ascii_digit) => self.number(),
            b'"' | b'\'' => match string(bytes, Backslashes::Escape) {
                Ok(len) => self.push(kind::STRING, len),
                Err(len) => self.fail(len),
            },
            b'`' => self.escaped_ident(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            _ => self.operator(),
        }
    }

    fn word(&mut self) {
        let bytes = self.bytes();
        let prefix = bytes.iter().take(2).take_while(|b| matches!(b, b'b' | b'B' | b'r' | b'R')).count();
        let literal = match &bytes[..prefix] {
            [b'b' | b'B'] => Some((kind::BYTES, Backslashes::Escape)),
            [b'r' | b'R'] => Some((kind::STRING, Backslashes::Raw)),
            [b'b' | b'B', b'r' | b'R'] => Some((kind::BYTES, Backslashes::Raw)),
            _ => None,
        };
        if let Some((kind, backslashes)) = literal
            && matches!(bytes.get(prefix), Some(b'"' | b'\''))
            && let Ok(len) = string(&bytes[prefix..], backslashes)
        {
            return self.push(kind, prefix + len);
        }
        let len = bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let kind = match &bytes[..len] {
            b"in" => kind::IN,
            b"true" => kind::TRUE,
            b"false" => kind::FALSE,
            b"null" => kind::NULL,
            _ => kind::IDENT,
        };
        self.push(kind, len);
    }

    fn escaped_ident(&mut self) {
        let bytes = self.bytes();
        let len = 1 + bytes[1..]
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b' '))
            .count();
        if len > 1 && bytes.get(len) == Some(&b'`') {
            self.push(kind::ESC_IDENT, len + 1);
        } else {
            self.fail(len);
        }
    }

    fn number(&mut self) {
        let bytes = self.bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        if bytes.starts_with(b"0x") {
            let hex = bytes[2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
            if hex > 0 {
                let unsigned = matches!(bytes.get(2 + hex), Some(b'u' | b'U'));
                return self.push(if unsigned { kind::UINT } else { kind::INT }, 2 + hex + usize::from(unsigned));
            }
        }
        let mut len = digits(0);
        let mut kind = kind::INT;
        if bytes.get(len) == Some(&b'.') && digits(len + 1) > 0 {
            len += 1 + digits(len + 1);
            kind = kind::FLOAT;
        }
        if matches!(bytes.get(len), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
            let exponent = bytes.get(len + 1 + sign..).map_or(0, |_| digits(len + 1 + sign));
            if exponent > 0 {
                len += 1 + sign + exponent;
                kind = kind::FLOAT;
            }
        }
        if kind == kind::INT && matches!(bytes.get(len), Some(b'u' | b'U')) {
            len += 1;
            kind = kind::UINT;
        }
        self.push(kind, len);
    }

    fn operator(&mut self) {
        /// Lists the tokens of one character that begin no other token, in the order of their kinds from [`kind::LBRACKET`] on.
        const SINGLE: &[u8; 16] = b"[]{}().,-!?:+*/%";
        let bytes = self.bytes();
        let next = bytes.get(1).copied();
        let (kind, len) = match (bytes[0], next) {
            (b'=', Some(b'=')) => (kind::EQUALS, 2),
            (b'!', Some(b'=')) => (kind::NOT_EQUALS, 2),
            (b'<', Some(b'=')) => (kind::LESS_EQUALS, 2),
            (b'>', Some(b'=')) => (kind::GREATER_EQUALS, 2),
            (b'&', Some(b'&')) => (kind::AND, 2),
            (b'|', Some(b'|')) => (kind::OR, 2),
            (b'=' | b'&' | b'|', _) => return self.fail(1),
            (b'<', _) => (kind::LESS, 1),
            (b'>', _) => (kind::GREATER, 1),
            (byte, _) => match SINGLE.iter().position(|single| *single == byte) {
                Some(at) => (kind::LBRACKET + at as u8, 1),
                None => return self.fail(0),
            },
        };
        self.push(kind, len);
    }
}

/// Escapes white space as ANTLR does in messages.
pub(crate) fn escape_blanks(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

/// The meaning of backslashes in a string literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslashes {
    /// The beginning of an escape sequence.
    Escape,
    /// Ordinary characters: the literal has the prefix `r`.
    Raw,
}

/// The length of the leading string literal; the error is the position of the first unexpected byte.
fn string(bytes: &[u8], backslashes: Backslashes) -> Result<usize, usize> {
    let quote = bytes[0];
    if bytes.len() >= 3 && bytes[1] == quote && bytes[2] == quote {
        return Ok(triple(bytes, quote, backslashes).unwrap_or(2));
    }
    let mut at = 1;
    loop {
        match bytes.get(at) {
            None => return Err(at),
            Some(b'\n' | b'\r') => return Err(at),
            Some(&b) if b == quote => return Ok(at + 1),
            Some(b'\\') if backslashes == Backslashes::Escape => at = escape(bytes, at)?,
            Some(_) => at += 1,
        }
    }
}

fn triple(bytes: &[u8], quote: u8, backslashes: Backslashes) -> Option<usize> {
    let mut at = 3;
    loop {
        match bytes.get(at)? {
            &b if b == quote && bytes[at..].starts_with(&[quote; 3]) => return Some(at + 3),
            b'\\' if backslashes == Backslashes::Escape => at = escape(bytes, at).ok()?,
            _ => at += 1,
        }
    }
}

/// The end of the escape sequence at `at`; the error is the position of the first unexpected byte.
fn escape(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let all = |from: usize, count: usize, good: fn(&u8) -> bool| {
        for i in from..from + count {
            if !bytes.get(i).is_some_and(good) {
                return Err(i);
            }
        }
        Ok(from + count)
    };
    match bytes.get(at + 1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => Ok(at + 2),
        Some(b'x' | b'X') => all(at + 2, 2, u8::is_ascii_hexdigit),
        Some(b'u') => all(at + 2, 4, u8::is_ascii_hexdigit),
        Some(b'U') => all(at + 2, 8, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => all(at + 2, 2, |b| (b'0'..=b'7').contains(b)),
        _ => Err(at + 1),
    }
}
