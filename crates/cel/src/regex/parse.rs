//! Parses Go's regular expressions, as `regexp/syntax.Parse` does with the flags of `regexp.Compile`. Open groups are
//! kept on an explicit stack, so that deep nesting cannot overflow the thread's.

use super::{RegexError, class};
use crate::limits::{REGEX_HEIGHT_MAX, REGEX_REPEAT_MAX, REGEX_SIZE_MAX};
use regex_syntax::hir::{Capture, Class, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition};

#[derive(Clone, Copy)]
struct Flags {
    fold: bool,
    one_line: bool,
    dot_newline: bool,
    lazy: bool,
}

/// A parsed part, and the measures that are limited: nesting, size and repetition.
struct ParsedPart {
    hir: Hir,
    height: u32,
    size: u64,
    /// The largest product of counted repetitions that are nested in each other.
    repeats: u32,
    literal: bool,
}

struct Group {
    /// Parts of the branch being read.
    parts: Vec<ParsedPart>,
    branches: Vec<ParsedPart>,
    /// The flags to restore at the end of the group.
    flags: Flags,
    capture: Option<u32>,
    name: Option<Box<str>>,
}

struct PatternParser<'p> {
    pattern: &'p str,
    at: usize,
    flags: Flags,
    groups: Vec<Group>,
    captures: u32,
}

type Result<T> = std::result::Result<T, RegexError>;

fn fail<T>(code: &str, fragment: &str) -> Result<T> {
    Err(RegexError::new(code, fragment))
}

/// Parses a whole pattern.
pub(super) fn parse(pattern: &str) -> Result<Hir> {
    let flags = Flags { fold: false, one_line: true, dot_newline: false, lazy: false };
    let mut parser = PatternParser { pattern, at: 0, flags, groups: vec![], captures: 0 };
    parser.open(None, None);
    parser.run()?;
    if parser.groups.len() > 1 {
        return fail("missing closing )", pattern);
    }
    let Some(whole) = parser.groups.pop() else { return fail("regexp/syntax: internal error", pattern) };
    parser.close(whole).map(|part| part.hir)
}

