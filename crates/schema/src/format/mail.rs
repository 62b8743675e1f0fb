//! A single mail address as in a header (RFC 5322), as Go's `net/mail` reads it.

/// Whether the text is exactly one address, with or without a display name.
pub(super) fn is_address(text: &str) -> bool {
    let mut parser = MailParser { rest: text };
    parser.single().is_some()
}

/// Whether a group of addresses is allowed in place of an address, which it is not inside another group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Groups {
    Allowed,
    Refused,
}

/// Where dots are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dots {
    BetweenAtoms,
    Anywhere,
}

struct MailParser<'a> {
    rest: &'a str,
}

fn is_atom(c: char) -> bool {
    match c {
        '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' | '"' => false,
        _ => ('!'..='~').contains(&c) || !c.is_ascii(),
    }
}

impl<'a> MailParser<'a> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn eat(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn single(&mut self) -> Option<()> {
        let found = self.address(Groups::Allowed)?;
        self.skip_comments()?;
        (self.rest.is_empty() && found == 1).then_some(())
    }

    /// Skips blanks and comments; `None` if a comment is malformed.
    fn skip_comments(&mut self) -> Option<()> {
        loop {
            self.space();
            if !self.eat('(') {
                return Some(());
            }
            let mut depth = 1;
            let mut chars = self.rest.chars();
            while depth > 0 {
                match chars.next()? {
                    '\\' => {
                        chars.next()?;
                    }
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
            }
            self.rest = chars.as_str();
        }
    }

    /// Reads an address or a group. Returns the number of addresses.
    fn address(&mut self, groups: Groups) -> Option<usize> {
        self.space();
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest;
        if self.addr_spec().is_some() {
            return Some(1);
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.space();
        if groups == Groups::Allowed && self.eat(':') {
            return self.group();
        }
        if !self.eat('<') {
            return None;
        }
        self.addr_spec()?;
        self.eat('>').then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_comments()?;
        if self.eat(';') {
            return None;
        }
        let mut found = 0;
        loop {
            self.skip_comments()?;
            found += self.address(Groups::Refused)?;
            self.skip_comments()?;
            if self.eat(';') {
                return Some(found);
            }
            if !self.eat(',') {
                return None;
            }
        }
    }

    fn addr_spec(&mut self) -> Option<()> {
        self.space();
        if self.rest.starts_with('"') {
            let local = self.quoted()?;
            if local.is_empty() {
                return None;
            }
        } else {
            self.atom(Dots::BetweenAtoms)?;
        }
        if !self.eat('@') {
            return None;
        }
        self.space();
        if self.rest.starts_with('[') { self.domain_literal() } else { self.atom(Dots::BetweenAtoms).map(|_| ()) }
    }

    fn domain_literal(&mut self) -> Option<()> {
        let inner = self.rest.strip_prefix('[')?;
        let end = inner.find(']')?;
        self.rest = &inner[end + 1..];
        inner[..end].parse::<std::net::IpAddr>().ok().map(|_| ())
    }

    /// Reads a run of atom characters and dots.
    fn atom(&mut self, dots: Dots) -> Option<&'a str> {
        let end = self.rest.find(|c| !is_atom(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        if atom.is_empty() {
            return None;
        }
        if dots == Dots::BetweenAtoms && (atom.starts_with('.') || atom.ends_with('.') || atom.contains("..")) {
            return None;
        }
        self.rest = rest;
        Some(atom)
    }

    fn quoted(&mut self) -> Option<String> {
        let mut chars = self.rest.strip_prefix('"')?.chars();
        let mut out = String::new();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => out.push(chars.next().filter(|c| is_quotable(*c))?),
                c if is_quotable(c) => out.push(c),
                _ => return None,
            }
        }
        self.rest = chars.as_str();
        Some(out)
    }

    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.space();
            let quoted = self.rest.starts_with('"');
            let good = if quoted { self.quoted().is_some() } else { self.plain_word()? };
            if !good {
                return (words > 0).then_some(());
            }
            words += 1;
        }
    }

    /// Reads a word without quotes, if there is one; `None` if its encoding is not supported.
    fn plain_word(&mut self) -> Option<bool> {
        match self.atom(Dots::Anywhere) {
            Some(word) if has_unknown_charset(word) => None,
            word => Some(word.is_some()),
        }
    }
}

/// Whether a quoted string may contain a character: visible ones and blanks.
fn is_quotable(c: char) -> bool {
    (' '..='~').contains(&c) || c == '\t' || !c.is_ascii()
}

/// Whether a word is an encoded word (RFC 2047) in an unsupported character set.
fn has_unknown_charset(word: &str) -> bool {
    let Some(inner) = word.strip_prefix("=?").and_then(|w| w.strip_suffix("?=")) else { return false };
    let parts: Vec<&str> = inner.split('?').collect();
    let [charset, encoding, text] = parts[..] else { return false };
    let known = ["utf-8", "iso-8859-1", "us-ascii"].iter().any(|k| charset.eq_ignore_ascii_case(k));
    let readable = match encoding {
        "q" | "Q" => text
            .split('=')
            .skip(1)
            .all(|rest| rest.get(..2).is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))),
        "b" | "B" => text.is_empty() || super::is_base64(text),
        _ => false,
    };
    !charset.is_empty() && !known && readable
}
