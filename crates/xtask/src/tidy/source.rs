//! Reads Rust files, and separates code, comments and test code.

use std::path::Path;

/// A file of a crate.
pub struct Source {
    /// The path relative to the root of the workspace.
    pub path: String,
    pub text: String,
    /// The text with comments, string and character literals replaced by spaces; line breaks are kept.
    pub code: String,
    /// The comments, with everything else replaced by spaces; line breaks are kept.
    pub comments: String,
    /// The code without `#[cfg(test)]` items.
    pub production: String,
}

impl Source {
    pub fn new(path: &str, text: String) -> Source {
        let (code, comments) = split(&text);
        let production = if is_test_path(path) { blank(&code) } else { blank_tests(&code) };
        Source { path: path.to_owned(), text, code, comments, production }
    }

    /// The name of its crate's directory.
    pub fn krate(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or_default()
    }

    /// The path relative to `src`, if the file is there.
    pub fn in_src(&self) -> Option<&str> {
        self.path.split_once("/src/").map(|(_, rest)| rest)
    }
}

/// Every Markdown file at the root and below docs/ and crates/: its path from the root and its text.
pub fn read_markdown(root: &Path) -> Result<Vec<(String, String)>, String> {
    let mut paths = vec![];
    for below in ["", "docs", "crates", "benches", "examples", "tests"] {
        markdown_paths(root, below, &mut paths)?;
    }
    let read = |path: String| match std::fs::read_to_string(root.join(&path)) {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(format!("cannot read {path}: {error}")),
    };
    paths.into_iter().map(read).collect()
}

fn markdown_paths(root: &Path, below: &str, paths: &mut Vec<String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {below}: {error}");
    for entry in std::fs::read_dir(root.join(below)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let is_directory = entry.file_type().map_err(failed)?.is_dir();
        // only known directories of the root are read, since others contain build output
        if is_directory && !below.is_empty() && !matches!(name.as_str(), "target" | "node_modules" | ".venv") {
            markdown_paths(root, &path, paths)?;
        } else if !is_directory && name.ends_with(".md") {
            paths.push(path);
        }
    }
    Ok(())
}

/// The line number of the byte at `at`.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1
}

/// Every .rs file below crates/, sorted.
pub fn read_all(root: &Path) -> Result<Vec<Source>, String> {
    let mut sources = vec![];
    walk(root, "crates", &mut sources)?;
    sources.sort_by(|a: &Source, b: &Source| a.path.cmp(&b.path));
    Ok(sources)
}

fn walk(root: &Path, below: &str, sources: &mut Vec<Source>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {below}: {error}");
    for entry in std::fs::read_dir(root.join(below)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{below}/{name}");
        if entry.file_type().map_err(failed)?.is_dir() {
            if name != "target" {
                walk(root, &path, sources)?;
            }
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(entry.path()).map_err(|error| format!("cannot read {path}: {error}"))?;
            sources.push(Source::new(&path, text));
        }
    }
    Ok(())
}

fn is_test_path(path: &str) -> bool {
    let inside = path.split('/').skip(2).any(|part| matches!(part, "tests" | "examples" | "benches"));
    inside || path.ends_with("/tests.rs")
}

