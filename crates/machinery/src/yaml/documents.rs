//! The documents of a text.

/// Whether a line begins a document: whether it is a marker `---`, which a comment or content may follow.
pub fn begins_document(line: &[u8]) -> bool {
    line.strip_prefix(b"---").is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// The documents of a text, each with its marker. Text before the first marker is one too, and so is an empty text.
pub fn documents(text: &str) -> Vec<&str> {
    let (mut documents, mut begun, mut at) = (vec![], 0, 0);
    for line in text.split_inclusive('\n') {
        if begins_document(line.as_bytes()) && at > begun {
            documents.push(&text[begun..at]);
            begun = at;
        }
        at += line.len();
    }
    documents.push(&text[begun..]);
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_begin_documents() {
        for (text, want) in [
            ("", &[""] as &[&str]),
            ("a", &["a"]),
            ("---", &["---"]),
            ("---\na\n---\nb", &["---\na\n", "---\nb"]),
            ("a\n--- # more\r\nb\n---c\n ---\n---\n", &["a\n", "--- # more\r\nb\n---c\n ---\n", "---\n"]),
        ] {
            assert_eq!(documents(text), want, "{text:?}");
        }
    }
}
