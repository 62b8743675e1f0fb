//! Regular expressions with Go's syntax, semantics and error texts.
//!
//! Our own front end (`parse`) parses patterns into the intermediate form of `regex-syntax`, so that syntax, semantics and
//! errors are Go's; `regex-automata` matches, in linear time.
//! Invariants: no pattern panics, overflows the stack (nesting is bounded as in Go) or needs unbounded memory.

mod class;
mod counted;
mod parse;
mod pike;

use crate::limits::AUTOMATON_BYTES_MAX;
use counted::Counted;
use machinery::work;
use pike::{PatternProgram, Places, Wanted};
use regex_automata::meta;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The work of compiling a byte of an automaton; a byte of text counts 1.
const COMPILED_FACTOR: usize = 2;

/// Why a pattern is invalid. Displayed as by Go: ``error parsing regexp: missing closing ]: `[a` ``.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RegexError {
    /// The message, as Go words it.
    pub text: String,
}

impl RegexError {
    fn new(code: &str, fragment: &str) -> RegexError {
        RegexError { text: format!("error parsing regexp: {code}: `{fragment}`") }
    }
}

/// A pattern, compiled when it is first needed. Cheap to clone.
#[derive(Clone)]
pub struct Regex {
    pattern: Arc<str>,
    engine: Arc<OnceLock<Engine>>,
}

/// The matching engine.
enum Engine {
    Automaton(Box<Automaton>),
    Steps(PatternProgram),
}

/// Finds matches by `meta`. Whether there is a match at all is decided by `counted` if the pattern has it.
struct Automaton {
    meta: meta::Regex,
    counted: Option<Counted>,
}

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Regex").field(&self.pattern).finish()
    }
}

impl Engine {
    fn new(pattern: &str) -> Engine {
        // the pattern has been parsed before; if parsing failed now, it would match nothing
        let hir = parse::parse(pattern).unwrap_or_else(|_| regex_syntax::hir::Hir::fail());
        let config = meta::Config::new()
            .nfa_size_limit(Some(AUTOMATON_BYTES_MAX))
            .onepass_size_limit(Some(1 << 20))
            .hybrid_cache_capacity(2 << 20);
        match meta::Builder::new().configure(config).build_from_hir(&hir) {
            Ok(meta) => Engine::Automaton(Box::new(Automaton { meta, counted: Counted::new(&hir) })),
            Err(_) => Engine::Steps(PatternProgram::new(&hir)),
        }
    }

    /// The places of the leftmost match that begins at `from` or later.
    fn places(&self, text: &str, from: usize) -> Option<Places> {
        match self {
            Engine::Automaton(automaton) => {
                let mut captures = automaton.meta.create_captures();
                automaton.meta.search_captures(&regex_automata::Input::new(text).range(from..), &mut captures);
                let spans = captures.iter().flat_map(|span| [span.map(|s| s.start), span.map(|s| s.end)]);
                captures.is_match().then(|| spans.collect())
            }
            Engine::Steps(program) => program.run(text, from, Wanted::Places),
        }
    }
}

impl Regex {
    /// Reads a pattern in Go's syntax.
    pub fn new(pattern: &str) -> Result<Regex, RegexError> {
        parse::parse(pattern)?;
        Ok(Regex { pattern: pattern.into(), engine: Arc::default() })
    }

    /// Parses and compiles a pattern during an evaluation, and counts that as work of the evaluation.
    pub(crate) fn compile(pattern: &str) -> Result<Regex, RegexError> {
        let regex = Regex::new(pattern)?;
        crate::work::make(match regex.engine() {
            Engine::Automaton(automaton) => automaton.meta.memory_usage() * COMPILED_FACTOR,
            Engine::Steps(program) => AUTOMATON_BYTES_MAX * COMPILED_FACTOR + program.steps_len(),
        });
        Ok(regex)
    }

    fn engine(&self) -> &Engine {
        self.engine.get_or_init(|| Engine::new(&self.pattern))
    }