fn blank(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

/// The length in bytes of the comment, string or character literal that begins at `start`; 0 if there is none.
fn text_length(bytes: &[u8], start: usize, after_word: bool) -> usize {
    let rest = &bytes[start..];
    match rest {
        [b'/', b'/', ..] => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => comment_length(rest),
        [b'"', ..] => string_length(rest, 1),
        [b'b' | b'c', b'"', ..] if !after_word => string_length(rest, 2),
        [b'r', b'"' | b'#', ..] if !after_word => raw_length(rest, 1),
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !after_word => raw_length(rest, 2),
        [b'\'', ..] => character_length(rest),
        _ => 0,
    }
}

fn comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut i) = (0, 0);
    while i < rest.len() {
        match &rest[i..] {
            [b'/', b'*', ..] => (depth, i) = (depth + 1, i + 2),
            [b'*', b'/', ..] => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    rest.len()
}

fn string_length(rest: &[u8], open: usize) -> usize {
    let mut i = open;
    while i < rest.len() {
        match rest[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    rest.len()
}

/// The length of a raw string; 0 for a raw identifier.
fn raw_length(rest: &[u8], prefix: usize) -> usize {
    let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
    if rest.get(prefix + hashes) != Some(&b'"') {
        return 0;
    }
    let end = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let from = prefix + hashes + 1;
    let found = rest[from..].windows(end.len()).position(|window| window == end);
    found.map_or(rest.len(), |at| from + at + end.len())
}

/// The length of a character literal; 0 for a lifetime.
fn character_length(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        return rest.iter().skip(3).position(|b| *b == b'\'').map_or(rest.len(), |at| at + 4);
    }
    let width = std::str::from_utf8(&rest[1..rest.len().min(5)])
        .map_or_else(|error| error.valid_up_to().max(1), str::len)
        .min(4);
    (2..=width + 1)
        .find(|i| rest.get(*i) == Some(&b'\''))
        .filter(|i| is_one_character(&rest[1..*i]))
        .map_or(0, |i| i + 1)
}

fn is_one_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().count() == 1)
}

/// Separates code and comments, see [`Source::code`] and [`Source::comments`].
fn split(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let (mut code, mut comments) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(bytes.len()));
    let mut i = 0;
    while i < bytes.len() {
        let after_word = i > 0 && (bytes[i - 1].is_ascii_alphanumeric() || bytes[i - 1] == b'_');
        let length = text_length(bytes, i, after_word).min(bytes.len() - i);
        let part = &bytes[i..i + length.max(1)];
        let blank = |b: &u8| if *b == b'\n' { b'\n' } else { b' ' };
        match (length, part[0]) {
            (0, _) => {
                code.push(part[0]);
                comments.push(blank(&part[0]));
            }
            (_, b'/') => {
                code.extend(part.iter().map(blank));
                comments.extend_from_slice(part);
            }
            _ => {
                code.extend(part.iter().map(blank));
                comments.extend(part.iter().map(blank));
            }
        }
        i += part.len();
    }
    (String::from_utf8_lossy(&code).into_owned(), String::from_utf8_lossy(&comments).into_owned())
}

/// The offset after the item that starts at `from`, which ends with a block or a semicolon.
pub fn item_end(code: &str, from: usize) -> usize {
    let (mut braces, mut others) = (0, 0);
    for (i, b) in code.bytes().enumerate().skip(from) {
        match b {
            b'(' | b'[' => others += 1,
            b')' | b']' => others -= 1,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 && others == 0 {
                    return i + 1;
                }
            }
            b';' if braces == 0 && others == 0 => return i + 1,
            _ => {}
        }
    }
    code.len()
}

/// Blanks items with `#[cfg(test)]`.
fn blank_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(at) = out[from..].find(MARK).map(|at| from + at) {
        let end = item_end(&out, at);
        let blanked = blank(&out[at..end]);
        out.replace_range(at..end, &blanked);
        from = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_not_code() {
        let cases = [
            ("a // todo!(\nb", "a\nb"),
            ("a /* x /* y */ { */ b", "a b"),
            ("f(\"{\\\"\", '{', '\\'')", "f( , , )"),
            ("r#\"a\"{\"# x", " x"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("r#type 'é' b'}' x", "r#type b x"),
        ];
        for (text, want) in cases {
            let shown = split(text).0;
            assert_eq!(shown.len(), text.len(), "{text}");
            let mut words =
                shown.replace('\n', " \n ").split(' ').filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ");
            words = words.replace(" \n ", "\n");
            assert_eq!(words, want.trim(), "{text}");
        }
    }

    #[test]
    fn test_code_is_not_checked_as_production() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { c() }\n}\n#[cfg(test)]\nuse x;\nfn d() {}\n";
        let source = Source::new("crates/x/src/a.rs", text.to_owned());
        assert!(!source.production.contains('b') && !source.production.contains("use x"), "{}", source.production);
        assert!(source.production.contains("fn a") && source.production.contains("fn d"));
        assert_eq!(line_of(&source.production, source.production.find("fn d").unwrap()), 8);
        let whole = Source::new("crates/x/src/a/tests.rs", "fn a() {}".to_owned());
        assert_eq!(whole.production.trim(), "");
    }
}