impl<'p> PatternParser<'p> {
    fn rest(&self) -> &'p str {
        &self.pattern[self.at..]
    }

    fn bytes(&self) -> &'p [u8] {
        self.rest().as_bytes()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn since(&self, start: usize) -> &'p str {
        &self.pattern[start..self.at]
    }

    fn open(&mut self, capture: Option<u32>, name: Option<Box<str>>) {
        self.groups.push(Group { parts: vec![], branches: vec![], flags: self.flags, capture, name });
    }

    fn push(&mut self, hir: Hir) -> Result<()> {
        self.push_part(ParsedPart { hir, height: 1, size: 1, repeats: 1, literal: false })
    }

    fn push_literal(&mut self, hir: Hir) -> Result<()> {
        self.push_part(ParsedPart { hir, height: 1, size: 1, repeats: 1, literal: true })
    }

    fn check_limits(&self, part: &ParsedPart) -> Result<()> {
        if part.height > REGEX_HEIGHT_MAX {
            return fail("expression nests too deeply", self.pattern);
        }
        if part.size > REGEX_SIZE_MAX { fail("expression too large", self.pattern) } else { Ok(()) }
    }

    fn push_part(&mut self, part: ParsedPart) -> Result<()> {
        self.check_limits(&part)?;
        if let Some(group) = self.groups.last_mut() {
            group.parts.push(part);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        // where the repetition operator just read starts: Go refuses a second one right after it
        let mut last_repeat = None;
        while let Some(&c) = self.bytes().first() {
            let mut repeat = None;
            match c {
                b'(' if self.bytes().get(1) == Some(&b'?') => self.perl_group()?,
                b'(' => {
                    self.at += 1;
                    self.captures += 1;
                    self.open(Some(self.captures), None);
                }
                b'|' => {
                    self.at += 1;
                    self.bar();
                }
                b')' => self.right_paren()?,
                b'^' => self.look(if self.flags.one_line { Look::Start } else { Look::StartLF }, 1)?,
                b'$' => self.look(if self.flags.one_line { Look::End } else { Look::EndLF }, 1)?,
                b'.' => {
                    self.at += 1;
                    let any = class::of(&[('\0', char::MAX)]);
                    let line = class::of(&[('\0', '\x09'), ('\x0b', char::MAX)]);
                    self.push(Hir::class(Class::Unicode(if self.flags.dot_newline { any } else { line })))?;
                }
                b'[' => self.class()?,
                b'*' | b'+' | b'?' => {
                    let start = self.at;
                    self.at += 1;
                    let (min, max) = match c {
                        b'*' => (0, None),
                        b'+' => (1, None),
                        _ => (0, Some(1)),
                    };
                    self.repeat(min, max, start, last_repeat)?;
                    repeat = Some(start);
                }
                b'{' => match self.counts() {
                    Some((min, max, len)) => {
                        let start = self.at;
                        self.at += len;
                        self.counted(min, max, start, last_repeat)?;
                        repeat = Some(start);
                    }
                    None => {
                        self.at += 1;
                        self.literal('{')?;
                    }
                },
                b'\\' => self.backslash()?,
                _ => {
                    if let Some(c) = self.bump() {
                        self.literal(c)?;
                    }
                }
            }
            last_repeat = repeat;
        }
        Ok(())
    }

    fn look(&mut self, look: Look, len: usize) -> Result<()> {
        self.at += len;
        self.push(Hir::look(look))
    }

    fn literal(&mut self, c: char) -> Result<()> {
        if self.flags.fold && (c.is_alphabetic() || !c.is_ascii()) {
            let folded = class::fold(class::of(&[(c, c)]));
            return self.push_literal(Hir::class(Class::Unicode(folded)));
        }
        self.push_literal(Hir::literal(c.encode_utf8(&mut [0; 4]).as_bytes()))
    }

    fn bar(&mut self) {
        if let Some(group) = self.groups.last_mut() {
            let part = concat(std::mem::take(&mut group.parts));
            group.branches.push(part);
        }
    }

    fn close(&mut self, mut group: Group) -> Result<ParsedPart> {
        let last = concat(std::mem::take(&mut group.parts));
        let part = if group.branches.is_empty() {
            last
        } else {
            group.branches.push(last);
            alternate(group.branches)
        };
        let part = match group.capture {
            None => part,
            Some(index) => ParsedPart {
                height: part.height + 1,
                size: part.size + 2,
                repeats: part.repeats,
                literal: false,
                hir: Hir::capture(Capture { index, name: group.name, sub: Box::new(part.hir) }),
            },
        };
        self.check_limits(&part)?;
        Ok(part)
    }

    fn right_paren(&mut self) -> Result<()> {
        if self.groups.len() < 2 {
            return fail("unexpected )", self.pattern);
        }
        self.at += 1;
        let Some(group) = self.groups.pop() else { return Ok(()) };
        self.flags = group.flags;
        let part = self.close(group)?;
        self.push_part(ParsedPart { literal: false, ..part })
    }

    /// `(?`: a named group, a group with flags, or flags.
    fn perl_group(&mut self) -> Result<()> {
        let start = self.at;
        let rest = self.rest();
        let named = if rest.len() > 4 && rest.starts_with("(?P<") {
            Some(4)
        } else if rest.len() > 3 && rest.starts_with("(?<") {
            Some(3)
        } else {
            None
        };
        if let Some(name_at) = named {
            let Some(end) = rest.find('>') else { return fail("invalid named capture", rest) };
            let name = &rest[name_at..end];
            if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
                return fail("invalid named capture", &rest[..=end]);
            }
            self.at += end + 1;
            self.captures += 1;
            self.open(Some(self.captures), Some(name.into()));
            return Ok(());
        }
        self.at += 2;
        let outer = self.flags;
        let mut flags = self.flags;
        let (mut on, mut saw) = (true, false);
        while let Some(c) = self.bump() {
            match c {
                'i' => (flags.fold, saw) = (on, true),
                'm' => (flags.one_line, saw) = (!on, true),
                's' => (flags.dot_newline, saw) = (on, true),
                'U' => (flags.lazy, saw) = (on, true),
                '-' if on => (on, saw) = (false, false),
                ':' | ')' if on || saw => {
                    if c == ':' {
                        self.flags = outer;
                        self.open(None, None);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
        }
        fail("invalid or unsupported Perl syntax", self.since(start))
    }

    /// The counts of `{2,3}` at the current position: minimum, optional maximum, and length. A number that is too large for Go
    /// is `u32::MAX`.
    fn counts(&self) -> Option<(u32, Option<u32>, usize)> {
        let rest = self.bytes();
        let mut at = 1;
        let min = count(rest, &mut at)?;
        let mut max = Some(min);
        if *rest.get(at)? == b',' {
            at += 1;
            max = if *rest.get(at)? == b'}' { None } else { Some(count(rest, &mut at)?) };
        }
        (*rest.get(at)? == b'}').then_some((min, max, at + 1))
    }

    fn counted(&mut self, min: u32, max: Option<u32>, start: usize, last: Option<usize>) -> Result<()> {
        if min > REGEX_REPEAT_MAX || max.is_some_and(|max| max > REGEX_REPEAT_MAX || min > max) {
            return fail("invalid repeat count", self.since(start));
        }
        self.repeat(min, max, start, last)
    }

    /// Repeats the last part. The operator starts at `start` and has been consumed, except for a `?` that makes it lazy.
    fn repeat(&mut self, min: u32, max: Option<u32>, start: usize, last: Option<usize>) -> Result<()> {
        let mut greedy = !self.flags.lazy;
        if self.bytes().first() == Some(&b'?') {
            self.at += 1;
            greedy = !greedy;
        }
        if let Some(last) = last {
            return fail("invalid nested repetition operator", self.since(last));
        }
        let Some(part) = self.groups.last_mut().and_then(|group| group.parts.pop()) else {
            return fail("missing argument to repetition operator", self.since(start));
        };
        let factor = max.unwrap_or(min);
        let repeats = part.repeats.saturating_mul(factor.max(1));
        if (min >= 2 || factor >= 2) && factor != 0 && repeats > REGEX_REPEAT_MAX {
            return fail("invalid repeat count", self.since(start));
        }
        let size = match (min, max) {
            (0, None) => part.size + 2,
            (min, None) => 1 + part.size * u64::from(min),
            (min, Some(max)) => part.size * u64::from(max) + u64::from(max - min),
        };
        let repeats = if max == Some(0) { 1 } else { repeats };
        let hir = Hir::repetition(Repetition { min, max, greedy, sub: Box::new(part.hir) });
        self.push_part(ParsedPart { hir, height: part.height + 1, size: size.max(1), repeats, literal: false })
    }

    fn backslash(&mut self) -> Result<()> {
        match self.bytes().get(1) {
            Some(b'A') => return self.look(Look::Start, 2),
            Some(b'z') => return self.look(Look::End, 2),
            Some(b'b') => return self.look(Look::WordAscii, 2),
            Some(b'B') => return self.look(Look::WordAsciiNegate, 2),
            Some(b'C') => return fail("invalid escape sequence", "\\C"),
            Some(b'Q') => {
                let quoted = &self.rest()[2..];
                let (text, len) = match quoted.find("\\E") {
                    Some(end) => (&quoted[..end], end + 4),
                    None => (quoted, quoted.len() + 2),
                };
                self.at += len;
                return text.chars().try_for_each(|c| self.literal(c));
            }
            _ => {}
        }
        if let Some(class) = self.named_class()? {
            return self.push(Hir::class(Class::Unicode(class)));
        }
        let c = self.escape()?;
        match char::from_u32(c) {
            Some(c) => self.literal(c),
            // no text contains a surrogate, so this matches nothing
            None => self.push(Hir::fail()),
        }
    }

    /// `\pL`, `\d`: a class with a name.
    fn named_class(&mut self) -> Result<Option<ClassUnicode>> {
        let Some(&letter) = self.bytes().get(1) else { return Ok(None) };
        if matches!(letter, b'p' | b'P') {
            return self.unicode_class().map(Some);
        }
        let Some((ranges, negated)) = class::perl(letter) else { return Ok(None) };
        self.at += 2;
        Ok(Some(self.adjusted(class::of(ranges), negated)))
    }

    fn adjusted(&self, class: ClassUnicode, negated: bool) -> ClassUnicode {
        let mut class = if self.flags.fold { class::fold(class) } else { class };
        if negated {
            class.negate();
        }
        class
    }

    fn unicode_class(&mut self) -> Result<ClassUnicode> {
        let start = self.at;
        let mut negated = self.bytes().get(1) == Some(&b'P');
        self.at += 2;
        let mut name = match self.bump() {
            None => return fail("invalid character class range", self.since(start)),
            Some('{') => {
                let rest = &self.pattern[start..];
                let Some(end) = rest.find('}') else { return fail("invalid character class range", rest) };
                self.at = start + end + 1;
                &rest[3..end]
            }
            Some(_) => &self.pattern[start + 2..self.at],
        };
        if let Some(positive) = name.strip_prefix('^') {
            name = positive;
            negated = !negated;
        }
        let Some(class) = class::unicode(name) else {
            return fail("invalid character class range", self.since(start));
        };
        Ok(self.adjusted(class, negated))
    }

    /// `\n`, `\x41`, `\101`, `\.`: one character, which may be a surrogate.
    fn escape(&mut self) -> Result<u32> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.bump() else { return fail("trailing backslash at end of expression", "") };
        let octal = |b: Option<&u8>| b.filter(|b| (b'0'..=b'7').contains(b)).map(|b| u32::from(b - b'0'));
        let code = match c {
            '0'..='7' if c == '0' || octal(self.bytes().first()).is_some() => {
                let mut code = u32::from(c) - u32::from('0');
                for _ in 0..2 {
                    let Some(digit) = octal(self.bytes().first()) else { break };
                    code = code * 8 + digit;
                    self.at += 1;
                }
                Some(code)
            }
            'x' => self.hex(),
            'a' => Some(7),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
            _ => None,
        };
        match code {
            Some(code) => Ok(code),
            None => fail("invalid escape sequence", self.since(start)),
        }
    }

    fn hex(&mut self) -> Option<u32> {
        let first = self.bump()?;
        if first != '{' {
            let second = self.bump();
            return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
        }
        let (mut code, mut digits) = (0, 0);
        loop {
            match self.bump()? {
                '}' => return (digits > 0).then_some(code),
                c => code = code * 16 + c.to_digit(16)?,
            }
            if code > 0x10_ffff {
                return None;
            }
            digits += 1;
        }
    }

    fn class(&mut self) -> Result<()> {
        let start = self.at;
        self.at += 1;
        let negated = self.bytes().first() == Some(&b'^');
        self.at += usize::from(negated);
        let mut class = ClassUnicode::empty();
        let mut first = true;
        while first || self.bytes().first() != Some(&b']') {
            first = false;
            if self.bytes().len() > 2
                && self.rest().starts_with("[:")
                && let Some(end) = self.rest()[2..].find(":]")
            {
                let name = &self.rest()[..end + 4];
                let (positive, inner) = match name[2..end + 2].strip_prefix('^') {
                    Some(inner) => (false, inner),
                    None => (true, &name[2..end + 2]),
                };
                let Some(ranges) = class::posix(inner) else { return fail("invalid character class range", name) };
                self.at += name.len();
                class.union(&self.adjusted(class::of(ranges), !positive));
                continue;
            }
            if self.bytes().first() == Some(&b'\\')
                && let Some(named) = self.named_class()?
            {
                class.union(&named);
                continue;
            }
            self.range(start, &mut class)?;
        }
        self.at += 1;
        if negated {
            class.negate();
        }
        self.push(Hir::class(Class::Unicode(class)))
    }

    fn range(&mut self, class_start: usize, class: &mut ClassUnicode) -> Result<()> {
        let start = self.at;
        let low = self.class_char(class_start)?;
        let mut high = low;
        if let [b'-', next, ..] = self.bytes()
            && *next != b']'
        {
            self.at += 1;
            high = self.class_char(class_start)?;
            if high < low {
                return fail("invalid character class range", self.since(start));
            }
        }
        // surrogates occur in no text, so the range excludes them
        let low = if (0xd800..0xe000).contains(&low) { 0xe000 } else { low };
        let high = if (0xd800..0xe000).contains(&high) { 0xd7ff } else { high };
        if let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high))
            && low <= high
        {
            let mut one = ClassUnicode::new([ClassUnicodeRange::new(low, high)]);
            if self.flags.fold {
                one = class::fold(one);
            }
            class.union(&one);
        }
        Ok(())
    }

    fn class_char(&mut self, class_start: usize) -> Result<u32> {
        match self.bytes().first() {
            None => fail("missing closing ]", &self.pattern[class_start..]),
            Some(b'\\') => self.escape(),
            Some(_) => Ok(self.bump().map_or(0, u32::from)),
        }
    }
}

