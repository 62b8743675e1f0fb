//! The style in which go-yaml v2 writes a text: plain, quoted, or as a literal block.

use super::resolve::{Scalar, timestamp, untagged};
use crate::value::Text;

/// The most bytes of a key that is written without `?`.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// A literal block after `|`.
    Literal,
}

/// Whether a key is written on one line with its colon, without `?`.
pub fn is_simple_key(key: &str) -> bool {
    key.len() <= SIMPLE_KEY_BYTES_MAX && !key.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
}

/// The style of a text as a value.
pub fn style_of(text: &str) -> Style {
    let is_escaped = text.chars().any(|c| c != '\n' && is_escaped(c));
    let has_space_before_break = text.contains(" \n");
    if text.contains('\n') {
        let fits = !is_escaped && !has_space_before_break && !text.ends_with(' ');
        return if fits { Style::Literal } else { Style::DoubleQuoted };
    }
    if is_escaped || looks_typed(text) {
        return Style::DoubleQuoted;
    }
    let is_padded = text.starts_with(' ') || text.ends_with(' ');
    if is_padded || has_indicator(text) { Style::SingleQuoted } else { Style::Plain }
}

/// Whether a character is written as an escape, for which the text must be in double quotes. go-yaml treats U+2028 and
/// U+2029 as line breaks and does not escape them, so that readers receive a different text.
pub fn is_escaped(c: char) -> bool {
    let is_printable = matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}');
    !is_printable || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Whether `text` would be decoded as another type than a string if it were written as a plain scalar.
fn looks_typed(text: &str) -> bool {
    !matches!(untagged(&Text::from(text)), Scalar::Text(_)) || timestamp::is_valid(text) || is_sexagesimal(text)
}

/// A base-60 number as in YAML 1.1, such as `1:30` or `-12:05:59.5`.
fn is_sexagesimal(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((first, rest)) = text.split_once(':') else { return false };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let is_sixtieth = |part: &str| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [ten, digit] => (b'0'..=b'5').contains(ten) && digit.is_ascii_digit(),
        _ => false,
    };
    let begins = first.starts_with(|c: char| c.is_ascii_digit()) && is_digits(first);
    begins && rest.split(':').all(is_sixtieth) && is_digits(fraction)
}

/// Whether a part of a text would be read as syntax if the text were plain.
fn has_indicator(text: &str) -> bool {
    let is_syntax_at_start = match text.as_bytes() {
        [b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"', ..] => true,
        [b'%' | b'@' | b'`', ..] => true,
        [b'-' | b'?' | b':', rest @ ..] => matches!(rest, [] | [b' ', ..]),
        _ => false,
    };
    let is_marker = text.starts_with("---") || text.starts_with("...");
    is_syntax_at_start || is_marker || text.contains(": ") || text.ends_with(':') || text.contains(" #")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles() {
        for (style, texts) in [
            (
                Style::Plain,
                &["a", "10.0.0.9:80", "1:60", "<<", "=", "-a", "?a", ":a", "a#b", "a'b", "12-1", "1.2.3", "é", "a::b"]
                    [..],
            ),
            (Style::SingleQuoted, &["a: b", "a:", "a #b", "#", "- a", "-", "---a", "...", " a", "a ", "{a", "@a", "%"]),
            (
                Style::DoubleQuoted,
                &[
                    "", "1", "true", "y", "~", "null", "0x1f", "1_000", "1e3", ".5", "+1:20", "190:20:30.15",
                    "2024-1-1", "2024-01-01 10:00:00", "2001-12-14t21:59:43.10-05:00", "a\tb", "\u{7f}", "\u{1f600}",
                    "\u{feff}", "\u{2028}", "a \nb", "a\nb ",
                ],
            ),
            (Style::Literal, &["a\nb", "a\n", "\n", " a\nb", "a: b\n# c"]),
        ] {
            for text in texts {
                assert_eq!(style_of(text), style, "{text:?}");
            }
        }
    }
}
