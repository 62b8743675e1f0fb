//! What is wrong with a text, in the words of Go's yaml.v2, which are those of libyaml.
//!
//! Its scanner names the line at which it stands, its parser the one before, and neither the first one.

use saphyr_parser::{Marker, ScanError};

use crate::value::JsonError;

/// What libyaml's scanner and parser say, by a part of what ours says.
const SCANNER: [(&str, &str); 17] = [
    ("block sequence entries", "block sequence entries are not allowed in this context"),
    ("mapping values", "mapping values are not allowed in this context"),
    ("mapping keys", "mapping keys are not allowed in this context"),
    ("unexpected character", "found character that cannot start any token"),
    ("expected whitespace", "found character that cannot start any token"),
    ("tabs disallowed", "found character that cannot start any token"),
    ("found a tab", "found a tab character that violates indentation"),
    ("cannot start with a tab", "found a tab character where an indentation space is expected"),
    ("comment or line break", "did not find expected comment or line break"),
    ("indicator equal to 0", "found an indentation indicator equal to 0"),
    ("alphabetic or numeric", "did not find expected alphabetic or numeric character"),
    ("hexadecimal number", "did not find expected hexdecimal number"),
    ("invalid Unicode character", "found invalid Unicode character escape code"),
    ("unknown escape", "found unknown escape character"),
    ("simple key expect", "could not find expected ':'"),
    ("unexpected document indicator", "found unexpected document indicator"),
    ("unexpected end of stream", "found unexpected end of stream"),
];
const PARSER: [(&str, &str); 7] = [
    ("'-' indicator", "did not find expected '-' indicator"),
    ("',' or '}'", "did not find expected ',' or '}'"),
    ("',' or ']'", "did not find expected ',' or ']'"),
    ("expected node content", "did not find expected node content"),
    ("handle wasn't declared", "found undefined tag handle"),
    ("wrongly indented", "did not find expected key"),
    ("trailing content", "did not find expected key"),
];

pub fn fail(message: impl Into<String>) -> JsonError {
    JsonError { message: message.into() }
}

fn at(line: usize, words: &str) -> JsonError {
    fail(if line > 1 { format!("yaml: line {line}: {words}") } else { format!("yaml: {words}") })
}

/// An error of our scanner or parser.
pub fn of_scanner(text: &str, error: &ScanError) -> JsonError {
    let (info, line) = (error.info(), error.marker().line());
    let known =
        |table: &[(&str, &'static str)]| table.iter().find(|(part, _)| info.contains(part)).map(|(_, words)| *words);
    if info.contains("unknown anchor") {
        return fail(format!("yaml: unknown anchor '{}' referenced", alias(text, line)));
    }
    if info.contains("recursion limit") {
        return fail("yaml: exceeded max depth of 10000");
    }
    if let Some(words) = known(&SCANNER) {
        return at(scanner_line(text, words, line), words);
    }
    let words = match known(&PARSER) {
        Some(words) => words,
        None if info.contains("misplaced bracket") || info.contains("illegal placement") => {
            misplaced(before(text, error), info)
        }
        None => "did not find expected key",
    };
    let line = line - 1;
    fail(if line > 0 { format!("yaml: line {line}: {words}") } else { format!("yaml: {words}") })
}

/// The text in front of an error.
fn before<'a>(text: &'a str, error: &ScanError) -> &'a str {
    let start = lines_before(text, error.marker().line()).len();
    let rest = &text[start..];
    let within = rest.char_indices().nth(error.marker().col()).map_or(rest.len(), |(at, _)| at);
    &text[..start + within]
}

/// The lines in front of this one.
pub fn lines_before(text: &str, line: usize) -> &str {
    let length: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    &text[..length]
}

/// A closing bracket or a colon where none may be.
fn misplaced(before: &str, info: &str) -> &'static str {
    if info.contains("illegal placement") {
        return match before.rfind('[') > before.rfind('{') {
            true => "did not find expected ',' or ']'",
            false => "did not find expected ',' or '}'",
        };
    }
    match before.trim_end().chars().next_back() {
        None | Some(':' | ',' | '-' | '?' | '[' | '{') => "did not find expected node content",
        Some(_) => "did not find expected key",
    }
}

/// Where libyaml's scanner stands; ours tells where the scalar begins.
fn scanner_line(text: &str, words: &str, line: usize) -> usize {
    let behind = |found: fn(&str) -> bool| {
        let more = text.lines().enumerate().skip(line).find(|(_, text)| found(text));
        more.map_or(line, |(index, _)| index + 1)
    };
    match words {
        "found unexpected end of stream" => text.matches('\n').count() + 1,
        "found unexpected document indicator" => behind(|text| text.starts_with("---") || text.starts_with("...")),
        words if words.starts_with("found a tab") => behind(|text| text.trim_start_matches(' ').starts_with('\t')),
        _ => line,
    }
}

