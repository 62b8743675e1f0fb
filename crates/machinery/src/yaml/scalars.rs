//! Scanning of plain, quoted and block scalars.

use super::buffers::{Buffers, Gap};
use super::error::YamlError;
use super::scanner::Scanner;
use super::token::TokenKind;
use crate::value::Text;

/// Whether a character of ASCII is neither white space nor a line break nor the end.
fn is_ordinary(byte: u8) -> bool {
    byte > b' '
}

/// Plain scalars.
impl Scanner<'_> {
    pub(super) fn scan_plain(&mut self) -> Result<TokenKind, YamlError> {
        let mut buffers = std::mem::take(&mut self.buffers);
        self.read_plain(&mut buffers)?;
        Ok(TokenKind::Scalar { text: self.buffered(buffers), plain: true })
    }

    /// The text in the buffers, which are kept.
    fn buffered(&mut self, mut buffers: Buffers) -> Text {
        let text = Text::from(buffers.text.as_str());
        buffers.text.clear();
        buffers.gap.clear();
        self.buffers = buffers;
        text
    }

    fn read_plain(&mut self, Buffers { text, gap }: &mut Buffers) -> Result<(), YamlError> {
        let indent = self.indent + 1;
        loop {
            self.reader.ensure(4);
            let is_indicator = self.reader.mark.column == 0 && self.is_document_indicator();
            if is_indicator || self.reader.byte(0) == b'#' {
                break;
            }
            self.take_plain(text, gap);
            if !self.reader.is_blank(0) && !self.reader.is_break(0) {
                break;
            }
            self.take_gap_of_plain(gap, indent)?;
            if !self.in_flow() && self.column() < indent {
                break;
            }
        }
        self.key_allowed |= gap.has_break;
        Ok(())
    }

    /// Consumes the characters up to white space or an indicator that ends a plain scalar.
    fn take_plain(&mut self, text: &mut String, gap: &mut Gap) {
        let in_flow = self.in_flow();
        while !self.reader.is_space_or_end(0) {
            let byte = self.reader.byte(0);
            if byte == b':' && self.reader.is_space_or_end(1) {
                return;
            }
            if in_flow && matches!(byte, b',' | b'?' | b'[' | b']' | b'{' | b'}') {
                return;
            }
            if !gap.is_empty() {
                gap.write(text);
            }
            self.reader.take(text);
            self.reader.ensure(2);
            self.reader.take_while(text, |byte| {
                is_ordinary(byte) && !matches!(byte, b':' | b',' | b'?' | b'[' | b']' | b'{' | b'}')
            });
        }
    }

    fn take_gap_of_plain(&mut self, gap: &mut Gap, indent: isize) -> Result<(), YamlError> {
        loop {
            if self.reader.is_break(0) {
                gap.take_line(&mut self.reader);
            } else if self.reader.is_blank(0) {
                if gap.has_break && self.column() < indent && self.reader.byte(0) == b'\t' {
                    return Err(self.error("found a tab character that violates indentation"));
                }
                gap.take_blank(&mut self.reader);
            } else {
                return Ok(());
            }
        }
    }
}

/// Quoted scalars.
impl Scanner<'_> {
    pub(super) fn scan_quoted(&mut self) -> Result<TokenKind, YamlError> {
        let mut buffers = std::mem::take(&mut self.buffers);
        self.read_quoted(&mut buffers)?;
        Ok(TokenKind::Scalar { text: self.buffered(buffers), plain: false })
    }

    fn read_quoted(&mut self, Buffers { text, gap }: &mut Buffers) -> Result<(), YamlError> {
        let quote = self.reader.byte(0);
        self.reader.skip();
        loop {
            self.reader.ensure(4);
            if self.reader.mark.column == 0 && self.is_document_indicator() {
                return Err(self.error("found unexpected document indicator"));
            }
            if self.reader.is_end() {
                return Err(self.error("found unexpected end of stream"));
            }
            self.take_quoted(quote, text, gap)?;
            if self.reader.byte(0) == quote {
                break;
            }
            loop {
                if self.reader.is_break(0) {
                    gap.take_line(&mut self.reader);
                } else if self.reader.is_blank(0) {
                    gap.take_blank(&mut self.reader);
                } else {
                    break;
                }
            }
            gap.write(text);
        }
        self.reader.skip();
        Ok(())
    }

    /// Consumes the characters up to white space, the closing quote or an escaped line break.
    fn take_quoted(&mut self, quote: u8, text: &mut String, gap: &mut Gap) -> Result<(), YamlError> {
        while !self.reader.is_space_or_end(0) {
            match self.reader.byte(0) {
                b'\'' if quote == b'\'' && self.reader.byte(1) == b'\'' => {
                    text.push('\'');
                    self.reader.skip_many(2);
                }
                byte if byte == quote => return Ok(()),
                b'\\' if quote == b'"' && self.reader.is_break(1) => {
                    self.reader.skip();
                    self.reader.skip_line();
                    gap.has_break = true;
                    return Ok(());
                }
                b'\\' if quote == b'"' => text.push(self.escaped()?),
                _ => self.reader.take(text),
            }
            self.reader.ensure(2);
            self.reader.take_while(text, |byte| is_ordinary(byte) && byte != quote && byte != b'\\');
        }
        Ok(())
    }

    fn escaped(&mut self) -> Result<char, YamlError> {
        let c = match self.reader.byte(1) {
            b'0' => '\0',
            b'a' => '\x07',
            b'b' => '\x08',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\x0b',
            b'f' => '\x0c',
            b'r' => '\r',
            b'e' => '\x1b',
            b' ' => ' ',
            b'"' => '"',
            b'\'' => '\'',
            b'\\' => '\\',
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' => return self.escaped_code(2),
            b'u' => return self.escaped_code(4),
            b'U' => return self.escaped_code(8),
            _ => return Err(self.error("found unknown escape character")),
        };
        self.reader.skip_many(2);
        Ok(c)
    }

    fn escaped_code(&mut self, digits: usize) -> Result<char, YamlError> {
        self.reader.skip_many(2);
        self.reader.ensure(digits);
        let mut code: u32 = 0;
        for offset in 0..digits {
            let digit = char::from(self.reader.byte(offset)).to_digit(16);
            let digit = digit.ok_or_else(|| self.error("did not find expected hexdecimal number"))?;
            code = code << 4 | digit;
        }
        let c = char::from_u32(code).ok_or_else(|| self.error("found invalid Unicode character escape code"))?;
        self.reader.skip_many(digits);
        Ok(c)
    }
}