fn count(rest: &[u8], at: &mut usize) -> Option<u32> {
    let start = *at;
    while rest.get(*at).is_some_and(u8::is_ascii_digit) {
        *at += 1;
    }
    let digits = &rest[start..*at];
    if digits.is_empty() || digits.len() > 1 && digits[0] == b'0' {
        return None;
    }
    Some(digits.iter().fold(0, |n: u32, d| n.saturating_mul(10).saturating_add(u32::from(d - b'0'))))
}

fn concat(mut parts: Vec<ParsedPart>) -> ParsedPart {
    if parts.len() == 1
        && let Some(part) = parts.pop()
    {
        return part;
    }
    let literals = parts.iter().all(|p| p.literal);
    let deepest = parts.iter().map(|p| p.height).max().unwrap_or(0);
    ParsedPart {
        height: if literals { 1 } else { deepest + 1 },
        size: parts.iter().map(|p| p.size).sum::<u64>().max(1),
        repeats: parts.iter().map(|p| p.repeats).max().unwrap_or(1),
        literal: false,
        hir: Hir::concat(parts.into_iter().map(|p| p.hir).collect()),
    }
}

fn alternate(branches: Vec<ParsedPart>) -> ParsedPart {
    ParsedPart {
        height: branches.iter().map(|p| p.height).max().unwrap_or(0) + 1,
        size: branches.iter().map(|p| p.size + 1).sum::<u64>(),
        repeats: branches.iter().map(|p| p.repeats).max().unwrap_or(1),
        literal: false,
        hir: Hir::alternation(branches.into_iter().map(|p| p.hir).collect()),
    }
}
