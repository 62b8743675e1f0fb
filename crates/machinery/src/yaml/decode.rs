//! Decoding of the first document of a text into a JSON value.
//!
//! Time and memory are linear in the length of the text and in the size of its expanded aliases, which
//! [`super::ALIASED_BYTES_MAX`] bounds.

use super::compose::compose;
use super::error::YamlError;
use super::expand::expand;
use crate::limits::PLAIN_JSON_KEY_BYTES_MAX;
use crate::value::Decoded;

/// Decodes the first document of `text`; the value is null if there is none. Duplicate keys are reported as `line 5:
/// key "a" already set in map`, and the last one wins. Fails for exactly those documents that `sigs.k8s.io/yaml` 1.6.0
/// refuses.
pub fn decode(text: &[u8]) -> Result<Decoded, YamlError> {
    match compose(text)? {
        Some(document) => expand(&document),
        None => Ok(Decoded::default()),
    }
}

/// Whether a JSON object has the same value when it is decoded as YAML, except for floats (see [`super::reread`]): it
/// has no escapes, no characters that YAML forbids or treats as line breaks, and each key is on one line with its
/// colon.
pub fn is_plain_json(text: &[u8]) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') && byte != b'\\';
    // without an early exit, the compiler can check many bytes at once
    if text.first() != Some(&b'{') || !text.iter().fold(true, |plain, byte| plain & is_plain(*byte)) {
        return false;
    }
    // every second part is inside quotes
    let mut parts = text.split(|byte| *byte == b'"');
    let mut outside = parts.next();
    while let (Some(_), Some(inside)) = (outside, parts.next()) {
        outside = parts.next();
        let is_key = outside.is_some_and(|text| text.trim_ascii_start().starts_with(b":"));
        let has_colon = outside.is_some_and(|text| text.starts_with(b":"));
        if is_key && (!has_colon || inside.len() > PLAIN_JSON_KEY_BYTES_MAX) {
            return false;
        }
    }
    let end = text.iter().rposition(|byte| *byte == b'}').unwrap_or(0);
    !text[end..].contains(&b'\t')
}

#[cfg(test)]
mod tests {
    use super::super::error::YamlProblem;
    use super::*;