    /// The pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether the pattern matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        match self.engine() {
            Engine::Automaton(automaton) => match &automaton.counted {
                Some(counted) => counted.is_match(text),
                None => automaton.meta.is_match(text),
            },
            Engine::Steps(program) => program.run(text, 0, Wanted::Presence).is_some(),
        }
    }

    /// The leftmost match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self.engine() {
            Engine::Automaton(automaton) => automaton.meta.find(text).and_then(|found| text.get(found.range())),
            Engine::Steps(_) => self.captures(text)?.into_iter().next().flatten(),
        }
    }

    /// All matches that don't overlap, from the left. They end early if the computation is interrupted.
    pub fn find_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        let find = |from| match self.engine() {
            Engine::Automaton(automaton) => {
                automaton.meta.search(&regex_automata::Input::new(text).range(from..)).map(|found| found.range())
            }
            Engine::Steps(program) => whole(&program.run(text, from, Wanted::Places)?),
        };
        one_after_another(text, move |from| find(from).map(|found| (found.clone(), found)))
            .filter_map(|found| text.get(found))
    }

    /// The groups of the leftmost match, the whole match first.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<Option<&'t str>>> {
        self.engine().places(text, 0).map(|places| groups(&places, text))
    }

    /// The groups of every match. As [`Regex::find_iter`] otherwise.
    pub fn captures_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Vec<Option<&'a str>>> + 'a {
        let find = |from| self.engine().places(text, from);
        one_after_another(text, move |from| {
            find(from).and_then(|places| Some((whole(&places)?, groups(&places, text))))
        })
    }

    /// How many groups there are, the whole match included.
    pub fn groups_len(&self) -> usize {
        match self.engine() {
            Engine::Automaton(automaton) => automaton.meta.captures_len(),
            Engine::Steps(program) => program.groups_len(),
        }
    }
}

/// The results of `find` for successive matches: each search begins where the last match ended.
fn one_after_another<'a, T>(
    text: &'a str,
    mut find: impl FnMut(usize) -> Option<(Range<usize>, T)> + 'a,
) -> impl Iterator<Item = T> + 'a {
    let (mut from, mut last) = (0, None);
    std::iter::from_fn(move || {
        loop {
            // a search may read the text to its end
            if from > text.len() || work::spend((text.len() - from) as u64) {
                return None;
            }
            let (place, found) = find(from)?;
            let next = text.get(place.end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            // an empty match directly after the last match does not count
            let again = place.is_empty() && last == Some(place.end);
            from = if place.is_empty() { place.end + next } else { place.end };
            last = Some(place.end);
            if !again {
                return Some(found);
            }
        }
    })
}

/// The place of the whole match.
fn whole(places: &Places) -> Option<Range<usize>> {
    Some(places.first().copied().flatten()?..places.get(1).copied().flatten()?)
}

