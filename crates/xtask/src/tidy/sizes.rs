//! Checks the length of files and functions.

use super::Problem;
use super::source::{Source, item_end, line_of};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// Checks a file of a crate's `src`, without its tests.
pub fn check(source: &Source) -> Vec<Problem> {
    if source.in_src().is_none() {
        return vec![];
    }
    let mut problems = vec![];
    let lines = lines_outside_tests(source);
    if lines > FILE_LINES_MAX {
        let what = format!("{lines} lines without tests; at most {FILE_LINES_MAX}");
        problems.push(Problem::new(&source.path, 1, what));
    }
    for (name, at, lines) in functions(&source.production) {
        if lines > FUNCTION_LINES_MAX {
            let what = format!("fn {name} has {lines} lines; at most {FUNCTION_LINES_MAX}");
            problems.push(Problem::new(&source.path, line_of(&source.production, at), what));
        }
    }
    problems
}

/// Lines that are not part of tests.
fn lines_outside_tests(source: &Source) -> usize {
    let lines = source.code.lines().zip(source.production.lines());
    lines.filter(|(code, production)| code.trim().is_empty() || !production.trim().is_empty()).count()
}

/// Every function: its name, its byte offset, and its number of lines of code between the braces.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = vec![];
    for (at, _) in code.match_indices("fn ") {
        let starts = !code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !starts || name.is_empty() {
            continue;
        }
        let item = &code[at..item_end(code, at)];
        let Some(open) = item.find('{') else { continue };
        let body = item[open + 1..].trim_end_matches('}');
        found.push((name, at, body.lines().filter(|line| !line.trim().is_empty()).count()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_without_comments() {
        let code = "fn a(x: [u8; 2]) -> u8 {\n    // why\n    if x {\n        1\n    }\n}\ntrait T { fn b(); }\ntype F = fn (u8);\n";
        let source = Source::new("crates/x/src/a.rs", code.to_owned());
        let found: Vec<_> = functions(&source.production).into_iter().map(|(name, _, lines)| (name, lines)).collect();
        assert_eq!(found, [("a".to_owned(), 3),]);
    }

    #[test]
    fn long_functions_and_files_are_reported() {
        let body = "    x();\n".repeat(71);
        let text = format!("//! X.\nfn long() {{\n{body}}}\n#[cfg(test)]\nmod tests {{\n fn t() {{\n{body}}}\n}}\n");
        let shown: Vec<String> =
            check(&Source::new("crates/x/src/a.rs", text)).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["crates/x/src/a.rs:2: fn long has 71 lines; at most 70"]);
        let many = Source::new("crates/x/src/b.rs", "const A: u8 = 1;\n".repeat(801));
        assert_eq!(check(&many).len(), 1);
        let tests = Source::new("crates/x/tests/b.rs", "const A: u8 = 1;\n".repeat(801));
        assert!(check(&tests).is_empty());
    }
}
