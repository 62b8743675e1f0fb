//! Checks that no tracked file holds a private key or a kubeconfig: a test server that runs in the tree leaves its own behind.

use std::path::Path;

use super::Problem;
use crate::workspace;

/// Endings of the names of files with credentials.
const ENDINGS: [&str; 2] = [".key", ".kubeconfig"];
/// The line that begins a private key of any kind.
const BEGIN: &str = "-----BEGIN ";
const PRIVATE: &str = "PRIVATE KEY-----";

pub fn check(root: &Path) -> Vec<Problem> {
    let tracked = workspace::tracked(root);
    tracked.iter().filter_map(|path| problem(path, &std::fs::read(root.join(path)).ok()?)).collect()
}

fn problem(path: &str, content: &[u8]) -> Option<Problem> {
    if ENDINGS.iter().any(|ending| path.ends_with(ending)) || path.split('/').any(|part| part == ".pintle") {
        return Some(Problem::new(path, 1, "files with credentials are not committed"));
    }
    let text = String::from_utf8_lossy(content);
    let is_key = |line: &str| line.trim_start().starts_with(BEGIN) && line.trim_end().ends_with(PRIVATE);
    let line = text.lines().position(is_key)?;
    Some(Problem::new(path, line + 1, "private keys are not committed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found() {
        let key = |kind: &str| format!("a\n{BEGIN}{kind}{PRIVATE}\nMC4C\n");
        let cases = [
            ("tests/x/.pintle/ca.crt", String::new(), Some(1)),
            ("a/server.key", String::new(), Some(1)),
            ("a/admin.kubeconfig", String::new(), Some(1)),
            ("a/fixture.json", key(""), Some(2)),
            ("a/fixture.pem", key("EC "), Some(2)),
            ("a/keys.rs", "let begin = \"-----BEGIN PRIVATE KEY-----\";".to_owned(), None),
            ("a/ca.crt", "-----BEGIN CERTIFICATE-----\n".to_owned(), None),
        ];
        for (path, content, line) in cases {
            assert_eq!(problem(path, content.as_bytes()).map(|problem| problem.line), line, "{path}");
        }
    }
}