/// The name of the first alias in a line.
pub fn alias(text: &str, line: usize) -> String {
    let name = text.lines().nth(line.saturating_sub(1)).and_then(|text| text.split('*').nth(1)).unwrap_or_default();
    name.chars().take_while(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).collect()
}

/// What our scanner would let pass.
pub fn check(text: &str) -> Result<(), JsonError> {
    let control = |c: char| matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{84}' | '\u{86}'..='\u{9f}');
    if text.contains(control) {
        return Err(fail("yaml: control characters are not allowed"));
    }
    if text.contains('"') && text.contains("\\/") {
        return Err(fail("yaml: found unknown escape character"));
    }
    for (index, line) in text.lines().enumerate() {
        match line.strip_prefix('%').map(|rest| rest.split_once(' ').unwrap_or((rest, ""))) {
            Some(("YAML", version)) if version.trim() != "1.1" => {
                return Err(fail("yaml: found incompatible YAML document"));
            }
            Some(("YAML" | "TAG", _)) => {}
            Some(_) => return Err(at(index + 1, "found unknown directive name")),
            None if line.starts_with('\t') => {
                return Err(at(index + 1, "found character that cannot start any token"));
            }
            None if line.is_empty() || line.starts_with('#') => {}
            None => break,
        }
    }
    Ok(())
}

/// A tab at the beginning of a line that could still belong to the plain scalar which ended there.
pub fn check_tabs_after(text: &str, end: &Marker) -> Result<(), JsonError> {
    let mut lines = text.lines().enumerate().skip(end.line().saturating_sub(1));
    if lines.next().is_none_or(|(_, line)| line.chars().skip(end.col()).any(|c| !c.is_whitespace())) {
        return Ok(());
    }
    for (index, line) in lines {
        if line.starts_with('\t') {
            return Err(at(index + 1, "found a tab character that violates indentation"));
        }
        if !line.trim_start_matches(' ').is_empty() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::decode::decode;

    /// As yaml.v2 2.4 says it.
    #[test]
    fn errors_are_told_as_upstream_does() {
        for (text, words) in [
            ("a: - b\n", "block sequence entries are not allowed in this context"),
            ("x: y\na: - b\n", "line 2: block sequence entries are not allowed in this context"),
            ("a: b\n  c: d\n", "line 2: mapping values are not allowed in this context"),
            ("a: b: c\n", "mapping values are not allowed in this context"),
            ("x: y\na: @b\n", "line 2: found character that cannot start any token"),
            ("a:\n\tb: c\n", "line 2: found character that cannot start any token"),
            ("\ta: b\n", "found character that cannot start any token"),
            ("a: b\n\tc: d\n", "line 2: found a tab character that violates indentation"),
            ("a: b\n\n\t\n", "line 3: found a tab character that violates indentation"),
            ("a: |\n\tb\n", "line 2: found a tab character where an indentation space is expected"),
            ("a: |x\n  b\n", "did not find expected comment or line break"),
            ("a: *\n", "did not find expected alphabetic or numeric character"),
            ("a: \"\\u00g1\"\n", "did not find expected hexdecimal number"),
            ("x: y\na: \"\\q\"\n", "line 2: found unknown escape character"),
            ("a: b\nc\nd: e\n", "line 3: could not find expected ':'"),
            ("a: 'b\n---\nc'\n", "line 2: found unexpected document indicator"),
            ("x: y\na: 'b\n\n", "line 4: found unexpected end of stream"),
            ("x:\n  - y\n  z: w\n", "line 2: did not find expected '-' indicator"),
            ("a:\n  b: c\n d: e\n", "line 2: did not find expected key"),
            ("a: [b\nc: d\n", "line 1: did not find expected ',' or ']'"),
            ("x: y\nb: {a: 1\n c: d\n", "line 2: did not find expected ',' or '}'"),
            ("a: [,]\n", "did not find expected node content"),
            ("a: ]\n", "did not find expected node content"),
            ("a: [b]]\n", "did not find expected key"),
            ("a: \"b\" c\n", "did not find expected key"),
            ("a: !x!y z\n", "found undefined tag handle"),
            ("a: &b\n  c: *b\n", "anchor 'b' value contains itself"),
            ("a: x\u{1}y\n", "control characters are not allowed"),
            ("%YAML 1.2\n---\na: b\n", "found incompatible YAML document"),
            ("# x\n%FOO\n---\na: b\n", "line 2: found unknown directive name"),
            ("a: !!int x\n", "cannot decode !!str `x` as a !!int"),
        ] {
            let found = decode(text.as_bytes()).map(|decoded| decoded.value).unwrap_err().message;
            assert_eq!(found, format!("yaml: {words}"), "{text:?}");
        }
        for text in ["a: b\n... x\n", "a: b\n%YAML 1.2\n---\nc: d\n", "%YAML 1.1\n---\na: b\n"] {
            assert_eq!(decode(text.as_bytes()).unwrap().value.to_json(), r#"{"a":"b"}"#, "{text:?}");
        }
    }
}