/// Which line breaks at the end of a block scalar are kept.
#[derive(Clone, Copy, PartialEq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

/// Blocks of lines.
impl Scanner<'_> {
    pub(super) fn scan_block(&mut self) -> Result<TokenKind, YamlError> {
        let folds = self.reader.byte(0) == b'>';
        self.reader.skip();
        let (chomping, increment) = self.block_header()?;
        self.reader.skip_blanks();
        self.reader.skip_comment();
        if !self.reader.is_break_or_end() {
            return Err(self.error("did not find expected comment or line break"));
        }
        self.reader.skip_line();
        let mut indent = increment.map(|increment| self.indent.max(0) + increment);
        let (mut text, mut first_break, mut more_breaks) = (String::new(), String::new(), String::new());
        self.take_block_breaks(&mut indent, &mut more_breaks)?;
        let mut was_blank = false;
        while Some(self.column()) == indent && !self.reader.is_end() {
            let is_blank = self.reader.is_blank(0);
            if folds && !was_blank && !is_blank && first_break.starts_with('\n') {
                if more_breaks.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&first_break);
            }
            text.push_str(&more_breaks);
            first_break.clear();
            more_breaks.clear();
            was_blank = is_blank;
            while !self.reader.is_break_or_end() {
                self.reader.take(&mut text);
                self.reader.take_while(&mut text, |byte| is_ordinary(byte) || byte == b' ');
            }
            self.reader.take_line(&mut first_break);
            self.take_block_breaks(&mut indent, &mut more_breaks)?;
        }
        if chomping != Chomping::Strip {
            text.push_str(&first_break);
        }
        if chomping == Chomping::Keep {
            text.push_str(&more_breaks);
        }
        Ok(TokenKind::Scalar { text: text.into(), plain: false })
    }

    /// Parses the chomping and indentation indicators of a block scalar, in any order.
    fn block_header(&mut self) -> Result<(Chomping, Option<isize>), YamlError> {
        let mut chomping = self.chomping();
        let mut increment = None;
        if self.reader.byte(0).is_ascii_digit() {
            if self.reader.byte(0) == b'0' {
                return Err(self.error("found an indentation indicator equal to 0"));
            }
            increment = Some(isize::from(self.reader.byte(0) - b'0'));
            self.reader.skip();
            chomping = chomping.or_else(|| self.chomping());
        }
        Ok((chomping.unwrap_or(Chomping::Clip), increment))
    }

    fn chomping(&mut self) -> Option<Chomping> {
        let found = match self.reader.byte(0) {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return None,
        };
        self.reader.skip();
        Some(found)
    }

    /// Consumes indentation and empty lines. If `indent` is not set, the first non-empty line sets it.
    fn take_block_breaks(&mut self, indent: &mut Option<isize>, breaks: &mut String) -> Result<(), YamlError> {
        let mut widest = 0;
        loop {
            while indent.is_none_or(|indent| self.column() < indent) && self.reader.byte(0) == b' ' {
                self.reader.skip();
            }
            widest = widest.max(self.column());
            if indent.is_none_or(|indent| self.column() < indent) && self.reader.byte(0) == b'\t' {
                return Err(self.error("found a tab character where an indentation space is expected"));
            }
            if !self.reader.is_break(0) {
                break;
            }
            self.reader.take_line(breaks);
        }
        indent.get_or_insert(widest.max(self.indent + 1).max(1));
        Ok(())
    }
}