fn groups<'t>(places: &Places, text: &'t str) -> Vec<Option<&'t str>> {
    places.chunks(2).map(|place| text.get(place.first().copied()??..place.get(1).copied()??)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_print_like_go() {
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
    fn patterns_match_like_go() {
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
            ("\\p{Cased_Letter}", "α", true),
            ("\\p{punct}", "!", true),
            ("\\p{IsL}", "α", false),
            ("\\p{Lé}", "α", false),
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
    fn both_regex_engines_agree() {
        let patterns = [
            "a|ab", "(a|ab)(c|bcd)(d*)", "(a+)(b+)?", "(?:a*?)(b|$)", "x*", "(?i)straße|k", "\\bfoo\\b", "(?m)^b$|\\z",
            "[^a-c]+", "(a{2,3}){2}", "(|a)+", "^(a|b)*?c", "\\pL\\d", "(?P<y>\\d{4})-(\\d\\d)?", "\\B.", "(?s).$",
            "a{0}b",
        ];
        let texts = ["", "abcd", "aabbb", "foo foob", "a\nb\nc", "STRAßE \u{212a}", "aaaaaa", "2026-11-21 x7é8", "cab"];
        for pattern in patterns {
            let automaton = Regex::new(pattern).unwrap();
            let steps = Engine::Steps(PatternProgram::new(&parse::parse(pattern).unwrap()));
            let steps = Regex { pattern: pattern.into(), engine: Arc::new(OnceLock::from(steps)) };
            assert!(matches!(automaton.engine(), Engine::Automaton(_)), "{pattern}");
            for text in texts {
                assert_eq!(steps.is_match(text), automaton.is_match(text), "{pattern} in {text:?}");
                assert_eq!(steps.find(text), automaton.find(text), "{pattern} in {text:?}");
                let (one, other): (Vec<_>, Vec<_>) =
                    (steps.captures_iter(text).collect(), automaton.captures_iter(text).collect());
                assert_eq!(one, other, "{pattern} in {text:?}");
                let whole: Vec<&str> = one.into_iter().filter_map(|groups| groups[0]).collect();
                assert_eq!(automaton.find_iter(text).collect::<Vec<_>>(), whole, "{pattern} in {text:?}");
                assert_eq!(steps.find_iter(text).collect::<Vec<_>>(), whole, "{pattern} in {text:?}");
            }
        }
    }

    #[test]
    fn large_automata_fall_back_to_steps() {
        let regex = Regex::new("^(\\pL{1000}){1}[\\pL\\pN]{0,999}$").unwrap();
        assert!(matches!(regex.engine(), Engine::Steps(_)));
        assert!(regex.is_match(&"é".repeat(1500)) && !regex.is_match(&"é".repeat(999)));
        assert!(!regex.is_match(&"é".repeat(2000)) && regex.is_match(&format!("{}7", "x".repeat(1000))));
    }

    #[test]
    fn character_classes_are_shared() {
        let regex = Regex::new(&"(\\pL{1000})".repeat(3000)).unwrap();
        let Engine::Steps(program) = regex.engine() else { panic!("it is too large for an automaton") };
        assert_eq!(program.steps_len(), 3 + 3000 * 1002);
        assert_eq!(program.classes_len(), 1);
        assert!(!regex.is_match("é"));
    }

    #[test]
    fn regex_match_ends_at_work_limit() {
        // every character begins a thread that goes through a million steps
        let regex = Regex::new(&("[ab]{0,1000}".repeat(500) + "c")).unwrap();
        let text = "ab".repeat(1 << 19);
        crate::work::begin(u64::MAX);
        assert!(!regex.is_match(&text));
        assert!(crate::work::is_used_up());
    }

    #[test]
    fn interrupt_ends_regex_match() {
        let regex = Regex::new(&format!("^{}$", "\\pL{0,1000}".repeat(500))).unwrap();
        assert!(matches!(regex.engine(), Engine::Steps(_)));
        let text = "é".repeat(100_000);
        crate::work::begin(u64::MAX);
        assert!(!crate::interruptible(|| true, || regex.is_match(&text)));
        assert!(crate::work::is_used_up());
    }

    #[test]
    fn interrupt_is_asked_by_work_between_matches() {
        thread_local! {
            static ASKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
        }
        fn never() -> bool {
            ASKED.set(ASKED.get() + 1);
            false
        }
        let regex = Regex::new("a").unwrap();
        let text = "a".repeat(20_000);
        assert_eq!(work::interruptible(never, || regex.find_iter(&text).count()), text.len());
        assert_eq!(work::interruptible(never, || regex.captures_iter(&text).count()), text.len());
        assert!((100..1_000).contains(&ASKED.get()), "{}", ASKED.get());
        assert!(work::interruptible(|| true, || regex.find_iter(&text).count()) < text.len());
    }

    #[test]
    fn matches_of_large_automata_are_counted() {
        let counted = |regex: &Regex| matches!(regex.engine(), Engine::Automaton(a) if a.counted.is_some());
        let regex = Regex::new("(?:a.{0,100}){8}c").unwrap();
        assert!(counted(&regex) && !counted(&Regex::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$").unwrap()));
        assert!(regex.is_match(&format!("{}c", "ab".repeat(50))) && !regex.is_match(&"ab".repeat(50)));
        assert!(!regex.is_match("aaaa\naaaac"));
        // the distances between many letters make ever new states
        let text: String = (0..1_000_000_u32).map(|i| if i.wrapping_mul(i / 7) % 5 < 2 { 'a' } else { 'b' }).collect();
        crate::work::begin(u64::MAX);
        assert!(!crate::interruptible(|| true, || regex.is_match(&text)));
        assert!(crate::work::is_used_up());
    }

    #[test]
    fn capture_groups_are_found() {
        let regex = Regex::new("(?P<a>x+)(y)?").unwrap();
        assert_eq!(regex.captures("_xx").unwrap(), [Some("xx"), Some("xx"), None]);
        assert_eq!(regex.find_iter("xyxxz").collect::<Vec<_>>(), ["xy", "xx"]);
        assert_eq!(regex.captures_iter("xyx").count(), 2);
        assert_eq!(regex.groups_len(), 3);
    }
}
