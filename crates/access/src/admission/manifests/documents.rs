//! The documents of a file.

use resource::{Document, Format};

const SEPARATOR: &[u8] = b"---";

/// Splits a file at lines that begin with `---`, even if it is JSON. Documents that are only white space are left out.
/// The error is kube-apiserver's.
pub fn split(content: &[u8]) -> Result<Vec<Document>, String> {
    let (mut start, mut end) = (0, 0);
    let mut documents = vec![];
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        let line_start = end;
        end += line.len();
        let Some(rest) = line.strip_prefix(SEPARATOR) else { continue };
        match rest.trim_ascii() {
            [] | [b'#', ..] => {}
            other => return Err(format!("invalid Yaml document separator: {}", String::from_utf8_lossy(other))),
        }
        // a separator ends a document; one that comes before any line of a document begins it
        if start < line_start {
            documents.extend(document(&content[start..line_start]));
            start = end;
        }
    }
    documents.extend(document(&content[start..]));
    Ok(documents)
}

fn document(bytes: &[u8]) -> Option<Document> {
    let bytes = bytes.trim_ascii();
    let format = if bytes.first()? == &b'{' { Format::Json } else { Format::Yaml };
    Some(Document::new(bytes.to_vec(), format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_split_into_documents() {
        let cases: [(&str, Result<&[&str], &str>); 12] = [
            ("", Ok(&[])),
            (" \n\n", Ok(&[])),
            ("a", Ok(&["a"])),
            ("a\n---\nb\n", Ok(&["a", "b"])),
            ("a\r\n---\r\nb", Ok(&["a", "b"])),
            ("---\na\n--- # b\nc\n---\n", Ok(&["---\na", "c"])),
            ("---\n---\na", Ok(&["---", "a"])),
            ("a\n---\n---\nb", Ok(&["a", "---\nb"])),
            ("a\n ---\nb", Ok(&["a\n ---\nb"])),
            ("{}\n---\n{}", Ok(&["{}", "{}"])),
            ("a\n---b", Err("invalid Yaml document separator: b")),
            ("----", Err("invalid Yaml document separator: -")),
        ];
        for (content, want) in cases {
            let found = split(content.as_bytes());
            let texts =
                found.map(|all| all.iter().map(|one| String::from_utf8_lossy(one.bytes()).into_owned()).collect());
            let want = want.map(|texts| texts.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(texts, want.map_err(str::to_owned), "{content:?}");
        }
        let formats: Vec<Format> = split(b" {}\n---\n- {}").unwrap().iter().map(|one| one.format).collect();
        assert_eq!(formats, [Format::Json, Format::Yaml]);
    }
}