    /// Lines that end in a carriage return are lines to the parser, although they have no line feed.
    #[test]
    fn content_after_document_end_is_ignored() {
        for text in ["a: 1\r... b", "a: 1\r\r... b\r... c", "\r\r\r... b", "... b"] {
            let _ = decode(text.as_bytes());
        }
        assert_eq!(decode(b"a: 1\n... b\n").unwrap().value.to_json(), r#"{"a":1}"#);
    }

    #[test]
    fn documents() {
        let cases = [
            (
                "a: [1, -1, +1, 1.0, 1e3, .5, 5., 0x1F, 0o17, 017, 0b11, 1_000, 1:30, -0, 00]",
                r#"{"a":[1,-1,1,1,1000,0.5,5,31,15,15,3,1000,"1:30",0,0]}"#,
            ),
            (
                "a: [yes, No, on, 'true', ~, none, 2024-01-01]",
                r#"{"a":[true,false,true,"true",null,"none","2024-01-01"]}"#,
            ),
            ("{y: 1, n: 2, 1: 3, 1.5: x}", r#"{"1":3,"1.5":"x","false":2,"true":1}"#),
            ("o: &a {x: 1}\nf: {<<: *a, z: 2}\ng: *a", r#"{"f":{"x":1,"z":2},"g":{"x":1},"o":{"x":1}}"#),
            (
                "a: !!str 5\nb: !!int '7'\nc: !!binary aGVsbG8=\nd: !x {a: 1}",
                r#"{"a":"5","b":7,"c":"hello","d":{"a":1}}"#,
            ),
            ("a: 1\n---\nb: 2", r#"{"a":1}"#),
            ("a: 9223372036854775808", r#"{"a":9223372036854776000}"#),
            ("# nothing\n", "null"),
            ("a: |\n  x\n   y\n", r#"{"a":"x\n y\n"}"#),
        ];
        for (text, want) in cases {
            assert_eq!(decode(text.as_bytes()).unwrap().value.to_json(), want, "{text}");
        }
    }

    #[test]
    fn yaml_duplicates_and_errors() {
        let decoded = decode(b"a: 1\na: 2\no:\n  x: 1\n  x: 2\n").unwrap();
        assert_eq!(
            decoded.duplicates,
            ["line 2: key \"a\" already set in map", "line 5: key \"x\" already set in map"]
        );
        let error = decode(b"a: .inf").unwrap_err();
        assert_eq!(error.problem, YamlProblem::Conversion("json: unsupported value: +Inf".to_owned()));
        let bomb: String = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(), |s, i| {
            let p = i - 1;
            format!("{s}a{i}: &a{i} [{}]\n", vec![format!("*a{p}"); 9].join(","))
        });
        assert_eq!(decode(bomb.as_bytes()).unwrap_err().problem.to_string(), "document contains excessive aliasing");
    }

    #[test]
    fn errors_have_line_numbers() {
        for (text, line, problem) in [
            ("x: y\na: - b\n", 2, YamlProblem::Scan("block sequence entries are not allowed in this context")),
            ("a: b: c\n", 1, YamlProblem::Scan("mapping values are not allowed in this context")),
            ("a:\n  b: c\n d: e\n", 3, YamlProblem::Parse("did not find expected key")),
            ("a: 1\nb: *c\n", 2, YamlProblem::Document("unknown anchor 'c' referenced".to_owned())),
        ] {
            let error = decode(text.as_bytes()).unwrap_err();
            assert_eq!(error, YamlError { line: Some(line), problem }, "{text:?}");
        }
        for text in ["a: b\n... x\n", "a: b\n%YAML 1.2\n---\nc: d\n", "%YAML 1.1\n---\na: b\n"] {
            assert_eq!(decode(text.as_bytes()).unwrap().value.to_json(), r#"{"a":"b"}"#, "{text:?}");
        }
    }

    /// Earlier versions refused or changed these documents.
    #[test]
    fn valid_documents_are_decoded_unchanged() {
        let cases: &[(&str, &str)] = &[
            ("a: \"b\"\nc: '\\/'\nd: e\\/f\n", r#"{"a":"b","c":"\\/","d":"e\\/f"}"#),
            ("a:\n  b: [\n    c,\n  ]\n  d: e\n", r#"{"a":{"b":["c"],"d":"e"}}"#),
            ("a: [\nb\n]\nc: {\nd: e\n}\n", r#"{"a":["b"],"c":{"d":"e"}}"#),
            ("a: |\n  b", r#"{"a":"b"}"#),
            ("a: |+\n  b\n\n", r#"{"a":"b\n\n"}"#),
            ("a: >\n  b\n  c\n\n  d", r#"{"a":"b c\nd"}"#),
            ("a: b\t# c\n", r#"{"a":"b"}"#),
            (
                "a: 08\nb: 0b-11\nc: .1_0\nd: !!float 1\ne: 9223372036854774784.0",
                r#"{"a":8,"b":-3,"c":0.1,"d":1,"e":9223372036854775000}"#,
            ),
            ("[]: a\n", "[]"),
            ("\u{feff}a: b\n", r#"{"a":"b"}"#),
        ];
        for (text, want) in cases {
            assert_eq!(decode(text.as_bytes()).unwrap().value.to_json(), *want, "{text:?}");
        }
        assert_eq!(decode(b"\xff\xfea\0:\0 \0b\0").unwrap().value.to_json(), r#"{"a":"b"}"#);
    }

    /// These documents took more than a minute when all earlier lines were searched for each scalar, and all earlier
    /// keys for each key.
    #[test]
    fn long_documents_are_decoded() {
        let fields: String = (0..60_000).map(|i| format!("key{i}: value{i}\n")).collect();
        let lines = format!("a: b\n{}", "- c\n".repeat(200_000).replace("- c", "# d"));
        let items = format!("a:\n{}", "- b c\n".repeat(200_000));
        let merges = format!("a: &a {{b: 1}}\nc:\n{}", "  <<: *a\n".repeat(30_000));
        for text in [fields, lines, items] {
            assert!(decode(text.as_bytes()).unwrap().duplicates.is_empty());
        }
        let decoded = decode(merges.as_bytes()).unwrap();
        assert_eq!(
            (decoded.duplicates.len(), decoded.value.to_json().as_str()),
            (29_999, r#"{"a":{"b":1},"c":{"b":1}}"#)
        );
    }

    /// Aliases are bounded by nodes, as in go-yaml, and by bytes.
    #[test]
    fn aliases_are_bounded() {
        let excessive = YamlProblem::Document("document contains excessive aliasing".to_owned());
        let large = "x".repeat(100_000);
        let bytes = |aliases: usize| format!("a: &a {large}\nb: [{}]\n", "*a, ".repeat(aliases));
        assert_eq!(decode(bytes(200).as_bytes()).unwrap().value.to_json().len(), 201 * 100_003 + 11);
        assert_eq!(decode(bytes(300).as_bytes()).unwrap_err().problem, excessive);
        let keys = format!("a: &a {{? {large} : 1}}\nb:\n{}", "  <<: *a\n".repeat(300));
        assert_eq!(decode(keys.as_bytes()).unwrap_err().problem, excessive);
        let nested = format!("a: {}[{}]\n", "&a ", "b, ".repeat(50_000));
        let nested = (0..255).fold(nested, |text, i| text + &format!("c{i}: [&d{i} *a]\n"));
        assert!(decode(nested.as_bytes()).is_err());
        let depth = (1..200).fold("a0: &a0 [x]\n".to_owned(), |text, i| {
            text + &format!("a{i}: &a{i} {}*a{}{}\n", "[".repeat(100), i - 1, "]".repeat(100))
        });
        assert_eq!(decode(depth.as_bytes()).unwrap_err().problem, excessive);
    }

    #[test]
    fn plain_json_is_what_yaml_takes_for_the_same() {
        let long = "k".repeat(1_100);
        for (text, is_plain) in [
            (r#"{"a": [1, "b"], "c": {}}"#.to_owned(), true),
            ("{\n\t\"a\": 1\n}\n".to_owned(), true),
            (format!(r#"{{"a": "{long}"}}"#), true),
            (format!(r#"{{"{long}": 1}}"#), false),
            (r#"{"a" : 1}"#.to_owned(), false),
            (r#"{"a": "\u0041"}"#.to_owned(), false),
            ("{\"a\": \"\u{85}\"}".to_owned(), false),
            ("{\"a\": 1}\n\t".to_owned(), false),
            ("[1]".to_owned(), false),
        ] {
            assert_eq!(is_plain_json(text.as_bytes()), is_plain, "{text}");
            if is_plain {
                assert_eq!(decode(text.as_bytes()).unwrap().value, crate::value::decode(text.as_bytes()).unwrap());
            }
        }
    }
}
