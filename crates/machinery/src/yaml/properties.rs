//! Anchors, aliases, tags and directives.

use super::error::YamlError;
use super::scanner::Scanner;
use super::token::TokenKind;
use crate::limits::VERSION_DIGITS_MAX;

/// Anchors and aliases.
impl Scanner<'_> {
    pub(super) fn scan_alias(&mut self) -> Result<TokenKind, YamlError> {
        self.anchor_name().map(TokenKind::Alias)
    }

    pub(super) fn scan_anchor(&mut self) -> Result<TokenKind, YamlError> {
        self.anchor_name().map(TokenKind::Anchor)
    }

    fn anchor_name(&mut self) -> Result<String, YamlError> {
        self.reader.skip();
        let name = self.word();
        let is_ended = self.reader.is_space_or_end(0) || b"?:,]}%@`".contains(&self.reader.byte(0));
        if name.is_empty() || !is_ended {
            return Err(self.error("did not find expected alphabetic or numeric character"));
        }
        Ok(name)
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while self.reader.is_word() {
            self.reader.take(&mut word);
        }
        word
    }
}

/// Tags.
impl Scanner<'_> {
    pub(super) fn scan_tag(&mut self) -> Result<TokenKind, YamlError> {
        let (handle, suffix);
        if self.reader.byte(1) == b'<' {
            self.reader.skip_many(2);
            (handle, suffix) = (String::new(), self.tag_uri("")?);
            if self.reader.byte(0) != b'>' {
                return Err(self.error("did not find the expected '>'"));
            }
            self.reader.skip();
        } else {
            (handle, suffix) = self.shorthand()?;
        }
        if !self.reader.is_space_or_end(0) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        Ok(TokenKind::Tag { handle, suffix })
    }

    /// `!suffix` or `!handle!suffix`; `!` alone has no handle.
    fn shorthand(&mut self) -> Result<(String, String), YamlError> {
        let handle = self.tag_handle()?;
        if handle.len() > 1 && handle.ends_with('!') {
            let suffix = self.tag_uri("")?;
            return Ok((handle, suffix));
        }
        let suffix = self.tag_uri(&handle)?;
        Ok(if suffix.is_empty() { (suffix, "!".to_owned()) } else { ("!".to_owned(), suffix) })
    }

    fn tag_handle(&mut self) -> Result<String, YamlError> {
        if self.reader.byte(0) != b'!' {
            return Err(self.error("did not find expected '!'"));
        }
        let mut handle = String::new();
        self.reader.take(&mut handle);
        handle += &self.word();
        if self.reader.byte(0) == b'!' {
            self.reader.take(&mut handle);
        }
        Ok(handle)
    }

    /// The rest of a tag after `head`, including the characters of `head` after its `!`.
    fn tag_uri(&mut self, head: &str) -> Result<String, YamlError> {
        let mut uri = head.get(1..).unwrap_or_default().as_bytes().to_vec();
        let mut found = !head.is_empty();
        loop {
            let byte = self.reader.byte(0);
            if byte == b'%' {
                self.uri_escapes(&mut uri)?;
            } else if self.reader.is_word() || b";/?:@&=+$,.!~*'()[]".contains(&byte) {
                uri.push(byte);
                self.reader.skip();
            } else {
                break;
            }
            found = true;
        }
        if !found {
            return Err(self.error("did not find expected tag URI"));
        }
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// Decodes the `%XX` escapes of one character.
    fn uri_escapes(&mut self, uri: &mut Vec<u8>) -> Result<(), YamlError> {
        let first = self.uri_escape()?;
        let more = match first {
            0..=0x7f => 0,
            0xc0..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf7 => 3,
            _ => return Err(self.error("found an incorrect leading UTF-8 octet")),
        };
        uri.push(first);
        self.reader.skip_many(3);
        for _ in 0..more {
            let next = self.uri_escape()?;
            if next & 0xc0 != 0x80 {
                return Err(self.error("found an incorrect trailing UTF-8 octet"));
            }
            uri.push(next);
            self.reader.skip_many(3);
        }
        Ok(())
    }

    fn uri_escape(&mut self) -> Result<u8, YamlError> {
        let mut digit = |offset| char::from(self.reader.byte(offset)).to_digit(16);
        let octet = match (digit(1), digit(2)) {
            (Some(high), Some(low)) => u8::try_from(high << 4 | low).ok(),
            _ => None,
        };
        octet.filter(|_| self.reader.byte(0) == b'%').ok_or_else(|| self.error("did not find URI escaped octet"))
    }
}

/// Directives.
impl Scanner<'_> {
    pub(super) fn scan_directive(&mut self) -> Result<TokenKind, YamlError> {
        self.reader.skip();
        let name = self.word();
        if name.is_empty() {
            return Err(self.error("could not find expected directive name"));
        }
        if !self.reader.is_space_or_end(0) {
            return Err(self.error("found unexpected non-alphabetical character"));
        }
        let kind = match name.as_str() {
            "YAML" => self.version()?,
            "TAG" => self.tag_directive()?,
            _ => return Err(self.error("found unknown directive name")),
        };
        self.reader.skip_blanks();
        self.reader.skip_comment();
        if !self.reader.is_break_or_end() {
            return Err(self.error("did not find expected comment or line break"));
        }
        self.reader.skip_line();
        Ok(kind)
    }

    fn version(&mut self) -> Result<TokenKind, YamlError> {
        self.reader.skip_blanks();
        let major = self.version_number()?;
        if self.reader.byte(0) != b'.' {
            return Err(self.error("did not find expected digit or '.' character"));
        }
        self.reader.skip();
        let minor = self.version_number()?;
        Ok(TokenKind::Version { major, minor })
    }

    fn version_number(&mut self) -> Result<u8, YamlError> {
        let (mut number, mut digits) = (0, 0);
        while self.reader.byte(0).is_ascii_digit() {
            digits += 1;
            if digits > VERSION_DIGITS_MAX {
                return Err(self.error("found extremely long version number"));
            }
            number = number * 10 + (self.reader.byte(0) - b'0');
            self.reader.skip();
        }
        if digits == 0 { Err(self.error("did not find expected version number")) } else { Ok(number) }
    }

    fn tag_directive(&mut self) -> Result<TokenKind, YamlError> {
        self.reader.skip_blanks();
        let handle = self.tag_handle()?;
        if !handle.ends_with('!') {
            return Err(self.error("did not find expected '!'"));
        }
        if !self.reader.is_blank(0) {
            return Err(self.error("did not find expected whitespace"));
        }
        self.reader.skip_blanks();
        let prefix = self.tag_uri("")?;
        if !self.reader.is_space_or_end(0) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        Ok(TokenKind::TagDirective { handle, prefix })
    }
}
