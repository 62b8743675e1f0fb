//! Splitting of a text into documents: YAML documents begin with a line `---`, JSON documents follow each other. Documents of blanks
//! and comments only are left out.

use std::ops::Range;

use machinery::yaml::begins_document;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub bytes: Range<usize>,
    pub lines_before: usize,
}

/// Whether a document has no content but blanks and comments.
pub fn is_blank(document: &[u8]) -> bool {
    let mut lines = document.split(|byte| *byte == b'\n').enumerate();
    lines.all(|(i, line)| {
        let line = if i == 0 && begins_document(line) { &line[3..] } else { line };
        let line = line.trim_ascii();
        line.is_empty() || line.starts_with(b"#") || line == b"..."
    })
}

/// The parts of a text between separators: JSON objects that follow each other, or one YAML document.
pub fn parts(text: &[u8]) -> Vec<Span> {
    let spans = match text.trim_ascii_start().first() {
        Some(b'{') => json(text),
        _ => vec![Span { bytes: 0..text.len(), lines_before: 0 }],
    };
    spans.into_iter().filter(|span| !is_blank(&text[span.bytes.clone()])).collect()
}

/// JSON objects that follow each other. If brackets do not match, the rest of the text is one document.
fn json(text: &[u8]) -> Vec<Span> {
    let mut spans = vec![];
    let (mut start, mut lines_before) = (0, 0);
    let (mut depth, mut line) = (0_usize, 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\n' => line += 1,
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    spans.push(Span { bytes: start..at + 1, lines_before });
                    (start, lines_before) = (at + 1, line);
                }
            }
            _ => {}
        }
    }
    spans.push(Span { bytes: start..text.len(), lines_before });
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_documents_follow_each_other() {
        for (text, want) in [
            ("# only a comment\n...\n", &[] as &[(&str, usize)]),
            ("a: {}\n", &[("a: {}\n", 0)]),
            ("{\"a\": \"}\\\"\"}\n{\"b\": 1}\n", &[("{\"a\": \"}\\\"\"}", 0), ("\n{\"b\": 1}", 0)]),
            ("{}{\n}\n\n{}", &[("{}", 0), ("{\n}", 0), ("\n\n{}", 1)]),
            ("{\"a\": [}", &[("{\"a\": [}", 0)]),
        ] {
            let found = parts(text.as_bytes());
            let found: Vec<(&str, usize)> =
                found.into_iter().map(|span| (&text[span.bytes], span.lines_before)).collect();
            assert_eq!(found, want, "{text:?}");
        }
    }
}
