//! Checks the use of the terms of the glossary in ARCHITECTURE.md.
//!
//! A row of the glossary may have words that must not be used for the concept. They are rejected in comments, in identifiers
//! and in Markdown, but not in string literals, which may be text on the wire.

use super::source::{Source, line_of};
use super::{Problem, tables};

const HEADER: [&str; 3] = ["term", "meaning", "not"];

/// Directories whose prose has not been rewritten since the glossary was introduced. Entries are only ever removed.
const UNCHECKED: [&str; 1] = ["benches/results/"];

/// A rejected word or phrase, and the term to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Lower case; several words are separated by one space.
    words: String,
    term: String,
}

/// Reads the glossary. A problem is reported if it is missing.
pub fn read(document: &str) -> Result<Vec<Rejected>, Problem> {
    let rows = tables::find(document, &HEADER)?;
    let of_row = |row: &tables::TableRow| -> Vec<Rejected> {
        let term = row.cells.first().cloned().unwrap_or_default();
        let words = row.cells.get(2).map(String::as_str).unwrap_or_default().split(',').map(str::trim);
        words
            .filter(|words| !words.is_empty() && *words != "-")
            .map(|words| Rejected { words: words.to_lowercase(), term: term.clone() })
            .collect()
    };
    Ok(rows.iter().flat_map(of_row).collect())
}

/// Checks the comments and identifiers of a Rust file.
pub fn check(source: &Source, glossary: &[Rejected]) -> Vec<Problem> {
    if is_exempt(&source.path) {
        return vec![];
    }
    let mut problems = find(&source.path, &source.comments, glossary);
    problems.extend(find(&source.path, &split_identifiers(&source.code), glossary));
    problems
}

/// Checks a Markdown file, apart from its code blocks and code spans.
pub fn check_markdown(path: &str, text: &str, glossary: &[Rejected]) -> Vec<Problem> {
    if is_exempt(path) {
        return vec![];
    }
    let (mut prose, mut in_code, mut in_glossary) = (String::new(), false, false);
    for line in text.lines() {
        in_glossary = if in_glossary { line.starts_with('|') } else { tables::is_header(line, &HEADER) };
        in_code ^= line.trim_start().starts_with("```");
        if !in_code && !in_glossary {
            // code spans between backquotes have odd indices
            prose.extend(line.split('`').step_by(2).flat_map(|part| [part, " "]));
        }
        prose.push('\n');
    }
    find(path, &prose, glossary)
}

fn is_exempt(path: &str) -> bool {
    UNCHECKED.iter().any(|prefix| path.starts_with(prefix))
}

/// The code with identifiers split into lower-case words: `CamelCase` and `snake_case` become `camel case` and `snake case`.
/// Line breaks are kept.
fn split_identifiers(code: &str) -> String {
    let mut words = String::with_capacity(code.len());
    let mut after_lower = false;
    for c in code.chars() {
        if c.is_uppercase() && after_lower {
            words.push(' ');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        words.push(if c.is_alphanumeric() || c == '\n' { c } else { ' ' });
    }
    words
}

fn find(path: &str, text: &str, glossary: &[Rejected]) -> Vec<Problem> {
    let lower = text.to_lowercase();
    let mut problems = vec![];
    for Rejected { words, term } in glossary {
        for (at, _) in lower.match_indices(words.as_str()) {
            let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            if joins(lower[..at].chars().next_back()) || joins(lower[at + words.len()..].chars().next()) {
                continue;
            }
            problems.push(Problem::new(path, line_of(&lower, at), format!("\"{words}\": the glossary says {term}")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "| term | meaning | not |\n| - | - | - |\n| built-in | a kind of ours | shipped |\n\
                            | retry | to try again | - |\n| user | who asks | somebody, who is asking |\n";

    fn shown(problems: Vec<Problem>) -> Vec<String> {
        problems.iter().map(|problem| format!("{}: {}", problem.line, problem.what)).collect()
    }

    #[test]
    fn comments_and_identifiers_use_the_glossary() {
        let glossary = read(DOCUMENT).unwrap();
        let check = |text: &str| shown(check(&Source::new("fuzz/a.rs", text.to_owned()), &glossary));
        let expected = |line: usize| format!("{line}: \"shipped\": the glossary says built-in");
        assert_eq!(check("/// A shipped kind.\nfn a() {}\n"), [expected(1)]);
        assert_eq!(check("\nfn is_shipped() {}\n"), [expected(2)]);
        assert_eq!(check("struct ShippedKind;\n"), [expected(1)]);
        assert!(check("fn worshipped() { log(\"shipped\") }\n").is_empty());
        assert_eq!(check("// Who is asking\n"), ["1: \"who is asking\": the glossary says user"]);
    }

    #[test]
    fn markdown_uses_the_glossary_outside_of_code() {
        let glossary = read(DOCUMENT).unwrap();
        let check = |text: &str| shown(check_markdown("X.md", text, &glossary));
        assert!(check(DOCUMENT).is_empty(), "the glossary itself names the words");
        assert!(check("`shipped`\n```\nshipped\n```\n").is_empty());
        assert_eq!(check("```\n```\nSomebody.\n"), ["3: \"somebody\": the glossary says user"]);
    }

    #[test]
    fn missing_glossary_is_reported() {
        assert!(read("# Architecture\n").is_err());
    }
}
