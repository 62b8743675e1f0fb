//! Checks the length of files; clippy checks that of functions.

use super::Problem;
use super::source::Source;

const FILE_LINES_MAX: usize = 800;

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
    problems
}

/// Lines that are not part of tests.
fn lines_outside_tests(source: &Source) -> usize {
    let lines = source.code.lines().zip(source.production.lines());
    lines.filter(|(code, production)| code.trim().is_empty() || !production.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_reported() {
        let many = Source::new("crates/x/src/b.rs", "const A: u8 = 1;\n".repeat(801));
        assert_eq!(check(&many).len(), 1);
        let tests = Source::new("crates/x/tests/b.rs", "const A: u8 = 1;\n".repeat(801));
        assert!(check(&tests).is_empty());
    }
}
