//! Regular expressions with Go's syntax, semantics and error texts (crd.md 11.5).
//!
//! The pattern is parsed by our own front end (`parse`) into the intermediate form of `regex-syntax`, so that what is
//! accepted, what it means and how errors read is Go's; matching is `regex-automata`'s, in linear time.
//! Invariants: no pattern panics, overflows the stack (nesting is bounded as in Go) or needs unbounded memory.

mod class;
mod parse;

use regex_automata::{meta, util::captures::Captures};
use std::sync::Arc;

/// The compiled form of one pattern may take this many bytes.
const PROGRAM_BYTES_MAX: usize = 64 << 20;

/// Why a pattern is refused. Displays as Go prints it: ``error parsing regexp: missing closing ]: `[a` ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexError {
    pub text: String,
}

impl RegexError {
    fn new(code: &str, fragment: &str) -> RegexError {
        RegexError { text: format!("error parsing regexp: {code}: `{fragment}`") }
    }
}

impl std::fmt::Display for RegexError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for RegexError {}

/// A compiled pattern. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Regex {
    inner: meta::Regex,
    pattern: Arc<str>,
}

impl Regex {
    /// Compiles a pattern in Go's syntax.
    pub fn new(pattern: &str) -> Result<Regex, RegexError> {
        let hir = parse::parse(pattern)?;
        let config = meta::Config::new()
            .nfa_size_limit(Some(PROGRAM_BYTES_MAX))
            .onepass_size_limit(Some(1 << 20))
            .hybrid_cache_capacity(2 << 20);
        let inner = meta::Builder::new()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|_| RegexError::new("expression too large", pattern))?;
        Ok(Regex { inner, pattern: pattern.into() })
    }

    /// The pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether the pattern matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.inner.is_match(text)
    }

    /// The leftmost match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.inner.find(text).and_then(|m| text.get(m.range()))
    }

    /// All matches that don't overlap, from the left.
    pub fn find_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.inner.find_iter(text).filter_map(move |m| text.get(m.range()))
    }

    /// The groups of the leftmost match, the whole match first.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<Option<&'t str>>> {
        let mut captures = self.inner.create_captures();
        self.inner.captures(text, &mut captures);
        captures.is_match().then(|| groups(&captures, text))
    }

    /// The groups of every match.
    pub fn captures_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Vec<Option<&'a str>>> + 'a {
        self.inner.captures_iter(text).map(move |captures| groups(&captures, text))
    }

    /// How many groups there are, the whole match included.
    pub fn groups_len(&self) -> usize {
        self.inner.captures_len()
    }
}

fn groups<'t>(captures: &Captures, text: &'t str) -> Vec<Option<&'t str>> {
    captures.iter().map(|span| span.and_then(|s| text.get(s.range()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_gos() {
        let cases = [
            ("[a", "missing closing ]: `[a`"),
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a*+", "invalid nested repetition operator: `*+`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("(|*)", "missing argument to repetition operator: `*`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("(a{100}){100}", "invalid repeat count: `{100}`"),
            ("\\", "trailing backslash at end of expression: ``"),
            ("\\u0041", "invalid escape sequence: `\\u`"),
            ("\\8", "invalid escape sequence: `\\8`"),
            ("\\C", "invalid escape sequence: `\\C`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?P<1a", "invalid named capture: `(?P<1a`"),
            ("(?P<n-x>a)", "invalid named capture: `(?P<n-x>`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            ("[b-a]", "invalid character class range: `b-a`"),
            ("\\p{Alphabetic}", "invalid character class range: `\\p{Alphabetic}`"),
        ];
        for (pattern, want) in cases {
            assert_eq!(Regex::new(pattern).unwrap_err().text, format!("error parsing regexp: {want}"), "{pattern}");
        }
    }

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let cases = [
            ("^\\d+$", "٣", false),
            ("\\w", "é", false),
            ("^\\s$", "\u{b}", false),
            ("[a&&b]", "&", true),
            ("[a--z]", "-", false),
            ("[[a]", "[", true),
            ("a{,5}", "a{,5}", true),
            ("x{", "x{", true),
            ("\\Qa.b\\E.", "a.bz", true),
            ("\\101", "A", true),
            ("\\<a\\>", "<a>", true),
            ("(?i)straße", "STRAßE", true),
            ("(?i)k", "\u{212a}", true),
            ("^.$", "\n", false),
            ("(?s)^.$", "\n", true),
            ("(?m)^b$", "a\nb\nc", true),
            ("^b$", "a\nb", false),
            ("\\bfoo\\b", "a foo.", true),
            ("\\Boo", "foo", true),
            ("\\p{Greek}", "α", true),
            ("\\pL", "α", true),
            ("\\p{^L}", "α", false),
            ("[^\\x00-\\x{10FFFF}]", "a", false),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("a++?", "", false),
        ];
        for (pattern, text, want) in cases {
            let Ok(regex) = Regex::new(pattern) else {
                assert!(!want, "{pattern}");
                continue;
            };
            assert_eq!(regex.is_match(text), want, "{pattern} on {text}");
        }
    }

    #[test]
    fn nesting_and_size_are_bounded() {
        let deep = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
        assert!(Regex::new(&deep(900)).unwrap().is_match("a"));
        assert!(Regex::new(&deep(1100)).unwrap_err().text.contains("expression nests too deeply"));
        let large = "(xx){1000}".repeat(2000);
        assert!(Regex::new(&large).unwrap_err().text.contains("expression too large"));
        assert!(Regex::new(&"(".repeat(100_000)).is_err());
    }

    #[test]
    fn groups_are_found() {
        let regex = Regex::new("(?P<a>x+)(y)?").unwrap();
        assert_eq!(regex.captures("_xx").unwrap(), [Some("xx"), Some("xx"), None]);
        assert_eq!(regex.find_iter("xyxxz").collect::<Vec<_>>(), ["xy", "xx"]);
        assert_eq!(regex.captures_iter("xyx").count(), 2);
        assert_eq!(regex.groups_len(), 3);
    }
}
