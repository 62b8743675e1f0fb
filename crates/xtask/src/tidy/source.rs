//! Reads Rust files, and separates code, comments and test code.

use std::path::Path;

use client::{Result, fail};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

use crate::workspace;

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
        let Lexed { code, comments, production, .. } = Lexed::new(&text);
        let shown = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (code, comments) = (shown(code), shown(comments));
        let production = if is_test_path(path) { blank(&code) } else { shown(production) };
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

/// Every Markdown file: its path from the root and its text.
pub fn read_markdown(root: &Path) -> Result<Vec<(String, String)>> {
    read(root, "", ".md")
}

/// The line number of the byte at `at`.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1
}

/// Every .rs file below crates/, sorted.
pub fn read_all(root: &Path) -> Result<Vec<Source>> {
    let found = read(root, "crates/", ".rs")?;
    Ok(found.into_iter().map(|(path, text)| Source::new(&path, text)).collect())
}

/// Path and text of each file whose path begins with `below` and ends with `ending`, without those that git ignores.
fn read(root: &Path, below: &str, ending: &str) -> Result<Vec<(String, String)>> {
    let paths = workspace::files(root)?.into_iter().filter(|path| path.starts_with(below) && path.ends_with(ending));
    let read = |path: String| match std::fs::read_to_string(root.join(&path)) {
        Ok(text) => Ok((path, text)),
        Err(error) => fail(format!("cannot read {path}: {error}")),
    };
    paths.map(read).collect()
}

fn is_test_path(path: &str) -> bool {
    let inside = path.split('/').skip(2).any(|part| matches!(part, "tests" | "examples" | "benches"));
    inside || path.ends_with("/tests.rs")
}

/// As many spaces as the text has bytes, with its line breaks.
fn blank(text: &str) -> String {
    text.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect()
}

/// The lexer of a file.
struct Lexed<'a> {
    text: &'a str,
    code: Vec<u8>,
    comments: Vec<u8>,
    production: Vec<u8>,
    /// The end of the last token.
    end: usize,
}

impl<'a> Lexed<'a> {
    /// Lexes a file. A file that is not Rust has no code; the compiler rejects it.
    fn new(text: &'a str) -> Lexed<'a> {
        let blank = blank(text).into_bytes();
        let (code, production) = (blank.clone(), blank.clone());
        let mut lexed = Lexed { text, code, comments: blank, production, end: 0 };
        lexed.stream(text.parse().unwrap_or_default(), false);
        lexed.comment(text.len());
        lexed
    }

    /// Adds the tokens of `stream`. They are test code if `is_test` says so, or if they belong to an item with
    /// `#[cfg(test)]`.
    fn stream(&mut self, stream: TokenStream, is_test: bool) {
        let mut tokens = stream.into_iter().peekable();
        let mut in_test_item = false;
        while let Some(token) = tokens.next() {
            let is_punct = |wanted: char| matches!(&token, TokenTree::Punct(punct) if punct.as_char() == wanted);
            let is_mark = |next: &TokenTree| next.to_string().replace(' ', "") == "[cfg(test)]";
            in_test_item |= is_punct('#') && tokens.peek().is_some_and(is_mark);
            let is_block = matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
            let ends = is_block || is_punct(';');
            self.token(token, is_test || in_test_item);
            in_test_item &= !ends;
        }
    }

    fn token(&mut self, token: TokenTree, is_test: bool) {
        match token {
            // a doc comment, which is lexed as an attribute
            token if self.text[token.span().byte_range()].starts_with("//") => {}
            TokenTree::Group(group) => {
                self.code(group.span_open(), is_test);
                self.stream(group.stream(), is_test);
                self.code(group.span_close(), is_test);
            }
            TokenTree::Literal(literal) => {
                self.comment(literal.span().byte_range().start);
                match self.text.as_bytes().get(self.end) {
                    Some(b'0'..=b'9') => self.code(literal.span(), is_test),
                    _ => self.end = literal.span().byte_range().end,
                }
            }
            token => self.code(token.span(), is_test),
        }
    }

    fn code(&mut self, span: Span, is_test: bool) {
        let range = span.byte_range();
        self.comment(range.start);
        self.end = range.end;
        self.code[range.clone()].copy_from_slice(&self.text.as_bytes()[range.clone()]);
        if !is_test {
            self.production[range.clone()].copy_from_slice(&self.text.as_bytes()[range]);
        }
    }

    /// Copies the text between the last token and the token at `next` to the comments: it is comments and white space.
    fn comment(&mut self, next: usize) {
        let range = self.end..next.max(self.end);
        self.comments[range.clone()].copy_from_slice(&self.text.as_bytes()[range]);
        self.end = next.max(self.end);
    }
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
            ("r#type 'é' b'}' x", "r#type x"),
        ];
        for (text, want) in cases {
            let shown = Source::new("src/a.rs", text.to_owned()).code;
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
